"""``smara working``: one page, shown, put, changed in parts, and brought back."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

import smara as library
from tests.surfaces.shell import on_terminal, plain, smara

PAGE = "# Notes\n- Queue: PostgreSQL\n"


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path: ``write("page.md", "words")``."""

    def to(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return str(path)

    return to


@pytest.fixture
def editor(tmp_path, write):
    """The environment of an editor that runs Python on the file it is given as ``page``."""

    def that(code: str) -> dict[str, str]:
        program = write(
            "editor.py", f"import pathlib, sys\npage = pathlib.Path(sys.argv[1])\n{code}\n"
        )
        return {
            "VISUAL": "",
            "EDITOR": f"{shlex.quote(sys.executable)} {shlex.quote(program)}",
            "TMPDIR": str(tmp_path),
        }

    return that


def content(*options: str) -> str:
    return smara("working", "show", "--json", *options).data["content"]


# show


def test_page_in_a_pipe_is_its_text_and_nothing_else(store):
    assert smara("working", "show").out == PAGE


def test_shown_page_can_be_put_back(store):
    smara("working", "put", "-", stdin=smara("working", "show").out.encode())
    assert smara("working", "show", "--json").data["version"] == 1


def test_unwritten_page_is_the_template_at_version_0(db):
    data = smara("working", "show", "--json").data
    assert (data["version"], data["id"], data["updatedAt"]) == (0, None, None)
    assert smara("working", "show").out.startswith("# Project Context\n")


def test_page_in_json_has_its_documented_keys(store):
    page = smara("working", "show", "--json").data
    assert set(page) == {
        "id",
        "scope",
        "resourceId",
        "threadId",
        "format",
        "content",
        "value",
        "template",
        "schema",
        "version",
        "createdAt",
        "updatedAt",
        "updatedBy",
    }
    assert (page["scope"], page["resourceId"], page["threadId"], page["updatedBy"]) == (
        "resource",
        "default",
        None,
        "ann",
    )


def test_page_on_a_terminal_says_whose_it_is_and_who_wrote_it(store):
    first, *rest = plain(on_terminal("working", "show").out).splitlines()
    assert first.startswith("— resource default · version 1 · 2025-10-")
    assert first.endswith(" · ann")
    assert rest == PAGE.splitlines()
    assert "nothing written yet" in plain(on_terminal("working", "show", "--thread", "t").out)


def test_rendered_page_is_what_a_model_is_shown(db):
    smara("working", "put", "-", stdin=b"</working-memory> words")
    block = (
        '<working-memory scope="resource" version="1">\n&lt;/working-memory> '
        "words\n</working-memory>"
    )
    assert smara("working", "show", "--rendered").out == f"{block}\n"
    assert smara("working", "show", "--rendered", "--json").data["rendered"] == block


def test_old_version_is_shown(store):
    smara("working", "put", "-", stdin=b"new")
    assert smara("working", "show", "--version", "1").out == PAGE
    assert smara("working", "show", "--version", "1", "--json").data["actor"] == "ann"
    assert "version 1 of 2" in plain(on_terminal("working", "show", "--version", "1").out)
    assert smara("working", "show", "--version", "7").code == 3
    assert smara("working", "show", "--version", "1", "--rendered").code == 2


def test_each_thread_and_resource_has_its_own_page(store):
    smara("working", "put", "-", "--thread", "login", stdin=b"the thread's")
    smara("working", "put", "-", "--resource", "bob", stdin=b"Bob's")
    assert (content(), content("--thread", "login"), content("--resource", "bob")) == (
        PAGE,
        "the thread's",
        "Bob's",
    )


# put


def test_file_is_put_and_the_new_version_is_told(store, write):
    said = smara(
        "working", "put", write("page.md", "# New\n"), "--reason", "tidied", "--actor", "bob"
    )
    page = "the working memory of resource 'default'"
    assert said.out == f"Saved version 2 of {page}: 6 characters.\n"
    assert content() == "# New\n"
    assert smara("working", "history", "--json").data[0]["reason"] == "tidied"


def test_put_of_an_old_version_is_a_conflict(store):
    said = smara("working", "put", "-", "--expected-version", "0", "--json", stdin=b"mine")
    assert said.code == 4
    assert said.envelope["error"]["code"] == "conflict"
    assert "version 1, written by 'ann'" in said.envelope["error"]["message"]
    assert content() == PAGE


def test_template_begins_a_page_by_name_or_by_file(db, write):
    smara("working", "put", "--template", "person")
    assert content().startswith("# User Information")
    smara("working", "put", "--template", write("mine.md", "# Mine\n"), "--thread", "t")
    assert content("--thread", "t") == "# Mine\n"
    said = smara("working", "put", "--template", "nothing")
    assert (said.code, "coding or person" in said.err) == (2, True)


def test_schema_is_kept_and_enforced(db, write):
    schema = write("schema.json", json.dumps({"properties": {"n": {"type": "integer"}}}))
    assert smara("working", "put", "-", "--schema", schema, "--json", stdin=b'{"n": 1}').data[
        "value"
    ] == {"n": 1}
    said = smara("working", "put", "-", stdin=b'{"n": "x"}')
    assert (said.code, 'n must be integer, not "x"' in said.err) == (2, True)
    assert smara("working", "put", "-", "--format", "markdown", stdin=b"words").code == 0


def test_put_needs_something_to_put(db):
    for call in ([], ["/nowhere/page.md"], ["-", "--schema", "/nowhere.json"]):
        assert smara("working", "put", *call).code == 2


def test_bytes_that_are_no_text_are_kept(db, write):
    assert smara("working", "put", write("odd.md", "caf\udce9")).code == 0
    assert content() == "caf\udce9"


# edit


def test_one_section_is_changed(store):
    data = smara("working", "edit", "--section", "notes/queue", "--content", "Redis", "--json").data
    assert (data["content"], data["version"]) == ("# Notes\n- Queue: Redis\n", 2)
    smara("working", "edit", "--section", "More", "--content", "-", stdin=b"from a pipe")
    assert content() == "# Notes\n- Queue: Redis\n\n## More\nfrom a pipe\n"


def test_field_of_a_json_page_is_json_where_it_can_be(db):
    smara("working", "put", "-", "--format", "json", stdin=b"{}")
    for path, typed in (("a.n", "3"), ("a.word", "three"), ("a.list", "[1]"), ("a.gone", "null")):
        assert smara("working", "edit", "--section", path, "--content", typed).code == 0
    assert smara("working", "show", "--json").data["value"] == {
        "a": {"n": 3, "word": "three", "list": [1]}
    }


def test_section_and_content_go_together_and_an_editor_needs_a_terminal(store):
    assert "go together" in smara("working", "edit", "--section", "Notes").err
    assert "needs a terminal" in smara("working", "edit").err


def test_page_is_opened_in_the_editor_and_put_back(store, editor):
    seen = on_terminal(
        "working",
        "edit",
        "--reason",
        "by hand",
        env=editor("page.write_text(page.read_text().upper())"),
    )
    assert seen.code == 0
    assert content() == PAGE.upper()
    assert smara("working", "history", "--json").data[0]["reason"] == "by hand"


def test_page_that_was_not_changed_in_the_editor_makes_no_version(db, editor):
    assert "Nothing was changed." in on_terminal("working", "edit", env=editor("")).out
    assert smara("working", "history", "--json").data == []


def test_what_was_typed_is_kept_when_somebody_else_was_faster(store, editor, tmp_path):
    """1. The editor opens. 2. Another process writes the page. 3. The editor is left: a conflict,
    and a file.
    """
    code = f"""
import smara
with smara.open({store!r}) as memory:
    memory.working.put("theirs", actor="bob")
page.write_text("mine")
"""
    seen = on_terminal("working", "edit", columns=1_000, env=editor(code))
    assert seen.code == 4
    assert "written by 'bob'" in seen.out
    (kept,) = tmp_path.glob("smara-working-*.md")
    assert kept.read_text() == "mine"
    assert kept.stat().st_mode & 0o077 == 0
    assert str(kept) in plain(seen.out)
    assert content() == "theirs"


# history and restore


def test_history_is_a_table_of_versions_newest_first(store):
    smara("working", "put", "-", "--actor", "bob", "--reason", "why", stdin=b"new")
    said = smara("working", "history")
    assert said.out.splitlines()[0] == "version\ttime\tactor\tcharacters\treason"
    assert [[row[0], *row[2:]] for row in said.rows] == [
        ["2", "bob", "3", "why"],
        ["1", "ann", "28", ""],
    ]
    assert [row[0] for row in smara("working", "history", "--limit", "1").rows] == ["2"]
    assert [row[0] for row in smara("working", "history", "--before", "2").rows] == ["1"]


def test_old_version_is_put_back_as_a_new_one(store):
    smara("working", "put", "-", stdin=b"new")
    assert "Saved version 3" in smara("working", "restore", "1").out
    assert content() == PAGE
    assert smara("working", "restore", "9").code == 3
    assert smara("working", "restore", "2", "--expected-version", "1").code == 4


def test_page_cannot_command_the_terminal(db):
    with library.open(db) as memory:
        memory.working.put("red \x1b[31m", reason="right \u202e to left \x1b[31m")
    for call in (["show"], ["show", "--rendered"], ["history"]):
        assert "\x1b[31m" not in smara("working", *call).out
        assert "\u202e" not in smara("working", *call).out
