"""What planners, coders and testers are given, in the words of this room and with receipts.

What such agents get is found by ``behavior``; here it is fenced, so that no stored text can speak
for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smara.behavior.methodology.contexts import PlannerContext, PrefetchedFile
from smara.context.moments.drafts import Draft, Said, drafted, said_memory
from smara.context.moments.keeping import Keeper
from smara.context.moments.known import Known
from smara.context.moments.models import BUDGETS, Item, Point
from smara.context.moments.wording import one_line
from smara.knowledge.models import MemoryType, TypedMemory
from smara.knowledge.trust import Tellable, Verdict

_QA: tuple[MemoryType, ...] = ("e2e_observation", "error_pattern", "requirement")
_QA_LIMIT = 12


def told_planner(
    found: PlannerContext, known: Known, keeper: Keeper, session_id: str | None
) -> PlannerContext:
    """A planner's context with its text fenced."""
    root = known.root()
    lines = [
        said_memory(told, "it is about the modules that are planned for", root)
        for told in _asked_for(known, found.memories)
    ]
    if found.factor > 1:
        lines.insert(0, Said(f"Work here took {found.factor:g} times the steps that were planned."))
    draft = drafted(lines, BUDGETS["planner"])
    _keep(keeper, "planner", session_id, draft=draft)
    return replace(
        found,
        text=draft.text if draft is not None else "",
        constraints=tuple(one_line(each) for each in found.constraints),
    )


def _asked_for(known: Known, memories: Sequence[TypedMemory]) -> list[Tellable]:
    """What may be told to those who ask: also what nobody has confirmed, which says so; nothing
    from outside.
    """
    allowed = {told.memory.id: told for told in known.memories.tellable(memories)}
    shown = [memory for memory in memories if memory.tier != "quarantined" and not memory.is_stale]
    verdict = Verdict(True, False, "it was asked for")
    return [
        allowed.get(memory.id) or Tellable(memory, verdict, memory.confidence) for memory in shown
    ]


def told_coder(
    files: list[PrefetchedFile], keeper: Keeper, session_id: str | None
) -> list[PrefetchedFile]:
    """Files that are read ahead, with a receipt that names them."""
    items = tuple(
        Item(
            "file",
            each.path,
            "such work reads it nearly always",
            text=each.path[:60],
            key=f"file:{each.path}",
            tokens=each.tokens,
            saved_tokens=each.tokens,
            saved_how="the file itself",
            signs=(f"file:{each.path}",),
        )
        for each in files
    )
    if items:
        names = ", ".join(each.path for each in files)
        _keep(
            keeper,
            "coder",
            session_id,
            draft=Draft(f"Files read ahead: {names}", sum(f.tokens for f in files), items),
        )
    return files


def told_qa(known: Known, modules: Sequence[str], keeper: Keeper, session_id: str | None) -> str:
    """What a tester should know before the first look."""
    found: dict[str, TypedMemory] = {}
    for kind in _QA:
        pages = [
            known.memories.list(type=kind, module=module, limit=_QA_LIMIT) for module in modules
        ] or [known.memories.list(type=kind, limit=_QA_LIMIT)]
        found.update((memory.id, memory) for page in pages for memory in page)
    root = known.root()
    lines = [
        said_memory(told, "testers ask for it", root)
        for told in _asked_for(known, list(found.values()))
    ]
    draft = drafted(lines, BUDGETS["qa"])
    _keep(keeper, "qa", session_id, draft=draft)
    return draft.text if draft is not None else ""


def _keep(keeper: Keeper, point: Point, session_id: str | None, draft: Draft | None) -> None:
    """Write a receipt where somebody says for whom."""
    if session_id is not None and draft is not None:
        keeper.keep(point, session_id, draft, keeper.standing(session_id), "", "", 0)
