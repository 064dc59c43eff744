"""Observational memory on the command line: observe, reflect, ask why, preview, and a worker that
can be stopped.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import smara as library
from smara.errors import BusyError, ModelUnavailableError
from smara.observations.models import CATEGORIES, PRIORITIES, STATES, CycleOutcome, Extractor
from smara.providers.models import Turn
from smara.providers.registry import create_provider
from smara.surfaces.cli.commands.observations import require_success
from smara.surfaces.cli.commands.worker import hold_instance
from smara.testing import ScriptedModel
from tests.surfaces.shell import DEADLINE_SECONDS, command, environment, on_terminal, plain, smara


@pytest.fixture
def observed(store: str) -> str:
    """The store, with the thread ``login`` observed."""
    assert smara("observe", "login").code == 0
    return store


def listed(*options: str) -> list[dict]:
    return smara("observations", "list", *options, "--json").data["observations"]


def an_id() -> str:
    return str(listed("--category", "request")[0]["id"])


# observe


def test_observe_says_how_many_observations_of_how_many_messages(store):
    said = smara("observe", "login", "--json").data
    assert (said["action"], said["success"], said["messages"]) == ("observe", True, 3)
    assert said["notes"] == len(listed()) > 0


def test_observing_twice_observes_nothing_twice(observed):
    before = listed()
    said = smara("observe", "login")
    assert (said.code, said.out) == (0, "No new messages to observe.\n")
    assert listed() == before


def test_buffered_observations_are_not_shown_until_they_are_activated(store):
    said = smara("observe", "login", "--buffer")
    assert said.out.endswith("They are buffered and shown once activated.\n")
    assert {each["state"] for each in listed()} == {"buffered"}
    assert (
        "observations"
        not in smara("context", "preview", "login", "--json").data["receipt"]["sectionTokens"]
    )
    smara("observe", "login")
    assert {each["state"] for each in listed()} == {"active"}


def test_mode_stays_with_the_observations(store):
    smara("observe", "login", "--mode", "testing")
    assert {each["mode"] for each in listed()} == {"testing"}


def test_observe_on_a_terminal_is_one_sentence(store):
    said = on_terminal("observe", "login")
    assert said.code == 0
    assert "observations from 3 messages." in plain(said.out)


# reflect


def test_reflect_without_need_says_how_to_insist(observed):
    said = smara("reflect", "login")
    assert (said.code, said.out) == (
        0,
        "Nothing to condense yet. --force condenses what there is.\n",
    )


def test_forced_reflection_is_a_generation_or_says_that_it_would_be_no_shorter(db):
    with library.open(db) as memory:
        memory.messages.add_many(
            thread_id="long",
            messages=[
                {"role": "user", "content": f"Please rename handle_{n}() in src/api.py."}
                for n in range(60)
            ],
        )
    smara("observe", "long")
    data = smara("reflect", "long", "--force", "--json").data
    assert data["action"] == "reflect"
    generation = smara("observations", "status", "long", "--json").data["generation"]
    assert generation == (1 if data["success"] else 0)
    assert data["success"] or data["code"] == "no_progress"


def test_reflection_made_ahead_waits_until_it_is_asked_for(db):
    with library.open(db) as memory:
        said = [
            f"Please look at part {n} of the shop, and then tell me about it." for n in range(60)
        ]
        memory.messages.add_many(
            thread_id="long", messages=[{"role": "user", "content": each} for each in said]
        )
    smara("observe", "long")
    made = smara("reflect", "long", "--force", "--buffer")
    assert made.out.endswith("They are buffered and shown once activated.\n")
    waiting = smara("observations", "status", "long", "--json").data
    assert (waiting["generation"], waiting["bufferedReflectionTokens"] > 0) == (0, True)
    assert (
        smara("reflect", "long").out
        == made.out.removesuffix(" They are buffered and shown once activated.\n") + "\n"
    )
    after = smara("observations", "status", "long", "--json").data
    assert (after["generation"], after["bufferedReflectionTokens"]) == (1, 0)
    assert after["observationTokens"] == waiting["bufferedReflectionTokens"]


# looking


def test_list_in_a_pipe_has_a_line_for_each_with_its_source(observed):
    rows = smara("observations", "list").rows
    assert len(rows) == len(listed())
    assert all(len(row) == 9 and row[5] == "login" for row in rows)
    assert any("Implement the login with Zod" in row[7] for row in rows)


def test_list_is_filtered_and_paged(observed):
    everything = [each["id"] for each in listed()]
    first = smara("observations", "list", "--limit", "1", "--json").data
    second = smara(
        "observations", "list", "--limit", "1", "--offset", str(first["nextOffset"]), "--json"
    ).data
    assert [first["observations"][0]["id"], second["observations"][0]["id"]] == everything[:2]
    assert listed("--thread", "deploy") == []
    assert sum(len(listed("--priority", each)) for each in PRIORITIES) == len(everything)
    assert sum(len(listed("--category", each)) for each in CATEGORIES) == len(everything)
    assert [len(listed("--state", each)) for each in STATES] == [0, len(everything), 0]


def test_list_on_a_terminal_gives_the_text_room_and_names_the_id(observed):
    seen = plain(on_terminal("observations", "list", columns=60).out)
    assert an_id() in seen
    assert "login:1" in seen
    assert max(map(len, seen.splitlines())) <= 80


def test_page_that_is_not_the_last_tells_of_the_next(observed):
    said = smara("observations", "list", "--limit", "1")
    assert said.err == "There are more: use --offset 1.\n"
    assert len(said.rows) == 1


def test_show_tells_all_that_is_known(observed):
    identifier = an_id()
    data = smara("observations", "show", identifier, "--json").data
    assert set(data) == {
        "id",
        "kind",
        "state",
        "generation",
        "threadId",
        "mode",
        "priority",
        "category",
        "text",
        "details",
        "files",
        "lines",
        "modeSpecific",
        "taint",
        "saidAt",
        "refersTo",
        "tokens",
        "firstSeq",
        "lastSeq",
        "method",
        "createdAt",
        "reflectedInto",
        "code",
        "warnings",
    }
    lines = dict(
        line.split("\t")[:2] for line in smara("observations", "show", identifier).out.splitlines()
    )
    assert (lines["observation"], lines["category"], lines["thread"]) == (
        identifier,
        "request",
        "login",
    )


def test_why_gives_the_words_behind_an_observation(observed):
    data = smara("observations", "why", an_id(), "--json").data
    assert [message["content"] for message in data["messages"]] == ["Implement the login with Zod"]
    assert data["nextOffset"] is None
    rows = smara("observations", "why", an_id()).rows
    assert [row[-1] for row in rows] == ["Implement the login with Zod"]
    assert "— user · login:1" in plain(on_terminal("observations", "why", an_id()).out)


def test_why_is_paged(db):
    with library.open(db, reflect_after_tokens=1) as memory:
        memory.messages.add_many(
            thread_id="t",
            messages=[
                {"role": "user", "content": f"Rename handle_{n}() in api.py."} for n in range(30)
            ],
        )
        memory.observations.observe("t")
    widest = max(listed(), key=lambda each: each["lastSeq"] - each["firstSeq"])
    data = smara("observations", "why", widest["id"], "--limit", "1", "--json").data
    assert [message["seq"] for message in data["messages"]] == [widest["firstSeq"]]
    assert data["nextOffset"] == (1 if widest["lastSeq"] > widest["firstSeq"] else None)


def test_status_tells_what_is_pending_and_what_is_active(store):
    before = smara("observations", "status", "login", "--json").data
    assert before["pendingTokens"] > 0 == before["observationTokens"]
    smara("observe", "login")
    after = smara("observations", "status", "login", "--json").data
    assert (after["pendingTokens"], after["observedTokens"]) == (0, before["pendingTokens"])
    assert dict(
        line.split("\t") for line in smara("observations", "status", "login").out.splitlines()
    )["generation"]
    assert "pending tokens" in plain(on_terminal("observations", "status", "login").out)


def test_failure_is_told_with_when_it_is_tried_again(store):
    model = ScriptedModel([ModelUnavailableError("The model is overloaded. Try again later.")])
    with library.open(store, chat_model=model) as memory:
        assert not memory.observations.observe("login").success
    data = smara("observations", "failures", "--json").data
    (failure,) = data["failures"]
    assert (failure["threadId"], failure["attempts"], failure["code"]) == (
        "login",
        1,
        "model_unavailable",
    )
    assert (failure["isDead"], failure["operation"], data["warned"]) == (False, "outage", [])
    (row,) = smara("observations", "failures").rows
    assert row[1:6] == ["outage", "login", "0", "1", "model_unavailable"]
    assert "model_unavailable: " in plain(on_terminal("observations", "failures").out)
    waiting = smara("observations", "status", "login", "--json").data["waiting"]
    assert (waiting["code"], waiting["attempts"]) == ("model_unavailable", 1)
    assert "The model is overloaded." in plain(on_terminal("observations", "status", "login").out)
    assert smara("status", "--json").data["observations"]["threadsWaiting"] == 1
    assert "1 thread waiting for the model" in plain(on_terminal("status").out)


def test_what_was_left_out_is_told_where_it_was_and_in_the_list_of_failures(store):
    mood = Extractor("mood", "How it goes.", {"type": "object"})
    with library.open(store, extractors=[mood]) as memory:
        assert memory.observations.observe("login").success
    told = "extractor mood: mood cannot be found without a model; it was left out."
    assert smara("observations", "show", an_id(), "--json").data["warnings"] == [told]
    assert told in " ".join(plain(on_terminal("observations", "show", an_id()).out).split())
    (warned,) = smara("observations", "failures", "--json").data["warned"]
    assert (warned["threadId"], warned["firstSeq"], warned["lastSeq"], warned["warnings"]) == (
        "login",
        1,
        3,
        [told],
    )
    (row,) = smara("observations", "failures").rows
    assert (row[1], row[2], row[-1]) == ("left out", "login", told)
    assert told in " ".join(plain(on_terminal("observations", "failures").out).split())


def test_totals_stand_in_the_status_of_the_project(observed):
    totals = smara("status", "--json").data["observations"]
    assert totals == {
        "total": len(listed()),
        "active": len(listed()),
        "generations": 0,
        "threadsWaiting": 0,
        "givenUp": 0,
    }
    assert (
        f"observations\t{len(listed())} ({len(listed())} active), 0 reflections\n"
        in smara("status").out
    )


# what is refused


@pytest.mark.parametrize(
    "call",
    [
        ["observe", "nope"],
        ["reflect", "nope"],
        ["observations", "status", "nope"],
        ["observations", "list", "--thread", "nope"],
        ["context", "preview", "nope"],
        ["context", "preview", "nope", "--memory", "window"],
    ],
)
def test_unknown_thread_is_not_found_and_says_where_to_look(store, call):
    said = smara(*call)
    assert said.code == 3
    assert "`smara threads list` shows what there is." in said.err


@pytest.mark.parametrize("call", ["show", "why"])
def test_unknown_observation_is_not_found_and_says_where_to_look(store, call):
    said = smara("observations", call, "nope")
    assert said.code == 3
    assert "`smara observations list` shows what there is." in said.err


@pytest.mark.parametrize(
    "call",
    [
        ["observe", "login", "--mode", "dancing"],
        ["observations", "list", "--state", "gone"],
        ["observations", "list", "--priority", "urgent"],
        ["worker", "--poll", "0"],
        ["context", "preview", "login", "--mode", "dancing"],
        ["context", "preview", "login", "--memory", "elephant"],
    ],
)
def test_what_cannot_be_is_wrong_usage(store, call):
    assert smara(*call).code == 2


def test_unknown_provider_is_answered_with_those_there_are(store):
    assert (
        "Available: observational, window"
        in smara("context", "preview", "login", "--memory", "elephant").err
    )


@pytest.mark.parametrize(
    ("setting", "value"), [("SMARA_OBSERVE_ENABLED", "false"), ("SMARA_OBSERVE_READ_ONLY", "true")]
)
@pytest.mark.parametrize("call", [["observe", "login"], ["reflect", "login"], ["worker", "--once"]])
def test_where_nothing_may_be_observed_the_setting_is_named(
    store, monkeypatch, call, setting, value
):
    monkeypatch.setenv(setting, value)
    said = smara(*call)
    assert said.code == 5
    assert setting in said.err


def test_thread_that_is_being_observed_is_busy(store):
    with library.open(store) as memory:
        place = memory.observations.place("login")
        lease = memory.internals.leases.acquire(
            f"observations:{memory._rooms.scope.project_no}:{place.lookup_key}", "somebody", 60
        )
        said = smara("observe", "login", "--json")
        assert lease is not None
    assert said.code == 7
    assert said.envelope["error"]["retryable"] is True


def test_refusal_leaves_with_the_error_it_came_from():
    with pytest.raises(ModelUnavailableError, match="2 messages observed before that"):
        require_success(
            CycleOutcome(
                "observe",
                False,
                2,
                notes=1,
                error="It is overloaded.",
                code="model_unavailable",
                is_retryable=True,
            )
        )
    with pytest.raises(BusyError, match="try again"):
        require_success(
            CycleOutcome("observe", False, error="Lost.", code="lease_lost", is_retryable=True)
        )


# what the agent gets


def test_preview_shows_sections_with_their_cost_around_the_messages(observed):
    smara("messages", "add", "--thread", "login", "--role", "user", "--content", "And the tests?")
    data = smara("context", "preview", "login", "--json").data
    names = [section["name"] for section in data["sections"]]
    assert names[:2] == ["instructions", "observations"]
    assert all(section["tokens"] > 0 for section in data["sections"])
    assert data["messages"][-1]["content"] == "And the tests?"
    assert data["receipt"]["observationIds"]
    assert data["next"] == {"buffers": False, "activates": False, "blocks": False}
    rows = smara("context", "preview", "login").rows
    kinds = [row[0] for row in rows]
    first, shown = kinds.index("message"), len(data["messages"])
    assert kinds[:first] == ["section"] * first
    assert kinds[first : first + shown] == ["message"] * shown
    assert rows[first + shown - 1] == ["message", "user", "4", "4", "And the tests?"]
    assert [row[1] for row in rows[first + shown :]][-1] == "time"
    assert "It is " in data["reminder"]
    assert "It is " not in data["system"]


def test_later_step_begins_with_the_same_words(observed):
    first, later = (
        smara("context", "preview", "login", "--step", step, "--json").data for step in "01"
    )
    assert (first["system"], first["messages"]) == (later["system"], later["messages"])


def test_preview_on_a_terminal_ends_with_the_sums(observed):
    seen = plain(on_terminal("context", "preview", "login").out)
    assert "— instructions · " in seen
    assert "<observations>" in seen
    assert seen.splitlines()[-1].endswith(" tokens.")


def test_preview_changes_nothing_whatever_is_due(store, monkeypatch):
    monkeypatch.setenv("SMARA_OBSERVE_AFTER_TOKENS", "10")
    data = smara("context", "preview", "login", "--json").data
    assert data["next"]["buffers"] is True
    assert data["next"]["blocks"] is True
    assert listed() == []


def test_preview_by_provider_is_what_it_would_recall_in_the_thread(observed, monkeypatch):
    window = smara("context", "preview", "login", "--memory", "window", "--json").data
    assert [message["role"] for message in window["messages"]][:2] == ["user", "assistant"]
    assert window["messages"][0]["content"] == "Implement the login with Zod"
    monkeypatch.setenv(
        "SMARA_OBSERVE_SCOPE", "resource"
    )  # the pool of all wakings, which the provider shows
    assert smara("observe", "login").code == 0
    told = smara("context", "preview", "login", "--memory", "observational", "--json").data
    assert told["messages"][0]["role"] == "system"
    assert "<observations>" in told["messages"][0]["content"]
    assert len(smara("threads", "list", "--json").data) == 2  # and no thread was begun for it


def test_resumed_provider_goes_on_where_it_was(db):
    with library.open(db) as memory:
        first = create_provider("window", memory)
        first.on_wake({"name": "ann"})
        first.save_turn(Turn("turn-1", "Name a colour", "Blue"))
        thread = memory.threads.list()[0].id
        again = create_provider("window", memory)
        again.resume(thread)  # type: ignore[attr-defined]
        again.save_turn(Turn("turn-2", "Another", "Green"))
        assert [turn.output for turn in again.get_recent_turns(5)] == ["Blue", "Green"]
        assert len(memory.threads.list()) == 1


# compacting


def test_compact_observes_what_it_compacts_and_leaves_the_kept_messages_pending(
    observed, monkeypatch
):
    monkeypatch.setenv("SMARA_COMPACT_EVERY_MESSAGES", "0")
    for n in range(12):
        smara(
            "messages",
            "add",
            "--thread",
            "deploy",
            "--role",
            "user",
            "--content",
            f"Please deploy build {n}.",
        )
    data = smara("compact", "--thread", "deploy", "--keep", "3", "--json").data
    assert (data["messagesCompacted"], data["messagesWhole"]) == (10, 3)
    assert (data["observations"]["success"], data["observations"]["messages"]) == (True, 10)
    assert len(listed("--thread", "deploy")) == data["observations"]["notes"] > 0
    assert smara("observations", "status", "deploy", "--json").data["pendingTokens"] > 0
    last = smara("compact", "--thread", "deploy").out.splitlines()[-1]
    assert last.startswith("Added ")
    assert last.endswith(" from 3 messages.")


def test_compact_where_nothing_may_be_observed_compacts_all_the_same(store, monkeypatch):
    monkeypatch.setenv("SMARA_OBSERVE_ENABLED", "false")
    said = smara("compact", "--thread", "login")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Compacted 3 messages; 0 kept in full.\n")


# the worker


@pytest.mark.usefixtures("by_folder")
def test_one_round_observes_what_has_been_silent_for_long(store):
    data = smara("worker", "--once", "--json").data
    assert {
        name: data[name]
        for name in ("rounds", "lookedAt", "observed", "reflected", "failed", "projects")
    } == {"rounds": 1, "lookedAt": 2, "observed": 2, "reflected": 0, "failed": 0, "projects": 1}
    assert smara("worker", "--once").out.startswith("0 threads due: 0 observed, 0 reflected")


def test_worker_serves_every_project_of_the_store_and_with_a_name_that_one_alone(
    store, monkeypatch
):
    for project in ("shop", "blog"):
        smara(
            "messages",
            "add",
            "--thread",
            "t",
            "--role",
            "user",
            "--content",
            "Fix src/a.py.",
            "--project",
            project,
        )
    monkeypatch.setenv("SMARA_OBSERVE_STALE_MINUTES", "0")
    assert smara("worker", "--once", "--project", "blog", "--json").data["observed"] == 1
    monkeypatch.setenv("SMARA_PROJECT", "blog")
    assert smara("worker", "--once", "--json").data["observed"] == 0
    data = smara("worker", "--once", "--all-projects", "--json").data
    assert (data["lookedAt"], data["observed"], data["projects"]) == (3, 3, 2), (
        "two threads of the store, one of shop"
    )
    assert smara("worker", "--all-projects", "--project", "shop").code == 2


@pytest.mark.usefixtures("by_folder")
def test_worker_of_one_project_and_one_of_all_may_run_beside_each_other(store):
    with held_worker(store, None), held_worker(store, "shop"):
        assert smara("worker").code == 7
        assert "all projects of this store" in smara("worker").err
        second = smara("worker", "--project", "shop")
        assert (second.code, "the project 'shop'" in second.err) == (7, True)
        assert (
            smara("worker", "--project", "blog", "--poll", "0.1", "--leave-after", "0.001").code
            == 0
        )


def test_store_in_a_file_has_one_worker_and_says_so_if_asked_for_a_fleet(store):
    answer = smara("worker", "--fleet", "2")
    assert answer.code == 2
    assert "`smara worker` serves with one process" in answer.err
    assert smara("worker", "--fleet", "2", "--project", "shop").code == 2
    assert smara("worker", "--fleet", "0").code == 2


@contextmanager
def held_worker(store: str, project: str | None) -> Iterator[None]:
    """The place of a worker, held by this process."""
    with (
        library.open(store, project=project) as memory,
        hold_instance(memory, "worker", threading.Event(), project=project),
    ):
        yield


def test_worker_leaves_by_itself_when_there_is_nothing_to_do(store):
    said = smara("worker", "--poll", "0.1", "--leave-after", "0.001")
    assert said.code == 0
    assert said.out.startswith("2 threads due: 2 observed, 0 reflected")
    assert said.out.splitlines()[-1].startswith("Stopped after ")
    assert (
        smara("worker", "--poll", "0.1", "--leave-after", "0.001", "--json").data["observed"] == 0
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_the_worker_and_its_place_is_free_again(store, how):
    """1. A worker starts and observes. 2. A second one is told so. 3. The first is stopped, and
    leaves with 0.
    """
    process = subprocess.Popen(
        command("worker", "--poll", "0.2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"2 threads due: 2 observed, 0 reflected")
        second = smara("worker")
        assert second.code == 7
        assert f":{process.pid}" in second.err
        assert smara("worker", "--once").code == 0  # a single round may run beside it
        os.kill(process.pid, how)
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, b"smara: stopping after this round.\n")
    assert out.startswith(b"Stopped after ")
    assert smara("worker", "--poll", "0.1", "--leave-after", "0.001").code == 0


def test_worker_on_a_terminal_says_what_a_round_did(store):
    seen = plain(on_terminal("worker", "--once").out)
    assert seen.startswith("2 threads due: 2 observed, 0 reflected")
