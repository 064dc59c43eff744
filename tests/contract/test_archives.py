"""Archives: every record leaves in one file, and comes back as it was."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import jsonschema
import pytest

import smara
from smara.errors import InvalidInputError, NotFoundError
from smara.privacy.tables import RECORDS
from tests import stores
from tests.contract.both import EACH_DATABASE
from tests.contract.filled_tables import fill
from tests.faults import recount

pytestmark = EACH_DATABASE
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def memory(place):
    return place.open(embedder="off", project="shop")


@pytest.fixture
def other(place, tmp_path, clock):
    """An empty store, in the other database."""
    folder = tmp_path / "other"
    folder.mkdir()
    kind = "sqlite" if place.kind == "postgres" else "postgres"
    with (
        stores.empty_store(kind, folder) as address,
        smara.open(address, embedder="off", project="else", clock=clock) as memory,
    ):
        yield memory


def work(memory) -> None:
    """A little of everything that people and agents do."""
    memory.messages.add(thread_id="t", role="user", content="The walrus sleeps in Redis.")
    memory.messages.add(thread_id="t", role="assistant", content="nul \x00 and \ud800 are kept")
    message = memory.messages.add(thread_id="u", role="user", content="Never use port 8080.")
    first = memory.tasks.add("Mend the door", labels=["house"])
    memory.tasks.add("Paint it", depends_on=[first.id])
    memory.tasks.close(first.id, "It is mended")
    memory.tasks.undo(first.id)
    memory.tasks.update(first.id, priority=1)
    old = memory.memories.remember("Tokens live for a day", type="gotcha")
    memory.memories.add(
        "Tokens live for two days",
        type="gotcha",
        source="user_taught",
        by="person",
        supersedes=[old.memory.id],
        evidence=[f"message:{message.id}"],
    )
    memory.observations.observe("t")
    memory.working.put("# Page\n- walrus", scope="thread", thread_id="t")


def manifest(path) -> dict:
    return json.loads(zipfile.ZipFile(path).read("manifest.json"))


def checksums(path) -> dict[str, str]:
    return {each["path"]: each["sha256"] for each in manifest(path)["files"]}


def lines(path, name) -> list[dict]:
    archive = zipfile.ZipFile(path)
    found = [each for each in archive.namelist() if each.endswith(f"/{name}.ndjson")]
    return [json.loads(line) for each in found for line in archive.read(each).splitlines()]


def test_an_imported_archive_gives_an_equal_export(memory, other, tmp_path):
    work(memory)
    memory.privacy.export(tmp_path / "a.zip")
    report = other.privacy.import_archive(tmp_path / "a.zip")
    assert report.projects == ("shop",)
    assert not report.skipped
    shop = other.in_project("shop")
    shop.privacy.export(tmp_path / "b.zip")
    assert checksums(tmp_path / "a.zip") == checksums(tmp_path / "b.zip")
    assert recount.problems(other) == []
    assert shop.tasks.totals() == memory.tasks.totals()
    assert shop.memories.problems() == []
    assert [hit.content for hit in shop.search("walrus", sources=["messages"]).hits] == [
        "The walrus sleeps in Redis."
    ]
    assert shop.search_memories("tokens").hits[0].memory.content == "Tokens live for two days"


def test_a_project_without_memories_gives_an_equal_export(memory, other, tmp_path):
    """Counting the memories of a store makes a row of their state, which says nothing yet."""
    memory.tasks.add("Mend the door")
    memory.privacy.export(tmp_path / "a.zip")
    other.privacy.import_archive(tmp_path / "a.zip")
    other.in_project("shop").privacy.export(tmp_path / "b.zip")
    assert checksums(tmp_path / "a.zip") == checksums(tmp_path / "b.zip")


@pytest.mark.parametrize("seed", range(3))
def test_a_row_of_every_table_and_column_comes_back_equal(memory, other, tmp_path, seed):
    fill(memory, seed=seed)
    memory.privacy.export(tmp_path / "a.zip")
    counts = manifest(tmp_path / "a.zip")["counts"]
    assert {table.name for table in RECORDS} == set(counts), "the test fills every table"
    assert not other.privacy.import_archive(tmp_path / "a.zip").skipped
    other.in_project("shop").privacy.export(tmp_path / "b.zip")
    assert checksums(tmp_path / "a.zip") == checksums(tmp_path / "b.zip")


def test_importing_twice_adds_nothing(memory, other, tmp_path):
    fill(memory)
    memory.privacy.export(tmp_path / "a.zip")
    first = other.privacy.import_archive(tmp_path / "a.zip")
    again = other.privacy.import_archive(tmp_path / "a.zip")
    assert again.added == {}
    assert again.present == first.added


def test_import_goes_on_with_a_thread_that_is_there(memory, other, tmp_path):
    memory.messages.add(thread_id="t", role="user", content="one")
    memory.privacy.export(tmp_path / "a.zip")
    other.privacy.import_archive(tmp_path / "a.zip")
    memory.messages.add(thread_id="t", role="user", content="two")
    memory.privacy.export(tmp_path / "b.zip")
    other.privacy.import_archive(tmp_path / "b.zip")
    shop = other.in_project("shop")
    assert shop.messages.add(thread_id="t", role="user", content="three").seq == 3
    assert recount.problems(other) == []


def test_every_line_is_of_the_schema_that_is_in_the_archive(memory, tmp_path):
    fill(memory)
    work(memory)
    memory.privacy.export(tmp_path / "a.zip")
    archive = zipfile.ZipFile(tmp_path / "a.zip")
    schema = json.loads(archive.read("schema.json"))
    for table in RECORDS:
        check = jsonschema.Draft202012Validator(schema["$defs"][table.name])
        for line in lines(tmp_path / "a.zip", table.name):
            check.validate(line)


def test_a_line_names_other_rows_by_id(memory, tmp_path):
    work(memory)
    memory.privacy.export(tmp_path / "a.zip")
    assert {line["thread_id"] for line in lines(tmp_path / "a.zip", "messages")} == {"t", "u"}
    evidence = [line["evidence"] for line in lines(tmp_path / "a.zip", "memories")][1]
    messages = {line["id"] for line in lines(tmp_path / "a.zip", "messages")}
    assert evidence[0]["message_id"] in messages
    assert not {"no", "project_no"} & lines(tmp_path / "a.zip", "memories")[0].keys()


def test_people_find_markdown_and_tables_in_it(memory, tmp_path):
    work(memory)
    memory.memories.remember("=HYPERLINK(1) is a formula", type="gotcha")
    memory.privacy.export(tmp_path / "a.zip")
    archive = zipfile.ZipFile(tmp_path / "a.zip")
    read = {name: archive.read(f"01-shop/{name}").decode() for name in (
        "memories.md", "tasks.md", "conversations.md", "memories.csv", "tasks.csv")}  # fmt: skip
    assert "Tokens live for two days" in read["memories.md"]
    assert "- [ ] " in read["tasks.md"]
    assert "The walrus sleeps in Redis." in read["conversations.md"]
    assert ",'=HYPERLINK(1) is a formula," in read["memories.csv"], "no cell is run"
    assert "Mend the door" in read["tasks.csv"]


def test_archive_is_private_and_never_replaces_a_file(memory, tmp_path):
    work(memory)
    report = memory.privacy.export(tmp_path / "a.zip")
    assert stat.S_IMODE(os.stat(report.path).st_mode) == 0o600
    before = Path(report.path).read_bytes()
    with pytest.raises(InvalidInputError):
        memory.privacy.export(report.path)
    assert Path(report.path).read_bytes() == before
    assert [each.name for each in tmp_path.glob("a.zip*")] == ["a.zip"]


def test_export_of_a_person_holds_what_is_theirs(memory, tmp_path):
    memory.threads.add("hers", resource_id="ann")
    memory.messages.add(thread_id="hers", role="user", content="of ann")
    memory.threads.add("his", resource_id="bob")
    memory.messages.add(thread_id="his", role="user", content="of bob")
    memory.memories.remember("Ann taught this", type="gotcha", actor="ann")
    memory.memories.remember("Bob taught this", type="gotcha", actor="bob")
    memory.tasks.add("Ann's task", actor="ann")
    memory.tasks.add("Bob's task", actor="bob")
    memory.privacy.export(tmp_path / "a.zip", person="ann")
    whole = b"".join(map(zipfile.ZipFile(tmp_path / "a.zip").read, checksums(tmp_path / "a.zip")))
    assert b"of ann" in whole
    assert b"Ann taught" in whole
    assert b"Ann's task" in whole
    assert b"bob" not in whole.lower()


def test_export_of_a_time_holds_what_is_of_it(memory, clock, tmp_path):
    memory.messages.add(thread_id="t", role="user", content="early bird")
    clock.advance(86_400)
    between = clock.now_ms()
    clock.advance(86_400)
    memory.messages.add(thread_id="t", role="user", content="late worm")
    memory.privacy.export(tmp_path / "a.zip", since=between)
    memory.privacy.export(tmp_path / "b.zip", until=between)
    assert [line["raw_content"] for line in lines(tmp_path / "a.zip", "messages")] == ["late worm"]
    assert [line["raw_content"] for line in lines(tmp_path / "b.zip", "messages")] == ["early bird"]


def test_personal_memories_of_others_are_not_exported(place, tmp_path):
    ann = place.open(embedder="off", project="shop", actor="ann")
    ann.memories.remember("Ann's own", type="preference", visibility="personal")
    bob = place.open(embedder="off", project="shop", actor="bob")
    bob.privacy.export(tmp_path / "a.zip")
    assert lines(tmp_path / "a.zip", "memories") == []
    assert lines(tmp_path / "a.zip", "memory_events") == []
    ann.privacy.export(tmp_path / "b.zip")
    assert len(lines(tmp_path / "b.zip", "memories")) == 1


def test_only_the_projects_that_are_named_are_exported(memory, tmp_path):
    memory.messages.add(thread_id="t", role="user", content="of shop")
    memory.in_project("bank").messages.add(thread_id="t", role="user", content="of bank")
    memory.privacy.export(tmp_path / "a.zip")
    memory.privacy.export(tmp_path / "b.zip", is_all=True)
    assert [line["raw_content"] for line in lines(tmp_path / "a.zip", "messages")] == ["of shop"]
    assert len(lines(tmp_path / "b.zip", "messages")) == 2
    with pytest.raises(NotFoundError):
        memory.privacy.export(tmp_path / "c.zip", projects=["nowhere"])


def test_archive_of_one_project_is_read_into_another_by_name(memory, other, tmp_path):
    work(memory)
    memory.privacy.export(tmp_path / "a.zip")
    assert other.privacy.import_archive(tmp_path / "a.zip", project="new").projects == ("new",)
    assert other.in_project("new").tasks.totals() == memory.tasks.totals()


def test_ids_of_messages_stay_unique_across_the_projects_of_a_store(memory, tmp_path):
    """No key of PostgreSQL says so any more: the import does, as it does of a file."""
    work(memory)
    path = memory.privacy.export(tmp_path / "all.zip").path
    report = memory.privacy.import_archive(path, project="another")
    with memory.internals.database.read() as session:
        for table in ("messages", "observations"):
            every = session.all(f"SELECT id FROM {table}")
            assert len(every) == len(set(every))
    assert report.added.get("messages", 0) == 0
    assert report.present["messages"] > 0


def altered(source: Path, target: Path, **changes) -> Path:
    """A copy of an archive with some files changed, named without their ending."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            change = changes.get(Path(name).stem)
            is_line = name.endswith((".ndjson", "manifest.json"))
            new.writestr(name, change(old.read(name)) if change and is_line else old.read(name))
    return target


def test_damaged_archive_stores_nothing(memory, other, tmp_path):
    work(memory)
    memory.privacy.export(tmp_path / "a.zip")
    path = altered(
        tmp_path / "a.zip", tmp_path / "b.zip", tasks=lambda data: data.replace(b"Mend", b"Bend")
    )
    with pytest.raises(InvalidInputError, match="checksum"):
        other.privacy.import_archive(path)
    assert other.in_project("shop").threads.totals()["threads"] == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'"version": 1', b'"version": 99'),
        lambda data: data.replace(b"smara-archive", b"other"),
        lambda data: b"{}",
        lambda data: b"not json",
        lambda data: data.replace(b'"folder": "01-shop"', b'"folder": "../.."'),
    ],
)
def test_what_is_no_archive_of_ours_is_refused_or_empty(memory, other, tmp_path, change):
    work(memory)
    memory.privacy.export(tmp_path / "a.zip")
    path = altered(tmp_path / "a.zip", tmp_path / "b.zip", manifest=change)
    try:
        assert other.privacy.import_archive(path).added == {}
    except InvalidInputError:
        pass
    assert other.in_project("shop").threads.totals()["threads"] == 0


def test_secrets_in_an_edited_archive_are_redacted(memory, other, tmp_path):
    import hashlib

    memory.messages.add(thread_id="t", role="user", content="the key is PLACE")
    memory.privacy.export(tmp_path / "a.zip")
    archive = zipfile.ZipFile(tmp_path / "a.zip")
    edited = archive.read("01-shop/messages.ndjson").replace(b"PLACE", SECRET.encode())
    before = checksums(tmp_path / "a.zip")["01-shop/messages.ndjson"].encode()
    after = hashlib.sha256(edited).hexdigest().encode()
    path = altered(
        tmp_path / "a.zip",
        tmp_path / "b.zip",
        messages=lambda data: edited,
        manifest=lambda data: data.replace(before, after),
    )
    other.privacy.import_archive(path)
    stored = other.in_project("shop").messages.list(thread_id="t")[0].raw_content
    assert SECRET not in stored
    assert "[REDACTED:" in stored


def test_a_conversation_that_went_on_in_both_stores_loses_nothing(memory, other, tmp_path):
    """1. Both have a thread. 2. It goes on in both, and is summed up. 3. Import, twice."""
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    memory.messages.add(thread_id="t", role="user", content="Both know this.")
    memory.privacy.export(first)
    other.privacy.import_archive(first, project="else")
    for each, place in ((memory, "A"), (other, "B")):
        for number in range(40):
            each.messages.add(thread_id="t", role="user", content=f"Said at {place}: {number}.")
        each.compactions.compact("t")
        each.observations.observe("t")
    mine = [each.id for each in other.messages.list(thread_id="t", limit=100)]
    memory.privacy.export(second)

    report = other.privacy.import_archive(second, project="else")

    assert report.added["messages"] == 40
    assert report.skipped["compactions"] >= 1
    every = other.messages.list(thread_id="t", limit=100)
    assert [each.id for each in every[:41]] == mine
    assert [each.raw_content for each in every[41:]] == [f"Said at A: {n}." for n in range(40)]
    assert recount.problems(other) == []
    repeated = other.privacy.import_archive(second, project="else")
    assert sum(repeated.added.values()) == 0
    assert len(other.messages.list(thread_id="t", limit=100)) == 81
