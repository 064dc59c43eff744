"""OpenCode: its sessions, from its folder of JSON files, its database or an export, read into
threads and messages.
"""

from smara.adapters.opencode.reading import read_sessions

__all__ = ["read_sessions"]
