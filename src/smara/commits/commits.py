"""Keep every commit of the checked-out history as a searchable record.

Reading is incremental: only what came since the last time is read. When history was rewritten,
commits that no branch leads to any more are dropped. Notes on the lines of files are written ahead
for each folder that a history is checked out in, from its own commits alone, so that hooks need not
ask git.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from smara.actions.paths import is_source, project_path
from smara.commits.edit import matching, with_place
from smara.commits.lines import clean_lines, line_reasons, names_of
from smara.commits.models import Commit, CommitReport, CommitStatus, LineReason
from smara.commits.note import VERSION, notes_of
from smara.commits.read import commits_of, functions_of, new_shas, patches_of
from smara.commits.store import CommitState, CommitStore, LineNotes
from smara.core.clock import Clock
from smara.core.files import read_regular
from smara.core.git import git_text, is_ancestor
from smara.core.text import analyze
from smara.database.leases import Leases, host_name
from smara.errors import InvalidInputError, NotFoundError
from smara.secrets import redact
from smara.secrets.redact import clean_id

MOST_COMMITS = 20_000
_NAMED_A_ROUND, _NOTED_A_ROUND = 400, 50
_LEASE_SECONDS = 120.0
_MOST_READ = 1 << 20
Progress = Callable[[int, int], None]


class Commits:
    """The commits of one project."""

    def __init__(
        self, store: CommitStore, root: Callable[[], str | None], clock: Clock, leases: Leases
    ) -> None:
        self._store = store
        self._root = root
        self._clock = clock
        self._leases = leases

    def keep_up(self, seconds: float = 30.0, progress: Progress | None = None) -> CommitReport:
        """Read what is new, and write notes on lines, within some seconds.

        What is left is done the next time. Several processes may call it: one works, and the others
        return at once.

        Args:
            seconds: The time for notes and the names of functions; reading messages takes less.
            progress: Called with the number of commits read, and of all.
        """
        root, until = self._root(), self._clock.monotonic() + seconds
        owner = f"{host_name()}:{os.getpid()}"
        name = f"commits:{self._store.scope.project_no}"
        if root is None:
            return CommitReport()
        lease = self._leases.acquire_from_gone(name, owner, _LEASE_SECONDS)
        if lease is None:
            return CommitReport()
        try:
            report = self.update(progress=progress)
            self.write_notes(lambda: self._clock.monotonic() < until)
            if self._clock.monotonic() < until:
                self.name_functions()
            return report
        finally:
            self._leases.release(lease)

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
        head = _head_of(root)
        state = self._store.ask(self._store.state)
        if root is None or not head or head == state.head:
            return CommitReport(total=state.total, is_all=state.is_all)
        is_linear = state.head is not None and is_ancestor(root, state.head, head)
        shas = new_shas(root, limit, state.head if is_linear else None)
        is_all = (state.is_all or not is_linear) and len(shas) < limit
        if not is_linear:  # another branch, or a run that was cut off: most are there
            with self._store.database.read() as session:
                old = set(self._store.shas(session))
            shas = [sha for sha in shas if sha not in old]
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
            self._store.save_state(session, CommitState(head, total, is_all))
        return CommitReport(added, total, dropped, is_all=is_all)

    def status(self) -> CommitStatus:
        """Count the commits that are stored and those still to read."""
        state = self._store.ask(self._store.state)
        root, since = self._root(), f"{state.head}..HEAD" if state.head else "HEAD"
        behind = (
            git_text(root, "rev-list", "--no-merges", "--count", since)
            if root is not None
            else None
        )
        return CommitStatus(state.total, int(behind or 0), state.is_all)

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
        named = [
            (sha, tuple(dict.fromkeys(clean_lines(names)))[:60]) for sha, names in by_sha.items()
        ]
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
        history = self._history([path], set(new_shas(root, MOST_COMMITS)))
        reasons = line_reasons(root, history, self._newest_at()).get(path, [])
        if function is None:
            return reasons
        return [each for each in reasons if function in each.functions]

    def write_notes(self, is_going_on: Callable[[], bool] = lambda: True) -> int:
        """Write what may be told of the lines of files that changed.

        Args:
            is_going_on: Asked before each round; what is left is done the next time.

        Returns:
            The number of files that were looked at.
        """
        root = self._root()
        head = _head_of(root)
        if root is None or not head:
            return 0
        place = _place_of(root)
        before = self._noted(place, "")
        if before is not None and before.tip == f"{VERSION}:{head}" and before.facts == "[]":
            return 0
        reached = set(new_shas(root, MOST_COMMITS))
        due = self._due(root, head, before)
        total = len(due)
        while True:
            state = LineNotes(f"{VERSION}:{head}", False, json.dumps(due))
            with self._store.database.write() as session:
                self._store.put_notes(session, place, {"": state})
            if not due or not is_going_on():
                break
            self._write_round(root, due[:_NOTED_A_ROUND], reached)
            due = due[_NOTED_A_ROUND:]
        return total - len(due)

    def _due(self, root: str, head: str, before: LineNotes | None) -> list[str]:
        """Return the files of a place whose notes may be others than before, the newest first."""
        with self._store.database.read() as session:
            paths = [path for path in self._store.reasoned_paths(session) if is_source(path)]
            places = self._store.places(session)
        here = set((git_text(root, "ls-tree", "-r", "-z", "--name-only", head) or "").split("\0"))
        paths = [path for path in paths if path in here]
        version, _, former = before.tip.partition(":") if before is not None else ("", "", "")
        between = (
            git_text(root, "rev-list", "--no-merges", f"{former}...{head}")
            if before is not None and version == str(VERSION)
            else None
        )
        if before is None or between is None:
            with self._store.database.write() as session:
                for place in {place for place in places if _is_gone(place)} | {_place_of(root)}:
                    self._store.remove_notes(session, place, None)
            return paths
        with self._store.database.read() as session:
            numbers = self._store.numbers(session, between.split())
            commits = self._store.by_numbers(session, list(numbers.values()))
        changed = {path for each in commits.values() for path in each.files}
        changed |= {path for each in commits.values() for pair in each.renames for path in pair}
        gone = [path for path in changed if path not in here]
        with self._store.database.write() as session:
            self._store.remove_notes(session, _place_of(root), gone)
        return [path for path in paths if path in changed or path in set(json.loads(before.facts))]

    def _write_round(self, root: str, paths: Sequence[str], reached: set[str]) -> None:
        histories = self._history(paths, reached)
        tips = {path: each[0].sha for path, each in histories.items()}
        same = self._store.ask(self._store.notes, list(tips))
        notes = {path: same[path, tip] for path, tip in tips.items() if (path, tip) in same}
        rest = {path: each for path, each in histories.items() if path not in notes}
        reasons = line_reasons(root, rest, self._newest_at())
        for path in rest:
            own = notes_of(reasons.get(path, []))
            is_undone = any(note["is_undone"] for note in own)
            notes[path] = LineNotes(tips[path], is_undone, json.dumps(own))
        with self._store.database.write() as session:
            self._store.put_notes(session, _place_of(root), notes)

    def noted_files(self) -> tuple[str, dict[str, bool]]:
        """Return the place of the folder, and its files with notes.

        For each file whether something was undone in it. Empty if another history is checked out
        than the one that notes were written for.
        """
        root = self._root()
        if root is None or not self._is_current(root):
            return "", {}
        with self._store.database.read() as session:
            return _place_of(root), self._store.noted(session, _place_of(root))

    def notes_at(self, path: str, given: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
        """Return what may be told when a file is opened or changed.

        Args:
            path: The file, as a host names it.
            given: The arguments of a call that changes it; ``None`` for one that opens it.
        """
        root = self._root()
        name = project_path(path, root) if root is not None else None
        if root is None or name is None:
            return []
        notes = self._noted(_place_of(root), name)
        if notes is None or notes.facts == "[]" or not self._is_current(root):
            return []
        try:
            text = read_regular(os.path.join(root, name), _MOST_READ).decode("utf-8", "replace")
        except OSError:
            return []
        return matching(json.loads(notes.facts), text, given)

    def noted_terms(self, limit: int) -> builtins.list[tuple[str, str]]:
        """Return the keys and terms of notes on lines.

        Args:
            limit: The most files that are looked at, those with something undone first.
        """
        place, noted = self.noted_files()
        paths = sorted(noted, key=lambda path: not noted[path])[:limit]
        with self._store.database.read() as session:
            notes = self._store.notes(session, paths, place) if paths else {}
        return [
            (note["key"], f"{found.prose} {found.code}")
            for (path, _), each in notes.items()
            for note in json.loads(each.facts)
            for found in (analyze(f"{note['line']} {path}"),)
        ]

    def lines_named(self, text: str) -> builtins.list[str]:
        """Return what commits say about files that a text names.

        Args:
            text: A question, with the name or the path of a file.
        """
        place, noted = self.noted_files()
        names = {word.strip("`'\"?,:;()").replace("\\", "/") for word in text.split()}
        paths = [path for path in noted if not names.isdisjoint((path, path.rpartition("/")[2]))]
        with self._store.database.read() as session:
            notes = self._store.notes(session, paths, place) if paths else {}
        found = [
            (not note["is_undone"], with_place(note["line"], path))
            for (path, _), each in notes.items()
            for note in json.loads(each.facts)
        ]
        return [line for _, line in sorted(found)]

    def _is_current(self, root: str) -> bool:
        """Return True if notes were written for a commit that leads to the checked-out one."""
        state = self._noted(_place_of(root), "")
        version, _, former = state.tip.partition(":") if state is not None else ("", "", "")
        head = _head_of(root)
        return version == str(VERSION) and (head == former or is_ancestor(root, former, head))

    def _noted(self, place: str, path: str) -> LineNotes | None:
        with self._store.database.read() as session:
            return next(iter(self._store.notes(session, [path], place).values()), None)

    def _history(self, paths: Sequence[str], reached: set[str]) -> dict[str, list[Commit]]:
        """Return the commits of files that lead to the checked-out one, newest first."""
        found = {
            path: [each for each in self.list(path=path, limit=200) if each.sha in reached]
            for path in paths
        }
        return {path: commits for path, commits in found.items() if commits}

    def _newest_at(self) -> int:
        return max((each.at for each in self.list(limit=1)), default=0)

    def list(self, *, path: str | None = None, limit: int = 50) -> list[Commit]:
        """Return the newest commits, of all files or of one.

        Args:
            path: A file, from the top of the repository; its earlier names count.
            limit: The most that are returned.
        """
        with self._store.database.read() as session:
            if path is None:
                return self._store.select(
                    session, " ORDER BY c.at DESC, c.no DESC LIMIT ?", (limit,)
                )
            found = self._store.of_files(session, [path], limit)
            while len(names := names_of(path, found)) > 1:
                more = self._store.of_files(session, names, limit)
                if len(more) == len(found):
                    break
                found = more
            return found


def _head_of(root: str | None) -> str:
    """Return the commit that is checked out; empty without one."""
    text = git_text(root, "rev-parse", "--verify", "HEAD^{commit}") if root else None
    return (text or "").strip()


def _place_of(root: str) -> str:
    """Return a checked-out folder of this machine, since others may use the same database."""
    return clean_id(f"{host_name()}:{root}")


def _is_gone(place: str) -> bool:
    host, _, root = place.partition(":")
    return host == host_name() and not os.path.isdir(root)


def _redacted(commit: Commit) -> Commit:
    # A path is looked up as it is: with a placeholder in it, it would name no file.
    names = dict.fromkeys([*commit.files, *(name for pair in commit.renames for name in pair)])
    is_clean = {name for name in names if clean_id(name) == name}
    return replace(
        commit,
        files=tuple(name for name in commit.files if name in is_clean),
        renames=tuple(pair for pair in commit.renames if is_clean.issuperset(pair)),
        author=redact(commit.author).text,
        subject=redact(commit.subject).text,
        body=redact(commit.body).text,
        reason=redact(commit.reason).text,
    )
