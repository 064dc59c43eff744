"""Gather candidate messages by their terms at a bounded cost.

Each term is looked up newest first, up to a limit. Common terms are also looked up in conjunction,
which finds old rows that hold them together. Then terms, role, time and neighbors of each row are
fetched; project isolation and filters are checked again on the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from smara.core.clock import Clock
from smara.core.startup.record import dataclass, field
from smara.core.terms import expand
from smara.database.database import FullText, Row, Session, Words
from smara.database.fulltext import Within, no_of, row_of
from smara.errors import CorruptError, DeadlineError
from smara.messages.store import MessageStore
from smara.search.bm25 import rarity
from smara.search.query import Query, QueryTerm
from smara.search.rank import AROUND, MessageCandidate

# How many rows of one term are read.
TERM_LIMIT = 5_000
# How many rows of all terms together are read.
POSTINGS_LIMIT = 24_000
# How many rows of one conjunction are read.
CONJUNCTION_LIMIT = 2_000
# How many rows go on to be ranked.
CANDIDATES = 500
FEWER_CANDIDATES, MANY_ROWS = 300, 2_000
"""How many of more than so many: what lies behind them shares common words alone.

Among 10,866 messages of real conversations the first answer stays the same in all cases, and 97 of
a hundred among the first ten; among few rows it is the neighbors and the meaning of such a row that
may lift it.
"""
# The same when threads are ranked, each by several of its rows.
THREAD_CANDIDATES = 1_000
_MOST_EXPANSIONS = 8
_SHORTEST_FRAGMENT = 3


@dataclass(slots=True)
class TermMatches:
    """Rows with their weights, and what was read to find them."""

    weights: dict[int, float] = field(default_factory=dict)
    frequencies: dict[str, int] = field(default_factory=dict)
    added_terms: list[QueryTerm] = field(default_factory=list)
    postings: int = 0
    is_complete: bool = True
    notes: list[str] = field(default_factory=list)

    def candidates(self, limit: int) -> list[int]:
        """The rows that are ranked for an answer of so many."""
        return self.best(
            max(FEWER_CANDIDATES if len(self.weights) > MANY_ROWS else CANDIDATES, limit)
        )

    def best(self, count: int) -> list[int]:
        """The heaviest rows, newer first among equals."""
        if len(self.weights) <= count:
            return list(self.weights)
        least = sorted(self.weights.values(), reverse=True)[count - 1]
        ordered = sorted(
            [(weight, row) for row, weight in self.weights.items() if weight >= least], reverse=True
        )
        return [row for _, row in ordered[:count]]


class Gather:
    """A lookup of terms until a limit or the deadline."""

    def __init__(
        self,
        session: Session,
        fulltext: FullText,
        words: Words,
        within: Within,
        total_rows: int,
        clock: Clock,
        stop_at: float,
    ) -> None:
        self._session = session
        self._fulltext = fulltext
        self._words = words
        self._within = within
        self._total_rows = max(total_rows, 1)
        self._clock = clock
        self._stop_at = stop_at
        self._found = TermMatches()
        self._capped: list[str] = []

    def run(self, query: Query, wanted_rows: int) -> TermMatches:
        """Return the rows for a query.

        If the database is slow, those found so far.
        """
        try:
            if not self._whole_name_suffices(query, wanted_rows):
                for term in query.telling:
                    self._look_up(term)
                self._look_up_conjunctions()
                self._look_up_fragments(query)
        except DeadlineError:
            self._found.is_complete = False
            self._found.notes.append("stopped at the deadline")
        return self._found

    def _whole_name_suffices(self, query: Query, wanted_rows: int) -> bool:
        """A query that is one name is answered by that name; its parts only fill up."""
        terms = query.telling
        if len(terms) < 2 or any(term.group != terms[0].group for term in terms) or query.phrases:
            return False
        name = terms[0]
        if name.kind not in ("identifier", "path"):
            return False
        self._look_up(name)
        if not self._found.weights:
            return False
        if len(self._found.weights) < wanted_rows:
            # Rows that hold all the parts of a name, as prose does.
            parts = [term.text for term in terms if term.kind == "part"]
            if len(parts) > 1:
                self._add(self._match(parts, CONJUNCTION_LIMIT), "+".join(parts), share=0.5)
        return True

    def _look_up(self, term: QueryTerm) -> None:
        if term.text in self._found.frequencies:
            return
        room = min(TERM_LIMIT, POSTINGS_LIMIT - self._found.postings)
        if room <= 0 or self._clock.monotonic() > self._stop_at:
            self._found.is_complete = False
            return
        rows = self._match([term.text], TERM_LIMIT, term.is_prefix)[:room]
        if len(rows) >= room:
            self._capped.append(term.text)
            self._found.is_complete = False
        self._add(rows, term.text)

    def _look_up_conjunctions(self) -> None:
        """Old rows that hold several common terms at once."""
        capped = self._capped[:6]
        if len(capped) < 2:
            return
        pairs = [list(pair) for pair in pairwise(capped)]
        for terms in [capped, *pairs] if len(capped) > 2 else [capped]:
            if self._clock.monotonic() > self._stop_at:
                return
            weight = sum(
                [rarity(self._found.frequencies[term], self._total_rows) for term in terms]
            )
            for row in self._match(terms, CONJUNCTION_LIMIT):
                if self._found.weights.get(row, 0.0) < weight:
                    self._found.weights[row] = weight

    def _look_up_fragments(self, query: Query) -> None:
        """Look up names that contain a word which no row holds."""
        project = self._within.project_no
        for term in query.telling:
            fragment = term.word.lower()
            is_unknown = not self._found.frequencies.get(term.text, 1)
            if not is_unknown or term.kind == "cjk" or len(fragment) < _SHORTEST_FRAGMENT:
                continue
            names = self._words.starting(
                self._session, project, fragment, limit=_MOST_EXPANSIONS
            ) or self._words.containing(self._session, project, fragment, limit=_MOST_EXPANSIONS)
            added: dict[str, QueryTerm] = {}
            for word in names:
                whole = next(iter(expand(word).terms), None)
                if whole is not None and whole.text not in self._found.frequencies:
                    added[whole.text] = QueryTerm(
                        whole.text,
                        whole.kind,
                        term.group,
                        word=f"{word} (contains {term.word})",
                        closeness=0.9 * len(fragment) / max(len(word), len(fragment)),
                    )
            for each in added.values():
                self._look_up(each)
                self._found.added_terms.append(each)

    def _match(self, terms: Sequence[str], limit: int, prefix: bool = False) -> list[int]:
        rows = self._fulltext.match(self._session, terms, self._within, limit, prefix)
        self._found.postings = min(POSTINGS_LIMIT, self._found.postings + len(rows))
        return rows

    def _add(self, rows: Sequence[int], term: str, share: float = 1.0) -> None:
        self._found.frequencies[term] = len(rows)
        weight = rarity(len(rows), self._total_rows) * share
        weights = self._found.weights
        if not weights:
            weights.update(dict.fromkeys(rows, weight))
            return
        for row in rows:
            weights[row] = weights.get(row, 0.0) + weight


# How far away a message may stand and still be shown beside another.
REACH = 2
_SCANNED = 2_000
_LENGTHS = ", ".join(
    "(SELECT n.term_count FROM messages n WHERE n.thread_no = m.thread_no"
    f" AND +n.project_no = :project AND n.seq = m.seq {step:+d})"
    for step in AROUND
)


def fetch_candidates(
    session: Session, store: MessageStore, rows: Sequence[int], within: Within
) -> list[MessageCandidate]:
    """Return the candidates of these rows.

    Of what stands around them only the length: a neighbor that holds a term of the query
    is a candidate itself.
    """
    if not rows:
        return []
    records = _records(
        session,
        store,
        sorted({no_of(row) for row in rows}),
        resource_id=within.resource_id,
        has_lengths=True,
    )
    texts = store.database.fulltext.texts(session, rows, store.scope.project_no)
    return _candidates(rows, texts, records)


def scan_candidates(
    session: Session, store: MessageStore, within: Within
) -> list[MessageCandidate]:
    """The newest messages, read without the index."""
    from smara.messages.prepare import stored_terms  # only a damaged index needs it

    found = session.all(
        store.sql(
            "SELECT no, raw_content, parts FROM messages WHERE project_no = :project ORDER BY no "
            "DESC LIMIT ?"
        ),
        (_SCANNED,),
    )
    numbers = sorted(row[0] for row in found)
    records = _records(session, store, numbers, resource_id=within.resource_id, has_lengths=False)
    texts: dict[int, tuple[str, str]] = {}
    for no, stored, layout in found:
        terms = stored_terms(stored, layout)[0]
        texts[row_of(no)] = (terms.prose, terms.code)
    inside = {
        no: record
        for no, record in records.items()
        if within.thread_no in (None, record[1])
        and (not within.roles or record[3] in within.roles)
        and (within.since_ms is None or record[4] >= within.since_ms)
        and (within.until_ms is None or record[4] < within.until_ms)
    }
    return _candidates(texts, texts, inside)


def find_beside(
    session: Session, store: MessageStore, numbers: Sequence[int], count: int
) -> dict[int, tuple[list[int], list[int]]]:
    """Return the numbers of the messages before and after each message."""
    found: dict[int, tuple[list[int], list[int]]] = {no: ([], []) for no in numbers}
    reach = min(count, REACH)
    for no, other, step in store.rows(
        session,
        "SELECT m.no, n.no, n.seq - m.seq FROM messages m JOIN messages n ON n.thread_no = "
        "m.thread_no AND +n.project_no = m.project_no"
        f" AND n.seq BETWEEN m.seq - {reach} AND m.seq + {reach} AND n.no <> m.no"
        " WHERE m.project_no = :project AND m.no IN (:some) ORDER BY n.seq",
        some=numbers if reach > 0 else (),
    ):
        found[no][step > 0].append(other)
    return found


def _records(
    session: Session,
    store: MessageStore,
    numbers: Sequence[int],
    resource_id: str | None,
    has_lengths: bool,
) -> dict[int, Row]:
    """(number, thread, place, role, time, and the lengths of those around it) of messages, by
    number.
    """
    lengths = f", {_LENGTHS}" if has_lengths else ""
    join, where = "", ""
    if resource_id is not None:
        join, where = " JOIN threads t ON t.no = m.thread_no", " AND t.resource_id = ?"
    records = store.rows(
        session,
        f"SELECT m.no, m.thread_no, m.seq, m.role, m.created_at{lengths} FROM messages m{join}"
        f" WHERE m.project_no = :project{where} AND m.no IN (:some)",
        *([resource_id] if where else ()),
        some=numbers,
    )
    return {record[0]: record for record in records}


def _candidates(
    rows: Iterable[int], texts: Mapping[int, tuple[str, str]], records: Mapping[int, Row]
) -> list[MessageCandidate]:
    found = []
    for row in rows:
        record, text = records.get(no_of(row)), texts.get(row)
        if record is None or text is None:
            continue  # outside the resource, or gone since it was matched
        _, thread_no, seq, role, created_at = record[:5]
        if not isinstance(seq, int):
            raise CorruptError(
                "A message has lost its place: the database is damaged. Run `smara doctor`.",
                reason="a message without a place",
            )
        prose, code = text
        length = (prose.count(" ") + 1 if prose else 0) + (code.count(" ") + 1 if code else 0)
        found.append(
            MessageCandidate(
                row,
                thread_no,
                seq,
                role=role,
                created_at=created_at,
                prose=prose,
                code=code,
                length=length,
                around=record[5:],
            )
        )
    return found
