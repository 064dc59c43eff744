"""Erasing: what goes is gone from every table, index and byte, and all else stays."""

from __future__ import annotations

import json
import os
import random
import zipfile

import pytest

from smara.errors import InvalidInputError, NotFoundError
from smara.privacy.tables import RECORDS
from smara.testing import HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.filled_tables import fill
from tests.faults import recount

pytestmark = EACH_DATABASE
CANARY = "zebulonquackenbush"


@pytest.fixture
def memory(place):
    return place.open(project="shop", embedding_model=HashEmbedder(), embedder="hash")


def say(memory, content, thread_id="t", **given):
    return memory.messages.add(thread_id=thread_id, role="user", content=content, **given)


def leaks(memory, word: str) -> list[str]:
    """Where a word is found: in a text of any table, or in the bytes of a file."""
    database = memory.internals.database
    found = []
    with database.read() as session:
        for table, columns in database.tables(session).items():
            for column in columns:
                if column.type == "string":
                    row = session.one(
                        f"SELECT count(*) FROM {table} WHERE lower({column.name}) LIKE ?",
                        (f"%{word}%",),
                    )
                    found += [f"{table}.{column.name}"] * bool(row and row[0])
    if database.kind == "sqlite":
        for end in ("", "-wal"):
            path = database.path + end
            if os.path.exists(path):
                with open(path, "rb") as file:
                    found += [path] * (word.encode() in file.read().lower())
    return found


def talk(memory):
    """A talk in which the canary was said, observed, remembered, told and embedded."""
    first = say(memory, f"My neighbor {CANARY} lives in the harbor and wants a refund.")
    say(memory, "Always retry the payment three times before giving up.")
    memory.observations.observe("t")
    found = memory.memories.add(
        f"{CANARY} is the customer with the refund",
        type="gotcha",
        evidence=[f"message:{first.id}"],
    )
    memory.embeddings.embed_pending()
    return first, found.memory


def test_erased_message_leaves_no_trace_and_no_gap(memory):
    first, remembered = talk(memory)
    assert leaks(memory, CANARY)
    receipt = memory.privacy.erase(messages=[first.id])
    assert receipt.is_clean, receipt.traces
    assert receipt.samples
    assert leaks(memory, CANARY) == []
    assert [each.raw_content for each in memory.messages.list(thread_id="t")] == [
        "[erased]",
        "Always retry the payment three times before giving up.",
    ]
    assert memory.memories.find(remembered.id) is None
    assert not memory.search(CANARY).hits
    assert memory.complete(CANARY[:4]) == []
    assert recount.problems(memory) == []
    assert memory.memories.problems() == []


@pytest.mark.parametrize("kind", ["threads", "messages", "tasks", "memories"])
def test_an_id_that_no_database_can_store_is_not_found(memory, kind):
    for name in ("\ud800", "a\x00"):
        with pytest.raises(NotFoundError, match="not found"):
            memory.privacy.plan_erase(**{kind: [name]})
    for name in ("person", "path"):
        assert not memory.privacy.plan_erase(**{name: "\ud800"}).chosen


def test_what_else_was_said_is_observed_again(memory):
    first, _ = talk(memory)
    memory.privacy.erase(messages=[first.id])
    assert not memory.search_observations("payment").hits
    assert memory.observations.observe("t").success
    assert memory.search_observations("payment").hits
    assert leaks(memory, CANARY) == []


def test_erased_thread_goes_with_all_that_was_made_of_it(memory):
    talk(memory)
    say(memory, "Another talk about harbors", "u")
    memory.working.put(f"# Page\n- {CANARY}", scope="thread", thread_id="t")
    plan = memory.privacy.plan_erase(threads=["t"])
    assert plan.chosen == {"threads": 1}
    assert plan.derived["messages"] == 2
    assert plan.derived["memories"] == 1
    assert plan.derived["working_memory"] == 1
    assert memory.privacy.erase(threads=["t"]).plan == plan
    assert leaks(memory, CANARY) == []
    assert [each.id for each in memory.threads.list()] == ["u"]
    assert recount.problems(memory) == []


def test_a_plan_changes_nothing(memory, tmp_path):
    talk(memory)
    memory.privacy.export(tmp_path / "a.zip")
    memory.privacy.plan_erase(threads=["t"])
    memory.privacy.plan_erase(is_project=True)
    memory.privacy.export(tmp_path / "b.zip")
    first, second = (
        json.loads(zipfile.ZipFile(tmp_path / name).read("manifest.json"))["files"]
        for name in ("a.zip", "b.zip")
    )
    assert first == second


def test_erased_memory_and_task_go_with_their_history(memory):
    found = memory.memories.remember(f"{CANARY} pays late", type="gotcha").memory
    memory.memories.update(found.id, content=f"{CANARY} always pays late", by="person")
    task = memory.tasks.add(f"Call {CANARY}", labels=["phone"])
    other = memory.tasks.add("Paint the door", depends_on=[task.id])
    memory.privacy.erase(memories=[found.short_id], tasks=[task.short_id])
    assert leaks(memory, CANARY) == []
    assert memory.tasks.get(other.id).dependencies == ()
    assert memory.tasks.totals().ready == 1
    assert recount.problems(memory) == []


def test_erased_person_is_gone_and_the_facts_of_others_stay(memory):
    memory.threads.add("hers", resource_id=CANARY)
    say(memory, "I like blue doors in my house", "hers")
    memory.memories.remember("Doors are painted twice", type="gotcha", actor=CANARY)
    task = memory.tasks.add("Paint the door", actor="bob")
    memory.tasks.update(task.id, priority=0, actor=CANARY)
    memory.privacy.erase(person=CANARY)
    assert leaks(memory, CANARY) == []
    assert memory.tasks.get(task.id).priority == 0
    assert not memory.memories.list(state="all").memories


def test_text_is_erased_wherever_it_stands(memory):
    say(memory, f"Hello {CANARY.upper()}, how are you?")
    say(memory, "Nothing to see here, move along please")
    memory.memories.remember(f"{CANARY} likes tea", type="preference")
    memory.working.put(f"# Page\n- {CANARY}", scope="resource", resource_id="default")
    task = memory.tasks.add("Tea", description=f"for {CANARY}")
    memory.privacy.erase(text=CANARY)
    assert leaks(memory, CANARY) == []
    assert memory.tasks.find(task.id) is None
    assert memory.threads.get("t").message_count == 2


def test_half_a_character_does_not_keep_a_message_from_being_erased(memory):
    words = "The halved \ud800 character of the basement door"
    say(memory, words)
    say(memory, "Another word.")
    memory.privacy.erase(text="\ud800 character")
    assert not leaks(memory, "basement")
    assert len(memory.search("another word")) == 1


def test_time_is_erased(memory, clock):
    say(memory, "An early bird catches the worm")
    clock.advance(86_400)
    between = clock.now_ms()
    clock.advance(86_400)
    say(memory, f"A late {CANARY} catches nothing")
    memory.memories.remember(f"{CANARY} sleeps late", type="gotcha")
    memory.privacy.erase(since=between)
    assert leaks(memory, CANARY) == []
    assert memory.search("early bird").hits


def test_project_is_erased_whole_and_others_stay(place, memory):
    other = place.open(project="bank", embedder="off")
    say(other, "The bank opens at nine")
    fill(memory)
    talk(memory)
    memory.privacy.erase(is_project=True)
    again = place.open(project="else", embedder="off")
    assert leaks(again, CANARY) == []
    assert sorted(each.id for each in again.projects.list()) == ["bank", "else"]
    database = again.internals.database
    with database.read() as session:
        for name, columns in database.tables(session).items():
            if any(each.name == "project_no" for each in columns):
                known = "SELECT no FROM projects"
                row = session.one(f"SELECT count(*) FROM {name} WHERE project_no NOT IN ({known})")
                assert row == (0,), name
    assert other.search("bank opens").hits
    assert recount.problems(again) == []


def test_rows_of_every_table_are_erased_by_their_text(memory):
    """A table that erase by text does not reach would keep the canary."""
    fill(memory)
    database = memory.internals.database
    with database.write() as session:
        columns = database.tables(session)
        for table in RECORDS:
            if table.name.startswith("commit"):
                continue
            free = [
                each.name
                for each in columns[table.name]
                if each.type == "string"
                and each.name in ("text", "content", "summary", "why", "detail", "message", "data",
                                  "error_message", "because", "body", "reason", "title", "label")
            ]  # fmt: skip
            for name in free:
                word = json.dumps({"a": CANARY}) if name == "data" else CANARY
                session.run(f"UPDATE {table.name} SET {name} = ? WHERE 1 = 1", (word,))
    assert leaks(memory, CANARY)
    memory.privacy.erase(text=CANARY)
    assert leaks(memory, CANARY) == []


def test_import_does_not_bring_back_what_was_erased(memory, tmp_path):
    first, remembered = talk(memory)
    say(memory, f"{CANARY} is in another thread", "u")
    memory.privacy.export(tmp_path / "a.zip")
    memory.privacy.erase(messages=[first.id], threads=["u"])
    memory.privacy.import_archive(tmp_path / "a.zip")
    assert leaks(memory, CANARY) == []
    again = memory.memories.add(remembered.content, type="gotcha", evidence=["src/pay.py:3"])
    assert again.memory is None
    assert "erased before" in " ".join(again.why)


def test_erased_conversation_is_not_read_again_but_goes_on(memory, clock):
    at = clock.now_ms()
    say(memory, f"{CANARY} said this", client_id="c1")
    clock.advance(60)
    memory.privacy.erase(threads=["t"])
    with pytest.raises(InvalidInputError, match="erased"):
        say(memory, f"{CANARY} said this", client_id="c1", created_at=at)
    clock.advance(60)
    assert say(memory, "A new beginning").seq == 1
    assert leaks(memory, CANARY) == []


def test_same_words_of_others_stay_and_are_named(memory):
    text = "The payment must be retried three times"
    first = say(memory, text)
    say(memory, text, "u")
    receipt = memory.privacy.erase(messages=[first.id])
    assert receipt.plan.elsewhere == {"messages": 1}
    assert receipt.is_clean
    assert memory.messages.list(thread_id="u")[0].raw_content == text


def test_act_is_recorded_without_what_it_was_about(memory):
    first, _ = talk(memory)
    receipt = memory.privacy.erase(messages=[first.id], text=CANARY)
    with memory.internals.database.read() as session:
        (row,) = session.all("SELECT id, target, counts, outcome FROM erasures")
    assert row[0] == receipt.id
    assert row[1] == "messages text"
    assert json.loads(row[2])["chosen"]["messages"] == 1
    assert row[3] == "clean"


def test_nothing_or_what_is_not_there_is_refused(memory):
    talk(memory)
    with pytest.raises(InvalidInputError):
        memory.privacy.erase()
    with pytest.raises(InvalidInputError):
        memory.privacy.erase(text="ab")
    for kind in ("messages", "threads", "memories", "tasks"):
        with pytest.raises(NotFoundError):
            memory.privacy.erase(**{kind: ["x"]})
    assert leaks(memory, CANARY)


@pytest.mark.parametrize("seed", range(2))
def test_canaries_go_in_any_order_and_the_rest_is_as_if_they_had_never_been(place, memory, seed):
    """1. 24 threads with and without canaries. 2. They are erased in random order, by thread,
    message or text. 3. The others answer as before.
    """
    chance = random.Random(seed)
    canaries = {}
    for number in range(24):
        say(memory, f"Plain words number {number} about gardens and rivers", f"t{number}")
        if number % 2:
            word = f"canary{chance.randrange(10**9)}x"
            canaries[f"t{number}"] = (word, say(memory, f"Secret {word} in here", f"t{number}"))
        memory.observations.observe(f"t{number}")
    order = list(canaries.items())
    chance.shuffle(order)
    for thread, (word, message) in order:
        target = chance.choice([{"threads": [thread]}, {"messages": [message.id]}, {"text": word}])
        assert memory.privacy.erase(**target).is_clean
    assert [leaks(memory, word) for word, _ in canaries.values()] == [[]] * len(canaries)
    for number in range(0, 24, 2):
        hits = memory.search(f"number {number} gardens", sources=["messages"]).hits
        assert any(f"number {number} " in hit.content for hit in hits)
    assert recount.problems(memory) == []


def test_what_was_learned_about_a_path_is_erased(memory):
    memory.memories.remember(f"{CANARY} lives here", type="gotcha", files=["src/pay/till.py"])
    memory.memories.remember("Another file", type="gotcha", files=["src/payment.py"])
    memory.privacy.erase(path="src/pay")
    assert leaks(memory, CANARY) == []
    assert [each.content for each in memory.memories.list()] == ["Another file"]


def test_everything_is_erased_in_all_projects(place, memory):
    say(place.open(project="bank", embedder="off"), f"{CANARY} has an account")
    talk(memory)
    plan = memory.privacy.plan_erase(is_everything=True)
    assert plan.chosen["messages"] == 3
    assert memory.privacy.erase(is_everything=True).is_clean
    again = place.open(project="else", embedder="off")
    assert leaks(again, CANARY) == []
    assert [each.id for each in again.projects.list()] == ["else"]
    assert recount.problems(again) == []
