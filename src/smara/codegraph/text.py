"""The words a chunk of code is found by."""

from __future__ import annotations

from smara.database.records import RecordTerms, terms_of


def chunk_terms(path: str, name: str, prefix: str, text: str) -> RecordTerms:
    """The terms of a chunk: its name and path say more than its body. The prefix is for vectors;
    its words are here.
    """
    return terms_of(f"{name} {path}", text)
