"""Turn a transcript of Claude Code into the hook payloads that its session sent."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smara.adapters.lines import milliseconds

_NO_PROMPT = ("<local-command", "Caveat:", "[Request interrupted", "<task-notification", "<bash-")
_COMMAND = re.compile(
    r"<command-name>(.*?)</command-name>.*<command-args>(.*?)</command-args>", re.S
)
_REFUSED = "The user doesn't want to proceed"


@dataclass(frozen=True, slots=True)
class Sent:
    """A payload, its time, and how many lines the transcript had by then."""

    at_ms: int
    event: str
    payload: dict[str, Any]
    lines: int


@dataclass(slots=True)
class Session:
    """The records of a session, and the hooks that they show."""

    records: list[dict[str, Any]]
    subagents: dict[str, Path] = field(default_factory=dict)
    """The transcripts of sub-agents, by their ids."""

    @property
    def id(self) -> str:
        return next(str(each["sessionId"]) for each in self.records if each.get("sessionId"))

    def text(self, lines: int | None = None) -> str:
        """Return the transcript, or its first lines."""
        return "".join(json.dumps(each) + "\n" for each in self.records[:lines])

    def sent(self) -> Iterator[Sent]:
        """Yield the payloads in their order."""
        calls: dict[str, tuple[dict[str, Any], int]] = {}
        words: dict[str, str] = {}
        at_ms, is_open, begun = 0, False, False
        for number, (agent, record) in enumerate(map(_message, self.records), 1):
            at_ms = max(at_ms, milliseconds(record.get("timestamp")) or 0)
            common = {"session_id": self.id, "cwd": record.get("cwd") or ""}
            if agent:
                common["agent_id"] = agent
            if not begun and record.get("cwd"):
                begun = True
                yield Sent(at_ms, "SessionStart", {**common, "source": "startup"}, number - 1)
            prompt = _prompt(record)
            if prompt and not agent:
                if is_open:
                    yield Sent(at_ms, "Stop", _last(common, words), number - 1)
                is_open = True
                payload = {**common, "prompt": prompt, "prompt_id": record["uuid"]}
                yield Sent(at_ms, "UserPromptSubmit", payload, number - 1)
            for block in _blocks(record):
                if block.get("type") == "text" and record["type"] == "assistant":
                    words[agent] = block["text"]
                elif block.get("type") == "tool_use":
                    calls[block["id"]] = (block, at_ms)
                elif block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                    call, began_at = calls.pop(block["tool_use_id"])
                    result = record.get("toolUseResult")
                    if agent_id := _agent_of(result):
                        stop = {**common, "agent_id": agent_id, "agent_type": "general-purpose"}
                        if agent_id in self.subagents:
                            stop["agent_transcript_path"] = str(self.subagents[agent_id])
                        payload = _last(stop, words, agent_id)
                        yield Sent(at_ms, "SubagentStop", payload, number)
                    if ended := _end(common, call, block, result, at_ms - began_at):
                        yield Sent(at_ms, *ended, number)
        yield Sent(at_ms, "Stop", _last(common, words), len(self.records))
        yield Sent(at_ms + 1, "SessionEnd", {**common, "reason": "other"}, len(self.records))

    def with_last_words_alone(self) -> Session:
        """Return the session as hooks alone know it: what was said before a turn's end is gone."""
        last: dict[str, dict[str, Any]] = {}
        kept: list[int] = []
        for agent, record in map(_message, self.records):
            if _prompt(record) and not agent:
                kept += [id(last[""])] if "" in last else []
                last.pop("", None)
            for block in _blocks(record):
                if block.get("type") == "text" and record["type"] == "assistant":
                    last[agent] = block
        kept += [id(block) for block in last.values()]
        for _, record in map(_message, self.records):
            if record.get("type") == "assistant" and isinstance(record["message"]["content"], list):
                record["message"]["content"] = [
                    block
                    for block in record["message"]["content"]
                    if block["type"] not in ("text", "thinking") or id(block) in kept
                ]
        return self


def read_session(path: Path, subagents: Sequence[Path] = ()) -> Session:
    """Read a transcript, and the transcripts of its sub-agents.

    Results of calls side by side are written in any order; hooks come in the order of time. So a
    record that is older than the one before it gets the time of that one.
    """
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    records = [json.loads(line) for line in content.splitlines()]
    latest = ""
    for record in records:
        for each in (record, (record.get("data") or {}).get("message") or {}):
            if each.get("timestamp"):
                latest = each["timestamp"] = max(latest, each["timestamp"])
    return Session(
        records, {each.name.split(".")[0].removeprefix("agent-"): each for each in subagents}
    )


def _message(record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the sub-agent that a record is of, and the record itself or the one inside it."""
    data = record.get("data") or {}
    if record.get("type") == "progress" and data.get("type") == "agent_progress":
        return data["agentId"], {**record, **data["message"]}
    return str(record.get("agentId") or ""), record


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = (record.get("message") or {}).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return (
        content if isinstance(content, list) and record.get("type") in ("user", "assistant") else []
    )


def _prompt(record: dict[str, Any]) -> str:
    if record.get("type") != "user" or record.get("isMeta") or record.get("isCompactSummary"):
        return ""
    texts = [block["text"] for block in _blocks(record) if block.get("type") == "text"]
    prompt = "\n".join(text for text in texts if not text.lstrip().startswith(_NO_PROMPT))
    command = _COMMAND.search(prompt)
    return f"{command[1]} {command[2]}".strip() if command else prompt


def _last(common: dict[str, Any], words: dict[str, str], agent: str = "") -> dict[str, Any]:
    return {**common, "last_assistant_message": words.pop(agent, "")}


def _agent_of(result: Any) -> str:
    return str(result.get("agentId") or "") if isinstance(result, dict) else ""


def _end(
    common: dict[str, Any], call: dict[str, Any], block: dict[str, Any], result: Any, duration: int
) -> tuple[str, dict[str, Any]] | None:
    content = block.get("content") or ""
    text = (
        content
        if isinstance(content, str)
        else "\n".join(str(each.get("text", "")) for each in content)
    )
    if text.startswith(_REFUSED):
        return None  # no hook runs for what was never done
    payload = {
        **common,
        "tool_name": call["name"],
        "tool_input": call["input"],
        "tool_use_id": call["id"],
        "duration_ms": duration,
    }
    if block.get("is_error"):
        error = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
        return "PostToolUseFailure", {**payload, "error": error}
    return "PostToolUse", {**payload, "tool_response": content if result is None else result}
