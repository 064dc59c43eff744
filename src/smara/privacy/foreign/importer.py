"""Store what was read from another tool: messages, and memories to review.

Everything is read once before anything is stored, so that a malformed record leaves the store as
it was. A fact is known again by its name there, which is its evidence; what changed there since
takes the place of the older words, unless a person has confirmed or edited them here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from smara.core.extract import shorten
from smara.core.scope import is_id
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError, UsageError
from smara.knowledge.memories import Memories
from smara.knowledge.models import AddResult, Evidence, NewMemory, TypedMemory
from smara.knowledge.prepare import MAX_CONTENT_LENGTH, MAX_QUOTE_LENGTH
from smara.messages.messages import Messages
from smara.messages.models import NewMessage, NewThread
from smara.messages.threads import Threads
from smara.privacy.foreign.records import (
    ForeignFact,
    ForeignFormat,
    ForeignMessage,
    Malformed,
    Unread,
    digest_of,
)
from smara.privacy.models import ForeignReport
from smara.secrets import redact
from smara.tasks.tasks import Tasks

_MESSAGES_AT_ONCE = 200
_FACTS_AT_ONCE = 25
"""Each fact is compared with what is here, and others wait to write meanwhile."""
_MOST_TAGS, _LONGEST_TAG, _MOST_FILES = 20, 60, 50
_PLAIN_ID = regex(r"[\w.@-]{1,200}")
_HERE_ALREADY = "said in a session that is here with its own transcript"


class ImportRooms(NamedTuple):
    """The rooms that an import writes to."""

    memories: Memories
    messages: Messages
    threads: Threads
    tasks: Tasks


class ForeignImport:
    """One import from the store of another tool."""

    def __init__(
        self,
        rooms: ImportRooms,
        format: ForeignFormat,
        path: str,
        *,
        now_ms: int,
        is_dry_run: bool = False,
    ) -> None:
        self._rooms = rooms
        self._format = format
        self._path = path
        self._now_ms = now_ms
        self._report = ForeignReport(path, format.name, format.title, is_dry_run)
        self._message_ids: dict[str, str] = {}
        self._sessions: dict[str, bool] = {}
        self._threads: set[str] = set()

    def run(
        self, only: str | None, project_names: Sequence[str], progress: Callable[[int, int], object]
    ) -> ForeignReport:
        """Read everything, then store it.

        Args:
            only: The project, person or bank of the other tool to import.
            project_names: The names of this project, of which a store with many projects may
                have one.
            progress: Called with the records that are done, and all of them.

        Raises:
            InvalidInputError: If a record cannot be read, or the part must be named.
        """
        try:
            parts = Counter(each.part for each in self._format.read(self._path))
            chosen = self._choose(parts, only, project_names)
            messages: list[ForeignMessage] = []
            facts: list[ForeignFact] = []
            for record in self._wanted(chosen):
                if isinstance(record, ForeignMessage):
                    messages.append(record)
                else:
                    facts.append(record)
                if len(messages) == _MESSAGES_AT_ONCE or len(facts) == _FACTS_AT_ONCE:
                    self._flush(messages, facts)
                    progress(self._report.records, parts.total())
            self._flush(messages, facts)
        except Malformed as error:
            raise InvalidInputError(
                f"{self._path} cannot be read as {self._format.title}: {error}. Nothing was"
                " imported."
            ) from error
        self._report.threads = len(self._threads)
        return self._report

    def _choose(
        self, parts: Counter[str], only: str | None, project_names: Sequence[str]
    ) -> str | None:
        """Return the part to import; ``None`` for all of them."""
        names = ", ".join(f"{name} ({count:,})" for name, count in parts.most_common(20) if name)
        if only is not None and only not in parts:
            raise InvalidInputError(
                f"{self._path} has nothing of {only}. It has: {names or 'nothing'}."
            )
        if only is not None or not self._format.parts_are_projects or not names:
            return only
        fitting = [name for name in project_names if name in parts]
        if fitting:
            return fitting[0]
        raise InvalidInputError(
            f"{self._path} holds these projects, and none is called"
            f" {' or '.join(project_names)}: {names}. Choose one with --only NAME."
        )

    def _wanted(self, chosen: str | None) -> Iterable[ForeignFact | ForeignMessage]:
        for record in self._format.read(self._path):
            self._report.records += 1
            if chosen is not None and record.part != chosen:
                self._skip("of another project, person or bank")
            elif isinstance(record, Unread):
                self._skip(record.reason)
            elif isinstance(record, ForeignFact) and len(record.text) > MAX_CONTENT_LENGTH:
                # Too long for a statement; as a message it is whole, and found by search.
                yield ForeignMessage(
                    record.id, "long texts", record.text, at_ms=record.at_ms, kind="fact"
                )
            else:
                yield record

    def _skip(self, reason: str) -> None:
        self._report.skipped[reason] = self._report.skipped.get(reason, 0) + 1

    def _flush(self, messages: list[ForeignMessage], facts: list[ForeignFact]) -> None:
        """Store a batch: the messages first, on which the facts rest."""
        self._add_messages(messages)
        self._add_facts(facts)
        messages.clear()
        facts.clear()

    # messages

    def _add_messages(self, batch: Sequence[ForeignMessage]) -> None:
        for thread, group in groupby(batch, lambda each: each.thread):
            messages = [each for each in group if not self._is_in_transcript(each)]
            if messages:
                self._append(f"{self._format.name}/{thread}"[:400], messages)

    def _is_in_transcript(self, message: ForeignMessage) -> bool:
        """Return True, and count it, if a session's transcript has these words."""
        session = message.session_id
        if session is None or message.kind:
            return False
        if session not in self._sessions:
            self._sessions[session] = self._rooms.threads.find(session) is not None
        if self._sessions[session]:
            self._skip(_HERE_ALREADY)
        return self._sessions[session]

    def _append(self, name: str, messages: Sequence[ForeignMessage]) -> None:
        name = name if name.isprintable() else f"{self._format.name}/{digest_of(name)}"
        first = messages[0]
        self._threads.add(name)
        ids = [self._key(each.id) for each in messages]
        if self._report.is_dry_run:
            there = self._rooms.messages.known_client_ids(name, ids)
            self._report.messages_present += len(there)
            self._report.messages += len(ids) - len(there)
            return
        thread = NewThread(
            name,
            first.person if first.person and is_id(first.person) else None,
            title=first.title and shorten(" ".join(first.title.split()), 100),
            metadata={"importedFrom": self._format.name},
            created_at=first.at_ms,
        )
        new = [
            NewMessage(
                each.role,
                each.text,
                key,
                created_at=each.at_ms,
                metadata={
                    "taint": ["imported"],
                    "importedFrom": self._format.name,
                    **({"kind": each.kind} if each.kind else {}),
                },
            )
            for key, each in zip(ids, messages, strict=True)
        ]
        try:
            self._put(thread, messages, new)
        except UsageError:
            # One of them cannot be stored: the others go in one by one.
            for message, each in zip(messages, new, strict=True):
                try:
                    self._put(thread, [message], [each])
                except UsageError as error:
                    self._skip(str(error))

    def _put(
        self, thread: NewThread, messages: Sequence[ForeignMessage], new: Sequence[NewMessage]
    ) -> None:
        done = self._rooms.messages.append_batch(thread, new, may_differ=True, compact=False)
        self._report.messages += done.stored
        self._report.messages_present += len(new) - done.stored
        for each, stored in zip(messages, done.messages, strict=False):
            self._message_ids[each.id] = stored.id

    # facts

    def _add_facts(self, batch: Sequence[ForeignFact]) -> None:
        fresh: list[tuple[ForeignFact, TypedMemory | None]] = []
        for fact in batch:
            older = self._find(fact)
            if older is None:
                fresh.append((fact, None))
            elif _words_of(older, self._origin(fact)) != _quote(fact.text):
                if _is_changed_here(self._rooms.memories, older):
                    self._skip("changed there, and confirmed or edited here: yours is kept")
                else:
                    fresh.append((fact, older if len(older.evidence) == 1 else None))
            elif self._is_over(fact) and older.is_active and not older.is_verified:
                self._end(fact, older)
            else:
                self._report.present += 1
        # What has ended there must not stand beside what took its place.
        over = [each for each in fresh if self._is_over(each[0])]
        for part in (over, [each for each in fresh if not self._is_over(each[0])]):
            if self._report.is_dry_run:
                self._count_dry(part)
            elif part:
                self._store(part)

    def _count_dry(self, part: Sequence[tuple[ForeignFact, TypedMemory | None]]) -> None:
        for fact, older in part:
            name = "updated" if older else "ended" if self._is_over(fact) else "added"
            setattr(self._report, name, getattr(self._report, name) + 1)

    def _store(self, part: Sequence[tuple[ForeignFact, TypedMemory | None]]) -> None:
        add = self._rooms.memories.add_many
        news = [self._new(fact, older) for fact, older in part]
        results: list[AddResult | None] = []
        try:
            results += add(news, by="system")
        except UsageError:
            # As with messages.
            for new in news:
                try:
                    results += add([new], by="system")
                except UsageError as error:
                    results.append(None)
                    self._skip(str(error))
        for (fact, older), result in zip(part, results, strict=True):
            if result is None:
                continue
            if result.outcome == "refused":
                self._skip(re.sub(r" \([^()]*\)", "", result.why[0]))
            elif result.outcome == "duplicate":
                self._report.merged += 1
            elif result.memory is not None and self._is_over(fact):
                self._end(fact, result.memory)
            elif older is not None:
                self._report.updated += 1
            else:
                self._report.added += 1

    def _end(self, fact: ForeignFact, memory: TypedMemory) -> None:
        """Put a memory out of force, unless other facts say the same."""
        if len({each.path for each in memory.evidence if each.path}) > 1:
            self._report.present += 1
            return
        self._report.ended += 1
        if not self._report.is_dry_run:
            why = f"It is no longer so in {self._format.title}."
            self._rooms.memories.retire(memory.id, why, at=fact.ended_ms, by="system")

    def _new(self, fact: ForeignFact, older: TypedMemory | None) -> NewMemory:
        tags = (_printable(each)[:_LONGEST_TAG] for each in (self._format.name, *fact.tags))
        messages = [
            Evidence(message_id=self._message_ids[each])
            for each in fact.messages[:_MOST_TAGS]
            if each in self._message_ids
        ]
        return NewMemory(
            fact.text,
            fact.type or self._rooms.memories.guess_type(fact.text),
            "imported",
            tags=tuple(dict.fromkeys(filter(None, tags)))[:_MOST_TAGS],
            files=[each for each in fact.files if each.isprintable()][:_MOST_FILES],
            visibility="personal" if fact.is_personal else "project",
            session_id=fact.session_id if fact.session_id and is_id(fact.session_id) else None,
            seen_at=fact.at_ms,
            evidence=[Evidence(path=self._origin(fact), quote=fact.text), *messages],
            supersedes=(older.id,) if older is not None and older.is_active else (),
        )

    def _find(self, fact: ForeignFact) -> TypedMemory | None:
        """Return the memory of a fact, the newest if there were several."""
        page = self._rooms.memories.list(evidence_path=self._origin(fact), state="all", limit=1)
        return next(iter(page), None)

    def _is_over(self, fact: ForeignFact) -> bool:
        return fact.ended_ms is not None and fact.ended_ms <= self._now_ms

    def _origin(self, fact: ForeignFact) -> str:
        return f"{self._format.name}:{self._key(fact.id)}"

    def _key(self, name: str) -> str:
        is_plain = _PLAIN_ID.fullmatch(name) and redact(name).text == name
        return name if is_plain else f"id-{digest_of(name)}"


def _printable(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _quote(text: str) -> str:
    """Return a fact's words as its evidence keeps them."""
    return shorten(redact(text.strip()).text, MAX_QUOTE_LENGTH)


def _words_of(memory: TypedMemory, origin: str) -> str:
    return next((each.quote or "" for each in memory.evidence if each.path == origin), "")


def _is_changed_here(memories: Memories, memory: TypedMemory) -> bool:
    return (
        memory.is_verified
        or memory.is_pinned
        or any(
            each.by == "person" and each.kind in ("updated", "forgotten", "rejected")
            for each in memories.history(memory.id)
        )
    )
