"""Nothing said in one project is seen from another, on any path (ruling 48); resources narrow
inside a project.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from smara.errors import NotFoundError
from tests.contract.both import leaks

# Each reads with ids and words that belong to the other project and must come back with nothing.
READS = {
    "threads.find": lambda memory, seen: memory.threads.find(seen.thread_id),
    "threads.list": lambda memory, seen: memory.threads.list(),
    "threads.list by resource": lambda memory, seen: memory.threads.list(
        resource_id=seen.resource_id
    ),
    "messages.find": lambda memory, seen: memory.messages.find(seen.id),
    "messages.list": lambda memory, seen: memory.messages.list(thread_id=seen.thread_id),
    "messages.list after": lambda memory, seen: memory.messages.list(
        thread_id=seen.thread_id, after=0, limit=5
    ),
    "messages.stream": lambda memory, seen: list(memory.messages.stream(thread_id=seen.thread_id)),
    "messages.last_tokens": lambda memory, seen: memory.messages.last_tokens(
        thread_id=seen.thread_id, tokens=999
    ),
    "messages.sizes": lambda memory, seen: memory.messages.sizes(
        thread_id=seen.thread_id, tokens=999
    ),
    "messages.seal": lambda memory, seen: memory.messages.seal(thread_id=seen.thread_id),
    "history.window": lambda memory, seen: memory.history.window(seen.thread_id),
    "compactions.list": lambda memory, seen: memory.compactions.list(seen.thread_id),
    "search": lambda memory, seen: list(memory.search("walrus refresh_tokens")),
    "search in thread": lambda memory, seen: list(
        memory.search("walrus", thread_id=seen.thread_id)
    ),
    "search in resource": lambda memory, seen: list(
        memory.search("walrus", resource_id=seen.resource_id)
    ),
    "search by task": lambda memory, seen: list(memory.search("walrus", task_id="T1")),
    "search by role": lambda memory, seen: list(memory.search("walrus", role="user")),
    "search by time": lambda memory, seen: list(memory.search("walrus", since=0)),
    "search a fragment": lambda memory, seen: list(memory.search("fresh_tok")),
    "search a phrase": lambda memory, seen: list(memory.search('"the walrus"')),
    "search total": lambda memory, seen: memory.search("walrus").total_hits,
    "search_threads": lambda memory, seen: memory.search_threads("walrus"),
    "complete": lambda memory, seen: memory.complete("walr"),
}
# Each touches something of the other project by its id and must be told that there is no such
# thing.
TOUCHES = {
    "threads.get": lambda memory, seen: memory.threads.get(seen.thread_id),
    "threads.update": lambda memory, seen: memory.threads.update(seen.thread_id, title="mine"),
    "messages.get": lambda memory, seen: memory.messages.get(seen.id),
    "messages.around": lambda memory, seen: memory.messages.around(seen.id),
    "messages.extend": lambda memory, seen: memory.messages.extend(seen.id, "mine"),
    "compactions.compact": lambda memory, seen: memory.compactions.compact(seen.thread_id),
    "compactions.end_session": lambda memory, seen: memory.compactions.end_session(seen.thread_id),
    "compactions.undo": lambda memory, seen: memory.compactions.undo(seen.compaction.id),
}
PROJECTS = ("alpha", "beta", "αλφα project")


@pytest.fixture
def projects(open_again):
    """Three projects, each with the same kind of things in a thread of its own; what was said in
    each.
    """
    memories = {name: open_again(project=name) for name in PROJECTS}
    seen = {}
    for name, memory in memories.items():
        added = memory.messages.add(
            thread_id=f"thread of {name}",
            role="user",
            content=f"the walrus of {name} has refresh_tokens",
            resource_id=f"r-{name}",
            task_id="T1",
        )
        memory.compactions.compact(added.thread_id)
        seen[name] = memory.messages.get(added.id)
    return memories, seen


def test_every_read_from_another_project_comes_back_with_nothing_of_it(projects):
    assert leaks(READS, *projects) == []


def test_every_read_by_an_id_of_another_project_is_empty(projects):
    memories, seen = projects
    by_id = [
        path
        for path in READS
        if path.startswith(("messages", "history", "compactions", "threads.find", "search in"))
    ]
    answers = {
        (path, here): READS[path](memories[here], seen[there])
        for path in by_id
        for here, there in pairwise(PROJECTS)
    }
    assert {key: value for key, value in answers.items() if value} == {}


def test_every_read_from_the_project_itself_finds_it(projects):
    memories, seen = projects
    empty = [
        (path, name)
        for path, read in READS.items()
        for name in PROJECTS
        if not read(memories[name], seen[name])
    ]
    assert empty == []


@pytest.mark.parametrize("path", TOUCHES)
def test_nothing_of_another_project_can_be_touched(projects, path):
    memories, seen = projects
    for here in PROJECTS:
        for there in PROJECTS:
            if here != there:
                with pytest.raises(NotFoundError):
                    TOUCHES[path](memories[here], seen[there])
    assert all(memories[name].messages.get(seen[name].id) == seen[name] for name in PROJECTS)


def test_a_total_counts_only_what_is_in_the_project(projects):
    memories, _ = projects
    assert [memories[name].search("walrus").total_hits for name in PROJECTS] == [1, 1, 1]


def test_the_same_thread_id_in_two_projects_is_two_threads(open_again):
    for project in ("a", "b"):
        open_again(project=project).messages.add(
            thread_id="t", role="user", content=f"from {project}"
        )
    assert [m.raw_content for m in open_again(project="b").messages.list(thread_id="t")] == [
        "from b"
    ]


def test_a_store_that_is_named_starts_in_the_default_project(memory):
    assert memory.project == "default"


def test_words_of_another_project_are_not_completed(open_again):
    open_again(project="a").messages.add(thread_id="t", role="user", content="walrus")
    other = open_again(project="b")
    other.messages.add(thread_id="t", role="user", content="walnut")
    assert other.complete("wal") == ["walnut"]


def test_resources_narrow_what_is_searched_and_listed(memory, say):
    say("the walrus", thread_id="a", resource_id="ann")
    say("the walrus", thread_id="b", resource_id="bob")
    assert [hit.resource_id for hit in memory.search("walrus", resource_id="ann")] == ["ann"]
    assert [thread.id for thread in memory.threads.list(resource_id="bob")] == ["b"]
    assert [hit.thread_id for hit in memory.search_threads("walrus", resource_id="bob")] == ["b"]


def test_a_resource_whose_name_begins_like_another_is_not_mixed_up_with_it(memory, say):
    for name in ("ann", "ann 2", "Ann", "anna", "ann%", "a_n"):
        say("the walrus", thread_id=f"t-{name}", resource_id=name)
    assert [hit.resource_id for hit in memory.search("walrus", resource_id="ann")] == ["ann"]


def test_a_resource_that_nobody_has_finds_nothing(memory, say):
    say("the walrus")
    assert list(memory.search("walrus", resource_id="nobody")) == []
