"""The same work in every agent: a session that fails, finds the way and edits; and one that hears
at every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.real_hosts.lab import Lab
from tests.real_hosts.model_server import Script, Step, call, scripted, text

CENTS = "The cart total must be computed in integer cents, because floats lost a cent in invoices."
SHELL = "run.sh wants --fast on this machine"
TASK = "Make the checkout faster"


@dataclass(frozen=True, slots=True)
class Tools:
    """What an agent calls its tools, and their arguments."""

    shell: str
    read: str
    edit: str
    path: str
    old: str
    new: str
    more: tuple[tuple[str, str], ...] = ()

    def run(self, command: str) -> Step:
        return [call(self.shell, command=command, description="run")]

    def look(self, lab: Lab, name: str) -> Step:
        return [call(self.read, **{self.path: str(lab.repository / name)})]

    def change(self, lab: Lab, name: str, old: str, new: str) -> Step:
        given = {
            self.path: str(lab.repository / name),
            self.old: old,
            self.new: new,
            **dict(self.more),
        }
        return [call(self.edit, **given)]


Agent = Callable[[Lab, Script, str], object]


def first_session(lab: Lab, agent: Agent, tools: Tools) -> Script:
    """A command fails, a file is read and changed, the command works."""
    steps: Sequence[Step] = [
        [text("I run it."), *tools.run("./run.sh")],
        tools.look(lab, "src/cart.py"),
        tools.change(lab, "src/cart.py", "sum(prices)", "sum(prices, 0)"),
        tools.run("./run.sh --fast"),
        [text("It needs --fast.")],
    ]
    with scripted(*steps) as script:
        agent(lab, script, "Make the run pass")
    return script


def second_session(lab: Lab, agent: Agent, tools: Tools) -> Script:
    """It is told of its task with its first prompt, and of what was learned meanwhile when it comes
    up.
    """
    task = lab.smara("tasks", "add", TASK)
    lab.smara("tasks", "claim", str(task.get("id") or task["task"]["id"]))
    with scripted(
        tools.run(f"smara remember --type gotcha --file run.sh '{SHELL}'"),
        tools.look(lab, "run.sh"),
        [text("Done.")],
    ) as script:
        agent(lab, script, TASK)
    return script


PATIENT = {"SMARA_PATIENCE": "20"}
"""On a busy machine a start must not give up on what the session before it left."""


def check_quiet(lab: Lab) -> None:
    assert {(each.code, each.complaint) for each in lab.heard()} == {(0, "")}


def check_second(lab: Lab, script: Script) -> None:
    """What was said at each moment stands in what the model was asked."""
    main = [each for each in script.requests if each.get("tools")]
    asked = Script((), main)
    assert all(asked.heard(CENTS))
    assert all(asked.heard(f'"{TASK}"'))
    assert asked.heard(f"{SHELL} [Memory") == [False, False, True]
    lab.smara("hook", "drain")
    points = [each["point"] for each in lab.smara("receipts")["receipts"]]
    assert {"start", "first_message", "after_tool"} <= set(points)


def roles(lab: Lab, session: str) -> list[str]:
    """Who said what in a thread, in its order."""
    return [each["role"] for each in lab.smara("messages", "list", "--thread", session)]
