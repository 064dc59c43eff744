"""What hooks were given to say holds for as long as the store says so, on both databases and in
every arm.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import smara
from smara.adapters.hosts import brief as briefs
from smara.adapters.hosts import reply
from smara.adapters.hosts.hook_store import drain_in_background
from smara.adapters.hosts.precompute import instructions_of
from smara.adapters.hosts.reply import choose
from smara.context.moments.experiment import arm_of
from smara.environment import spool_folder
from smara.memory import Memory
from tests.unit.hosts.hooks import claude, spooled

TRAP = "cart.py counts in cents, so that a total is never rounded twice"


@pytest.fixture
def folder(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The spool of a store that knows a trap, in a repository of its own, with a brief."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("SMARA_DB", where)
    monkeypatch.setenv("SMARA_PROJECT", "default")
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))
    change(
        lambda memory: memory.memories.add(
            TRAP, type="gotcha", files=["cart.py"], by="person", source="user_taught"
        )
    )
    spool = spool_folder()
    brief(spool)
    return spool


def change(work: Callable[[Memory], object]) -> None:
    with smara.open(project="default", durability="normal") as memory:
        work(memory)


def trap(memory: Memory) -> str:
    return next(each.id for each in memory.memories.list(type="gotcha") if each.content == TRAP)


def brief(folder: str, cwd: str = ".") -> None:
    spooled(folder, claude("Stop", last_assistant_message="x", cwd=str(Path(cwd).resolve())))
    drain_in_background(folder)


def hooked(event: str, folder: str, session_id: str = "s1", **fields: object) -> str | None:
    payload = {"session_id": session_id, "cwd": str(Path.cwd()), **fields}
    said = reply.answer("claude", event, json.dumps(payload).encode(), folder=folder)
    return json.loads(said)["hookSpecificOutput"]["additionalContext"] if said else None


def read(folder: str, session_id: str = "s1", file: str = "cart.py") -> str | None:
    return hooked(
        "PostToolUse", folder, session_id, tool_name="Read", tool_input={"file_path": file}
    )


def start(folder: str, session_id: str = "s1") -> str | None:
    return hooked("SessionStart", folder, session_id, source="startup")


def receipts(folder: str) -> list[tuple[str, str, str | None, bool]]:
    drain_in_background(folder)
    with smara.open(project="default") as memory:
        return [
            (each.session_id, each.point, each.arm, each.is_said)
            for each in memory.moments.receipts()
        ][::-1]


def texts(folder: str) -> str:
    return "".join(path.read_text() for path in Path(folder, briefs.FOLDER).iterdir())


def test_a_call_about_nothing_that_is_known_is_answered_without_the_store(folder):
    told = {
        "session_id": "s1",
        "cwd": str(Path.cwd()),
        "tool_name": "Read",
        "tool_input": {"file_path": "other.py"},
    }
    assert choose("claude", "PostToolUse", told, folder=folder) == []


def test_what_is_known_is_said_once_and_has_one_receipt(folder):
    assert TRAP in (start(folder) or "")
    assert read(folder) is None  # the start has said it
    assert TRAP in (read(folder, "s2") or "")
    assert read(folder, "s2") is None
    assert receipts(folder) == [("s1", "start", None, True), ("s2", "after_tool", None, True)]


def test_a_helper_of_an_agent_is_told_what_the_agent_knows_already_and_its_use_is_seen(folder):
    assert TRAP in (start(folder) or "")
    call = {"tool_name": "Read", "tool_input": {"file_path": "cart.py"}}
    assert TRAP in (
        hooked("PostToolUse", folder, agent_id="a1", agent_type="Explore", tool_use_id="t1", **call)
        or ""
    )
    assert hooked("PostToolUse", folder, agent_id="a1", tool_use_id="t2", **call) is None
    assert receipts(folder) == [
        ("s1", "start", None, True),
        ("s1/agent-a1", "after_tool", None, True),
    ]
    with smara.open(project="default") as memory:
        short_id = memory.memories.get(trap(memory)).short_id
    said = {"last_assistant_message": f"See {short_id}.", "agent_id": "a1", "cwd": str(Path.cwd())}
    spooled(folder, claude("SubagentStop", **said))
    drain_in_background(folder)
    with smara.open(project="default") as memory:
        assert [each.used_how for each in memory.moments.receipts("s1/agent-a1")] == ["cited"]


WAYS: dict[str, Callable[[Memory], object]] = {
    "forgotten": lambda memory: memory.memories.forget(trap(memory), by="person"),
    "rejected": lambda memory: memory.memories.reject(trap(memory), "wrong"),
    "marked stale": lambda memory: memory.memories.mark_stale(
        trap(memory), "it moved", by="person"
    ),
    "superseded": lambda memory: memory.memories.supersede(
        trap(memory), another(memory), by="person"
    ),
    "merged": lambda memory: memory.memories.merge(another(memory), [trap(memory)], by="person"),
    "changed": lambda memory: memory.memories.update(
        trap(memory), content="totals are rounded at the till", by="person"
    ),
    "pruned": lambda memory: (
        memory.memories.forget(trap(memory), by="person"),
        memory.memories.prune(),
    ),
}


def another(memory: Memory) -> str:
    words = "cart.py counts in tenths of cents since the tax is added per line"
    added = memory.memories.add(
        words, type="gotcha", files=["cart.py"], by="person", source="user_taught"
    ).memory
    assert added is not None
    return added.id


@pytest.mark.parametrize("way", WAYS)
def test_what_was_taken_back_is_said_no_more_and_is_gone_from_the_disk_with_the_next_drain(
    way, folder
):
    assert TRAP in texts(folder)
    change(WAYS[way])
    assert TRAP not in (read(folder) or "")
    assert TRAP not in (start(folder, "s2") or "")
    drain_in_background(folder)
    assert TRAP not in texts(folder)


def test_what_may_be_told_unasked_no_more_is_not(folder):
    """A trap that an agent noted is told at a high level of trust, and not at a low one."""
    change(lambda memory: memory.memories.set_trust_level(3))
    change(
        lambda memory: memory.memories.add(
            "till.py locks the drawer for a minute after each sale",
            type="gotcha",
            files=["till.py"],
            confidence=0.9,
            by="agent",
        )
    )
    brief(folder)
    assert "drawer" in (read(folder, "s1", "till.py") or "")
    change(lambda memory: memory.memories.set_trust_level(1))
    assert "drawer" not in (read(folder, "s2", "till.py") or "")


def test_the_brief_of_another_folder_is_made_anew_as_well(folder, where, tmp_path, monkeypatch):
    here = Path.cwd()
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    monkeypatch.chdir(other)
    brief(folder)
    assert len(list(Path(folder, briefs.FOLDER).iterdir())) == 4
    change(WAYS["forgotten"])
    monkeypatch.chdir(here)
    brief(folder)
    assert TRAP not in texts(folder)


def test_switching_it_off_counts_at_once(folder, monkeypatch, tmp_path):
    assert TRAP in (start(folder) or "")
    settings = tmp_path / "smara.toml"
    settings.write_text('moments = "off"\n')
    monkeypatch.setenv("SMARA_CONFIG", str(settings))
    assert start(folder, "s2") is None
    assert read(folder, "s3") is None
    monkeypatch.setenv("SMARA_MOMENTS", "start")
    assert TRAP in (start(folder, "s4") or "")
    assert read(folder, "s5") is None


def test_the_preview_is_what_a_hook_says_byte_for_byte_also_when_the_agent_has_read_more_files(
    folder,
):
    change(
        lambda memory: memory.memories.add(
            "Sessions are kept in Redis since the balancer has no state",
            type="decision",
            by="person",
            source="user_taught",
        )
    )
    rules = Path("rules.md").resolve()
    rules.write_text(f"- {TRAP}\n")
    loaded = {
        "file_path": str(rules),
        "memory_type": "Project",
        "load_reason": "include",
        "cwd": str(Path.cwd()),
    }
    spooled(folder, claude("InstructionsLoaded", **loaded))
    drain_in_background(folder)
    said = start(folder) or ""
    with smara.open(project="default") as memory:
        texts = instructions_of("claude", str(Path.cwd()), folder)
        shown = memory.moments.preview(agent="claude", cwd=str(Path.cwd()), known_texts=texts)
    assert "Redis" in said
    assert TRAP not in said
    assert said == shown.text


def test_a_hook_that_names_another_project_is_not_told_of_this_one(folder, monkeypatch):
    assert TRAP in (start(folder) or "")
    monkeypatch.setenv("SMARA_PROJECT", "other")
    assert start(folder, "s2") is None
    assert read(folder, "s3") is None
    spooled(
        folder, claude("Stop", last_assistant_message="x", cwd=str(Path.cwd())), project="default"
    )
    drain_in_background(folder)
    assert start(folder, "s4") is None
    monkeypatch.setenv("SMARA_PROJECT", "default")
    assert TRAP in (start(folder, "s5") or "")


def sessions(arm: str, count: int) -> list[str]:
    return [name for name in map(str, range(1_000)) if arm_of(name, "default") == arm][:count]


def test_each_arm_hears_what_it_is_to_hear_and_its_receipts_say_so(folder):
    change(lambda memory: memory.moments.set_arms(True))
    brief(folder)
    (control,), (passive,), (full,) = (sessions(arm, 1) for arm in ("control", "passive", "full"))
    assert start(folder, control) is None
    assert TRAP in (start(folder, passive) or "")
    assert TRAP in (start(folder, full) or "")
    assert receipts(folder) == [
        (control, "start", "control", False),
        (passive, "start", "passive", True),
        (full, "start", "full", True),
    ]


def test_around_tools_the_passive_arm_hears_nothing_and_control_has_a_receipt_of_what_it_did_not(
    folder,
):
    change(lambda memory: memory.moments.set_arms(True))
    brief(folder)
    (control,), (passive,), (full,) = (sessions(arm, 1) for arm in ("control", "passive", "full"))
    assert read(folder, control) is None
    assert read(folder, passive) is None
    assert TRAP in (read(folder, full) or "")
    assert receipts(folder) == [
        (control, "after_tool", "control", False),
        (full, "after_tool", "full", True),
    ]


def test_an_experiment_that_was_begun_since_is_heeded_at_once(folder):
    change(lambda memory: memory.moments.set_arms(True))
    (control,) = sessions("control", 1)
    assert start(folder, control) is None
    assert read(folder, control) is None


GIVEN = {"type": "gotcha", "files": ["net/gate.py"], "by": "person", "source": "user_taught"}
GATE = "The gateway is reached on port 9431 while its tunnel is open"


def test_session_is_told_its_own_memories_and_no_other_is(folder):
    change(lambda memory: memory.memories.add(GATE, scope="session", session_id="own", **GIVEN))
    brief(folder)
    assert "9431" not in texts(folder)
    assert "9431" in (start(folder, "own") or "")
    assert "9431" not in (start(folder, "s2") or "")
    assert read(folder, "s2", "net/gate.py") is None


def test_session_in_the_folder_of_a_module_is_told_its_memories(folder):
    change(lambda memory: memory.memories.add(GATE, modules=["net"], **GIVEN))
    Path("net").mkdir()
    brief(folder, "net")
    assert "9431" not in (start(folder, "s2") or "")
    assert "9431" in (read(folder, "s4", "net/gate.py") or "")
    inside = {"source": "startup", "cwd": str(Path("net").resolve())}
    assert "9431" in (hooked("SessionStart", folder, "s3", **inside) or "")


def test_an_actor_that_holds_a_secret_is_not_written_into_a_brief(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    monkeypatch.setenv("SMARA_ACTOR", token)
    brief(folder)
    files = [each for each in Path(folder).rglob("*") if each.is_file()]
    assert any('"actor"' in each.read_text("utf-8", "replace") for each in files)
    assert not [each for each in files if token in each.read_text("utf-8", "replace")]
