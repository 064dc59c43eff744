"""Rank tasks, observations, memories and working memory as search sources.

:class:`RecordFinder` finds records of any source by words (BM25 over head and body) and by meaning;
a source only counts and loads its rows. Hits that name code carry a freshness verdict for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.core.freshness import Freshness
from smara.core.startup.record import dataclass, replace
from smara.database.database import Database, RecordIndex, Session
from smara.database.fulltext import RecordKind
from smara.errors import DeadlineError, SmaraError
from smara.search.bm25 import IndexMatches, lookup_terms
from smara.search.models import KINDS, Hit, SearchCandidate, SearchFilter, SourceMatches
from smara.search.query import Query, QueryIntent, letters_of, verified_term
from smara.search.weights import WEIGHTS, Weights, WordWeights

if TYPE_CHECKING:
    from smara.commits.store import CommitStore
    from smara.frameworks.item_store import ItemStore
    from smara.knowledge.store import KnowledgeStore
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning
    from smara.observations.store import ObservationStore
    from smara.tasks.models import Task
    from smara.tasks.store import TaskStore
    from smara.working.store import WorkingStore


# How memories or observations stand to the code they name, by number; see ``codegraph.anchors``.
CodeJudge = Callable[
    [Session, Literal["memory", "observation"], Sequence[int]], Mapping[int, Freshness]
]


def no_code(
    session: Session, owner: Literal["memory", "observation"], numbers: Sequence[int]
) -> Mapping[int, Freshness]:
    """For those who know nothing of code."""
    return {}


def judge_code(
    judge: CodeJudge,
    session: Session,
    owner: Literal["memory", "observation"],
    numbers: Sequence[int],
) -> Mapping[int, Freshness]:
    """The verdicts; what goes wrong in reading code takes no answer away."""
    try:
        return judge(session, owner, numbers)
    except DeadlineError:
        raise
    except (SmaraError, OSError) as error:
        log.warning("search.code_not_judged", error=str(error))
        return {}


def metadata_of(freshness: Freshness | None) -> dict[str, Any]:
    """Return the verdict as metadata of a hit."""
    if freshness is None:
        return {}
    hedge = freshness.hedge if freshness.telling != "tell" else None
    facts = {"freshness": freshness.verdict, "hedge": hedge, "changed": freshness.changed}
    return {name: value for name, value in facts.items() if value is not None}


def files_now(files: Sequence[str], freshness: Freshness | None) -> tuple[str, ...]:
    """Return files by the names they have today."""
    names: dict[str, list[str]] = {}
    for each in freshness.anchors if freshness is not None else ():
        if each.now_path is not None:
            names.setdefault(each.path, []).append(each.now_path)
    # Where one anchor still stands in a file, the file has not moved.
    return tuple(
        dict.fromkeys(
            path if path in names.get(path, [path]) else names[path][-1] for path in files
        )
    )


# How many rows of one term are read, newest first.
TERM_LIMIT = 1_000
# How many rows are ranked, and more where more are asked for.
CANDIDATES = 150


class RecordScore(NamedTuple):
    """A record's score by words, relative to holding each once."""

    words: float
    shown: tuple[tuple[str, str], ...] = ()
    """Each term that it holds, and the word of the query it comes from."""
    terms: frozenset[str] = frozenset()

    def why(
        self, text: str, title: str | None = None, files: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Return the query's words in the record, each with its place.

        The index also finds what is noted with a record, such as its type, and words by their
        stems. What has a score and no term was found by its id.
        """
        named = (("the title", title or ""), ("the text", text), ("its files", " ".join(files)))
        places = [(place, letters_of(words)) for place, words in named if words]
        found = dict[str, None]()
        for term, word in self.shown:
            for place, letters in places:
                if reason := verified_term(word, term, letters):
                    found[f"{reason} in {place}"] = None
                    break
        if self.shown and not found:
            from smara.core.text import analyze

            term, word = self.shown[0]
            terms = analyze(text)
            is_there = term in f"{terms.prose} {terms.code}".split()
            place = "the text" if is_there else "what is noted with it"
            found[f"a form of {word} in {place}"] = None
        return tuple(found) if self.shown or not self.words else ("matches the id",)


class RecordMatches:
    """The records that hold terms of a query."""

    def __init__(
        self,
        session: Session,
        records: RecordIndex,
        kind: RecordKind,
        *,
        project_no: int | None,
        total: int,
        query: Query,
        weights: WordWeights,
    ) -> None:
        self._terms = lookup_terms(query, weights)
        self._matches = IndexMatches(
            session,
            records,
            kind,
            project_no=project_no,
            total=max(total, 1),
            terms=self._terms,
            weights=weights,
            most_rows=TERM_LIMIT,
        )
        self.frequencies, self.total = self._matches.frequencies, max(total, 1)

    def scored(self, most: int = CANDIDATES) -> dict[int, RecordScore]:
        """Return the best candidates' scores by number, with reasons per term."""
        found: dict[int, RecordScore] = {}
        ideal = self._matches.ideal or 1.0
        for no, row in self._matches.scored(most, counts_head=True).items():
            shown = tuple(
                (text, term.word) for text, term in self._terms.items() if text in row.by_term
            )
            found[no] = RecordScore(row.score / ideal, shown, frozenset(row.by_term))
        return found


# How many records of a kind are looked at because of their meaning.
NEAREST = 30
# How many more records than are asked for are loaded: boosts change the order.
SPARE = 6
# Where an observation may come from that makes it no base for what is told unasked.
_OUTSIDE = frozenset({"web", "mcp", "imported", "other"})


@dataclass(frozen=True, slots=True)
class RecordSource:
    """One kind of record, as a search needs it."""

    kind: RecordKind
    total: Callable[[Session], int]
    """How many this project has."""
    load: Callable[[Session, Sequence[int]], Mapping[int, Hit]]
    """The records of numbers as hits, without those retired or gone."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that its hits say they come from."""
        return next(sources for sources in KINDS.values() if self.kind in sources)


# Returns the best records of one kind, not yet in order: by a query, its vector, the number of the
# project unless it is alone in its store, and filters.
Find = Callable[[Session, QueryIntent, "Vector | None", int | None, SearchFilter], SourceMatches]


@dataclass(frozen=True, eq=False)
class RecordFinder:
    """Finds the records of one kind by words and by meaning."""

    database: Database
    source: RecordSource
    meaning: Meaning | None
    weights: Weights = WEIGHTS

    def find(
        self,
        session: Session,
        intent: QueryIntent,
        vector: Vector | None,
        wall: int | None,
        filters: SearchFilter,
    ) -> SourceMatches:
        """The best of them, not yet in order."""
        total = self.source.total(session)
        if not total:
            return SourceMatches([], {}, 0)
        gathered = RecordMatches(
            session,
            self.database.records,
            self.source.kind,
            project_no=wall,
            total=total,
            query=intent.query,
            weights=self.weights.record_words,
        )
        most = max(CANDIDATES if filters.is_narrow else 0, filters.limit + SPARE)
        scores = gathered.scored(max(CANDIDATES, filters.limit))
        close: dict[int, float] = {}
        kind = self.source.kind
        # Commits have no vectors: their messages name what they are about. A decision is found as
        # the memory that it is. Items of frameworks have vectors of the framework's own.
        if (
            vector is not None
            and self.meaning is not None
            and (kind != "commit" and kind != "decision" and kind != "item")
        ):
            close = dict(self.meaning.nearest(session, kind, vector, max(NEAREST, most)))
            close |= self.meaning.scores(
                session, kind, [no for no in scores if no not in close], vector
            )
        nothing = RecordScore(0.0)
        best = sorted(
            {*scores, *close},
            key=lambda no: (scores.get(no, nothing).words + close.get(no, 0.0), no),
            reverse=True,
        )
        found = []
        for no, hit in self.source.load(session, best[:most]).items():
            if filters.includes(hit):
                score = scores.get(no, nothing)
                why = score.why(hit.content, hit.title, hit.files)
                hit = replace(hit, why=why, terms=intent.query.texts)
                found.append(
                    SearchCandidate(
                        self.source.kind,
                        no,
                        hit,
                        words=score.words,
                        meaning=close.get(no),
                        cosine=close.get(no),
                        terms=score.terms,
                    )
                )
        return SourceMatches(found, gathered.frequencies, total)


def text_of(task: Task) -> str:
    """Return everything that was written about a task."""
    return "\n".join(filter(None, (task.title, task.full_description, task.summary)))


def task_source(store: TaskStore) -> RecordSource:
    """Return the source of tasks."""

    def load(session: Session, numbers: Sequence[int]) -> Mapping[int, Hit]:
        return {
            no: Hit(
                task.id,
                "task",
                text_of(task),
                created_at=task.created_at,
                task_id=task.id,
                metadata={
                    "status": task.status,
                    "priority": task.priority,
                    "shortId": task.short_id,
                },
                type=task.type,
                title=task.title,
            )
            for no, task in store.by_numbers(session, numbers).items()
        }

    return RecordSource("task", lambda session: store.state(session).all, load)


def observation_source(store: ObservationStore, freshness: CodeJudge = no_code) -> RecordSource:
    """Return the source of observations and reflections, whatever their state."""

    def load(session: Session, numbers: Sequence[int]) -> Mapping[int, Hit]:
        rows = store.by_numbers(session, numbers)
        resources: dict[str, str] = dict(
            store.rows(
                session,
                "SELECT id, resource_id FROM threads WHERE project_no = :project AND id IN (:some)",
                some=sorted({each.thread_id for each in rows.values() if each.thread_id}),
            )
        )
        code = judge_code(freshness, session, "observation", numbers=list(rows))
        return {
            no: Hit(
                each.id,
                each.kind,
                "\n".join((each.text, *each.details)),
                thread_id=each.thread_id,
                resource_id=resources.get(each.thread_id or ""),
                created_at=each.said_at,
                metadata={
                    "priority": each.priority,
                    "state": each.state,
                    "firstSeq": each.first_seq,
                    "lastSeq": each.last_seq,
                    "taint": list(each.taint),
                    **metadata_of(code.get(no)),
                },
                type=each.category,
                files=files_now(each.files, code.get(no)),
                is_trusted=not _OUTSIDE.intersection(each.taint),
            )
            for no in numbers
            if (each := rows.get(no)) is not None
        }

    return RecordSource("observation", store.count, load)


def memory_source(
    store: KnowledgeStore, clock: Clock, freshness: CodeJudge = no_code
) -> RecordSource:
    """Return the source of memories in force.

    Replacements stand in for the old.
    """

    def load(session: Session, numbers: Sequence[int]) -> Mapping[int, Hit]:
        from smara.knowledge.decay import confidence_now, staleness_of
        from smara.knowledge.trust import may_inject

        level, now = store.state(session).trust_level, clock.now_ms()
        memories = {
            no: each for no, each in store.by_numbers(session, numbers).items() if each.is_active
        }
        verdicts = judge_code(freshness, session, "memory", numbers=list(memories))
        found = {}
        for no, each in memories.items():
            code = verdicts.get(no)
            stale = staleness_of(each, now, None, code=code)
            confidence = confidence_now(each, now, *stale.factors).value
            telling = confidence_now(each, now, *stale.telling_factors).value
            found[no] = Hit(
                each.id,
                "memory",
                each.content,
                created_at=each.evidence_at,
                metadata={
                    "shortId": each.short_id,
                    "source": each.source,
                    "confidence": round(confidence, 4),
                    "tier": each.tier,
                    "isTainted": each.is_tainted,
                    "isStale": each.is_stale,
                    "citation": each.label,
                    **metadata_of(code),
                },
                type=each.type,
                files=files_now(each.files, code),
                is_confirmed=each.is_verified,
                is_trusted=may_inject(each, telling, level, is_gone=stale.is_gone).allowed,
            )
        return found

    return RecordSource("memory", lambda session: store.state(session).active, load)


def working_source(store: WorkingStore) -> RecordSource:
    """Return the source of the pages of working memory."""

    def load(session: Session, numbers: Sequence[int]) -> Mapping[int, Hit]:
        pages = store.by_numbers(session, numbers)
        return {
            no: Hit(
                page.id,
                "working",
                page.content,
                thread_id=page.thread_id,
                resource_id=page.resource_id,
                created_at=page.updated_at,
                metadata={"scope": page.scope, "version": page.version},
            )
            for no in numbers
            if (page := pages.get(no)) is not None
            and page.id is not None
            and page.updated_at is not None
        }

    return RecordSource("working", store.count, load)


def commit_source(store: CommitStore) -> RecordSource:
    """Return the source of the commits of the history."""

    def load(session: Session, numbers: Sequence[int]) -> Mapping[int, Hit]:
        return {
            no: Hit(
                commit.sha,
                "commit",
                commit.message,
                created_at=commit.at,
                metadata={
                    "shortId": commit.short_id,
                    "author": commit.author,
                    "functions": list(commit.functions[:10]),
                },
                title=commit.subject,
                files=commit.files[:10],
            )
            for no, commit in store.by_numbers(session, numbers).items()
        }

    return RecordSource("commit", lambda session: store.state(session).total, load)


def item_source(store: ItemStore, clock: Clock) -> RecordSource:
    """Return the source of what agents put into frameworks' stores."""

    def load(session: Session, numbers: Sequence[int]) -> Mapping[int, Hit]:
        return {
            no: Hit(
                item.id,
                "item",
                item.content,
                resource_id="/".join(item.namespace) or None,
                created_at=item.updated_at,
                metadata={"framework": item.framework, "name": item.name, "by": "agent"},
                title=item.name,
                is_confirmed=False,
                is_trusted=False,
            )
            for no, item in store.by_numbers(session, numbers, clock.now_ms()).items()
        }

    return RecordSource("item", store.count, load)
