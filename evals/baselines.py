"""The plain baselines: one FTS5 table with the porter tokenizer, the stop words left out, terms
joined by OR.

This is the protocol of the published baselines: ``[^\\W_]+`` words, lower case, minus the
classic list of English stop words, each quoted; ``bm25()`` as it comes. A document is a turn, a
turn with its neighbors, or a session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import apsw

from evals.data import Question, Thread

# The list of NLTK, without its contractions; the figures to compare with were made with it.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "i me my myself we our ours ourselves you your yours yourself yourselves he him his "
        "himself she her "
        "hers herself it its itself they them their theirs themselves what which who whom this "
        "that these "
        "those am is are was were be been being have has had having do does did doing a an the "
        "and but if or "
        "because as until while of at by for with about against between into through during "
        "before after "
        "above below to from up down in out on off over under again further then once here there "
        "when where "
        "why how all any both each few more most other some such no nor not only own same so than "
        "too very s "
        "t can will just don should now d ll m o re ve y ain aren couldn didn doesn hadn hasn "
        "haven isn ma "
        "mightn mustn needn shan shouldn wasn weren won wouldn",
    )
)

Documents = list[tuple[str, str]]
Ranker = Callable[[Question, int], list[str]]


def turns(threads: Sequence[Thread]) -> Documents:
    """Each turn for itself."""
    return [(turn.key, turn.text) for thread in threads for turn in thread.turns]


def windows(threads: Sequence[Thread]) -> Documents:
    """Each turn with the one before and the one after it in its session."""
    return [
        (turn.key, "\n".join(each.text for each in thread.turns[max(0, place - 1) : place + 2]))
        for thread in threads
        for place, turn in enumerate(thread.turns)
    ]


def sessions(threads: Sequence[Thread]) -> Documents:
    """Each session as one document, both roles."""
    return [(thread.key, "\n".join(turn.text for turn in thread.turns)) for thread in threads]


def user_sessions(threads: Sequence[Thread]) -> Documents:
    """Each session as one document, what the user said alone."""
    return [
        (thread.key, "\n".join(turn.text for turn in thread.turns if turn.role == "user"))
        for thread in threads
    ]


def fts5(documents: Documents) -> Ranker:
    """A ranker over an in-memory FTS5 table of the documents."""
    score = fts5_scores(documents)

    def rank(question: Question, limit: int) -> list[str]:
        return [documents[number][0] for number in score(question.text, limit)]

    return rank


def fts5_scores(documents: Documents) -> Callable[..., dict[int, float]]:
    """Numbers of documents with their scores, best first, from an in-memory FTS5 table."""
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE documents USING fts5(text, tokenize = 'porter unicode61')"
    )
    with connection:
        connection.executemany(
            "INSERT INTO documents(rowid, text) VALUES (?, ?)",
            [(n, text) for n, (_, text) in enumerate(documents)],
        )

    def score(question: str, limit: int = -1) -> dict[int, float]:
        words = dict.fromkeys(re.findall(r"[^\W_]+", question.lower()))
        match = " OR ".join(f'"{word}"' for word in words if word not in STOP_WORDS)
        if not match:
            return {}
        rows = connection.execute(
            "SELECT rowid, -bm25(documents) FROM documents WHERE documents MATCH ?"
            " ORDER BY bm25(documents), rowid LIMIT ?",
            (match, limit),
        )
        return dict(rows)

    return score


BASELINES: dict[str, tuple[tuple[str, Callable[[Sequence[Thread]], Documents]], ...]] = {
    "message": (("FTS5 porter, turn", turns), ("FTS5 porter, turn ±1", windows)),
    "thread": (("FTS5 porter, user text", user_sessions), ("FTS5 porter, both roles", sessions)),
}
