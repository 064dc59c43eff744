"""Answer a hook from the brief, or from the store.

Most hooks get no answer, so that case is the cheapest. The store is opened
(:mod:`.hook_store`) only if the brief cannot decide. A log per session prevents a second
injection of the same text; receipts are written when the spool is drained.

A brief may be older than the store. A start reply is valid only if no memory and no task
changed since. A tool reply is valid if a read-only probe finds the memories it cites
unchanged.
"""

from __future__ import annotations

import json
import os
from zlib import crc32

from smara.adapters.hook_output import emit, own_words
from smara.adapters.hosts import brief
from smara.adapters.hosts.brief import FAILED, has_rule
from smara.adapters.hosts.session_log import (
    EMPTIED,
    FORGETTING,
    SessionLog,
    leave_mark,
    name_of,
    names_of,
    note,
    remember_start,
    remove_mark,
)
from smara.core.files import read_regular
from smara.core.host_table import (
    BEFORE,
    COMPACTIONS,
    EXIT_CODES,
    FAILURES,
    FIELDS,
    PAYLOAD_MARKS,
    PROMPTS,
    SOURCES,
    STARTS,
    SUBAGENT_STARTS,
)
from smara.core.memory_block import CLOSING, OPENING, cites_thread, tokens_of
from smara.core.tool_names import is_whole, tool_arguments, tool_name
from smara.core.tool_triggers import (
    is_named,
    note_triggers,
    runs,
    shown_files,
    starts,
    triggers_of,
    words_of,
)

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_TWICE_SECONDS = 5.0
"""Two hooks that ask the same within so short a time were set up twice; the second stays silent."""
_MOST_AT_ONCE = 2
_MOST_TOKENS = 600
_LEAST_STEMS, _LEAST_SHARE = 3, 0.6
_MOST_READ = 1 << 20


def answer(agent: str, event: str, raw: bytes, folder: str, is_behind: bool = False) -> bytes:
    """Return the standard output for a hook; empty for silence.

    If the store ``is_behind``, because earlier sessions were not drained yet, it is asked in any
    case: it first takes in how they ended.
    """
    payload = json.loads(raw)
    if not isinstance(payload, dict):
        return b""
    session_id = session_of(payload)
    # A host that answers this event starts no session after a compaction: what was said is said
    # again with a prompt.
    if event in COMPACTIONS:
        remember_start(folder, session_id, "compact", made_at=EMPTIED)
        remove_mark(folder, f"first {session_id}")
        return b""
    if event in PROMPTS and (hearer_of(payload) != session_id or not session_id):
        return b""  # a sub-agent's prompt is no person's words
    is_later = event in PROMPTS and not leave_mark(folder, f"first {session_id}")
    chosen = (
        choose(agent, event, payload, folder=folder, is_later=is_later) if not is_behind else None
    )
    if chosen == []:
        return b""
    # What is the same when two registrations ask about one thing: of one host, or of two that
    # read each other's.
    use_id = _text(payload, "tool_use_id")
    if session_id and event in STARTS:
        source, helper = payload.get("source") or "startup", payload.get("agent_id") or ""
        question = f"start {session_id} {source} {helper}"
    elif session_id and use_id:
        question = f"{event.lower()} {session_id} {use_id}"
    else:
        question = f"{event} {crc32(raw):08x} {len(raw)}"
    if not leave_mark(folder, question, good_seconds=_TWICE_SECONDS):
        return b""
    if chosen is not None:
        return _say(agent, event, payload, folder=folder, chosen=chosen)
    from smara.adapters.hosts.hook_store import speak

    return speak(agent, event, raw, folder=folder, is_later=is_later)


def choose(
    agent: str, event: str, payload: Mapping[str, Any], folder: str, is_later: bool = False
) -> list[dict[str, Any]] | None:
    """Choose what to say, each with its receipt's facts.

    To a message that ``is_later`` than the first, only what was decided about its subject.

    Empty for silence, ``None`` if the store must be asked.
    """
    head = brief.head_of(folder, folder_of(payload))
    session_id = session_of(payload)
    # The store is not opened for a later message of which nothing is known.
    unknown: list[dict[str, Any]] | None = [] if is_later else None
    if head is None or not (session_id.isprintable() and 0 < len(session_id) <= 200):
        return unknown
    if head.get("is_absent"):  # there is no store, or no project
        return [] if head["is_same"] else unknown
    if head["apart"] and not {session_id, "*"}.isdisjoint(head["apart"]):
        return unknown
    if event in STARTS and hearer_of(payload) == session_id:
        if "/" in head["apart"] and os.path.abspath(folder_of(payload)) != head["root"]:
            return None
        return _start(agent, payload, folder, head=head)
    if event in (*STARTS, *SUBAGENT_STARTS):
        return None
    if event not in PROMPTS:
        return _about_tool(agent, event, payload, folder=folder, head=head)
    # What was decided about its subject, where the work stood, and what is new since the start.
    words = brief.words_of(folder, head, agent)
    if words is None:
        return unknown
    prompt = own_words(_text(payload, "prompt"))
    record = SessionLog(folder, session_id)
    if head.get("answers_messages") and _may_be_decided(words["subjects"], prompt, record):
        return None
    decided = _decided(head, prompt, record)
    if is_later:
        return decided
    prompt = prompt.lower()
    fitting = [
        each["told"] for each in words["firsts"] if _is_about(prompt, each["words"], each["stems"])
    ]
    new = [each for each in fitting[:_MOST_AT_ONCE] if not names_of(each) <= record.names]
    if not head["store"]:
        return None if new else []
    if words["start"] and record.began_with not in ("", str(words["made_at"])):
        # What has become known since the session's start was prepared, as the end of the session
        # before it.
        new += [{**each, "point": "first_message"} for each in _unsaid(words["start"], record)]
    return decided + [each for each in new if _stands(head, each)]


def _may_be_decided(subjects: Sequence[Mapping[str, Any]], prompt: str, record: SessionLog) -> bool:
    """Return True if a store that is no file must be asked about a message."""
    from smara.decisions.recall import may_recall

    return any(
        each["keys"][place] not in record.names
        for each in subjects
        for place in may_recall(prompt, each["total"], each["terms"])
    )


def _decided(head: Mapping[str, Any], prompt: str, record: SessionLog) -> list[dict[str, Any]]:
    """Return what was decided about the subject of a message and was not said yet."""
    from smara.database.probe import open_probe
    from smara.decisions.shelf import records_about

    if not head.get("answers_messages") or not head["store"] or not prompt.strip():
        return []
    look = open_probe(head["store"], head["project_no"], head["schema"])
    if look is None:
        return []
    place = head["place"] if brief.are_same(head["branch"]) else ""
    with look:
        found = records_about(look, prompt, actor=head["actor"], place=place)
    items: list[dict[str, Any]] = []
    lines: list[str] = []
    used = tokens_of(OPENING + CLOSING) + 1
    for each in found:
        line = each.pop("line")
        tokens = tokens_of(line)
        is_known = each["key"] in record.names or cites_thread(line, record.heard_in)
        is_new = not is_known and len(items) < _MOST_AT_ONCE
        if is_new and used + tokens < _MOST_TOKENS:
            used += tokens + 1
            lines.append(line)
            rest = {"tokens": tokens, "saved_tokens": 0, "saved_how": ""}
            items.append({**each, **rest, "signs": [f"id:{each['id']}"]})
    if not items:
        return []
    return [
        {
            "text": "\n".join([OPENING, *lines, CLOSING]),
            "tokens": used,
            "point": "first_message",
            "items": items,
            "receipt_id": "",
            "source": "",
            "agent": "",
            "arm": None,
            "is_kept": True,
        }
    ]


def _say(
    agent: str, event: str, payload: Mapping[str, Any], folder: str, chosen: list[dict[str, Any]]
) -> bytes:
    """Return the host's standard output for what was chosen."""
    source = str(payload.get("source") or "startup") if event in STARTS else ""
    head = brief.head_of(folder, folder_of(payload))
    heard = chosen
    if head is not None and head["arms"]:
        from smara.context.moments.experiment import arm_of, may_say

        arm = arm_of(session_of(payload), head["arms"])
        heard = [each for each in chosen if may_say(arm, each["point"])]
    for each in chosen:
        note(
            folder,
            agent,
            hearer_of(payload),
            source=SOURCES.get(source, source),
            cwd=folder_of(payload),
            injection=each,
            is_said=each in heard,
        )
    if event in STARTS and has_rule(brief.root_of(folder_of(payload)), runner_of(agent, payload)):
        return b""  # it stands in the rule file, which the agent reads anyway
    return emit(agent, event, "\n".join(each["text"] for each in heard)) if heard else b""


def _start(
    agent: str, payload: Mapping[str, Any], folder: str, head: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    words = brief.words_of(folder, head, agent)
    if (
        words is None
        or not words["is_same"]
        or not _stands(head)
        or not brief.are_same(words["cited"])
    ):
        return None
    source, session_id = payload.get("source"), session_of(payload)
    record = SessionLog(folder, session_id) if source not in FORGETTING else None
    remember_start(folder, session_id, source, made_at=words["made_at"])
    start = words["start"]
    own = [
        item
        for item in (start or {}).get("items", ())
        if item["kind"] == "left_off" and item["id"] == session_id
    ]
    if own:  # a session that goes on is not told of itself as of the last one
        lines = [
            each for each in start["text"].splitlines() if f"[Thread {session_id}]" not in each
        ]
        start = {
            **start,
            "text": "\n".join(lines),
            "items": [item for item in start["items"] if item not in own],
            "tokens": start["tokens"] - sum(item["tokens"] for item in own),
        }
    # That something waits for a person is no reason to speak.
    if not start or all(item["kind"] == "review" for item in start["items"]):
        # Without words there is no receipt: of an emptied context the store must be told.
        return None if source in FORGETTING else []
    if record is not None and record.began_with and record.names:
        return _unsaid(start, record)  # it goes on, and what it was told stands in its context
    return [start]


def _is_about(prompt: str, names: Sequence[str], stems: Sequence[str]) -> bool:
    """Return True if a prompt has a name as a word of its own, or most stems of a long title."""
    return is_named(prompt, names) or (
        len(stems) >= _LEAST_STEMS
        and sum(stem in prompt for stem in stems) >= _LEAST_SHARE * len(stems)
    )


def _unsaid(start: Mapping[str, Any], record: SessionLog) -> list[dict[str, Any]]:
    """Return what a session was not told yet of a start; empty if it was told all of it."""
    new = [item for item in start["items"] if item["text"] and name_of(item) not in record.names]
    if not new:
        return []
    lines = [
        # The line that says what a label is short for.
        next(
            (each for each in start["text"].splitlines() if item["text"].rstrip("…. ") in each),
            item["text"],
        )
        for item in new
    ]
    head = (
        "Told before the context was compacted:"
        if record.began_with == EMPTIED
        else "Known since this session began:"
    )
    text = "\n".join([OPENING, head, *lines, CLOSING])
    tokens = sum(item["tokens"] for item in new)
    return [{**start, "items": new, "receipt_id": "", "tokens": tokens, "text": text}]


def _about_tool(
    agent: str, event: str, payload: Mapping[str, Any], folder: str, head: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    tool, given, error = call_of(agent, event, payload)
    if tool == "Bash" and error is None and event not in BEFORE:
        # A command that shows files, as the reading of these files; every other one as it is.
        shown = shown_files(str(given.get("command")))
        if shown:
            tool, given = "Read", {"file_path": shown[0], "files": shown}
    keys = set(triggers_of(tool, given))
    is_edit = tool in ("Edit", "Write")
    may_note = error is None and (is_edit or (tool == "Read" and event not in BEFORE))
    noted = set(note_triggers(keys, is_edit) if may_note else ())
    if error is not None:
        keys.add(FAILED)
    if (keys | noted).isdisjoint(head["watched"]):
        return []
    if head["arms"]:
        from smara.context.moments.experiment import arm_of

        if arm_of(session_of(payload), head["arms"]) == "passive":
            return []  # it is told only what stands before the work, without even a receipt
    words = brief.words_of(folder, head, agent)
    if words is None:
        return None
    points = ["before_tool"] if event in BEFORE else ["after_tool"]
    if error is not None:
        points.append("tool_failure")
    record = SessionLog(folder, hearer_of(payload))
    if record.times >= words["most_said"]:
        return []
    new = [
        each
        for each in words["tools"]
        if each["point"] in points
        and not names_of(each["told"]) <= _names_heard(each["told"], record)
        and _fits(each, tool, given, error=error or "", root=head["root"], cwd=folder_of(payload))
    ]
    if new and not (head["store"] and all(brief.are_same(each["cited"]) for each in new)):
        # the code has changed under what is known of it: whether it still holds is for the store to
        # say
        return None
    chosen = [_shortened(each["told"], record) for each in new if _stands(head, each["told"])]
    if not noted.isdisjoint(head["watched"]):
        notes = _notes(given, head, folder_of(payload), is_edit=is_edit)
        if notes is None:
            return None
        from smara.commits.edit import injection_of

        chosen += [
            injection_of(note, points[0], is_edit)
            for note in notes
            if note["key"] not in record.names
        ]
    return chosen[:_MOST_AT_ONCE]


def _names_heard(injection: Mapping[str, Any], record: SessionLog) -> set[str]:
    """Return the names of what a session was told, or has heard from the person itself."""
    lines = injection["text"].splitlines()[1:-1]
    return record.names | {
        name_of(item)
        for item, line in zip(injection["items"], lines, strict=False)
        if cites_thread(line, record.heard_in)
    }


def _shortened(injection: Mapping[str, Any], record: SessionLog) -> dict[str, Any]:
    """Return an injection without the lines that a session knows; whole if it knows none."""
    lines, names = injection["text"].splitlines(), _names_heard(injection, record)
    pairs = list(zip(injection["items"], lines[1:-1], strict=False))
    new = [pair for pair in pairs if name_of(pair[0]) not in names]
    if len(lines) != len(injection["items"]) + 2 or len(new) == len(pairs):
        return {**injection}
    return {
        **injection,
        "items": [item for item, _ in new],
        "tokens": sum(item["tokens"] for item, _ in new),
        "text": "\n".join([lines[0], *(line for _, line in new), lines[-1]]),
    }


def _notes(
    given: Mapping[str, Any], head: Mapping[str, Any], cwd: str, is_edit: bool
) -> list[Mapping[str, Any]] | None:
    """Return what commits say about the lines of a call; ``None`` if the store must be asked."""
    from smara.commits.edit import NOTES_AT, matching
    from smara.database.probe import open_probe

    look = None
    if head["store"] and brief.are_same(head["branch"]):
        look = open_probe(head["store"], head["project_no"], head["schema"])
    if look is None:
        return None
    found: list[Mapping[str, Any]] = []
    with look:
        for path in given.get("files") or [given.get("file_path")]:
            whole = os.path.realpath(os.path.join(cwd, str(path)))
            name = os.path.relpath(whole, os.path.realpath(head["root"])).replace("\\", "/")
            facts = look.text(NOTES_AT, place=head["place"], path=name)
            try:
                text = read_regular(whole, _MOST_READ).decode("utf-8", "replace") if facts else ""
            except OSError:
                continue
            found += matching(json.loads(facts or "[]"), text, given if is_edit else None)
    return found


def _fits(
    entry: Mapping[str, Any], tool: str, given: Mapping[str, Any], error: str, root: str, cwd: str
) -> bool:
    """Return True if a call meets every condition of prepared words."""
    files = given.get("files") or [given.get("file_path")]
    line = given["command"] if isinstance(given.get("command"), str) else ""
    pattern = given["pattern"] if isinstance(given.get("pattern"), str) else ""
    text = f"{line}\n{error}".lower()
    return (
        (not entry["tools"] or tool in entry["tools"])
        and (
            not entry["file"]
            or any(
                isinstance(each, str) and is_file(each, entry["file"], root, cwd=cwd)
                for each in files
            )
        )
        and (not entry["command"] or runs(line, entry["command"]))
        and (not entry.get("needs") or starts(line, entry["needs"]))
        and (not entry["pattern"] or entry["pattern"] in words_of(pattern))
        and all(word in text for word in entry["words"])
        and (not entry.get("whole") or is_whole(given))
    )


def is_file(path: str, target: str, root: str, cwd: str) -> bool:
    """Return True if a host's path is this file of the repository."""
    given = path.replace("\\", "/")
    whole = (
        given
        if given.startswith("/") or given[1:3] == ":/"
        else os.path.join(cwd, given).replace("\\", "/")
    )
    whole, root = os.path.normpath(whole).replace("\\", "/"), root.replace("\\", "/").rstrip("/")
    target = target.replace("\\", "/")
    if whole.startswith(root + "/"):
        return whole[len(root) + 1 :] == target
    return whole.endswith("/" + target)  # the same folder under another name, as links make it


def _stands(head: Mapping[str, Any], injection: Mapping[str, Any] | None = None) -> bool:
    """Return True if what an injection cites is as it was; without one, if all is."""
    if head["is_same"]:
        return True
    if not head["store"]:
        return False
    from smara.context.moments import experiment
    from smara.database.probe import (
        MEMORIES,
        TASKS,
        are_memories_unchanged,
        has_changed,
        open_probe,
    )

    look = open_probe(head["store"], head["project_no"], head["schema"])
    if look is None:
        return False
    with look:
        if experiment.has_changed(look, head["arms_mark"]):
            return False
        cited = None if injection is None else injection["items"]
        has_task = cited is None or any(item["kind"] == "task" for item in cited)
        if has_task and has_changed(look, TASKS, [head["task_mark"]]):
            return False
        if cited is None:
            return not has_changed(look, MEMORIES, head["marks"])
        return are_memories_unchanged(
            look, [item["id"] for item in cited if item["kind"] == "memory"], head["marks"]
        )


def call_of(
    agent: str, event: str, payload: Mapping[str, Any]
) -> tuple[str, dict[str, Any], str | None]:
    """Return the tool, arguments and error of a call, by our names."""
    tool = tool_name(_text(payload, "tool"))
    given: Any = next((payload[name] for name in FIELDS["tool_input"] if payload.get(name)), None)
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    arguments = tool_arguments(tool, given if isinstance(given, dict) else {})
    if event in BEFORE:
        return tool, arguments, None
    if event in FAILURES:
        return tool, arguments, _text(payload, "error")
    from smara.actions.tool_output import failure_of, text_of

    output = next((payload[name] for name in FIELDS["tool_output"] if payload.get(name)), None)
    error = failure_of(payload, output, tool)
    if error is None and tool == "Bash" and (runner := runner_of(agent, payload)) in EXIT_CODES:
        from smara.adapters.hosts.exit_codes import failure_at_hand

        error = failure_at_hand(runner, payload, text_of(output))
    return tool, arguments, error


def runner_of(agent: str, payload: Mapping[str, Any]) -> str:
    """Return the host that runs a hook, also one of another host."""
    return next((name for mark, name in PAYLOAD_MARKS.items() if mark in payload), agent)


def session_of(payload: Mapping[str, Any]) -> str:
    """Return the session of a payload; of a sub-agent, its parent's."""
    return _text(payload, "parent_id") or _text(payload, "session_id")


def hearer_of(payload: Mapping[str, Any]) -> str:
    """Return the session that hears an answer: a sub-agent has its own."""
    helper = _text(payload, "subagent_id")
    return f"{session_of(payload)}/agent-{helper}"[:200] if helper else session_of(payload)


def folder_of(payload: Mapping[str, Any]) -> str:
    """Return the folder in which a host works."""
    roots = payload.get("workspace_roots")
    return _text(payload, "cwd") or (
        str(roots[0]) if isinstance(roots, list) and roots else os.getcwd()
    )


def _text(payload: Mapping[str, Any], field: str) -> str:
    values = (payload.get(name) for name in FIELDS[field])
    return next((value for value in values if isinstance(value, str) and value), "")
