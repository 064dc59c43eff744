"""The words of a line of Markdown: without marks of emphasis, with code and paths as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode


def lines_of(node: SyntaxTreeNode) -> list[str]:
    """The text of a block as it is broken into lines in the file."""
    lines = [""]
    for child in node.children:
        _take(child, lines)
    return [" ".join(line.split()) for line in lines]


def text_of(node: SyntaxTreeNode) -> str:
    """The text of a block in one line."""
    return " ".join(line for line in lines_of(node) if line)


def _take(node: SyntaxTreeNode, lines: list[str]) -> None:
    if node.type in ("softbreak", "hardbreak"):
        lines.append("")
    elif node.type == "code_inline":
        fence = "``" if "`" in node.content else "`"
        lines[-1] += f"{fence}{node.content}{fence}"
    elif node.type in ("text", "text_special", "image"):
        lines[-1] += node.content
    elif node.type == "link":
        _take_link(node, lines)
    elif node.type != "html_inline":
        for child in node.children:
            _take(child, lines)


def _take_link(node: SyntaxTreeNode, lines: list[str]) -> None:
    """A link by its words, with its address behind them where the words do not say it."""
    before = len(lines[-1])
    for child in node.children:
        _take(child, lines)
    address = str(node.attrs.get("href", ""))
    said = lines[-1][before:].strip("`").removeprefix("@")
    if (
        address
        and not address.startswith(("#", "mailto:"))
        and said not in (address, address.partition("://")[2])
    ):
        lines[-1] += f" ({address})"
