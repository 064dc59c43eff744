"""Perform the actions of `code-query` within a token budget.

Each line of an answer cites file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from smara.codegraph.models import ImpactWalk, Node, Reached, SymbolCard
from smara.core.extract import shorten
from smara.core.tokens import counter_for
from smara.memory import Memory
from smara.shapes import filled
from smara.tools.models import Json, ToolContext

if TYPE_CHECKING:
    from smara.codegraph.queries import CodeQueries


MOST_REACHED = 400
_UNSURE = 0.75
_LONGEST_LINE = 240
_HEAD_TOKENS = 20
_STAND_INS = 4
_MORE_TOKENS = 24
"""Kept free for the line that says how much was left out."""


def impact(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return what depends on a file or symbol, nearest first."""
    return _walked(
        memory, arguments, lambda ask: ask.impact, one="depends on it", many="depend on it"
    )


def deps(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return what a file or symbol depends on."""
    return _walked(
        memory, arguments, lambda ask: ask.deps, one="is used by it", many="are used by it"
    )


def symbol(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return a definition with its members, callers, callees and tests."""
    note = memory.code.catch_up()
    card = memory.code.asking().symbol(arguments["target"])
    known = [f"known: {link.line}" for link in memory.code_knowledge.about([card.node], 5)]
    lines = _fitting([*known, *_card_lines(card)], arguments["tokens"], note)
    return {"target": _place(card.node), **filled(note=note), "lines": lines}


def map_code(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return the most important names, ranked for what is in play."""
    note = memory.code.catch_up()
    given = [each.strip() for each in arguments.get("target", "").split(",") if each.strip()]
    budget = max(1, arguments["tokens"] - _tokens(note or "") - _HEAD_TOKENS)
    found = memory.code.asking().map(budget, given, given)
    shown = (
        f"{found.symbols} of {found.total_symbols} names, {found.files} of "
        f"{found.total_files} files"
    )
    return {"shown": shown, **filled(note=note), "lines": found.text.splitlines()}


def _walked(
    memory: Memory,
    arguments: Json,
    verb: Callable[[CodeQueries], Callable[..., ImpactWalk]],
    one: str,
    many: str,
) -> Json:
    note = memory.code.catch_up()
    found = verb(memory.code.asking())(
        arguments["target"], depth=arguments["depth"], limit=MOST_REACHED
    )
    is_backward = one == "depends on it"
    told = f"{found.total} {one if found.total == 1 else many}"
    where = f", in {found.files} file{'' if found.files == 1 else 's'}" if found.total else ""
    tests = f", {found.tests} of them tests" if found.tests else ""
    head = f"{', '.join(_place(node) for node in found.targets[:3])}{' …' if len(found.targets) > 3 else ''}"  # noqa: E501
    text = f"{head}: {told}{where}{tests}."
    told_lines = [reached_line(each, is_backward) for each in found.reached]
    known = [f"known: {link.line}" for link in memory.code_knowledge.about(found.targets, 3)]
    known += _stand_ins("overrides", found.overrides)
    known += _stand_ins("overridden by", found.overridden_by)
    lines = _fitting(
        [*known, *told_lines], arguments["tokens"], text, total=found.total + len(known)
    )
    return {
        "target": head,
        "total": found.total,
        "summary": text,
        **filled(note=note),
        "lines": lines,
    }


def _stand_ins(title: str, methods: Sequence[Node]) -> list[str]:
    """Methods that a call may reach instead, a few in one line."""
    more = f" and {len(methods) - _STAND_INS} more" if len(methods) > _STAND_INS else ""
    shown = ", ".join(f"{_place(each)} {each.qualname}" for each in methods[:_STAND_INS])
    return [shorten(f"{title} {shown}{more}", _LONGEST_LINE)] if methods else []


def reached_line(reached: Reached, is_backward: bool) -> str:
    """Render a reached node: depth, place and path.

    ``2 src/cli.py:7 main calls Handler.post → Session.login``
    """
    first, *rest = reached.path
    place = f"{reached.node.path}:{first.line}" if is_backward else _place(reached.node)
    name = reached.node.qualname if is_backward else ""
    through = [hop.node.qualname or hop.node.path for hop in (first, *rest)]
    joined = " → ".join(through) if is_backward else " ← ".join(through)
    is_unsure = any(hop.source == "guess" or hop.confidence < _UNSURE for hop in reached.path)
    verb = first.kind if is_backward else f"{first.kind.removesuffix('s').removesuffix('e')}ed by"
    words = [
        str(reached.depth),
        place,
        name,
        "holds" if first.kind == "contains" else verb,
        joined,
        "(unsure)" if is_unsure else "",
    ]
    return shorten(" ".join(word for word in words if word), _LONGEST_LINE)


def _card_lines(card: SymbolCard) -> Iterable[str]:
    node = card.node
    yield " ".join(node.signature.split()) or f"{node.kind} {node.qualname or node.path}"
    if node.doc:
        yield f"doc: {' '.join(node.doc.split())}"
    yield f"{_place(node)}-{node.last_line}, {card.dependents} depend on it" + (
        ", stale" if node.is_stale else ""
    )
    groups: Sequence[tuple[str, Iterable[str]]] = (
        (
            "used by",
            (f"{each.node.path}:{each.path[0].line} {each.node.qualname}" for each in card.callers),
        ),
        ("tested by", (_place(each.node) + f" {each.node.name}" for each in card.tests)),
        ("uses", (f"{_place(each.node)} {each.node.qualname}" for each in card.calls)),
        ("holds", (f"{member.first_line} {member.name}" for member in card.members)),
        (
            "changes with",
            (
                f"{each.path} ({each.confidence:.0%} of {card.commits})"
                for each in card.changes_with
            ),
        ),
    )
    yield from (f"{title}: {line}".rstrip() for title, lines in groups for line in lines)


def _place(node: Node) -> str:
    """Where a node is: ``src/auth.py:20``, of a file its path."""
    return node.path if node.kind == "file" else f"{node.path}:{node.first_line}"


def _fitting(
    lines: Sequence[str], budget: int, said: str | None, total: int | None = None
) -> list[str]:
    """As many lines as the budget has room for, and one that says how many were left out."""
    whole = len(lines) if total is None else total
    left = budget - _tokens(said or "") - _MORE_TOKENS
    kept: list[str] = []
    for line in lines:
        left -= _tokens(line) + 1
        if left < 0:
            break
        kept.append(shorten(line, _LONGEST_LINE))
    missing = whole - len(kept)
    return (
        [*kept, f"… {missing} more: ask with more tokens, or a smaller depth."]
        if missing > 0
        else kept
    )


def _tokens(text: str) -> int:
    return counter_for().count(text).tokens
