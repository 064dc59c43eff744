"""Make and judge a project's anchors for the current tree.

The current tree is the folder in which the memory was opened. Two worktrees of one repository may
get two verdicts on one memory, and both are right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from smara.codegraph.anchors.models import Anchor, AnchorTree, CodePlace, Named, NewAnchor, Owner
from smara.codegraph.anchors.store import AnchorStore
from smara.core.freshness import Freshness, Policy, combine_verdicts
from smara.core.git import find_repository
from smara.core.startup.record import dataclass, replace
from smara.database.database import Session
from smara.database.projects import ProjectContext
from smara.secrets.redact import clean_id

if TYPE_CHECKING:
    from smara.codegraph.git import GitFiles
    from smara.codegraph.graph import CodeGraph


_UNSEEN_SECONDS = 1.0
_MOST_MADE = 4
"""How many times the files of one question may be read to make anchors: that is done once, not at
every reading.
"""


@dataclass(frozen=True, slots=True)
class AnchorStatement:
    """Something that may name code.

    What it names by itself, and its words.

    ``commit`` is where it was learned, ``made_at`` when. For what was said long ago, ``is_past``,
    the code is looked up as it was then.
    """

    owner: Owner
    no: int
    named: Sequence[Named]
    text: str
    commit: str | None = None
    made_at: int = 0
    is_past: bool = False


class Anchors:
    """Makes and judges the anchors of one project, for one tree.

    ``find_root`` names the folder that asks; without one nothing is anchored and nothing judged.
    The settings bound what one question reads from the disk.
    """

    def __init__(
        self,
        project: ProjectContext,
        find_root: Callable[[], str | None],
        find_code: Callable[[], CodeGraph],
    ) -> None:
        self.store = AnchorStore(project.database, project.scope)
        settings = project.settings
        self._clock = project.clock
        self._find_root = find_root
        self._find_code = find_code
        self._policy = Policy(
            settings.freshness_drifted,
            settings.freshness_orphaned,
            settings.freshness_withhold_fraction,
        )
        self._most_files = settings.freshness_read_files
        self._pasts: dict[str, GitFiles] = {}
        self._looked_at: dict[tuple[Owner, str], int] = {}
        self._places: dict[tuple[str, int, int], tuple[CodePlace, ...]] = {}
        self._unseen: tuple[str, float, Collection[str]] = ("", 0.0, ())

    def tree(self, session: Session) -> AnchorTree | None:
        """Return the tree that asks, with its index, if it has one.

        It is the repository around the folder we are in, if that is this project's: it or another
        folder of the same repository was indexed in it, or the project is that repository, or none.
        Otherwise we are elsewhere, as a server is, and what was indexed last is meant.
        """
        here, indexed = self._find_root(), self.store.trees(session)
        real = os.path.realpath(here) if here is not None else None
        mine = _repository_of(real) if real is not None else ""
        if real is not None and (
            any(_repository_of(each) == mine for each in indexed)
            if indexed
            else mine in (self.store.repositories(session) or {mine})
        ):
            root = real
        else:
            root = next((each for each in indexed if os.path.isdir(each)), "")
        if not root:
            return None
        no, is_ready = indexed.get(root, (None, False))
        return AnchorTree(root, _repository_of(root), no, is_ready=is_ready)

    # judging

    def judge(self, session: Session, owner: Owner, numbers: Sequence[int]) -> dict[int, Freshness]:
        """Return how memories or observations stand to the code they name.

        Those that name none are left out.
        """
        anchors = self.store.of(session, owner, numbers) if numbers else {}
        tree = self.tree(session) if anchors else None
        if tree is None:
            return {}
        # Anchors of another repository are its own business, unless it is gone or a clone of this.
        clones = self.store.repositories(session) | {tree.repository}
        mine = [
            each
            for theirs in anchors.values()
            for each in theirs
            if each.repository in clones or not os.path.isdir(each.repository)
        ]
        if not mine:
            return {}
        from smara.codegraph.anchors.disk import Disk
        from smara.codegraph.anchors.verdict import AnchorJudge
        from smara.codegraph.parse.source import likeness

        judged = AnchorJudge(
            self.store,
            session,
            tree,
            disk=Disk(tree.root, self._most_files, self._places),
            past=self._past(tree),
            unseen=lambda: self._find_unseen(tree.root),
            likeness=likeness,
        ).judge(mine)
        return {
            no: combine_verdicts(verdicts, self._policy)
            for no, theirs in anchors.items()
            if (verdicts := [judged[each.no] for each in theirs if each.no in judged])
        }

    def _find_unseen(self, root: str) -> Collection[str]:
        """Return the files that the index has not seen as they are now.

        It takes a walk over the whole tree, which every search that finds an orphan would pay for,
        so the answer holds for a second.
        """
        seen_root, at, unseen = self._unseen
        if seen_root != root or self._clock.monotonic() - at >= _UNSEEN_SECONDS:
            unseen = {path for paths in self._find_code().changed_paths(root) for path in paths}
            self._unseen = (root, self._clock.monotonic(), unseen)
        return unseen

    # making

    def make(
        self, session: Session, statement: AnchorStatement
    ) -> tuple[AnchorTree, list[NewAnchor]] | None:
        """Return the code that a statement names, looked up; writes nothing.

        ``None`` without a tree.
        """
        if (tree := self.tree(session)) is None:
            return None
        from smara.codegraph.anchors.disk import Disk
        from smara.codegraph.anchors.maker import AnchorMaker

        past = self._past(tree)
        disk = Disk(tree.root, _MOST_MADE * self._most_files, self._places)
        commit = self._commit_of(statement, past)
        maker = AnchorMaker(self.store, session, tree, disk=disk, past=past, commit=commit)
        return tree, maker.make(statement.named, statement.text)

    def put(self, statements: Iterable[AnchorStatement]) -> int:
        """Anchor statements to the code they name; how many got any anchor.

        What they named before and name still stays as it was. What is looked up is read before
        anything is locked.
        """
        anchored = 0
        for statement in statements:
            with self.store.database.read() as session:
                made = self.make(session, statement)
                there = self._there(session, statement)
            if made is None:
                return anchored
            named = [each for each in there if _is_named(each, statement)]
            # Perhaps elsewhere by now: not two of one.
            symbols = {each.symbol for each in named if each.kind == "symbol"}
            new = [each for each in made[1] if each.kind != "symbol" or each.symbol not in symbols]
            self._write(statement, made[0], [*named, *new], named)
            anchored += bool(named or new)
        return anchored

    def _there(self, session: Session, statement: AnchorStatement) -> list[Anchor]:
        return self.store.of(session, statement.owner, [statement.no]).get(statement.no, [])

    def verify(self, statement: AnchorStatement) -> None:
        """Anchor a statement to the code of today.

        What it was anchored to is followed to where it is now.

        The lines that a statement rests on are those of the day on which it was made, so where they
        were anchored, the anchor says which code they mean, and not the lines.
        """
        with self.store.database.read() as session:
            there = self._there(session, statement)
            stands = self.judge(session, statement.owner, [statement.no]).get(statement.no)
            followed = [
                # Lines tell where something without a name is; a file has none that matter.
                Named(
                    each.now_path,
                    each.now_symbol,
                    each.first_line if each.is_lines and not each.now_symbol else None,
                    last_line=each.last_line if each.is_lines and not each.now_symbol else None,
                    commit=None,
                    named_by="evidence",
                )
                for each in (stands.anchors if stands is not None else ())
                if each.now_path is not None
            ]
            named = [
                each._replace(commit=None)
                for each in statement.named
                if not there or each.first_line is None
            ]
            made = self.make(
                session, replace(statement, named=[*followed, *named], commit=None, is_past=False)
            )
        if made is not None:
            self._write(statement, *made, [])

    def catch_up(self, statement: AnchorStatement) -> None:
        """Anchor pending records to the code of their time.

        Pending is what was never anchored, or only without an index. Where the code of that time is
        not known, earlier anchors stay, since the code of today may differ; what never was anchored
        speaks of the code of today.
        """
        with self.store.database.read() as session:
            there = self._there(session, statement)
            if (tree := self.tree(session)) is None:
                return
            stands = self.judge(session, statement.owner, [statement.no]).get(statement.no)
            is_same = bool(there) and stands is not None and stands.verdict == "fresh"
            looked_up = statement if is_same else replace(statement, is_past=True)
            is_dark = (
                bool(there) and not is_same and self._commit_of(looked_up, self._past(tree)) is None
            )
            anchors = list(there) if is_dark else (self.make(session, looked_up) or (tree, []))[1]
        self._write(statement, tree, anchors, there)

    def _write(
        self,
        statement: AnchorStatement,
        tree: AnchorTree,
        anchors: Sequence[NewAnchor],
        there: Sequence[Anchor],
    ) -> None:
        """Keep of what is there what is among the anchors, add the others, and retire the rest."""
        after, before = set(map(_key, anchors)), set(map(_key, there))
        new = [each for each in anchors if _key(each) not in before]
        with self.store.database.write(is_derived=True) as session:
            self.store.replace(
                session,
                statement.owner,
                statement.no,
                anchors=new,
                staying=[each.no for each in there if _key(each) in after],
                repository=tree.repository,
                has_index=tree.has_index,
                now_ms=self._clock.now_ms(),
            )

    def take_back(self, owner: Owner, owner_no: int, since_ms: int) -> None:
        """Restore the anchors from before a reverted verification.

        What it spoke of before is what it speaks of.
        """
        with self.store.database.write(is_derived=True) as session:
            self.store.take_back(session, owner, owner_no, since_ms)

    def pending(self, owner: Owner, limit: int) -> Iterator[list[int]]:
        """Yield pending records in batches; none before there is an index.

        Pending is what was never anchored, or only without an index. The caller must anchor a batch
        before taking the next.
        """
        with self.store.database.read() as session:
            tree, newest = self.tree(session), self.store.newest(session, owner)
        if tree is None or not tree.has_index:
            return
        above, below = self._looked_at.get((owner, tree.root), 0), newest + 1
        while True:
            numbers = self.store.ask(self.store.pending, owner, above, below, limit=limit)
            if not numbers:
                break
            yield numbers
            below = numbers[-1]
        self._looked_at[owner, tree.root] = newest

    def _commit_of(self, statement: AnchorStatement, past: GitFiles) -> str | None:
        """Return where to read the code.

        At a commit, when that is not the one checked out; ``None`` for the folder itself.
        """
        if (head := past.head()) is None:
            return None
        if (commit := past.commit(statement.commit)) is None and statement.is_past:
            commit = past.commit_at(statement.made_at)
        return None if commit == head else commit

    def _past(self, tree: AnchorTree) -> GitFiles:
        from smara.codegraph.git import GitFiles

        return self._pasts.setdefault(tree.root, GitFiles(tree.root))


def _is_named(anchor: Anchor, statement: AnchorStatement) -> bool:
    last = anchor.symbol.rpartition(".")[2]
    if anchor.named_by == "text":
        return (last or anchor.path) in statement.text
    return any(
        each.path is not None
        and (each.path == anchor.path or anchor.path.endswith(f"/{each.path}"))
        for each in statement.named
    )


def _repository_of(root: str) -> str:
    repository = find_repository(root)
    return clean_id(repository.common_dir if repository is not None else root)


def _key(anchor: NewAnchor) -> tuple[str, str, str, int | None]:
    line = anchor.first_line if anchor.kind == "lines" else None
    return anchor.kind, anchor.path, anchor.symbol, line
