"""Judge memories that lose some of their sources to an erase.

A memory without a source goes. A decision and a lesson from behavior go as well, and are derived
again from the sources that stay: the conversation is read again, the findings are judged again.
Any other statement stays if those sources hold every word of it; otherwise it goes, for what it
says may be what was erased.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from smara.behavior.store import BehaviorStore, data_of
from smara.core.escape import from_storable, to_storable
from smara.decisions.utterances import content_terms
from smara.privacy.derive import Lesson, judge_lesson
from smara.privacy.walk import LeftSources, Piece, Walk

_COLUMNS = (
    "no", "id", "source", "evidence", "session_ids", "content", "citation", "context_prefix",
    "tags", "data",
)  # fmt: skip
_MOST_MESSAGES = 2_000


def settle(walk: Walk) -> None:
    """Decide on every memory that loses a source."""
    while touched := walk.touched - walk.rows["memories"]:
        before = len(walk.rows["memories"])
        walk.renewed = {}
        shown = ", ".join(f"t.{name}" for name in _COLUMNS)
        for row in walk.among("memories", "no", touched, shown):
            _decide(walk, dict(zip(_COLUMNS, row, strict=True)))
        if len(walk.rows["memories"]) == before:
            break
    if walk.sessions:
        _settle_errors(walk)


def _settle_errors(walk: Walk) -> None:
    """Decide on errors that erased sessions have met: others tell of them, or they go."""
    rows = walk.session.all(
        "SELECT error_fingerprint, sessions FROM observer_error_patterns"
        f" WHERE project_no = {int(walk.scope.project_no)}"
    )
    for name, stored in rows:
        sessions = json.loads(from_storable(stored))
        left = [each for each in sessions if each not in walk.sessions]
        if len(left) == len(sessions):
            continue
        pattern = _error_pattern(walk, name, left)
        if pattern is not None:
            walk.patterns[name] = pattern
        else:
            walk.loose.append(("observer_error_patterns", "t.error_fingerprint = ?", [name]))


def _error_pattern(walk: Walk, fingerprint: str, sessions: Sequence[str]) -> dict[str, Any] | None:
    """Return an error as the findings of some sessions show it, by column."""
    shown = "t.no, t.last_event_at, t.session_id"
    places = walk.among("behavior_sessions", "session_id", map(to_storable, sessions), shown)
    times = {no: (at, session_id) for no, at, session_id in places}
    rows = walk.among("behavior_findings", "session_no", times, "t.session_no, t.data")
    every = ((times[no], data_of(data)) for no, data in rows)
    met = [(*place, data) for place, data in every if data.get("fingerprint") == fingerprint]
    met = sorted((each for each in met if "command" in each[2]), key=lambda each: each[:2])
    if not met:
        return None
    solved = [{"files": [], **data} for _, _, data in met if data.get("how")]
    how = {name: solved[-1].get(name) for name in ("how", "fix", "files")} if solved else None
    last = met[-1][2]
    return {
        "command": to_storable(last["command"]),
        "error_message": to_storable(last["line"]),
        "occurrence_count": sum(int(data["times"]) for _, _, data in met),
        "session_count": len({session_id for _, session_id, _ in met}),
        "first_seen_at": met[0][0],
        "last_seen_at": met[-1][0],
        "resolved_how": to_storable(json.dumps(how)) if how else None,
        "resolved_count": len(solved),
        "module": None,  # which session it is of is not known
        "sessions": json.dumps(list(dict.fromkeys(session_id for _, session_id, _ in met))),
    }


def _decide(walk: Walk, memory: Mapping[str, Any]) -> None:
    no, left = int(memory["no"]), _left(walk, memory)
    lessons = _lessons(walk, memory["id"])
    is_derived = memory["source"] == "said" or bool(lessons)
    for lesson in lessons:
        if lesson.content == from_storable(memory["content"]) and lesson.verdict.draft is not None:
            quotes: list[Piece] = [{"quote": each} for each in lesson.verdict.draft.quotes]
            left = left._replace(evidence=quotes, session_ids=[lesson.session_id])
            is_derived = False
    is_same = bool(lessons) and not is_derived
    if is_same or (
        not is_derived and (_is_in(memory, left.texts) or _is_in(memory, _words(walk, left)))
    ):
        walk.renewed[no] = left
        history = walk.among("memory_events", "memory_no", [no])
        walk.add("memory_events", {int(row[0]) for row in history})
        return
    if is_derived:
        places = walk.among("decisions", "memory_no", [no], "t.thread_no")
        walk.reread |= {int(row[0]) for row in places} - walk.rows["threads"]
        walk.partial.add(no)
    walk.add("memories", {no})


def _left(walk: Walk, memory: Mapping[str, Any]) -> LeftSources:
    """Return what a memory still rests on."""
    evidence: list[Piece] = []
    texts: list[str] = []
    for piece in json.loads(memory["evidence"]):
        found = _message(walk, piece) or _observation(walk, piece) or _place(walk, piece)
        if found is not None:
            evidence.append(found[0])
            texts.append(found[1])
    shown = "t.target_no, t.type"
    above = {
        int(target)
        for target, kind in walk.among("memory_relations", "memory_no", [memory["no"]], shown)
        if kind == "derived_from" and target is not None
    } - walk.rows["memories"]
    texts += [row[0] for row in walk.among("memories", "no", above, "t.content")]
    sessions = [each for each in json.loads(memory["session_ids"]) if each not in walk.sessions]
    return LeftSources(evidence, sessions, [from_storable(text) for text in texts])


def _words(walk: Walk, left: LeftSources) -> list[str]:
    """Return the sources of a memory with what was said in sessions that showed it too."""
    threads = walk.numbers("threads", "id", left.session_ids)
    rows = walk.among("messages", "thread_no", threads, "t.no, t.raw_content")
    staying = [text for no, text in rows if no not in walk.rows["messages"]]
    return [*left.texts, *(from_storable(text) for text in staying[-_MOST_MESSAGES:])]


def _message(walk: Walk, piece: Piece) -> tuple[Piece, str] | None:
    names = [piece["message_id"]] if piece.get("message_id") else []
    for no, text in walk.among("messages", "id", names, "t.no, t.raw_content"):
        if no not in walk.rows["messages"]:
            return piece, text
    return None


def _observation(walk: Walk, piece: Piece) -> tuple[Piece, str] | None:
    """Return an observation that stays, or the messages behind one that is made again."""
    names = [piece["observation_id"]] if piece.get("observation_id") else []
    shown = "t.no, t.text, t.details, t.thread_no, t.first_seq, t.last_seq"
    for no, text, details, *place in walk.among("observations", "id", names, shown):
        if no not in walk.rows["observations"]:
            return piece, f"{text} {details}"
        where = "t.thread_no = ? AND t.seq BETWEEN ? AND ?"
        numbers = walk.select("messages", where, *place) if place[0] is not None else set()
        if numbers and numbers.isdisjoint(walk.rows["messages"]):
            rows = walk.among("messages", "no", numbers, "t.id, t.raw_content")
            return {"message_id": rows[0][0]}, "\n".join(row[1] for row in rows)
    return None


def _place(walk: Walk, piece: Piece) -> tuple[Piece, str] | None:
    """Return a place in the code or a commit, with its words."""
    if piece.get("message_id") or piece.get("observation_id"):
        return None
    if not piece.get("path") and not piece.get("commit"):
        return None  # a quotation alone: which session it is from is not known
    shas = [piece["commit"]] if piece.get("commit") else []
    commits = walk.among("commits", "sha", shas, "t.subject, t.body")
    return piece, " ".join([piece.get("path") or "", *(text for row in commits for text in row)])


def _lessons(walk: Walk, memory_id: str) -> list[Lesson]:
    """Return what other sessions show of the signals that a memory was made of."""
    store = BehaviorStore(walk.database, walk.scope)
    gone = walk.rows["behavior_sessions"]
    signals = sorted(walk.numbers("behavior_signals", "memory_id", [memory_id]))
    found = (judge_lesson(store, walk.session, no, gone) for no in signals)
    return [each for each in found if each is not None]


def _is_in(memory: Mapping[str, Any], texts: Iterable[str]) -> bool:
    """Return True if texts hold every telling word of a memory."""
    own = [memory["content"], memory["citation"] or "", memory["context_prefix"] or ""]
    own += [str(each) for each in json.loads(memory["tags"])]
    own += [text for value in json.loads(memory["data"]).values() for text in _strings(value)]
    terms = content_terms(from_storable("\n".join(own)))
    return bool(terms) and terms <= content_terms("\n".join(texts))


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    return [value] if isinstance(value, str) else []
