"""The SCIP index that lies beside the code, taken in after the edges that syntax tells are made."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from smara.codegraph.scip import INDEX_NAME, ScipIndex, read_scip
from smara.core import log
from smara.errors import InvalidInputError

if TYPE_CHECKING:
    from smara.codegraph.resolving import Guard, Resolving
    from smara.codegraph.rows import TreeRow


class PreciseIndex:
    """What a compiler said of a tree, if anybody asked it.

    An index that was named must be readable; one that lies there and cannot be read is passed over.
    """

    def __init__(self, root: str, given: str | os.PathLike[str] | None = None) -> None:
        self._path = Path(given) if given is not None else Path(root) / INDEX_NAME
        self._index: ScipIndex | None = read_scip(self._path) if given is not None else None
        # A link in the tree may lead out of it; a pipe would be waited for.
        is_usable = self._path.is_file() and (given is not None or not self._path.is_symlink())
        self.stamp = _stamp(self._path) if is_usable else None

    def is_wanted(self, before: TreeRow | None, *, has_changed: bool) -> bool:
        """Whether there is an index, and anything new in it or in the tree since the last time."""
        if self.stamp is None:
            return False
        known = (
            json.loads(before.counts).get("scip") if before is not None and before.counts else None
        )
        return has_changed or known != self.stamp

    def apply(self, resolving: Resolving, guard: Guard) -> None:
        """Make the edges of the files that the index knows again."""
        try:
            index = self._index or read_scip(self._path)
        except InvalidInputError as error:
            log.warning("code.scip_not_read", path=str(self._path), error=str(error))
            return
        files = resolving.precisely(index, guard)
        log.event("code.scip_read", path=str(self._path), files=files)


def _stamp(path: Path) -> list[int]:
    """What tells a new index from the one that was read: size and time."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
