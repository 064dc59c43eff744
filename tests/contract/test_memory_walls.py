"""Memories behind the wall of their project: nothing of one is seen or touched from another."""

from __future__ import annotations

import pytest

from smara.knowledge.models import Evidence, MemoryTotals, Relation
from tests.contract.both import EACH_DATABASE, is_not_found
from tests.contract.memory_place import learned, taught

pytestmark = EACH_DATABASE

WORDS = "The walrus sings at noon"

READS = {
    "find": lambda memory, seen: memory.memories.find(seen["id"]),
    "find short": lambda memory, seen: memory.memories.find(seen["short"]),
    "find prefix": lambda memory, seen: memory.memories.find(seen["short"][:-1]),
    "list": lambda memory, seen: memory.memories.list(state="all").memories,
    "list by tag": lambda memory, seen: memory.memories.list(tag="sea").memories,
    "list by file": lambda memory, seen: memory.memories.list(file="src/sea.py").memories,
    "list by session": lambda memory, seen: memory.memories.list(session_id="s1").memories,
    "list by message": lambda memory, seen: (
        memory.memories.list(message_id=seen["message"]).memories
    ),
    "to_review": lambda memory, seen: memory.memories.to_review().memories,
    "for_files": lambda memory, seen: memory.memories.for_files(["src/sea.py"]),
    "search": lambda memory, seen: memory.search_memories("walrus", state="all").hits,
    "search by id": lambda memory, seen: memory.search_memories(seen["short"], state="all").hits,
    "export": lambda memory, seen: list(memory.memories.export()),
    "accept_all": lambda memory, seen: (
        memory.memories.accept_all().accepted + memory.memories.accept_all().left
    ),
    "audit": lambda memory, seen: memory.memories.audit().active,
    "prune": lambda memory, seen: memory.memories.prune().deprecated,
    "check_files": lambda memory, seen: memory.memories.check_files(),
}
TOUCHES = {
    "get": lambda memory, seen: memory.memories.get(seen["id"]),
    "history": lambda memory, seen: memory.memories.history(seen["id"]),
    "why": lambda memory, seen: memory.memories.why(seen["id"]),
    "chain": lambda memory, seen: memory.memories.chain(seen["id"]),
    "update": lambda memory, seen: memory.memories.update(seen["id"], confidence=0.1, by="person"),
    "verify": lambda memory, seen: memory.memories.verify(seen["id"]),
    "accept": lambda memory, seen: memory.memories.accept(seen["id"]),
    "reject": lambda memory, seen: memory.memories.reject(seen["id"]),
    "pin": lambda memory, seen: memory.memories.pin(seen["id"]),
    "forget": lambda memory, seen: memory.memories.forget(seen["id"], by="person"),
    "restore": lambda memory, seen: memory.memories.restore(seen["id"], by="person"),
    "used": lambda memory, seen: memory.memories.used(seen["id"], "helped"),
    "undo": lambda memory, seen: memory.memories.undo(seen["id"], by="person"),
    "mark_stale": lambda memory, seen: memory.memories.mark_stale(seen["id"], "x", by="person"),
    "supersede": lambda memory, seen: memory.memories.supersede(
        seen["id"], seen["mine"], by="person"
    ),
    "supersede by theirs": lambda memory, seen: memory.memories.supersede(
        seen["mine"], seen["id"], by="person"
    ),
    "merge": lambda memory, seen: memory.memories.merge(seen["mine"], [seen["id"]], by="person"),
    "relate": lambda memory, seen: memory.memories.relate(
        seen["mine"], Relation("validates", memory_id=seen["id"])
    ),
    "derive": lambda memory, seen: learned(
        memory.memories, "Something that follows", derived_from=[seen["id"]]
    ),
    "supersede with new": lambda memory, seen: learned(
        memory.memories, "Something newer than that", supersedes=[seen["id"]]
    ),
    "their message": lambda memory, seen: learned(
        memory.memories, "Something they said", evidence=[Evidence(message_id=seen["message"])]
    ),
}


@pytest.fixture
def walls(place):
    """Two projects: in the first there is a memory, of which the second must see nothing."""
    theirs, mine = (
        place.open(project="alpha", embedder="off"),
        place.open(project="beta", embedder="off"),
    )
    message = theirs.messages.add(thread_id="t", role="user", content=WORDS)
    made = learned(
        theirs.memories,
        WORDS,
        tags=["sea"],
        files=["src/sea.py"],
        evidence=[Evidence(message_id=message.id)],
    )
    own = taught(mine.memories, "The heron sleeps at dawn")
    mine.memories.forget(own.id, by="person")
    seen = {"id": made.id, "short": made.short_id, "message": message.id, "mine": own.id}
    return theirs, mine, seen


def test_nothing_of_another_project_is_seen(walls):
    theirs, mine, seen = walls
    found = {path: read(mine, seen) for path, read in READS.items()}
    for path, answer in found.items():
        if isinstance(answer, tuple | list):
            found[path] = [each for each in answer if getattr(each, "id", None) != seen["mine"]]
    assert {path: answer for path, answer in found.items() if answer} == {}
    assert theirs.memories.get(seen["id"]).version == 1


def test_nothing_of_another_project_is_touched(walls):
    theirs, mine, seen = walls
    before = theirs.memories.get(seen["id"])
    touched = [
        path
        for path, touch in TOUCHES.items()
        if not is_not_found(lambda: touch(mine, seen))  # noqa: B023
    ]
    assert touched == []
    assert theirs.memories.get(seen["id"]) == before


def test_the_same_words_may_be_known_in_two_projects(walls):
    theirs, mine, seen = walls
    added = mine.memories.add(WORDS, type="gotcha", session_id="s1")
    assert (added.outcome, added.similar_to) == ("added", None)
    theirs.memories.reject(seen["id"])
    assert mine.memories.get(added.memory.id).is_active


def test_what_one_project_rejects_another_may_learn(walls, clock):
    theirs, mine, seen = walls
    theirs.memories.reject(seen["id"])
    clock.advance(40 * 86_400)
    theirs.memories.prune()
    assert mine.memories.add(WORDS, type="gotcha", session_id="s1").outcome == "added"
    assert theirs.memories.add(WORDS, type="gotcha", session_id="s1").outcome == "refused"


def test_totals_trust_and_limits_are_each_projects_own(walls):
    theirs, mine, _ = walls
    theirs.memories.set_trust_level(3)
    assert (mine.memories.trust().level, theirs.memories.trust().level) == (1, 3)
    assert (theirs.memories.totals(), mine.memories.totals()) == (
        MemoryTotals(1, 1, 1),
        MemoryTotals(1, 0, 0),
    )
    for number in range(20):
        learned(mine.memories, f"Statement number {number} of mine", session_id="s1")
    assert (
        theirs.memories.add("One more statement of theirs", type="gotcha", session_id="s1").outcome
        == "added"
    )
