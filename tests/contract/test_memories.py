"""Memories: what goes in comes out, by any of its ids, by its files, types and words."""

from __future__ import annotations

import getpass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.knowledge.models import (
    SCOPES,
    SOURCES,
    TYPES,
    VISIBILITIES,
    Chunk,
    Evidence,
    MemoryTotals,
    NewMemory,
    Relation,
    WorkUnit,
)
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.memory_place import DAY, contents, learned, taught

pytestmark = EACH_DATABASE

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
ODD_TEXTS = [
    "nul\x00inside a text", "lone \ud800 surrogate \udfff here", "\ufdd0 and \ufdd00000 too",
    "重跑测试之前先清缓存",
    "'; DROP TABLE memories; -- is a text", "%s ? :project $1 are texts", '"quoted" \\ back slash',
    "👩‍👩‍👧‍👦 family of emoji",
]  # fmt: skip


@pytest.fixture
def memories(place):
    return place.open(embedder="off").memories


def test_a_memory_is_kept_with_every_field(memories, clock):
    other = taught(memories, "Tokens live for a day")
    added = memories.add(
        "Refreshing a token fails silently when Redis is down",
        type="gotcha",
        source="agent_explicit",
        confidence=0.9,
        tags=["redis", "auth"],
        files=["./src/auth.py", "src\\tokens.py"],
        modules=["auth"],
        scope="module",
        visibility="team",
        session_id="s1",
        commit="3f2a9c1",
        evidence=["src/auth.py@3f2a9c1:10-20"],
        work_unit=WorkUnit("native", ("spec_042", "subtask_3"), "Spec 42"),
        methodology="native",
        relations=[
            Relation("required_with", path="src/redis.py", confidence=0.7),
            Relation("validates", other.short_id),
        ],
        half_life_days=12,
        citation="Redis gotcha",
        chunk=Chunk("function", 10, 20, context_prefix="refresh() in auth.py"),
        data={"symptom": "no error", "workaround": "ping first"},
        taint=["tool"],
        actor="ann",
    )
    memory = memories.get(added.memory.id)
    assert memory == added.memory
    assert (memory.type, memory.source, memory.scope, memory.visibility) == (
        "gotcha",
        "agent_explicit",
        "module",
        "team",
    )
    assert (memory.confidence, memory.half_life_days, memory.citation) == (
        0.9,
        12.0,
        "Redis gotcha",
    )
    assert (memory.tags, memory.files, memory.modules) == (
        ("auth", "redis"),
        ("src/auth.py", "src/tokens.py"),
        ("auth",),
    )
    assert memory.evidence == (
        Evidence(path="src/auth.py", commit="3f2a9c1", first_line=10, last_line=20),
    )
    assert memory.work_unit == WorkUnit("native", ("spec_042", "subtask_3"), "Spec 42")
    assert memory.chunk == Chunk("function", 10, 20, context_prefix="refresh() in auth.py")
    assert memory.data == {"symptom": "no error", "workaround": "ping first"}
    assert [(each.type, each.memory_id, each.path) for each in memory.relations] == [
        ("required_with", None, "src/redis.py"),
        ("validates", other.id, None),
    ]
    assert (memory.session_id, memory.session_ids, memory.commit, memory.created_by) == (
        "s1",
        ("s1",),
        "3f2a9c1",
        "ann",
    )
    assert (memory.taint, memory.tier, memory.is_verified) == (("tool",), "observed", False)
    assert (memory.created_at, memory.updated_at, memory.version) == (
        clock.now_ms(),
        clock.now_ms(),
        1,
    )


@pytest.mark.parametrize("type_", TYPES)
def test_every_type_can_be_taught_in_a_sentence(memories, type_):
    memory = taught(memories, f"Something worth knowing of the type {type_}", type=type_)
    assert (memory.type, memory.tier, memory.needs_review) == (type_, "confirmed", False)


def test_what_a_person_teaches_is_confirmed_at_once_and_typed_by_its_words(memories):
    memory = memories.remember("Never edit a migration that was released", files=["src/db"]).memory
    assert (memory.source, memory.is_verified, memory.verified_by) == (
        "user_taught",
        True,
        getpass.getuser(),
    )
    assert memory.type in TYPES
    assert (memory.confidence, memory.review_reasons) == (0.95, ())


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_any_text_is_kept_as_it_is(memories, text):
    memory = taught(memories, text, tags=[text.replace("\x00", "")[:20]])
    assert memories.get(memory.id).content == text
    assert memories.get(memory.id).tags == memory.tags


def test_secrets_are_redacted_everywhere(memories, place):
    memory = learned(
        memories,
        f"The token {SECRET} is in the file",
        tags=[SECRET],
        files=[f"src/{SECRET}.py"],
        modules=[SECRET],
        citation="a token",
        data={"symptom": f"it prints {SECRET}"},
        evidence=[Evidence(path="a.py", quote=SECRET)],
    )
    memories.update(memory.id, content=f"The token {SECRET} is in another file")
    memories.used(memory.id, "wrong", note=f"not {SECRET}")
    memories.forget(memory.id, f"it holds {SECRET}")
    assert SECRET not in repr(memories.get(memory.id)) + repr(memories.history(memory.id))
    place.close()
    if place.kind == "sqlite":
        for file in place.address.parent.iterdir():
            assert SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    "given",
    [
        {"content": ""}, {"content": "   "}, {"content": 7}, {"content": "x" * 9_000},
            {"type": "walrus"},
        {"confidence": 1.5}, {"confidence": True}, {"tags": "one"}, {"tags": [""]},
            {"files": "a.py"}, {"files": [3]},
        {"scope": "galaxy"}, {"visibility": "secret"}, {"source": "rumor"}, {"citation": "x" * 41},
        {"half_life_days": 0},
        {"half_life_days": float("inf")}, {"commit": "no such thing"}, {"evidence": "a.py"},
            {"evidence": [Evidence()]},
        {"evidence": [Evidence(path="a", first_line=-1)]}, {"relations": [Relation("validates")]},
        {"taint": ["Two words"]},
        {"relations": [Relation("supersedes", "x")]}, {"data": {"walrus": 1}},
            {"chunk": Chunk("poem")},
        {"work_unit": "spec"}, {"evidence": [{"walrus": 1}]},
            {"session_type": "party"},
        {"by": "nobody"},
    ],
)  # fmt: skip
def test_what_cannot_be_accepted_is_refused_and_nothing_is_stored(memories, given):
    call = {
        "content": "Something that is worth knowing",
        "type": "gotcha",
        "session_id": "s1",
        **given,
    }
    content = call.pop("content")
    refused(lambda: memories.add(content, **call), InvalidInputError)
    assert memories.totals() == MemoryTotals()


def test_an_unknown_field_is_a_type_error_as_for_any_call(memories):
    with pytest.raises(TypeError):
        memories.add("Something that is worth knowing", type="gotcha", walrus=1)


def test_a_memory_is_found_by_whatever_it_is_called(memories):
    memory = taught(memories, "The walrus sings at noon")
    for name in (
        memory.id,
        memory.short_id,
        memory.short_id.upper(),
        memory.short_id[2:],
        memory.short_id[:-1],
        memory.id[:-2],
    ):
        assert memories.get(name) == memory
    assert memories.find("m-zzzzzzzz") is None
    assert memories.find("x" * 600) is None
    error = refused(lambda: memories.get("m-zzzzzzzz"), NotFoundError)
    assert "memories list" in str(error)


def test_an_ambiguous_name_lists_who_may_be_meant(memories):
    made = [
        taught(memories, f"Statement number {number} of the walrus", type="decision")
        for number in range(60)
    ]
    error = refused(lambda: memories.get(made[0].id[:8]), InvalidInputError)
    assert len(error.candidates) == 8


def test_lists_are_filtered_paged_and_newest_first(memories):
    for number in range(1, 8):
        taught(
            memories,
            f"Statement number {number} about things",
            type="gotcha" if number % 2 else "decision",
            tags=["odd"] if number % 2 else [],
            files=[f"src/f{number}.py"],
            modules=["auth"],
        )
    page = memories.list(limit=3)
    assert [each.content.split()[2] for each in page] == ["7", "6", "5"]
    assert [
        each.content.split()[2] for each in memories.list(limit=3, offset=page.next_offset)
    ] == ["4", "3", "2"]
    assert memories.list(limit=3, offset=6).next_offset is None
    assert len(memories.list(type="gotcha")) == 4
    assert len(memories.list(types=["gotcha", "decision"])) == 7
    assert len(memories.list(types=[])) == 0
    assert len(memories.list(tag="odd")) == 4
    assert len(memories.list(file="./src/f2.py")) == 1
    assert (
        len(memories.list(module="auth", is_verified=True, tier="confirmed", source="user_taught"))
        == 7
    )
    assert len(memories.list(needs_review=True)) == 0
    refused(lambda: memories.list(walrus=1), InvalidInputError)
    refused(lambda: memories.list(limit=0), InvalidInputError)
    refused(lambda: memories.list(state="asleep"), InvalidInputError)


def test_lists_by_confidence_begin_with_the_surest(memories):
    for confidence in (0.3, 0.9, 0.6):
        learned(memories, f"Something that is {confidence} sure", confidence=confidence)
    assert [each.confidence for each in memories.list(order="confidence")] == [0.9, 0.6, 0.3]


@pytest.mark.parametrize(
    ("taint", "tier"),
    [
        ([], "unconfirmed"),
        (["tool", "file"], "observed"),
        (["web"], "quarantined"),
        (["tool", "mcp"], "quarantined"),
    ],
)
def test_lists_know_tiers(memories, taint, tier):
    learned(memories, "Something that is worth knowing", taint=taint)
    for each in ("unconfirmed", "observed", "quarantined", "confirmed"):
        assert len(memories.list(tier=each)) == (1 if each == tier else 0)


def test_memories_are_found_by_file_the_closest_and_surest_first(memories, clock):
    learned(memories, "The whole source is typed", files=["src"], confidence=0.99)
    learned(memories, "auth.py opens a socket at import", files=["src/auth.py"], confidence=0.7)
    taught(memories, "auth.py must not import models", files=["src/auth.py"])
    learned(memories, "Something else entirely there", files=["src/other.py"])
    assert contents(memories.for_files(["src/auth.py"])) == [
        "auth.py must not import models",
        "auth.py opens a socket at import",
        "The whole source is typed",
    ]
    assert len(memories.for_files(["src/auth.py"], types=["decision"])) == 0
    assert len(memories.for_files(["src/auth.py"], limit=1)) == 1
    assert len(memories.for_files(["src/auth.py"], min_confidence=0.9)) == 2
    assert len(memories.for_files(["/home/ann/app/src/auth.py"], root="/home/ann/app")) == 3
    assert len(memories.for_files(["/home/ann/app/src/auth.py"])) == 2
    assert memories.for_files(["/etc/auth.py"], root="/home/ann/app") == []
    assert memories.for_files([]) == []


def test_for_files_leaves_out_what_was_put_aside_or_is_stale_or_may_not_be_told(memories):
    gone = learned(memories, "auth.py opens a socket at import", files=["a.py"])
    stale = learned(memories, "auth.py was written in a hurry", files=["a.py"])
    quarantined = learned(
        memories, "auth.py asks you to run a script", files=["a.py"], taint=["web"]
    )
    kept = taught(memories, "auth.py must not import models", files=["a.py"])
    memories.forget(gone.id)
    memories.mark_stale(stale.id, "rewritten")
    assert [each.id for each in memories.for_files(["a.py"])] == [kept.id, quarantined.id]
    assert [each.id for each in memories.for_files(["a.py"], is_injectable_only=True)] == [kept.id]


def test_search_finds_by_words_names_paths_and_ids(place):
    memory = place.open(embedder="off")
    made = taught(
        memory.memories,
        "Token refresh fails silently when Redis is unreachable",
        files=["src/auth/tokens.py"],
        tags=["sessions"],
        citation="Redis gotcha",
        data={"workaround": "ping before the refresh"},
    )
    taught(memory.memories, "The build runs on every push")
    for query in (
        "refreshing tokens",
        "redis",
        "tokens.py",
        "src/auth",
        "sessions",
        "ping",
        made.short_id,
    ):
        hits = memory.search_memories(query)
        assert hits[0].memory.id == made.id, query
        assert hits[0].rank == 1
        assert hits[0].why
    assert len(memory.search_memories("walrus")) == 0
    assert memory.search_memories("redis", types=["decision"]).total_hits == 0
    assert (
        memory.search_memories("redis", files=["src/auth/tokens.py"], tags=["sessions"]).total_hits
        == 1
    )
    assert memory.search_memories("redis", files=["a.py"]).total_hits == 0
    assert memory.search_memories("redis", min_confidence=0.99).total_hits == 0
    assert memory.search_memories("redis", min_tier="confirmed").total_hits == 1
    refused(lambda: memory.search_memories("redis", types=["walrus"]), InvalidInputError)
    refused(lambda: memory.search_memories("redis", min_tier="walrus"), InvalidInputError)


def test_search_follows_every_change_and_a_rebuilt_index_says_the_same(place):
    memory = place.open(embedder="off")
    made = taught(memory.memories, "The walrus sings at noon")
    memory.memories.update(made.id, content="The albatross sings at noon", by="person")
    assert (len(memory.search_memories("walrus")), len(memory.search_memories("albatross"))) == (
        0,
        1,
    )
    newer = taught(memory.memories, "The heron sings at noon")
    memory.memories.supersede(made.id, newer.id, by="person")
    assert len(memory.search_memories("albatross")) == 0
    assert len(memory.search_memories("albatross", state="all")) == 1
    gone = taught(memory.memories, "The pelican sings at noon")
    memory.memories.forget(gone.id, by="person")
    assert len(memory.search_memories("pelican", state="all")) == 0
    before = [
        (hit.memory.id, hit.score) for hit in memory.search_memories("sings noon", state="all")
    ]
    memory.internals.index.rebuild()
    assert [
        (hit.memory.id, hit.score) for hit in memory.search_memories("sings noon", state="all")
    ] == before
    assert memory.internals.index.problems(deep=True) == []
    memory.memories.restore(gone.id, by="person")
    assert len(memory.search_memories("pelican")) == 1


@settings(max_examples=30)
@given(query=st.text(max_size=80))
def test_no_query_can_raise(memories, place, query):
    memory = place._open[0]
    memory.search_memories(query)


def test_fields_are_updated_by_name_and_the_rest_stays(memories):
    memory = learned(
        memories,
        "Refreshing fails when Redis is down",
        files=["a.py"],
        data={"symptom": "x"},
        tags=["t"],
    )
    changed = memories.update(
        memory.id,
        confidence=0.5,
        tags=["u"],
        data={"cause": "y"},
        citation="Redis",
        commit="abc1234",
        visibility="personal",
    )
    assert (changed.confidence, changed.tags, changed.citation, changed.commit) == (
        0.5,
        ("u",),
        "Redis",
        "abc1234",
    )
    assert changed.data == {"symptom": "x", "cause": "y"}
    assert (changed.content, changed.files, changed.version) == (memory.content, ("a.py",), 2)
    assert memories.update(memory.id, citation="").citation is None
    assert memories.update(memory.id, type="decision").data == {}
    assert memories.update(memory.id, confidence=0.5).version == 4
    refused(lambda: memories.update(memory.id, walrus=1), InvalidInputError)
    refused(lambda: memories.update(memory.id, source="user_taught"), InvalidInputError)


def test_two_who_change_at_once_do_not_overwrite_each_other(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.update(memory.id, confidence=0.5, version=1)
    error = refused(lambda: memories.update(memory.id, confidence=0.6, version=1), ConflictError)
    assert error.version == 2
    for act in (
        memories.forget,
        memories.verify,
        memories.pin,
        memories.reject,
        memories.accept,
        memories.undo,
    ):
        refused(lambda act=act: act(memory.id, version=1), ConflictError)


def test_relations_come_and_go_and_twice_is_once(memories):
    one, other = (
        taught(memories, "The walrus sings at noon"),
        taught(memories, "The heron sleeps at noon"),
    )
    relation = Relation("required_with", memory_id=other.short_id)
    assert (
        memories.relate(one.id, relation).relations == memories.relate(one.id, relation).relations
    )
    assert memories.get(one.id).relations[0].memory_id == other.id
    memories.relate(one.id, Relation("validates", path="./src/a.py"))
    assert memories.get(one.id).relations[1].path == "src/a.py"
    memories.unrelate(one.id, relation)
    assert [each.type for each in memories.get(one.id).relations] == ["validates"]
    memories.undo(one.id)
    assert {each.type for each in memories.get(one.id).relations} == {"validates", "required_with"}
    refused(
        lambda: memories.relate(one.id, Relation("validates", memory_id=one.id)), InvalidInputError
    )
    refused(
        lambda: memories.relate(one.id, Relation("derived_from", memory_id=other.id)),
        InvalidInputError,
    )
    refused(
        lambda: memories.relate(one.id, Relation("supersedes", memory_id=other.id)),
        InvalidInputError,
    )


def test_totals_follow_and_can_be_counted_again(memories):
    made = [learned(memories, f"Statement number {number} about it") for number in range(4)]
    memories.forget(made[0].id)
    memories.accept(made[1].id)
    assert memories.totals() == MemoryTotals(4, 3, 2)
    assert memories.problems() == []
    assert memories.recount() == MemoryTotals(4, 3, 2)


def test_everything_is_exported_oldest_first(memories):
    made = [
        taught(memories, f"Statement number {number} about it", type="decision")
        for number in range(5)
    ]
    memories.forget(made[2].id, by="person")
    assert [each.id for each in memories.export()] == [each.id for each in made]


def test_every_change_is_an_event_with_who_and_when(memories, clock):
    memory = learned(memories, "Refreshing fails when Redis is down", actor="robot")
    clock.advance(DAY)
    memories.update(memory.id, confidence=0.7, actor="robot", session_id="s2")
    memories.pin(memory.id, actor="ann")
    memories.verify(memory.id, actor="ann")
    memories.used(memory.id, "helped", session_id="s3")
    memories.unpin(memory.id, actor="ann")
    history = memories.history(memory.id)
    assert kinds(history) == ["created", "updated", "pinned", "verified", "used", "unpinned"]
    assert [(event.actor, event.by) for event in history][::-1][:3] == [
        ("robot", "agent"),
        ("robot", "agent"),
        ("ann", "person"),
    ]
    assert history[-2].at == clock.now_ms()
    assert (history[-2].before, history[-2].after) == ({"confidence": 0.8}, {"confidence": 0.7})
    assert history[-2].session_id == "s2"
    assert len(memories.history(memory.id, limit=2)) == 2


def test_the_async_face_has_the_same_rooms(place):
    import asyncio

    from smara.aio import AsyncMemory

    memory = AsyncMemory(place.open(embedder="off"))

    async def story():
        added = await memory.memories.remember("The walrus sings at noon", type="decision")
        return (await memory.search_memories("walrus"))[0].memory.id == added.memory.id

    assert asyncio.run(story())


def test_a_status_counts_memories(place):
    memory = place.open(embedder="off")
    learned(memory.memories, "Refreshing fails when Redis is down")
    assert memory.status()["memories"] == {"total": 1, "active": 1, "toReview": 1}


def test_many_are_added_in_one_transaction_or_none(memories):
    good = NewMemory("Refreshing fails when Redis is down", "gotcha", session_id="s1")
    refused(lambda: memories.add_many([good, NewMemory("", "gotcha")]), InvalidInputError)
    refused(
        lambda: memories.add_many(
            [good, NewMemory("Known from nowhere at all", "gotcha", derived_from=["x"])]
        ),
        NotFoundError,
    )
    assert memories.totals().total == 0
    assert [each.outcome for each in memories.add_many([good, good])] == ["added", "duplicate"]


def test_choices_of_every_kind_are_stored(memories):
    for number, (scope, visibility) in enumerate((s, v) for s in SCOPES for v in VISIBILITIES):
        taught(memories, f"Statement number {number} about choices", visibility=visibility)
        memory = memories.list(limit=1)[0]
        assert memories.update(memory.id, scope=scope, by="person").scope == scope
    assert set(SOURCES) > {"user_taught"}


def test_memories_are_put_aside_together_with_what_is_added_or_not_at_all(memories):
    old = taught(memories, "The migration of the cards is left to be written.")
    gone = taught(memories, "The old queue keeps its letters for a week.")
    memories.forget(gone.id, "by hand", by="person")
    new = NewMemory(
        "Always run `make cards` before `make ship`, or `cards.db` is empty.",
        "gotcha",
        "user_taught",
    )
    aside = {
        old.id: "it was finished",
        gone.id: "it was finished",
        "01900000-0000-7abc-8000-000000000001": "nobody",
    }

    def refuse(*_):
        raise InvalidInputError("no")

    with pytest.raises(InvalidInputError):
        memories.add_many([new], by="person", put_aside=aside, also=refuse)
    assert [each.id for each in memories.list()] == [old.id]
    (added,) = memories.add_many([new], by="person", put_aside=aside)
    assert [each.id for each in memories.list()] == [added.memory.id]
    told = [memories.history(each.id)[0].after.get("why") for each in (old, gone)]
    assert told == ["it was finished", "by hand"]
