"""Real sessions of coding agents, as events: what hooks would have told while they ran.

Two sources. The transcripts of the data folder; and public repositories that keep the transcripts
of the agents that built them on a branch of their own, read from bare git folders below the folder
that ``SMARA_EVAL_REPOS`` names. Of a session that was kept several times the longest is taken. A
record that another session has told before, as after a resume, is told once.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import smara

BRANCH = "entire/checkpoints/v1"
FOLDER = Path("transcripts") / "claude_code"
_NO_PROMPT = (
    "<command-",
    "<local-command",
    "Caveat:",
    "[Request interrupted",
    "<task-notification",
    "<bash-",
)
_OUTPUT = 200_000


@dataclass(frozen=True, slots=True)
class Project:
    """A repository whose agents were recorded; ``repository`` is empty for the data folder."""

    name: str
    repository: str = ""

    def is_at_hand(self, data: Path | None) -> bool:
        if self.repository:
            return self._bare() is not None
        return data is not None and (data / FOLDER).is_dir()

    def sessions(self, data: Path | None) -> Iterator[list[smara.HostEvent]]:
        """The events of each session, the sessions in the order in which they began."""
        told: set[str] = set()
        bare = self._bare() if self.repository else None
        whole = (
            _of_branch(bare) if bare is not None else _of_folder(data) if data is not None else ()
        )
        for name, lines in whole:
            events = list(events_of(name, lines, told))
            if events:
                yield events

    def _bare(self) -> Path | None:
        folder = os.environ.get("SMARA_EVAL_REPOS", "")
        bare = Path(folder) / self.repository.replace("/", "+") / "repo"
        return bare if folder and bare.is_dir() else None


def _of_folder(data: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    files = [
        path
        for path in (data / FOLDER).glob("*.jsonl.gz")
        if not path.name.startswith("agent-acompact")
    ]
    for path in sorted(files, key=_begun):
        with gzip.open(path) as lines:
            yield path.name.split(".")[0], lines


def _begun(path: Path) -> str:
    with gzip.open(path) as lines:
        return _begin_of(lines)


def _of_branch(bare: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Each session of a repository, as it was kept last."""
    git = ["git", "--git-dir", str(bare)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-l", BRANCH], capture_output=True, check=True)  # noqa: S603
    with subprocess.Popen(  # noqa: S603
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as blobs:
        longest: dict[str, tuple[int, str, str]] = {}
        for line in listed.stdout.decode().splitlines():
            facts, path = line.split("\t", 1)
            sha, size = facts.split()[2:4]
            if not path.endswith("/full.jsonl"):
                continue
            head = (_blob(blobs, sha) or b"").splitlines()[:60]
            session, begun = _session_in(head), _begin_of(head)
            if session and begun and int(size) > longest.get(session, (0, "", ""))[0]:
                longest[session] = (int(size), begun, sha)
        for session, (_, _, sha) in sorted(longest.items(), key=lambda item: (item[1][1], item[0])):
            yield session, (_blob(blobs, sha) or b"").splitlines()
        if blobs.stdin is not None:
            blobs.stdin.close()


def _blob(blobs: subprocess.Popen[bytes], sha: str) -> bytes | None:
    """A blob; ``None`` when the folder does not have it."""
    if blobs.stdin is None or blobs.stdout is None:
        return None
    blobs.stdin.write(f"{sha}\n".encode())
    blobs.stdin.flush()
    head = blobs.stdout.readline().split()
    if head[-1] == b"missing":
        return None
    content = blobs.stdout.read(int(head[2]))
    blobs.stdout.read(1)
    return content


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def _begin_of(lines: Iterable[bytes]) -> str:
    return next((str(each["timestamp"]) for each in _records(lines) if each.get("timestamp")), "")


def _session_in(lines: Iterable[bytes]) -> str:
    return next((str(each["sessionId"]) for each in _records(lines) if each.get("sessionId")), "")


def events_of(session: str, lines: Iterable[bytes], told: set[str]) -> Iterator[smara.HostEvent]:
    """What the records of a transcript tell, in order; ``told`` holds the records that were told
    before.
    """
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    at, is_turn, cwd, count = 0, False, "", 0
    for record in _records(lines):
        uuid = str(record.get("uuid") or "")
        if uuid and uuid in told:
            continue
        told.add(uuid)
        agent, message = _message_of(record)
        at = _milliseconds(record.get("timestamp")) or at
        cwd = str(record.get("cwd") or cwd)
        common = {"cwd": cwd, "subagent_id": agent}
        for position, part in enumerate(_parts(record, message)):
            key = f"{session}:{uuid or count}:{position}"
            count += 1
            if part["type"] == "prompt" and not agent:
                if is_turn:
                    yield smara.HostEvent(
                        "claude", "turn_end", session, at, key=f"{key}:end", cwd=cwd
                    )
                is_turn = True
            event = _event(session, at, part, calls=calls, common={**common, "key": key})
            if event is not None:
                yield event
    if count:
        yield smara.HostEvent("claude", "turn_end", session, at, key=f"{session}:last", cwd=cwd)
        yield smara.HostEvent("claude", "session_end", session, at, key=f"{session}:end", cwd=cwd)


def _message_of(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The message of a record, and the helper that it is of: helpers are told of within records of
    progress.
    """
    if record.get("type") == "progress":
        data = record.get("data") or {}
        inner = data.get("message") or {} if isinstance(data, dict) else {}
        is_agent = (
            isinstance(data, dict)
            and data.get("type") == "agent_progress"
            and isinstance(inner, dict)
        )
        return (
            (str(data.get("agentId") or "helper"), inner.get("message") or {})
            if is_agent
            else ("", {})
        )
    agent = str(record.get("agentId") or ("helper" if record.get("isSidechain") else ""))
    message = record.get("message")
    return agent, message if isinstance(message, dict) else {}


def _parts(record: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content, role = message.get("content"), message.get("role")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and role == "user":
            text = str(part.get("text") or "")
            if record.get("isCompactSummary"):
                yield {"type": "summary", "text": text}
            elif not record.get("isMeta") and not text.lstrip().startswith(_NO_PROMPT):
                yield {"type": "prompt", "text": text}
        elif kind in ("text", "thinking", "tool_use", "tool_result"):
            yield part


def _event(
    session: str,
    at: int,
    part: Mapping[str, Any],
    calls: dict[str, tuple[str, dict[str, Any]]],
    common: dict[str, Any],
) -> smara.HostEvent | None:
    kind = part["type"]
    if kind == "prompt":
        return smara.HostEvent("claude", "prompt", session, at, prompt=part["text"], **common)
    if kind == "summary":
        return smara.HostEvent("claude", "compact_post", session, at, text=part["text"], **common)
    if kind in ("text", "thinking"):
        text = str(part.get(kind) or "")
        return (
            smara.HostEvent("claude", "reasoning", session, at, text=text, **common)
            if text
            else None
        )
    if kind == "tool_use":
        call = str(part.get("id") or "")
        given = part.get("input") if isinstance(part.get("input"), dict) else {}
        tool = calls[call] = (_tool(str(part.get("name") or "")), dict(given or {}))
        return smara.HostEvent(
            "claude",
            "tool_pre",
            session,
            at,
            tool=tool[0],
            tool_input=tool[1],
            tool_use_id=call,
            **common,
        )
    call = str(part.get("tool_use_id") or "")
    if call not in calls:
        return None
    name, given = calls[call]
    output, failed = _text(part.get("content"))[:_OUTPUT], bool(part.get("is_error"))
    return smara.HostEvent(
        "claude",
        "tool_fail" if failed else "tool_post",
        session,
        at,
        tool=name,
        tool_input=given,
        tool_use_id=call,
        tool_output="" if failed else output,
        error=output if failed else None,
        **common,
    )


def _tool(name: str) -> str:
    if name.startswith("mcp__"):
        return "mcp:" + ":".join(name.split("__")[1:3])
    return {"MultiEdit": "Edit", "NotebookEdit": "Edit", "PowerShell": "Bash"}.get(name, name)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(each.get("text") or "") for each in content if isinstance(each, dict))
    return content if isinstance(content, str) else ""


def _milliseconds(stamp: Any) -> int:
    try:
        return int(datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return 0
