"""No tool call can break anything: whatever a model writes, there is an answer, and a refusal says
what is allowed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import smara
from smara.tools import Toolbox, ToolContext, task_query
from smara.tools.catalogue import EVERY_TOOL
from tests.faults.sizes import SEED, count

STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 3.0, 1.5, 10**30, -(10**30), float("nan"), float("inf"), "", " ",
    "\n", "0", "-1",
    "3.0", "high", "true", "null", "[]", "{}", '["a", "b"]', "[" * 3_000, [], [[]], {}, {"a": 1},
    [1, 2], ["a"],
    ["a", None], "x" * 70_000, "\x00", "\ud800", "\udfff\ud800", "\u202e", "重跑", "é" * 600,
        "a\u0301" * 300,
    "'; DROP TABLE tasks; --", "t-", "next", "../../etc/passwd", "<script>", "{{id}}", "%s%n", "\\",
    '"', "t-????",
    [["x"] * 50] * 3, {"$ref": "#"}, b"bytes", (1, 2), object,
]  # fmt: skip
NAMES = [
    "", " ", "Action", "__class__", "limit ", "task_id", "taskId", "id", "ID", "depends_on",
    "session_id", "x" * 5_000,
    "\ud800", "status", "$defs", "type", "page", "query", "content", "重", "self", "memory",
]  # fmt: skip


def valid_calls(
    rng: random.Random, known: list[str], messages: list[str]
) -> tuple[str, dict[str, Any]]:
    """A call that is right, with ids that exist: where mutations start from."""
    tool = rng.choice(list(EVERY_TOOL.values()))
    action = rng.choice(list(tool.actions.values()))
    call: dict[str, Any] = dict(action.example)
    for name in (
        *action.required,
        *rng.sample(action.optional, rng.randint(0, len(action.optional))),
    ):
        call[name] = _fitting(
            rng,
            tool.arguments[name],
            name,
            tasks=known,
            ids=messages if tool.name == "memory-search" else known,
        )
    if "messageId" in call:
        call["messageId"] = rng.choice(messages)
    if tool.name == "memory-record":
        call |= _noted(rng, action.name, call, messages=messages)
    return tool.name, call


def _noted(
    rng: random.Random, action: str, call: dict[str, Any], messages: list[str]
) -> dict[str, Any]:
    """What fits the arguments of an agent's note: statements, places, and memories that exist."""
    if action == "used":
        return {"id": rng.choice(MEMORIES)}
    if action == "context":
        return {}
    number = rng.randrange(10**6)
    places = [
        "src/a.py:3",
        "src/a.py@3f2a9c1:10-20",
        "words that were said",
        f"message:{rng.choice(messages)}",
    ]
    fitting = {
        "content": f"Component {number} belongs to the team that owns the parser number "
        f"{number % 97}"
    }
    fitting["evidence"] = rng.sample(places, rng.randint(1, 3))
    return fitting | ({"supersedes": rng.choice(MEMORIES)} if "supersedes" in call else {})


MEMORIES = ["m-one", "m-two", "m-three"]
"""Taught, recorded and put aside; :func:`prepared` makes them by these names."""


def _fitting(
    rng: random.Random, schema: dict[str, Any], name: str, tasks: list[str], ids: list[str]
) -> Any:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema["type"] == "integer":
        return rng.randint(schema["minimum"], min(schema["maximum"], 6))
    if schema["type"] == "boolean":
        return rng.random() < 0.5
    if schema["type"] == "array":
        return rng.sample(["auth", "ui", "重跑"], rng.randint(0, 3))
    if name in ("since", "until"):
        return "2026-03-01"
    return (
        rng.choice(ids if name == "id" else tasks)
        if name in ("id", "taskId", "parent", "dependsOn")
        else f"word {name}"
    )


def mutated(rng: random.Random, call: dict[str, Any]) -> Any:
    """The call with one to three things wrong with it."""
    changed: Any = dict(call)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not isinstance(changed, dict):
            return changed
        changed = rng.choice(MUTATIONS)(rng, changed)
    return changed


def _drop(rng: random.Random, call: dict[str, Any]) -> Any:
    gone = rng.choice(list(call) or ["action"])
    return {name: value for name, value in call.items() if name != gone}


def _replace(rng: random.Random, call: dict[str, Any]) -> Any:
    return {**call, rng.choice(list(call) or ["action"]): rng.choice(STRANGE)}


def _add(rng: random.Random, call: dict[str, Any]) -> Any:
    return {**call, rng.choice(NAMES): rng.choice(STRANGE)}


def _swap_action(rng: random.Random, call: dict[str, Any]) -> Any:
    actions = [name for tool in EVERY_TOOL.values() for name in tool.actions]
    return {
        **call,
        "action": rng.choice([*actions, "", "READY", "cl0se", "claim ", "update-context"]),
    }


def _misspell(rng: random.Random, call: dict[str, Any]) -> Any:
    name = rng.choice(list(call) or ["action"])
    at = rng.randrange(len(name) or 1)
    spelled = rng.choice(
        (
            name.upper(),
            name[:at] + name[at + 1 :],
            name + "s",
            f"_{name}",
            name[:at] + "é" + name[at:],
        )
    )
    return {spelled if key == name else key: value for key, value in call.items()}


def _nest(rng: random.Random, call: dict[str, Any]) -> Any:
    deep: Any = rng.choice(STRANGE)
    for _ in range(rng.choice((1, 5, 200))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    return {**call, rng.choice(list(call) or ["action"]): deep}


def _not_an_object(rng: random.Random, call: dict[str, Any]) -> Any:
    return rng.choice(
        (
            None,
            [],
            [call],
            "text",
            3,
            json.dumps(call, default=str),
            json.dumps(call, default=str)[:-1],
            b"\xff",
        )
    )


def _random_text(rng: random.Random, call: dict[str, Any]) -> Any:
    text = "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(0, 40)))
    return {**call, rng.choice(list(call) or ["action"]): text}


MUTATIONS: list[Callable[[random.Random, dict[str, Any]], Any]] = [
    _drop, _replace, _replace, _add, _swap_action, _misspell, _nest, _not_an_object, _random_text,
]  # fmt: skip


def complaint(
    box: Toolbox, tool: str, arguments: Any, context: ToolContext | None = None
) -> str | None:
    """What is wrong with the answer to a call; ``None`` when nothing is."""
    try:
        outcome = box.call(tool, arguments, context)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    answer = outcome.structured
    try:
        json.dumps(answer, allow_nan=False, ensure_ascii=False).encode()
        outcome.text.encode()
    except (TypeError, ValueError) as error:
        return f"cannot be written: {error}"
    if not isinstance(answer.get("action"), str) or answer.get("success") is not (
        not outcome.is_error
    ):
        return f"is malformed: {str(answer)[:200]}"
    if not outcome.text.strip() or len(outcome.text) > 60_000:
        return f"has a text of {len(outcome.text)} characters"
    return refusal_complaint(answer) if outcome.is_error else None


def refusal_complaint(answer: dict[str, Any]) -> str | None:
    """What a refusal lacks."""
    if answer.get("code") in (None, "bug", "database", "error"):
        return f"is a failure of ours: {answer}"
    if not answer["error"].strip() or len(answer["error"]) > 1_000:
        return f"says nothing: {answer}"
    told = f"{answer['error']} {answer.get('hint', '')}"
    return None if len(told.split()) >= 6 else f"does not say what is allowed: {told}"


def prepared(memory: smara.Memory) -> tuple[list[str], list[str]]:
    """A small world: tasks that depend on each other, and messages."""
    tasks = [memory.tasks.add(f"task {number}", labels=["auth"]).short_id for number in range(8)]
    for waiter, awaited in ((1, 0), (2, 1), (3, 0)):
        memory.tasks.depend(tasks[waiter], tasks[awaited])
    memory.tasks.close(tasks[7], "done")
    said = memory.messages.add_many(
        thread_id="talk",
        messages=[{"role": "user", "content": f"word {number} " * 500} for number in range(5)],
    )
    taught = memory.memories.remember("Use uv, never pip").memory
    noted = memory.memories.add(
        "Redis must run before the auth tests",
        type="gotcha",
        evidence=["tests/auth.py:3"],
        session_id="before",
    ).memory
    gone = memory.memories.add(
        "The parser reads tabs in all of its files",
        type="pattern",
        evidence=["src/parser.py:3"],
        session_id="before",
    ).memory
    assert taught is not None
    assert noted is not None
    assert gone is not None
    memory.memories.forget(gone.id, by="person")
    MEMORIES[:] = [taught.short_id, noted.id, gone.short_id]
    return tasks, [message.id for message in said]


def complaints(
    memory: smara.Memory, rng: random.Random, calls: int
) -> Iterator[tuple[str, str, str]]:
    box = Toolbox(
        memory, ToolContext(session_id="agent", thread_id="talk", actor="agent"), "coding"
    )
    tasks, messages = prepared(memory)
    for _ in range(calls):
        tool, call = valid_calls(rng, tasks, messages)
        wrong = call if rng.random() < 0.1 else mutated(rng, call)
        name = tool if rng.random() < 0.98 else rng.choice(NAMES)
        # A session records only so much: notes come from many, so that most of them are kept.
        by = (
            ToolContext(session_id=f"agent-{rng.randrange(400)}")
            if tool == "memory-record"
            else None
        )
        found = complaint(box, name, wrong, context=by)
        if found:
            yield name, ascii(wrong)[:300], found


PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_calls_are_all_answered(store: str, rng: random.Random, part: int) -> None:
    with smara.open(store, durability="normal") as memory:
        assert list(complaints(memory, rng, count(500, 20_000) // PARTS)) == [], f"seed {SEED}"
        # Whatever was called, the store is sound, and the tools still answer.
        assert memory.internals.database.integrity() == []
        assert task_query(memory, action="list")["success"]


@pytest.mark.postgres
def test_mutated_calls_are_all_answered_on_postgres(postgres_url: str, rng: random.Random) -> None:
    with smara.open(postgres_url) as memory:
        assert list(complaints(memory, rng, count(150, 2_000))) == [], f"seed {SEED}"


def test_unmutated_calls_mostly_succeed(store: str, rng: random.Random) -> None:
    """Otherwise the mutations would start from calls that are wrong already."""
    with smara.open(store, durability="normal") as memory:
        box = Toolbox(memory, ToolContext(session_id="agent", thread_id="talk"), "coding")
        known = prepared(memory)
        outcomes = [box.call(*valid_calls(rng, *known)) for _ in range(200)]
        wrong = [outcome.structured["code"] for outcome in outcomes if outcome.is_error]
        assert set(wrong) <= {
            "task_claimed",
            "task_blocked",
            "dependency_cycle",
            "conflict",
            "invalid_input",
            "not_found",
        }
        assert len(wrong) < 100, wrong


def test_fuzz_sees_a_refusal_that_says_nothing(
    store: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a check that says no more than no."""
    from smara.errors import InvalidInputError
    from smara.tools import schemas, toolbox

    def curt(tool: Any, given: object, tools: Any) -> Any:
        try:
            return schemas.read_call(tool, given, tools)
        except InvalidInputError:
            raise InvalidInputError("No.") from None

    monkeypatch.setattr(toolbox, "read_call", curt)
    with smara.open(store, durability="normal") as memory:
        assert any(complaints(memory, rng, 200)), f"seed {SEED}"
