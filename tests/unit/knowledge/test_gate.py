"""The gate: junk stays out, with its reason; what was learned passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.escape import BLOCKS
from smara.knowledge.gate import (
    LEARNED_PER_SESSION,
    holds_injected,
    is_echo,
    is_instruction_file,
    limit_for,
    reasons_against,
    without_injected,
)
from smara.knowledge.models import Evidence
from smara.knowledge.statements import parse_statement

MESSAGE = (Evidence(message_id="1"),)
GOOD = [
    "Token refresh fails silently when Redis is unreachable",
    "Auth tests require REDIS_URL, or they hang",
    "We chose SQLite because one file is easier to back up",
    "Nothing is written into the user's repository",
    "You are billed per request by the maps API",
    "`<UserCard>` must be wrapped in `<ThemeProvider>`",
    "The user table is partitioned by month",
    "No migration is ever edited after release",
    "I/O errors of the disk are retried three times",
    "重跑测试之前先清缓存",
    "Let blocks in Swift shadow outer names in `Parser.swift`",
]
JUNK = {
    "You are a helpful assistant that writes code": "system prompt",
    "I will now run the tests": "plan",
    "Let me look at the file first": "plan",
    "I'm currently reading the tests": "at the moment",
    "All tests pass.": "something was done",
    "Done!": "something was done",
    "No relevant memories found": "nothing was found",
    "Nothing to remember.": "nothing was found",
    "N/A": "nothing was found",
    "Should we use Redis here?": "question",
    "Redis": "too short",
    "The user asked about the weather": "tells of the user",
    "ok": "something was done",
    "<observations>* (09:00) used pnpm</observations>": "repeats what a memory",
    "As noted [^ Memory: pnpm decision] we use pnpm": "repeats what a memory",
    "word " * 40: "repeats itself",
}


@pytest.mark.parametrize("text", GOOD)
@pytest.mark.parametrize("source", ["agent_explicit", "observer_inferred", "commit_auto"])
def test_what_was_learned_passes(text, source):
    assert reasons_against(text, source, MESSAGE, files=()) == ()


@pytest.mark.parametrize(("text", "reason"), JUNK.items())
def test_junk_is_refused_with_its_reason(text, reason):
    assert any(
        reason in why for why in reasons_against(text, "observer_inferred", MESSAGE, files=())
    )


@pytest.mark.parametrize("text", [*JUNK, *GOOD])
def test_what_a_person_teaches_passes_whatever_it_is(text):
    assert reasons_against(text, "user_taught", (), files=()) == ()


@pytest.mark.parametrize("source", ["observer_inferred", "qa_auto", "mcp_auto", "commit_auto"])
def test_what_is_inferred_needs_evidence(source):
    assert "evidence" in reasons_against(GOOD[0], source, (), files=())[0]


def test_an_agent_names_a_file_a_message_or_its_session():
    assert reasons_against(GOOD[0], "agent_explicit", (), files=(), has_session=False)
    assert not reasons_against(GOOD[0], "agent_explicit", (), files=("a.py",), has_session=False)
    assert not reasons_against(GOOD[0], "agent_explicit", (), files=(), has_session=True)


@pytest.mark.parametrize(
    "path",
    [
        "CLAUDE.md", "packages/app/CLAUDE.md", "AGENTS.md", ".cursorrules",
        ".cursor/rules/python.mdc", "GEMINI.md",
        ".github/copilot-instructions.md", ".windsurfrules", "app\\AGENTS.md",
        ".claude/settings.json",
    ],
)  # fmt: skip
def test_nothing_is_inferred_from_instruction_files_but_they_can_be_imported(path):
    assert is_instruction_file(path)
    evidence = (Evidence(path=path, first_line=3),)
    assert any(
        "import the file" in why
        for why in reasons_against(GOOD[0], "observer_inferred", evidence, files=())
    )
    assert reasons_against(GOOD[0], "imported", evidence, files=()) == ()


@pytest.mark.parametrize(
    "path", ["src/claude.py", "docs/agents.txt", "cursorrules", "README.md", "rules/a.mdc"]
)
def test_other_files_are_no_instruction_files(path):
    assert not is_instruction_file(path)


BOOT = """# Rules

- Use pnpm, never npm, for installing packages.
- Write tests for every bug that was fixed.

The API is versioned by date, and every endpoint checks the token of the caller first."""


@pytest.mark.parametrize(
    "text",
    [
        "Use pnpm, never npm, to install packages",
        "Every endpoint of the API checks the token of the caller first",
    ],
)
def test_what_boot_files_say_is_not_learned_again(text):
    assert is_echo(parse_statement(text), [BOOT])
    assert any(
        "told this already" in why
        for why in reasons_against(text, "agent_explicit", MESSAGE, files=(), already_told=[BOOT])
    )


@pytest.mark.parametrize(
    "text", ["Use npm for installing packages", "pnpm 9 breaks the build of packages/app", "tests"]
)
def test_what_boot_files_do_not_say_is_no_echo(text):
    assert not is_echo(parse_statement(text), [BOOT])


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_ours_is_cut_out_of_what_is_learned_from(name):
    text = f"before <{name} id='1'>inside\n<{name}>deep</{name}></{name}> after"
    assert holds_injected(text)
    assert "deep" not in without_injected(text)
    assert without_injected(text).startswith("before ")
    assert without_injected(text).endswith(" after")


def test_a_block_that_is_never_closed_loses_only_its_tag():
    assert without_injected("a <observations> b") == "a  b"
    assert without_injected("a </observations> b") == "a  b"


@given(st.text(alphabet="<>/obs ervations", max_size=300))
def test_any_text_is_cut_in_one_pass(text):
    cut = without_injected(text)
    assert len(cut) <= len(text)


def test_a_giant_of_tags_costs_linear_time():
    text = "<observations>" * 20_000
    assert without_injected(text) == ""


def test_a_session_brings_only_so_many():
    assert LEARNED_PER_SESSION == {
        "build": 20,
        "insights": 5,
        "roadmap": 3,
        "terminal": 3,
        "changelog": 0,
        "spec": 3,
        "pr_review": 8,
    }
    assert limit_for("observer_inferred", "insights") == 5
    assert limit_for("agent_explicit", "changelog") == 20
    assert limit_for("user_taught", "changelog") is None
    assert limit_for("imported", "changelog") is None
