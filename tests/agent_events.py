"""Events of an agent, with as little ceremony as a test wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from smara.adapters.importer import read_records
from smara.adapters.records import Record
from smara.adapters.replay import EventReader
from smara.behavior.models import Seen, SignalFinding
from smara.behavior.record import take
from smara.behavior.scratchpad import Pad
from smara.behavior.signals.registry import detect_all
from smara.core.events import HostEvent

ROOT = "/nowhere/shop"


def events_of(path: str | Path, format: str | None = None) -> Iterator[HostEvent]:
    """The events of a transcript, in the order of the file."""
    return events_of_records(read_records(path, format=format))


def events_of_records(records: Iterable[Record]) -> Iterator[HostEvent]:
    """The events that messages tell, in their order."""
    reader = EventReader()
    return (event for record in records for event in reader.read(record))


class Script:
    """Writes the events of one session, five seconds apart."""

    def __init__(self, session_id: str = "s1", now_ms: int = 1_760_000_000_000) -> None:
        self.id = session_id
        self.now_ms = now_ms
        self.subagent = ""
        self.events: list[HostEvent] = []

    def event(self, kind: Any, seconds: float = 5.0, **fields: Any) -> Script:
        self.now_ms += int(seconds * 1000)
        key = f"{self.id}:{len(self.events)}"
        self.events.append(
            HostEvent(
                "claude",
                kind,
                self.id,
                at_ms=self.now_ms,
                cwd=ROOT,
                subagent_id=self.subagent,
                key=key,
                **fields,
            )
        )
        return self

    def tool(self, tool: str, output: str = "", error: str | None = None, **given: Any) -> Script:
        kind = "tool_fail" if error else "tool_post"
        return self.event(kind, tool=tool, tool_input=given, tool_output=output, error=error)

    def read(self, path: str, output: str = "code") -> Script:
        return self.tool("Read", output, file_path=f"{ROOT}/{path}")

    def misread(self, path: str) -> Script:
        return self.tool("Read", error="File does not exist.", file_path=f"{ROOT}/{path}")

    def edit(self, path: str, old: str = "old", new: str = "") -> Script:
        given = {
            "file_path": f"{ROOT}/{path}",
            "old_string": old,
            "new_string": new or f"new {len(self.events)}",
        }
        return self.tool("Edit", "done", **given)

    def run(self, command: str, output: str = "fine") -> Script:
        return self.tool("Bash", output, command=command)

    def fail(self, command: str, error: str) -> Script:
        return self.tool("Bash", error=f"Exit code 1\n{error}", command=command)

    def grep(self, pattern: str, output: str = "") -> Script:
        return self.tool("Grep", output, pattern=pattern)

    def glob(self, pattern: str, output: str = "") -> Script:
        return self.tool("Glob", output, pattern=pattern)

    def say(self, text: str) -> Script:
        return self.event("reasoning", text=text)

    def prompt(self, text: str) -> Script:
        return self.event("prompt", prompt=text)

    def green(self) -> Script:
        return self.run("make test", "41 passed in 3.1s")

    def red(self, output: str = "3 failed, 38 passed") -> Script:
        return self.fail("make test", output)

    def end(self) -> Script:
        return self.event("turn_end", text="Done.").event("session_end")

    def pads(self) -> list[Pad]:
        """The scratchpads that these events fill, the agent's own first."""
        found: dict[str, Pad] = {}
        for event in self.events:
            take(found.setdefault(event.subagent_id, Pad()), event)
        return [found[part] for part in sorted(found)]

    def findings(self, kind: str) -> list[SignalFinding]:
        return [each for each in detect_all(self.pads()) if each.kind == kind]


def seen_again(finding: SignalFinding, times: int, **given: Any) -> Seen:
    """As if the same had shown in so many sessions."""
    return Seen(times, (finding.data,) * times, **given)
