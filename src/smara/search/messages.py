"""Find messages: gather by words and meaning, rank, load.

A query that is one rare name is answered by one statement. Index sizes are cached for half a
minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from typing import TYPE_CHECKING

from smara.config import Settings
from smara.core import log
from smara.core.clock import Clock
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import regex
from smara.database.database import Row, Session
from smara.database.fulltext import Within, no_of
from smara.errors import CorruptError, DeadlineError
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.search.amend import amended_threads, latest_first
from smara.search.fuse import (
    THREAD_NEAREST,
    Closeness,
    FusedMessage,
    MessageFusion,
    rank_threads,
)
from smara.search.gather import (
    THREAD_CANDIDATES,
    Gather,
    TermMatches,
    fetch_candidates,
    find_beside,
    scan_candidates,
)
from smara.search.models import (
    Hit,
    Neighbor,
    SearchCandidate,
    SearchFilter,
    ThreadAnswer,
    ThreadHit,
)
from smara.search.query import LONGEST_SHOWN, Query, QueryIntent
from smara.search.rank import (
    MessageCandidate,
    MessageScore,
    Ranking,
    Stats,
    order,
    rank_messages,
)
from smara.search.relevance import Relevance, select
from smara.search.weights import WEIGHTS, Weights

if TYPE_CHECKING:
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning


_KEPT_SECONDS = 30.0
_SMALL_ROWS = 2_000


class Statistics:
    """Rows, threads and the average length of one project."""

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._sizes: tuple[int, int, int] = (0, 0, 0)
        self._read_at = float("-inf")
        self._session: Session | None = None

    def _current(self, session: Session) -> tuple[int, int, int]:
        now = self._clock.monotonic()
        is_small = self._sizes[0] < _SMALL_ROWS and session is not self._session
        if is_small or now - self._read_at > _KEPT_SECONDS:
            try:
                self._sizes = self._store.index_size(session)
                self._read_at, self._session = now, session
            except DeadlineError:
                pass  # an older sum, or none, ranks nearly as well
        return self._sizes

    def rows(self, session: Session) -> int:
        """Return how many rows the index holds for this project."""
        return self._current(session)[0]

    def of(self, session: Session, frequencies: Mapping[str, int]) -> Stats:
        """The statistics a ranking needs."""
        rows, terms, threads = self._current(session)
        return Stats(
            max(rows, 1), max(threads, 1), terms / rows if rows else 1.0, frequencies=frequencies
        )


# In a project of fewer rows a name's parts are looked for even when the name itself was found.
FILL_UP_ROWS = 5_000
# A name in more rows is left to the general way.
RARE_ROWS = 50

_LIKE_A_NAME = regex(r"[\w./:-]{3,200}")


def whole_name(query: Query) -> tuple[str, ...] | None:
    """Return the terms of a query that is one identifier or path."""
    terms = query.terms
    if (
        len(terms) < 2
        or terms[0].kind not in ("identifier", "path")
        or any(term.group for term in terms)
    ):
        return None
    text = query.text.strip()
    return (
        query.texts
        if _LIKE_A_NAME.fullmatch(text) and terms[0].word == text[:LONGEST_SHOWN]
        else None
    )


def as_candidates(rows: list[tuple[Row, Message]]) -> list[MessageCandidate]:
    """Found messages, ready to be ranked."""
    return [
        MessageCandidate(
            row,
            thread_no,
            message.seq,
            role=message.role,
            created_at=message.created_at,
            prose=prose,
            code=code,
            length=prose.count(" ") + code.count(" ") + 2,
        )
        for (row, prose, code, thread_no), message in rows
    ]


# What a pack may choose from: so many threads, so far from their hits, so many messages of each.
_THREADS, _REACH, _MOST_AROUND = 4, 12, 60
# How many threads are compared, by so many of their messages, to find what amends what.
_COMPARED, _BEST_OF_THREAD = 8, 4
# How many more messages than are asked for are loaded, for the boosts that rank them again.
SPARE = 20
OUT_OF_TIME = "The search ran out of time. Ask for something more specific."
_DAMAGED = (
    "The search index is damaged; only the newest messages were searched. Run `smara doctor --fix`."
)


@dataclass(slots=True)
class MessageMatches:
    """The messages that were found, and the cost of finding them."""

    found: list[SearchCandidate] = field(default_factory=list)
    postings: int = 0
    candidates: int = 0
    is_complete: bool = True
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_by_name: bool = False
    """Whether the query is one rare name and these are the messages that hold it."""
    query: Query | None = None
    """The query with the names that were found to contain its words."""
    frequencies: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    """How many rows the index has."""
    fusion: MessageFusion | None = None


class MessageSearch:
    """Searches the messages of one project."""

    def __init__(
        self,
        store: MessageStore,
        clock: Clock,
        settings: Settings,
        meaning: Meaning | None = None,
        weights: Weights = WEIGHTS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._meaning = meaning
        self._deadline_seconds = settings.search_deadline_seconds
        half_life = settings.recency_half_life_days
        self._weights = replace(
            weights, messages=replace(weights.messages, half_life_days=half_life)
        )
        self._statistics = Statistics(store, clock)

    def find(
        self,
        session: Session,
        intent: QueryIntent,
        vector: Vector | None,
        within: Within,
        limit: int,
        filters: SearchFilter,
        neighbors: int,
    ) -> MessageMatches:
        """The messages that may answer best, not yet in their final order."""
        if neighbors == 0 and not within.is_filtered and {"raw", "compacted"} <= filters.sources:
            haul = self._by_name(session, intent.query, within)
            if haul is not None:
                return haul
        if not intent.query.terms and vector is None:
            return MessageMatches()
        query, gathered, rows, warnings = self._by_words(session, intent.query, within, limit)
        close = Closeness(session, self._meaning, vector, within=within)
        rows = self._with_nearest(session, rows, close, within=within)
        ranking = self._ranking(session, query, gathered, rows=rows)
        found = MessageFusion(
            ranking, close, intent.days, text=query.text, weights=self._weights.fusion
        )
        best = found.best(limit + SPARE if {"raw", "compacted"} <= filters.sources else None)
        return MessageMatches(
            self._load(session, best, query, neighbors, filters),
            postings=gathered.postings,
            candidates=len(rows),
            is_complete=gathered.is_complete,
            notes=gathered.notes,
            warnings=warnings,
            query=query,
            frequencies=gathered.frequencies,
            rows=self._statistics.rows(session),
            fusion=found,
        )

    def _ranking(
        self,
        session: Session,
        query: Query,
        gathered: TermMatches,
        rows: Sequence[MessageCandidate],
    ) -> Ranking:
        stats = self._statistics.of(session, gathered.frequencies)
        return Ranking(query, rows, stats, now_ms=self._clock.now_ms(), weights=self._weights)

    def _with_nearest(
        self,
        session: Session,
        rows: list[MessageCandidate],
        close: Closeness,
        within: Within,
        role: str | None = None,
    ) -> list[MessageCandidate]:
        """The rows, and those that only their meaning brought; the cosines of all of them are
        looked up.
        """
        added = close.nearest_besides([each.no for each in rows])
        if added:
            nearest = fetch_candidates(session, self._store, added, within=within)
            rows = rows + [each for each in nearest if role in (None, each.role)]
        close.look_up([each.no for each in rows])
        return rows

    def _by_name(self, session: Session, query: Query, within: Within) -> MessageMatches | None:
        """What holds a query that is one rare name; ``None`` for any other."""
        terms = whole_name(query)
        if terms is None or self._statistics.rows(session) < FILL_UP_ROWS:
            return None
        try:
            rare = self._store.database.fulltext.matching(terms[0], within)
            rows = self._store.found_by(session, rare, RARE_ROWS + 1)
        except CorruptError:
            return None  # the general way knows what to do about a damaged index
        if not 0 < len(rows) <= RARE_ROWS:
            return None
        messages = {no_of(row[0]): message for row, message in rows}
        if len(rows) == 1:
            why = (f"matches {query.text.strip()} (name)", "the only message with it")
            best = {no: MessageScore(no, 1.0, why, words=1.0) for no in messages}
        else:
            scored = rank_messages(
                query,
                as_candidates(rows),
                self._statistics.of(session, {terms[0]: len(rows)}),
                now_ms=self._clock.now_ms(),
                weights=self._weights,
            )
            # Of a message in several pieces, the best.
            best = {no_of(each.no): each for each in reversed(scored)}
        found = [
            SearchCandidate(
                "message",
                no,
                _hit(messages[no], each.why, terms),
                words=each.words,
                terms=frozenset(terms),
            )
            for no, each in best.items()
        ]
        return MessageMatches(
            found,
            postings=len(rows),
            candidates=len(rows),
            notes=["looked up as one name"],
            is_by_name=True,
            frequencies={terms[0]: len(rows)},
            rows=self._statistics.rows(session),
        )

    def search_threads(
        self,
        session: Session,
        intent: QueryIntent,
        vector: Vector | None,
        within: Within,
        limit: int,
        min_score: float | None,
    ) -> ThreadAnswer:
        """Return the threads that answer best, each by all its messages."""
        query, gathered, rows, _ = self._by_words(
            session, intent.query, within, limit, THREAD_CANDIDATES
        )
        close = Closeness(session, self._meaning, vector, within=within, nearest=THREAD_NEAREST)
        rows = self._with_nearest(session, rows, close, within=within, role="user")
        ranking = self._ranking(session, query, gathered, rows=rows)
        scored = rank_threads(
            ranking, close, intent.days, weights=self._weights.fusion, limit=limit
        )
        scored = self._newer_first(session, ranking, scored)
        relevance = Relevance(
            query, gathered.frequencies, self._statistics.rows(session), self._weights.relevance
        )
        if vector is not None:
            relevance.calibrate(vector.model_id, list(close.first_cosines.values()))
        # A thread is as relevant as the most relevant of its messages.
        best = dict.fromkeys([each.no for each in scored], 0.0)
        words = {each.row.no: score / ranking.ideal for score, each in ranking.rated}
        for each in ranking.evidence:
            no, thread_no = each.row.no, each.row.thread_no
            if thread_no in best:
                terms = ranking.terms_near(each)
                judged = relevance.rate(terms, words.get(no, 0.0), close.first_cosines.get(no))
                best[thread_no] = max(best[thread_no], judged)
        threads = self._store.threads_by_numbers(session, list(best))
        standing = [each for each in scored if each.no in threads]
        weights = self._weights.relevance.at_least(min_score)
        relevant = select(
            [best[each.no] for each in standing], replace(weights, least=0.0, share=0.0)
        )
        if intent.period is None:
            latest_first(
                standing,
                lambda each: (threads[each.no].id, threads[each.no].updated_at, best[each.no]),
                count=2,
            )
        if not relevant:
            standing = nlargest(weights.nearest, standing, key=lambda each: best[each.no])
        hits = tuple(
            ThreadHit(
                threads[each.no].id,
                threads[each.no].resource_id,
                threads[each.no].title,
                rank=rank,
                score=round(best[each.no], 4),
                why=each.why,
            )
            for rank, each in enumerate(standing, 1)
        )
        return ThreadAnswer(hits) if relevant else ThreadAnswer((), hits)

    def _newer_first(
        self, session: Session, ranking: Ranking, scored: list[MessageScore]
    ) -> list[MessageScore]:
        """Return threads with those that amend another above it, by their best messages."""
        best: dict[int, list[int]] = {each.no: [] for each in scored[:_COMPARED]}
        for _, each in sorted(ranking.rated, key=order):
            numbers, no = best.get(each.row.thread_no), no_of(each.row.no)
            if numbers is not None and len(numbers) < _BEST_OF_THREAD and no not in numbers:
                numbers.append(no)
        messages = self._store.by_numbers(session, [no for each in best.values() for no in each])
        groups = {
            thread_no: [
                SearchCandidate("message", thread_no, _hit(messages[no], (), ()))
                for no in numbers
                if no in messages
            ]
            for thread_no, numbers in best.items()
        }
        threads = [each for each in groups.values() if each]
        numbers = [each.no for each in scored]
        for older, newer in amended_threads(threads, lambda hits: self._around(session, hits)):
            if numbers.index(newer[0].no) > numbers.index(older[0].no):
                numbers.remove(newer[0].no)
                numbers.insert(numbers.index(older[0].no), newer[0].no)
        return sorted(scored, key=lambda each: numbers.index(each.no))

    def around(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the messages around hits, of their first few threads."""
        # What stands around hits is an addition: a slow database takes it away and nothing else.
        with suppress(DeadlineError), self._store.database.read(self._deadline_seconds) as session:
            return self._around(session, hits)
        return []

    def _around(self, session: Session, hits: Sequence[Hit]) -> list[Hit]:
        places: dict[str, list[int]] = {}
        for hit in hits:
            if hit.thread_id is not None and hit.seq is not None:
                places.setdefault(hit.thread_id, []).append(hit.seq)
        found: list[Message] = []
        for thread_id, seqs in list(places.items())[:_THREADS]:
            thread_no = self._store.thread_no(session, thread_id)
            if thread_no is not None:
                first, last = min(seqs) - _REACH, max(seqs) + _REACH
                found += self._store.between(session, thread_no, first, last, _MOST_AROUND)
        return [_hit(message, ("said around a match",), hits[0].terms) for message in found]

    def _by_words(
        self, session: Session, query: Query, within: Within, limit: int, most: int | None = None
    ) -> tuple[Query, TermMatches, list[MessageCandidate], list[str]]:
        """Candidates from the index; from a scan of the newest messages when the index is
        damaged.
        """
        stop_at = self._clock.monotonic() + self._deadline_seconds
        warnings = self._store.search_warnings()
        gathered = TermMatches()
        within = replace(within, is_only_project=self._store.is_alone(session))
        try:
            gather = Gather(
                session,
                self._store.database.fulltext,
                self._store.database.words,
                within=within,
                total_rows=self._statistics.rows(session),
                clock=self._clock,
                stop_at=stop_at,
            )
            gathered = gather.run(query, limit)
            if "stopped at the deadline" in gathered.notes:
                warnings.append(OUT_OF_TIME)
            chosen = gathered.candidates(limit) if most is None else gathered.best(max(most, limit))
            rows = fetch_candidates(session, self._store, chosen, within=within)
        except CorruptError as error:
            log.warning("index.damaged", error=error.facts.get("reason"))
            warnings.append(_DAMAGED)
            rows = scan_candidates(session, self._store, within)
            gathered.is_complete = False
            gathered.frequencies = {
                term: sum(each.holds(f" {term} ") for each in rows) for term in query.texts
            }
        except DeadlineError:
            warnings.append(OUT_OF_TIME)
            rows = []
            gathered.is_complete = False
        if gathered.added_terms:
            query = replace(query, terms=(*query.terms, *gathered.added_terms))
        return query, gathered, rows, warnings

    def _load(
        self,
        session: Session,
        best: Sequence[FusedMessage],
        query: Query,
        neighbors: int,
        filters: SearchFilter,
    ) -> list[SearchCandidate]:
        beside = find_beside(
            session, self._store, [near.message_no for near in best], count=neighbors
        )
        numbers = dict.fromkeys([near.message_no for near in best])
        numbers.update(
            dict.fromkeys(no for before, after in beside.values() for no in (*before, *after))
        )
        messages = self._store.by_numbers(session, list(numbers))
        found: list[SearchCandidate] = []
        for near in best:
            message = messages.get(near.message_no)
            if (
                message is None
                or ("compacted" if message.compaction else "raw") not in filters.sources
            ):
                continue
            before, after = beside[near.message_no]
            hit = _hit(
                message,
                near.why,
                query.texts,
                before=_neighbors(before, messages),
                after=_neighbors(after, messages),
            )
            found.append(
                SearchCandidate(
                    "message",
                    near.message_no,
                    hit,
                    words=near.words,
                    meaning=near.cosine,
                    is_in_days=near.is_in_days,
                    cosine=near.cosine,
                    terms=near.terms,
                    merit=near.merit,
                    parts=near.parts,
                )
            )
        return found


def _hit(
    message: Message,
    why: tuple[str, ...],
    terms: tuple[str, ...],
    before: tuple[Neighbor, ...] = (),
    after: tuple[Neighbor, ...] = (),
) -> Hit:
    return Hit(
        message.id,
        "compacted" if message.compaction else "raw",
        message.raw_content,
        why=why,
        thread_id=message.thread_id,
        resource_id=message.resource_id,
        role=message.role,
        seq=message.seq,
        created_at=message.created_at,
        task_id=message.task_id,
        client_id=message.client_id,
        metadata=message.metadata,
        before=before,
        after=after,
        terms=terms,
        is_trusted=message.role == "user",
    )


def _neighbors(numbers: Sequence[int], messages: dict[int, Message]) -> tuple[Neighbor, ...]:
    return tuple(
        Neighbor(message.id, message.role, message.seq, content=message.raw_content)
        for no in numbers
        if (message := messages.get(no)) is not None
    )
