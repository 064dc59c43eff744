"""Read the database or the JSON export of claude-mem.

Prompts and summaries are messages of their session. Observations that state what was decided,
found out or broken are facts; those that only tell what was changed are messages. Databases of
all versions are read: older ones name the sessions otherwise and have fewer columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from smara.knowledge.models import MemoryType
from smara.privacy.foreign.records import (
    Candidate,
    ForeignFact,
    ForeignFormat,
    ForeignMessage,
    ForeignRecord,
    Malformed,
    Unread,
    database,
    objects_of,
    read_document,
    tables_of,
    text_of,
    texts_of,
    time_of,
)

_TABLES = {
    "sessions": "sdk_sessions",
    "prompts": "user_prompts",
    "observations": "observations",
    "summaries": "session_summaries",
}
_CHANGES = frozenset({"feature", "refactor", "change"})
_TYPES: Mapping[str, MemoryType] = {"decision": "decision", "security_alert": "gotcha"}
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_TIMES = ("created_at_epoch", "created_at")
Records = Iterator[tuple[str, Mapping[str, Any]]]


def _recognizes(candidate: Candidate) -> bool:
    is_database = {"sdk_sessions", "observations"} <= candidate.tables.keys()
    return is_database or {"exportedAtEpoch", "totalObservations"} <= candidate.keys


def _read(path: str) -> Iterator[ForeignRecord]:
    with _open(path) as sections:
        titles: dict[str, tuple[str, str]] = {}
        prompted: set[str] = set()
        openings: list[ForeignMessage] = []
        for place, record in sections("sessions"):
            session = _content_session(record, place)
            title = text_of(record, place, "custom_title", "user_prompt", needed=False)
            part = text_of(record, place, "project", needed=False)
            memory_session = text_of(
                record, place, "memory_session_id", "sdk_session_id", needed=False
            )
            titles[memory_session or session] = (session, title)
            opening = text_of(record, place, "user_prompt", needed=False)
            if opening:
                at = time_of(record, place, "started_at_epoch", "started_at")
                openings.append(_message(session, "opening", opening, at=at, part=part))
        by_session = dict(titles.values())
        parts = {each.thread: each.part for each in openings}
        for place, record in sections("prompts"):
            session = _content_session(record, place)
            prompted.add(session)
            yield _message(
                session,
                f"prompt-{record.get('prompt_number') or record.get('id')}",
                text_of(record, place, "prompt_text"),
                at=time_of(record, place, *_TIMES),
                part=text_of(record, place, "project", needed=False) or parts.get(session, ""),
                title=by_session.get(session),
            )
        # Versions before prompts had a table kept the first one with its session.
        yield from (each for each in openings if each.thread not in prompted)
        for place, record in sections("observations"):
            yield _observation(record, place, titles)
        for place, record in sections("summaries"):
            yield from _summary(record, place, titles)


def _observation(
    record: Mapping[str, Any], place: str, titles: Mapping[str, tuple[str, str]]
) -> ForeignRecord:
    session, title = _session(record, place, titles)
    kind = text_of(record, place, "type", needed=False) or "observation"
    head = text_of(record, place, "title", needed=False)
    body = text_of(record, place, "narrative", "text", "subtitle", needed=False)
    facts = [each for each in texts_of(record, place, "facts") if each not in body]
    part = text_of(record, place, "merged_into_project", "project", needed=False)
    text = "\n".join(
        (": ".join(each for each in (head, body) if each), *(f"- {each}" for each in facts))
    ).strip()
    if not text:
        return Unread("an observation without words", part)
    at, name = time_of(record, place, *_TIMES), f"observation-{_id(record, place)}"
    if kind in _CHANGES:
        return _message(
            session, name, text, at=at, part=part, title=title, kind=kind, role="system"
        )
    concepts = texts_of(record, place, "concepts")
    files = (*texts_of(record, place, "files_modified"), *texts_of(record, place, "files_read"))
    return ForeignFact(
        f"{session}-{name}",
        text,
        at,
        type="gotcha" if "gotcha" in concepts else _TYPES.get(kind),
        tags=(kind, *concepts),
        files=tuple(dict.fromkeys(each for each in files if not each.startswith(("/", "~")))),
        part=part,
        session_id=session,
    )


def _summary(
    record: Mapping[str, Any], place: str, titles: Mapping[str, tuple[str, str]]
) -> Iterator[ForeignRecord]:
    session, title = _session(record, place, titles)
    part = text_of(record, place, "merged_into_project", "project", needed=False)
    words = {name: text_of(record, place, name, needed=False) for name in _SECTIONS}
    lines = [
        f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in words.items() if text
    ]
    at, name = time_of(record, place, *_TIMES), f"summary-{_id(record, place)}"
    if not lines:
        yield Unread("a summary without words", part)
        return
    yield _message(
        session,
        name,
        "\n".join(lines),
        at=at,
        part=part,
        title=title,
        kind="summary",
        role="system",
    )
    if words["learned"]:
        yield ForeignFact(
            f"{session}-{name}",
            words["learned"],
            at,
            tags=("summary",),
            part=part,
            session_id=session,
            messages=(name,),
        )


def _message(session: str, name: str, text: str, **facts: Any) -> ForeignMessage:
    message = {"role": "user", **facts, "at_ms": facts.pop("at")}
    message.pop("at", None)
    return ForeignMessage(name, session, text, session_id=session, **message)


def _id(record: Mapping[str, Any], place: str) -> str:
    value = record.get("id")
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(place, "it has no id")
    return str(value)


def _content_session(record: Mapping[str, Any], place: str) -> str:
    return text_of(record, place, "content_session_id", "claude_session_id")


def _session(
    record: Mapping[str, Any], place: str, titles: Mapping[str, tuple[str, str]]
) -> tuple[str, str]:
    """Return the session that a record belongs to, by the agent's own id, and its title."""
    name = text_of(record, place, "memory_session_id", "sdk_session_id")
    return titles.get(name, (name, ""))


@contextmanager
def _open(path: str) -> Iterator[Any]:
    """Give a function that reads one section."""
    if not Candidate(path).tables:
        document = read_document(path)
        if not isinstance(document, dict):
            raise Malformed(path, "it should be an object")
        yield lambda section: objects_of(document.get(section), section)
        return
    with database(path) as connection:
        tables = tables_of(connection)

        def rows(section: str) -> Records:
            name = _TABLES[section]
            if name not in tables:
                return
            cursor = connection.execute(f"SELECT * FROM {name} ORDER BY id")
            columns: list[str] = []
            for number, row in enumerate(cursor, 1):
                columns = columns or [each[0] for each in cursor.get_description()]
                yield f"{name} row {number}", dict(zip(columns, row, strict=True))

        yield rows


CLAUDE_MEM = ForeignFormat("claude-mem", "claude-mem", _recognizes, _read, parts_are_projects=True)
