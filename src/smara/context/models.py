"""Define injections and their receipts as values.

An injection is given unasked at a point of an agent's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from smara.core.startup.record import dataclass, field

Point = Literal[
    "start", "first_message", "before_tool", "after_tool", "between_steps", "planner", "coder", "qa"
]
"""When something is said: four points of a session (a tool has two sides), and before each stage of
planned work.
"""
Arm = Literal["control", "passive", "full"]
"""What a session of an experiment is told: nothing, only what stands before the work, or
everything.
"""
ItemKind = Literal["memory", "failure", "task", "working", "left_off", "review", "file", "commit"]
ItemOutcome = Literal["used", "repeated"]
"""What became of an item: the agent used it, or what it warns of was run again and failed."""

POINTS: tuple[Point, ...] = get_args(Point)
ON_REQUEST: tuple[Point, ...] = ("planner", "coder", "qa")
"""Points at which an agent asks: it is answered each time, and in every arm."""


class PointBudget(NamedTuple):
    """The size of an injection at a point, and its time."""

    tokens: int
    characters: int
    seconds: float


BUDGETS: Mapping[Point, PointBudget] = {
    "start": PointBudget(2_400, 9_500, 0.5),
    "first_message": PointBudget(600, 2_500, 0.5),
    "before_tool": PointBudget(600, 2_500, 0.1),
    "after_tool": PointBudget(600, 2_500, 0.1),
    "between_steps": PointBudget(300, 1_300, 0.05),
    "planner": PointBudget(2_400, 9_500, 2.0),
    "coder": PointBudget(32_000, 200_000, 2.0),
    "qa": PointBudget(2_400, 9_500, 2.0),
}
"""Hosts cut what is longer than 10,000 characters, or about 2,500 tokens; files read ahead go to
one's own agents.
"""


@dataclass(frozen=True, slots=True)
class InjectionItem:
    """One statement of an injection, its reason and signs of use.

    ``key`` is the same whenever the same thing would be said again. ``saved_tokens`` is an estimate
    of what heeding it spares, made by the method ``saved_how`` names. ``signs`` tell
    what to look for in what happens after, such as ``ran:npm ci``; see ``signs``.
    """

    kind: ItemKind
    id: str
    why: str
    text: str = ""
    key: str = ""
    tokens: int = 0
    saved_tokens: int = 0
    saved_how: str = ""
    signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Injection:
    """The text injected at a point.

    ``is_kept`` is false when its receipt could not be written yet.
    """

    text: str
    tokens: int
    point: Point
    items: tuple[InjectionItem, ...] = ()
    receipt_id: str = ""
    source: str = ""
    agent: str = ""
    arm: Arm | None = None
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class ToolTrigger:
    """An injection around a tool call, and the call.

    Of ``file`` (from the root of the repository), ``command`` (as it is compared, see
    ``actions.commands``), ``pattern`` (one identifier of what is searched for, in lower case),
    ``needs`` (a program with subcommands and options, see ``core.triggers.starts``) and ``words``
    (all of which an error's text must hold) one is given.
    """

    point: Literal["before_tool", "after_tool", "tool_failure"]
    injection: Injection
    tools: tuple[str, ...] = ()
    file: str = ""
    command: str = ""
    pattern: str = ""
    words: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    is_whole: bool = False
    """Whether only a reading of the whole file counts."""


@dataclass(frozen=True, slots=True)
class MessageTrigger:
    """An injection after a first message, and its words.

    At least 60 % of them, of three or more; fewer words are no evidence and are not given.
    """

    words: tuple[str, ...]
    injection: Injection
    stems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrecomputedInjections:
    """All that a new session may be told, for hooks."""

    start: Injection | None = None
    firsts: tuple[MessageTrigger, ...] = ()
    tools: tuple[ToolTrigger, ...] = ()
    most_said: int = 0
    has_arms: bool = False
    """Whether sessions take part in an experiment: then a session's arm decides what of this it is
    told.
    """


@dataclass(frozen=True, slots=True)
class ReceiptItem:
    """One statement of a receipt, and what became of it."""

    kind: ItemKind
    id: str
    why: str
    text: str
    tokens: int
    saved_tokens: int
    saved_how: str
    outcome: ItemOutcome | None = None
    how: str = ""
    """By what it is known: ``ran``, ``cited``, ``repeated``, or a person's word. ``named`` and
    ``opened`` come without an outcome: the work touched it, which shows no use.
    """
    settled_at: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one injection.

    ``is_said`` is false for what a session of the control arm would have been told.
    ``delivered_at`` is when it was handed to the host, ``reached_at`` when the host gave it to its
    model, as far as its record of the session tells.
    """

    id: str
    session_id: str
    point: Point
    at: int
    text: str
    tokens: int
    agent: str = ""
    source: str = ""
    arm: Arm | None = None
    is_said: bool = True
    elapsed_ms: int = 0
    delivered_at: int | None = None
    used_at: int | None = None
    used_how: str = ""
    items: tuple[ReceiptItem, ...] = ()
    reached_at: int | None = None

    @property
    def characters(self) -> int:
        return len(self.text)

    @property
    def is_used(self) -> bool:
        return self.used_at is not None

    @property
    def saved_tokens(self) -> int:
        """The failed calls that were spared, by estimate; never below 0."""
        used = [each for each in self.items if each.outcome == "used"]
        return max(0, sum(each.saved_tokens for each in used) - sum(each.tokens for each in used))


@dataclass(frozen=True, slots=True)
class ReceiptTotals:
    """All receipts of a project in numbers."""

    receipts: int = 0
    injected: int = 0
    delivered: int = 0
    used: int = 0
    tokens: int = 0
    saved_tokens: int = 0
    by_arm: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    reached: int = 0
