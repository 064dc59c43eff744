"""Churn and co-change: counted by hand, read from a real repository, and taken in piece by
piece.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import smara
from smara.codegraph.git import CommittedFiles, commits, parse_commits
from smara.codegraph.history import MOST_TOGETHER, CodeHistory, Tally
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.store import CodeStore


def commit(
    number: int, *changed: str, renamed: tuple[tuple[str, str], ...] = (), author: str = "a"
) -> CommittedFiles:
    return CommittedFiles(f"{number:040x}", number * 1000, author, changed=changed, renamed=renamed)


def tallied(*commits: CommittedFiles) -> Tally:
    tally = Tally()
    for each in commits:
        tally.add(each)
    return tally


def test_files_of_one_commit_changed_together():
    tally = tallied(commit(1, "a", "b"), commit(2, "a", "b", "c"), commit(3, "a"))
    assert tally.pairs() == {("a", "b"): (2, 2000), ("a", "c"): (1, 2000), ("b", "c"): (1, 2000)}
    assert (tally.churn["a"].commits, tally.churn["a"].first_at, tally.churn["a"].last_at) == (
        3,
        1000,
        3000,
    )


def test_a_mass_commit_counts_as_a_change_but_joins_nothing():
    mass = commit(1, *(f"f{number}" for number in range(MOST_TOGETHER + 1)))
    tally = tallied(mass, commit(2, "f0", "f1"))
    assert tally.pairs() == {("f0", "f1"): (1, 2000)}
    assert (tally.churn["f0"].commits, tally.churn["f0"].counted) == (2, 1)


def test_a_renamed_file_keeps_its_past():
    tally = tallied(
        commit(1, "old", "b"), commit(2, "new", renamed=(("old", "new"),)), commit(3, "new", "b")
    )
    assert tally.pairs() == {("b", "new"): (2, 3000)}
    assert tally.churn["new"].commits == 3
    assert "old" not in tally.churn


def test_a_file_renamed_onto_its_companion_does_not_change_with_itself():
    tally = tallied(commit(1, "a", "b"), commit(2, "b", renamed=(("a", "b"),)))
    assert tally.pairs() == {}
    assert tally.churn["b"].commits == 3


def test_a_log_is_read_with_renames_and_odd_names():
    changes = "M\x00x y.py\x00R090\x00old.py\x00new\tname.py\x00D\x00gone.py\x00"
    text = "\x1e" + "a" * 40 + f"\x1f7\x1fMe@x\x1f\n\x00{changes}"
    (found,) = parse_commits(text)
    assert (found.at_ms, found.author) == (7000, "me@x")
    assert found.changed == ("x y.py", "new\tname.py", "gone.py")
    assert found.renamed == (("old.py", "new\tname.py"),)


@pytest.mark.parametrize(
    "junk", ["", "\x1e", "\x1eabc", "\x1ea\x1fb\x1fc\x1fd", "\x1ea\x1f1\x1fc\x1fM", "R100\x00"]
)
def test_a_broken_log_gives_what_can_be_read(junk):
    assert all(not each.changed for each in parse_commits(junk))


class Repository:
    """A real repository to write commits to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = (
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
        )
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            path = self.root / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "repo"
    root.mkdir()
    return Repository(root)


class Keeping:
    """The history of a repository, kept in a store."""

    def __init__(self, memory: smara.Memory, repository: Repository) -> None:
        self.repository = repository
        self.store = CodeStore(memory._rooms.database, memory._rooms.scope)
        with memory._rooms.database.write() as session:
            self.tree_no = self.store.begin_tree(session, str(repository.root), 1).no
        self.lookup = CodeLookup(memory._rooms.database, memory._rooms.scope, self.tree_no)
        self.history = CodeHistory(self.lookup, str(repository.root))
        self.number = 0

    def read(self):
        files = self.repository.git("ls-files").split()
        with self.lookup.database.write() as session:
            for path in files:
                self.number += 1
                self.store.put_file(
                    session,
                    self.tree_no,
                    (self.number, path, "python", "code", b"", 1, 1, 1, 0, None, 1, 1, None),
                )
        return self.history.read()

    def together(self, path: str) -> dict[str, tuple[int, float]]:
        with self.lookup.database.read() as session:
            return {
                each.path: (each.together, each.confidence)
                for each in self.history.together(session, path)
            }

    def churn(self) -> dict[str, int]:
        with self.lookup.database.read() as session:
            return {path: each.commits for path, each in self.history.churn(session).items()}


@pytest.fixture
def keeping(tmp_path: Path, repository: Repository) -> Iterator[Keeping]:
    with smara.open(tmp_path / "smara.db", durability="normal") as memory:
        yield Keeping(memory, repository)


def test_a_new_project_starts_warm(keeping, repository):
    for number in range(3):
        repository.commit(a_py=f"a{number}", b_py=f"b{number}")
    repository.commit(a_py="alone", c_py="c")
    report = keeping.read()
    assert (report.commits, report.is_whole) == (4, True)
    assert keeping.together("a.py") == {"b.py": (3, 0.75)}
    assert keeping.together("b.py") == {"a.py": (3, 1.0)}
    assert keeping.churn() == {"a.py": 4, "b.py": 3, "c.py": 1}


def test_only_new_commits_are_read_and_twice_is_the_same_as_once(keeping, repository):
    repository.commit(a_py="1", b_py="1")
    keeping.read()
    assert keeping.read().commits == 0
    repository.commit(a_py="2", b_py="2")
    report = keeping.read()
    assert (report.commits, report.is_whole) == (1, False)
    assert keeping.together("a.py") == {"b.py": (2, 1.0)}


def test_after_a_rebase_everything_is_counted_anew(keeping, repository):
    for number in range(3):
        repository.commit(a_py=f"a{number}", b_py=f"b{number}")
    keeping.read()
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.commit(a_py="other")
    assert keeping.read().is_whole
    assert keeping.churn() == {"a.py": 3, "b.py": 2}


def test_merges_count_once_and_a_moved_file_keeps_its_past(keeping, repository):
    repository.commit(a_py="line\n" * 20, b_py="1")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit(b_py="2")
    repository.git("checkout", "-q", "main")
    repository.commit(c_py="3")
    repository.git("merge", "-q", "--no-ff", "-m", "m", "side")
    repository.git("mv", "a.py", "moved.py")
    repository.git("commit", "-q", "-m", "mv")
    keeping.read()
    assert keeping.churn() == {"moved.py": 2, "b.py": 2, "c.py": 1}


def test_a_folder_inside_a_repository_sees_its_own_paths(repository):
    repository.commit(src__a_py="1", other_py="1")
    found = commits(str(repository.root / "src"))
    assert [each.changed for each in found] == [("a.py",)]


def test_without_git_there_is_no_history(tmp_path):
    assert commits(str(tmp_path)) == []
    assert commits(str(tmp_path / "missing")) == []


@pytest.mark.parametrize("seed", range(5))
def test_piece_by_piece_is_the_same_as_all_at_once(seed, keeping, repository, tmp_path):
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]
    for number in range(8):
        repository.commit(
            **{
                f"{name}_py": str(number) + name * 30
                for name in rng.sample(names, rng.randrange(1, 4))
            }
        )
        if rng.random() < 0.3 and (repository.root / "a.py").exists():
            repository.git("mv", "a.py", f"a{number}.py")
            repository.git("commit", "-q", "-m", "mv")
        if rng.random() < 0.6:
            keeping.read()
    keeping.read()
    with smara.open(tmp_path / "other.db", durability="normal") as memory:
        whole = Keeping(memory, repository)
        whole.read()
        existing = set(whole.churn())
        assert {
            path: count for path, count in keeping.churn().items() if path in existing
        } == whole.churn()
        for path in existing:
            ours = {
                other: each for other, each in keeping.together(path).items() if other in existing
            }
            assert ours == whole.together(path)
