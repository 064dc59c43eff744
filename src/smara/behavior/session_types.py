"""What a session was for, and whether its work was proven: the two rules that decide what may be
learned from it.

Hosts do not say what a session is for, so it is read from what was done:

1. What the caller states holds.
2. ``pr_review``: a review was submitted, or asked for in the first words, and no source file was
  changed.
3. ``changelog``: only changelogs were changed, or one was asked for and no source file was changed.
  Nothing is
   learned from it: it repeats what is in the history.
4. ``spec``: a plan was accepted without a change of code, or only prose was changed where a spec
  was asked for.
5. ``roadmap``: a roadmap was asked for, and no source file was changed.
6. ``build``: files were changed.
7. ``terminal``: nothing was changed, and at least half of the tool calls were commands.
8. ``insights``: everything else, which is reading and answering.

Whether it *passed*:

- ``build``: tests were green after the last change of a source file; or a commit was made after it
  and the last
  tests, if any ran, were not red. Green tests before the last change prove nothing, a commit over
    red tests neither. It
  has *failed* when the last tests were red, and nobody made them green. Otherwise it is *unproven*.
- ``pr_review``: the review was submitted, or the agent ended its turn after it was asked for one.
- ``spec``: the plan was accepted, or the document was committed.
- the others have nothing to prove: their end is enough.

A build that nobody proved has the gate of a terminal session: three memories, and only such as
prove themselves, because a command that worked in the end has shown that it does. What failed
teaches dead ends alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smara.behavior.models import Kind, Passed
from smara.behavior.pad import Pad
from smara.behavior.paths import is_config, is_prose, is_source, is_test
from smara.knowledge.gate import LEARNED_PER_SESSION, SessionType
from smara.knowledge.models import MemoryType

_CHANGELOG = re.compile(
    r"(?:^|/)(?:changelog|changes|history|release[-_]?notes)[^/]*$", re.IGNORECASE
)
ALL: frozenset[str] = frozenset({"*"})


@dataclass(frozen=True, slots=True)
class Gate:
    """What may be learned from a session: how much, from which signals, and into which types."""

    most: int
    kinds: frozenset[str]
    types: frozenset[MemoryType] = frozenset()

    def lets(self, kind: Kind, types: Sequence[MemoryType]) -> bool:
        return self.kinds == ALL or kind in self.kinds or not self.types.isdisjoint(types)


GATES: Mapping[SessionType, Gate] = {
    "build": Gate(LEARNED_PER_SESSION["build"], ALL),
    "insights": Gate(
        LEARNED_PER_SESSION["insights"],
        frozenset({"co_access", "self_correction", "repeated_grep", "e2e"}),
    ),
    "roadmap": Gate(
        LEARNED_PER_SESSION["roadmap"], frozenset(), frozenset({"decision", "requirement"})
    ),
    "terminal": Gate(
        LEARNED_PER_SESSION["terminal"],
        frozenset({"error_retry", "tool_sequence", "e2e", "parallel_conflict"}),
    ),
    "changelog": Gate(LEARNED_PER_SESSION["changelog"], frozenset()),
    "spec": Gate(
        LEARNED_PER_SESSION["spec"], frozenset({"file_access"}), frozenset({"module_insight"})
    ),
    "pr_review": Gate(
        LEARNED_PER_SESSION["pr_review"], frozenset({"error_retry", "self_correction", "qa_report"})
    ),
}
"""By session type. A browser's findings belong to no type of their own: they pass where somebody
was looking.
"""


def type_of(pads: Sequence[Pad], stated: SessionType | None = None) -> tuple[SessionType, str]:
    """The type of a session, and the reason for it."""
    if stated is not None:
        return stated, "it was stated"
    edited = [path for pad in pads for path, entry in pad["files"] if entry.get("e")]
    sources = [path for path in edited if is_source(path) or is_test(path) or is_config(path)]
    cues = {cue for pad in pads for cue in pad.facts["cues"]}
    reviewed = any(pad.facts["reviewed"] for pad in pads)
    if not sources and (reviewed or "review" in cues):
        return (
            "pr_review",
            "a review was submitted"
            if reviewed
            else "a review was asked for, and no code was changed",
        )
    if not sources and (
        "changelog" in cues or (edited and all(_CHANGELOG.search(path) for path in edited))
    ):
        return "changelog", "it was about a changelog"
    if not sources and any(pad.facts["accepted"] for pad in pads):
        return "spec", "a plan was accepted, and no code was changed"
    if not sources and "spec" in cues and all(map(is_prose, edited)):
        return "spec", "a specification was asked for, and no code was changed"
    if not sources and "roadmap" in cues:
        return "roadmap", "a roadmap was asked for, and no code was changed"
    if edited:
        return "build", f"{len(edited)} files were changed"
    steps, runs = sum(pad.step for pad in pads), sum(pad.facts["runs"] for pad in pads)
    if runs and runs >= steps / 2:
        return "terminal", f"nothing was changed, and {runs} of {steps} tool calls were commands"
    return "insights", "nothing was changed"


def passed_of(type_: SessionType, pads: Sequence[Pad]) -> tuple[Passed, str]:
    """Whether the work of a session was proven, and by what."""
    if type_ == "pr_review":
        if any(pad.facts["reviewed"] for pad in pads):
            return "passed", "the review was submitted"
        done = any(pad.facts["turns"] for pad in pads)
        return ("passed", "the review was given") if done else ("unproven", "no review was given")
    if type_ == "spec":
        if any(pad.facts["accepted"] or pad.facts["last_commit"] for pad in pads):
            return "passed", "the plan was accepted or committed"
        return "unproven", "nobody accepted it"
    return _built(pads) if type_ == "build" else ("passed", "the session has ended")


def _built(pads: Sequence[Pad]) -> tuple[Passed, str]:
    """The agents of one session are judged together: each by its own steps, and one that failed is
    enough.
    """
    verdicts = [_one_built(pad) for pad in pads if pad.facts["edits"] or pad.facts["test_runs"]]
    for wanted in ("failed", "passed"):
        found = [each for each in verdicts if each[0] == wanted]
        if found:
            return found[0]
    return "unproven", "no test ran and no commit was made after the last change"


def _one_built(pad: Pad) -> tuple[Passed, str]:
    facts = pad.facts
    last_change = facts["last_source_edit"] or facts["last_edit"]
    is_red = facts["last_test_ok"] is False
    if facts["last_test_ok"] and facts["last_test"] > last_change:
        return "passed", "the tests were green after the last change"
    if is_red:
        return "failed", "the last tests were red"
    if facts["last_commit"] > last_change:
        return "passed", "it was committed after the last change"
    return "unproven", "no test ran and no commit was made after the last change"


def gate_for(type_: SessionType, passed: Passed) -> tuple[Gate, SessionType]:
    """The gate of a session, and the type under which knowledge counts what it brings."""
    if type_ in ("build", "spec", "pr_review") and passed != "passed":
        return GATES["terminal"], "terminal"
    return GATES[type_], type_
