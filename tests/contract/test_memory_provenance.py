"""Provenance: where a memory comes from decides its trust, through messages, observations and other
memories.
"""

from __future__ import annotations

import pytest

from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge.models import Evidence, Relation
from smara.messages.models import Part
from tests.contract.both import EACH_DATABASE, refused
from tests.contract.memory_place import learned, taught

pytestmark = EACH_DATABASE


@pytest.fixture
def memory(place):
    return place.open(embedder="off")


@pytest.fixture
def memories(memory):
    return memory.memories


def call(memory, name, thread_id="t"):
    """An agent uses a tool, and the tool answers; the message with the answer."""
    memory.messages.add(
        thread_id=thread_id,
        role="assistant",
        content=[Part("tool_call", name=name, call_id="1", arguments="{}")],
    )
    return memory.messages.add(
        thread_id=thread_id,
        role="tool",
        content=[Part("tool_result", name=name, call_id="1", text="it says so")],
    )


def say(memory, text, role="user", thread_id="t"):
    return memory.messages.add(thread_id=thread_id, role=role, content=text)


def test_what_a_person_said_taints_nothing(memory, memories):
    said = say(memory, "The API wants a header")
    made = learned(
        memories, "The API wants a header on calls", evidence=[Evidence(message_id=said.id)]
    )
    assert (made.taint, made.tier) == ((), "unconfirmed")
    assert memories.list(message_id=said.id)[0].id == made.id


@pytest.mark.parametrize(
    ("tool", "taint", "tier"),
    [
        ("WebFetch", ("web",), "quarantined"), ("mcp__jira__search", ("mcp",), "quarantined"),
        ("Bash", ("tool",), "observed"), ("Read", ("tool",), "observed"),
    ],
)  # fmt: skip
def test_what_a_tool_answered_taints_by_its_kind(memory, memories, tool, taint, tier):
    answer = call(memory, tool)
    made = learned(
        memories, "The API wants a header on calls", evidence=[Evidence(message_id=answer.id)]
    )
    assert (made.taint, made.tier) == (taint, tier)


def test_what_an_agent_says_after_it_read_a_page_may_be_what_the_page_said(memory, memories):
    before = say(memory, "The cache is in Redis", "assistant")
    call(memory, "WebFetch")
    after = say(memory, "The API wants a header", "assistant")
    person = say(memory, "Yes, remember that")
    clean = learned(
        memories, "The cache lives in Redis here", evidence=[Evidence(message_id=before.id)]
    )
    dirty = learned(
        memories, "The API wants a header on calls", evidence=[Evidence(message_id=after.id)]
    )
    asked = learned(
        memories, "The person wanted this remembered", evidence=[Evidence(message_id=person.id)]
    )
    assert [each.tier for each in (clean, dirty, asked)] == [
        "unconfirmed",
        "quarantined",
        "unconfirmed",
    ]


def test_the_conversation_in_which_it_was_noted_gives_what_came_from_outside(memory, memories):
    call(memory, "Bash", "local")
    call(memory, "WebSearch", "outside")
    local = learned(memories, "The build takes four minutes", thread_id="local")
    outside = learned(memories, "The API wants a header on calls", thread_id="outside")
    assert (local.taint, outside.taint) == ((), ("web",))
    assert learned(memories, "Something else is known here", thread_id="no such thread").taint == ()


def test_an_observation_hands_on_its_taint(memory, memories):
    call(memory, "WebFetch")
    say(memory, "We decided to use the header of that page for the API", "user")
    memory.observations.observe("t")
    observation = memory.observations.list(thread_id="t")[0]
    made = learned(
        memories, "The API wants a header on calls", evidence=[f"observation:{observation.id}"]
    )
    assert set(observation.taint) <= set(made.taint)
    assert made.tier == "quarantined"
    assert memories.why(made.id).sources[0].is_there


@pytest.mark.parametrize("evidence", ["message:nowhere", "observation:nowhere"])
def test_evidence_that_is_not_there_is_refused(memories, evidence):
    error = refused(
        lambda: memories.add(
            "The API wants a header", type="gotcha", session_id="s", evidence=[evidence]
        ),
        NotFoundError,
    )
    assert evidence in str(error)


@pytest.mark.parametrize(
    ("source", "taint"),
    [("imported", "imported"), ("mcp_auto", "mcp"), ("qa_auto", "tool"), ("commit_auto", "tool")],
)
def test_a_source_says_itself_where_it_comes_from(memories, source, taint):
    made = learned(
        memories,
        "The API wants a header on calls",
        source=source,
        evidence=["a.py@abc1234:1"],
        by="person",
    )
    assert made.taint == (taint,)
    assert made.needs_review


def test_a_person_may_vouch_for_what_is_imported(memories):
    made = learned(
        memories,
        "The API wants a header on calls",
        source="imported",
        evidence=["AGENTS.md:3"],
        by="person",
        is_verified=True,
    )
    assert (made.tier, made.taint) == ("confirmed", ("imported",))


def test_what_is_derived_has_the_lowest_trust_of_what_it_comes_from(memories):
    clean = learned(memories, "The first of several statements")
    printed = learned(memories, "Another one, printed by a tool", taint=["tool"])
    web = learned(memories, "A third one, found on a page", taint=["web"])
    one = learned(
        memories, "This follows from one and two", derived_from=[clean.id, printed.short_id]
    )
    two = learned(memories, "That follows from all of them", derived_from=[one.id, web.id])
    assert (one.tier, two.tier, two.taint) == ("observed", "quarantined", ("tool", "web"))
    assert {each.memory_id for each in two.relations if each.type == "derived_from"} == {
        one.id,
        web.id,
    }
    memories.accept(web.id)
    three = learned(
        memories, "After a look at the page it follows too", derived_from=[web.id, clean.id]
    )
    assert three.tier == "unconfirmed"
    assert (
        memories.get(two.id).tier == "quarantined"
    )  # what was derived before is looked at by itself


def test_editing_brings_its_taint_and_takes_none_away(memory, memories):
    made = learned(memories, "The API wants a header on calls")
    page = call(memory, "WebFetch")
    edited = memories.update(
        made.id, content="The API wants two headers", evidence=[Evidence(message_id=page.id)]
    )
    assert (edited.tier, edited.taint) == ("quarantined", ("web",))
    assert edited.needs_review
    assert memories.update(made.id, evidence=[]).taint == ("web",)
    assert memories.update(made.id, taint=["mcp"]).taint == ("mcp", "web")
    theirs = memories.update(made.id, content="The API wants three headers", by="person")
    assert theirs.tier == "quarantined"  # a person's edit mends the words; accepting clears


def test_taint_that_was_cleared_is_back_when_the_clearing_is_undone(memories):
    made = learned(memories, "The API wants a header on calls", taint=["web"])
    memories.verify(made.id)
    assert memories.get(made.id).tier == "confirmed"
    assert memories.undo(made.id, by="person").tier == "quarantined"


def test_what_is_tainted_is_not_told_unasked_and_never_as_an_instruction(memories):
    made = learned(memories, "The API wants a header on calls", taint=["web"], confidence=1.0)
    for level in (1, 2, 3, 4):
        memories.set_trust_level(level)
        verdict = memories.may_inject(memories.get(made.id))
        assert (verdict.allowed, verdict.as_instruction) == (False, False)
    memories.accept(made.id)
    assert memories.may_inject(memories.get(made.id)).as_instruction


def test_a_relation_is_no_way_around(memories):
    trusted, dirty = (
        taught(memories, "The server is on port 8080"),
        learned(memories, "A page speaks", taint=["web"]),
    )
    refused(
        lambda: memories.relate(dirty.id, Relation("derived_from", memory_id=trusted.id)),
        InvalidInputError,
    )
    memories.relate(dirty.id, Relation("validates", memory_id=trusted.id))
    assert memories.get(trusted.id).tier == "confirmed"
    assert memories.get(dirty.id).tier == "quarantined"


@pytest.mark.parametrize("way", ["when added", "afterwards"])
def test_an_agents_claim_of_a_conflict_retires_nothing_when_it_is_accepted(memories, way):
    trusted = taught(memories, "The server is on port 8080")
    claim = Relation("conflicts_with", memory_id=trusted.id, is_auto=True)
    if way == "when added":
        hostile = learned(
            memories, "A page speaks of something else", taint=["web"], relations=[claim]
        )
    else:
        hostile = learned(memories, "A page speaks of something else", taint=["web"])
        memories.relate(hostile.id, claim)
    memories.accept(hostile.id)
    assert memories.get(trusted.id).is_active
