"""BMAD: epics and stories that go from the analyst over the architect to the developer and the
tester.
"""

from __future__ import annotations

from smara.behavior.methodology.plugin import CustomType, ExecutionContext, PlainMethodology, Relay


def _unit(context: ExecutionContext) -> tuple[tuple[str, ...], str]:
    parts = [
        f"Epic {context.epic}" if context.epic else "",
        f"Story {context.story}" if context.story else "",
    ]
    return (context.epic, context.story), " / ".join(part for part in parts if part) or "Story"


BMAD = PlainMethodology(
    "bmad",
    "BMAD epics and stories",
    {
        "analysis": "explore",
        "brainstorming": "explore",
        "research": "explore",
        "prd": "define",
        "planning": "define",
        "architecture": "define",
        "solutioning": "define",
        "story": "define",
        "create_story": "define",
        "dev": "implement",
        "dev_story": "implement",
        "implementation": "implement",
        "qa": "validate",
        "code_review": "validate",
        "review": "validate",
        "correct_course": "refine",
        "fix": "refine",
        "retrospective": "reflect",
    },
    relays=(
        Relay("analyst", "architect", ("requirement", "decision", "dead_end")),
        Relay("architect", "sm", ("decision", "requirement", "pattern", "causal_dependency")),
        Relay("sm", "dev"),
        Relay("dev", "qa"),
        Relay("qa", "dev", ("error_pattern", "requirement", "e2e_observation")),
    ),
    unit=_unit,
    custom_types=(
        CustomType("acceptance_criterion", "requirement", "what a story must show to be accepted"),
        CustomType("epic_outcome", "work_unit_outcome", "what came of an epic"),
    ),
)
