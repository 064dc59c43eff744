"""The events that wait in the spool, read: a file is facts and a payload, or it cannot be read."""

from __future__ import annotations

import os
from dataclasses import dataclass

from smara.adapters.hosts.briefs import FOLDER
from smara.adapters.hosts.normalizing import events_of
from smara.adapters.hosts.redacting import safe
from smara.adapters.hosts.said import MARKS
from smara.adapters.hosts.spool import FORMAT, MOST_BYTES, names
from smara.core.events import HostEvent

ASIDE = "unreadable"
_MOST_ASIDE = 200


@dataclass(frozen=True, slots=True)
class Waiting:
    """One file of the spool, and the events that it tells."""

    path: str
    agent: str
    event: str
    at_ms: int
    project: str
    cwd: str
    events: tuple[HostEvent, ...]
    payload: bytes
    """What the host told, without secrets."""


def read(folder: str, limit: int, already: set[str]) -> tuple[list[Waiting], int]:
    """The oldest files that wait, and how many could not be read and were put aside; ``already``
    are left out.
    """
    found: list[Waiting] = []
    unreadable = 0
    for name in [each for each in names(folder) if each not in already][:limit]:
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            continue  # another process has taken it in meanwhile, or it is not ours to read
        waiting = parse(path, content)
        if waiting is None:
            put_aside(path)
            unreadable += 1
        else:
            found.append(waiting)
    return found, unreadable


def parse(path: str, content: bytes) -> Waiting | None:
    """A file's content; ``None`` when it is not one that we wrote whole, or its payload is no JSON
    object.
    """
    head, newline, payload = content.partition(b"\n")
    facts = [fact.decode("utf-8", "surrogateescape") for fact in head.split(b"\t")]
    if not newline or len(facts) != 6 or facts[0].encode() != FORMAT or not facts[3].isdigit():
        return None
    if not payload.lstrip().startswith(b"{"):
        return None
    _, agent, event, at, project, cwd = facts
    if not _is_object(payload):
        return None
    # What was written had no mark of a secret in it, or was redacted; here everything is looked at
    # properly.
    payload = safe(payload, MOST_BYTES)
    events = events_of(agent, event, payload, at_ms=int(at), cwd=cwd)
    return Waiting(
        path,
        agent,
        event,
        at_ms=int(at),
        project=project,
        cwd=cwd,
        events=tuple(events),
        payload=payload,
    )


def _is_object(payload: bytes) -> bool:
    import json

    try:
        return isinstance(json.loads(payload), dict)
    except (ValueError, RecursionError):
        return False


def put_aside(path: str) -> None:
    """Keep a file that cannot be taken in, out of the way, for a person to look at; the oldest of
    them go.
    """
    folder = os.path.join(os.path.dirname(path), ASIDE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.replace(path, os.path.join(folder, os.path.basename(path)))
        for name in sorted(os.listdir(folder))[:-_MOST_ASIDE]:
            os.unlink(os.path.join(folder, name))
    except OSError:
        return  # it stays where it is, and is tried again


def remove(path: str) -> None:
    """Delete a file that was taken in; one that is gone already is as good."""
    try:
        os.unlink(path)
    except OSError:
        return


def sweep(folder: str, now_seconds: float) -> int:
    """Take away what nobody will miss; how many files.

    Halves of killed hooks go after an hour, marks of sessions and briefs that nobody made anew
    after a week.
    """
    gone = 0
    for place, seconds in (
        (folder, 3_600),
        (os.path.join(folder, MARKS), 7 * 86_400),
        (os.path.join(folder, FOLDER), 7 * 86_400),
    ):
        try:
            found = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
        except OSError:
            continue
        for entry in found:
            is_ours = entry.name.startswith(".") if place == folder else True
            try:
                if is_ours and now_seconds - entry.stat().st_mtime > seconds:
                    os.unlink(entry.path)
                    gone += 1
            except OSError:
                continue
    return gone
