"""Instruction files become memories: once, with their lines, and only as trusted as a file can
be.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.instructions import InstructionReport, import_instructions
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE

RULES = """\
# Shop

## Rules

- Never edit files in `generated/`; run the code generator instead
- Money is stored in cents, as an integer
- Prefer named exports over default exports
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text(RULES)
    return folder


@pytest.fixture
def bring(memory: Any, root: Path, clock: Any) -> Callable[..., InstructionReport]:
    """Imports, a second later than before."""

    def again(**given: Any) -> InstructionReport:
        clock.advance(1)
        return import_instructions(memory, root, **given)

    return again


def everything(memory: Any) -> list[Any]:
    return [(each, memory.memories.history(each.id)) for each in memory.memories.export()]


def by_text(memory: Any, beginning: str, state: str = "active") -> Any:
    (found,) = [
        each
        for each in memory.memories.list(state=state, limit=500)
        if each.content.startswith(beginning)
    ]
    return found


def outcomes(report: InstructionReport) -> dict[str, int]:
    return dict(report.counts)


def test_statements_become_typed_memories_with_their_lines_and_words(memory, bring, root):
    assert outcomes(bring()) == {"added": 3}
    found = by_text(memory, "Never edit")
    assert (found.type, found.source, found.tags) == ("requirement", "imported", ("claude",))
    (evidence,) = found.evidence
    assert (evidence.path, evidence.first_line, evidence.last_line) == ("CLAUDE.md", 5, 5)
    assert evidence.quote == found.content
    assert found.chunk.context_prefix == "CLAUDE.md › Shop › Rules"
    assert found.modules == ("generated",)


def test_what_a_file_says_is_quarantined_until_a_person_says_so(memory, bring):
    bring()
    for each in memory.memories.list():
        assert (each.tier, each.taint, each.needs_review, each.is_verified) == (
            "quarantined",
            ("imported",),
            True,
            False,
        )
        assert memory.memories.may_inject(each).allowed is False
    assert memory.memories.accept_all().accepted == ()


def test_importing_twice_changes_nothing_at_all(memory, bring):
    bring()
    before = everything(memory)
    report = bring()
    assert outcomes(report) == {"unchanged": 3}
    assert report.is_nothing_new
    assert everything(memory) == before


def test_the_files_are_left_as_they_are(bring, root):
    before = (root / "CLAUDE.md").read_bytes(), (root / "CLAUDE.md").stat().st_mtime_ns
    bring()
    assert ((root / "CLAUDE.md").read_bytes(), (root / "CLAUDE.md").stat().st_mtime_ns) == before
    assert [each.name for each in root.iterdir()] == ["CLAUDE.md"]


def test_dry_run_foresees_and_writes_nothing(memory, bring, root):
    assert outcomes(bring(is_dry_run=True)) == {"added": 3}
    assert everything(memory) == []
    bring()
    before = everything(memory)
    (root / "CLAUDE.md").write_text(
        RULES.replace("in cents", "in tenths of a cent").replace("- Prefer", "- We like")
    )
    foreseen = bring(is_dry_run=True)
    assert everything(memory) == before
    assert outcomes(foreseen) == outcomes(bring())


def test_lines_that_moved_are_followed_and_nothing_else_changes(memory, bring, root):
    bring()
    before = by_text(memory, "Money")
    (root / "CLAUDE.md").write_text(f"Preface about the shop.\n\n{RULES}")
    assert outcomes(bring()) == {"moved": 3, "added": 1}
    after = by_text(memory, "Money")
    assert (after.evidence[0].first_line, after.chunk.first_line) == (8, 8)
    assert (after.id, after.tier, after.needs_review, after.confidence) == (
        before.id,
        before.tier,
        before.needs_review,
        before.confidence,
    )
    assert outcomes(bring()) == {"unchanged": 4}


def test_changed_line_supersedes_what_it_said_and_both_are_kept(memory, bring, root):
    bring()
    old = by_text(memory, "Money")
    (root / "CLAUDE.md").write_text(
        RULES.replace("in cents, as an integer", "in tenths of a cent, as an integer")
    )
    report = bring()
    assert outcomes(report) == {"unchanged": 2, "changed": 1}
    new = by_text(memory, "Money")
    assert [each.id for each in memory.memories.chain(new.id)] == [old.id, new.id]
    assert memory.memories.get(old.id).deprecated_because == "superseded"
    assert new.tier == "quarantined"
    assert outcomes(bring()) == {"unchanged": 3}


def test_line_that_goes_back_to_its_old_words_takes_its_place_again(memory, bring, root):
    bring()
    (root / "CLAUDE.md").write_text(RULES.replace("in cents", "in tenths of a cent"))
    bring()
    (root / "CLAUDE.md").write_text(RULES)
    bring()
    assert by_text(memory, "Money").content == "Money is stored in cents, as an integer"
    assert outcomes(bring()) == {"unchanged": 3}


def test_removed_line_is_put_aside_and_comes_back_with_the_line(memory, bring, root):
    bring()
    gone = by_text(memory, "Prefer")
    (root / "CLAUDE.md").write_text(
        RULES.replace("- Prefer named exports over default exports\n", "")
    )
    assert outcomes(bring()) == {"unchanged": 2, "removed": 1}
    assert memory.memories.get(gone.id).is_active is False
    (root / "CLAUDE.md").write_text(RULES)
    assert outcomes(bring()) == {"unchanged": 2, "returned": 1}
    assert memory.memories.get(gone.id).is_active
    assert memory.memories.get(gone.id).tier == "quarantined"
    assert outcomes(bring()) == {"unchanged": 3}


def test_what_a_person_confirmed_outlives_its_line_but_is_marked_as_stale(memory, bring, root):
    bring()
    kept = memory.memories.accept(by_text(memory, "Prefer").id)
    (root / "CLAUDE.md").write_text(
        RULES.replace("- Prefer named exports over default exports\n", "")
    )
    assert outcomes(bring()) == {"unchanged": 2, "stale": 1}
    after = memory.memories.get(kept.id)
    assert (after.is_active, after.is_stale, after.is_verified) == (True, True, True)
    (root / "CLAUDE.md").write_text(RULES)
    bring()
    assert memory.memories.get(kept.id).is_stale is False


def test_file_does_not_replace_what_a_person_confirmed(memory, bring, root):
    bring()
    kept = memory.memories.accept(by_text(memory, "Money").id)
    (root / "CLAUDE.md").write_text(RULES.replace("in cents", "in tenths of a cent"))
    bring()
    old = memory.memories.get(kept.id)
    assert (old.is_active, old.is_stale) == (True, True)
    new = by_text(memory, "Money is stored in tenths")
    assert (new.tier, new.needs_review) == ("quarantined", True)
    assert [each.memory_id for each in new.relations if each.type == "conflicts_with"] == [old.id]
    assert memory.memories.accept(new.id).is_verified
    assert memory.memories.get(kept.id).is_active is False
    assert outcomes(bring()) == {"unchanged": 3}


@pytest.mark.parametrize("verb", ["reject", "forget"])
def test_what_a_person_put_aside_stays_so_whatever_the_file_says(memory, bring, verb):
    bring()
    found = by_text(memory, "Prefer")
    getattr(memory.memories, verb)(found.id, by="person")
    assert outcomes(bring()) == {"unchanged": 2, "put aside": 1}
    assert memory.memories.get(found.id).is_active is False


def test_words_that_a_person_mended_are_not_replaced_by_those_of_the_file(memory, bring):
    bring()
    mended = memory.memories.accept(
        by_text(memory, "Prefer").id, content="Named exports only, in every package"
    )
    assert outcomes(bring()) == {"unchanged": 3}
    assert memory.memories.get(mended.id).content == "Named exports only, in every package"


def test_the_same_words_in_several_files_are_one_memory_with_several_places(memory, bring, root):
    (root / "AGENTS.md").write_text(RULES)
    (root / ".cursorrules").write_text("Money is stored in cents, as an integer.\n")
    assert outcomes(bring()) == {"added": 3}
    found = by_text(memory, "Money")
    assert {each.path for each in found.evidence} == {"AGENTS.md", "CLAUDE.md", ".cursorrules"}
    assert set(found.tags) == {"agents", "claude", "cursor"}
    (root / "CLAUDE.md").unlink()
    bring()
    left = memory.memories.get(found.id)
    assert left.is_active
    assert {each.path for each in left.evidence} == {"AGENTS.md", ".cursorrules"}
    assert outcomes(bring()) == {"unchanged": 3}


def test_file_that_is_renamed_keeps_its_memories(memory, bring, root):
    bring()
    ids = {each.id for each in memory.memories.list()}
    (root / "CLAUDE.md").rename(root / "AGENTS.md")
    assert outcomes(bring()) == {"moved": 3}
    assert {each.id for each in memory.memories.list()} == ids
    assert {each.path for memory_ in memory.memories.list() for each in memory_.evidence} == {
        "AGENTS.md"
    }


def test_file_that_is_gone_takes_its_memories_with_it_when_all_are_looked_at(memory, bring, root):
    (root / "AGENTS.md").write_text("- Run the linter before every commit\n")
    bring()
    (root / "CLAUDE.md").unlink()
    assert outcomes(bring(paths=[root / "AGENTS.md"])) == {"unchanged": 1}
    assert outcomes(bring()) == {"unchanged": 1, "removed": 3}


def test_file_that_cannot_be_read_now_takes_nothing_with_it(memory, bring, root):
    bring()
    (root / "CLAUDE.md").write_bytes(b"\x00" * 10)
    assert outcomes(bring()) == {}
    assert len(memory.memories.list()) == 3


def test_statements_of_one_file_do_not_contradict_each_other(memory, bring, root):
    lines = "".join(f"- Never touch `folder{number}/` by hand\n" for number in range(6))
    (root / "CLAUDE.md").write_text(f"# A\n\n{lines}")
    assert outcomes(bring()) == {"added": 6}
    assert len(memory.memories.list()) == 6
    assert outcomes(bring()) == {"unchanged": 6}


def test_files_that_disagree_are_left_to_a_person(memory, bring, root):
    (root / "CLAUDE.md").write_text("- Use npm for adding packages\n")
    (root / "AGENTS.md").write_text("- Do not use npm for adding packages\n")
    bring()
    active = memory.memories.list()
    assert len(active) == 2
    assert any("contradicts" in reason for each in active for reason in each.review_reasons)
    assert outcomes(bring()) == {"unchanged": 2}


def test_what_the_user_taught_is_known_and_stays_the_users(memory, bring):
    taught = memory.memories.remember("Money is stored in cents, as an integer").memory
    for _ in range(2):
        report = bring()
        assert report.counts["known"] + report.counts["unchanged"] == 1 + report.counts["unchanged"]
    after = memory.memories.get(taught.id)
    assert (after.source, after.tier, after.content) == ("user_taught", "confirmed", taught.content)


def test_person_may_vouch_for_what_the_files_say(memory, bring):
    bring()
    assert outcomes(bring(is_verified=True)) == {"verified": 3}
    assert {each.tier for each in memory.memories.list()} == {"confirmed"}
    assert outcomes(bring(is_verified=True)) == {"unchanged": 3}


def test_procedure_is_a_recipe_with_its_steps(memory, bring, root):
    (root / "schema.ts").write_text("")
    (root / "CLAUDE.md").write_text(
        "## Adding a table\n\n1. Change `schema.ts`\n2. Run the generator\n3. Commit both\n"
    )
    bring()
    (recipe,) = memory.memories.list()
    assert recipe.type == "workflow_recipe"
    assert recipe.data["task_pattern"] == "Adding a table"
    assert [step["description"] for step in recipe.data["steps"]] == [
        "Change `schema.ts`",
        "Run the generator",
        "Commit both",
    ]
    assert recipe.data["steps"][0]["canonical_file"] == "schema.ts"


def test_nested_and_personal_files_reach_only_so_far(memory, bring, root):
    (root / "packages" / "api").mkdir(parents=True)
    (root / "packages" / "api" / "CLAUDE.md").write_text("- Handlers never talk to the database\n")
    (root / "CLAUDE.local.md").write_text("- I like short answers in German\n")
    bring()
    nested, own = by_text(memory, "Handlers"), by_text(memory, "I like")
    assert (nested.scope, nested.modules) == ("module", ("packages/api",))
    assert (own.visibility, nested.visibility) == ("personal", "project")


def test_secrets_are_never_stored_and_do_not_make_an_import_restless(memory, bring, root):
    secret = "ghp_" + "q8Zt3LmX0vB7cR2nW5yK9dF4hJ6sP1aE0uTg"
    (root / "CLAUDE.md").write_text(f"- Deploy with the token {secret} in the header\n")
    bring()
    (found,) = memory.memories.list()
    assert secret not in found.content
    assert all(secret not in (each.quote or "") for each in found.evidence)
    assert outcomes(bring()) == {"unchanged": 1}


def test_commit_is_told_for_files_that_are_committed_as_they_are(memory, bring, root):
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "rules")
    (root / "AGENTS.md").write_text("- Not committed as yet, this one\n")
    bring()
    assert by_text(memory, "Money").evidence[0].commit == git("rev-parse", "HEAD")
    assert by_text(memory, "Not committed").evidence[0].commit is None
    git("commit", "-q", "--allow-empty", "-m", "later")
    assert outcomes(bring()) == {"unchanged": 4}


def test_large_file_is_brought_in_whole_and_again_without_change(memory, bring, root):
    lines = "".join(
        f"- Component number {number} is kept in `src/part{number}.ts` by team {number}\n"
        for number in range(120)
    )
    (root / "CLAUDE.md").write_text(f"# Parts\n\n{lines}")
    report = bring()
    assert report.counts["added"] + report.counts["known"] == 120
    before = everything(memory)
    bring()
    assert everything(memory) == before
