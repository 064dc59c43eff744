"""``smara remember`` and ``smara memories``: teach, list, review, mend, forget; for people and for
programs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smara as package
from tests.surfaces.shell import on_terminal, plain, smara


@pytest.fixture
def known(db: str) -> dict[str, str]:
    """The ids of a taught memory, one that an agent noted, one from the web, and one that was
    imported.
    """
    with package.open(db) as memory:
        added = {
            "taught": memory.memories.remember(
                "Use uv, never pip", files=["pyproject.toml"], actor="ada"
            ),
            "noted": memory.memories.add(
                "Redis must run before the auth tests, or they hang",
                type="gotcha",
                session_id="run-1",
                evidence=["tests/auth/conftest.py@3f2a9c1d5e6f:12-20"],
                files=["tests/auth/conftest.py"],
            ),
            "fetched": memory.memories.add(
                "Certificates are checked by the proxy alone",
                type="decision",
                session_id="run-1",
                taint=["web"],
                evidence=["docs/proxy.md:3"],
            ),
        }
        return {
            name: each.memory.short_id for name, each in added.items() if each.memory is not None
        }


def test_remember_takes_words_as_they_come_and_guesses_their_type(db):
    said = smara(
        "remember",
        "Use",
        "uv,",
        "never",
        "pip",
        "--file",
        "pyproject.toml",
        "--tag",
        "build",
        "--json",
    )
    data = said.data
    assert (data["outcome"], data["memory"]["type"], data["memory"]["trust"]) == (
        "added",
        "preference",
        "confirmed",
    )
    assert (data["memory"]["content"], data["memory"]["source"]) == (
        "Use uv, never pip",
        "user_taught",
    )
    assert (data["memory"]["files"], data["memory"]["tags"]) == (["pyproject.toml"], ["build"])
    assert data["guessedBecause"]


def test_remember_says_what_it_made_of_it(db):
    seen = plain(on_terminal("remember", "Every endpoint must check permissions").out)
    assert seen.startswith("Remembered m-")
    assert "requirement" in seen
    assert "is a guess" in seen
    assert "is a guess" not in plain(
        on_terminal("remember", "Deploys need two approvals", "--type", "decision").out
    )


def test_remember_reads_standard_input_and_refuses_nothing(db):
    assert smara("remember", "-", stdin=b"Tabs in Makefiles, please\n").code == 0
    said = smara("remember", "-", stdin=b"  \n")
    assert (said.code, "The text is empty" in said.err) == (2, True)


def test_remembering_again_is_known_already(db):
    first = smara("remember", "Use uv, never pip", "--json").data
    again = smara("remember", "Use uv, never pip", "--json").data
    assert (again["outcome"], again["memory"]["id"]) == ("duplicate", first["memory"]["id"])


def test_newer_teaching_takes_the_place_of_what_it_contradicts(db):
    old = smara("remember", "Use uv, never pip", "--json").data["memory"]
    new = smara("remember", "Use pip, never uv", "--json").data
    assert new["superseded"] == [old["uuid"]]
    seen = smara("memories", "show", new["memory"]["id"], "--json").data
    assert seen["chain"] == [old["id"], new["memory"]["id"]]


def test_list_shows_each_with_its_kind_worth_and_trust(known):
    rows = {row[0]: row for row in smara("memories", "list").rows}
    assert rows[known["taught"]][1:5] == ["preference", "0.95", "confirmed", "active"]
    assert rows[known["noted"]][1:4] == ["gotcha", "0.80", "unconfirmed"]
    assert rows[known["fetched"]][3] == "quarantined"
    assert rows[known["noted"]][8] == "tests/auth/conftest.py@3f2a9c1d5e6f:12-20"


def test_list_can_be_narrowed(known):
    def ids(*options: str) -> list[str]:
        return [row[0] for row in smara("memories", "list", *options).rows]

    assert ids("--type", "gotcha") == [known["noted"]]
    assert ids("--trust", "confirmed") == [known["taught"]]
    assert ids("--source", "user_taught") == [known["taught"]]
    assert ids("--file", "pyproject.toml") == [known["taught"]]
    assert len(ids("--limit", "2")) == 2
    assert ids("--by-confidence")[0] == known["taught"]
    smara("memories", "forget", known["noted"])
    assert known["noted"] not in ids()
    assert ids("--forgotten") == [known["noted"]]
    assert len(ids("--all")) == 3


def test_list_in_json_has_every_field_and_the_next_page(known):
    data = smara("memories", "list", "--limit", "1", "--json").data
    assert data["nextOffset"] == 1
    (first,) = data["memories"]
    assert {
        "id",
        "uuid",
        "type",
        "content",
        "confidence",
        "confidenceNow",
        "trust",
        "taint",
        "needsReview",
        "isPinned",
        "isStale",
        "files",
        "modules",
        "tags",
        "scope",
        "visibility",
        "evidence",
        "relations",
        "data",
        "chunk",
        "workUnit",
        "methodology",
        "commit",
        "sessionIds",
        "citation",
        "halfLifeDays",
        "supersededBy",
    } <= set(first)


@pytest.mark.parametrize("columns", [80, 60, 120])
def test_no_line_on_a_terminal_is_wider_than_it(known, columns):
    smara("remember", "A rule with a very long path " + "src/deep/" * 3 + "file.py and 重跑 " * 8)
    for words in (
        ("list",),
        ("review",),
        ("show", known["noted"]),
        ("why", known["noted"]),
        ("audit",),
        ("trust",),
    ):
        seen = plain(on_terminal("memories", *words, columns=columns).out)
        too_wide = [
            line
            for line in seen.splitlines()
            if len(line) > columns and " " in line.strip()[:columns]
        ]
        assert too_wide == [], words


def test_empty_list_says_how_to_begin(db):
    assert "smara remember" in plain(on_terminal("memories", "list").out)
    assert smara("memories", "list").code == 0


def test_search_finds_memories_by_their_words(known):
    data = smara("memories", "search", "redis auth", "--json").data
    assert data["results"][0]["memory"]["id"] == known["noted"]
    assert smara("memories", "search", "walrus", "--json").data["results"] == []


def test_card_shows_what_it_rests_on_and_what_it_is_worth(known):
    seen = plain(on_terminal("memories", "show", known["noted"]).out)
    assert "Redis must run before the auth tests" in seen
    assert "80% now" in seen
    assert "tests/auth/conftest.py@3f2a9c1d5e6f:12-20" in seen
    assert "unconfirmed" in seen
    assert "session" in seen


def test_why_tells_sources_trust_confidence_and_history(known):
    seen = smara("memories", "why", known["fetched"]).out
    assert all(
        each in seen
        for each in ("Where it came from", "Trust: quarantined", "Confidence now", "What happened")
    )
    data = smara("memories", "why", known["fetched"], "--json").data
    assert data["trust"]["value"] == "quarantined"
    assert data["injection"]["allowed"] is False
    assert data["events"][0]["kind"] == "created"


def test_unknown_memory_is_told_with_exit_code_3(db):
    for words in (
        ("show", "m-nope"),
        ("pin", "m-nope"),
        ("why", "m-nope"),
        ("review", "accept", "m-nope"),
    ):
        said = smara("memories", *words)
        assert said.code == 3, said.err
        assert "m-nope" in said.err


def test_pin_verify_forget_and_restore_take_several_ids(known):
    both = [known["taught"], known["noted"]]
    assert [
        each["isPinned"] for each in smara("memories", "pin", *both, "--json").data["memories"]
    ] == [True, True]
    assert [
        each["isPinned"] for each in smara("memories", "unpin", *both, "--json").data["memories"]
    ] == [False, False]
    assert (
        smara("memories", "verify", known["fetched"], "--json").data["memories"][0]["trust"]
        == "confirmed"
    )
    gone = smara("memories", "forget", *both, "--json").data["memories"]
    assert [each["isActive"] for each in gone] == [False, False]
    assert [
        each["isActive"] for each in smara("memories", "restore", *both, "--json").data["memories"]
    ] == [True, True]


def test_one_wrong_id_among_several_changes_nothing(known):
    assert smara("memories", "forget", known["taught"], "m-nope").code == 3
    assert smara("memories", "show", known["taught"], "--json").data["isActive"]


def test_edit_changes_what_is_named(known):
    data = smara(
        "memories",
        "edit",
        known["taught"],
        "--text",
        "Use uv 0.9, never pip",
        "--add-tag",
        "build",
        "--json",
    ).data
    (edited,) = data["memories"]
    assert (edited["content"], edited["tags"], edited["type"]) == (
        "Use uv 0.9, never pip",
        ["build"],
        "preference",
    )
    said = smara("memories", "edit", known["taught"])
    assert (said.code, "--text" in said.err) == (2, True)


def test_edit_says_that_a_quarantined_memory_still_waits_for_a_persons_word(known):
    edit = ("memories", "edit", known["fetched"], "--text", "The parser reads spaces alone")
    said = plain(smara(*edit, is_seen=True).out)
    assert f"`smara memories verify {known['fetched']}`" in " ".join(said.split())
    taught = smara("memories", "edit", known["taught"], "--text", "Use uv", is_seen=True)
    assert "verify" not in taught.out


def test_add_is_for_scripts_and_follows_the_rules_of_agents(db):
    said = smara(
        "memories",
        "add",
        "The parser reads tabs in all of its files",
        "--type",
        "gotcha",
        "-e",
        "src/parse.py:3",
        "--data",
        '{"cause": "legacy files"}',
        "--tag",
        "parser",
        "--json",
    )
    added = said.data["memory"]
    assert (added["source"], added["trust"], added["data"]) == (
        "agent_explicit",
        "unconfirmed",
        {"cause": "legacy files"},
    )
    refused = smara("memories", "add", "Done!", "--type", "gotcha", "-e", "src/parse.py:3")
    assert (refused.code, "Not remembered" in refused.err) == (2, True)
    assert (
        smara(
            "memories", "add", "A thing about the parser here", "--type", "gotcha", "--data", "[]"
        ).code
        == 2
    )


def test_review_lists_what_waits_with_the_reasons(known):
    data = smara("memories", "review", "--json").data
    assert {each["id"] for each in data["memories"]} == {known["noted"], known["fetched"]}
    assert all(each["reviewReasons"] for each in data["memories"])
    seen = plain(on_terminal("memories", "review").out)
    assert "web" in seen
    assert "2 to review" in seen


def test_accept_all_never_includes_what_is_tainted(known):
    data = smara("memories", "review", "accept", "--all", "--json").data
    assert [each["id"] for each in data["memories"]] == [known["noted"]]
    assert [each["memory"]["id"] for each in data["left"]] == [known["fetched"]]
    assert smara("memories", "show", known["fetched"], "--json").data["trust"] == "quarantined"
    accepted = smara("memories", "review", "accept", known["fetched"], "--json").data["memories"]
    assert accepted[0]["trust"] == "confirmed"


def test_accept_needs_ids_or_all_but_not_both(known):
    for words in ((), (known["noted"], "--all")):
        assert smara("memories", "review", "accept", *words).code == 2


def test_review_is_undone(known):
    smara("memories", "review", "reject", known["noted"], "--why", "not true")
    assert (
        smara("memories", "show", known["noted"], "--json").data["deprecatedBecause"] == "rejected"
    )
    back = smara("memories", "review", "undo", known["noted"], "--json").data["memories"][0]
    assert (back["isActive"], back["needsReview"]) == (True, True)


def test_review_accepts_in_better_words(known):
    said = smara(
        "memories",
        "review",
        "edit",
        known["noted"],
        "--text",
        "Start Redis before the auth tests",
        "--json",
    )
    (accepted,) = said.data["memories"]
    assert (accepted["content"], accepted["trust"]) == (
        "Start Redis before the auth tests",
        "confirmed",
    )


def test_audit_measures_the_store(known):
    data = smara("memories", "audit", "--json").data
    assert data["active"] == 3
    assert data["tainted"]["count"] == 1
    assert 0 <= data["health"] <= 100
    rows = {row[0]: row[1] for row in smara("memories", "audit").rows}
    assert rows["unreviewed"] == "2"


def test_trust_is_shown_and_chosen(db):
    assert smara("memories", "trust", "--json").data["level"] == 1
    assert smara("memories", "trust", "4", "--json").data["name"] == "autonomous"
    assert smara("memories", "trust", "9").code == 2


RULES = (
    "- Never edit files in `generated/`\n- Money is stored in cents, as an integer\n- Prefer "
    "tabs over spaces\n"
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "CLAUDE.md").write_text(RULES)
    monkeypatch.chdir(root)
    return root


def test_import_finds_the_files_of_the_repository_and_is_safe_to_repeat(db, repository):
    first = smara("memories", "import", "--json").data
    assert first["counts"] == {"added": 3}
    assert [each["path"] for each in first["files"]] == ["CLAUDE.md"]
    assert first["statements"][0]["places"] == ["CLAUDE.md:1"]
    again = smara("memories", "import", "--json").data
    assert (again["counts"], again["isNothingNew"]) == ({"unchanged": 3}, True)
    assert smara("memories", "review", "--json").data["toReview"] == 3


def test_import_from_a_folder_inside_the_repository_takes_its_root(db, repository, monkeypatch):
    (repository / "src").mkdir()
    monkeypatch.chdir(repository / "src")
    assert smara("memories", "import", "--json").data["counts"] == {"added": 3}


def test_dry_run_shows_lines_and_types_and_stores_nothing(db, repository):
    seen = plain(on_terminal("memories", "import", "--dry-run").out)
    assert "CLAUDE.md" in seen
    assert "requirement" in seen
    assert "nothing was changed" in seen
    assert smara("memories", "list", "--json").data["memories"] == []


def test_import_tells_what_changed(db, repository):
    smara("memories", "import")
    (repository / "CLAUDE.md").write_text(
        RULES.replace("in cents", "in tenths of a cent").replace("- Prefer", "- P")
    )
    data = smara("memories", "import", "--json").data
    assert data["counts"]["changed"] >= 1
    seen = plain(on_terminal("memories", "import", "--all").out)
    assert "unchanged" in seen


def test_import_of_named_files_and_folders(db, repository):
    (repository / "docs").mkdir()
    (repository / "docs" / "rules.md").write_text("- Use spaces in every file here\n")
    data = smara("memories", "import", "docs/rules.md", "--json").data
    assert [each["path"] for each in data["files"]] == ["docs/rules.md"]
    assert smara("memories", "import", "nowhere.md").code == 3


def test_import_without_any_file_says_so(db, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = smara("memories", "import")
    assert (said.code, "No instruction files" in said.err) == (0, True)


def test_import_vouched_for_by_a_person_is_trusted_at_once(db, repository):
    smara("memories", "import", "--verified")
    assert {row[3] for row in smara("memories", "list").rows} == {"confirmed"}


def test_every_answer_in_a_pipe_is_one_line_for_each(known):
    (row,) = [
        line.split("\t") for line in smara("memories", "pin", known["taught"]).out.splitlines()
    ]
    assert row == [known["taught"], "pinned", "Use uv, never pip"]
    facts = dict(
        line.split("\t", 1) for line in smara("memories", "show", known["taught"]).out.splitlines()
    )
    assert (facts["type"], facts["trust"]) == ("preference", "confirmed")


def test_text_that_tries_to_write_to_the_terminal_cannot(db):
    smara("remember", "Beware of \x1b[31mred\x1b[0m \u202eletters in the log")
    for words in (("list",), ("review",), ("audit",)):
        assert "\x1b[31mred" not in on_terminal("memories", *words).out


def test_json_goes_through_whatever_the_text_is(db):
    smara("remember", "Surrogates \udfff and 重跑 are kept somehow", stdin=b"")
    assert json.loads(smara("memories", "list", "--json").out)["data"]["memories"]
