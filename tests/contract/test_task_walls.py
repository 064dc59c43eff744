"""Tasks behind the wall of their project (ruling 48), and without secrets (rulings 27 and 38)."""

from __future__ import annotations

import pytest

from smara.tasks.models import NewTask
from tests.contract.both import EACH_DATABASE, is_not_found, kinds, leaks
from tests.contract.task_place import HOUR, titles

pytestmark = EACH_DATABASE

PROJECTS = ("alpha", "beta", "αλφα project")
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
AWS = "AKIA" + "Z7QK3MWL2XJ5TB6R"

READS = {
    "find": lambda memory, seen: memory.tasks.find(seen["task"].id),
    "find short": lambda memory, seen: memory.tasks.find(seen["task"].short_id),
    "find prefix": lambda memory, seen: memory.tasks.find(seen["task"].short_id[:-1]),
    "ready": lambda memory, seen: list(memory.tasks.ready(limit=100)),
    "ready by label": lambda memory, seen: list(memory.tasks.ready(label="walrus")),
    "list": lambda memory, seen: list(memory.tasks.list()),
    "list by assignee": lambda memory, seen: list(memory.tasks.list(assignee="ann")),
    "search": lambda memory, seen: list(memory.search_tasks("walrus", limit=100).hits),
    "search with messages": lambda memory, seen: (
        memory.search_tasks("walrus", limit=100, include_messages=True).hits
    ),
    "search total": lambda memory, seen: memory.search_tasks("walrus").total_hits,
    "tree": lambda memory, seen: memory.tasks.tree(),
    "critical_path": lambda memory, seen: memory.tasks.critical_path(),
    "export": lambda memory, seen: list(memory.tasks.export()),
    "links.active": lambda memory, seen: memory.links.active(seen["message"].thread_id),
}
TOUCHES = {
    "get": lambda memory, seen: memory.tasks.get(seen["task"].id),
    "get short": lambda memory, seen: memory.tasks.get(seen["task"].short_id),
    "show": lambda memory, seen: memory.tasks.show(seen["task"].id),
    "claim": lambda memory, seen: memory.tasks.claim(seen["task"].id, session_id="s1"),
    "release": lambda memory, seen: memory.tasks.release(seen["task"].id, session_id="s1",
    force=True),
    "hand_over": lambda memory, seen: memory.tasks.hand_over(seen["task"].id, to_session="s2",
    force=True),
    "close": lambda memory, seen: memory.tasks.close(seen["task"].id, "mine", force=True),
    "reopen": lambda memory, seen: memory.tasks.reopen(seen["task"].id),
    "update": lambda memory, seen: memory.tasks.update(seen["task"].id, title="mine"),
    "depend": lambda memory, seen: memory.tasks.depend(seen["task"].id, memory.tasks.add("m",
    parent=None).id),
    "depend on": lambda memory, seen: memory.tasks.depend(memory.tasks.add("m").id,
    seen["task"].id),
    "relate to": lambda memory, seen: memory.tasks.depend(memory.tasks.add("m").id, seen["task"].id,
    type="related"),
    "undepend": lambda memory, seen: memory.tasks.undepend(seen["task"].id, seen["other"].id),
    "history": lambda memory, seen: memory.tasks.history(seen["task"].id),
    "undo": lambda memory, seen: memory.tasks.undo(seen["task"].id),
    "tree of": lambda memory, seen: memory.tasks.tree(seen["task"].id),
    "critical_path of": lambda memory, seen: memory.tasks.critical_path(seen["task"].id),
    "progress": lambda memory, seen: memory.tasks.progress(seen["task"].id),
    "restore": lambda memory, seen: memory.tasks.restore(seen["task"].id),
    "list by parent": lambda memory, seen: memory.tasks.list(parent=seen["task"].id),
    "add below": lambda memory, seen: memory.tasks.add("m", parent=seen["task"].id),
    "add behind": lambda memory, seen: memory.tasks.add("m", depends_on=[seen["task"].id]),
    "links.claim": lambda memory, seen: memory.links.claim(seen["task"].id, thread_id="t",
    session_id="s1"),
    "links.messages": lambda memory, seen: memory.links.messages(seen["task"].id),
    "links.add their message": lambda memory, seen: memory.links.add(memory.tasks.add("m").id,
    seen["message"].id),
    "links.add to their task": lambda memory, seen: memory.links.add(
        seen["task"].id, memory.messages.add(thread_id="mine", role="user", content="m").id
    ),
}  # fmt: skip


@pytest.fixture
def projects(open_again):
    """Three projects, each with tasks and a message of its own."""
    memories = {name: open_again(project=name) for name in PROJECTS}
    seen = {}
    for name, memory in memories.items():
        added = memory.tasks.add(f"the walrus of {name}", labels=["walrus"], assignee="ann")
        other = memory.tasks.add(f"the other of {name}", depends_on=[added.id])
        said = memory.messages.add(
            thread_id=f"thread of {name}", role="user", content=f"walrus said of {name}"
        )
        memory.links.add(added.id, said.id)
        seen[name] = {"task": memory.tasks.get(added.id), "other": other, "message": said}
    return memories, seen


def test_every_read_from_another_project_comes_back_with_nothing_of_it(projects):
    assert leaks(READS, *projects) == []


def test_every_read_from_the_project_itself_finds_it(projects):
    memories, seen = projects
    paths = [path for path in READS if path not in ("links.active", "find prefix")]
    assert [
        (path, name)
        for path in paths
        for name in PROJECTS
        if not READS[path](memories[name], seen[name])
    ] == []


def test_nothing_of_another_project_can_be_touched(projects):
    memories, seen = projects
    pairs = (("alpha", "beta"), ("beta", "αλφα project"), ("αλφα project", "alpha"))
    touched = [
        (path, here, there)
        for path, touch in TOUCHES.items()
        for here, there in pairs
        if not is_not_found(lambda: touch(memories[here], seen[there]))  # noqa: B023
    ]
    assert touched == []
    for name in PROJECTS:
        kept = memories[name].tasks
        assert kept.get(seen[name]["task"].id) == seen[name]["task"]
        assert kinds(kept.history(seen[name]["task"].id)) == ["created", "linked"]


def test_totals_count_only_what_is_in_the_project(projects):
    memories, _ = projects
    for name in PROJECTS:
        totals = memories[name].tasks.totals()
        assert (totals.all, totals.ready, totals.blocked) == (2, 1, 1)
        found = memories[name].tasks.ready()
        assert (found.ready_count, found.blocked_count) == (1, 1)


def test_work_is_never_taken_from_another_project(open_again):
    mine, other = open_again(project="a").tasks, open_again(project="b").tasks
    other.add("theirs", priority=0)
    assert mine.claim_next(session_id="s1") is None
    assert other.totals().in_progress == 0


def test_a_session_that_ends_in_one_project_keeps_its_claims_in_another(open_again):
    mine, other = open_again(project="a").tasks, open_again(project="b").tasks
    for tasks in (mine, other):
        tasks.claim(tasks.add("x").id, session_id="s1")
    assert len(mine.end_session("s1")) == 1
    assert other.totals().in_progress == 1


def test_claims_of_another_project_are_not_let_go_from_here(open_again, clock):
    mine, other = open_again(project="a").tasks, open_again(project="b").tasks
    added = other.add("x")
    other.claim(added.id, session_id="s1")
    clock.advance(5 * HOUR)
    assert mine.expire() == []
    assert other.get(added.id).holder == "s1"
    assert titles(other.expire()) == ["x"]


def test_the_same_short_id_in_two_projects_is_two_tasks(open_again):
    mine, other = open_again(project="a").tasks, open_again(project="b").tasks
    for name, tasks in (("a", mine), ("b", other)):
        assert tasks.put_many([NewTask(f"of {name}", short_id="t-abcd")]).added == 1
    assert (mine.get("t-abcd").title, other.get("abcd").title) == ("of a", "of b")
    mine.close("t-abcd", "done")
    assert other.get("t-abcd").status == "open"


def test_an_import_cannot_depend_on_a_task_of_another_project(open_again):
    mine, other = open_again(project="a").tasks, open_again(project="b").tasks
    theirs = other.add("theirs")
    done = mine.put_many([NewTask("x", short_id="t-abcd", depends_on=[(theirs.id, "blocks")])])
    assert (done.dependencies, len(done.refused)) == (0, 1)


def test_an_active_task_of_another_project_links_no_message(open_again):
    mine, other = open_again(project="a"), open_again(project="b")
    theirs = other.links.claim(other.tasks.add("theirs").id, thread_id="t", session_id="s1")
    mine.threads.add("t", metadata={"activeTaskId": theirs.id, "activeTaskSession": "s1"})
    assert (
        mine.messages.add(thread_id="t", role="user", content="hi", session_id="s1").task_id is None
    )
    assert mine.links.active("t") is None


def test_decay_stays_in_its_project(open_again, clock):
    mine, other = open_again(project="a").tasks, open_again(project="b").tasks
    other.close(other.add("x", description="a long line of words to be kept. " * 300).id, "done")
    clock.advance(400 * 86_400)
    assert mine.compact() == 0
    assert other.compact() == 1


# Secrets.


def everything(memory):
    """All that can be read back, as one text."""
    kept = list(memory.tasks.export())
    return repr(
        (
            kept,
            [memory.tasks.history(each.id) for each in kept],
            [memory.tasks.show(each.id) for each in kept],
            memory.tasks.tree(),
            memory.search_tasks("rotate", limit=50, include_messages=True).hits,
        )
    )


def test_secrets_in_every_text_of_a_new_task_are_replaced(memory, tasks):
    added = tasks.add(
        f"rotate {SECRET}",
        description=f"rotate {SECRET} today",
        labels=[SECRET, "kept"],
        metadata={"token": SECRET, SECRET: 1, "list": [f"x {AWS}"]},
    )
    assert added.title.startswith("rotate ")
    assert "[REDACTED:" in added.title
    assert "kept" in added.labels
    assert SECRET not in everything(memory)
    assert AWS not in everything(memory)


def test_secrets_in_every_later_change_are_replaced_also_in_the_history(memory, tasks):
    added = tasks.add("rotate")
    tasks.update(
        added.id,
        title=f"rotate {SECRET}",
        description=AWS,
        labels=[AWS],
        metadata={"k": {"l": SECRET}},
    )
    tasks.undo(added.id)
    tasks.update(added.id, description=f"export GITHUB_TOKEN={SECRET}")
    tasks.close(added.id, f"rotated {SECRET}")
    tasks.reopen(added.id)
    assert SECRET not in everything(memory)
    assert AWS not in everything(memory)
    assert "[REDACTED:" in tasks.get(added.id).summary


def test_secrets_of_an_import_are_replaced(memory, tasks):
    tasks.put_many(
        [
            NewTask(
                f"rotate {SECRET}",
                short_id="x-111",
                description=SECRET,
                status="closed",
                summary=f"rotated {SECRET}",
                labels=[SECRET],
                metadata={"k": AWS},
            )
        ]
    )
    assert SECRET not in everything(memory)
    assert AWS not in everything(memory)


def test_a_secret_that_makes_a_title_too_long_by_its_placeholder_does_no_harm(tasks):
    added = tasks.add(f"{'x' * (500 - len(SECRET) - 1)} {SECRET}")
    assert SECRET not in added.title


def test_closing_again_with_the_same_secret_changes_nothing(tasks):
    added = tasks.add("rotate")
    before = tasks.close(added.id, f"rotated {SECRET}")
    assert tasks.close(added.id, f"rotated {SECRET}") == before


def test_a_secret_is_found_by_the_words_around_it_and_not_by_itself(memory, tasks):
    tasks.add(f"rotate {SECRET}", description="the walrus")
    assert memory.search_tasks("walrus").total_hits == 1
    assert memory.search_tasks(SECRET).total_hits == 0


def test_nothing_of_a_secret_reaches_the_disk(memory, tasks, clock, place):
    added = tasks.add(
        f"t {SECRET}", description=f"token {SECRET} " * 300, metadata={"t": SECRET}, labels=[SECRET]
    )
    tasks.update(added.id, title=SECRET + " again")
    tasks.close(added.id, f"summary {SECRET}")
    clock.advance(40 * 86_400)
    tasks.compact()
    memory.close()
    if place.kind == "sqlite":
        for file in place.address.parent.iterdir():
            assert SECRET.encode() not in file.read_bytes()


def test_a_text_without_secrets_is_stored_as_it_is(tasks):
    text = (
        "commit 3f2a9c1b7d8e4f5061728394a5b6c7d8e9f00112 and uuid "
        "01900000-0000-7abc-8000-000000000001"
    )
    assert tasks.add(text).title == text
