"""Bringing an index up to date with the disk before a question, where nobody watches the tree.

Little is read at once; much is told, since whoever asks does not want to wait for it. Looking takes
a while in a large tree, so it is not done again before ten times as long has passed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from smara.codegraph import heads
from smara.codegraph.file_store import VERSION
from smara.codegraph.indexing import Tree, index
from smara.codegraph.updating import MOST_PATHS, differences, update
from smara.core import log
from smara.errors import SmaraError

MOST_FILES = 200
MOST_LOOKED_AT = 20_000
"""In a tree of more files, looking would take longer than anyone waits for an answer; only its
commit is compared.
"""
_REST = 10.0
_WAIT_SECONDS = 2.0
ELSEWHERE = "another commit is checked out than was indexed; `smara graph index` reads what changed"
UNSURE = "the code could not be compared with the disk: answers may be behind"


class CatchingUp:
    """Compares one tree with the disk, now and then."""

    def __init__(self, tree: Tree, on_indexed: Callable[[Sequence[str] | None], None]) -> None:
        self._tree = tree
        self._on_indexed = on_indexed
        self._next_look = 0.0
        self._note: str | None = None

    def look(self) -> str | None:
        """Read what has changed, if it is little; what has to be known of the answers besides, or
        ``None``.
        """
        clock = self._tree.parts.clock
        started = clock.monotonic()
        if started < self._next_look:
            return self._note
        try:
            self._note = self._looked()
        except (SmaraError, OSError) as error:
            log.warning("code.not_caught_up", error=str(error))
            self._note = UNSURE
        ended = clock.monotonic()
        self._next_look = ended + _REST * (ended - started)
        return self._note

    def _looked(self) -> str | None:
        row = self._tree.row()
        if row is None or row.finished_at is None:
            return None  # whoever makes the first index tells it
        if not os.path.isdir(self._tree.root):
            return f"the folder {self._tree.root} is gone: answers are of what was in it"
        if row.version != VERSION:
            return (
                "the index was made by another version of Smara; `smara graph index` makes it again"
            )
        is_elsewhere = heads.head_of(self._tree.root) != (row.branch, row.head)
        store = self._tree.parts.store
        with store.database.read() as session:
            is_large = store.count_files(session, row.no) > MOST_LOOKED_AT
            # Left by a process that was killed between writing and joining; while an index is made,
            # it joins them.
            unjoined = (
                0 if row.state == "building" else len(store.stale(session, row.no, MOST_FILES + 1))
            )
        if is_large:
            return ELSEWHERE if is_elsewhere else None
        found = differences(self._tree)
        many = len(found.paths) - len(found.unsure)
        if many > MOST_FILES:
            return (
                f"{many:,} files have changed since the code was indexed; `smara graph index` "
                "reads them"
            )
        if len(found.paths) > MOST_PATHS or is_elsewhere:
            index(self._tree, wait_seconds=_WAIT_SECONDS)
            self._on_indexed(None)
        elif found.paths or 0 < unjoined <= MOST_FILES:
            update(self._tree, found.paths)
            self._on_indexed(found.paths)
        return None
