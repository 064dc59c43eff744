"""Which instruction files a repository has, and what is drawn in by them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from instruction_samples import write_repository

from smara.adapters.instructions import find_instructions
from smara.adapters.instructions.collect import MAX_BYTES, gather, mentions_in, modules_of
from smara.errors import NotFoundError
from tests.other_user import open_folder, run_as_user


def paths(root: Path) -> list[str]:
    return [each.path for each in find_instructions(root)]


def test_every_host_is_found_and_other_peoples_code_is_not(tmp_path):
    found = {each.path: each.host for each in find_instructions(write_repository(tmp_path))}
    assert found == {
        "AGENTS.md": "agents",
        "CLAUDE.md": "claude",
        "CLAUDE.local.md": "claude",
        "GEMINI.md": "gemini",
        ".cursorrules": "cursor",
        ".cursor/rules/api.mdc": "cursor",
        ".github/copilot-instructions.md": "copilot",
        ".github/instructions/tests.instructions.md": "copilot",
        ".windsurfrules": "windsurf",
        ".clinerules/01-style.md": "cline",
        ".goosehints": "goose",
        "CONVENTIONS.md": "aider",
        "packages/api/CLAUDE.md": "claude",
    }


def test_file_knows_the_folder_it_speaks_of_and_whether_it_is_personal(tmp_path):
    found = {each.path: each for each in find_instructions(write_repository(tmp_path))}
    assert found["packages/api/CLAUDE.md"].folder == "packages/api"
    assert found[".cursor/rules/api.mdc"].folder == ""
    assert [path for path, each in found.items() if each.is_personal] == ["CLAUDE.local.md"]


def test_two_names_of_one_file_are_one_file(tmp_path):
    (tmp_path / "AGENTS.md").write_text("- Use tabs\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert paths(tmp_path) == ["AGENTS.md"]


def test_link_that_leads_out_of_the_repository_is_not_followed(tmp_path):
    (tmp_path / "secret.md").write_text("- Somebody's own rule\n")
    root = tmp_path / "repo"
    root.mkdir()
    (root / "CLAUDE.md").symlink_to("../secret.md")
    (root / "linked").symlink_to(tmp_path, target_is_directory=True)
    assert paths(root) == []


def test_imports_inside_the_root_are_read_once_and_those_outside_are_listed(tmp_path):
    gathered = gather(write_repository(tmp_path))
    assert [each.file.path for each in gathered.read].count("docs/testing.md") == 1
    assert [each.file.path for each in gathered.read].count("AGENTS.md") == 1
    assert [(each.target, each.reason) for each in gathered.not_followed] == [
        ("README.md", "not a file of instructions"),
        ("~/.claude/notes.md", "outside the repository"),
    ]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../outside.md", "outside the repository"), ("./missing.md", "not there"),
        ("~/notes.md", "outside the repository"),
        ("package.json", "not a file of instructions"),
    ],
)  # fmt: skip
def test_import_that_is_not_followed_says_why(tmp_path, target, reason):
    (tmp_path / "outside.md").write_text("- Not yours\n")
    root = tmp_path / "repo"
    write_repository(root, {"CLAUDE.md": f"Look at @{target}.\n", "package.json": "{}"})
    assert [each.reason for each in gather(root).not_followed] == [reason]


def test_files_that_draw_in_each_other_are_read_once(tmp_path):
    write_repository(
        tmp_path,
        {"CLAUDE.md": "@a.md\n", "a.md": "@b.md\n- Rule of a\n", "b.md": "@a.md\n- Rule of b\n"},
    )
    assert [each.file.path for each in gather(tmp_path).read] == ["CLAUDE.md", "a.md", "b.md"]


def test_named_files_and_folders_are_read_alone(tmp_path):
    root = write_repository(tmp_path)
    named = gather(root, [root / "CONVENTIONS.md", root / "packages" / "api"])
    assert [each.file.path for each in named.read] == ["CONVENTIONS.md", "packages/api/CLAUDE.md"]
    assert named.is_whole is False
    assert gather(root, [root]).is_whole is True


def test_file_that_no_host_knows_is_read_when_it_is_named(tmp_path):
    write_repository(tmp_path, {"docs/rules.md": "- Use tabs everywhere\n"})
    (read,) = gather(tmp_path, [tmp_path / "docs" / "rules.md"]).read
    assert (read.file.path, read.file.host) == ("docs/rules.md", "any")


def test_missing_path_is_refused_by_name(tmp_path):
    with pytest.raises(NotFoundError, match=r"nowhere\.md"):
        gather(tmp_path, [tmp_path / "nowhere.md"])


def test_what_cannot_be_read_is_told_and_the_others_are_read(tmp_path):
    write_repository(tmp_path, {"CLAUDE.md": "- Use tabs\n", "GEMINI.md": "x" * (MAX_BYTES + 1)})
    (tmp_path / ".cursorrules").write_bytes(b"\x00\x01binary")
    gathered = gather(tmp_path)
    assert [each.file.path for each in gathered.read] == ["CLAUDE.md"]
    assert [path for path, _ in gathered.unreadable] == [".cursorrules", "GEMINI.md"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_files_of_other_editors_are_read(tmp_path, encoding):
    (tmp_path / "CLAUDE.md").write_text("- Größen in Millimetern\n", encoding=encoding)
    (read,) = gather(tmp_path).read
    assert [each.text for each in read.parsed.statements] == ["Größen in Millimetern"]


GATHERED = "print(gather(sys.argv[1]).unreadable[0][1])"
LOADED = """
import sys
from smara.adapters.instructions.collect import gather
gather(sys.argv[1])  # what is imported late is imported now
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_file_without_permission_is_told():
    with open_folder() as folder:
        (folder / "CLAUDE.md").write_text("- Use tabs\n")
        (folder / "CLAUDE.md").chmod(0)
        assert "permissions" in run_as_user(LOADED, GATHERED, str(folder))


def test_files_and_folders_are_mentioned_when_they_are_there_or_can_be_nothing_else(tmp_path):
    write_repository(tmp_path, {"src/auth/login.py": "", "src/auth/token.py": "", "Makefile": ""})
    text = (
        "Look at `src/auth/login.py:10-20`, src/auth/, `gone/away.rs`, Makefile and `token.py`; "
        "not Next.js, and/or @types/x, http://a.b/c.md"
    )
    found = mentions_in(text, str(tmp_path))
    assert found.files == ("src/auth/login.py", "gone/away.rs", "Makefile", "token.py")
    assert found.modules == ("src/auth",)


def test_paths_of_a_nested_file_begin_at_its_folder(tmp_path):
    write_repository(tmp_path, {"packages/api/src/a.ts": ""})
    assert mentions_in("see `src/a.ts`", str(tmp_path), "packages/api").files == (
        "packages/api/src/a.ts",
    )


def test_globs_speak_of_folders(tmp_path):
    assert modules_of(["src/api/**/*.ts", "*.md", "docs/*.md", "{a,b}/x.ts"], str(tmp_path)) == (
        "src/api",
        "docs",
    )
