"""Events of hosts are taken in exactly once, and what their sessions leave to do is done once, on
both databases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from smara.actions.models import Job
from smara.core.events import HostEvent
from smara.errors import LeaseLostError
from tests.contract.both import ON_BOTH

pytestmark = ON_BOTH


@pytest.fixture
def memory(place):
    return place.open()


def prompt(words: str, at_ms: int = 1_000, **more: object) -> HostEvent:
    return HostEvent("claude", "prompt", "s1", at_ms=at_ms, prompt=words, **more)


def take(memory, *events: HostEvent, jobs=()) -> list[HostEvent]:
    lease = memory.internals.leases.acquire("spool", "me")
    fresh = memory.internals.intake.fresh(events)
    memory.behavior.observe_batch(
        fresh,
        also=lambda session: memory.internals.intake.end(session, events, fresh, jobs, lease=lease),
    )
    memory.internals.leases.release(lease)
    return fresh


def test_an_event_that_was_taken_in_is_not_fresh_again(memory):
    event = prompt("a\x00\ud800", key="s1:prompt:\x00x")
    assert take(memory, event, replace(event)) == [event]
    assert take(memory, event) == []
    assert [
        (each.kind, each.event_count, each.repeat_count) for each in memory.internals.intake.heard()
    ] == [("prompt", 3, 2)]


def test_the_same_words_are_one_event_at_nearly_the_same_time_only(memory):
    first = prompt("go on", key="s1:prompt:ab~1000")
    assert take(memory, first, replace(first, key="s1:prompt:ab~1200")) == [first]
    later = replace(first, key="s1:prompt:ab~60000")
    assert take(memory, replace(first, key="s1:prompt:ab~3000"), later) == [later]


def test_one_project_does_not_know_the_events_of_another(memory):
    event = prompt("a")
    other = memory.in_project("other")
    assert take(memory, event) == take(other, event) == [event]
    assert len(other.internals.intake.heard()) == 1


def test_nothing_is_noted_under_a_lost_lease(memory, clock):
    lease = memory.internals.leases.acquire("spool", "me", 1.0)
    clock.advance(5)
    told, jobs = [prompt("a")], [Job("finalize", "s1")]
    with pytest.raises(LeaseLostError):
        memory.behavior.observe_batch(
            told,
            also=lambda session: memory.internals.intake.end(
                session, told, told, jobs, lease=lease
            ),
        )
    assert memory.internals.intake.fresh(told) == told
    assert memory.behavior.sessions() == []
    assert memory.internals.intake.heard() == []
    assert memory.internals.intake.jobs() == []


def test_a_job_waits_for_its_time_and_is_done_once(memory, clock):
    due = clock.now_ms() + 60_000
    take(memory, prompt("a"), jobs=[Job("finalize", "s1", {"reason": "é"}, due_at=due)])
    assert memory.internals.intake.due() == []
    clock.advance(61)
    (job,) = memory.internals.intake.due()
    assert job == Job("finalize", "s1", {"reason": "é"}, due_at=due)
    memory.internals.intake.done(job)
    assert memory.internals.intake.jobs() == []


def test_a_job_that_is_asked_for_again_while_it_runs_stays(memory, clock):
    take(memory, prompt("a"), jobs=[Job("transcript", "s1", {}, due_at=1)])
    (job,) = memory.internals.intake.due()
    take(memory, prompt("b"), jobs=[Job("transcript", "s1", {}, due_at=2)])
    memory.internals.intake.done(job)
    assert [each.due_at for each in memory.internals.intake.jobs()] == [2]


def test_a_transcript_is_read_before_its_session_is_ended(memory):
    take(
        memory,
        prompt("a"),
        jobs=[Job("finalize", "s1", {}, due_at=5), Job("transcript", "s1", {}, due_at=5)],
    )
    assert [job.kind for job in memory.internals.intake.due()] == ["transcript", "finalize"]


def test_a_job_that_fails_is_tried_five_times_at_growing_distances(memory, clock):
    take(memory, prompt("a"), jobs=[Job("finalize", "s1", {}, due_at=0)])
    waits = []
    while due := memory.internals.intake.due():
        memory.internals.intake.failed(due[0], "no model")
        waits.append((memory.internals.intake.jobs()[0].due_at - clock.now_ms()) // 60_000)
        clock.advance(waits[-1] * 60)
    assert waits == [1, 4, 16, 64, 256]
    assert memory.internals.intake.jobs()[0].error == "no model"


def test_keys_are_forgotten_after_a_month(memory, clock):
    event = prompt("a")
    take(memory, event)
    clock.advance(31 * 86_400)
    memory.retention.run_due()
    assert take(memory, event) == [event]
