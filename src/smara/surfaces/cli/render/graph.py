"""Render answers of the code graph as JSON and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from smara.codegraph.models import (
    CoChange,
    CodeMap,
    CodeModule,
    EntryPoint,
    Hop,
    HotSpot,
    ImpactWalk,
    ImportCycle,
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
    """Where a node begins: ``src/auth.py:20``, of a file its path."""
    return node.path if node.kind == "file" else f"{node.path}:{node.first_line}"


def walk_rows(reached: Iterable[Reached], is_backward: bool) -> list[tuple[object, ...]]:
    """A line for each node: how far, how sure, where it is, and the way from it to the target, or
    back.
    """
    return [
        (
            each.depth,
            f"{each.weight:.2f}",
            _where(each, is_backward),
            each.node.qualname,
            _how(each.path, is_backward),
        )
        for each in reached
    ]


def _where(reached: Reached, is_backward: bool) -> str:
    return f"{reached.node.path}:{reached.path[0].line}" if is_backward else place(reached.node)


def _how(path: Sequence[Hop], is_backward: bool) -> str:
    """``calls post → calls login``; backward along the arrows, ``← `` for what is depended on."""
    named = [hop.node.qualname or hop.node.path for hop in path]
    if is_backward:
        return " → ".join(f"{_verb(hop)} {name}" for hop, name in zip(path, named, strict=True))
    return " ← ".join(f"{name} {_verb(hop)}" for hop, name in zip(path, named, strict=True))


def _verb(hop: Hop) -> str:
    if hop.kind == "contains":
        return "holds"
    return hop.kind if hop.source != "guess" and hop.confidence >= _UNSURE else f"{hop.kind}?"


def say_walk(walk: ImpactWalk, one: str, many: str, is_backward: bool) -> None:
    """A walk: what was asked about, how much was reached, and a table."""
    for node in walk.targets[:3]:
        output.say(heading(node), bold=True)
    if len(walk.targets) > 3:
        output.say(f"and {len(walk.targets) - 3} more files", bold=True)
    if walk.overrides:
        output.say(f"It stands for {_few(walk.overrides)}: who calls that may come here.")
    if walk.overridden_by:
        output.say(f"Classes below have their own: {_few(walk.overridden_by)}.")
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
        output.say(f"{len(walk.reached)} of {walk.total} are shown; --limit shows more.", dim=True)


def _few(nodes: Sequence[Node]) -> str:
    more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
    return ", ".join(node.label for node in nodes[:_FEW]) + more


def heading(node: Node) -> str:
    """A node in one line: ``src/auth.py:Session.login  method, lines 20-44``."""
    if node.kind == "file":
        return f"{node.path}  file, {node.last_line} lines"
    return f"{node.label}  {node.kind}, lines {node.first_line}-{node.last_line}"


def say_card(card: SymbolCard, known: Sequence[CodeLink]) -> None:
    """All there is to say of a node."""
    node = card.node
    output.say(heading(node), bold=True)
    if node.signature:
        output.say(" ".join(node.signature.split()))
    if node.doc:
        output.say(output.paragraph(" ".join(node.doc.split()), "", ""), dim=True)
    facts = [f"{card.dependents} depend on it"]
    facts += [f"changed in {card.commits} commits"] if card.commits else []
    facts += ["being read again"] if node.is_stale else []
    output.say(", ".join(facts) + ".")
    _group("known", [link.line for link in known])
    _group("used by", [f"{_where(each, True)}  {each.node.qualname}" for each in card.callers])
    _group("tested by", [f"{place(each.node)}  {each.node.qualname}" for each in card.tests])
    _group("uses", [f"{place(each.node)}  {each.node.qualname}" for each in card.calls])
    _group("holds", [f"{member.first_line}  {member.name}" for member in card.members])
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
    """A module in a few lines."""
    output.say(f"{module.path}", bold=True)
    stale = " (said of older code)" if module.is_stale else ""
    output.say(output.paragraph(f"{module.purpose}{stale}", "  ", "  "))
    rows = [
        ("names", ", ".join(node.qualname for node in module.central[:_MODULE_NAMES])),
        ("uses", ", ".join(path for path, _ in module.uses)),
        ("used by", ", ".join(path for path, _ in module.used_by)),
        ("entered", ", ".join(module.entry_points[:_MODULE_NAMES])),
        *(("flow", " → ".join(name.rpartition(":")[2] for name in flow)) for flow in module.flows),
    ]
    for name, value in rows:
        if value:
            output.say(output.paragraph(value, f"  {name:<8}", " " * 10), dim=name != "names")
    output.say()


def node_json(node: Node) -> dict[str, Any]:
    """A file or symbol."""
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
    """A file or symbol that is mentioned beside another."""
    return {"name": node.label, "kind": node.kind, "path": node.path, "line": node.first_line}


def walk_json(walk: ImpactWalk) -> dict[str, Any]:
    """What a walk came to."""
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
    """A node with the path to the target."""
    return mention_json(reached.node) | {
        "depth": reached.depth,
        "weight": reached.weight,
        "isTest": reached.is_test,
        "via": [_hop_json(hop) for hop in reached.path],
    }


def _hop_json(hop: Hop) -> dict[str, Any]:
    return {
        "to": hop.node.label,
        "kind": hop.kind,
        "line": hop.line,
        "confidence": hop.confidence,
        "source": hop.source,
    }


def card_json(card: SymbolCard, known: list[CodeLink]) -> dict[str, Any]:
    """All there is to say of a node."""
    return node_json(card.node) | {
        "members": [mention_json(node) for node in card.members],
        "usedBy": [reached_json(each) for each in card.callers],
        "uses": [reached_json(each) for each in card.calls],
        "tests": [reached_json(each) for each in card.tests],
        "dependents": card.dependents,
        "commits": card.commits,
        "changesWith": [cochange_json(each) for each in card.changes_with],
        "known": [link_json(each) for each in known],
    }


def link_json(link: CodeLink) -> dict[str, Any]:
    """A memory that speaks of code."""
    return {
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


def cochange_json(each: CoChange) -> dict[str, Any]:
    """A file that changes with another."""
    return {
        "path": each.path,
        "together": each.together,
        "confidence": each.confidence,
        "lastAt": each.last_at,
    }


def map_json(found: CodeMap) -> dict[str, Any]:
    """A map."""
    return {
        "text": found.text,
        "tokens": found.tokens,
        "budget": found.budget,
        "files": found.files,
        "symbols": found.symbols,
        "totalFiles": found.total_files,
        "totalSymbols": found.total_symbols,
    }


def cycle_json(cycle: ImportCycle) -> dict[str, Any]:
    """Files that import each other."""
    return {"path": list(cycle.path), "lines": list(cycle.lines), "files": list(cycle.files)}


def entry_json(entry: EntryPoint) -> dict[str, Any]:
    """Where the program is entered."""
    return mention_json(entry.node) | {"why": entry.why, "reaches": entry.reaches}


def hotspot_json(spot: HotSpot) -> dict[str, Any]:
    """A file that matters and changes."""
    return {
        "path": spot.path,
        "score": spot.score,
        "centrality": spot.centrality,
        "churn": spot.churn,
        "usedByFiles": spot.dependents,
        "commits": spot.commits,
        "lines": spot.lines,
    }


def module_json(module: CodeModule) -> dict[str, Any]:
    """A folder of code."""
    return {
        "path": module.path,
        "purpose": module.purpose,
        "source": module.source,
        "isStale": module.is_stale,
        "files": module.files,
        "symbols": module.symbols,
        "central": [mention_json(node) for node in module.central],
        "uses": [{"path": path, "edges": count} for path, count in module.uses],
        "usedBy": [{"path": path, "edges": count} for path, count in module.used_by],
        "entryPoints": list(module.entry_points),
        "flows": [list(flow) for flow in module.flows],
    }
