"""Claude Code: its transcripts, read into threads and messages."""

from smara.adapters.claude_code.transcript import read_transcript

__all__ = ["read_transcript"]
