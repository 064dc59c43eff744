"""A project with something on every page of the panel, and the addresses of all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import smara
from smara.surfaces.panel.pages import PAGES, PageSpec

HOSTILE = '<script>alert("x")</script> and \u202eright to left\u200b'


def fill(memory: smara.Memory) -> dict[str, str]:
    """Fill a store; return an example's id by the start of its page's address."""
    message = memory.messages.add(thread_id="talk/1", role="user", content=f"hello {HOSTILE}")
    noted = memory.memories.add(
        "The worker of the cache retries four times before it gives up on a queue.",
        type="gotcha",
        source="agent_explicit",
        by="agent",
        files=["src/worker.py"],
    ).memory
    memory.memories.remember("Never mock the database.")
    task = memory.tasks.add("Mend the door")
    memory.tasks.add("Paint it", depends_on=[task.id])
    for text in ("# Goal\nA door", "# Goal\nA blue door"):
        memory.working.put(text, thread_id="talk/1", scope="thread")
    memory.observations.end_session("talk/1")
    assert noted is not None
    return {
        "memories": noted.short_id,
        "review": noted.short_id,
        "review/session": "talk/1",
        "sessions": "talk/1",
        "messages": message.id,
        "observations": memory.observations.list()[0].id,
        "tasks": task.short_id,
        "erase": f"?memory={noted.id}",
        "working": "?scope=thread&thread_id=talk/1",
    }


def addresses(examples: Mapping[str, str]) -> Iterator[tuple[PageSpec, str]]:
    """Yield every page with an address that shows something."""
    for spec in PAGES:
        room = spec.path.partition("/{")[0].strip("/")
        assert "{" not in spec.path or room in examples, f"fill() gives no example of {spec.path}"
        example = examples.get(room, "")
        path = re.sub(r"\{.*\}", example, f"/ui{spec.path}").rstrip("/")
        yield spec, path + (example if example.startswith("?") else "")
