"""What other memory tools keep comes in once, counted, with its dates, and not trusted yet."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smara.errors import InvalidInputError, NotFoundError
from smara.privacy.foreign.formats import FOREIGN, recognize
from smara.privacy.foreign.records import ForeignFact, ForeignFormat, ForeignMessage
from smara.testing import FakeClock
from tests import foreign_stores
from tests.contract.both import EACH_DATABASE
from tests.foreign_stores import MAY_4, SESSION

pytestmark = EACH_DATABASE
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
MAKERS = [
    pytest.param(name, make, id=f"{name}-{number}")
    for name, makers in foreign_stores.EVERY.items()
    for number, make in enumerate(makers)
]


@pytest.fixture
def clock() -> FakeClock:
    """A day in November 2026, after everything in the stores."""
    return FakeClock(1_794_000_000_000)


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(embedder="off", project="harbor")


def contents(memory: Any, state: str = "active") -> dict[str, Any]:
    return {each.content: each for each in memory.memories.list(state=state, limit=100)}


def all_messages(memory: Any) -> list[Any]:
    return [
        message
        for thread in memory.threads.list(limit=100)
        for message in memory.messages.stream(thread_id=thread.id)
    ]


def parts_of(report: Any) -> int:
    return (
        report.added + report.ended + report.updated + report.merged + report.present
        + report.messages + report.messages_present + sum(report.skipped.values())
    )  # fmt: skip


@pytest.mark.parametrize(("name", "make"), MAKERS)
def test_a_store_is_recognized_and_every_record_is_accounted_for(memory, tmp_path, name, make):
    path = make(tmp_path)
    assert recognize(str(path)).name == name
    planned = memory.privacy.import_foreign(path, is_dry_run=True)
    assert not contents(memory, "all")
    report = memory.privacy.import_foreign(path)
    assert report.records == parts_of(report) == parts_of(planned) > 0
    assert report.added > 0
    assert (planned.added, planned.ended, planned.messages) == (
        report.added + report.merged, report.ended, report.messages,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "make"), MAKERS)
def test_importing_twice_adds_nothing(memory, tmp_path, name, make):
    path = make(tmp_path)
    first = memory.privacy.import_foreign(path)
    everything = contents(memory, "all")
    again = memory.privacy.import_foreign(path)
    assert (again.added, again.ended, again.updated, again.messages) == (0, 0, 0, 0)
    assert again.skipped == first.skipped
    assert contents(memory, "all") == everything


@pytest.mark.parametrize(("name", "make"), MAKERS)
def test_what_comes_in_is_tainted_waits_for_review_and_is_told_to_no_agent(
    memory, tmp_path, name, make
):
    memory.privacy.import_foreign(make(tmp_path))
    for each in contents(memory).values():
        assert (each.source, each.taint, each.needs_review) == ("imported", ("imported",), True)
        assert not memory.memories.may_inject(each).allowed
        assert name in each.tags
    for message in all_messages(memory):
        assert message.metadata["taint"] == ["imported"]
    memory.decisions.update()
    assert list(memory.decisions.list()) == []


def test_facts_of_mem0_keep_their_day_their_person_and_their_relations(memory, tmp_path):
    memory.privacy.import_foreign(foreign_stores.mem0(tmp_path))
    found = contents(memory, "all")
    prefers = found["Prefers pnpm over npm"]
    assert prefers.seen_at == 1_769_968_800_275
    assert (prefers.visibility, prefers.tags) == ("personal", ("area:tooling", "mem0"))
    assert "ann works on harbor" in found
    trial = found["The trial of Vault runs until spring"]
    assert (trial.visibility, trial.deprecated_because) == ("project", "superseded")
    assert trial.deprecated_at == 1_775_001_600_000


def test_older_versions_and_deleted_facts_of_mem0_are_not_in_force(memory, tmp_path):
    report = memory.privacy.import_foreign(foreign_stores.mem0_history(tmp_path))
    assert (report.added, report.ended, report.messages) == (1, 2, 2)
    assert set(contents(memory)) == {"Releases happen on Mondays only"}
    assert set(contents(memory, "deprecated")) == {
        "Releases happen on Fridays", "The staging host is called heron",
    }  # fmt: skip
    said = [each.raw_content for each in memory.messages.stream(thread_id="mem0/user_id=ann")]
    assert said == ["Which day is the release?", "On Mondays."]


def test_observations_and_relations_of_the_mcp_server_become_statements(memory, tmp_path):
    report = memory.privacy.import_foreign(foreign_stores.mcp_memory(tmp_path))
    assert set(contents(memory)) == {
        "billing service: Amounts are integers in cents",
        "billing service: Listens on port 7410 in staging",
        "billing service writes to ledger",
    }
    assert report.skipped == {"an entity without observations": 1}


def test_a_graph_as_the_mcp_server_answers_it_is_the_same_as_its_file(memory, tmp_path):
    lines = [
        json.loads(line) for line in foreign_stores.mcp_memory(tmp_path).read_text().splitlines()
    ]
    memory.privacy.import_foreign(tmp_path / "memory.jsonl")
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({
        "entities": [each for each in lines if each["type"] == "entity"],
        "relations": [each for each in lines if each["type"] == "relation"],
    }))  # fmt: skip
    report = memory.privacy.import_foreign(graph)
    assert (report.added, report.present) == (0, 3)


def test_a_note_of_basic_memory_is_kept_whole_and_its_statements_are_memories(memory, tmp_path):
    memory.privacy.import_foreign(foreign_stores.basic_memory(tmp_path))
    found = contents(memory)
    assert set(found) == {
        "Queue of jobs: Jobs live in a Postgres table (no broker to run)",
        "Queue of jobs: Rows are claimed with SKIP LOCKED",
        "Queue of jobs replaces Redis queue",
        "Queue of jobs was proposed by Ines Ortega (standup)",
    }
    decided = found["Queue of jobs: Jobs live in a Postgres table (no broker to run)"]
    assert decided.tags == ("basic-memory", "decision", "jobs", "queue")
    assert decided.seen_at == 1_775_109_600_000
    (note,) = memory.messages.stream(thread_id="basic-memory/decisions/queue")
    assert "We looked at three brokers." in note.raw_content
    assert note.id in {each.message_id for each in decided.evidence}


def test_of_claude_mem_only_this_project_comes_in(memory, tmp_path):
    report = memory.privacy.import_foreign(foreign_stores.claude_mem(tmp_path))
    found = contents(memory)
    decision = found["Locks live in Redis: The pooler drops sessions.\n- A lease lasts 20 seconds"]
    assert (decision.type, decision.files) == ("decision", ("src/lock.py",))
    assert (decision.session_id, decision.seen_at) == (SESSION, MAY_4)
    assert "A lock must outlive its job" in found
    said = list(memory.messages.stream(thread_id=f"claude-mem/{SESSION}"))
    assert [each.role for each in said] == ["user", "system", "system"]
    assert report.skipped == {"of another project, person or bank": 1}


def test_an_old_database_of_claude_mem_gives_its_prompts_and_observations(memory, tmp_path):
    path = foreign_stores.claude_mem(tmp_path, is_old=True)
    memory.privacy.import_foreign(path)
    assert set(contents(memory)) == {"Locks live in Redis"}
    (prompt,) = memory.messages.stream(thread_id=f"claude-mem/{SESSION}")
    assert (prompt.role, prompt.raw_content) == ("user", "Why do charges run twice?")


def test_prompts_of_a_session_that_has_its_transcript_here_are_not_told_twice(memory, tmp_path):
    memory.messages.add(thread_id=SESSION, role="user", content="Why do charges run twice?")
    report = memory.privacy.import_foreign(foreign_stores.claude_mem(tmp_path))
    assert report.skipped["said in a session that is here with its own transcript"] == 1
    roles = [each.role for each in memory.messages.stream(thread_id=f"claude-mem/{SESSION}")]
    assert roles == ["system", "system"]


def test_what_was_learned_about_another_project_does_not_come_in_unasked(place, tmp_path):
    other = place.open(embedder="off", project="else")
    path = foreign_stores.claude_mem_export(tmp_path)
    with pytest.raises(InvalidInputError, match=r"none is called else: harbor \(2\)"):
        other.privacy.import_foreign(path)
    assert other.privacy.import_foreign(path, only="harbor").added == 1


def test_a_store_of_many_projects_asks_which_one_is_meant(memory, place, tmp_path):
    other = place.open(embedder="off", project="else")
    path = foreign_stores.claude_mem(tmp_path)
    with pytest.raises(InvalidInputError, match=r"harbor \(5\), docs \(1\).*--only NAME"):
        other.privacy.import_foreign(path)
    assert other.privacy.import_foreign(path, only="docs").messages == 1
    with pytest.raises(InvalidInputError, match="has nothing of sea"):
        other.privacy.import_foreign(path, only="sea")


def test_a_bank_of_hindsight_comes_with_its_documents_and_causes(memory, tmp_path):
    report = memory.privacy.import_foreign(foreign_stores.hindsight(tmp_path))
    found = contents(memory)
    cause = "The timeout was raised to 90 seconds (caused by: The importer stalls on large files)"
    assert {cause, "Imports are the slowest step of a release"} <= set(found)
    assert found[cause].seen_at == 1_777_881_600_000
    assert {each.visibility for each in found.values()} == {"project"}
    (text,) = memory.messages.stream(thread_id="hindsight/standup/1")
    assert text.id in {each.message_id for each in found[cause].evidence}
    assert report.skipped == {"settings of the bank": 1}


def test_a_fact_that_zep_holds_for_invalid_is_stored_as_superseded(memory, tmp_path):
    report = memory.privacy.import_foreign(foreign_stores.zep(tmp_path))
    assert set(contents(memory)) == {"Ann lives in Bergen", "Ann: A sailor"}
    lyon = contents(memory, "deprecated")["Ann lives in Lyon"]
    assert (lyon.deprecated_because, lyon.deprecated_at) == ("superseded", 1_772_359_200_000)
    assert not lyon.needs_review or not lyon.is_active
    (said,) = memory.messages.stream(thread_id="zep/t1")
    assert (said.role, said.created_at) == ("user", 1_772_359_200_000)
    assert report.skipped == {"an entity without a summary": 1}


def test_a_fact_that_ended_since_the_last_import_goes_out_of_force(memory, tmp_path):
    path = foreign_stores.zep(tmp_path)
    memory.privacy.import_foreign(path)
    text = path.read_text().replace('"invalid_at": null', '"invalid_at": "2026-06-01"')
    path.write_text(text)
    assert memory.privacy.import_foreign(path).ended == 1
    assert "Ann lives in Bergen" in contents(memory, "deprecated")


def test_words_that_changed_there_take_the_place_of_the_older_ones(memory, tmp_path):
    path = foreign_stores.mem0(tmp_path)
    memory.privacy.import_foreign(path)
    path.write_text(path.read_text().replace("Prefers pnpm over npm", "Prefers bun over pnpm"))
    report = memory.privacy.import_foreign(path)
    assert (report.updated, report.added) == (1, 0)
    assert "Prefers bun over pnpm" in contents(memory)
    assert "Prefers pnpm over npm" in contents(memory, "deprecated")


def test_what_a_person_confirmed_here_is_not_overwritten_from_there(memory, tmp_path):
    path = foreign_stores.mem0(tmp_path)
    memory.privacy.import_foreign(path)
    memory.memories.verify(contents(memory)["Prefers pnpm over npm"].id, by="person")
    path.write_text(path.read_text().replace("Prefers pnpm over npm", "Prefers bun over pnpm"))
    report = memory.privacy.import_foreign(path)
    assert report.skipped == {"changed there, and confirmed or edited here: yours is kept": 1}
    assert "Prefers bun over pnpm" not in contents(memory)


def test_an_edited_or_rejected_memory_does_not_come_back(memory, tmp_path):
    path = foreign_stores.mcp_memory(tmp_path)
    memory.privacy.import_foreign(path)
    amounts, port, _ = sorted(contents(memory).values(), key=lambda each: each.content)
    memory.memories.update(amounts.id, content="Amounts are cents", by="person")
    memory.memories.reject(port.id, by="person")
    report = memory.privacy.import_foreign(path)
    assert (report.added, report.present) == (0, 3)


def test_secrets_are_redacted(memory, tmp_path):
    path = tmp_path / "memory.jsonl"
    path.write_text(json.dumps(
        {"type": "entity", "name": "ci", "entityType": "host", "observations": [f"uses {SECRET}"]}
    ))  # fmt: skip
    memory.privacy.import_foreign(path)
    (found,) = contents(memory, "all").values()
    assert SECRET not in str(found)
    assert memory.privacy.import_foreign(path).present == 1


BROKEN = {
    "mem0": ("mem0.json", '{"results": [{"id": "1", "memory": "fine", "hash": ""}, {"id": "2"}]}',
             "memory 2: it has no memory or data or text"),
    "mcp-memory": ("m.jsonl", '{"type": "entity", "name": "a", "entityType": "b", "observations":'
                   ' ["c"]}\n{"type": "entity", "observations"', "line 2: it is not JSON"),
    "zep": ("z.json", '{"edges": [{"uuid": "1", "fact": "fine", "valid_at": "soon"}]}',
            "edges 1: valid_at 'soon' is not a time"),
    "claude-mem": ("c.json", '{"exportedAtEpoch": 1, "totalObservations": 1, "observations": [3]}',
                   "observations 1: it should be an object, not a number"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_named_and_nothing_is_imported(memory, tmp_path, name):
    file, text, message = BROKEN[name]
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(InvalidInputError, match="Nothing was imported") as caught:
        memory.privacy.import_foreign(path)
    assert message in str(caught.value)
    assert not contents(memory, "all")


def test_a_damaged_archive_or_database_imports_nothing(memory, tmp_path):
    bank = foreign_stores.hindsight(tmp_path)
    with zipfile.ZipFile(bank, "a") as archive:
        archive.writestr("documents/000001.json", '{"id": "x", "facts": [{"text": 3}]}')
    with pytest.raises(InvalidInputError, match=r"documents/000001.json fact 1: text should be"):
        memory.privacy.import_foreign(bank)
    base = foreign_stores.claude_mem(tmp_path)
    with closing(sqlite3.connect(base)) as connection, connection:
        connection.execute("UPDATE observations SET facts = '[not json' WHERE id = 2")
    with pytest.raises(InvalidInputError, match=r"observations row 2, facts: it is not JSON"):
        memory.privacy.import_foreign(base)
    assert not contents(memory, "all")
    assert all_messages(memory) == []


def test_a_file_of_no_tool_is_refused_with_the_names_of_those_that_are_read(memory, tmp_path):
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match=r"--from mem0\|mcp-memory\|basic-memory"):
        memory.privacy.import_foreign(path)
    with pytest.raises(NotFoundError):
        memory.privacy.import_foreign(tmp_path / "none")


def test_a_message_or_fact_that_cannot_be_stored_does_not_stop_the_others(place, tmp_path):
    memory = place.open(embedder="off", project="harbor", max_message_bytes=10_000)
    path = tmp_path / "zep.json"
    episodes = [
        {"uuid": f"e{number}", "content": text, "role_type": "user", "thread_id": "t\x07",
         "user_id": "a\x07nn", "created_at": "2026-03-01"}
        for number, text in enumerate(("fine", "x" * 20_000, "also fine"))
    ]  # fmt: skip
    path.write_text(json.dumps({"episodes": episodes, "edges": [
        {"uuid": "f1", "fact": "Ann sails", "name": "A\x00B", "created_at": "2026-03-01"},
        {"uuid": "f2", "fact": "y" * 9_000, "created_at": "2026-03-01"},
    ]}))  # fmt: skip
    report = memory.privacy.import_foreign(path, "zep")
    assert report.records == parts_of(report) == 5
    assert (report.added, len(report.skipped)) == (1, 1)
    texts = [each.raw_content[:10] for each in all_messages(memory)]
    assert sorted(texts) == ["also fine", "fine", "y" * 10]


def test_nothing_is_put_beside_a_database_that_is_read(memory, tmp_path):
    path = foreign_stores.claude_mem(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    before = path.read_bytes()
    memory.privacy.import_foreign(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.glob("claude-mem*")] == ["claude-mem.db"]


def test_an_invented_format_works_by_its_one_object(memory, tmp_path, monkeypatch):
    def read(path: str) -> Any:
        for number, line in enumerate(Path(path).read_text().splitlines()[1:]):
            yield ForeignMessage(f"page-{number}", "book", line, kind="page")
            yield ForeignFact(f"line-{number}", line, MAY_4, messages=(f"page-{number}",))

    quill = ForeignFormat("quill", "Quill", lambda each: each.head.startswith(b"QUILL"), read)
    monkeypatch.setitem(FOREIGN, "quill", quill)
    path = tmp_path / "quill.txt"
    path.write_text("QUILL\nThe harbor closes at nine\n")
    assert recognize(str(path)) is quill
    assert memory.privacy.import_foreign(path).added == 1
    (found,) = contents(memory).values()
    assert (found.seen_at, found.tags) == (MAY_4, ("quill",))
    assert memory.privacy.import_foreign(path, "quill").present == 1


def test_an_import_that_was_killed_goes_on(memory, place, tmp_path, monkeypatch):
    passes = []

    def read(path: str) -> Any:
        passes.append(path)
        for number in range(60):
            if len(passes) == 2 and number == 40:
                raise KeyboardInterrupt
            yield ForeignMessage(f"m-{number}", "log", f"Ship {number} came in", role="user")
            yield ForeignFact(f"f-{number}", f"Berth {number} is {number * 7} feet long", MAY_4)

    monkeypatch.setitem(FOREIGN, "quill", ForeignFormat("quill", "Quill", bool, read))
    path = tmp_path / "quill.txt"
    path.write_text("")
    with pytest.raises(KeyboardInterrupt):
        memory.privacy.import_foreign(path, "quill")
    assert 0 < len(contents(memory)) < 60
    seen: list[tuple[int, int]] = []
    report = memory.privacy.import_foreign(
        path, "quill", progress=lambda done, total: seen.append((done, total))
    )
    assert report.records == parts_of(report) == 120
    assert (len(contents(memory)), len(all_messages(memory))) == (60, 60)
    assert seen[0] == (50, 120)
    whole = place.open(embedder="off", project="whole")
    whole.privacy.import_foreign(path, "quill")
    assert set(contents(whole)) == set(contents(memory))


def test_an_erased_fact_stays_away(memory, tmp_path):
    path = foreign_stores.mcp_memory(tmp_path)
    memory.privacy.import_foreign(path)
    gone = contents(memory)["billing service: Amounts are integers in cents"]
    memory.privacy.erase(memories=[gone.id])
    report = memory.privacy.import_foreign(path)
    assert report.skipped["the same words were erased before"] == 1
