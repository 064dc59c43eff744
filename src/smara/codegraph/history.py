"""Count how often files change, and which files change together.

The git log is read once, then only the commits since. Merges are left out. A mass commit (a
reformatting, a new license) counts as a change but pairs no files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from smara.codegraph.git import DEADLINE_SECONDS, MOST_COMMITS, CommittedFiles, commits
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import CoChange
from smara.core.escape import from_storable, to_storable
from smara.core.git import git_text, is_ancestor
from smara.core.startup.record import astuple, dataclass, field
from smara.database.database import Session

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

    def add(self, commit: CommittedFiles) -> None:
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
            for other in () if is_mass else commit.changed:
                if other != path:
                    near = self.near.setdefault(path, {})
                    together, last_at = near.get(other, (0, 0))
                    near[other] = (together + 1, max(last_at, commit.at_ms))

    def _rename(self, old: str, new: str) -> None:
        """What was counted for the old path goes on under the new one."""
        if (before := self.churn.pop(old, None)) is not None:
            churn = self.churn.setdefault(new, Churn(first_at=before.first_at))
            churn.commits += before.commits
            churn.counted += before.counted
            churn.authors = max(churn.authors, before.authors)
            churn.first_at = min(churn.first_at, before.first_at)
            churn.last_at = max(churn.last_at, before.last_at)
        self.authors.setdefault(new, set()).update(self.authors.pop(old, ()))
        for other, (together, last_at) in self.near.pop(old, {}).items():
            self.near.get(other, {}).pop(old, None)
            if other != new:
                more, at = self.near.setdefault(new, {}).get(other, (0, 0))
                counts = (more + together, max(at, last_at))
                self.near[new][other] = self.near.setdefault(other, {})[new] = counts

    def bound(self, existing: set[str]) -> None:
        """Drop paths that are gone, and the rarest of too many pairs."""
        self.churn = {path: churn for path, churn in self.churn.items() if path in existing}
        self.near = {
            path: {other: counts for other, counts in near.items() if other in existing}
            for path, near in self.near.items()
            if path in existing
        }
        pairs = self.pairs()
        for one, other in sorted(pairs, key=lambda pair: pairs[pair], reverse=True)[MOST_PAIRS:]:
            del self.near[one][other], self.near[other][one]

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
    """Whether everything was counted again, as at the first time and after a rebase."""
    files: int = 0
    pairs: int = 0


_PATH_COLUMNS = (("code_churn", "path"), ("code_cochange", "path"), ("code_cochange", "other"))
_TREE = "WHERE project_no = :project AND tree_no = ?"
_CHURN = f"SELECT path, commits, counted, authors, first_at, last_at FROM code_churn {_TREE}"


@dataclass(frozen=True, eq=False)
class CodeHistory:
    """The tables ``code_churn`` and ``code_cochange`` of one tree."""

    lookup: CodeLookup
    root: str

    def read(self) -> HistoryReport:
        """Read the commits since the last time.

        Safe to repeat, and from several processes at once.
        """
        answer = git_text(
            self.root, "rev-parse", "--verify", "--quiet", "HEAD", timeout_seconds=DEADLINE_SECONDS
        )
        if not (head := (answer or "").strip()):  # no git, or no commit yet
            return HistoryReport(0, False)
        before = self.lookup.ask(self._state)
        last = (json.loads(before) if before else {}).get("head")
        if last == head:
            return HistoryReport(0, False)
        goes_on = last is not None and is_ancestor(self.root, last, head)
        since = commits(self.root, last, MOST_COMMITS + 1) if goes_on else []
        is_whole = not goes_on or len(since) > MOST_COMMITS
        new = commits(self.root, None, MOST_COMMITS) if is_whole else since
        return self._write(head, before, new, is_whole)

    def _write(
        self, head: str, before: str | None, new: Sequence[CommittedFiles], is_whole: bool
    ) -> HistoryReport:
        lookup, tree_no = self.lookup, self.lookup.tree_no
        with lookup.database.write(is_derived=True) as session:
            # SQLite has locked everything already; on PostgreSQL this locks the tree.
            lock = "UPDATE code_trees SET history = history WHERE project_no = :project AND no = ?"
            lookup.run(session, lock, tree_no)
            if self._state(session) != before:
                # Another process was faster; counting twice would be wrong.
                return HistoryReport(0, False)
            touched = {path for commit in new for path in commit.changed}
            touched |= {path for commit in new for pair in commit.renamed for path in pair}
            paths = sorted(map(to_storable, touched))
            tally = Tally() if is_whole else self._stored(session, paths)
            for commit in new:
                tally.add(commit)
            if is_whole:
                for table in ("code_churn", "code_cochange"):
                    lookup.run(session, f"DELETE FROM {table} {_TREE}", tree_no)
                tally.bound({from_storable(row[0]) for row in lookup.files(session, "path")})
            else:
                for table, column in _PATH_COLUMNS:
                    delete = f"DELETE FROM {table} {_TREE} AND {column} IN (:some)"
                    lookup.run(session, delete, tree_no, some=paths)
            pairs = tally.pairs()
            lookup.run_many(
                session,
                "INSERT INTO code_churn (project_no, tree_no, path, commits, counted, authors,"
                " first_at, last_at) VALUES (:project, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (tree_no, to_storable(path), *astuple(churn))
                    for path, churn in tally.churn.items()
                ],
            )
            lookup.run_many(
                session,
                "INSERT INTO code_cochange (project_no, tree_no, path, other, together, last_at)"
                " VALUES (:project, ?, ?, ?, ?, ?)",
                [
                    (tree_no, to_storable(one), to_storable(other), together, last_at)
                    for (one, other), (together, last_at) in pairs.items()
                ],
            )
            state = json.dumps({"head": head, "commits": len(new)})
            done = "UPDATE code_trees SET history = ? WHERE project_no = :project AND no = ?"
            lookup.run(session, done, state, tree_no)
        return HistoryReport(len(new), is_whole, len(tally.churn), pairs=len(pairs))

    def churn(self, session: Session, paths: Sequence[str] | None = None) -> dict[str, Churn]:
        """Return how every file changed, or some files did, by path."""
        condition = "" if paths is None else " AND path IN (:some)"
        some = None if paths is None else list(map(to_storable, paths))
        rows = self.lookup.rows(session, f"{_CHURN}{condition}", self.lookup.tree_no, some=some)
        return {from_storable(path): Churn(*map(int, counts)) for path, *counts in rows}

    def together(
        self, session: Session, path: str, limit: int = 20, least: int = LEAST_TOGETHER
    ) -> list[CoChange]:
        """Return the files that change with one, the surest first.

        Of its commits, the share that touch the other too.
        """
        values = (self.lookup.tree_no, to_storable(path), least)
        rows = self.lookup.rows(
            session,
            f"SELECT other, together, last_at FROM code_cochange {_TREE} AND path = ?"
            " AND together >= ? UNION ALL"
            f" SELECT path, together, last_at FROM code_cochange {_TREE} AND other = ?"
            " AND together >= ?",
            *values,
            *values,
        )
        churn = self.churn(session, [path]).get(path)
        counted = max(1, churn.counted if churn else 1)
        near = [
            CoChange(
                from_storable(other),
                int(count),
                round(min(1.0, int(count) / counted), 3),
                last_at=int(at),
            )
            for other, count, at in rows
        ]
        return sorted(near, key=lambda each: (-each.confidence, -each.last_at, each.path))[:limit]

    def _state(self, session: Session) -> str | None:
        statement = "SELECT history FROM code_trees WHERE project_no = :project AND no = ?"
        rows = self.lookup.rows(session, statement, self.lookup.tree_no)
        return rows[0][0] if rows else None

    def _stored(self, session: Session, paths: Sequence[str]) -> Tally:
        """Return what is stored of some paths and of all pairs they are in."""
        tally = Tally(self.churn(session, list(map(from_storable, paths))))
        pairs = f"SELECT path, other, together, last_at FROM code_cochange {_TREE} AND "
        for column in ("path", "other"):
            for one, other, together, last_at in self.lookup.rows(
                session, f"{pairs}{column} IN (:some)", self.lookup.tree_no, some=paths
            ):
                first, second = from_storable(one), from_storable(other)
                counts = (int(together), int(last_at))
                tally.near.setdefault(first, {})[second] = counts
                tally.near.setdefault(second, {})[first] = counts
        return tally
