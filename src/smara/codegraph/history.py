"""Count how often files change, and which files change together.

The git log is read once, then only the commits since. Merges are left out. A mass commit (a
reformatting, a new license) counts as a change but pairs no files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from smara.codegraph.git import MOST_COMMITS, Commit, checked_out, commits, is_ancestor
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import CoChange
from smara.core.escape import from_storable, to_storable
from smara.database.database import Session, marks, parts

MOST_TOGETHER = 30
"""A commit of more files is a mass commit: 30 files are 435 pairs, of which hardly one means
anything.
"""
MOST_PAIRS = 100_000
LEAST_TOGETHER = 2


@dataclass(slots=True)
class Churn:
    """A file's change counts.

    ``counted`` are the commits that tell what it changes with; ``authors`` may be more.
    """

    commits: int = 0
    counted: int = 0
    authors: int = 0
    first_at: int = 0
    last_at: int = 0


@dataclass(slots=True)
class Tally:
    """Change counts by path and by pair of paths."""

    churn: dict[str, Churn] = field(default_factory=dict)
    near: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    authors: dict[str, set[str]] = field(default_factory=dict)

    def add(self, commit: Commit) -> None:
        """Count one commit more.

        They must come in the order in which they were made.
        """
        for old, new in commit.renamed:
            self._rename(old, new)
        is_mass = len(commit.changed) > MOST_TOGETHER
        for path in commit.changed:
            churn = self.churn.setdefault(path, Churn(first_at=commit.at_ms))
            churn.commits += 1
            churn.counted += 0 if is_mass else 1
            churn.last_at = max(churn.last_at, commit.at_ms)
            seen = self.authors.setdefault(path, set())
            seen.add(commit.author)
            churn.authors = max(churn.authors, len(seen))
        if not is_mass:
            self._pair(commit)

    def _pair(self, commit: Commit) -> None:
        for path in commit.changed:
            near = self.near.setdefault(path, {})
            for other in commit.changed:
                if other != path:
                    together, last_at = near.get(other, (0, 0))
                    near[other] = (together + 1, max(last_at, commit.at_ms))

    def _rename(self, old: str, new: str) -> None:
        """What was counted for the old path goes on under the new one."""
        before = self.churn.pop(old, None)
        if before is not None:
            churn = self.churn.setdefault(new, Churn(first_at=before.first_at))
            churn.commits += before.commits
            churn.counted += before.counted
            churn.authors = max(churn.authors, before.authors)
            churn.first_at = min(churn.first_at, before.first_at)
            churn.last_at = max(churn.last_at, before.last_at)
        self.authors.setdefault(new, set()).update(self.authors.pop(old, ()))
        for other, (together, last_at) in self.near.pop(old, {}).items():
            back = self.near.get(other, {})
            back.pop(old, None)
            if other != new:
                known, at = self.near.setdefault(new, {}).get(other, (0, 0))
                self.near[new][other] = self.near.setdefault(other, {})[new] = (
                    known + together,
                    max(at, last_at),
                )

    def pairs(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return each pair once, in the order of its paths."""
        return {
            (path, other): counts
            for path, near in self.near.items()
            for other, counts in near.items()
            if path < other
        }


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The result of one reading of the history."""

    commits: int
    is_whole: bool
    """Whether everything was counted anew, as at the first time and after a rebase."""
    files: int = 0
    pairs: int = 0


_PATH_COLUMNS = (("code_churn", "path"), ("code_cochange", "path"), ("code_cochange", "other"))


class CodeHistory:
    """The tables ``code_churn`` and ``code_cochange`` of one tree."""

    def __init__(self, lookup: CodeLookup, root: str, most_commits: int = MOST_COMMITS) -> None:
        self._lookup = lookup
        self._root = root
        self._most = most_commits

    def read(self) -> HistoryReport:
        """Read the commits since the last time.

        Safe to repeat, and from several processes at once.
        """
        head = checked_out(self._root)
        if head is None:
            return HistoryReport(0, False)
        with self._lookup.database.read() as session:
            before = self._state(session)
        last = (json.loads(before) if before else {}).get("head")
        if last == head:
            return HistoryReport(0, False)
        found: list[Commit] = []
        is_whole = last is None or not is_ancestor(self._root, last, head)
        if not is_whole:
            found = commits(self._root, last, self._most + 1)
            is_whole = len(found) > self._most
        if is_whole:
            found = commits(self._root, None, self._most)
        return self._write(head, before, found, is_whole)

    def _write(
        self, head: str, before: str | None, found: Sequence[Commit], is_whole: bool
    ) -> HistoryReport:
        with self._lookup.database.write(is_derived=True) as session:
            # SQLite has locked everything already; on PostgreSQL this locks the tree.
            session.run(
                self._lookup.sql(
                    "UPDATE code_trees SET history = history WHERE project_no = :project AND no = ?"
                ),
                (self._lookup.tree_no,),
            )
            if self._state(session) != before:
                return HistoryReport(
                    0, False
                )  # another process was faster; counting twice would be wrong
            tally = Tally() if is_whole else self._known(session, _touched(found))
            for commit in found:
                tally.add(commit)
            if is_whole:
                for name in ("code_churn", "code_cochange"):
                    session.run(
                        self._lookup.sql(
                            f"DELETE FROM {name} WHERE project_no = :project AND tree_no = ?"
                        ),
                        (self._lookup.tree_no,),
                    )
                self._bound(tally, set(self._lookup.paths(session)))
            else:
                for some in parts(_touched(found)):
                    for name, column in _PATH_COLUMNS:
                        session.run(
                            self._lookup.sql(
                                f"DELETE FROM {name} WHERE project_no = :project AND tree_no = ?"
                                f" AND {column} IN ({marks(len(some))})"
                            ),
                            (self._lookup.tree_no, *some),
                        )
            pairs = tally.pairs()
            self._insert(session, tally, pairs)
            session.run(
                self._lookup.sql(
                    "UPDATE code_trees SET history = ? WHERE project_no = :project AND no = ?"
                ),
                (json.dumps({"head": head, "commits": len(found)}), self._lookup.tree_no),
            )
        return HistoryReport(len(found), is_whole, len(tally.churn), pairs=len(pairs))

    def _bound(self, tally: Tally, existing: set[str]) -> None:
        """Drop what is not in the tree any more, and of too many pairs those that were together
        least.
        """
        for path in tally.churn.keys() - existing:
            del tally.churn[path]
        for path in list(tally.near):
            if path not in existing:
                del tally.near[path]
            else:
                tally.near[path] = {
                    other: each for other, each in tally.near[path].items() if other in existing
                }
        pairs = tally.pairs()
        if len(pairs) > MOST_PAIRS:
            order = sorted(pairs, key=lambda pair: pairs[pair], reverse=True)
            for one, other in order[MOST_PAIRS:]:
                del tally.near[one][other], tally.near[other][one]

    def churn(self, session: Session) -> dict[str, Churn]:
        """Return how every file changed, by path."""
        rows = session.all(
            self._lookup.sql(
                "SELECT path, commits, counted, authors, first_at, last_at FROM code_churn"
                " WHERE project_no = :project AND tree_no = ?"
            ),
            (self._lookup.tree_no,),
        )
        return {from_storable(path): Churn(*map(int, counts)) for path, *counts in rows}

    def churn_of(self, session: Session, path: str) -> Churn | None:
        """Return how one file changed, or ``None``."""
        return self._known(session, [to_storable(path)], with_pairs=False).churn.get(path)

    def together(
        self, session: Session, path: str, limit: int = 20, least: int = LEAST_TOGETHER
    ) -> list[CoChange]:
        """Return the files that change with one, the surest first.

        Of its commits, the share that touch the other too.
        """
        tree_no, stored = self._lookup.tree_no, to_storable(path)
        whole = session.one(
            self._lookup.sql(
                "SELECT counted FROM code_churn WHERE project_no = :project AND tree_no = ? AND "
                "path = ?"
            ),
            (tree_no, stored),
        )
        rows = session.all(
            self._lookup.sql(
                "SELECT other, together, last_at FROM code_cochange"
                " WHERE project_no = :project AND tree_no = ? AND path = ? AND together >= ?"
                " UNION ALL SELECT path, together, last_at FROM code_cochange"
                " WHERE project_no = :project AND tree_no = ? AND other = ? AND together >= ?"
            ),
            (tree_no, stored, least, tree_no, stored, least),
        )
        counted = max(1, int(whole[0]) if whole else 1)
        found = [
            CoChange(
                from_storable(other),
                int(count),
                round(min(1.0, int(count) / counted), 3),
                last_at=int(at),
            )
            for other, count, at in rows
        ]
        return sorted(found, key=lambda each: (-each.confidence, -each.last_at, each.path))[:limit]

    def _state(self, session: Session) -> str | None:
        row = session.one(
            self._lookup.sql(
                "SELECT history FROM code_trees WHERE project_no = :project AND no = ?"
            ),
            (self._lookup.tree_no,),
        )
        return row[0] if row else None

    def _known(self, session: Session, paths: Sequence[str], with_pairs: bool = True) -> Tally:
        """Return what is stored of some paths and of all pairs they are in."""
        tally = Tally()
        for some in parts(paths):
            rows = session.all(
                self._lookup.sql(
                    "SELECT path, commits, counted, authors, first_at, last_at FROM code_churn"
                    f" WHERE project_no = :project AND tree_no = ? AND path IN ({marks(len(some))})"
                ),
                (self._lookup.tree_no, *some),
            )
            tally.churn.update(
                (from_storable(path), Churn(*map(int, counts))) for path, *counts in rows
            )
            for column in ("path", "other") if with_pairs else ():
                for one, other, together, last_at in session.all(
                    self._lookup.sql(
                        "SELECT path, other, together, last_at FROM code_cochange"
                        f" WHERE project_no = :project AND tree_no = ? AND {column} IN "
                        f"({marks(len(some))})"
                    ),
                    (self._lookup.tree_no, *some),
                ):
                    first, second = from_storable(one), from_storable(other)
                    tally.near.setdefault(first, {})[second] = (int(together), int(last_at))
                    tally.near.setdefault(second, {})[first] = (int(together), int(last_at))
        return tally

    def _insert(
        self, session: Session, tally: Tally, pairs: dict[tuple[str, str], tuple[int, int]]
    ) -> None:
        tree_no = self._lookup.tree_no
        session.run_many(
            self._lookup.sql(
                "INSERT INTO code_churn (project_no, tree_no, path, commits, counted, authors, "
                "first_at, last_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?)"
            ),
            (
                (
                    tree_no,
                    to_storable(path),
                    each.commits,
                    each.counted,
                    each.authors,
                    each.first_at,
                    each.last_at,
                )
                for path, each in tally.churn.items()
            ),
        )
        session.run_many(
            self._lookup.sql(
                "INSERT INTO code_cochange (project_no, tree_no, path, other, together, last_at)"
                " VALUES (:project, ?, ?, ?, ?, ?)"
            ),
            (
                (tree_no, to_storable(one), to_storable(other), together, last_at)
                for (one, other), (together, last_at) in pairs.items()
            ),
        )


def _touched(found: Iterable[Commit]) -> list[str]:
    """Return every path that some commits speak of, as it is stored."""
    paths = {path for commit in found for path in commit.changed}
    paths |= {path for commit in found for pair in commit.renamed for path in pair}
    return sorted(to_storable(path) for path in paths)
