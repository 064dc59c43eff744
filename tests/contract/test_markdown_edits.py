"""The Markdown of an export can be edited by hand and read back, as a person's edits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from smara.errors import InvalidInputError, NotFoundError
from tests.contract.both import EACH_DATABASE, kinds

pytestmark = EACH_DATABASE
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def memory(place: Any) -> Any:
    opened = place.open(embedder="off", project="shop")
    opened.memories.remember("Tokens live for a day", type="gotcha", files=["src/auth.py"])
    opened.memories.remember("Run the tests with make", type="preference", tags=["ci"])
    opened.tasks.add("Mend the door", description="It squeaks.\n\n    oil helps", priority=1)
    opened.tasks.add("Paint it", type="chore")
    return opened


@pytest.fixture
def file(memory, tmp_path):
    path = tmp_path / "shop.md"
    memory.privacy.export(path, "markdown")
    return path


def edit(path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def counts(report) -> tuple[int, ...]:
    return tuple(
        len(each)
        for each in (report.updated, report.added, report.conflicts, report.missing, report.refused)
    )


def test_an_unchanged_file_changes_nothing(memory, file):
    before = list(memory.privacy.render("json"))
    report = memory.privacy.import_markdown(file)
    assert (report.unchanged, counts(report)) == (4, (0, 0, 0, 0, 0))
    assert list(memory.privacy.render("json")) == before


def test_an_edited_memory_is_updated_as_a_persons_edit_that_can_be_undone(memory, file):
    edit(file, "Tokens live for a day", "Tokens live for two days,\nand no longer")
    edit(file, "- Files: src/auth.py", "- Files: src/auth.py, src/token.py\n- Tags: login")
    report = memory.privacy.import_markdown(file)
    (name,) = report.updated
    changed = memory.memories.get(name)
    assert changed.content == "Tokens live for two days,\nand no longer"
    assert (changed.files, changed.tags) == (("src/auth.py", "src/token.py"), ("login",))
    event = memory.memories.history(name)[0]
    assert (event.kind, event.by) == ("updated", "person")
    assert memory.memories.undo(name, by="person").content == "Tokens live for a day"


def test_an_edited_task_is_updated_closed_and_reopened(memory, file, clock):
    edit(file, "- [ ]", "- [x]")
    edit(file, "P1 task: Mend the door", "P0 bug: Mend the door's hinge")
    edit(file, "    It squeaks.", "    It squeaks loudly.")
    (name,) = memory.privacy.import_markdown(file).updated
    task = memory.tasks.get(name)
    assert (task.title, task.priority, task.type) == ("Mend the door's hinge", 0, "bug")
    assert task.description == "It squeaks loudly.\n\n    oil helps"
    assert (task.status, kinds(memory.tasks.history(name))) == (
        "closed", ["created", "updated", "closed"],
    )  # fmt: skip
    memory.privacy.export(file.with_name("again.md"), "markdown")
    edit(file.with_name("again.md"), "- [x]", "- [ ]")
    memory.privacy.import_markdown(file.with_name("again.md"))
    assert memory.tasks.get(name).status == "open"


def test_new_entries_are_added_once(memory, file):
    edit(file, "# Tasks\n", "## gotcha\n\nPort 8080 is taken\n\n# Tasks\n")
    file.write_text(file.read_text() + "- [ ] P1 bug: Oil the hinge\n    with care\n- [ ] Sweep\n")
    report = memory.privacy.import_markdown(file)
    assert counts(report) == (0, 3, 0, 0, 0)
    (port,) = [each for each in memory.memories.list() if "8080" in each.content]
    assert (port.type, port.is_verified, port.source) == ("gotcha", True, "user_taught")
    oil, sweep = (memory.tasks.get(name) for name in report.added[1:])
    assert (oil.title, oil.priority, oil.type, oil.description) == (
        "Oil the hinge", 1, "bug", "with care",
    )  # fmt: skip
    assert sweep.title == "Sweep"
    again = memory.privacy.import_markdown(file)
    assert (again.unchanged, counts(again)) == (7, (0, 0, 0, 0, 0))


def test_what_is_gone_from_the_file_is_reported_and_stays(memory, file):
    text = file.read_text()
    start = text.index("## m-")
    file.write_text(text[:start] + text[text.index("## m-", start + 5) :])
    memory.memories.remember("Added after the export", type="gotcha")
    report = memory.privacy.import_markdown(file)
    (missing,) = report.missing
    assert memory.memories.get(missing).content == "Tokens live for a day"
    assert len(memory.memories.list()) == 3


def test_a_change_here_since_the_export_is_shown_and_not_overwritten(memory, file):
    (tokens,) = [each for each in memory.memories.list() if "Tokens" in each.content]
    memory.memories.update(tokens.id, content="Tokens live for an hour", by="person")
    edit(file, "Tokens live for a day", "Tokens live for a week")
    report = memory.privacy.import_markdown(file)
    (conflict,) = report.conflicts
    assert conflict.id == tokens.short_id
    assert "for an hour" in conflict.here
    assert "for a week" in conflict.file
    assert memory.memories.get(tokens.id).content == "Tokens live for an hour"


def test_a_change_here_of_what_was_not_edited_is_no_conflict(memory, file):
    (tokens,) = [each for each in memory.memories.list() if "Tokens" in each.content]
    memory.memories.update(tokens.id, content="Tokens live for an hour", by="person")
    edit(file, "Paint it", "Paint it green")
    report = memory.privacy.import_markdown(file)
    assert counts(report) == (1, 0, 0, 0, 0)
    assert memory.memories.get(tokens.id).content == "Tokens live for an hour"


def test_an_edit_of_a_forgotten_memory_is_a_conflict(memory, file):
    (tokens,) = [each for each in memory.memories.list() if "Tokens" in each.content]
    memory.memories.forget(tokens.id, by="person")
    edit(file, "Tokens live for a day", "Tokens live for a week")
    assert counts(memory.privacy.import_markdown(file)) == (0, 0, 1, 0, 0)


def test_importing_an_edited_file_twice_changes_it_once(memory, file):
    edit(file, "Tokens live for a day", f"Tokens look like {SECRET}")
    edit(file, "- Tags: ci", "- Tags: zebra, Apple")
    memory.privacy.import_markdown(file)
    before = list(memory.privacy.render("json"))
    assert SECRET not in "".join(before)
    report = memory.privacy.import_markdown(file)
    assert (report.unchanged, counts(report)) == (4, (0, 0, 0, 0, 0))
    assert list(memory.privacy.render("json")) == before


def test_the_same_file_can_be_edited_again_and_again(memory, file):
    edit(file, "Tokens live for a day", "Tokens live for two days")
    edit(file, "# Tasks\n", "## new\n\nThe quay floods in autumn\n\n# Tasks\n")
    file.write_text(file.read_text() + "- [ ] Sweep\n")
    first = memory.privacy.import_markdown(file)
    assert (first.is_refreshed, counts(first)) == (True, (1, 2, 0, 0, 0))
    edit(file, "Tokens live for two days", "Tokens live for three days")
    edit(file, "floods in autumn", "floods in spring")
    edit(file, "task: Sweep", "task: Sweep the quay")
    second = memory.privacy.import_markdown(file)
    assert counts(second) == (3, 0, 0, 0, 0)
    assert {each.content for each in memory.memories.list()} >= {
        "Tokens live for three days", "The quay floods in spring",
    }  # fmt: skip
    assert memory.tasks.get(second.updated[-1]).title == "Sweep the quay"
    assert not memory.privacy.import_markdown(file).is_refreshed


def test_an_undone_edit_does_not_come_back_with_the_file(memory, file):
    edit(file, "Tokens live for a day", "Tokens live for two days")
    (name,) = memory.privacy.import_markdown(file).updated
    memory.memories.undo(name, by="person")
    assert counts(memory.privacy.import_markdown(file)) == (0, 0, 0, 0, 0)
    assert memory.memories.get(name).content == "Tokens live for a day"


def test_ends_of_lines_of_another_system_are_kept(memory, file):
    text = file.read_text().replace("\n", "\r\n").replace("for a day", "for two days")
    file.write_bytes(text.encode())
    assert counts(memory.privacy.import_markdown(file)) == (1, 0, 0, 0, 0)
    after = file.read_bytes()
    assert after.count(b"\n") == after.count(b"\r\n") == text.count("\n")
    assert counts(memory.privacy.import_markdown(file)) == (0, 0, 0, 0, 0)


def test_a_file_that_cannot_be_written_is_read_all_the_same(memory, file):
    edit(file, "Tokens live for a day", "Tokens live for two days")
    (file.parent / f"{file.name}.partial").mkdir()
    report = memory.privacy.import_markdown(file)
    assert (report.is_refreshed, counts(report)) == (False, (1, 0, 0, 0, 0))


def test_a_dry_run_tells_the_same_and_changes_nothing(memory, file):
    edit(file, "Tokens live for a day", "Tokens live for a week")
    file.write_text(file.read_text() + "- [ ] Sweep\n")
    before = list(memory.privacy.render("json"))
    planned = memory.privacy.import_markdown(file, is_dry_run=True)
    assert counts(planned) == (1, 1, 0, 0, 0)
    assert list(memory.privacy.render("json")) == before


def test_what_cannot_be_taken_is_refused_by_name(memory, file):
    text = file.read_text()
    first = text[text.index("## m-") : text.index("## m-", text.index("## m-") + 5)]
    twice = text.replace("# Tasks\n", f"{first.replace('a day', 'a year')}\n# Tasks\n", 1)
    lost = re.sub(r"(Paint it) <!-- \w+ -->", r"\1 blue", twice)
    file.write_text(lost + "- [ ] t-nowhere P2 task: Elsewhere <!-- 0123456789ab -->\n")
    report = memory.privacy.import_markdown(file)
    assert counts(report) == (0, 0, 0, 0, 3)
    assert [why.split(",")[0] for _, _, why in report.refused] == [
        "It stands in the file twice; the first was read.",
        "Its mark is gone",
        "It is not in this project (any more).",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Tasks", "# Plans", r"line \d+: The section 'plans' is neither"),
        ("# Tasks\n", "# Tasks\n\nsome prose\n", r"line \d+: The line belongs to no memory"),
        (" · gotcha · ", " · hunch · ", r"line \d+: hunch is not a type of memory"),
        ("Tokens live for a day\n", "\n", r"line \d+: A memory needs words"),
    ],
)
def test_a_line_that_means_nothing_changes_nothing(memory, file, old, new, message):
    edit(file, "Paint it", "Paint it green")
    edit(file, old, new)
    with pytest.raises(InvalidInputError, match=f"{message}.*Nothing was changed"):
        memory.privacy.import_markdown(file)
    assert not [each for each in memory.tasks.list() if "green" in each.title]


def test_a_file_that_is_no_export_is_refused(memory, tmp_path):
    path = tmp_path / "a.md"
    path.write_text("# Memories\n")
    with pytest.raises(InvalidInputError, match="not a Markdown export"):
        memory.privacy.import_markdown(path)
    with pytest.raises(NotFoundError):
        memory.privacy.import_markdown(tmp_path / "none.md")
