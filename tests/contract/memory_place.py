"""What the tests of memories share: short ways to make one, and to say what is expected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

DAY = 86_400
OFF = {"embedder": "off"}


def contents(memories: Iterable[Any]) -> list[str]:
    return [memory.content for memory in memories]


def learned(memories: Any, content: str, **given: Any) -> Any:
    """A memory that an agent recorded; it must be new."""
    added = memories.add(content, **{"type": "gotcha", "session_id": "s1", **given})
    assert added.outcome == "added", added
    return added.memory


def taught(memories: Any, content: str, **given: Any) -> Any:
    """A memory that a person taught; it must be new."""
    added = memories.add(
        content, **{"type": "gotcha", "source": "user_taught", "by": "person", **given}
    )
    assert added.outcome == "added", added
    return added.memory


class Files:
    """Files whose history a test makes up."""

    def __init__(self, gone: Any = (), changed: Any = (), written: Any = None) -> None:
        self.gone, self.changed, self.written = gone, changed, written or {}

    def exists(self, path: str) -> bool:
        return path not in self.gone

    def called(self, name: str) -> None:
        return None

    def changed_since(self, path: str, commit: str) -> bool:
        return path in self.changed

    def modified_at(self, path: str) -> Any:
        return self.written.get(path)
