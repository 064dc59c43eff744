"""Which files a walk finds, and why it leaves the others out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from smara.codegraph import git as heads
from smara.codegraph.index import files
from smara.codegraph.index.files import FileWalk, NotRead, TreeReader, holds_secrets, kind_of


def put(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        write(root, name, text)
    return root


def write(root: Path, path: str, text: str = "x = 1\n") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def walk(root: Path, **given):
    return FileWalk(TreeReader(str(root)), **given).all()


def found(root: Path, **given) -> set[str]:
    return set(walk(root, **given).files)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_finds_code_prose_and_data_at_every_depth(root):
    for path in ("a.py", "pkg/b.ts", "docs/deep/er/c.md", "conf/d.toml", "Makefile", "README"):
        write(root, path)
    assert found(root) == {
        "a.py",
        "pkg/b.ts",
        "docs/deep/er/c.md",
        "conf/d.toml",
        "Makefile",
        "README",
    }


def test_gitignore_counts_at_its_own_level_and_the_nearest_rule_decides(root):
    write(root, ".gitignore", "*.gen.py\n/only_here.py\nlogs/\n")
    write(root, "pkg/.gitignore", "!keep.gen.py\nlocal.py\n")
    for path in (
        "a.gen.py",
        "pkg/a.gen.py",
        "pkg/keep.gen.py",
        "pkg/local.py",
        "local.py",
        "only_here.py",
    ):
        write(root, path)
    write(root, "pkg/only_here.py")
    write(root, "pkg/logs/a.py")
    assert {path for path in found(root) if path.endswith(".py")} == {
        "pkg/keep.gen.py",
        "local.py",
        "pkg/only_here.py",
    }


def test_what_lies_in_an_ignored_folder_cannot_be_taken_back_as_in_git(root):
    write(root, ".gitignore", "made/\n!made/kept.py\n")
    write(root, "made/kept.py")
    assert found(root) & {"made/kept.py"} == set()


def test_smaraignore_leaves_out_and_takes_back_what_git_says_nothing_of(root):
    write(root, ".gitignore", "*.log.py\n")
    write(root, ".smaraignore", "fixtures/\n!kept.log.py\n")
    for path in ("fixtures/a.py", "kept.log.py", "other.log.py"):
        write(root, path)
    assert {path for path in found(root) if path.endswith(".py")} == {"kept.log.py"}


def test_patterns_that_mean_nothing_do_not_take_the_others_with_them(root):
    write(root, ".gitignore", "!\n[\n**/a/***b\nsecret_plan.py\n\\\n")
    write(root, "secret_plan.py")
    write(root, "plan.py")
    assert {path for path in found(root) if path.endswith(".py")} == {"plan.py"}


def test_folders_that_machines_make_are_left_out_and_counted(root):
    for folder in ("node_modules", ".venv", "__pycache__", "pkg.egg-info", "build", "dist"):
        write(root, f"{folder}/a.py")
    write(root, "env2/pyvenv.cfg")
    write(root, "env2/lib/a.py")
    write(root, "a.py")
    walked = walk(root)
    assert set(walked.files) == {"a.py"}
    assert walked.skipped == {"ignored": 7}


def test_a_tracked_file_is_never_ignored_not_even_in_a_folder_called_build(root):
    write(root, ".gitignore", "*.gen.py\nvendored/\n")
    for path in ("a.gen.py", "b.gen.py", "vendored/a.py", "vendored/b.py", "build/a.py"):
        write(root, path)
    tracked = frozenset({"a.gen.py", "vendored/a.py", "build/a.py"})
    assert {path for path in found(root, tracked=tracked) if path.endswith(".py")} >= set(tracked)
    assert "b.gen.py" not in found(root, tracked=tracked)


def test_files_that_hold_secrets_are_never_read(root):
    for path in (
        ".env",
        ".env.local",
        "id_rsa",
        "deploy/prod.pem",
        ".aws/credentials.py",
        "terraform.tfstate",
        ".npmrc",
    ):
        write(root, path)
    write(root, ".env.example")
    write(root, "secrets.py")
    walked = walk(root)
    assert "secrets.py" in walked.files
    assert walked.skipped["secret"] == 7


@pytest.mark.parametrize(
    "path", ["config/credentials.yml", "Secrets.JSON", "x/service-account-prod.json", "a.key"]
)
def test_secret_names_are_known_in_any_case_and_folder(path):
    assert holds_secrets(path)


@pytest.mark.parametrize(
    "path", ["src/secrets/scan.py", "credentials.py", "keys.ts", "environment.py", "tokenizer.rs"]
)
def test_source_about_secrets_is_source(path):
    assert not holds_secrets(path)


def test_links_are_never_followed_and_say_where_they_lead(root, tmp_path):
    (tmp_path / "outside").mkdir()
    write(tmp_path, "outside/a.py")
    write(root, "pkg/b.py")
    os.symlink(tmp_path / "outside", root / "folder")
    os.symlink(tmp_path / "outside" / "a.py", root / "file.py")
    os.symlink("pkg/b.py", root / "again.py")
    os.symlink("..", root / "pkg" / "loop")
    os.symlink("nowhere.py", root / "broken.py")
    walked = walk(root)
    assert set(walked.files) == {"pkg/b.py"}
    assert walked.skipped == {"outside": 3, "not_a_file": 2}


def test_a_pipe_and_a_socket_are_no_files(root):
    import socket

    os.mkfifo(root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s.py"))
        assert walk(root).skipped == {"not_a_file": 2}


def test_names_that_cannot_be_shown_are_left_out(root):
    os.close(os.open(os.fsencode(root) + b"/\xff.py", os.O_CREAT | os.O_WRONLY))
    write(root, "a\x1b[31m.py")
    write(root, "line\nbreak/a.py")
    assert walk(root).skipped == {"unreadable": 3}


def test_a_folder_that_may_not_be_listed_is_counted(root):
    write(root, "closed/a.py")
    (root / "closed").chmod(0)
    try:
        walked = walk(root)
    finally:
        (root / "closed").chmod(0o700)
    assert walked.files == {} or os.geteuid() == 0


def test_folders_too_deep_for_a_person_are_not_entered(root):
    path = "/".join(["d"] * (files.DEEPEST + 5))
    write(root, f"{path}/a.py")
    walked = walk(root)
    assert walked.files == {}
    assert walked.skipped == {"too_many": 1}


def test_another_worktree_inside_the_folder_is_a_tree_of_its_own(root):
    write(root, "a.py")
    write(root, ".claude/worktrees/x/a.py")
    write(root, ".claude/worktrees/x/.git", "gitdir: /somewhere/.git/worktrees/x\n")
    write(root, "modules/lib/a.py")
    write(root, "modules/lib/.git", "gitdir: ../../.git/modules/lib\n")
    assert found(root) == {"a.py", "modules/lib/a.py"}


def test_some_finds_what_all_finds(root):
    write(root, ".gitignore", "no/\n*.tmp.py\n")
    paths = [
        "a.py",
        "no/a.py",
        "pkg/a.py",
        "pkg/x.tmp.py",
        "node_modules/a.py",
        "gone.py",
        "pkg/.env",
    ]
    for path in paths:
        if path != "gone.py":
            write(root, path)
    everything = found(root)
    assert (
        set(FileWalk(TreeReader(str(root))).some(paths).files)
        == everything & set(paths)
        == {"a.py", "pkg/a.py"}
    )


def test_size_beyond_the_limit_is_told_without_reading(root):
    with (root / "a.py").open("wb") as file:
        file.truncate(files.MOST_BYTES + 1)
    with (root / "b.json").open("wb") as file:
        file.truncate(files.MOST_DATA_BYTES + 1)
    assert walk(root).skipped == {"too_big": 2}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.PY", "code"), ("Dockerfile", "code"), ("x.rb", "code"), ("NOTES.txt", "prose"),
        ("a.yaml", "data"),
        ("jquery.min.js", "minified"), ("main.js.map", "minified"), ("Cargo.lock", "generated"),
        ("a.woff2", "binary"),
        ("script", None), ("a.weird", "unknown"), ("go.mod", "data"),
    ],
)  # fmt: skip
def test_kind_is_told_by_the_name(path, kind):
    assert kind_of(path) == kind


class TestReading:
    def test_reads_a_file_with_its_size_and_time(self, root):
        write(root, "a/b.py", "x = 1\n")
        opened = TreeReader(str(root)).read("a/b.py", 100)
        facts = (root / "a/b.py").stat()
        assert opened == (b"x = 1\n", facts.st_size, facts.st_mtime_ns)

    @pytest.mark.parametrize(
        "path", ["../secret.py", "a/../../secret.py", "/etc/passwd", "link/secret.py", "file.py"]
    )
    def test_nothing_outside_the_root_is_opened(self, root, tmp_path, path):
        write(tmp_path, "secret.py", "outside")
        write(tmp_path, "elsewhere/secret.py", "outside")
        (root / "a").mkdir()
        os.symlink(tmp_path / "elsewhere", root / "link")
        os.symlink(tmp_path / "secret.py", root / "file.py")
        with pytest.raises(NotRead):
            TreeReader(str(root)).read(path, 100)

    def test_a_pipe_does_not_keep_the_reader_waiting(self, root):
        os.mkfifo(root / "pipe.py")
        with pytest.raises(NotRead) as caught:
            TreeReader(str(root)).read("pipe.py", 100)
        assert caught.value.reason == "not_a_file"

    def test_a_file_larger_than_allowed_is_refused(self, root):
        write(root, "a.py", "x" * 101)
        with pytest.raises(NotRead) as caught:
            TreeReader(str(root)).read("a.py", 100)
        assert caught.value.reason == "too_big"


class TestHead:
    @pytest.fixture
    def repository(self, root):
        def git(*words: str) -> str:
            done = subprocess.run(
                ["git", "-c", "user.name=n", "-c", "user.email=e@x", *words],
                cwd=root,
                capture_output=True,
                text=True,
                check=True,
            )
            return done.stdout.strip()

        git("init", "-q", "-b", "main")
        write(root, "a.py")
        git("add", "-A")
        git("commit", "-qm", "first")
        return git

    def test_branch_and_commit_are_those_git_tells(self, root, repository):
        assert heads.head_of(str(root)) == ("main", repository("rev-parse", "HEAD"))
        repository("checkout", "-q", "-b", "topic/one")
        repository("pack-refs", "--all")
        assert heads.head_of(str(root)) == ("topic/one", repository("rev-parse", "HEAD"))

    def test_a_detached_head_has_no_branch(self, root, repository):
        repository("checkout", "-q", "--detach")
        assert heads.head_of(str(root)) == (None, repository("rev-parse", "HEAD"))

    def test_a_worktree_has_its_own_head(self, root, repository, tmp_path):
        repository("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
        assert heads.head_of(str(tmp_path / "side")).branch == "side"
        assert heads.head_of(str(root)).branch == "main"
        assert heads.tracked_paths(str(tmp_path / "side")) == {"a.py"}

    def test_a_repository_cannot_make_the_index_run_a_program(self, root, repository):
        mark = root.parent / "ran"
        repository("config", "core.fsmonitor", f"touch {mark}; false")
        assert heads.tracked_paths(str(root)) == {"a.py"}
        assert not mark.exists()

    def test_exclude_file_of_git_counts(self, root, repository):
        (root / ".git/info").mkdir(exist_ok=True)
        (root / ".git/info/exclude").write_text("private.py\n")
        write(root, "private.py")
        assert "private.py" not in found(root, excludes=heads.exclude_lines(str(root)))

    def test_outside_of_git_there_is_no_head(self, root):
        assert heads.head_of(str(root)) == (None, None)
        assert heads.tracked_paths(str(root)) is None
