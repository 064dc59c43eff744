"""A query that is one rare name: answered by one statement.

It is what agents ask most, and what needs least: no neighbor can outdo a message that
holds the name itself, and where only one does, there is nothing to rank. In a small
project, where it costs nothing, a name's parts are looked for as well, as in prose; there
the general way is taken.
"""

from __future__ import annotations

import re

from smara.database.database import Row, Session
from smara.database.fulltext import Within
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.search.evidence import Candidate
from smara.search.query import LONGEST_SHOWN, Query

FILL_UP_ROWS = 5_000
"""In a project of fewer rows a name's parts are looked for even when the name itself was found."""
RARE_ROWS = 50
"""A name in more rows is left to the general way."""

_LIKE_A_NAME = re.compile(r"[\w./:-]{3,200}")


def whole_name(query: Query) -> tuple[str, ...] | None:
    """The terms of a query that consists of one identifier or path, the whole before its parts."""
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


def find_name(
    session: Session, store: MessageStore, name: str, within: Within
) -> list[tuple[Row, Message]] | None:
    """The messages that hold a name, with their index rows; ``None`` when there are none, or
    many.
    """
    found = store.found_by(session, store.database.fulltext.matching(name, within), RARE_ROWS + 1)
    return found if 0 < len(found) <= RARE_ROWS else None


def as_candidates(found: list[tuple[Row, Message]]) -> list[Candidate]:
    """Found messages, ready to be ranked."""
    return [
        Candidate(
            row,
            thread_no,
            message.seq,
            message.role,
            message.created_at,
            prose,
            code,
            prose.count(" ") + code.count(" ") + 2,
        )
        for (row, prose, code, thread_no), message in found
    ]
