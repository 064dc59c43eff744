"""Every weight of the ranking, with what each brought in the evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RankSettings:
    """Every weight of the ranking. One setting serves all evaluation sets.

    Each comment says what another value would change. L is LoCoMo R@10, S is LongMemEval_S
    R@5, U is the union haystack R@10, C is CoSQA MRR@10, all on the development parts; one
    question is 1.05 points of S and U, so most differences there are noise.
    """

    # How soon repetition of a term stops counting. 0.8: L -0.4, C -0.4; 2.0: L -1.1, C -1.0.
    saturation: float = 1.2
    # How much a long message, taken with its surroundings, is held back. 0.4: C -0.9; 0.75: L -0.3.
    length_penalty: float = 0.5
    # Terms of the messages next to this one, and of those two away. Neither: L -13.7; only the
    # nearest: L -4.6.
    near_weight: float = 0.5
    far_weight: float = 0.25
    # A term in code, a name or a path, against the same term in prose. By decision; 1.0: C +0.4, U
    # -0.2.
    code_weight: float = 1.5
    # The parts of a name that is asked for, against the name itself. The sets hold too few names to
    # tell.
    part_weight: float = 0.6
    # "days", "ago" and other words that measure time. 1.0: S -1.2, U -1.1, L -0.1.
    weak_weight: float = 0.3
    # Two words of the query side by side. 0: U -0.5, L -0.1, C -0.6; 0.4: U -1.1.
    pair_weight: float = 0.2
    # A quoted phrase that stands in the message. By decision, not measured.
    phrase_weight: float = 1.0
    # How much of a term is counted by who wrote it. All 1.0: U -1.7, S -0.7. Tool and system: by
    # analogy.
    roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.3, "tool": 0.25, "system": 0.25}
    )
    # The same for terms in code: a name is as good in an answer as in a question, while tool output
    # repeats names. By the story of the demo (the schema is in the answer); the sets hold too
    # little code to tell.
    code_roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 1.0, "tool": 0.5, "system": 0.5}
    )
    # The same inside a thread's sum, where long answers would drown the questions. All 1.0: U -6.7,
    # S -1.5.
    thread_roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.15, "tool": 0.1, "system": 0.1}
    )
    # How soon repetition inside a thread stops counting. 1.0: U -2.0, S -0.7; 3.0: U -0.5, S -1.3.
    thread_saturation: float = 2.0
    # The best message of a thread, against the sum of its messages. 0: S -1.3, U -1.3; 1.0: U -2.7,
    # S -1.0.
    best_weight: float = 0.3
    # A thread is judged by its best messages, so that a very long one has little advantage. Not
    # measured.
    most_messages_of_thread: int = 40
    # A message from the time that the query names. 0: L -1.2, U -0.4; 0.8: L +0.3.
    period_weight: float = 0.4
    # A message of this moment gains 3 %, one of a month ago 1.5 %: enough to order equal matches,
    # never more.
    recency_weight: float = 0.03
    half_life_days: float = 30.0


DEFAULT = RankSettings()
