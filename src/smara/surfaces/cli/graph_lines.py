"""Answers about code as lines and tables of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smara.codegraph.models import CodeModule, Hop, Node, Reached, SymbolCard, Walk
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


def say_walk(walk: Walk, one: str, many: str, is_backward: bool) -> None:
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
