"""Any words survive the Markdown of an export, and any edit of it is applied once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smara.privacy.markdown import FIRST_LINE, memory_lines, parse, plain, task_lines
from smara.testing import open_temporary

FORMS = [
    "# Tasks", "## m-x · gotcha · 2026-01-01", "## new", "- Files: a", "\\- Tags: b", "\\\\# c", "",
    "    code", "- [ ] t-1 P2 task: x <!-- 0123456789ab -->", "<!-- smara-entries m-1 -->", "##",
    "<!-- smara-markdown 1 -->", "\\", "- Closed: no", "x\u2028y", "x\x0by", "x\ry", "tail  ",
]  # fmt: skip
LETTERS = st.characters(exclude_categories=["Cs", "Cc"])
TEXTS = (
    st.lists(st.one_of(st.sampled_from(FORMS), st.text(LETTERS, max_size=20)), max_size=5)
    .map("\n".join)
    .filter(lambda text: bool(plain(text)))
)
ACTS = st.sampled_from(["leave", "edit", "delete", "change here", "edit and change here"])
ENTRIES = st.lists(st.tuples(TEXTS, ACTS, TEXTS, TEXTS), min_size=1, max_size=4)


def rows_of(memory: Any) -> dict[str, list[dict[str, Any]]]:
    return json.loads("\n".join(memory.privacy.render("json")))


def texts_of(memory: Any) -> dict[str, str]:
    """The words of all memories and tasks by short id, as a file would hold them."""
    rows = rows_of(memory)
    return {each["short_id"]: plain(each["content"]) for each in rows["memories"]} | {
        each["short_id"]: plain(each["description"] or "") for each in rows["tasks"]
    }


def written(memory: Any, edits: Mapping[str, str], gone: set[str]) -> str:
    """The export as a person would edit it: other words, the marks as they were."""
    rows = rows_of(memory)
    whole = "\n".join((FIRST_LINE, *memory_lines(rows["memories"]), *task_lines(rows["tasks"])))
    marks = dict(re.findall(r"^(?:## |- \[.\] )(\S+) .*<!-- ([0-9a-f]{12}) -->$", whole, re.M))
    for kind, column in (("memories", "content"), ("tasks", "description")):
        rows[kind] = [
            {**each, column: edits.get(each["short_id"], each[column])}
            for each in rows[kind]
            if each["short_id"] not in gone
        ]
    edited = "\n".join((FIRST_LINE, *memory_lines(rows["memories"]), *task_lines(rows["tasks"])))
    with_marks = re.sub(
        r"^((?:## |- \[.\] )(\S+) .*<!-- )[0-9a-f]{12}( -->)$",
        lambda match: f"{match[1]}{marks.get(match[2], '0123456789ab')}{match[3]}",
        edited,
        flags=re.M,
    )
    listed = re.findall(r"^<!-- smara-entries .*$", whole, re.M)
    return "\n".join((re.sub(r"^<!-- smara-entries .*\n", "", with_marks, flags=re.M), *listed))


def put(memory: Any, name: str, text: str) -> None:
    if name.startswith("m-"):
        memory.memories.update(name, content=text, by="person")
    else:
        memory.tasks.update(name, description=text)


@settings(max_examples=30)
@given(entries=ENTRIES)
def test_an_edit_is_applied_once_and_never_over_a_change_made_here(entries):
    with open_temporary() as memory, TemporaryDirectory() as folder:
        acts: dict[str, tuple[str, str, str]] = {}
        for number, (text, *act) in enumerate(entries):
            new = memory.memories.remember(
                f"Harbor {number} opens at {number} o'clock", type="gotcha"
            )
            for name in (new.memory.short_id, memory.tasks.add(f"task {number}").short_id):
                put(memory, name, text)
                acts[name] = tuple(act)
        before = texts_of(memory)
        path = Path(folder) / "export.md"
        edits = {name: new for name, (act, new, _) in acts.items() if act.startswith("edit")}
        gone = {name for name, (act, _, _) in acts.items() if act == "delete"}
        path.write_text(written(memory, edits, gone), encoding="utf-8", newline="")
        assert parse(path.read_text(encoding="utf-8")).problems == ()
        for name, (act, _, other) in acts.items():
            if act.endswith("change here"):
                put(memory, name, other)
        here = texts_of(memory)
        report = memory.privacy.import_markdown(path)

        after = texts_of(memory)
        conflicts = {each.id for each in report.conflicts}
        for name, (act, new, _) in acts.items():
            is_edited = act.startswith("edit") and plain(new) != before[name]
            is_changed = here[name] != before[name]
            if is_edited and not is_changed:
                assert after[name] == plain(new)
            else:
                assert after[name] == here[name]
            is_conflict = is_edited and is_changed and plain(new) != here[name]
            assert (name in conflicts) is is_conflict
        assert set(report.missing) == gone
        again = memory.privacy.import_markdown(path)
        assert (again.updated, again.added) == ([], [])
        assert texts_of(memory) == after
