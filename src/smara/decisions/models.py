"""Define decisions as values.

A decision is a typed memory of the source ``said``. This is the same record, read as what it is:
a rule, quoted from the messages that settled it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from smara.core.items import Items
from smara.core.startup.record import dataclass
from smara.knowledge.models import TypedMemory


def is_plan(memory: TypedMemory) -> bool:
    """Return True for a plan that a person approved."""
    return memory.data.get("wording") == "plan"


@dataclass(frozen=True, slots=True)
class Decision:
    """A rule that a person settled in a session, with quotations."""

    memory: TypedMemory
    thread_id: str

    @property
    def id(self) -> str:
        return self.memory.id

    @property
    def short_id(self) -> str:
        return self.memory.short_id

    @property
    def rule(self) -> str:
        """The rule as it was settled."""
        return self.memory.content

    @property
    def is_plan(self) -> bool:
        """True for a plan that a person approved."""
        return is_plan(self.memory)

    @property
    def quotations(self) -> tuple[str, ...]:
        """The person's words; of a plan, the reason that it gives."""
        return tuple(each.quote for each in self.memory.evidence if each.quote)

    @property
    def rejected(self) -> tuple[str, ...]:
        """The proposals that were refused, and what held before."""
        return tuple(map(str, self.memory.data.get("alternatives", ())))

    @property
    def decided_at(self) -> int:
        """The time of the decision (ms)."""
        return self.memory.evidence_at

    @property
    def day(self) -> str:
        """The day of the decision, in UTC."""
        return f"{datetime.fromtimestamp(self.decided_at / 1_000, UTC):%Y-%m-%d}"

    @property
    def is_in_force(self) -> bool:
        """False if it was superseded, forgotten or rejected."""
        return self.memory.is_active


@dataclass(frozen=True, slots=True)
class DecisionPage(Items[Decision]):
    """A page of decisions; the last has no ``next_offset``."""

    _FIELD = "decisions"
    decisions: tuple[Decision, ...]
    next_offset: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """The result of an update: sessions read, decisions added, changed and superseded."""

    threads: int = 0
    added: int = 0
    changed: int = 0
    superseded: int = 0
    is_all: bool = True
    """False if sessions were left for the next time."""
