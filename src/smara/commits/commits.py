"""Keep every commit of the checked-out history as a searchable record.

Reading is incremental: only what came since the last time is read. When history was rewritten,
commits that no branch leads to any more are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from smara.commits.lines import line_reasons, names_of
from smara.commits.models import Commit, CommitReport, LineReason
from smara.commits.read import commits_of, functions_of, new_shas, patches_of
from smara.commits.store import CommitState, CommitStore
from smara.core.git import git_text, is_ancestor
from smara.errors import InvalidInputError, NotFoundError
from smara.secrets import redact

MOST_COMMITS = 20_000
_NAMED_A_ROUND = 400
Progress = Callable[[int, int], None]


class Commits:
    """The commits of one project."""

    def __init__(self, store: CommitStore, root: Callable[[], str | None]) -> None:
        self._store = store
        self._root = root

    def update(self, limit: int = MOST_COMMITS, progress: Progress | None = None) -> CommitReport:
        """Read what is new in the history of the checked-out commit.

        Safe to repeat and to run from several processes: a commit is kept once.

        Args:
            limit: The most commits that are read.
            progress: Called with the number of commits read, and of all.

        Returns:
            What was added; an empty report outside a repository.
        """
        root = self._root()
        head = (
            (git_text(root, "rev-parse", "--verify", "HEAD^{commit}") or "").strip() if root else ""
        )
        with self._store.database.read() as session:
            state = self._store.state(session)
        if root is None or not head or head == state.head:
            return CommitReport(total=state.total, is_all=state.is_all)
        is_linear = state.head is not None and is_ancestor(root, state.head, head)
        shas = new_shas(root, limit, state.head if is_linear else None)
        added, read = 0, 0
        # Oldest first, so that a run that is cut off has read an unbroken beginning.
        for page in commits_of(root, shas[::-1]):
            with self._store.database.write() as session:
                added += self._store.add(session, [_redacted(each) for each in page])
            read += len(page)
            if progress is not None:
                progress(read, len(shas))
        dropped = 0
        with self._store.database.write() as session:
            if not is_linear and state.head is not None:
                reached = set((git_text(root, "rev-list", "--all", "HEAD") or "").split())
                lost = [sha for sha in self._store.shas(session) if sha not in reached]
                dropped = self._store.remove(session, lost) if reached else 0
            now = self._store.lock(session)
            total = now.total + added - dropped
            is_all = (state.is_all or not is_linear) and len(shas) < limit
            self._store.save_state(session, CommitState(head, total, is_all))
        return CommitReport(added, total, dropped, is_all=is_all)

    def name_functions(self, limit: int = _NAMED_A_ROUND) -> int:
        """Find the functions that the newest commits changed.

        Comparing contents costs more than reading messages, so it goes on in rounds.

        Args:
            limit: The most commits of this round.

        Returns:
            The number of commits that were looked at; 0 when none is left.
        """
        root = self._root()
        with self._store.database.read() as session:
            waiting = self._store.unnamed(session, limit) if root is not None else []
        if root is None or not waiting:
            return 0
        by_sha: dict[str, list[str]] = {sha: [] for sha in waiting}
        for patch in patches_of(root, waiting):
            by_sha.setdefault(patch.sha, []).extend(functions_of([patch]))
        named = [(sha, tuple(dict.fromkeys(names))[:60]) for sha, names in by_sha.items()]
        with self._store.database.write() as session:
            self._store.name_functions(session, named)
        return len(named)

    def get(self, sha: str) -> Commit:
        """Return a commit by its name or the beginning of it.

        Args:
            sha: At least four characters of its name.

        Raises:
            NotFoundError: If there is no such commit.
            InvalidInputError: If several begin so.
        """
        text = sha.strip().lower()
        with self._store.database.read() as session:
            ends = (text, text + "g")
            found = self._store.select(session, " AND c.sha >= ? AND c.sha < ? LIMIT 2", ends)
        if len(text) < 4 or not found:
            raise NotFoundError(f"Commit not found: {sha}. `git log` lists them.", commit=sha)
        if len(found) > 1:
            raise InvalidInputError(f"{sha!r} may mean several commits. Give more characters.")
        return found[0]

    def why(self, path: str, function: str | None = None) -> list[LineReason]:
        """Return the stated reasons behind a file's lines, undone ones first.

        Args:
            path: A file, from the top of the repository.
            function: Only what concerns this function.
        """
        root = self._root()
        if root is None:
            return []
        reasons = line_reasons(root, path, self.list(path=path, limit=200))
        if function is None:
            return reasons
        return [each for each in reasons if function in each.functions]

    def list(self, *, path: str | None = None, limit: int = 50) -> list[Commit]:
        """Return the newest commits, of all files or of one.

        Args:
            path: A file, from the top of the repository; its earlier names count.
            limit: The most that are returned.
        """
        with self._store.database.read() as session:
            if path is None:
                return self._store.select(session, " ORDER BY c.at DESC, c.no LIMIT ?", (limit,))
            found = self._store.of_files(session, [path], limit)
            while len(names := names_of(path, found)) > 1:
                more = self._store.of_files(session, names, limit)
                if len(more) == len(found):
                    break
                found = more
            return found


def _redacted(commit: Commit) -> Commit:
    return replace(
        commit,
        author=redact(commit.author).text,
        subject=redact(commit.subject).text,
        body=redact(commit.body).text,
        reason=redact(commit.reason).text,
    )
