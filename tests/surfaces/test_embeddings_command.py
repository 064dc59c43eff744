"""``smara embeddings``: how they stand, making them, changing the model, from the command line."""

from __future__ import annotations

import pytest

import smara as library
from smara.models.embedders.offline import OfflineEmbedder
from smara.testing import HashEmbedder
from tests.surfaces.shell import smara

OFFLINE = OfflineEmbedder.model_id


@pytest.fixture
def said(db: str) -> str:
    """A store with three messages that have no vectors yet."""
    with library.open(db) as memory:
        for text in ("The cat sleeps on the sofa", "We deploy with docker", "Lunch is at noon"):
            memory.messages.add(thread_id="t", role="user", content=text)
    return db


def test_status_says_what_is_missing_and_run_makes_it(said: str) -> None:
    before = smara("embeddings", "status", "--json").data
    assert (before["embedder"], before["model"], before["answering"]) == ("offline", OFFLINE, None)
    assert "smara embeddings run" in before["note"]
    made = smara("embeddings", "run", "--json").data
    assert (made["embedded"], made["waiting"], made["stopped"], made["model"]) == (
        3,
        0,
        "done",
        OFFLINE,
    )
    after = smara("embeddings", "status", "--json").data
    assert after["answering"] == OFFLINE
    [space] = after["spaces"]
    assert (space["state"], space["vectors"]["message"], space["waiting"], space["failures"]) == (
        "ready",
        3,
        0,
        [],
    )


def test_people_get_a_sentence_and_a_table(said: str) -> None:
    assert smara("embeddings", "run", "--limit", "2").out == (
        f"Created 2 vectors of {OFFLINE}.\nAt least 1 still missing: the limit is reached.\n"
    )
    assert smara("embeddings", "run").out == f"Created 1 vector of {OFFLINE}.\n"
    lines = smara("embeddings", "status").out.splitlines()
    assert lines[0] == f"embedder\toffline ({OFFLINE})"
    assert lines[-1].split("\t") == [OFFLINE, "ready", "256", "3", "0", "0"]


def test_a_search_uses_what_was_made(said: str) -> None:
    smara("embeddings", "run")
    [first, *_] = smara("search", "kittens that nap", "--json").data["results"]
    assert first["content"] == "The cat sleeps on the sofa"


def test_a_switch_fills_the_new_space_and_keeps_the_old(said: str) -> None:
    with library.open(said, embedding_model=HashEmbedder(), embedder="onnx:/elsewhere") as memory:
        memory.embeddings.embed_pending()
    made = smara("embeddings", "switch", "offline", "--json").data
    assert (made["model"], made["embedded"], made["stopped"]) == (OFFLINE, 3, "done")
    assert {each["model"] for each in smara("embeddings", "status", "--json").data["spaces"]} == {
        OFFLINE,
        "hash-64",
    }


def test_a_switch_can_be_left_to_others(said: str) -> None:
    assert smara("embeddings", "switch", "offline", "--later", "--json").data["embedded"] == 0
    assert smara("embeddings", "run", "--json").data["embedded"] == 3


def test_what_cannot_be_switched_to_is_refused(said: str) -> None:
    assert smara("embeddings", "switch", "off").code == 2
    assert smara("embeddings", "switch", "abacus").code == 5
    assert smara("embeddings", "status", "--json").data["spaces"] == []


def test_dropping_says_how_many_are_gone(said: str) -> None:
    smara("embeddings", "run")
    assert smara("embeddings", "drop", OFFLINE).out == f"Deleted 3 vectors of {OFFLINE}.\n"
    assert smara("embeddings", "drop", OFFLINE).code == 3


def test_an_embedder_that_is_off_says_so(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARA_EMBEDDER", "off")
    assert smara("embeddings", "status", "--json").data["note"] == "not used: the embedder is off"
    assert smara("embeddings", "run", "--json").data["stopped"] == "off"


def test_refused_records_are_listed_and_tried_again_when_asked_for(said: str) -> None:
    with library.open(said) as memory:
        memory.embeddings.embed_pending()
        with memory._rooms.database.write() as session:
            session.run(
                "INSERT INTO embedding_failures (project_no, space_no, kind, no, code, message, "
                "failed_at)"
                " VALUES (1, 1, 1, 2, 'model_refused', 'I will not read that.', 5)"
            )
    assert "message 2 has no vector: I will not read that." in smara("embeddings", "status").out
    assert smara("embeddings", "run", "--retry", "--json").data["embedded"] == 1
    assert smara("embeddings", "status", "--json").data["spaces"][0]["failures"] == []


def test_a_worker_makes_vectors_too(said: str) -> None:
    assert smara("worker", "--once", "--json").data["embedded"] == 3


def test_the_doctor_looks_at_vectors_once_there_are_some(said: str) -> None:
    assert "vectors" not in [row[1] for row in smara("doctor").rows]
    smara("embeddings", "run")
    with library.open(said) as memory, memory._rooms.database.write() as session:
        session.run("DELETE FROM vectors")
        session.run("DELETE FROM embedding_queue")
    assert smara("doctor").code == 8
    assert smara("doctor", "--fix").code == 0
    assert smara("embeddings", "run", "--json").data["embedded"] == 3
    assert smara("doctor").code == 0
