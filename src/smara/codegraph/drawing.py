"""Impact as a picture: text for Graphviz (DOT) and for Mermaid, which Markdown shows."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from smara.codegraph.models import Node, Walk

Picture = Literal["dot", "mermaid"]
PICTURES: tuple[Picture, ...] = ("dot", "mermaid")
_UNSURE = 0.75
Line = tuple[int, int, str, bool]


def draw(walk: Walk, picture: Picture, *, is_backward: bool = True) -> str:
    """A walk as a graph: files as boxes around their symbols, the targets marked, unsure edges
    dashed.
    """
    nodes, lines = _parts(walk, is_backward)
    return _dot(walk, nodes, lines) if picture == "dot" else _mermaid(walk, nodes, lines)


def _parts(walk: Walk, is_backward: bool) -> tuple[dict[int, Node], list[Line]]:
    """Every node of the paths, and the steps between them, each once."""
    nodes = {node.no: node for node in walk.targets}
    lines: dict[tuple[int, int, str], bool] = {}
    for reached in walk.reached:
        at = reached.node
        nodes[at.no] = at
        for hop in reached.path:
            nodes[hop.node.no] = hop.node
            one, other = (at, hop.node) if is_backward else (hop.node, at)
            is_unsure = hop.source == "guess" or hop.confidence < _UNSURE
            lines[one.no, other.no, hop.kind] = (
                lines.get((one.no, other.no, hop.kind), True) and is_unsure
            )
            at = hop.node
    return nodes, [
        (one, other, kind, is_unsure) for (one, other, kind), is_unsure in sorted(lines.items())
    ]


def _by_file(nodes: dict[int, Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = defaultdict(list)
    for node in sorted(nodes.values(), key=lambda each: (each.path, each.first_line, each.no)):
        found[node.path].append(node)
    return found


def _dot(walk: Walk, nodes: dict[int, Node], lines: list[Line]) -> str:
    targets = {node.no for node in walk.targets}
    text = [
        "digraph impact {",
        '  rankdir="LR";',
        '  node [shape=box, style=rounded, fontname="Helvetica"];',
    ]
    for number, (path, inside) in enumerate(_by_file(nodes).items()):
        text += [f"  subgraph cluster_{number} {{", f"    label={_quoted(path)}; color=gray;"]
        for node in inside:
            marked = ', style="rounded,filled", fillcolor="#ffd54f"' if node.no in targets else ""
            text.append(f"    n{node.no} [label={_quoted(_label(node))}{marked}];")
        text.append("  }")
    for one, other, kind, is_unsure in lines:
        text.append(
            f"  n{one} -> n{other} [label={_quoted(kind)}{', style=dashed' if is_unsure else ''}];"
        )
    return "\n".join([*text, "}"])


def _mermaid(walk: Walk, nodes: dict[int, Node], lines: list[Line]) -> str:
    targets = {node.no for node in walk.targets}
    text = ["flowchart LR"]
    for number, (path, inside) in enumerate(_by_file(nodes).items()):
        text.append(f'  subgraph f{number}["{_entities(path)}"]')
        text += [f'    n{node.no}["{_entities(_label(node))}"]' for node in inside]
        text.append("  end")
    for one, other, kind, is_unsure in lines:
        text.append(f"  n{one} {'-.->' if is_unsure else '-->'}|{kind}| n{other}")
    text += [f"  style n{no} fill:#ffd54f,stroke:#b28704" for no in sorted(targets)]
    return "\n".join(text)


def _label(node: Node) -> str:
    return node.path.rpartition("/")[2] if node.kind == "file" else node.qualname


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """Characters that mean something to Mermaid, as entities."""
    return "".join(
        each if each.isalnum() or each in " _-./:" else f"#{ord(each)};" for each in text
    )
