"""Gemini CLI: its chats and its log of prompts, read into threads and messages."""

from smara.adapters.gemini.chat import read_chat
from smara.adapters.gemini.folders import project_root_of

__all__ = ["project_root_of", "read_chat"]
