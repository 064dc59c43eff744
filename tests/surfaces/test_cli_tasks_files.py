"""``smara tasks import`` and ``export``: what a person is told, and files that are whole or not
there.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.shell import left_early, on_terminal, plain, smara, spawn

NOON = "2025-11-26T23:36:24.908588941Z"
ISSUES: list[dict[str, Any]] = [
    {"id": "bd-1", "title": "Epic", "status": "open", "priority": 1, "issue_type": "epic",
        "created_at": NOON,
     "updated_at": NOON},
    {"id": "bd-1.1", "title": "Part", "notes": "a zeppelin", "status": "hooked", "priority": 2,
        "issue_type": "task",
     "owner": "o", "created_at": NOON, "updated_at": NOON},
    {"_type": "memory", "key": "k", "value": "remember the zeppelin"},
]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "issues.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in ISSUES) + "{broken\n")
    return str(path)


def test_report_accounts_for_every_line(db, file):
    (report,) = spawn("tasks", "import", file, "--json").data["files"]
    assert set(report) == {
        "path",
        "lines",
        "issues",
        "added",
        "changed",
        "unchanged",
        "newerHere",
        "dependencies",
        "impliedParents",
        "tombstones",
        "others",
        "folded",
        "keptInMetadata",
        "redacted",
        "unreadable",
        "repeated",
        "refused",
    }
    assert (report["lines"], report["issues"], report["added"], report["others"]) == (
        4,
        2,
        2,
        {"memory": 1},
    )
    assert report["keptInMetadata"] == {"status hooked → in_progress": 1, "field owner": 1}
    assert (report["folded"], report["impliedParents"], report["dependencies"]) == (
        {"notes": 1},
        1,
        1,
    )
    assert [each["line"] for each in report["unreadable"]] == [4]


def test_pipe_says_the_same_in_tables(db, file):
    counts, became = smara("tasks", "import", file).out.split("\n\n")
    assert counts.splitlines() == [
        "file\tlines\tissues\tadded\tchanged\tunchanged\tnewer here\tdependencies",
        f"{file}\t4\t2\t2\t0\t0\t0\t1",
    ]
    assert became.splitlines() == [
        "count\tof\tbecame",
        "1\tstatus hooked\tin_progress",
        "1\tfield owner\tmetadata",
        "1\tfield notes\ta section of the description",
        "1\trecord memory\ta message of the thread beads",
        "1\tparent named by an id alone\ta dependency",
        f"not read: {file}:4: invalid JSON (Expecting property name enclosed in double quotes, "
        "column 2)",
    ]


def test_person_is_told_in_words_within_eighty_columns(db, file):
    lines = plain(on_terminal("tasks", "import", file, streams="out").out).splitlines()
    assert lines[1] == "2 issues: 2 added; 1 dependency."
    assert "All of it is kept and written by `smara tasks export`." in lines
    again = plain(on_terminal("tasks", "import", file, streams="out").out).splitlines()
    assert again[1] == "2 issues: 2 unchanged; 1 dependency."


def test_what_came_in_goes_out_to_a_pipe_byte_for_byte(db, file):
    smara("tasks", "import", file)
    out = spawn("tasks", "export").out
    assert [json.loads(line) for line in out.splitlines()] == ISSUES
    assert smara("tasks", "export", "-").out == out
    data = smara("tasks", "export", "--json").data
    assert (data["issues"], data["records"]) == (2, ISSUES)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_export_to_a_file_is_imported_elsewhere_without_change(db, file, tmp_path, name):
    smara("tasks", "import", file)
    target = tmp_path / name
    assert smara("tasks", "export", str(target)).out == f"Exported 2 tasks to {target}.\n"
    raw = target.read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    assert text.decode() == smara("tasks", "export").out
    other = ["--db", str(tmp_path / "other.db")]
    assert smara("tasks", "import", str(target), *other, "--json").data["files"][0]["added"] == 2
    assert smara("tasks", "export", *other).out.encode() == text
    assert smara("tasks", "export", str(target), "--json").data == {
        "format": "beads",
        "path": str(target),
        "issues": 2,
    }
    assert target.read_bytes() == raw


def test_export_replaces_a_file_whole_and_keeps_its_mode(db, file, tmp_path):
    smara("tasks", "import", file)
    target = tmp_path / "old.jsonl"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    smara("tasks", "export", str(link))
    assert link.is_symlink()
    assert target.read_text().count("\n") == 3
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.glob(".*jsonl*")) == []


@pytest.mark.parametrize("target", ["nowhere/out.jsonl", "."])
def test_export_to_where_nothing_can_be_written_is_told(store, tmp_path, target):
    said = smara("tasks", "export", str(tmp_path / target))
    assert (said.code, said.out) == (2, "")
    assert "path" in said.err


def test_wrong_file_among_several_is_told_before_anything_is_stored(db, file, tmp_path):
    wrong = tmp_path / "notes.jsonl"
    wrong.write_text('{"role": "user", "content": "hello"}\n')
    said = smara("tasks", "import", file, str(wrong))
    assert (said.code, said.out) == (2, "")
    assert "issues.jsonl of a .beads folder" in said.err
    assert smara("tasks", "list", "--json").data["tasks"] == []


def test_many_odd_lines_are_named_up_to_ten(db, file):
    with open(file, "a") as more:
        more.writelines("oops\n" for _ in range(20))
    lines = smara("tasks", "import", file).out.splitlines()
    assert lines[-1] == "and 11 more; --json lists them all."
    assert sum(line.startswith("not read: ") for line in lines) == 10


def test_reader_that_leaves_early_is_no_failure(db, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"x-{n}", "title": "word " * 60}) + "\n" for n in range(500))
    )
    smara("tasks", "import", str(path))
    assert left_early("tasks", "export") == (0, b"")
