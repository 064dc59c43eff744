"""``task-mutate``: what each action does, and how it is refused."""

from __future__ import annotations

from smara.tools import Toolbox, ToolContext


def test_create_takes_everything_a_task_can_have(ask, memory):
    epic, before, other = ask.new("epic", type="epic"), ask.new("before"), ask.new("other")
    made = ask.mutate(
        "create",
        title="Refresh tokens",
        description="when they expire",
        priority=0,
        type="feature",
        labels=["auth"],
        assignee="ada",
        parent=epic,
        dependsOn=f"{before}, {other}",
    )["task"]
    task = memory.tasks.get(made["id"])
    assert (task.title, task.priority, task.type, task.assignee) == (
        "Refresh tokens",
        0,
        "feature",
        "ada",
    )
    assert (made["uuid"], made["labels"], made["status"]) == (task.id, ["auth"], "open")
    assert {(each["dependsOnId"], each["type"]) for each in made["dependencies"]} == {
        (before, "blocks"),
        (other, "blocks"),
        (epic, "parent-child"),
    }
    assert memory.tasks.history(made["id"])[0].actor == "agent"


def test_claim_makes_the_task_the_threads_own_and_shows_all_of_it(ask, memory):
    task = ask.new("Form", description="x" * 1_000)
    shown = ask.mutate("claim", id=task)
    assert (shown["task"]["status"], shown["task"]["sessionId"]) == ("in_progress", "abc-123")
    assert shown["task"]["description"] == "x" * 1_000
    assert shown["isBlocked"] is False
    active = memory.links.active("talk")
    assert active is not None
    assert active.short_id == task


def test_claim_again_by_the_same_session_is_no_failure(ask):
    task = ask.new("Form")
    assert (
        ask.mutate("claim", id=task)["task"]["id"]
        == ask.mutate("claim", id=task)["task"]["id"]
        == task
    )


def test_claim_next_takes_the_most_urgent_ready_task_until_there_is_none(ask):
    later, urgent = ask.new("later"), ask.new("urgent", priority=0)
    assert [ask.mutate("claim", id="next")["task"]["id"] for _ in range(2)] == [urgent, later]
    answer = ask.refused("task-mutate", "claim", id="next")
    assert answer["error"] == "No task is ready"
    assert "2 in progress" in answer["hint"]


def test_claim_by_second_session_names_the_holder(ask):
    task = ask.new("Form")
    ask.mutate("claim", id=task)
    answer = ask.as_session("other").refused("task-mutate", "claim", id=task)
    assert answer["error"] == "Already claimed by session abc-123"
    assert (answer["code"], bool(answer["hint"])) == ("task_claimed", True)


def test_claim_of_a_blocked_task_names_the_blockers(ask):
    first = ask.new("first")
    second = ask.new("second", dependsOn=first)
    answer = ask.refused("task-mutate", "claim", id=second)
    assert answer["error"] == "Task is blocked by open dependencies"
    assert first in answer["hint"]


def test_session_of_the_call_wins_over_that_of_the_server(ask):
    task = ask.new("Form")
    assert (
        ask.mutate("claim", id=task, sessionId="mine", threadId="t2")["task"]["sessionId"] == "mine"
    )
    ask.refused("task-mutate", "close", id=task, summary="done")
    assert (
        ask.mutate("close", id=task, summary="done", sessionId="mine")["task"]["status"] == "closed"
    )


def test_shared_server_wants_to_know_whose_a_claim_is(memory, ask):
    task = ask.new("Form")
    shared = Toolbox(memory, ToolContext(is_shared=True))
    refused = shared.call("task-mutate", {"action": "claim", "id": task})
    assert refused.is_error
    assert "sessionId" in refused.text
    assert not shared.call(
        "task-mutate", {"action": "claim", "id": task, "sessionId": "s"}
    ).is_error


def test_close_keeps_reason_and_summary(ask):
    task = ask.new("Form")
    closed = ask.mutate("close", id=task, reason="wontfix", summary="nobody uses it")["task"]
    assert (closed["status"], closed["closeReason"], closed["summary"]) == (
        "closed",
        "wontfix",
        "nobody uses it",
    )


def test_close_without_words_is_refused(ask):
    answer = ask.refused("task-mutate", "close", id=ask.new("Form"), summary="  ")
    assert "summary" in answer["error"]


def test_release_gives_back_and_hands_over(ask):
    task = ask.new("Form")
    ask.mutate("claim", id=task)
    assert ask.mutate("release", id=task, to="next-session")["task"]["sessionId"] == "next-session"
    assert ask.refused("task-mutate", "release", id=task)["code"] == "task_claimed"
    assert ask.mutate("release", id=task, force=True)["task"]["status"] == "open"


def test_reopen_makes_a_closed_task_open(ask):
    task = ask.new("Form")
    ask.mutate("close", id=task, summary="done")
    assert ask.mutate("reopen", id=task)["task"]["status"] == "open"


def test_update_changes_named_fields_only(ask):
    task = ask.new("Form", description="as it was", labels=["a"])
    changed = ask.mutate(
        "update", id=task, title="Login form", priority=1, labels=["b", "c"], type="bug"
    )["task"]
    assert (changed["title"], changed["priority"], changed["labels"]) == (
        "Login form",
        1,
        ["b", "c"],
    )
    assert (changed["type"], changed["description"]) == ("bug", "as it was")
    assert "nothing to change" in ask.refused("task-mutate", "update", id=task)["error"]


def test_dep_adds_and_removes(ask):
    first, second = ask.new("first"), ask.new("second")
    added = ask.mutate("dep", taskId=second, dependsOn=first)["task"]
    assert added["dependencies"] == [{"taskId": second, "dependsOnId": first, "type": "blocks"}]
    assert (
        "dependencies" not in ask.mutate("dep", taskId=second, dependsOn=first, add=False)["task"]
    )


def test_dep_that_closes_a_circle_is_refused_with_its_path(ask):
    first = ask.new("first")
    second = ask.new("second", dependsOn=first)
    answer = ask.refused("task-mutate", "dep", taskId=first, dependsOn=second)
    assert answer["code"] == "dependency_cycle"
    assert f"{first} → {second} → {first}" in answer["error"]


def test_link_ties_a_past_message_to_a_task(ask, memory):
    task = ask.new("Form")
    message = memory.messages.add(thread_id="talk", role="user", content="use Zod")
    answer = ask.mutate("link", taskId=task, messageId=message.id, relation="created_from")
    assert answer["link"] == {"taskId": task, "messageId": message.id, "relation": "created_from"}
    assert [each.message.id for each in memory.links.messages(task)] == [message.id]
    assert "not found" in ask.refused("task-mutate", "link", taskId=task, messageId="nope")["error"]


def test_update_context_writes_the_page_a_section_or_a_threads_own(ask, memory):
    whole = ask.mutate("update_context", content="# Project\n\n## Tech Stack\n- Tests: Jest\n")[
        "workingMemory"
    ]
    assert (whole["scope"], whole["version"]) == ("resource", 1)
    part = ask.mutate("update_context", content="- Tests: Vitest", section="Tech Stack")[
        "workingMemory"
    ]
    assert "Vitest" in part["content"]
    assert "Jest" not in part["content"]
    assert part["content"].startswith("# Project")
    own = ask.mutate("update_context", content="only here", scope="thread")["workingMemory"]
    assert (own["threadId"], own["content"].strip()) == ("talk", "only here")
    assert memory.working.get("resource").content == part["content"]


def test_update_context_against_an_older_version_is_refused(ask):
    ask.mutate("update_context", content="one")
    ask.mutate("update_context", content="two", expectedVersion=1)
    assert (
        ask.refused("task-mutate", "update_context", content="three", expectedVersion=1)["code"]
        == "conflict"
    )


def test_update_context_of_a_thread_that_nobody_named_is_refused(memory):
    outcome = Toolbox(memory).call(
        "task-mutate", {"action": "update_context", "content": "x", "scope": "thread"}
    )
    assert "threadId" in outcome.structured["error"]
