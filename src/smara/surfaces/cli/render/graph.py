"""Render answers of the code graph as JSON and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from smara.codegraph.models import (
    CoChange,
    CodeModule,
    Hop,
    ImpactWalk,
    Node,
    Reached,
    SymbolCard,
)
from smara.links.models import CodeLink
from smara.surfaces.cli import output

_UNSURE = 0.75
WALK_COLUMNS = ("depth", "weight", "where", "name", "how")
_MODULE_NAMES = 4
_FEW = 4


def place(node: Node) -> str:
    """Return where a node begins, such as ``src/auth.py:20``.

    Of a file its path.
    """
    return node.path if node.kind == "file" else f"{node.path}:{node.first_line}"


def walk_rows(reached: Iterable[Reached], is_backward: bool) -> list[tuple[object, ...]]:
    """Return a row per node: depth, weight, place, name, path."""
    return [
        (
            each.depth,
            f"{each.weight:.2f}",
            _where(each, is_backward),
            each.node.qualname,
            _way(each.path, is_backward),
        )
        for each in reached
    ]


def _where(reached: Reached, is_backward: bool) -> str:
    return f"{reached.node.path}:{reached.path[0].line}" if is_backward else place(reached.node)


def _way(path: Sequence[Hop], is_backward: bool) -> str:
    """Return a path such as ``calls post → calls login``, or with ``←`` forward."""
    named = [hop.node.qualname or hop.node.path for hop in path]
    if is_backward:
        return " → ".join(f"{_verb(hop)} {name}" for hop, name in zip(path, named, strict=True))
    return " ← ".join(f"{name} {_verb(hop)}" for hop, name in zip(path, named, strict=True))


def _verb(hop: Hop) -> str:
    if hop.kind == "contains":
        return "contains"
    return hop.kind if hop.source != "guess" and hop.confidence >= _UNSURE else f"{hop.kind}?"


def say_walk(walk: ImpactWalk, one: str, many: str, is_backward: bool) -> None:
    """Print a walk: its targets, its size and a table."""
    for node in walk.targets[:3]:
        output.say(heading(node), bold=True)
    if len(walk.targets) > 3:
        output.say(f"and {len(walk.targets) - 3} more files", bold=True)
    if walk.overrides:
        output.say(f"It overrides {_few(walk.overrides)}: calls of that may reach it.")
    if walk.overridden_by:
        output.say(f"It is overridden by {_few(walk.overridden_by)}.")
    has_some = 0 < walk.tests < walk.total
    tests = f", {walk.tests} of them {'a test' if walk.tests == 1 else 'tests'}" if has_some else ""
    if not walk.total:
        output.say(f"Nothing {one}.")
        return
    files = f"{walk.files} {'file' if walk.files == 1 else 'files'}"
    output.say(f"{walk.total} {one if walk.total == 1 else many}, in {files}{tests}.")
    output.say()
    output.table(
        WALK_COLUMNS, walk_rows(walk.reached, is_backward), folding=("where", "name", "how")
    )
    if walk.is_cut:
        output.say()
        output.say(f"{len(walk.reached)} of {walk.total} shown; --limit shows more.", dim=True)


def _few(nodes: Sequence[Node]) -> str:
    more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
    return ", ".join(node.label for node in nodes[:_FEW]) + more


def heading(node: Node) -> str:
    """Return a node as ``src/auth.py:Session.login  method, lines 20-44``."""
    if node.kind == "file":
        return f"{node.path}  file, {node.last_line} lines"
    return f"{node.label}  {node.kind}, lines {node.first_line}-{node.last_line}"


def say_card(card: SymbolCard, known: Sequence[CodeLink]) -> None:
    """Print a node with its callers, tests and memories."""
    node = card.node
    output.say(heading(node), bold=True)
    if node.signature:
        output.say(" ".join(node.signature.split()))
    if node.doc:
        output.say(output.paragraph(" ".join(node.doc.split()), "", ""), dim=True)
    facts = [output.count(card.dependents, "dependent")]
    facts += [f"changed in {output.count(card.commits, 'commit')}"] if card.commits else []
    facts += ["being indexed"] if node.is_stale else []
    output.say(", ".join(facts) + ".")
    _group("memories", [link.line for link in known])
    _group("used by", [f"{_where(each, True)}  {each.node.qualname}" for each in card.callers])
    _group("tested by", [f"{place(each.node)}  {each.node.qualname}" for each in card.tests])
    _group("uses", [f"{place(each.node)}  {each.node.qualname}" for each in card.calls])
    _group("contains", [f"{member.first_line}  {member.name}" for member in card.members])
    _group(
        "changes with",
        [f"{each.path}  {each.confidence:.0%} of its commits" for each in card.changes_with],
    )


def _group(title: str, lines: Sequence[str]) -> None:
    if lines:
        output.say()
        output.say(title, bold=True)
        for line in lines:
            output.say(f"  {line.rstrip()}")


def say_module(module: CodeModule) -> None:
    """Print a module in a few lines."""
    output.say(f"{module.path}", bold=True)
    stale = " (described for older code)" if module.is_stale else ""
    output.say(output.paragraph(f"{module.purpose}{stale}", "  ", "  "))
    rows = [
        ("names", ", ".join(node.qualname for node in module.central[:_MODULE_NAMES])),
        ("uses", ", ".join(path for path, _ in module.uses)),
        ("used by", ", ".join(path for path, _ in module.used_by)),
        ("entries", ", ".join(module.entry_points[:_MODULE_NAMES])),
        *(("flow", " → ".join(name.rpartition(":")[2] for name in flow)) for flow in module.flows),
    ]
    for name, value in rows:
        if value:
            output.say(output.paragraph(value, f"  {name:<8}", " " * 10), dim=name != "names")
    output.say()


def node_json(node: Node) -> dict[str, Any]:
    """Return a file or symbol as JSON."""
    return {
        "name": node.label,
        "kind": node.kind,
        "path": node.path,
        "qualname": node.qualname,
        "firstLine": node.first_line,
        "lastLine": node.last_line,
        "signature": node.signature,
        "doc": node.doc,
        "isStale": node.is_stale,
    }


def mention_json(node: Node) -> dict[str, Any]:
    """Return a file or symbol that is mentioned beside another."""
    return {"name": node.label, "kind": node.kind, "path": node.path, "line": node.first_line}


def walk_json(walk: ImpactWalk) -> dict[str, Any]:
    """Return the result of a walk as JSON."""
    return {
        "targets": [mention_json(node) for node in walk.targets],
        "depth": walk.depth,
        "total": walk.total,
        "files": walk.files,
        "tests": walk.tests,
        "byDepth": {str(depth): n for depth, n in walk.by_depth.items()},
        "isCut": walk.is_cut,
        "reached": [reached_json(each) for each in walk.reached],
        "overrides": [mention_json(node) for node in walk.overrides],
        "overriddenBy": [mention_json(node) for node in walk.overridden_by],
    }


def reached_json(reached: Reached) -> dict[str, Any]:
    """Return a node with the path to the target."""
    return mention_json(reached.node) | {
        "depth": reached.depth,
        "weight": reached.weight,
        "isTest": reached.is_test,
        "via": [
            {
                "to": hop.node.label,
                "kind": hop.kind,
                "line": hop.line,
                "confidence": hop.confidence,
                "source": hop.source,
            }
            for hop in reached.path
        ],
    }


def card_json(card: SymbolCard, known: list[CodeLink]) -> dict[str, Any]:
    """Return a node with its callers, tests and memories as JSON."""
    return node_json(card.node) | {
        "members": [mention_json(node) for node in card.members],
        "usedBy": [reached_json(each) for each in card.callers],
        "uses": [reached_json(each) for each in card.calls],
        "tests": [reached_json(each) for each in card.tests],
        "dependents": card.dependents,
        "commits": card.commits,
        "changesWith": [cochange_json(each) for each in card.changes_with],
        "known": [
            {
                "kind": link.kind,
                "memoryId": link.memory_id,
                "id": link.short_id,
                "type": link.type,
                "content": link.text,
                "path": link.path,
                "symbol": link.symbol,
                "verdict": link.verdict,
                "hedge": link.hedge,
            }
            for link in known
        ],
    }


def cochange_json(each: CoChange) -> dict[str, Any]:
    """Return a file that changes with another as JSON."""
    return {
        "path": each.path,
        "together": each.together,
        "confidence": each.confidence,
        "lastAt": each.last_at,
    }
