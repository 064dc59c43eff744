"""Search every source and return one ranked answer.

Understand the query, find candidates by words and by meaning in each source, fuse them on one
scale, boost by phase, trust and age, and return the best with reasons. If an embedder, a model or
an index is missing, the answer is made without it and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from heapq import nlargest
from typing import TYPE_CHECKING

from smara.commits.store import CommitStore
from smara.core import log
from smara.core.clock import to_ms
from smara.core.dates import local_time, zone_of
from smara.core.scope import is_id, lookup_id
from smara.core.terms import fold
from smara.core.validate import one_of
from smara.database.database import Session
from smara.database.fulltext import Within
from smara.database.projects import ProjectContext
from smara.errors import DeadlineError, InvalidInputError, SmaraError
from smara.frameworks.item_store import ItemStore
from smara.knowledge.store import KnowledgeStore
from smara.messages.models import ROLES
from smara.messages.store import MessageStore
from smara.observations.store import ObservationStore
from smara.search.amend import newer_first
from smara.search.boost import Boost
from smara.search.copies import fold_copies
from smara.search.fuse import Scale
from smara.search.messages import OUT_OF_TIME, MessageMatches, MessageSearch, whole_name
from smara.search.models import (
    SOURCES,
    Answer,
    Hit,
    SearchCandidate,
    SearchFilter,
    Stages,
    ThreadAnswer,
    Trace,
    expand_sources,
)
from smara.search.query import (
    MOST_HITS,
    Hints,
    Query,
    QueryIntent,
    check_query,
    letters_of,
    understand,
)
from smara.search.records import (
    CodeJudge,
    Find,
    RecordFinder,
    RecordSource,
    commit_source,
    item_source,
    memory_source,
    no_code,
    observation_source,
    task_source,
    working_source,
)
from smara.search.relevance import Relevance, select
from smara.search.rerank import rerank
from smara.search.weights import WEIGHTS, Weights
from smara.tasks.store import TaskStore
from smara.working.store import WorkingStore

if TYPE_CHECKING:
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning
    from smara.models.reranker import Reranker
    from smara.search.code import CodeFinder, CodeTrees


def record_finders(
    project: ProjectContext,
    meaning: Meaning | None,
    find_trees: Callable[[], CodeTrees],
    freshness: CodeJudge = no_code,
    weights: Weights = WEIGHTS,
) -> list[tuple[tuple[str, ...], Find]]:
    """Return the finders of records with their sources."""
    database, scope = project.database, project.scope
    sources: list[RecordSource] = [
        task_source(TaskStore(database, scope)),
        observation_source(ObservationStore(database, scope), freshness),
        memory_source(KnowledgeStore.seen_by(project), project.clock, freshness),
        working_source(WorkingStore(database, scope)),
        commit_source(CommitStore(database, scope)),
        item_source(ItemStore(database, scope), project.clock),
    ]

    @cache
    def code_finder() -> CodeFinder:
        # Loaded when code is first looked for: most questions are not about it.
        from smara.search.code import CodeFinder

        return CodeFinder(find_trees(), meaning, weights)

    return [
        *(
            (source.sources, RecordFinder(database, source, meaning, weights=weights).find)
            for source in sources
        ),
        (("code",), lambda *question: code_finder().find(*question)),
    ]


# How long a model may take to write what an answer might say.
IMAGINE_SECONDS = 10.0
# Why meaning was not asked without anything being wrong; everything else is told.
_NO_TROUBLE = (
    "embedder is off",
    "query is one name",
    "query is empty",
    "nothing has a vector",
    "knows no word",
)
_ENOUGH_GOOD = 3


class Search:
    """Searches all that one project remembers.

    `finders` has, for every kind of record, the sources its hits say they are, and what finds it.
    `reranker` returns who ranks the best once more, if there is one. `imagine` writes what an
    answer might say, within a number of seconds. `code_note` says what has to be known of hits in
    code: that there is no index, or not all of it yet.
    """

    def __init__(
        self,
        project: ProjectContext,
        store: MessageStore,
        *,
        meaning: Meaning | None,
        finders: Sequence[tuple[tuple[str, ...], Find]],
        reranker: Callable[[], Reranker | None] = lambda: None,
        imagine: Callable[[str, float], str | None] = lambda query, seconds: None,
        code_note: Callable[[Session, bool], str | None] = lambda session, is_asked_for: None,
        weights: Weights = WEIGHTS,
    ) -> None:
        self._store = store
        self._project = project
        self._database = project.database
        self._meaning = meaning
        self._finders = finders
        self._reranker = reranker
        self._imagine = imagine
        self._code_note = code_note
        self._weights = weights
        self._deadline_seconds = project.settings.search_deadline_seconds
        self.messages = MessageSearch(
            store, project.clock, project.settings, meaning=meaning, weights=weights
        )

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
        phase: str | None = None,
        recent_tools: Sequence[str] = (),
        files: Sequence[str] = (),
        min_score: float | None = None,
        deep: bool = False,
        may_imagine: bool = False,
    ) -> Answer:
        """Return what answers a query best, of everything that is remembered.

        Any text is a query: words, questions, names, paths, parts of names; ``"words in quotes"``
        stand together. No query can raise or hang: it is bounded in terms, rows and time, and an
        answer that was cut short says so.

        Args:
            query: The query.
            limit: How many hits, at most 1,000.
            sources: Any of ``messages``, ``observations``, ``memories``, ``tasks``, ``working``,
                ``commits``, ``items``, ``code``. Without it, all but code, which is searched only
                if the query names code (a name, a path, "who calls") or if nothing else answers.
            thread_id: Only hits of this thread.
            resource_id: Only hits of this resource.
            role: Only messages of these roles.
            since: Only hits from then on: milliseconds, an ISO 8601 text or a datetime.
            until: Only hits before then.
            task_id: Only messages of this task.
            neighbors: How many messages before and after each message to add, at most two.
            phase: The phase of the work, which weighs types of memories.
            recent_tools: The tools used last.
            files: The files in play.
            min_score: Only hits of this score or more; 0 for everything that was ranked. Without
                it, the bound that was calibrated.
            deep: Wait for an embedder that is not loaded yet.
            may_imagine: Let a model, if there is one, write what an answer might say when little
                was found.

        Returns:
            The hits with their reasons, a trace of the search, and warnings.

        Raises:
            InvalidInputError: An argument is out of range.
        """
        _check(query, limit, sources, min_score)
        intent = understand(query, Hints(phase, tuple(recent_tools), tuple(files)), self._today())
        filters = _filter(
            sources,
            thread_id,
            resource_id,
            role=role,
            since=since,
            until=until,
            task_id=task_id,
            limit=limit,
            is_about_code=intent.is_about_code,
        )
        stop_at = self._project.clock.monotonic() + self._deadline_seconds
        vector, note = self._vector(intent.query, deep)
        try:
            with self._database.read(self._deadline_seconds) as session:
                within = self._within(session, filters)
                if within is None:
                    return Answer((), 0, Trace(0, 0, 0, query_type=intent.type))
                haul, found, relevance = self._find(
                    session,
                    intent,
                    vector,
                    within=within,
                    filters=filters,
                    limit=limit,
                    neighbors=neighbors,
                )
                if "code" in filters.sources or any(each.kind == "code" for each in found):
                    code_note = self._code_note(session, not filters.is_open)
                    haul.warnings += [code_note] if code_note else []
        except DeadlineError:
            return Answer(
                (),
                0,
                Trace(0, 0, 0, is_complete=False, notes=("stopped at the deadline",)),
                (OUT_OF_TIME,),
            )
        good = [each for each in found if each.relevance >= self._weights.relevance.good]
        if may_imagine and len(good) < _ENOUGH_GOOD:
            found, imagined = self._imagined(
                intent, found, within, filters=filters, limit=limit, neighbors=neighbors
            )
            note += imagined
        best, scale, reranked = self._rank(intent, haul, found, stop_at)
        hits, total = self._select(best, haul, relevance, min_score)
        others = len(found) - len(haul.found)
        trace = _trace(
            intent, haul, others, used_meaning=vector is not None, stages=(note, scale, reranked)
        )
        if vector is None and not any(reason in note for reason in _NO_TROUBLE):
            haul.warnings.append(f"Answered by words alone; meaning was {note}.")
        nearest: tuple[Hit, ...] = ()
        if not hits:
            few = nlargest(
                min(limit, self._weights.relevance.nearest), best, key=lambda each: each.relevance
            )
            nearest = fold_copies(_hits(few, relevance), limit)
        shown = fold_copies(hits, limit)
        return Answer(shown, total, trace, tuple(haul.warnings), nearest=nearest)

    def search_threads(
        self,
        query: str,
        limit: int = 10,
        *,
        resource_id: str | None = None,
        role: str | Collection[str] | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        min_score: float | None = None,
        deep: bool = False,
    ) -> ThreadAnswer:
        """Return the threads that answer best, by all their messages."""
        _check(query, limit, None, min_score)
        intent = understand(query, None, self._today())
        filters = _filter(
            ("messages",),
            None,
            resource_id,
            role=role,
            since=since,
            until=until,
            task_id=None,
            limit=limit,
        )
        vector, _ = self._vector(intent.query, deep)
        try:
            with self._database.read(self._deadline_seconds) as session:
                within = self._within(session, filters)
                if within is None or (not intent.query.terms and vector is None):
                    return ThreadAnswer()
                return self.messages.search_threads(
                    session, intent, vector, within=within, limit=limit, min_score=min_score
                )
        except DeadlineError:
            return ThreadAnswer()

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        """Words and names of this project that begin with ``prefix``, shortest first."""
        start = fold(prefix[:200]).strip().lower()[:64]
        if not start or limit < 1 or not is_id(start):
            return []
        with self._database.read(self._deadline_seconds) as session:
            return self._database.words.starting(
                session, self._store.scope.project_no, start, limit=min(limit, MOST_HITS)
            )

    def _today(self) -> date:
        return local_time(zone_of(self._project.timezone), self._project.clock.now_ms()).date()

    def _vector(self, query: Query, deep: bool) -> tuple[Vector | None, str]:
        if self._meaning is None:
            return None, "not used: the embedder is off"
        if whole_name(query) is not None:
            return None, "not used: the query is one name"
        if not query.text.strip():
            return None, "not used: the query is empty"
        return self._meaning.query_vector(query.text, deep=deep)

    def _find(
        self,
        session: Session,
        intent: QueryIntent,
        vector: Vector | None,
        within: Within,
        filters: SearchFilter,
        limit: int,
        neighbors: int,
    ) -> tuple[MessageMatches, list[SearchCandidate], Relevance]:
        """Return what may answer, each with its relevance."""
        haul = MessageMatches()
        if filters.sources & {"raw", "compacted"}:
            haul = self.messages.find(
                session,
                intent,
                vector,
                within=within,
                limit=limit,
                filters=filters,
                neighbors=neighbors,
            )
        found = list(haul.found)
        frequencies, total = dict(haul.frequencies), haul.rows

        def judge() -> Relevance:
            relevance = Relevance(
                haul.query or intent.query, frequencies, total, self._weights.relevance
            )
            if vector is not None:
                cosines = haul.fusion.close.first_cosines.values() if haul.fusion else ()
                others = [each.cosine for each in found if each.kind != "message"]
                relevance.calibrate(
                    vector.model_id, [*cosines, *(each for each in others if each is not None)]
                )
            for each in found:
                # Code is scored by the words that it knows alone.
                share = relevance.coverage(each.terms) if each.kind == "code" else each.words
                words = min(each.words, share)
                each.relevance = relevance.rate(each.terms, words, each.cosine)
            return relevance

        if filters.is_about_messages or not (intent.query.terms or vector is not None):
            return haul, found, judge()
        wall = None if self._store.is_alone(session) else self._store.scope.project_no
        if haul.is_by_name:
            # Where the name itself was said, what holds only parts of it is no answer.
            intent = replace(intent, query=intent.query.first)

        def find_in(filters: SearchFilter) -> Relevance:
            nonlocal total
            for sources, find in self._finders:
                if filters.sources.intersection(sources):
                    candidates, counts, size = find(session, intent, vector, wall, filters)
                    found.extend(candidates)
                    total += size
                    for term, count in counts.items():
                        frequencies[term] = frequencies.get(term, 0) + count
            return judge()

        relevance = find_in(filters)
        if haul.is_complete and filters.is_open and "code" not in filters.sources:
            best = max((each.relevance for each in found), default=0.0)
            if best < self._weights.relevance.bound:
                relevance = find_in(replace(filters, sources=frozenset({"code"})))
        return haul, found, relevance

    def _imagined(
        self,
        intent: QueryIntent,
        candidates: list[SearchCandidate],
        within: Within,
        filters: SearchFilter,
        limit: int,
        neighbors: int,
    ) -> tuple[list[SearchCandidate], str]:
        """Add what is near to an answer that a model invents, which is never shown."""
        if self._meaning is None:
            return candidates, ""
        imagined = self._imagine(intent.query.text, IMAGINE_SECONDS)
        vector, _ = self._meaning.query_vector(imagined, deep=True) if imagined else (None, "")
        if vector is None:
            return candidates, ""
        merged = {(each.kind, each.no): each for each in candidates}
        try:
            with self._database.read(self._deadline_seconds) as session:
                for each in self._find(
                    session,
                    intent,
                    vector,
                    within=within,
                    filters=filters,
                    limit=limit,
                    neighbors=neighbors,
                )[1]:
                    there = merged.setdefault((each.kind, each.no), each)
                    there.meaning = max(there.meaning or 0.0, each.meaning or 0.0)
                    there.relevance = max(there.relevance, each.relevance)
        except DeadlineError:
            return candidates, ""
        return list(merged.values()), "; also by an imagined answer"

    def _rank(
        self,
        intent: QueryIntent,
        haul: MessageMatches,
        candidates: list[SearchCandidate],
        stop_at: float,
    ) -> tuple[list[SearchCandidate], str, str]:
        """Return everything that answers at all, best first, and two lines about the order.

        Of equals the newer comes first, so that the order is always the same.
        """
        # One scale for all sources, over the cosines of every candidate.
        cosines = haul.fusion.close.cosines.values() if haul.fusion else ()
        others = [each.meaning for each in candidates if each.kind != "message"]
        scale = Scale(
            max((each.words for each in candidates), default=0.0),
            [*cosines, *(cosine for cosine in others if cosine is not None)],
            self._weights.fusion,
            code_share=haul.fusion.code_share if haul.fusion else 0.0,
        )
        boost = Boost(intent, self._project.clock.now_ms(), weights=self._weights.boost)
        for each in candidates:
            each.fused = scale.rate(each)
        # Among messages the learned model orders: the first of it gets the best of their scores,
        # so that they stand among other records as high as their words and meanings say.
        messages = sorted(
            [each for each in candidates if each.merit is not None],
            key=lambda each: (-(each.merit or 0.0), -each.hit.created_at, -each.no),
        )
        scores = sorted([each.fused for each in messages], reverse=True)
        for each, fused in zip(messages, scores, strict=True):
            each.fused = fused
        for each in candidates:
            boost.apply(each)
        rated = [each for each in candidates if each.score > 0]
        rated.sort(key=lambda each: (-each.score, -each.hit.created_at, each.kind, -each.no))
        try:
            reranker = self._reranker()
        except SmaraError as error:
            log.warning("rerank.unusable", error=error.code)
            reranker = None
        best, note = rerank(
            intent.query.text,
            rated,
            reranker,
            deadline_seconds=stop_at - self._project.clock.monotonic(),
            share=self._weights.fusion.reranker,
        )
        is_timed = intent.period is not None
        ranked = newer_first(best, self.messages.around, is_timed)
        if intent.query.phrases:
            # What holds the quoted words stands first, whatever else was found out about it.
            ranked.sort(
                key=lambda each: (
                    not any(
                        f"phrase '{phrase.text}'" in each.hit.why
                        or (
                            each.kind != "message"
                            and letters_of(phrase.text) in letters_of(each.hit.content)
                        )
                        for phrase in intent.query.phrases
                    )
                )
            )
        return ranked, scale.render(), note

    def _select(
        self,
        best: Sequence[SearchCandidate],
        haul: MessageMatches,
        relevance: Relevance,
        min_score: float | None,
    ) -> tuple[tuple[Hit, ...], int]:
        """Return the hits that are relevant, and how many there are in all."""
        weights = self._weights.relevance.at_least(min_score)
        chosen = select([each.relevance for each in best], weights)
        hits = _hits([best[place] for place in chosen], relevance)
        if not hits or haul.fusion is None:
            return hits, len(hits)
        others = sum(best[place].kind != "message" for place in chosen)
        least = max(weights.least, weights.share * max(hit.score for hit in hits))
        return hits, max(len(hits), others + haul.fusion.count(relevance, least))

    def _within(self, session: Session, filters: SearchFilter) -> Within | None:
        """The scope of a search among messages, or ``None`` when nothing can lie in it."""
        if any(
            each is not None and not is_id(each)
            for each in (filters.thread_id, filters.resource_id, filters.task_id)
        ):
            return None
        thread_no = None
        if filters.thread_id is not None:
            thread_no = self._store.thread_no(session, filters.thread_id)
            if thread_no is None:
                return None
        return Within(
            self._store.scope.project_no,
            thread_no,
            filters.resource_id,
            roles=filters.roles,
            since_ms=filters.since_ms,
            until_ms=filters.until_ms,
            task_id=filters.task_id,
        )


def _trace(
    intent: QueryIntent,
    haul: MessageMatches,
    others: int,
    used_meaning: bool,
    stages: tuple[str, str, str],
) -> Trace:
    terms = len(intent.query.terms)
    return Trace(
        terms,
        haul.postings,
        haul.candidates + others,
        is_complete=haul.is_complete,
        notes=tuple(haul.notes),
        query_type=intent.type,
        used_meaning=used_meaning,
        stages=(
            f"understood: {intent.render()}",
            f"words: {terms} terms, {haul.postings:,} postings,"
            f" {haul.candidates:,} rows of messages, {others:,} other records",
            f"meaning: {stages[0]}",
            f"scores: {stages[1]}",
            f"reranked: {stages[2]}",
        ),
    )


def _hits(best: Sequence[SearchCandidate], relevance: Relevance) -> tuple[Hit, ...]:
    shares = [relevance.shares(each.terms) for each in best]
    return tuple(
        replace(
            each.hit,
            rank=rank,
            score=round(each.relevance, 4),
            why=each.hit.why
            if each.words or each.meaning is None
            else ("close in meaning", *each.hit.why),
            stages=Stages(
                each.words,
                each.cosine,
                each.fused,
                factors=tuple(each.factors),
                coverage=share.coverage,
                unknown=share.unknown,
                unknown_names=share.unknown_names,
                parts=each.parts,
            ),
        )
        for rank, (each, share) in enumerate(zip(best, shares, strict=True), 1)
    )


def _filter(
    sources: Collection[str] | None,
    thread_id: str | None,
    resource_id: str | None,
    role: str | Collection[str] | None,
    since: int | str | datetime | None,
    until: int | str | datetime | None,
    task_id: str | None,
    limit: int,
    is_about_code: bool = False,
) -> SearchFilter:
    roles = (role,) if isinstance(role, str) else tuple(role or ())
    for each in roles:
        one_of(each, ROLES, "role")
    return SearchFilter(
        expand_sources(sources, is_about_code),
        lookup_id(thread_id),
        lookup_id(resource_id),
        roles=roles,
        since_ms=to_ms(since, "since"),
        until_ms=to_ms(until, "until"),
        task_id=task_id,
        is_open=sources is None,
        limit=limit,
    )


def _check(
    query: str, limit: int, sources: Collection[str] | None, min_score: float | None
) -> None:
    check_query(query, limit)
    if min_score is not None and not 0 <= min_score <= 1:
        raise InvalidInputError(f"min_score must be a number from 0 to 1; got {min_score!r}.")
    if isinstance(sources, str):
        raise InvalidInputError("sources must be a list of names, not one text.")
    for source in sources or ():
        if source not in SOURCES:
            raise InvalidInputError(f"sources may hold {', '.join(SOURCES)}; got {source!r}.")
