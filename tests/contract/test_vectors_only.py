"""A project that keeps vectors stores no words of a conversation, and finds and shows them."""

from __future__ import annotations

import json
import random
import sys
import time
import zipfile
from pathlib import Path

import pytest

import smara
from smara.adapters.importer import Importer
from smara.adapters.replay import Learner
from smara.config import config_path
from smara.errors import InvalidInputError
from smara.testing import HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.test_erased_bytes import files_with
from tests.stores import files_of
from tests.transcript_texts import (
    ANSWER,
    CJK,
    COMMAND,
    PROMPT,
    THANKS,
    holding,
    texts_of,
    transcript,
    windows,
)
from tests.unit.adapters.foreign import ONE_OF_EACH


def key_path() -> Path:
    return config_path().with_name("terms.key")


pytestmark = EACH_DATABASE
_began = 0.0
QUERIES = {
    "zymurgy harvest": PROMPT,
    "quokka_valve": ANSWER,
    "星期三": CJK,
    "茶": CJK,
    "pressure 37": COMMAND,
    "neighbours marmalade": THANKS,
}


@pytest.fixture
def unique():
    """Words that no other test has: a server's files are shared by all of them."""
    return " ".join("".join(random.choices("bcdfghjklmnpqrstvwxz", k=9)) for _ in range(8))


@pytest.fixture
def path(tmp_path, unique):
    return transcript(tmp_path / "claude" / "kettle.jsonl", more=[f"Rare words: {unique}"])


@pytest.fixture(autouse=True)
def _own_key(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[__name__], "_began", time.time() - 1)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def opened(place):
    """Opens the project; it keeps vectors unless told otherwise."""

    def open_it(**settings):
        given = {"keep": "vectors", "embedding_model": HashEmbedder(), "embedder": "hash"}
        return place.open(project="shop", **(given | settings))

    return open_it


def bring(memory, path) -> int:
    return Importer(memory, learner=Learner(memory)).import_file(path).stored


def contents(memory, query: str) -> list[str]:
    """Return the texts that a query finds, those with its words first.

    The vectors of these tests are hashes: by meaning anything may come first.
    """
    hits = memory.search(query, sources=("messages",), min_score=0).hits
    spoken = [hit for hit in hits if any(reason.startswith("matches") for reason in hit.why)]
    return [hit.content for hit in (*spoken, *(hit for hit in hits if hit not in spoken))]


def finds(memory) -> dict[str, bool]:
    return {
        query: any(text in content for content in contents(memory, query)[:1])
        for query, text in QUERIES.items()
    }


def left_in_files(memory, texts, *, has_log: bool = True) -> list[bytes]:
    """Return the pieces of texts that are in the store's files, with the log of a server.

    That log is out of reach of an erase: what was stored once stays there for a while.
    """
    database = memory.internals.database
    if database.kind == "postgres":
        texts = [text.partition("words: ")[2] for text in texts]
    pieces = windows(texts)
    assert pieces
    paths = files_of(database, log_since=_began if has_log else None)
    return [piece for _, piece in holding(paths, pieces)]


def test_no_piece_of_a_message_is_in_the_files_and_words_and_meaning_find_it(opened, path):
    memory = opened()
    assert bring(memory, path) == 7
    assert left_in_files(memory, texts_of(path)) == []
    assert finds(memory) == dict.fromkeys(QUERIES, True)
    near = memory.search(PROMPT[:40] + " in other words", sources=("messages",), min_score=0)
    assert "close in meaning" in " ".join(why for hit in near.hits for why in hit.why) or near.hits
    thread = memory.threads.get("kettle")
    assert (thread.title, memory.complete("zymu")) == (None, [])
    texts = [each.raw_content for each in memory.messages.list(thread_id="kettle")]
    assert texts == texts_of(path)
    assert memory.messages.list(thread_id="kettle")[2].parts[0].arguments == {"command": COMMAND}


def test_detector_sees_the_same_session_where_text_is_kept(opened, path):
    memory = opened(keep="text")
    bring(memory, path)
    assert left_in_files(memory, texts_of(path))


def test_nothing_is_learned_and_what_a_worker_does_leaves_no_words(opened, path):
    memory = opened(models_enabled=False)
    bring(memory, path)
    memory.decisions.update()
    memory.behavior.run_due()
    for _ in memory.worker.steps():
        pass
    memory.observations.observe("kettle")
    with pytest.raises(InvalidInputError, match="no summaries"):
        memory.compact("kettle")
    assert memory.status()["observations"]["total"] == 0
    assert [*memory.memories.list()] == []
    assert left_in_files(memory, texts_of(path)) == []


def test_importing_twice_stores_nothing_twice(opened, path):
    memory = opened()
    assert (bring(memory, path), bring(memory, path)) == (7, 0)
    more = [*texts_of(path)[-1:], "And one more thing about the turnips in the cellar."]
    transcript(path, more=more)
    assert bring(memory, path) == 1
    assert "turnips" in contents(memory, "turnips")[0]


def test_another_process_keeps_vectors_too_without_the_setting(opened, path, tmp_path):
    opened().transcripts.keep("vectors")
    memory = opened(keep="text")
    assert memory.settings.keep == "vectors"
    bring(memory, path)
    assert left_in_files(memory, texts_of(path)) == []


def test_other_projects_of_the_store_keep_text(opened, path):
    memory = opened(keep="text")
    memory.transcripts.keep("vectors")
    other = opened(keep="text").in_project("other")
    assert (other.settings.keep, other.settings.observe_enabled) == ("text", True)
    bring(other, path)
    assert other.transcripts.status().texts == 7
    assert opened(keep="text").with_settings(resource="ann").in_project("other").settings.keep == (
        "text"
    )


def test_words_that_no_transcript_has_are_refused_with_what_to_do(opened, unique):
    memory = opened()
    text = f"Rare words: {unique}"
    with pytest.raises(InvalidInputError, match="keeps vectors"):
        memory.messages.add(thread_id="t", role="user", content=text)
    with pytest.raises(InvalidInputError, match="smara remember"):
        memory.memories.add(text, type="gotcha")
    assert memory.memories.remember("Open at nine", type="gotcha").memory is not None
    assert left_in_files(memory, [text]) == []


def test_agent_framework_keeps_nothing_there(opened):
    frameworks = opened().frameworks
    for door in (lambda: frameworks.items("x"), lambda: frameworks.states("x")):
        with pytest.raises(InvalidInputError, match="keeps vectors"):
            door()


def test_transcript_that_is_gone_is_named(opened, path):
    memory = opened()
    bring(memory, path)
    path.unlink()
    memory = opened()
    (first, *_) = contents(memory, "zymurgy harvest")
    assert str(path) in first
    assert "not in the store" in first
    assert "is gone" in first
    assert memory.transcripts.status().unreadable == 7


def test_transcript_that_was_changed_shows_no_other_text(opened, path):
    memory = opened()
    bring(memory, path)
    path.write_text(path.read_text().replace("zymurgy", "brewing"), encoding="utf-8")
    memory = opened()
    (first, *_) = contents(memory, "zymurgy harvest")
    assert "no longer has it" in first
    assert "brewing" not in first
    assert contents(memory, "marmalade")[0] == THANKS


def test_lines_that_moved_are_found_again(opened, path):
    memory = opened()
    bring(memory, path)
    head = json.dumps({"type": "summary", "summary": "x", "leafUuid": "y"}) + "\n"
    path.write_text(head * 30 + path.read_text(), encoding="utf-8")
    assert finds(opened()) == dict.fromkeys(QUERIES, True)


def test_lost_key_is_told_meaning_still_finds_and_a_new_key_hashes_again(opened, path):
    memory = opened()
    bring(memory, path)
    key_path().unlink()
    memory = opened()
    answer = memory.search("zymurgy harvest", sources=("messages",), min_score=0)
    assert any("key" in each and str(key_path()) in each for each in answer.warnings)
    assert not any("matches" in why for hit in answer.hits for why in hit.why)
    assert answer.hits
    assert memory.transcripts.status().lost == 7
    memory.transcripts.keep("vectors")
    memory = opened()
    report = memory.transcripts.withhold(())
    assert (report.hashed_again, report.receipt.is_clean) == (7, True)
    assert memory.transcripts.status().lost == 0
    assert finds(opened()) == dict.fromkeys(QUERIES, True)


def test_key_is_private_and_not_in_the_store(opened, path):
    memory = opened()
    bring(memory, path)
    key = key_path()
    assert key.stat().st_mode & 0o777 == 0o600
    assert files_with(memory, key.read_bytes().strip()) == []


def test_index_is_made_again_from_the_store_alone(opened, path):
    memory = opened()
    bring(memory, path)
    path.unlink()
    memory.internals.index.rebuild()
    assert memory.search("zymurgy harvest", min_score=0).hits[0].why[0].startswith("matches")
    assert memory.complete("zymu") == []


@pytest.mark.parametrize("name", sorted(ONE_OF_EACH))
def test_transcripts_of_every_host_are_read_again_as_they_were_stored(opened, name):
    plain = opened(keep="text")
    texts = opened().in_project("hidden")
    for memory in (plain, texts):
        Importer(memory).import_file(ONE_OF_EACH[name])
    for thread in plain.threads.list():
        expected = [(m.raw_content, m.parts) for m in plain.messages.list(thread_id=thread.id)]
        again = smara.Memory(texts.internals.sibling(texts.internals.scope, texts.internals.given))
        shown = [(m.raw_content, m.parts) for m in again.messages.list(thread_id=thread.id)]
        assert [each[0] for each in shown] == [each[0] for each in expected]


def test_stored_session_is_converted_with_all_that_was_made_of_it(opened, path, tmp_path):
    """1. A session is stored with text and learned from. 2. The dry run changes nothing. 3. What a
    transcript has goes, with all that was derived; what no transcript has stays, and is counted.
    """
    memory = opened(keep="text", models_enabled=False)
    bring(memory, path)
    memory.observations.observe("kettle")
    memory.compact("kettle")
    said = memory.messages.list(thread_id="kettle")[0]
    memory.memories.add(f"The {PROMPT}", type="gotcha", evidence=[f"message:{said.id}"])
    taught = memory.memories.remember("Open at nine", type="gotcha").memory
    task = memory.tasks.add("Whistle")
    memory.links.link(task.id, [said.id]) if hasattr(memory.links, "link") else None
    alone = "These words about parsnips stand in no transcript."
    memory.messages.add(thread_id="other", role="user", content=alone)
    memory.transcripts.keep("vectors")
    memory = opened(models_enabled=False)
    plan = memory.transcripts.plan([(str(path), "claude-code", None)])
    assert (plan.messages, plan.refused, plan.receipt) == (7, 1, None)
    assert left_in_files(memory, texts_of(path))
    report = memory.transcripts.withhold([(str(path), "claude-code", None)])
    assert (report.messages, report.refused) == (7, 1)
    assert report.receipt.is_clean, report.receipt.traces
    assert left_in_files(memory, texts_of(path), has_log=False) == []
    again = opened()
    assert finds(again) == dict.fromkeys(QUERIES, True)
    assert [each.id for each in again.memories.list()] == [taught.id]
    assert contents(again, "parsnips")[0] == alone
    assert again.transcripts.plan([(str(path), "claude-code", None)]).messages == 0
    assert again.internals.index.problems(deep=True) == []


def test_conversion_is_refused_where_text_is_kept(opened, path):
    memory = opened(keep="text")
    bring(memory, path)
    with pytest.raises(InvalidInputError, match="--keep vectors"):
        memory.transcripts.withhold([(str(path), "claude-code", None)])


def test_message_that_is_erased_leaves_neither_terms_nor_vector(opened, path):
    memory = opened()
    bring(memory, path)
    first = memory.messages.list(thread_id="kettle")[0]
    receipt = memory.privacy.erase(messages=[first.id])
    assert receipt.is_clean
    assert not any(hit.id == first.id for hit in memory.search("zymurgy", min_score=0).hits)
    assert bring(memory, path) == 0
    assert memory.messages.get(first.id).raw_content == "[erased]"
    assert memory.internals.index.problems(deep=True) == []


def test_text_to_erase_is_found_in_transcripts_and_by_terms_where_one_is_gone(opened, path):
    memory = opened()
    bring(memory, path)
    assert memory.privacy.plan_erase(text="KETTLE to whistle").chosen == {"messages": 1}
    path.unlink()
    memory = opened()
    assert memory.privacy.plan_erase(text="neighbours sleep soundly").chosen == {"messages": 1}
    assert memory.privacy.plan_erase(text="rutabaga sleep soundly").chosen == {}


def test_archive_has_pointers_and_a_project_made_of_it_keeps_vectors(opened, path, tmp_path):
    with smara.open(tmp_path / "first.db", project="first", keep="vectors") as first:
        bring(first, path)
        first.privacy.export(tmp_path / "a.zip")
    opened(keep="text").privacy.import_archive(tmp_path / "a.zip", project="shop")
    memory = opened(keep="text")
    assert memory.settings.keep == "vectors"
    assert contents(memory, "zymurgy harvest")[0] == PROMPT
    assert "had it" not in contents(memory, "zymurgy harvest")[0]
    memory.privacy.export(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist()).lower()
    assert [piece for piece in windows(texts_of(path)) if piece in whole] == []
    assert str(path).lower().encode() in whole


@pytest.mark.parametrize("pointer", [{}, {"path": 5}, {"path": 5, "format": "x", "line": 1}])
def test_archive_with_a_broken_pointer_stores_nothing(opened, path, tmp_path, pointer):
    with smara.open(
        tmp_path / "first.db", project="first", keep="vectors", embedder="off"
    ) as first:
        bring(first, path)
        with first.internals.database.write() as session:
            layout = json.dumps({"pointer": pointer})
            session.run("UPDATE messages SET parts = ? WHERE seq = 2", (layout,))
        first.privacy.export(tmp_path / "a.zip")
    memory = opened()
    with pytest.raises(InvalidInputError, match="Nothing was stored"):
        memory.privacy.import_archive(tmp_path / "a.zip", project="shop")
    assert memory.status()["messages"] == 0


def test_reader_that_is_not_known_here_is_no_error(opened, path):
    memory = opened()
    bring(memory, path)
    with memory.internals.database.write() as session:
        session.run("UPDATE messages SET parts = replace(parts, 'claude-code', 'next-host')")
    assert "not in the store" in contents(opened(), "zymurgy harvest")[0]


def test_texts_are_not_imported_into_a_project_that_keeps_none(opened, path, tmp_path):
    with smara.open(tmp_path / "first.db", project="first", embedder="off") as first:
        bring(first, path)
        first.privacy.export(tmp_path / "a.zip")
    target = opened()
    target.transcripts.keep("vectors")
    with pytest.raises(InvalidInputError, match="keeps vectors"):
        target.privacy.import_archive(tmp_path / "a.zip", project="shop")
    assert target.status()["messages"] == 0


def test_copy_finds_and_shows_as_the_store_it_was_made_of(opened, place, path, tmp_path):
    memory = opened()
    bring(memory, path)
    smara.copy_store(str(place.address), tmp_path / "copy.db")
    with smara.open(
        tmp_path / "copy.db", project="shop", embedding_model=HashEmbedder(), embedder="hash"
    ) as copy:
        assert copy.settings.keep == "vectors"
        assert finds(copy) == dict.fromkeys(QUERIES, True)
        assert left_in_files(copy, texts_of(path)) == []


def test_two_stores_of_one_session_are_merged_whether_they_have_its_text_or_not(
    opened, place, path, tmp_path
):
    memory = opened(keep="text")
    bring(memory, path)
    smara.copy_store(str(place.address), tmp_path / "copy.db")
    memory.transcripts.keep("vectors")
    opened().transcripts.withhold([(str(path), "claude-code", None)])
    with pytest.raises(InvalidInputError, match="keeps vectors"):
        smara.copy_store(tmp_path / "copy.db", str(place.address))
    report = smara.copy_store(str(place.address), tmp_path / "copy.db")
    assert report.conflicts == ()
    with smara.open(tmp_path / "copy.db", project="shop", embedder="off") as copy:
        assert (copy.settings.keep, copy.status()["keep"]["withText"]) == ("text", 7)


def test_status_tells_what_is_kept(opened, path):
    memory = opened()
    bring(memory, path)
    keep = memory.status()["keep"]
    assert (keep["mode"], keep["withoutText"], keep["withText"]) == ("vectors", 7, 0)
    assert any("transcripts" in note for note in memory.projects.notes("shop"))
    assert memory.transcripts.keep("text").keep == "text"
    assert opened(keep="text").settings.keep == "text"
    assert finds(opened(keep="text")) == dict.fromkeys(QUERIES, True)
