"""Perform the actions of `code-query` within a token budget.

Each line of an answer cites file and line.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.codegraph.models import Reached
from smara.core.extract import shorten
from smara.core.tokens import counter_for
from smara.memory import Memory
from smara.shapes import filled
from smara.texts import call_place, card_groups, few, place, walk_size
from smara.tools.catalogue import Json, ToolContext

MOST_REACHED = 400
_UNSURE = 0.75
_LONGEST_LINE = 240
_HEAD_TOKENS = 20
_MORE_TOKENS = 24
"""Kept free for the line that says how much was left out."""


def walk(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return what depends on a file or symbol, nearest first.

    The action ``deps`` returns what it depends on instead.
    """
    is_backward = arguments["action"] == "impact"
    note, asking = memory.code.catch_up(), memory.code.asking()
    query = asking.impact if is_backward else asking.deps
    found = query(arguments["target"], depth=arguments["depth"], limit=MOST_REACHED)
    words = (
        ("depends on it", "depend on it") if is_backward else ("is used by it", "are used by it")
    )
    more = " …" if len(found.targets) > 3 else ""
    head = f"{', '.join(place(node) for node in found.targets[:3])}{more}"
    text = f"{head}: {walk_size(found, *words)}."
    lines = [f"known: {link.line}" for link in memory.code_knowledge.about(found.targets, 3)]
    for title, methods in (("overrides", found.overrides), ("overridden by", found.overridden_by)):
        names = [f"{place(node)} {node.qualname}" for node in methods]
        lines += [f"{title} {few(names)}"] if names else []
    total = found.total + len(lines)
    lines += [reached_line(each, is_backward) for each in found.reached]
    return {
        "target": head,
        "total": found.total,
        "summary": text,
        **filled(note=note),
        "lines": _fitting(lines, arguments["tokens"], text, total=total),
    }


def symbol(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return a definition with its members, callers, callees and tests."""
    note = memory.code.catch_up()
    card = memory.code.asking().symbol(arguments["target"])
    node = card.node
    stale = ", stale" if node.is_stale else ""
    lines = [
        *(f"known: {link.line}" for link in memory.code_knowledge.about([node], 5)),
        " ".join(node.signature.split()) or f"{node.kind} {node.qualname or node.path}",
        *([f"doc: {' '.join(node.doc.split())}"] if node.doc else []),
        f"{place(node)}-{node.last_line}, {card.dependents} depend on it{stale}",
        *(f"{title}: {line}".rstrip() for title, group in card_groups(card) for line in group),
    ]
    return {
        "target": place(node),
        **filled(note=note),
        "lines": _fitting(lines, arguments["tokens"], note),
    }


def map_code(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return the most important names, ranked for what is in play."""
    note = memory.code.catch_up()
    given = [each.strip() for each in arguments.get("target", "").split(",") if each.strip()]
    budget = max(1, arguments["tokens"] - _tokens(note or "") - _HEAD_TOKENS)
    found = memory.code.asking().map(budget, given, given)
    return {
        "shown": f"{found.symbols} of {found.total_symbols} names, {found.files} of "
        f"{found.total_files} files",
        **filled(note=note),
        "lines": found.text.splitlines(),
    }


def reached_line(reached: Reached, is_backward: bool) -> str:
    """Render a reached node: depth, place and path.

    ``2 src/cli.py:7 main calls Handler.post → Session.login``
    """
    first, *rest = reached.path
    where = call_place(reached) if is_backward else place(reached.node)
    name = reached.node.qualname if is_backward else ""
    through = [hop.node.qualname or hop.node.path for hop in (first, *rest)]
    joined = " → ".join(through) if is_backward else " ← ".join(through)
    is_unsure = any(hop.source == "guess" or hop.confidence < _UNSURE for hop in reached.path)
    verb = first.kind if is_backward else f"{first.kind.removesuffix('s').removesuffix('e')}ed by"
    words = [
        str(reached.depth),
        where,
        name,
        "holds" if first.kind == "contains" else verb,
        joined,
        "(unsure)" if is_unsure else "",
    ]
    return shorten(" ".join(word for word in words if word), _LONGEST_LINE)


def _fitting(
    lines: Sequence[str], budget: int, head: str | None, total: int | None = None
) -> list[str]:
    """As many lines as the budget has room for, and one that says how many were left out."""
    whole = len(lines) if total is None else total
    left = budget - _tokens(head or "") - _MORE_TOKENS
    shown: list[str] = []
    for line in lines:
        left -= _tokens(line) + 1
        if left < 0:
            break
        shown.append(shorten(line, _LONGEST_LINE))
    missing = whole - len(shown)
    if missing > 0:
        shown.append(f"… {missing} more: ask with more tokens, or a smaller depth.")
    return shown


def _tokens(text: str) -> int:
    return counter_for().count(text).tokens
