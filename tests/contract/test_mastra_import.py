"""A store of Mastra comes in whole, on both databases, from both databases; twice is the same as
once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import smara
from smara.adapters.mastra import import_mastra
from smara.errors import DatabaseError, InvalidInputError, NotFoundError
from tests import mastra_stores, stores


@pytest.fixture(params=stores.BOTH)
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Any) -> Iterator[smara.Memory]:
    """An empty memory in each database."""
    with (
        stores.empty_store(request.param, tmp_path) as address,
        smara.open(
            address, clock=clock, embedder="off", durability="normal", token_model="estimate"
        ) as opened,
    ):
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return mastra_stores.new_file(tmp_path / "mastra.db")


def everything(memory: smara.Memory) -> Any:
    threads = sorted(memory.threads.list(), key=lambda each: each.id)
    said = {each.id: list(memory.messages.stream(thread_id=each.id)) for each in threads}
    return (
        threads,
        said,
        memory.working.find("resource", "ann"),
        memory.working.find("thread", None, "thread-old"),
    )


def test_threads_messages_pages_and_observations_come_in(memory, store):
    report = import_mastra(memory, store)
    assert (report.threads, report.messages, report.stored, report.repeated, report.refused) == (
        4,
        8,
        7,
        0,
        [],
    )
    assert (report.pages, report.observations, report.problems) == (2, 3, [])
    assert sum(report.left_out.values()) == 1
    thread = memory.threads.get("thread-old")
    assert (thread.title, thread.resource_id, thread.created_at) == (
        "Retries of the webhook",
        "ann",
        1767603600000,
    )
    assert (thread.current_task, thread.suggested_response) == (
        "Primary: retry the webhook",
        "Run the tests again.",
    )
    assert memory.working.get("resource", "ann").content.startswith("# Profile")
    assert memory.working.get("thread", None, "thread-old").content.startswith("# Held")


def test_a_message_keeps_its_parts_and_times_and_loses_its_secrets(memory, store):
    import_mastra(memory, store)
    first, second, third, fourth = memory.messages.list(thread_id="thread-old")
    assert (first.role, first.created_at, first.client_id) == ("user", 1767603601000, "m1")
    assert "ghp_0123456789" not in first.raw_content
    assert [part.type for part in first.parts] == ["text", "file"]
    assert first.parts[1].size_bytes == 2
    kinds = [(part.type, part.name, part.is_error) for part in second.parts]
    assert kinds == [
        ("reasoning", None, False),
        ("tool_call", "shell", False),
        ("tool_result", "shell", False),
        ("tool_call", "fetch_page", False),
        ("tool_result", "fetch_page", True),
        ("text", None, False),
        ("file", "On retries", False),
    ]
    assert second.parts[1].arguments == {"command": "npm test"}
    assert "42 passing" in second.parts[2].text
    about = second.metadata["mastra"]
    assert about["partTimes"] == [1767603605500]
    assert about["skipped"] == {"step-start": 1, "data-om-observation-end": 1}
    assert (third.raw_content, third.role) == ("An answer of version 1, plain text.", "assistant")
    assert (fourth.role, fourth.parts[0].type, fourth.parts[0].text) == (
        "tool",
        "tool_result",
        "src/webhook.ts:12",
    )


def test_what_was_observed_is_kept_apart_and_can_be_found(memory, store):
    import_mastra(memory, store)
    kept = memory.threads.get("mastra-observations:thread:thread-old")
    assert (kept.kind, kept.parent_id, kept.resource_id) == ("compaction", "thread-old", "ann")
    active, buffered = memory.messages.list(thread_id=kept.id)
    assert (active.metadata["kind"], active.metadata["taint"]) == ("observations", ["imported"])
    assert active.raw_content.startswith("Date: Jan 5, 2026\n* 🔴 (09:00)")
    assert buffered.metadata["kind"] == "buffered"
    (reflected,) = memory.messages.list(thread_id="mastra-observations:resource:ann")
    assert reflected.metadata["kind"] == "reflection"
    assert memory.search("small commits webhooks").hits


def test_importing_again_changes_nothing(memory, store):
    import_mastra(memory, store)
    before = everything(memory)
    report = import_mastra(memory, store)
    assert report.is_nothing_new
    assert (report.stored, report.repeated, report.pages_same) == (0, 7, 2)
    assert everything(memory) == before


def test_a_dry_run_says_what_would_come_and_stores_nothing(memory, store):
    report = import_mastra(memory, store, is_dry_run=True)
    assert (report.stored, report.pages, report.observations) == (7, 2, 3)
    assert memory.threads.list() == []
    import_mastra(memory, store)
    assert import_mastra(memory, store, is_dry_run=True).is_nothing_new


def test_what_a_message_has_gained_since_becomes_one_of_its_own(memory, store):
    import_mastra(memory, store)
    grown = {
        "format": 2,
        "parts": [
            {"type": "text", "text": "Three times."},
            {
                "type": "tool-invocation",
                "toolInvocation": {
                    "state": "result",
                    "toolCallId": "call-3",
                    "toolName": "shell",
                    "args": {"command": "git log"},
                    "result": "abc Retry three times",
                },
            },
            {"type": "text", "text": "The log says so, too."},
        ],
    }
    mastra_stores.change(
        store, "UPDATE mastra_messages SET content = ? WHERE id = 'm6'", (json.dumps(grown),)
    )
    report = import_mastra(memory, store)
    assert (report.stored, report.grown) == (0, 1)
    *_, held, piece = memory.messages.list(thread_id="thread-new")
    assert [part.type for part in held.parts] == ["text", "tool_call"]
    assert [(part.type, part.text) for part in piece.parts] == [
        ("tool_result", "abc Retry three times"),
        ("text", "The log says so, too."),
    ]
    assert piece.metadata["continues"] == held.id
    assert import_mastra(memory, store).is_nothing_new


def test_new_lines_of_observations_are_added_below_their_date(memory, store):
    import_mastra(memory, store)
    mastra_stores.change(
        store,
        "UPDATE mastra_observational_memory SET activeObservations = activeObservations || "
        "char(10) || ?"
        " WHERE id = 'om-1'",
        ("* 🔴 (09:20) User wants five retries",),
    )
    assert import_mastra(memory, store).observations == 1
    *_, newest = memory.messages.list(thread_id="mastra-observations:thread:thread-old")
    assert newest.raw_content == "Date: Jan 5, 2026\n* 🔴 (09:20) User wants five retries"
    assert import_mastra(memory, store).is_nothing_new


def test_a_page_that_was_changed_here_is_left_as_it_is(memory, store):
    import_mastra(memory, store)
    memory.working.put(
        "# Profile\n- Name: Ann B.", scope="resource", resource_id="ann", actor="ann"
    )
    mastra_stores.change(
        store, "UPDATE mastra_resources SET workingMemory = 'other' WHERE id = 'ann'"
    )
    report = import_mastra(memory, store)
    assert (report.pages, report.pages_kept) == (0, 1)
    assert "Ann B." in memory.working.get("resource", "ann").content


def test_a_page_by_a_schema_stays_an_object(memory, store):
    page = json.dumps(
        {
            "name": "Ann",
            "likes": ["small commits"],
            "token": "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
        }
    )
    mastra_stores.change(
        store, "UPDATE mastra_resources SET workingMemory = ? WHERE id = 'ann'", (page,)
    )
    assert import_mastra(memory, store, is_dry_run=True).pages == 2
    assert import_mastra(memory, store).pages == 2
    held = memory.working.get("resource", "ann")
    assert (held.format, held.value["likes"]) == ("json", ["small commits"])
    assert "ghp_" not in held.content
    for is_dry_run in (True, False):
        assert import_mastra(memory, store, is_dry_run=is_dry_run).is_nothing_new


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_file_and_its_folder_stay_as_they_are(memory, tmp_path, mode):
    folder = tmp_path / "app"
    folder.mkdir()
    path = mastra_stores.new_file(folder / "mastra.db", mode=mode)
    before = (
        hashlib.sha256(path.read_bytes()).hexdigest(),
        sorted(folder.iterdir()),
        path.stat().st_mtime_ns,
    )
    assert import_mastra(memory, path).stored == 7
    assert (
        hashlib.sha256(path.read_bytes()).hexdigest(),
        sorted(folder.iterdir()),
        path.stat().st_mtime_ns,
    ) == before


def test_a_store_that_an_app_has_open_is_read_with_what_it_wrote_last(memory, tmp_path):
    path = mastra_stores.new_file(tmp_path / "live.db", mode="wal")
    app = apsw.Connection(str(path))
    try:
        app.execute("UPDATE mastra_threads SET title = 'written just now' WHERE id = 'thread-new'")
        assert import_mastra(memory, path).stored == 7
        assert memory.threads.get("thread-new").title == "written just now"
        app.execute("UPDATE mastra_threads SET title = 'and goes on' WHERE id = 'thread-new'")
    finally:
        app.close()


@pytest.mark.postgres
@pytest.mark.parametrize("is_named", [True, False])
def test_a_store_in_postgres_comes_in_the_same_also_when_its_schema_is_not_named(
    memory, postgres_url, is_named
):
    mastra_stores.new_schema(postgres_url)
    url = postgres_url if is_named else postgres_url.partition("&schema=")[0]
    report = import_mastra(memory, url)
    assert (report.threads, report.stored, report.pages, report.observations) == (4, 7, 2, 3)
    assert memory.messages.list(thread_id="thread-old")[0].created_at == 1767603601000
    assert import_mastra(memory, url).is_nothing_new


@pytest.mark.postgres
def test_a_password_is_told_to_nobody(memory, postgres_url):
    with pytest.raises(DatabaseError) as raised:
        import_mastra(memory, "postgresql://ann:hunter22secret@127.0.0.1:9/app")
    assert "hunter22secret" not in str(raised.value)


def test_columns_of_other_versions_are_read_and_unknown_ones_left_alone(memory, tmp_path):
    path = tmp_path / "other.db"
    mastra_stores.change(
        path, "CREATE TABLE mastra_messages (id, threadId, content BLOB, role, created_at, novel)"
    )
    mastra_stores.change(
        path,
        "INSERT INTO mastra_messages VALUES ('a', 't', jsonb(?), 'user', 1767603600000, x'00ff')",
        (json.dumps({"format": 2, "parts": [{"type": "text", "text": "kept in binary"}]}),),
    )
    mastra_stores.change(
        path, "INSERT INTO mastra_messages VALUES ('b', NULL, 'lost', 'user', 'never', NULL)"
    )
    report = import_mastra(memory, path)
    assert (report.stored, report.messages, dict(report.left_out)) == (
        1,
        2,
        {"it belongs to no thread": 1},
    )
    (message,) = memory.messages.list(thread_id="t")
    assert (message.raw_content, message.created_at) == ("kept in binary", 1767603600000)
    assert report.problems == ["There is no table mastra_threads; what would be in it is left out."]


def test_what_is_no_store_of_mastra_is_refused_with_what_to_do(memory, tmp_path):
    (tmp_path / "page.db").write_text(
        "# not a database at all, but long enough to be looked at\n" * 10
    )
    with pytest.raises(InvalidInputError, match="no SQLite or libSQL database"):
        import_mastra(memory, tmp_path / "page.db")
    mastra_stores.change(tmp_path / "shop.db", "CREATE TABLE goods (id)")
    with pytest.raises(InvalidInputError, match="no tables of Mastra"):
        import_mastra(memory, tmp_path / "shop.db")
    with pytest.raises(NotFoundError, match="no file"):
        import_mastra(memory, tmp_path / "nowhere.db")
    with pytest.raises(InvalidInputError, match="turso db export"):
        import_mastra(memory, "libsql://app.turso.io")
