"""Whether something new is new: what is there already is found by its words, its subject and, when
asked, its meaning.

Looking stays cheap however much is remembered: the rarest words of the new statement are
looked up in the index, and only the few memories that share most of them are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from smara.database.database import Session
from smara.database.records import record_no, terms_of
from smara.knowledge.contradictions import tells_of_change
from smara.knowledge.models import TypedMemory
from smara.knowledge.statements import is_repeated_in, is_same_in_meaning, read
from smara.knowledge.store import KnowledgeStore, Stored

SimilarMemories = Callable[[TypedMemory], Sequence[tuple[int, float]]]
"""A memory that is not stored yet → (number of one that is, cosine), closest first; empty without
an embedder.
"""

SAME_MEANING = 0.88
"""Above this cosine two statements with the same facts say the same."""
_TERMS = 24
_ROWS_PER_TERM = 200
_LEAST_SHARED = 0.4
"""With fewer words in common two statements neither repeat nor contradict each other, as far as
words can tell.
"""
CANDIDATES = 24


class Known(NamedTuple):
    """A memory that says the same already, and how that was seen."""

    stored: Stored
    how: str


def candidates(
    session: Session,
    store: KnowledgeStore,
    text: str,
    files: Sequence[str] = (),
    subject: str | None = None,
) -> list[Stored]:
    """The active memories that have most in common with a text, those with rarer words first."""
    terms = sorted(
        set(" ".join(terms_of("", text).bodies).split()), key=lambda term: (-len(term), term)
    )[:_TERMS]
    weights: dict[int, float] = {}
    shared: dict[int, int] = {}
    project, records = store.scope.project_no, store.database.records
    for term in terms:
        rows = records.match(session, term, project, "memory", _ROWS_PER_TERM)
        weight = 1 / (len(rows) or 1)
        for row in rows:
            no = record_no(row)
            weights[no] = weights.get(no, 0.0) + weight
            shared[no] = shared.get(no, 0) + 1
    # What tells of a change may share only its subject with what it ends.
    least = 2 if tells_of_change(text) else max(2, _LEAST_SHARED * len(terms))
    best = sorted((no for no in weights if shared[no] >= least), key=lambda no: (-weights[no], no))[
        :CANDIDATES
    ]
    if subject is not None:
        best += store.numbers(
            session, " AND m.subject_key = ? AND m.deprecated_at IS NULL", (subject,)
        )
    if files:
        best += _about(session, store, files[0])
    found = store.by_numbers(session, best, has_relations=False)
    return [Stored(no, memory) for no, memory in found.items() if memory.is_active]


def _about(session: Session, store: KnowledgeStore, path: str) -> list[int]:
    """The newest memories about a file."""
    rows = session.all(
        store.sql(
            "SELECT memory_no FROM memory_keys WHERE project_no = :project AND kind = 'file' AND "
            "value = ?"
            f" ORDER BY memory_no DESC LIMIT {CANDIDATES}"
        ),
        (path,),
    )
    return [row[0] for row in rows]


def find_known(
    new: TypedMemory, around: Iterable[Stored], cosines: Mapping[int, float]
) -> Known | None:
    """The memory that says all of it already: in the same words, in nearly the same, or with the
    same meaning.

    Memories of another type do not count, but for the exact same words: "tests need Redis" as
    a gotcha and as a requirement are used differently, and two rows of the same words never.
    """
    statement = read(new.content)
    best: Known | None = None
    for stored in around:
        other = read(stored.memory.content)
        if other.fingerprint == statement.fingerprint:
            return Known(stored, "the same words")
        if stored.memory.type != new.type or best is not None:
            continue
        cosine = cosines.get(stored.no, 0.0)
        if is_repeated_in(statement, other):
            best = Known(stored, "nearly the same words")
        elif is_same_in_meaning(statement, other, cosine, least=SAME_MEANING):
            best = Known(stored, f"the same meaning, with a similarity of {cosine:.2f}")
    return best
