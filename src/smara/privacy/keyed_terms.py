"""Hash index terms with a key, and search hashed terms.

The key lies in a private file of its user, never in the store. A text becomes two bags of hashed
terms: their number is kept, their order is not, since a text of hashed words in order could be
read like a cipher. `KeyedIndex` looks a term up as it is and hashed, and gives the terms of a
query back in clear, so that ranking needs to know nothing of this.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from base64 import b32encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from heapq import merge
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, cast

from smara.core.files import make_private, read_regular
from smara.core.terms import cjk_run
from smara.core.text import Analysis
from smara.database.database import Database, FullText, Row, Session
from smara.database.fulltext import Matching, Within
from smara.errors import ConfigError
from smara.messages.models import Message
from smara.messages.store import MessageStore

_BYTES = 32
_CACHED = 100_000
_OR = {"sqlite": " OR ", "postgres": " | "}


class TermKey:
    """A secret that hashes terms, or the lack of it.

    Attributes:
        path: The file.
        id: A name of the key that tells nothing of it; empty without a key.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = ""
        self._secret = b""
        self.hash: Callable[[str], str] = lru_cache(_CACHED)(self._hash)
        self._read()

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            secret = bytes.fromhex(read_regular(self.path, 1_000).decode("ascii"))
            if len(secret) >= _BYTES:
                self._secret = secret
                self.id = hashlib.sha256(b"smara" + secret).hexdigest()[:8]

    def make(self) -> None:
        """Make the key if there is none, for its owner alone.

        Raises:
            ConfigError: If the file cannot be written, or is there and is no key.
        """
        if self.id:
            return
        try:
            make_private(os.fspath(self.path.parent))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(self.path, flags, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_hex(_BYTES) + "\n")
        except OSError:
            pass  # another process was quicker, or what is there is told below
        self._read()
        if not self.id:
            raise ConfigError(
                f"{self.path} is no key and cannot be made one; nothing was stored. Move it away,"
                " or make its folder writable."
            )

    def _hash(self, term: str) -> str:
        # 60 bits: among a million terms, two meet by chance in one of a million stores.
        digest = hmac.digest(self._secret, term.encode("utf-8", "replace"), "sha256")
        return b32encode(digest[:10]).decode("ascii")[:12].lower()

    def withhold(self, chunks: Sequence[Analysis]) -> tuple[Analysis, ...]:
        """Return terms hashed and in no order; none without a key."""
        if not self.id:
            return (Analysis("", "", 0),)
        pairs = ((self._bag(each.prose), self._bag(each.code)) for each in chunks)
        return tuple(
            Analysis(" ".join(prose), " ".join(code), len(prose) + len(code))
            for prose, code in pairs
        )

    def _bag(self, terms: str) -> list[str]:
        every = terms.split()
        # One CJK character finds the pairs that begin with it.
        heads = [] if terms.isascii() else [f"{each[0]}*" for each in every if _is_cjk(each)]
        return sorted(map(self.hash, (*every, *heads)))


def _is_cjk(term: str) -> bool:
    return not term.isascii() and cjk_run().search(term) is not None


class KeyedIndex:
    """The index of messages for terms that may be hashed; see `FullText`."""

    def __init__(self, index: FullText, key: TermKey, kind: str) -> None:
        self._index = index
        self._key = key
        self._kind = kind
        self._clear: dict[str, str] = {}
        """The terms that were looked up, by their hashes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def _hashed(self, term: str, is_head: bool = False) -> str:
        found = self._key.hash(f"{term}*" if is_head else term)
        if len(self._clear) > _CACHED:
            self._clear = {}
        self._clear[found] = term
        return found

    def match(
        self,
        session: Session,
        terms: Sequence[str],
        within: Within,
        limit: int,
        prefix: bool = False,
    ) -> list[int]:
        """Return rows with all terms, in clear or hashed, newest first."""
        found = self._index.match(session, terms, within, limit, prefix)
        if not self._key.id:
            return found
        last = len(terms) - 1
        hashed = [self._hashed(each, prefix and at == last) for at, each in enumerate(terms)]
        more = self._index.match(session, hashed, within, limit)
        return list(dict.fromkeys(merge(found, more, reverse=True)))[:limit] if more else found

    def matching(self, term: str, within: Within) -> Matching:
        """Return SQL pieces that join a term's rows with messages."""
        plain = self._index.matching(term, within)
        if not self._key.id:
            return plain
        other = self._index.matching(self._hashed(term), within)
        return plain._replace(values=(f"{plain.values[0]}{_OR[self._kind]}{other.values[0]}",))

    def texts(
        self, session: Session, rows: Sequence[int], project_no: int | None = None
    ) -> dict[int, tuple[str, str]]:
        """Return the terms of rows, those that were looked up in clear."""
        found = self._index.texts(session, rows, project_no)
        return {row: (self.clear(pair[0]), self.clear(pair[1])) for row, pair in found.items()}

    def clear(self, terms: str) -> str:
        """Return terms with those that were looked up in clear.

        They are put between others: side by side they would count as a phrase.
        """
        clear, every = self._clear, terms.split()
        if clear.keys().isdisjoint(every):
            return terms
        found = [clear[each] for each in every if each in clear]
        others = [each for each in every if each not in clear]
        return " ".join(filter(None, chain(*zip_longest(found, others))))


class IndexView:
    """A database with another index of messages."""

    def __init__(self, database: Database, fulltext: KeyedIndex) -> None:
        self._database = database
        self.fulltext = fulltext

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class PointerStore(MessageStore):
    """The messages of a project with texts that transcripts have."""

    def __init__(
        self,
        store: MessageStore,
        key: TermKey,
        reveal: Callable[[list[Message]], list[Message]],
        *,
        key_id: str | None,
    ) -> None:
        self._key, self._key_id = key, key_id
        self._keyed = KeyedIndex(store.database.fulltext, key, store.database.kind)
        super().__init__(cast("Database", IndexView(store.database, self._keyed)), store.scope)
        self._reveal = reveal

    def search_warnings(self) -> list[str]:
        """Return what a search by words cannot find."""
        if self._key.id and self._key_id in (None, self._key.id):
            return []
        lack = "is missing" if not self._key.id else f"is not {self._key_id}"
        return [
            f"Words do not find messages whose text is not in the store: the key of their terms"
            f" ({self._key.path}) {lack}. Meaning still does."
        ]

    def select(
        self, session: Session, rest: str, values: Sequence[Any]
    ) -> list[tuple[int, Message]]:
        """Return messages with their numbers and texts."""
        rows = super().select(session, rest, values)
        revealed = self._reveal([message for _, message in rows])
        return [(row[0], message) for row, message in zip(rows, revealed, strict=True)]

    def found_by(
        self, session: Session, matching: Matching, limit: int
    ) -> list[tuple[Row, Message]]:
        """Return messages by an index term, with their texts."""
        rows = super().found_by(session, matching, limit)
        revealed = self._reveal([message for _, message in rows])
        return [
            ((row[0], self._keyed.clear(row[1]), self._keyed.clear(row[2]), *row[3:]), message)
            for (row, _), message in zip(rows, revealed, strict=True)
        ]
