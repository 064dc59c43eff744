"""What is for one person or one session alone is seen by no other, at any door."""

from __future__ import annotations

import pytest

import smara
from smara.core.events import HostEvent
from smara.errors import NotFoundError
from smara.knowledge.models import Evidence, MemoryTotals, WorkUnit
from smara.testing import FakeClock
from smara.tools import Toolbox
from tests.surfaces.shell import smara as command

WORDS = "Production deploys go through the quokka gateway on port 9431"
FILE = "src/deploy.py"


def opened(where, actor, session=None):
    return smara.open(where, actor=actor, session=session, embedder="off")


def stored(where, more_files=(), **more):
    given = {
        "type": "gotcha",
        "files": [FILE, *more_files],
        "by": "person",
        "confidence": 0.95,
        "evidence": [Evidence(quote="$ ssh -L 9431:gateway:22")],
    }
    with opened(where, "ann", "one") as memory:
        added = memory.memories.add(WORDS, **given | more)
        return added.memory.id


def seen(where, memory_id, actor, session=None):
    """Return the doors at which someone comes to see the memory."""
    doors = set()
    with opened(where, actor, session) as memory:
        answer = memory.search("quokka gateway port")
        texts = {
            "list": [each.content for each in memory.memories.list(state="all").memories],
            "find": getattr(memory.memories.find(memory_id), "content", ""),
            "files": [each.content for each in memory.memories.for_files([FILE])],
            "export": [each.content for each in memory.memories.export()],
            "search": [hit.content for hit in answer],
            "pack": memory.pack(answer).text,
            "search memories": [
                each.memory.content for each in memory.search_memories("quokka gateway")
            ],
            "pattern": str(memory.search_pattern("quokka gateway")),
            "start": str(memory.moments.start("other", agent="claude", cwd="/")),
            "preview": memory.moments.preview().text,
            "file touched": str(memory.moments.before_tool("other", "Edit", {"file_path": FILE})),
            "planner": memory.moments.for_planner((), WORDS).text,
            "coder": memory.moments.for_coder((), lambda path: path),
            "qa": memory.moments.for_qa() + memory.behavior.qa_context(),
            "hand-over": memory.behavior.relay("native", "coder", "qa_reviewer"),
            "review": memory.memories.to_review(),
            "audit": memory.memories.audit(),
            "code": memory.internals.code_knowledge.links(),
            "prepared": str(memory.moments.prepared(agent="claude", cwd="/")),
            "tools": Toolbox(memory).call(
                "memory-search", {"action": "search", "query": "quokka gateway port"}
            ),
        }
        doors |= {door for door, text in texts.items() if "9431" in str(text)}
        try:
            memory.memories.get(memory_id)
            memory.memories.why(memory_id)
            doors.add("get")
        except NotFoundError:
            pass
    return doors


@pytest.fixture
def as_bob(where, monkeypatch):
    monkeypatch.setenv("SMARA_DB", where)
    monkeypatch.setenv("SMARA_ACTOR", "bob")


def test_personal_memory_is_its_authors_at_every_door(where):
    memory_id = stored(where, visibility="personal")
    assert {"list", "find", "get", "search", "start", "export"} <= seen(where, memory_id, "ann")
    assert seen(where, memory_id, "bob") == set()


def test_personal_memory_is_not_shown_on_the_command_line_of_another(where, as_bob):
    memory_id = stored(where, visibility="personal")
    for call in (
        ("memories", "list"),
        ("search", "quokka gateway"),
        ("context", "preview"),
        ("memories", "show", memory_id),
        ("memories", "review"),
    ):
        said = command(*call)
        assert "9431" not in said.out + said.err, call


def test_another_cannot_change_a_personal_memory_nor_is_its_own_folded_into_it(where):
    memory_id = stored(where, visibility="personal")
    with opened(where, "bob") as memory:
        with pytest.raises(NotFoundError):
            memory.memories.forget(memory_id, by="person")
        own = memory.memories.remember(WORDS, type="gotcha", files=[FILE])
        assert (own.outcome, own.memory.created_by) == ("added", "bob")


@pytest.mark.parametrize("scope", ["session", "work_unit"])
def test_memory_of_a_session_or_a_unit_of_work_is_seen_in_that_session_alone(where, scope):
    memory_id = stored(where, scope=scope, session_id="one")
    assert {"list", "find", "get", "search"} <= seen(where, memory_id, "ann", "one")
    assert seen(where, memory_id, "ann", "two") == set()
    assert seen(where, memory_id, "ann") == set()


@pytest.mark.parametrize("scope", ["session", "work_unit"])
def test_memory_of_a_session_without_a_session_is_refused(where, scope):
    with opened(where, "ann") as memory:
        added = memory.memories.add(WORDS, type="gotcha", scope=scope, files=[FILE])
        assert (added.outcome, added.memory) == ("refused", None)
        assert "SMARA_SESSION" in str(added.why)


def test_memory_of_a_unit_of_work_is_seen_by_who_holds_its_task(where):
    with opened(where, "ann", "one") as memory:
        task = memory.tasks.add("Move the gateway")
    unit = WorkUnit("native", ("gateway", task.short_id))
    memory_id = stored(where, scope="work_unit", work_unit=unit)
    assert seen(where, memory_id, "bob", "two") == set()
    with opened(where, "bob", "two") as memory:
        memory.tasks.claim(task.id)
    assert {"list", "find", "get", "search"} <= seen(where, memory_id, "bob", "two")
    assert seen(where, memory_id, "bob", "three") == set()


def test_memory_of_a_unit_of_work_is_of_the_one_task_that_its_session_holds(where):
    with opened(where, "ann", "one") as memory:
        task = memory.tasks.add("Move the gateway")
        memory.tasks.claim(task.id)
    memory_id = stored(where, scope="work_unit")
    with opened(where, "ann", "one") as memory:
        assert memory.memories.get(memory_id).work_unit.hierarchy == (task.short_id,)
        memory.tasks.release(task.id)
    with opened(where, "bob", "two") as memory:
        memory.tasks.claim(task.id)
    assert {"list", "find", "get", "search"} <= seen(where, memory_id, "bob", "two")


@pytest.mark.parametrize(
    ("hierarchy", "is_seen"),
    [(("gw", "2_1"), True), (("gw", "3"), False), (("gw",), False), (("gw", "2x1"), False)],
)
def test_memory_of_a_unit_of_work_is_seen_where_that_unit_is_at_hand(where, hierarchy, is_seen):
    memory_id = stored(where, scope="work_unit", work_unit=WorkUnit("native", ("gw", "2_1")))
    with opened(where, "bob") as memory:
        memory.behavior.observe(HostEvent("claude", "prompt", "two", at_ms=1, prompt="go"))
        memory.behavior.checkpoint("two", WorkUnit("native", hierarchy))
    doors = seen(where, memory_id, "bob", "two")
    assert {"list", "find", "get", "search"} <= doors if is_seen else doors == set()


def test_session_is_told_its_own_memories_whatever_the_settings_say(where):
    stored(where, scope="session", session_id="one")
    with opened(where, "bob") as memory:
        moments = memory.moments
        assert "9431" in str(moments.start("one"))
        assert moments.start("two") is None


def test_planner_of_a_session_is_given_that_sessions_memories(where):
    stored(where, scope="session", session_id="one", type="dead_end")
    with opened(where, "bob") as memory:
        planned = [memory.moments.for_planner((), session_id=each).text for each in ("one", "two")]
        assert ["9431" in each for each in planned] == [True, False]


@pytest.mark.parametrize("more", [{"visibility": "personal"}, {"scope": "session"}])
def test_nothing_counts_what_is_hidden(where, more):
    stored(where, **more)
    with opened(where, "bob", "two") as memory:
        assert memory.memories.totals() == MemoryTotals()
        assert memory.memories.audit().total == 0
        assert set(memory.status()["memories"].values()) == {0}
        assert memory.search("quokka gateway port").total_hits == 0
        assert memory.search_memories("quokka gateway port").total_hits == 0
        assert memory.complete("quok") == []
        assert memory.moments.start("new") is None  # "1 noted memory waits" would be a hint
    with opened(where, "ann", "one") as memory:
        assert memory.memories.totals().active == 1


def test_upkeep_prunes_what_is_hidden_from_it(where):
    clock = FakeClock()
    with smara.open(where, actor="ann", session="one", clock=clock) as memory:
        memory.memories.add(WORDS, type="gotcha", scope="session", visibility="personal")
        clock.advance(2_000 * 86_400)
    with smara.open(where, actor="bob", clock=clock) as memory:
        assert len(memory.memories.prune(dry_run=True).deprecated) == 1
        assert len(memory.memories.prune().deprecated) == 1


@pytest.mark.parametrize("more", [{}, {"visibility": "project"}, {"scope": "global"}])
def test_memory_of_the_project_is_seen_by_all(where, more):
    memory_id = stored(where, **more)
    assert {"list", "find", "get", "search", "start", "tools"} <= seen(where, memory_id, "bob")


def test_memory_that_is_written_for_another_is_answered_and_then_out_of_sight(where):
    with opened(where, "ann") as memory:
        added = memory.memories.remember(WORDS, visibility="personal", actor="bob")
        assert added.memory.created_by == "bob"
        assert memory.memories.find(added.memory.id) is None


@pytest.fixture
def at_root(tmp_path, monkeypatch):
    """Return the root of a repository with two modules, which is the folder at hand."""
    root = tmp_path / "shop"
    for folder in (".git", "src/billing", "src/cart"):
        (root / folder).mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.chdir(root)
    return root


def told(where, root, place="", **asked):
    """Return the doors that tell the memory of a module unasked, at some place in the project."""
    cwd = str(root / place)
    path = f"{place or 'src/cart'}/deploy.py"
    with opened(where, "bob") as memory:
        moments, behavior = memory.moments, memory.behavior
        texts = {
            "start": moments.start("start", agent="claude", cwd=cwd),
            "start with files": moments.start("files", cwd=str(root), files=[str(root / path)]),
            "preview": moments.preview(cwd=cwd).text,
            "brief": moments.prepared(agent="claude", cwd=cwd).start,
            "file": moments.before_tool("file", "Edit", {"file_path": path}),
            "file read": moments.after_tool("read", "Read", {"file_path": path}),
            "for files": memory.memories.for_files([path], is_injectable_only=True),
            "first message": moments.first_message("said", "Deploy production by the gateway"),
        }
        if asked:
            modules = asked["modules"]
            texts |= {
                "planner": moments.for_planner(modules, WORDS).text,
                "qa": moments.for_qa(modules),
                "qa context": behavior.qa_context(modules),
                "hand-over": behavior.relay("native", "coder", "qa_reviewer", modules=modules),
                "search": memory.search_memories("quokka gateway", modules=modules),
            }
        return {door for door, text in texts.items() if "9431" in str(text)}


@pytest.mark.parametrize("module", ["billing", "src/billing", "src.billing", "src/billing/"])
def test_memory_of_a_module_is_told_unasked_where_the_module_is_at_hand(where, at_root, module):
    memory_id = stored(where, modules=[module], more_files=["src/billing/deploy.py"])
    assert told(where, at_root) == set()
    assert told(where, at_root, "src/cart", modules=["cart"]) == set()
    inside = told(where, at_root, "src/billing", modules=[module])
    assert {"start", "start with files", "preview", "brief", "file", "for files"} <= inside
    assert {"hand-over", "search"} <= inside
    assert {"list", "find", "get", "search", "search memories"} <= seen(where, memory_id, "bob")


@pytest.mark.parametrize(
    ("doors", "more"),
    [
        ({"planner"}, {"type": "workflow_recipe"}),
        ({"planner"}, {"type": "dead_end"}),
        ({"qa", "qa context"}, {"type": "error_pattern", "data": {"error": "port 9431 is shut"}}),
    ],
)
def test_memory_of_a_module_is_given_to_the_stages_of_that_module_alone(
    where, at_root, doors, more
):
    stored(where, scope="module", modules=["billing"], **more)
    assert doors <= told(where, at_root, modules=["billing"])
    assert told(where, at_root, modules=["cart"]) == set()


def test_memory_of_no_named_module_is_about_the_whole_project(where, at_root):
    stored(where, scope="module")
    assert {"start", "preview", "brief"} <= told(where, at_root, "src/cart")


def test_memory_of_a_module_without_files_is_told_at_a_file_of_the_module(where):
    stored(where, scope="module", modules=["shop/billing"], files=[])
    with opened(where, "bob", "two") as memory:
        told = memory.moments.before_tool("two", "Edit", {"file_path": "src/shop/billing/tax.py"})
        assert told is not None
        assert "9431" in told.text
        assert memory.moments.before_tool("three", "Edit", {"file_path": "src/mail/a.py"}) is None


def test_the_level_of_trust_counts_what_its_reader_may_see(where):
    stored(where, visibility="personal", source="agent_explicit", by="agent")
    with opened(where, "ann", "one") as memory:
        for each in memory.memories.list():
            memory.memories.verify(each.id)
        assert memory.memories.trust().confirmed_share == 1.0
    with opened(where, "bob", "two") as memory:
        assert memory.memories.trust().confirmed_share == 0.0
