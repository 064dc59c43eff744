"""Define `smara watch`: show what hooks hear and tell, as it happens.

Two sources are looked at in turn. The spool has what the hooks of this machine heard and told a
moment ago; the feed of the store has what every machine told, stored and learned. What both have
is shown once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import click

from smara.adapters.hosts.drain import SpoolFile, parse
from smara.adapters.hosts.session_log import NOTICE
from smara.adapters.hosts.spool import names
from smara.adapters.importer import project_of
from smara.core.events import HostEvent
from smara.core.extract import one_line
from smara.core.files import is_ours, open_regular
from smara.core.startup.record import dataclass
from smara.environment import spool_folder
from smara.errors import NotFoundError
from smara.feed.models import FeedEvent
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.context import POINTS
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.surfaces.cli.render import cut, styled

LOOK_SECONDS = 0.5
_MOST_TEXT = 600
_MOST_PAGES = 20
Verb = Literal["hears", "tells", "stores", "learns", "plans", "asks"]
_COLORS: dict[Verb, str | None] = {
    "hears": None, "tells": "green", "stores": "bright_black", "learns": "yellow",
    "plans": "cyan", "asks": "magenta",
}  # fmt: skip
_KINDS: dict[str, str] = {
    "session_start": "session starts", "session_end": "session ends", "turn_end": "turn ends",
    "turn_fail": "turn fails", "compact_pre": "compacts its context",
    "compact_post": "compacted its context", "subagent_start": "helper starts",
    "subagent_stop": "helper ends", "instructions": "loads instructions",
    "file_changed": "file changed", "task": "plan changes", "step": "says", "reasoning": "thinks",
    "prompt": "is asked", "tool_batch": "tools",
}  # fmt: skip
_SUBJECTS = ("command", "file_path", "pattern", "url", "query", "description", "files")


@dataclass(frozen=True, slots=True)
class WatchLine:
    """One thing that was heard, told or stored."""

    at: int
    verb: Verb
    text: str
    agent: str = ""
    session_id: str = ""


class Watch:
    """Two sources and how far each was read."""

    def __init__(self, memory: Memory, folder: str, is_everywhere: bool = False) -> None:
        self._memory = memory
        self._folder = folder
        self._is_everywhere = is_everywhere
        self._files = set(names(folder))
        self._cursor = memory.feed.newest()
        self._receipts: set[tuple[str, int, str]] = set()
        self._projects: dict[tuple[str, str], str | None] = {}

    def look(self) -> list[WatchLine]:
        """Return what has happened since, the oldest first."""
        return sorted([*self._spooled(), *self._stored()], key=lambda each: each.at)

    def _spooled(self) -> Iterator[WatchLine]:
        """Yield what hooks of this machine wrote down, before a drain takes it away."""
        present = names(self._folder)
        new = [name for name in present if name not in self._files]
        self._files = set(present)
        for name in new:
            path, content = os.path.join(self._folder, name), b""
            with suppress(OSError), open_regular(path) as file:
                content = file.read() if is_ours(os.fstat(file.fileno())) else b""
            spooled = parse(path, content)
            if spooled is None or not self._is_here(spooled):
                continue
            if (spooled.agent, spooled.event) == NOTICE:
                yield from self._notice(spooled)
            for event in spooled.events:
                yield WatchLine(
                    event.at_ms, "hears", _heard(event), event.agent, session_id=event.session_id
                )

    def _is_here(self, spooled: SpoolFile) -> bool:
        cwd = next((event.cwd for event in spooled.events if event.cwd), spooled.cwd)
        key = (spooled.project, cwd)
        if key not in self._projects:
            self._projects[key] = project_of(self._memory, *key)
        return self._is_everywhere or self._projects[key] == self._memory.project

    def _notice(self, spooled: SpoolFile) -> Iterator[WatchLine]:
        notice = json.loads(spooled.payload)
        injection = notice["told"]
        self._receipts.add((notice["session_id"], spooled.at_ms, injection["point"]))
        if notice.get("is_said", True):
            yield WatchLine(
                spooled.at_ms,
                "tells",
                _injected(injection["point"], [each["text"] for each in injection["items"]]),
                notice["agent"],
                session_id=notice["session_id"],
            )

    def _stored(self) -> Iterator[WatchLine]:
        """Yield what the store has got; messages of a look are one line for each thread."""
        messages: Counter[str | None] = Counter()
        for _ in range(_MOST_PAGES):
            page = self._memory.feed.list(after=self._cursor)
            if not page.events:
                break
            self._cursor = page.cursor
            for event in page.events:
                if event.kind == "message.added":
                    messages[event.thread_id] += 1
                elif (line := self._changed(event)) is not None:
                    yield line
        for thread_id, count in messages.items():
            text = output.count(count, "message")
            now = int(time.time() * 1000)  # what was imported is older than its arrival
            yield WatchLine(now, "stores", text, session_id=thread_id or "")

    def _changed(self, event: FeedEvent) -> WatchLine | None:
        noun, _, verb = event.kind.partition(".")
        text, agent, words = "", "", ""
        with suppress(NotFoundError):  # erased meanwhile
            if noun == "receipt":
                receipt = self._memory.moments.receipt(event.id)
                if not receipt.is_said or (
                    (receipt.session_id, receipt.at, receipt.point) in self._receipts
                ):
                    return None
                agent = receipt.agent
                words = _injected(receipt.point, [each.text for each in receipt.items])
            elif noun == "memory":
                text = self._memory.memories.get(event.id).content
            elif noun == "task":
                text = self._memory.tasks.get(event.id).title
        if noun == "model":
            return WatchLine(event.at, "asks", "a model", session_id=event.session_id or "")
        kinds: dict[str, Verb] = {"receipt": "tells", "task": "plans"}
        rest = f": {one_line(text, _MOST_TEXT)}" if text else ""
        words = words or f"{noun} {event.id} {verb}{rest}"
        session_id = event.session_id or event.thread_id or ""
        return WatchLine(event.at, kinds.get(noun, "learns"), words, agent, session_id=session_id)


def _heard(event: HostEvent) -> str:
    """Return an event in a few words."""
    given = (event.tool_input.get(name) for name in _SUBJECTS)
    words = next(filter(None, given), event.prompt)
    if not isinstance(words, str):
        words = ", ".join(map(str, words)) if isinstance(words, list | tuple) else str(words)
    what = event.tool or _KINDS.get(event.kind, event.kind)
    if event.kind == "tool_pre":
        what += " is called"
    why = (
        f" ({event.source})"
        if event.kind in ("session_start", "compact_pre") and event.source
        else ""
    )
    failed = f"; failed: {event.error or 'no reason given'}" if event.kind == "tool_fail" else ""
    if not words and event.kind in ("step", "turn_end"):
        words = event.text
    text = f"{what}{why}{f': {words}' if words else ''}{failed}"
    return one_line(text, _MOST_TEXT)


def _injected(point: str, texts: list[str]) -> str:
    where = POINTS.get(point, point.replace("_", " "))
    return one_line(f"{where}: {'; '.join(filter(None, texts))}", _MOST_TEXT)


@click.command("watch")
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    metavar="S",
    help="Exit after so long; by default run until Ctrl-C.",
)
@click.option("--all-projects", is_flag=True, help="Show what hooks hear in other projects, too.")
@common
def watch_command(call: Invocation, seconds: float | None, all_projects: bool) -> Reply:
    """Show what hooks hear and tell, as it happens, until Ctrl-C.

    One line for each event of an agent, each text that an agent was told, and
    each change of the store, also by other machines of a shared one. In a pipe
    the lines are tab-separated; with --json each line is an answer of its own.
    """
    shown = 0
    ends_at = None if seconds is None else time.monotonic() + seconds
    with call.memory() as memory:
        watch = Watch(memory, spool_folder(), all_projects)
        if not call.as_json and output.is_terminal():
            output.say(f"Watching {memory.project}; Ctrl-C ends it.", dim=True)
        elif not call.as_json:
            output.row(("when", "agent", "session", "what", "text"))
            sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            while True:
                is_last = ends_at is not None and time.monotonic() >= ends_at
                for line in watch.look():
                    _print(call, line)
                    shown += 1
                if is_last:
                    break
                time.sleep(LOOK_SECONDS)
    yield {"events": shown}
    if output.is_terminal():
        output.say("", f"{output.count(shown, 'event')}.", dim=True)


def _print(call: Invocation, line: WatchLine) -> None:
    if call.as_json:
        output.envelope(_json(line))
    elif not output.is_terminal():
        output.row((output.moment(line.at), line.agent, line.session_id, line.verb, line.text))
    else:
        clock = time.strftime("%H:%M:%S", time.localtime(line.at / 1000))
        who = f"{line.agent:<8} {cut(output.short(line.session_id), 13):<8}"
        head, text = f"{clock}  {who}  {line.verb:<6} ", output.printable(line.text)
        if line.verb == "tells":  # all of it: this is what an agent now knows
            text = output.paragraph(text, head, " " * 12)[len(head) :]
        else:
            text = cut(text, max(20, output.terminal_width(at_most=200) - len(head)))
        verb = styled(f"{line.verb:<6}", fg=_COLORS[line.verb], bold=line.verb == "tells")
        click.echo(f"{styled(clock, dim=True)}  {who}  {verb} {text}")
    sys.stdout.flush()


def _json(line: WatchLine) -> dict[str, Any]:
    return {
        "at": line.at,
        "verb": line.verb,
        "agent": line.agent or None,
        "sessionId": line.session_id or None,
        "text": line.text,
    }
