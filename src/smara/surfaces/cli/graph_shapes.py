"""Code as the JSON of the command line."""

from __future__ import annotations

from typing import Any

from smara.codegraph.models import (
    CoChange,
    CodeMap,
    CodeModule,
    Cycle,
    EntryPoint,
    Hop,
    HotSpot,
    Node,
    Reached,
    SymbolCard,
    Walk,
)
from smara.links.models import CodeLink


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


def walk_json(walk: Walk) -> dict[str, Any]:
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


def cycle_json(cycle: Cycle) -> dict[str, Any]:
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
