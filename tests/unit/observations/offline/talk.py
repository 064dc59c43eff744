"""A conversation, written down message by message, and what the offline observer makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from smara.core.extract import word_set
from smara.messages.models import Message, Part, Role
from smara.observations.models import Note, ObservationDraft, ObserveRequest
from smara.observations.offline import OfflineObserver

WEDNESDAY = int(datetime(2026, 3, 11, 9, 15, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000
FRAME_WORDS = word_set(
    """
    after agent answered approved asked at attached blocked by changed changes code committed
    continue corrected created decided delegated deleted done failed failing fetched first fixed
    for found given in installed interrupted it last looked mend no nothing ok on output passed
    plan prefers ran rejected removed replaces reported requested result said searched seen
    showed task the then this to tool used user waiting web with work
    """
)
"""Every word that a note may hold although the conversation does not."""


class Talk:
    """Messages a minute apart, from Wednesday 2026-03-11, 09:15 UTC."""

    def __init__(self, begin: int = WEDNESDAY, cwd: str = "") -> None:
        self.messages: list[Message] = []
        self._at = begin
        self._cwd = cwd
        self._calls = 0

    def add(self, role: Role, *parts: Part, **metadata: Any) -> Talk:
        seq = len(self.messages) + 1
        if self._cwd and seq == 1:
            metadata["cwd"] = self._cwd
        content = "\n\n".join(part.render() for part in parts)
        self.messages.append(
            Message(
                f"m{seq}",
                "t",
                "r",
                seq=seq,
                role=role,
                raw_content=content,
                parts=parts,
                token_count=len(content) // 4,
                token_method="estimate",
                created_at=self._at,
                metadata=metadata,
            )
        )
        self._at += MINUTE
        return self

    def user(self, text: str, **metadata: Any) -> Talk:
        return self.add("user", Part("text", text), **metadata)

    def agent(self, text: str, **metadata: Any) -> Talk:
        return self.add("assistant", Part("text", text), **metadata)

    def call(
        self, name: str, arguments: Any, result: str | None = "", is_error: bool = False
    ) -> Talk:
        """A tool call with its result; with ``None`` the result is still to come."""
        self._calls += 1
        call_id = f"call-{self._calls}"
        self.add("assistant", Part("tool_call", name=name, call_id=call_id, arguments=arguments))
        if result is not None:
            self.add(
                "tool", Part("tool_result", result, name=name, call_id=call_id, is_error=is_error)
            )
        return self

    def run(self, command: str, output: str = "", is_error: bool = False) -> Talk:
        return self.call("Bash", {"command": command}, output, is_error)

    def write(self, path: str, content: str) -> Talk:
        result = f"File created successfully at: {path}"
        return self.call("Write", {"file_path": path, "content": content}, result)

    def edit(self, path: str, old: str, new: str) -> Talk:
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        return self.call("Edit", arguments, f"The file {path} has been updated successfully.")

    def draft(self, **options: Any) -> ObservationDraft:
        return OfflineObserver().observe(ObserveRequest(self.messages, **options))

    def notes(self, category: str | None = None, **options: Any) -> list[Note]:
        return [note for note in self.draft(**options).notes if category in (None, note.category)]

    def text(self, category: str | None = None, **options: Any) -> str:
        """All lines of the notes, one below the other."""
        return "\n".join(
            line for note in self.notes(category, **options) for line in (note.text, *note.details)
        )


def only(notes: list[Note]) -> Note:
    assert len(notes) == 1, notes
    return notes[0]
