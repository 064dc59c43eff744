"""The specification in Python: a memory made of dicts and lists, obvious and slow.

The contract tests run on it as on the databases, so a test that it fails is a test that asks
for the wrong thing; and the state machine compares the databases with it, operation by operation.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, get_args

from smara.core.ids import IdMaker
from smara.core.scope import require_id
from smara.core.text import analyze, words
from smara.core.tokens import TokenCounter, counter_for
from smara.database.leases import Lease
from smara.errors import ConflictError, InvalidInputError, LeaseLostError, NotFoundError
from smara.messages.compaction import CompactionResult, OfflineSummarizer, folds_due, runs_due
from smara.messages.messages import HistoryEntry
from smara.messages.models import (
    ROLES,
    Compaction,
    Message,
    MessageSize,
    NewMessage,
    NewThread,
    Part,
    Thread,
    ThreadKind,
)
from smara.search.models import SOURCES, Answer, Hit, Neighbor, ThreadHit, Trace
from smara.secrets import redact
from smara.testing import FakeClock
from tests.contract.model_cleaning import (
    checked_time,
    clean_metadata,
    clean_part,
    clean_title,
    new_message,
    parts_of,
    rendered,
)


@dataclass
class Project:
    """All that one project holds."""

    threads: dict[str, Thread] = field(default_factory=dict)
    messages: dict[str, list[Message]] = field(default_factory=dict)
    compactions: dict[str, list[Compaction]] = field(default_factory=dict)
    folded_into: dict[str, str] = field(default_factory=dict)


@dataclass
class Store:
    """What is on the disk: the projects, and the leases of all of them."""

    projects: dict[str, Project] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def write(self) -> Iterator[None]:
        before = copy.deepcopy(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            raise


class ModelMemory:
    """The face of ``smara.Memory``."""

    def __init__(
        self,
        store: Store,
        clock: FakeClock,
        new_id: IdMaker,
        project: str = "default",
        **settings: Any,
    ) -> None:
        self.project = require_id(project, "project")
        self._rooms = SimpleNamespace(database=store, leases=Leases(store, clock, new_id))
        self.internals = self._rooms
        kept = store.projects.setdefault(project, Project())
        counter = counter_for(settings.get("token_model"))
        self.threads = Threads(kept, clock, new_id, resource=settings.get("resource", "default"))
        self.compactions = Compactions(kept, clock, new_id, settings=settings)
        self.messages = Messages(
            kept,
            clock,
            new_id,
            threads=self.threads,
            compactions=self.compactions,
            counter=counter,
            settings=settings,
        )
        self.history = History(self.messages, counter)
        self._search = Search(kept, clock)
        self.search = self._search.search
        self.search_threads = self._search.search_threads
        self.complete = self._search.complete

    def close(self) -> None:
        """Nothing to close."""


class Threads:
    def __init__(self, kept: Project, clock: FakeClock, new_id: IdMaker, resource: str) -> None:
        self._kept, self._clock, self._new_id, self._resource = kept, clock, new_id, resource

    def add(self, thread_id: str | None = None, **given: Any) -> Thread:
        new = NewThread(thread_id or self._new_id(), **given)
        if new.id in self._kept.threads:
            raise ConflictError(f"Thread {new.id!r} exists already. Use update, or another id.")
        return self._make(new)

    def _make(self, new: NewThread) -> Thread:
        if new.kind not in get_args(ThreadKind):
            raise InvalidInputError(
                f"kind must be one of {get_args(ThreadKind)}; got {new.kind!r}."
            )
        at = new.created_at if checked_time(new.created_at) is not None else self._clock.now_ms()
        thread = Thread(
            require_id(new.id, "thread_id"),
            require_id(new.resource_id or self._resource, "resource_id"),
            new.kind,
            parent_id=new.parent_id and require_id(new.parent_id, "parent_id"),
            title=clean_title(new.title),
            metadata=clean_metadata(new.metadata),
            created_at=at,
            updated_at=at,
            message_count=0,
            token_count=0,
        )
        self._kept.threads[new.id] = thread
        self._kept.messages[new.id] = []
        self._kept.compactions[new.id] = []
        return thread

    def put(self, new: NewThread) -> Thread:
        found = self._kept.threads.get(new.id)
        if found is None:
            return self._make(new)
        merged = {**found.metadata, **clean_metadata(new.metadata)}
        return self._set(
            replace(found, title=found.title or clean_title(new.title), metadata=merged)
        )

    def find(self, thread_id: str) -> Thread | None:
        return self._kept.threads.get(require_id(thread_id, "thread_id"))

    def get(self, thread_id: str) -> Thread:
        found = self.find(thread_id)
        if found is None:
            raise NotFoundError(f"There is no thread {thread_id!r} in this project.")
        return found

    def list(
        self,
        *,
        resource_id: str | None = None,
        kind: str | None = None,
        parent_id: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Thread]:
        found = [
            thread
            for thread in reversed(self._kept.threads.values())
            if resource_id in (None, thread.resource_id)
            and kind in (None, thread.kind)
            and parent_id in (None, thread.parent_id)
        ]
        found.sort(key=lambda thread: thread.updated_at, reverse=True)
        return found[offset:][:limit]

    def update(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        found = self.get(thread_id)
        merged = {**found.metadata, **clean_metadata(metadata or {})}
        return self._set(
            replace(
                found,
                title=clean_title(title) if title is not None else found.title,
                updated_at=self._clock.now_ms(),
                metadata={key: value for key, value in merged.items() if value is not None},
            )
        )

    def _set(self, thread: Thread) -> Thread:
        self._kept.threads[thread.id] = thread
        return thread


class Messages:
    def __init__(
        self,
        kept: Project,
        clock: FakeClock,
        new_id: IdMaker,
        threads: Threads,
        compactions: Compactions,
        counter: TokenCounter,
        settings: Mapping[str, Any],
    ) -> None:
        self._kept, self._clock, self._new_id, self._counter = kept, clock, new_id, counter
        self._threads, self._compactions = threads, compactions
        self._max_bytes = settings.get("max_message_bytes", 64 * 1024 * 1024)
        self._compact_every = settings.get("compact_every_messages", 10)

    def add(self, *, thread_id: str, resource_id: str | None = None, **given: Any) -> Message:
        given["metadata"] = given.get("metadata") or {}
        return self._append(NewThread(thread_id, resource_id), [self._clean(NewMessage(**given))])[
            0
        ]

    def add_many(
        self,
        *,
        thread_id: str,
        messages: Iterable[NewMessage | Mapping[str, Any]],
        resource_id: str | None = None,
    ) -> list[Message]:
        clean = []
        for position, value in enumerate(messages):
            try:
                clean.append(self._clean(new_message(value)))
            except InvalidInputError as error:
                raise InvalidInputError(f"Message {position}: {error}", position=position) from None
        return self._append(NewThread(thread_id, resource_id), clean) if clean else []

    def _clean(self, new: NewMessage) -> NewMessage:
        if new.role not in ROLES:
            raise InvalidInputError(f"role must be one of {', '.join(ROLES)}; got {new.role!r}.")
        parts = tuple(clean_part(part) for part in parts_of(new.content))
        if len(rendered(parts).encode("utf-8", "replace")) > self._max_bytes:
            raise InvalidInputError(
                f"At most {self._max_bytes:,} bytes are stored. Split it, or raise "
                "max_message_bytes."
            )
        for what in ("client_id", "task_id"):
            if getattr(new, what) is not None:
                require_id(getattr(new, what), what)
        checked_time(new.created_at)
        return replace(new, content=parts, metadata=clean_metadata(new.metadata))

    def _append(self, thread: NewThread, clean: Sequence[NewMessage]) -> list[Message]:
        self._refuse_conflicts(self._kept.messages.get(thread.id, []), clean)
        said_at = [
            self._clock.now_ms() if new.created_at is None else new.created_at for new in clean
        ]
        if thread.created_at is None and said_at:
            thread = replace(thread, created_at=min(said_at))
        found = self._kept.threads.get(thread.id) or self._threads._make(thread)
        if thread.resource_id not in (None, found.resource_id):
            raise ConflictError(f"Thread {thread.id!r} belongs to resource {found.resource_id!r}.")
        log = self._kept.messages[thread.id]
        seq_before = len(log)
        answer = [self._known(log, new) or self._store(log, found, new) for new in clean]
        self._threads._set(
            replace(
                found,
                updated_at=max([found.updated_at, *said_at]),
                message_count=len(log),
                token_count=sum(m.token_count for m in log),
            )
        )
        if (
            self._compact_every
            and len(log) // self._compact_every > seq_before // self._compact_every
        ):
            self._compactions.compact_when_due(thread.id)
        return answer

    def _refuse_conflicts(self, log: list[Message], clean: Sequence[NewMessage]) -> None:
        texts = {message.client_id: message.raw_content for message in log}
        for new in clean:
            text = rendered(new.content)
            if new.client_id is not None and texts.setdefault(new.client_id, text) != text:
                raise ConflictError(
                    f"A message with client_id {new.client_id!r} is stored already, with another "
                    "text."
                )

    def _known(self, log: list[Message], new: NewMessage) -> Message | None:
        return next(
            (m for m in log if new.client_id is not None and m.client_id == new.client_id), None
        )

    def _store(self, log: list[Message], thread: Thread, new: NewMessage) -> Message:
        raw = rendered(new.content)
        counted = self._counter.count(raw)
        message = Message(
            self._new_id(),
            thread.id,
            thread.resource_id,
            seq=len(log) + 1,
            role=new.role,
            raw_content=raw,
            parts=tuple(new.content),
            token_count=counted.tokens,
            token_method=counted.method,
            created_at=self._clock.now_ms() if new.created_at is None else new.created_at,
            client_id=new.client_id,
            task_id=new.task_id,
            sealed_at=None,
            metadata=new.metadata,
        )
        log.append(message)
        return message

    def find(self, message_id: str) -> Message | None:
        return next(
            (m for log in self._kept.messages.values() for m in log if m.id == message_id), None
        )

    def get(self, message_id: str) -> Message:
        found = self.find(message_id)
        if found is None:
            raise NotFoundError(f"There is no message {message_id!r} in this project.")
        return found

    def list(
        self,
        *,
        thread_id: str,
        limit: int | None = None,
        after: int | None = None,
        before: int | None = None,
    ) -> list[Message]:
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit must not be negative; got {limit}.")
        log = self._kept.messages.get(require_id(thread_id, "thread_id"), [])
        found = [m for m in log if m.seq > (after or 0) and (before is None or m.seq < before)]
        if limit is None:
            return found
        return found[:limit] if after is not None else found[max(0, len(found) - limit) :]

    def stream(self, *, thread_id: str, after: int = 0) -> Iterator[Message]:
        yield from self.list(thread_id=thread_id, after=after)

    def last_tokens(
        self, *, thread_id: str, tokens: int, before: int | None = None
    ) -> list[Message]:
        found = self.list(thread_id=thread_id, before=before)
        while len(found) > 1 and sum(m.token_count for m in found) > tokens:
            found.pop(0)
        return found

    def sizes(self, *, thread_id: str, tokens: int) -> list[MessageSize]:
        found = self.last_tokens(thread_id=thread_id, tokens=tokens)
        return [MessageSize(m.seq, m.token_count) for m in found]

    def around(self, message_id: str, *, before: int = 2, after: int = 2) -> list[Message]:
        center = self.get(message_id)
        log = self._kept.messages[center.thread_id]
        return [m for m in log if center.seq - before <= m.seq <= center.seq + after]

    def seal(self, *, thread_id: str, up_to_seq: int | None = None) -> int:
        log = self._kept.messages.get(require_id(thread_id, "thread_id"), [])
        due = [m for m in log if not m.is_sealed and (up_to_seq is None or m.seq <= up_to_seq)]
        for message in due:
            log[message.seq - 1] = replace(message, sealed_at=self._clock.now_ms())
        return len(due)

    def extend(self, message_id: str, content: str | Sequence[Part]) -> Message:
        message = self.get(message_id)
        if message.is_sealed:
            return self.add(
                thread_id=message.thread_id,
                role=message.role,
                content=content,
                task_id=message.task_id,
                metadata={"continues": message.id},
            )
        parts, more = list(message.parts), list(parts_of(content))
        if parts and more and parts[-1].type == more[0].type == "text":
            more[0] = replace(more[0], text=parts.pop().text + more[0].text)
        cleaned = self._clean(NewMessage(message.role, (*parts, *more))).content
        raw = rendered(cleaned)
        grown = replace(
            message,
            parts=tuple(cleaned),
            raw_content=raw,
            token_count=self._counter.count(raw).tokens,
        )
        log = self._kept.messages[message.thread_id]
        log[message.seq - 1] = grown
        thread = self._kept.threads[message.thread_id]
        self._threads._set(replace(thread, token_count=sum(m.token_count for m in log)))
        return grown


class History:
    def __init__(self, messages: Messages, counter: TokenCounter) -> None:
        self._messages, self._counter = messages, counter

    def window(
        self,
        thread_id: str,
        *,
        last: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
    ) -> list[HistoryEntry]:
        entries: dict[Any, HistoryEntry] = {}
        for message in self._messages.list(thread_id=thread_id, before=before):
            run = message.compaction
            if run is None:
                entries[message.seq] = HistoryEntry(
                    message.role,
                    message.raw_content,
                    message.seq,
                    last_seq=message.seq,
                    token_count=message.token_count,
                    message_id=message.id,
                )
            else:
                text = run.injection_text
                entries[run.id] = HistoryEntry(
                    "system",
                    text,
                    run.start_seq,
                    last_seq=run.end_seq,
                    token_count=self._counter.count(text).tokens,
                    compaction_id=run.id,
                )
        found = list(entries.values())
        found = found if last is None else found[max(0, len(found) - last) :]
        while (
            tokens is not None
            and len(found) > 1
            and sum(entry.token_count for entry in found) > tokens
        ):
            found.pop(0)
        return found


class Compactions:
    def __init__(
        self, kept: Project, clock: FakeClock, new_id: IdMaker, settings: Mapping[str, Any]
    ) -> None:
        self._kept, self._clock, self._new_id = kept, clock, new_id
        self._after = settings.get("compact_after_messages", 30)
        self._archive_after = settings.get("archive_after_messages", 90)
        self._run = settings.get("compact_run_messages", 10)

    def compact_when_due(self, thread_id: str) -> CompactionResult:
        return self._compact(thread_id, self._after)

    def end_session(self, thread_id: str) -> CompactionResult:
        return self._compact(thread_id, self._run)

    def compact(self, thread_id: str, keep: int = 0) -> CompactionResult:
        return self._compact(thread_id, 1, keep, by_command=True)

    def _compact(
        self, thread_id: str, after: int, keep: int = 0, by_command: bool = False
    ) -> CompactionResult:
        if thread_id not in self._kept.threads:
            raise NotFoundError(f"There is no thread {thread_id!r} in this project.")
        log, records = self._kept.messages[thread_id], self._kept.compactions[thread_id]
        done = 0 if by_command else max((record.end_seq for record in records), default=0)
        whole = [m.seq for m in log if m.compaction is None and m.seq > done]
        due = whole[: max(0, len(whole) - keep)]
        made = [self._record(thread_id, 1, *run) for run in runs_due(due, after, self._run)]
        level_1 = sorted(
            (c.start_seq, c.end_seq) for c in records if c.level == 1 and self._is_shown(c)
        )
        undone = (
            []
            if by_command
            else [(c.start_seq, c.end_seq) for c in records if c.level == 2 and c.undone_at]
        )
        folds = [
            fold for fold in folds_due(level_1, len(log), self._archive_after) if fold not in undone
        ]
        folded = [self._record(thread_id, 2, *fold) for fold in folds]
        count = sum(record.message_count for record in made)
        return CompactionResult((*made, *folded), count, len(whole) - count)

    def _is_shown(self, record: Compaction) -> bool:
        return record.undone_at is None and record.id not in self._kept.folded_into

    def _record(self, thread_id: str, level: int, first: int, last: int) -> Compaction:
        run = self._kept.messages[thread_id][first - 1 : last]
        said = OfflineSummarizer().summarize(run, level)
        record = Compaction(
            self._new_id(),
            level,
            first,
            end_seq=last,
            message_count=len(run),
            summary=redact(said.text).text,
            code=redact(said.code).text,
            method=OfflineSummarizer.method,
            created_at=self._clock.now_ms(),
        )
        for child in self._kept.compactions[thread_id]:
            if level == 2 and self._is_shown(child) and first <= child.start_seq <= last:
                self._kept.folded_into[child.id] = record.id
        self._kept.compactions[thread_id].append(record)
        self._show(thread_id, record, record)
        return record

    def _show(self, thread_id: str, run: Compaction, shown_as: Compaction | None) -> None:
        log = self._kept.messages[thread_id]
        for seq in range(run.start_seq, run.end_seq + 1):
            log[seq - 1] = replace(log[seq - 1], compaction=shown_as)

    def list(self, thread_id: str) -> list[Compaction]:
        return sorted(
            self._kept.compactions.get(require_id(thread_id, "thread_id"), []),
            key=lambda c: c.start_seq,
        )

    def undo(self, compaction_id: str) -> Compaction:
        for thread_id, records in self._kept.compactions.items():
            for position, record in enumerate(records):
                if record.id == compaction_id:
                    if record.undone_at is None:
                        self._undo(thread_id, position)
                    return records[position]
        raise NotFoundError(f"There is no compaction {compaction_id!r} in this project.")

    def _undo(self, thread_id: str, position: int) -> None:
        records, folded_into = self._kept.compactions[thread_id], self._kept.folded_into
        record = records[position]
        if record.id in folded_into:
            self.undo(folded_into[record.id])
        self._show(thread_id, record, None)
        for child in records:
            if folded_into.get(child.id) == record.id:
                del folded_into[child.id]
                self._show(thread_id, child, child)
        records[position] = replace(record, undone_at=self._clock.now_ms())


class Leases:
    def __init__(self, store: Store, clock: FakeClock, new_id: IdMaker) -> None:
        self._store, self._clock, self._new_id = store, clock, new_id

    def acquire(self, name: str, owner: str, lease_seconds: float = 30.0) -> Lease | None:
        now, held = self._clock.now_ms(), self._store.leases.get(name)
        operation_id = self._new_id()
        if held is not None and held.expires_at > now:
            return None
        fence = self._store.fences[name] = self._store.fences.get(name, 0) + 1
        lease = Lease(
            name,
            owner,
            operation_id,
            fence=fence,
            expires_at=now + int(lease_seconds * 1000),
            taken_over_from=held.owner if held else None,
        )
        self._store.leases[name] = lease
        return lease

    def renew(self, lease: Lease, lease_seconds: float = 30.0) -> Lease:
        self.guard(None, lease)
        renewed = replace(lease, expires_at=self._clock.now_ms() + int(lease_seconds * 1000))
        self._store.leases[lease.name] = renewed
        return renewed

    def guard(self, session: object, lease: Lease) -> None:
        held = self._store.leases.get(lease.name)
        if held is None or held.fence != lease.fence or held.expires_at <= self._clock.now_ms():
            raise LeaseLostError(
                f"The lease {lease.name!r} has expired or went to another worker. Acquire it again."
            )

    def release(self, lease: Lease) -> bool:
        held = self._store.leases.get(lease.name)
        if held is None or held.fence != lease.fence:
            return False
        del self._store.leases[lease.name]
        return True

    def find(self, name: str) -> Lease | None:
        held = self._store.leases.get(name)
        return replace(held, taken_over_from=None) if held else None


class Search:
    """Looks at every message: a word counts once for each of its terms, and more the rarer it
    is.
    """

    def __init__(self, kept: Project, clock: FakeClock) -> None:
        self._kept, self._clock = kept, clock

    def search(
        self, query: str, limit: int = 10, *, sources: Iterable[str] | None = None, **filters: Any
    ) -> Answer:
        if not isinstance(limit, int) or not 1 <= limit <= 1_000:
            raise InvalidInputError(f"limit must be a whole number from 1 to 1000; got {limit!r}.")
        if isinstance(sources, str) or not set(sources or ()) <= set(SOURCES):
            raise InvalidInputError(f"sources may hold {', '.join(SOURCES)}; got {sources!r}.")
        found = [(score, m) for score, m in self._scored(query, **filters) if _is_from(m, sources)]
        best = found[0][0] if found else 1.0
        hits = tuple(
            self._hit(m, query, rank, score=score / best)
            for rank, (score, m) in enumerate(found[:limit], 1)
        )
        return Answer(hits, len(found), Trace(len(terms_of(query)), 0, len(found)))

    def _scored(self, query: str, **filters: Any) -> list[tuple[float, Message]]:
        neighbors = filters.pop("neighbors", 1)
        assert neighbors >= 0
        everything = [m for log in self._kept.messages.values() for m in log]
        held = {m.id: terms_of(m.raw_content) for m in everything}
        wanted = {t: sum(t in terms for terms in held.values()) for t in terms_of(query)}
        # A word that nobody said may be part of a name that somebody did; one that was said is
        # taken as it is.
        unsaid = [
            word for word in words(query) if not any(wanted.get(term) for term in terms_of(word))
        ]
        found = []
        for message in (m for m in everything if _passes(m, **filters)):
            matches = [
                math.log(1 + len(everything) / wanted[t]) for t in held[message.id] if wanted.get(t)
            ]
            matches += [
                0.1 for part in unsaid if any(part in word for word in words(message.raw_content))
            ]
            matches += [
                0.1
                for term in wanted
                if len(term) == 1 and not term.isascii() and term in message.raw_content
            ]
            phrases = [
                p for p in query.split('"')[1::2] if p and p.lower() in message.raw_content.lower()
            ]
            if matches:
                age_days = max(0, self._clock.now_ms() - message.created_at) / 86_400_000
                found.append(
                    (
                        (sum(matches) + 3 * len(phrases)) * (1 + 0.1 * 0.5 ** (age_days / 30)),
                        message,
                    )
                )
        return sorted(
            found, key=lambda pair: (pair[0], pair[1].created_at, pair[1].seq), reverse=True
        )

    def _hit(self, message: Message, query: str, rank: int, score: float) -> Hit:
        log, terms = self._kept.messages[message.thread_id], terms_of(query)
        beside = {m.seq: Neighbor(m.id, m.role, m.seq, content=m.raw_content) for m in log}
        return Hit(
            message.id,
            "compacted" if message.compaction else "raw",
            message.raw_content,
            rank=rank,
            score=score,
            why=("matches " + ", ".join(sorted(terms & terms_of(message.raw_content))),),
            thread_id=message.thread_id,
            resource_id=message.resource_id,
            role=message.role,
            seq=message.seq,
            created_at=message.created_at,
            task_id=message.task_id,
            client_id=message.client_id,
            metadata=message.metadata,
            before=tuple(beside[seq] for seq in (message.seq - 1,) if seq in beside),
            after=tuple(beside[seq] for seq in (message.seq + 1,) if seq in beside),
            terms=tuple(terms),
        )

    def search_threads(self, query: str, limit: int = 10, **filters: Any) -> list[ThreadHit]:
        best: dict[str, Hit] = {}
        for hit in self.search(query, 1_000, **filters):
            best.setdefault(hit.thread_id, hit)
        return [
            ThreadHit(
                h.thread_id,
                h.resource_id,
                self._kept.threads[h.thread_id].title,
                rank=rank,
                score=h.score,
                why=h.why,
            )
            for rank, h in enumerate(list(best.values())[:limit], 1)
        ]

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        known = {
            word
            for log in self._kept.messages.values()
            for m in log
            for word in words(m.raw_content)
        }
        start = prefix.strip().lower()
        return sorted(
            (w for w in known if start and w.startswith(start)), key=lambda w: (len(w), w)
        )[:limit]


def terms_of(text: str) -> set[str]:
    found = analyze(text)
    return set(found.prose.split()) | set(found.code.split())


def _is_from(message: Message, sources: Iterable[str] | None) -> bool:
    kinds = set(SOURCES if sources is None else sources)
    return "messages" in kinds or ("compacted" if message.compaction else "raw") in kinds


def _passes(
    message: Message,
    thread_id: str | None = None,
    resource_id: str | None = None,
    role: Any = None,
    since: int | None = None,
    until: int | None = None,
    task_id: str | None = None,
) -> bool:
    roles = (role,) if isinstance(role, str) else tuple(role or ROLES)
    return (
        thread_id in (None, message.thread_id)
        and resource_id in (None, message.resource_id)
        and task_id in (None, message.task_id)
        and message.role in roles
        and (since is None or message.created_at >= since)
        and (until is None or message.created_at <= until)
    )
