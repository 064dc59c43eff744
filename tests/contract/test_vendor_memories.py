"""What agents noted by themselves becomes memories: once, with its lines, only of this repository,
and unconfirmed.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.host_specs.claude import slug
from smara.adapters.vendor_memories import import_vendor_memories
from smara.errors import InvalidInputError
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE
FOLDER = Path(__file__).parents[1] / "fixtures" / "vendor_memories"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def home(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of four agents that have notes about the repository."""
    for variable, name in (
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("CODEX_HOME", "codex"),
        ("GEMINI_CONFIG_DIR", "gemini"),
    ):
        monkeypatch.setenv(variable, str(tmp_path / name))
    shutil.copytree(
        FOLDER / "claude", tmp_path / "claude" / "projects" / slug(str(root)) / "memory"
    )
    shutil.copytree(FOLDER / "codex", tmp_path / "codex" / "memories")
    (tmp_path / "codex" / "memories" / "older.md").unlink()
    handbook = tmp_path / "codex" / "memories" / "MEMORY.md"
    handbook.write_text(handbook.read_text().replace("ROOT", str(root)))
    shutil.copytree(FOLDER / "gemini", tmp_path / "gemini")
    shutil.copytree(FOLDER / "goose", root / ".goose" / "memory")
    return tmp_path


@pytest.fixture
def bring(memory: Any, root: Path, home: Path, clock: Any) -> Callable[..., Any]:
    def again(*vendors: Any, **given: Any) -> Any:
        clock.advance(1)
        return import_vendor_memories(
            memory, root, vendors or ("claude", "codex", "gemini", "goose"), **given
        )

    return again


def contents(memory: Any) -> dict[str, Any]:
    return {each.content: each for each in memory.memories.list(limit=100)}


def test_a_rule_of_claude_comes_with_its_reason_as_one_memory(memory, bring, home):
    bring("claude")
    (rule,) = [
        each for each in contents(memory).values() if each.content.startswith("Integration tests")
    ]
    assert "Why: Mocked tests passed" in rule.content
    assert "How to apply:" in rule.content
    assert (rule.type, rule.source, rule.taint) == ("preference", "imported", ("imported",))
    assert rule.visibility == "personal"
    assert (rule.is_verified, rule.needs_review) == (False, True)
    (place,) = rule.evidence
    assert place.path.endswith("memory/feedback_testing.md")
    assert (place.first_line, place.last_line) == (7, 11)


def test_the_index_only_points_but_what_it_says_itself_counts(memory, bring):
    report = bring("claude")
    known = contents(memory)
    assert any(each.startswith("The worker hangs when REDIS_URL") for each in known)
    assert not any("integration tests hit a real database" in each for each in known)
    left = [each.reason for file in report.files for each in file.left_out]
    assert left.count("only points to a note") == 2


def test_secrets_in_notes_are_not_stored(memory, bring):
    bring("claude")
    assert not any("ghp_0123" in each for each in contents(memory))


def test_of_codex_only_the_blocks_about_this_folder_come_in(memory, bring):
    report = bring("codex")
    known = contents(memory)
    types = {content.split(" ", 1)[0]: each.type for content, each in known.items()}
    assert sorted(types) == ["Always", "The", "`npm", "when"]
    assert types["when"] == "preference"
    assert types["`npm"] == "gotcha"
    assert not any(
        "[Task 1]" in each or "other app" in each or "keywords" in each for each in known
    )
    left = {each.reason for file in report.files for each in file.left_out}
    assert {"it is about another folder", "it does not say which folder it is about"} <= left


def test_gemini_gives_what_it_added_itself_and_goose_its_categories(memory, bring):
    bring("gemini", "goose")
    assert sorted(each.split(" ")[0] for each in contents(memory)) == ["Run", "The", "The", "Use"]


def test_importing_again_changes_nothing_and_touches_no_file(memory, bring, home):
    def files() -> dict[str, str]:
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in home.rglob("*")
            if path.is_file()
        }

    before = {path: digest for path, digest in files().items() if "smara.db" not in path}
    first = bring()
    assert first.counts["added"] == len(contents(memory)) >= 9
    held = [(each, memory.memories.history(each.id)) for each in memory.memories.export()]
    assert bring().is_nothing_new
    assert [(each, memory.memories.history(each.id)) for each in memory.memories.export()] == held
    assert {path: digest for path, digest in files().items() if "smara.db" not in path} == before


def test_a_dry_run_says_it_all_and_stores_nothing(memory, bring):
    report = bring(is_dry_run=True)
    assert report.counts["added"] >= 9
    assert contents(memory) == {}


def test_a_note_that_the_agent_dropped_is_put_aside_here(memory, bring, home, root):
    bring("claude")
    (home / "claude" / "projects" / slug(str(root)) / "memory" / "feedback_testing.md").unlink()
    assert bring("claude").counts["removed"] == 1
    assert not any(each.startswith("Integration tests") for each in contents(memory))


def test_the_settings_of_claude_may_name_another_folder(memory, bring, home, root, tmp_path):
    (root / ".claude").mkdir()
    (root / ".claude" / "settings.json").write_text(
        f'{{"autoMemoryDirectory": "{tmp_path}/elsewhere"}}'
    )
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "note.md").write_text(
        "Deploys go through the gateway, never straight to the cluster.\n"
    )
    bring("claude")
    assert any(each.startswith("Deploys go through") for each in contents(memory))


def test_a_file_that_is_no_text_is_told_and_the_others_come_in(memory, bring, home, root):
    folder = home / "claude" / "projects" / slug(str(root)) / "memory"
    (folder / "broken.md").write_bytes(b"\x00\x01" * 50)
    (folder / "huge.md").write_text("x " * 400_000)
    report = bring("claude")
    assert sorted(Path(path).name for path, _ in report.unreadable) == ["broken.md", "huge.md"]
    assert report.counts["added"] >= 3


def test_an_agent_nobody_knows_is_refused_by_name(memory, root):
    with pytest.raises(InvalidInputError, match="claude, codex, gemini, goose"):
        import_vendor_memories(memory, root, ["cursor"])
