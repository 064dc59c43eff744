"""What the tests of moments share: a repository, a trap in it, sessions that failed, events after a
receipt.
"""

from __future__ import annotations

from smara.core.events import HostEvent
from smara.knowledge.models import Evidence
from tests.agent_events import Script
from tests.contract.memory_place import DAY

OFF = {"embedder": "off"}
SEEN = [Evidence(quote="QueueError: rules changed")]
TRAP = "src/mail/queue.py must be drained with `drain_queue()` before its rules change"


def opened(place, tmp_path, monkeypatch):
    """A store, and a repository around the current folder."""
    (tmp_path / "app" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "app")
    return place.open(**OFF)


def failing(session_id: str, number: int = 0) -> Script:
    """A session in which a command fails and another one works."""
    script = Script(session_id, 1_760_000_000_000 + number * DAY * 1000).prompt("Do the ticket.")
    return (
        script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed").end()
    )


def fail_before(memory, sessions: int = 1) -> None:
    for number in range(sessions):
        script = failing(f"old{number}", number)
        memory.behavior.observe_batch(script.events)
        memory.behavior.finalize(script.id)


def after(receipt, kind: str, **fields) -> HostEvent:
    return HostEvent("claude", kind, receipt.session_id, at_ms=receipt.at + 10, **fields)


def ran(receipt, command: str, ms: int = 10, **fields) -> HostEvent:
    at = receipt.at + ms
    return HostEvent(
        "claude",
        "tool_post",
        receipt.session_id,
        at_ms=at,
        tool="Bash",
        tool_input={"command": command},
        **fields,
    )
