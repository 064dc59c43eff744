"""Choose a hook's reply from the brief by exact rules.

No memory is opened here; ``None`` means that only the store can decide. A log per session
prevents a second injection of the same text; receipts are written when the spool is drained.

A brief may be older than the store. A start reply is valid only if no memory and no task
changed since. A tool reply is valid if a read-only probe finds the memories it cites
unchanged.
"""

from __future__ import annotations

import json
import os

from smara.adapters.hook_output import emit, own_words
from smara.adapters.hosts import brief
from smara.adapters.hosts.brief import has_rule
from smara.adapters.hosts.session_log import EMPTIED, SessionLog
from smara.adapters.hosts.spool import put
from smara.core.host_table import (
    BEFORE,
    FAILURES,
    FIELDS,
    PAYLOAD_MARKS,
    PROMPTS,
    SOURCES,
    STARTS,
    SUBAGENT_STARTS,
)
from smara.core.memory_block import CLOSING, OPENING
from smara.core.tool_names import tool_arguments, tool_name
from smara.core.tool_triggers import runs, starts, triggers_of, words_of
from smara.environment import named_project

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NOTICE = ("smara", "told")
"""Who tells, and what: that prepared words were said."""
FAILED = "failed:"
"""The trigger of every call that failed."""
_MOST_AT_ONCE = 2
_LEAST_STEMS, _LEAST_SHARE = 3, 0.6
_FORGETTING = ("compact", "clear")


def choose(
    agent: str, event: str, told: Mapping[str, Any], folder: str
) -> list[dict[str, Any]] | None:
    """Choose what to say, each with its receipt's facts.

    Empty for silence, ``None`` if the store must be asked.
    """
    head = brief.head_of(folder, folder_of(told))
    session_id = session_of(told)
    if head is None or not (session_id.isprintable() and 0 < len(session_id) <= 200):
        return None
    if not head["stamp"] and head["is_same"]:
        return []  # there is no store
    if event in STARTS and hearer_of(told) == session_id:
        return _start(agent, told, folder, head=head)
    if event in PROMPTS:
        # Where the work stood, as far as the prompt is about it, and what is new since the start.
        words = brief.words_of(folder, head, agent)
        if words is None:
            return None
        prompt = own_words(_text(told, FIELDS["prompt"])).lower()
        said = SessionLog(folder, session_of(told))
        fitting = [
            each["told"]
            for each in words["firsts"]
            if _is_about(prompt, each["words"], each["stems"])
        ]
        new = [each for each in fitting[:_MOST_AT_ONCE] if not names_of(each) <= said.names]
        if not head["store"]:
            return None if new else []
        return [each for each in (*new, *_late(words, said)) if _stands(head, each)]
    return (
        _about_tool(agent, event, told, folder=folder, head=head)
        if event not in (*STARTS, *SUBAGENT_STARTS)
        else None
    )


def say(
    agent: str, event: str, told: Mapping[str, Any], folder: str, chosen: list[dict[str, Any]]
) -> bytes:
    """The host's standard output for what was chosen."""
    source = source_of(told) if event in STARTS else ""
    head = brief.head_of(folder, folder_of(told))
    heard = [each for each in chosen if _is_heard(head, session_of(told), each["point"])]
    for each in chosen:
        note(
            folder,
            agent,
            hearer_of(told),
            source=source,
            cwd=folder_of(told),
            told=each,
            is_said=each in heard,
        )
    # A host may run hooks that were set up for others.
    runner = next((name for mark, name in PAYLOAD_MARKS.items() if mark in told), agent)
    if event in STARTS and has_rule(brief.root_of(folder_of(told)), runner):
        return b""  # it stands in the rule file, which the agent reads anyway
    return emit(agent, event, "\n".join(each["text"] for each in heard)) if heard else b""


def _is_heard(head: Mapping[str, Any] | None, session_id: str, point: str) -> bool:
    """Whether the arm of a session lets it hear anything at a point."""
    if head is None or not head["arms"]:
        return True
    from smara.context.moments.experiment import arm_of, may_say

    return may_say(arm_of(session_id, head["arms"]), point)


def _is_passive(head: Mapping[str, Any], session_id: str) -> bool:
    """Whether a session is told only what stands before the work; of the rest there is not even a
    receipt.
    """
    if not head["arms"]:
        return False
    from smara.context.moments.experiment import arm_of

    return arm_of(session_id, head["arms"]) == "passive"


def _start(
    agent: str, told: Mapping[str, Any], folder: str, head: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    words = brief.words_of(folder, head, agent)
    if (
        words is None
        or not words["is_same"]
        or not _nothing_changed(head)
        or not brief.are_same(words["cited"])
    ):
        return None
    source = told.get("source")
    said = SessionLog(folder, session_of(told)) if source not in _FORGETTING else None
    remember_start(folder, session_of(told), source, made_at=words["made_at"])
    start = words["start"] and _of_others(words["start"], session_of(told))
    if not start or not start["text"].strip():
        return []
    if said is not None and said.began_with and said.names:
        return _unsaid(start, said)  # it goes on, and what it was told stands in its context
    return [start]


def _of_others(start: dict[str, Any], session_id: str) -> dict[str, Any]:
    """A start without what it says of the session itself: one that goes on is not told of itself as
    of the last one.
    """
    own = [
        item for item in start["items"] if item["kind"] == "left_off" and item["id"] == session_id
    ]
    if not own:
        return start
    lines = [line for line in start["text"].splitlines() if f"[Thread {session_id}]" not in line]
    return {
        **start,
        "text": "\n".join(lines),
        "items": [item for item in start["items"] if item not in own],
        "tokens": start["tokens"] - sum(item["tokens"] for item in own),
    }


def _is_about(prompt: str, names: Sequence[str], stems: Sequence[str]) -> bool:
    """Whether a prompt gives a name as a word of its own, or shares most stems of a title of some
    length.
    """
    if any(_has_word(prompt, name) for name in names):
        return True
    return len(stems) >= _LEAST_STEMS and sum(
        stem in prompt for stem in stems
    ) >= _LEAST_SHARE * len(stems)


def _has_word(text: str, word: str) -> bool:
    start = text.find(word) if word else -1
    while start >= 0:
        around = text[max(0, start - 1) : start] + text[start + len(word) : start + len(word) + 1]
        if not any(each.isalnum() or each == "_" for each in around):
            return True
        start = text.find(word, start + 1)
    return False


def _late(words: Mapping[str, Any], said: SessionLog) -> list[dict[str, Any]]:
    """What has become known since the session's start was prepared, as the end of the session
    before it.
    """
    start = words["start"]
    if said.began_with in ("", str(words["made_at"])) or not start:
        return []
    return [{**each, "point": "first_message"} for each in _unsaid(start, said)]


def _unsaid(start: Mapping[str, Any], said: SessionLog) -> list[dict[str, Any]]:
    """Of a start what a session was not told yet; nothing when it was told all of it."""
    new = [item for item in start["items"] if item["text"] and name_of(item) not in said.names]
    if not new:
        return []
    lines = [_line_of(start["text"], item["text"]) for item in new]
    head = (
        "Told before the context was compacted:"
        if said.began_with == EMPTIED
        else "Known since this session began:"
    )
    text = "\n".join([OPENING, head, *lines, CLOSING])
    tokens = sum(item["tokens"] for item in new)
    return [{**start, "items": new, "receipt_id": "", "tokens": tokens, "text": text}]


def _line_of(text: str, label: str) -> str:
    """The line that says what a label is short for."""
    beginning = label.rstrip("…. ")
    return next((line for line in text.splitlines() if beginning in line), label)


def _about_tool(
    agent: str, event: str, told: Mapping[str, Any], folder: str, head: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    tool, given, error = call_of(event, told)
    if tool == "Bash" and error is None and event not in BEFORE:
        # A command that shows files, as the reading of these files; every other one as it is.
        from smara.core.tool_triggers import shown_files

        shown = shown_files(str(given.get("command")))
        if shown:
            tool, given = "Read", {"file_path": shown[0], "files": shown}
    keys = set(triggers_of(tool, given))
    if error is not None:
        keys.add(FAILED)
    if keys.isdisjoint(head["watched"]) or _is_passive(head, session_of(told)):
        return []
    words = brief.words_of(folder, head, agent)
    if words is None:
        return None
    points = (
        ("before_tool",)
        if event in BEFORE
        else ("after_tool",)
        if error is None
        else ("tool_failure", "after_tool")
    )
    said = SessionLog(folder, hearer_of(told))
    if said.times >= words["most_said"]:
        return []
    new = [
        each
        for each in words["tools"]
        if each["point"] in points
        and not names_of(each["told"]) <= said.names
        and _fits(each, tool, given, error=error or "", root=head["root"], cwd=folder_of(told))
    ]
    if new and not (head["store"] and all(brief.are_same(each["cited"]) for each in new)):
        # the code has changed under what is known of it: whether it still holds is for the store to
        # say
        return None
    return [each["told"] for each in new if _stands(head, each["told"])][:_MOST_AT_ONCE]


def _fits(
    entry: Mapping[str, Any], tool: str, given: Mapping[str, Any], error: str, root: str, cwd: str
) -> bool:
    """Whether a call is what prepared words are about: every condition that they state holds."""
    if entry["tools"] and tool not in entry["tools"]:
        return False
    files = given.get("files") or [given.get("file_path")]
    if entry["file"] and not any(
        isinstance(each, str) and is_file(each, entry["file"], root, cwd=cwd) for each in files
    ):
        return False
    line, pattern = given.get("command"), given.get("pattern")
    if entry["command"] and not (isinstance(line, str) and runs(line, entry["command"])):
        return False
    if entry.get("needs") and not (isinstance(line, str) and starts(line, entry["needs"])):
        return False
    if entry["pattern"] and not (
        isinstance(pattern, str) and entry["pattern"] in words_of(pattern)
    ):
        return False
    if not entry["words"]:
        return True
    text = f"{line if isinstance(line, str) else ''}\n{error}".lower()
    return all(word in text for word in entry["words"])


def is_file(path: str, known: str, root: str, cwd: str) -> bool:
    """Return True if a host's path is this file of the repository."""
    given = path.replace("\\", "/")
    whole = (
        given
        if given.startswith("/") or given[1:3] == ":/"
        else os.path.join(cwd, given).replace("\\", "/")
    )
    whole, root = os.path.normpath(whole).replace("\\", "/"), root.replace("\\", "/").rstrip("/")
    known = known.replace("\\", "/")
    if whole.startswith(root + "/"):
        return whole[len(root) + 1 :] == known
    return whole.endswith("/" + known)  # the same folder under another name, as links make it


def _nothing_changed(head: Mapping[str, Any]) -> bool:
    if head["is_same"]:
        return True
    if not head["store"]:
        return False
    from smara.context.moments import experiment
    from smara.database.probe import MEMORIES, TASKS, has_changed, open_probe

    look = open_probe(head["store"], head["project_no"], head["schema"])
    if look is None:
        return False
    with look:
        return not (
            has_changed(look, MEMORIES, head["marks"])
            or has_changed(look, TASKS, [head["task_mark"]])
            or experiment.has_changed(look, head["arms_mark"])
        )


def _stands(head: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether what is about to be said still holds."""
    if head["is_same"]:
        return True
    from smara.context.moments import experiment
    from smara.database.probe import TASKS, are_memories_unchanged, has_changed, open_probe

    look = open_probe(head["store"], head["project_no"], head["schema"])
    if look is None:
        return False
    with look:
        if experiment.has_changed(look, head["arms_mark"]):
            return False
        ids = [item["id"] for item in told["items"] if item["kind"] == "memory"]
        if any(item["kind"] == "task" for item in told["items"]) and has_changed(
            look, TASKS, [head["task_mark"]]
        ):
            return False
        return are_memories_unchanged(look, ids, head["marks"])


def call_of(event: str, told: Mapping[str, Any]) -> tuple[str, dict[str, Any], str | None]:
    """Return the tool, arguments and error of a call, by our names."""
    tool = tool_name(_text(told, FIELDS["tool"]))
    return (
        tool,
        tool_arguments(tool, _arguments(told)),
        None if event in BEFORE else _error(event, told, tool),
    )


def _error(event: str, told: Mapping[str, Any], tool: str) -> str | None:
    """What went wrong with a call; ``None`` when nothing did."""
    if event in FAILURES:
        return _text(told, FIELDS["error"])
    from smara.actions.tool_output import failure_of, text_of

    answer = next((told[name] for name in FIELDS["tool_output"] if told.get(name)), None)
    found = failure_of(told, answer, tool)
    if (
        found is None and tool == "Bash" and "turn_id" in told
    ):  # Codex, which does not tell how a command ended
        from smara.adapters.hosts.exit_codes import failure_at_hand

        found = failure_at_hand(told, text_of(answer))
    return found


def note(
    folder: str,
    agent: str,
    session_id: str,
    source: str,
    cwd: str,
    told: Mapping[str, Any],
    is_said: bool = True,
) -> None:
    """Record what is said to a session, for the next drain, too.

    Never raises.
    """
    SessionLog.add(folder, session_id, told["point"], names=sorted(names_of(told)))
    facts = {**told, "agent": told.get("agent") or agent}
    notice = {
        "session_id": session_id,
        "source": source,
        "cwd": cwd,
        "agent": agent,
        "told": facts,
        "is_said": is_said,
    }
    try:
        put(folder, *NOTICE, json.dumps(notice).encode(), named_project(), cwd, is_clean=True)
    except OSError:
        return  # it is said all the same; only its receipt is missing


def remember_start(folder: str, session_id: str, source: Any, made_at: float) -> None:
    """Record a session's start; an empty context forgets what was said."""
    if source in _FORGETTING:
        SessionLog.forget(folder, session_id)
    SessionLog.add(folder, session_id, f"began {made_at}", names=[])


def name_of(item: Mapping[str, Any]) -> str:
    """Return the name that tells one cited thing from another."""
    return str(item.get("key") or f"{item['kind']}:{item['id']}")


def names_of(told: Mapping[str, Any]) -> set[str]:
    """All that is cited."""
    return {name_of(item) for item in told["items"]}


def source_of(told: Mapping[str, Any]) -> str:
    """Return the reason for a session's start."""
    named = str(told.get("source") or "startup")
    return SOURCES.get(named, named)


def session_of(told: Mapping[str, Any]) -> str:
    """Return the session of a payload; of a sub-agent, its parent's."""
    return _text(told, FIELDS["parent_id"]) or _text(told, FIELDS["session_id"])


def hearer_of(told: Mapping[str, Any]) -> str:
    """Return the session that hears an answer: a sub-agent has its own."""
    helper = _text(told, FIELDS["subagent_id"])
    return f"{session_of(told)}/agent-{helper}"[:200] if helper else session_of(told)


def folder_of(told: Mapping[str, Any]) -> str:
    """Return the folder in which a host works."""
    roots = told.get("workspace_roots")
    named = _text(told, FIELDS["cwd"])
    return named or (str(roots[0]) if isinstance(roots, list) and roots else os.getcwd())


def _arguments(told: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = next((told[name] for name in FIELDS["tool_input"] if told.get(name)), None)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return {}
    return found if isinstance(found, dict) else {}


def _text(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := told.get(name), str) and value), "")
