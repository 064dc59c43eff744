"""Measure the window of a thread and its next steps.

What an agent is sent and what a person is shown rest on the same frame: sections of memory, and the
sizes of the messages that fit. A person needs no text of the messages, so none is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smara.core.startup.record import dataclass, field
from smara.messages.models import MessageSize, Thread
from smara.observations.models import AgentMode
from smara.observations.observations import Observations
from smara.observations.thresholds import PendingTokens, Thresholds
from smara.prompt.models import LATE, Section


class Frame(NamedTuple):
    """The contents of a window before any message is read."""

    sections: tuple[Section, ...]
    sizes: Sequence[MessageSize]
    observation_ids: tuple[str, ...]
    after: int
    """The last message that gave way to what was observed of it."""
    left_out: int


@dataclass(frozen=True, slots=True)
class ThreadWindow:
    """The window of one thread, and what happens to it next."""

    thread_id: str
    sections: tuple[Mapping[str, Any], ...]
    messages: int
    message_tokens: int
    prefix_tokens: int
    """The tokens before the newest messages, which a vendor's cache may keep."""
    late_tokens: int
    tokens: int
    left_out: int
    limits: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, bool] = field(default_factory=dict)
    until: Mapping[str, int] = field(default_factory=dict)
    """The tokens until each next step, and those that would leave at the next activation."""


def tokens_until(pending: PendingTokens, observed: int, limits: Thresholds) -> dict[str, int]:
    """Return the tokens until each next step.

    Of 20,000 pending tokens 15,000 are buffered. The next chunk begins after 6,000, so in 1,000;
    buffered chunks become active at 24,000, and a turn waits at 36,000. Of the messages the newest
    6,000 stay.

    >>> tokens_until(PendingTokens(20_000, 5_000), 39_000, Thresholds())
    {'buffer': 1000, 'activation': 4000, 'wait': 16000, 'reflection': 1000, 'leaving': 14000}
    """
    return {
        "buffer": max(0, limits.buffer_after - pending.unbuffered),
        "activation": max(0, limits.activate_after - pending.tokens),
        "wait": max(0, limits.block_after - pending.tokens),
        "reflection": max(0, limits.reflect_after - observed),
        "leaving": max(0, pending.tokens - limits.retain),
    }


def measure(
    thread: Thread, frame: Frame, observations: Observations, mode: AgentMode
) -> ThreadWindow:
    """Return the window of a thread whose frame is known."""
    state, limits = observations.status(thread.id), observations.limits(mode)
    pending = PendingTokens(
        state["pendingTokens"], state["pendingTokens"] - state["bufferedTokens"]
    )
    late = sum(each.tokens for each in frame.sections if each.name in LATE)
    steady = sum(each.tokens for each in frame.sections) - late
    message_tokens = sum(size.tokens for size in frame.sizes)
    reflection = observations.planned_reflection(thread.id)._asdict()
    return ThreadWindow(
        thread.id,
        tuple(
            {
                "name": each.name,
                "tokens": each.tokens,
                "isLate": each.name in LATE,
                "text": each.text,
            }
            for each in frame.sections
        ),
        messages=len(frame.sizes),
        message_tokens=message_tokens,
        prefix_tokens=steady,
        late_tokens=late,
        tokens=steady + late + message_tokens,
        left_out=frame.left_out,
        limits={
            "observeAfter": limits.observe_after,
            "bufferAfter": limits.buffer_after,
            "activateAfter": limits.activate_after,
            "blockAfter": limits.block_after,
            "retain": limits.retain,
            "reflectAfter": limits.reflect_after,
            "showMost": limits.show_most,
        },
        state=state,
        plan={
            **observations.planned(thread.id, mode=mode)._asdict(),
            **{f"reflection_{name}": is_due for name, is_due in reflection.items()},
        },
        until=tokens_until(pending, state["observationTokens"], limits),
    )
