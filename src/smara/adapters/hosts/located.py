"""Where a host keeps the transcript of a session, when its events do not say.

Copilot CLI tells it at the end of a turn alone, OpenCode never: it keeps all sessions in one
database. A session that is found there is stored from it, like any other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from smara.adapters.opencode.database import has_session
from smara.core.events import HostEvent
from smara.environment import home_of


class Located:
    """Where transcripts lie; each session is looked for once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def __call__(self, events: Sequence[HostEvent]) -> list[HostEvent]:
        """The events, with the transcript of their session where there is one."""
        return [replace(event, transcript_path=self._path(event)) for event in events]

    def _path(self, event: HostEvent) -> str:
        if event.transcript_path or event.agent not in ("copilot", "opencode"):
            return event.transcript_path
        key = (event.agent, event.session_id)
        if key not in self._known:
            self._known[key] = (_of_copilot if event.agent == "copilot" else _of_opencode)(
                event.session_id
            )
        return self._known[key]


def _of_copilot(session_id: str) -> str:
    if os.path.basename(session_id) != session_id:
        return ""  # a name that would lead elsewhere
    path = os.path.join(
        home_of("COPILOT_HOME", ".copilot"), "session-state", session_id, "events.jsonl"
    )
    return path if os.path.isfile(path) else ""


def _of_opencode(session_id: str) -> str:
    path = os.path.join(home_of("XDG_DATA_HOME", ".local/share"), "opencode", "opencode.db")
    return path if os.path.isfile(path) and has_session(path, session_id) else ""
