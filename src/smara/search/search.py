"""One ranked answer: gather, fetch, rank, present."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from smara.config import Settings
from smara.core import log
from smara.core.clock import Clock
from smara.core.scope import is_id
from smara.core.terms import fold
from smara.database.database import Session
from smara.database.fulltext import Within, no_of
from smara.errors import CorruptError, DeadlineError, InvalidInputError
from smara.messages.models import ROLES, Message
from smara.messages.store import MessageStore
from smara.search.candidates import Pool, fetch_pool, scan_pool
from smara.search.gather import CANDIDATES, THREAD_CANDIDATES, Gather, Gathered
from smara.search.models import SOURCES, Answer, Hit, Neighbor, ThreadHit, Trace
from smara.search.names import FILL_UP_ROWS, as_candidates, find_name, whole_name
from smara.search.query import Query, analyze_query
from smara.search.rank import RankSettings, Scored, rank_messages, rank_threads
from smara.search.statistics import Statistics

MOST_HITS = 1_000
_PIECES = 4
"""Several pieces of one long message may rank side by side; so many times more rows than hits are ordered."""
_OUT_OF_TIME = "The search ran out of time. Ask for something more specific."
_DAMAGED = "The search index is damaged; only the newest messages were searched. Run `smara doctor --fix`."


class Search:
    """Searches the messages of one project."""

    def __init__(self, store: MessageStore, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._database = store.database
        self._clock = clock
        self._deadline_seconds = settings.search_deadline_seconds
        self._rank_settings = RankSettings(half_life_days=settings.recency_half_life_days)
        self._statistics = Statistics(store, clock)

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        sources: Collection[str] | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        role: str | Collection[str] | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        task_id: str | None = None,
        neighbors: int = 0,
    ) -> Answer:
        """The messages that answer a query best.

        Any text is a query: words, questions, names, paths, parts of names; ``"words in
        quotes"`` stand together. Nothing a caller writes can raise or hang: it is bounded
        in terms, rows and time, and an answer that was cut short says so. ``since`` and
        ``until`` take milliseconds, ISO 8601 texts or datetimes. ``neighbors`` asks for so many
        messages before and after each hit, at most two.
        """
        _check(query, limit, sources)
        filters = (thread_id, resource_id, role, since, until, task_id)
        try:
            with self._database.read(self._deadline_seconds) as session:
                within = self._within(session, *filters)
                if within is None:
                    return Answer((), 0, Trace(0, 0, 0))
                if sources is None and neighbors == 0 and not within.is_filtered:
                    answer = self._by_name(session, query, within, limit)
                    if answer is not None:
                        return answer
                return self._by_words(session, analyze_query(query), within, limit, sources, neighbors)
        except DeadlineError:
            return Answer((), 0, Trace(0, 0, 0, False, ("stopped at the deadline",)), (_OUT_OF_TIME,))

    def _by_words(
        self,
        session: Session,
        query: Query,
        within: Within,
        limit: int,
        sources: Collection[str] | None,
        neighbors: int,
    ) -> Answer:
        """The general way: gather, fetch, rank, present."""
        if not query.terms:
            return Answer((), 0, Trace(0, 0, 0))
        query, gathered, pool, warnings = self._pool(session, query, within, limit, CANDIDATES)
        stats = self._statistics.of(session, gathered.frequencies)
        most = None if sources else limit * _PIECES
        scored = rank_messages(
            query, pool.candidates, pool.lengths, stats, self._clock.now_ms(), self._rank_settings, most
        )
        best = self._best(session, scored, limit, sources)
        hits = self._hits(session, best, pool, query, neighbors)
        trace = Trace(
            len(query.terms), gathered.postings, len(pool.candidates), gathered.is_complete, tuple(gathered.notes)
        )
        return Answer(hits, max(gathered.message_count, len(hits)), trace, tuple(warnings))

    def _by_name(self, session: Session, query: str, within: Within, limit: int) -> Answer | None:
        """The answer to a query that is one rare name; ``None`` for any other."""
        terms = whole_name(query)
        if terms is None or self._statistics.rows(session) < FILL_UP_ROWS:
            return None
        try:
            found = find_name(session, self._store, terms[0], within)
        except CorruptError:
            return None  # the general way knows what to do about a damaged index
        if found is None:
            return None
        now = self._clock.now_ms()
        if len(found) == 1:
            hits = [_hit(found[0][1], 1, 1.0, (f"matches {query} (name)", "the only message with it"), terms)]
        else:
            stats = self._statistics.of(session, {terms[0]: len(found)})
            scored = rank_messages(analyze_query(query), as_candidates(found), {}, stats, now, self._rank_settings)
            messages = {no_of(row[0]): message for row, message in found}
            best = enumerate(_one_per_message(scored, limit), 1)
            hits = [_hit(messages[no], rank, each.score, each.why, terms) for rank, (no, each) in best]
        trace = Trace(len(terms), len(found), len(found), True, ("looked up as one name",))
        return Answer(tuple(hits), len({message.id for _, message in found}), trace)

    def search_threads(
        self,
        query: str,
        limit: int = 10,
        *,
        resource_id: str | None = None,
        role: str | Collection[str] | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
    ) -> list[ThreadHit]:
        """The conversations that answer a query best, each judged by all that was said in it."""
        _check(query, limit, None)
        analyzed = analyze_query(query)
        try:
            with self._database.read(self._deadline_seconds) as session:
                within = self._within(session, None, resource_id, role, since, until, None)
                if within is None or not analyzed.terms:
                    return []
                analyzed, gathered, pool, _ = self._pool(session, analyzed, within, limit, THREAD_CANDIDATES)
                stats = self._statistics.of(session, gathered.frequencies)
                scored = rank_threads(
                    analyzed, pool.candidates, pool.lengths, stats, self._clock.now_ms(), self._rank_settings, limit
                )
                threads = self._store.threads_by_numbers(session, [each.no for each in scored])
        except DeadlineError:
            return []
        return [
            ThreadHit(thread.id, thread.resource_id, thread.title, rank, each.score, each.why)
            for rank, each in enumerate(scored, 1)
            if (thread := threads.get(each.no)) is not None
        ]

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        """Words and names of this project that begin with ``prefix``, shortest first."""
        wanted = fold(prefix[:200]).strip().lower()[:64]
        if not wanted or limit < 1 or not is_id(wanted):
            return []
        with self._database.read(self._deadline_seconds) as session:
            return self._database.words.starting(session, self._store.scope.project_no, wanted, min(limit, MOST_HITS))

    def _within(
        self, session: Session, thread_id: str | None, resource_id: str | None, role: str | Collection[str] | None,
        since: int | str | datetime | None, until: int | str | datetime | None, task_id: str | None,
    ) -> Within | None:  # fmt: skip
        """The scope of a search, or ``None`` when nothing can lie in it."""
        if any(each is not None and not is_id(each) for each in (thread_id, resource_id, task_id)):
            return None
        thread_no = None
        if thread_id is not None:
            thread_no = self._store.thread_no(session, thread_id)
            if thread_no is None:
                return None
        roles = (role,) if isinstance(role, str) else tuple(role or ())
        for each in roles:
            if each not in ROLES:
                raise InvalidInputError(f"role must be one of {', '.join(ROLES)}; got {each!r}.")
        return Within(
            self._store.scope.project_no, thread_no, resource_id, roles, _as_ms(since, "since"), _as_ms(until, "until"),
            task_id,
        )  # fmt: skip

    def _pool(
        self, session: Session, query: Query, within: Within, limit: int, most: int
    ) -> tuple[Query, Gathered, Pool, list[str]]:
        """Candidates from the index; from a scan of the newest messages when the index is damaged."""
        stop_at = self._clock.monotonic() + self._deadline_seconds
        warnings: list[str] = []
        gathered = Gathered()
        within = replace(within, is_only_project=self._store.is_alone(session))
        try:
            gather = Gather(
                session, self._database.fulltext, self._database.words, within, self._statistics.rows(session),
                self._clock, stop_at,
            )  # fmt: skip
            gathered = gather.run(query, limit)
            if "stopped at the deadline" in gathered.notes:
                warnings.append(_OUT_OF_TIME)
            pool = fetch_pool(session, self._store, gathered.best(max(most, limit)), within)
        except CorruptError as error:
            log.warning("index.damaged", error=error.facts.get("reason"))
            warnings.append(_DAMAGED)
            pool = scan_pool(session, self._store, within)
            gathered.is_complete = False
        except DeadlineError:
            warnings.append(_OUT_OF_TIME)
            pool = Pool([])
            gathered.is_complete = False
        if gathered.added_terms:
            query = replace(query, terms=(*query.terms, *gathered.added_terms))
        return query, gathered, pool, warnings

    def _best(
        self, session: Session, scored: Sequence[Scored], limit: int, sources: Collection[str] | None
    ) -> list[tuple[int, Scored]]:
        """The best messages that belong to the sources asked for."""
        wanted = set(sources or ("messages",))
        if "messages" in wanted or {"raw", "compacted"} <= wanted:
            return _one_per_message(scored, limit)
        everything = _one_per_message(scored, len(scored))
        messages = self._store.by_numbers(session, [no for no, _ in everything])
        is_wanted = "compacted" in wanted
        return [
            (no, each)
            for no, each in everything
            if no in messages and (messages[no].compaction is not None) == is_wanted
        ][:limit]

    def _hits(
        self, session: Session, best: Sequence[tuple[int, Scored]], pool: Pool, query: Query, neighbors: int
    ) -> tuple[Hit, ...]:
        beside = {no: pool.beside(no, neighbors) for no, _ in best} if neighbors else {}
        numbers = dict.fromkeys([no for no, _ in best])
        numbers.update(dict.fromkeys(no for before, after in beside.values() for no in (*before, *after)))
        messages = self._store.by_numbers(session, list(numbers))
        found: list[Hit] = []
        terms = query.texts
        for no, scored in best:
            message = messages.get(no)
            if message is None:
                continue
            before, after = beside.get(no, ((), ()))
            found.append(
                _hit(
                    message,
                    len(found) + 1,
                    scored.score,
                    scored.why,
                    terms,
                    _neighbors(before, messages),
                    _neighbors(after, messages),
                )
            )
        return tuple(found)


def _hit(
    message: Message,
    rank: int,
    score: float,
    why: tuple[str, ...],
    terms: tuple[str, ...],
    before: tuple[Neighbor, ...] = (),
    after: tuple[Neighbor, ...] = (),
) -> Hit:
    return Hit(
        message.id, "compacted" if message.compaction else "raw", message.raw_content, rank, score, why,
        message.thread_id, message.resource_id, message.role, message.seq, message.created_at, message.task_id,
        message.client_id, message.metadata, before, after, terms,
    )  # fmt: skip


def _neighbors(numbers: Sequence[int], messages: dict[int, Message]) -> tuple[Neighbor, ...]:
    found = [messages[no] for no in numbers if no in messages]
    return tuple(Neighbor(message.id, message.role, message.seq, message.raw_content) for message in found)


def _one_per_message(scored: Sequence[Scored], limit: int) -> list[tuple[int, Scored]]:
    """The best piece of each message; a long message is several rows of the index."""
    found: dict[int, Scored] = {}
    for each in scored:
        no = no_of(each.no)
        if no not in found:
            found[no] = each
            if len(found) == limit:
                break
    return list(found.items())


def _check(query: str, limit: int, sources: Collection[str] | None) -> None:
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a text, not {type(query).__name__}.")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_HITS:
        raise InvalidInputError(f"limit must be a whole number from 1 to {MOST_HITS}; got {limit!r}.")
    if isinstance(sources, str):
        raise InvalidInputError("sources must be a list of names, not one text.")
    for source in sources or ():
        if source not in SOURCES:
            raise InvalidInputError(f"sources may hold {', '.join(SOURCES)}; got {source!r}.")


def _as_ms(value: int | str | datetime | None, what: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]  # a bool raises
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise InvalidInputError(
            f"{what} must be milliseconds, an ISO 8601 time such as 2026-03-01, or a datetime; got {value!r}."
        ) from None
