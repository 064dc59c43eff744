"""From Markdown to statements: one per rule, with the lines it stands in.

A list item is a statement, a paragraph is one, a row of a table is one; a block of code
belongs to what stands before it. What ends with a colon leads to what follows, and is said
again with each of its items, so that a statement can be read alone. A procedure is one
statement with steps. Whatever does not become a statement is counted with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from smara.adapters.instructions import blocks
from smara.adapters.instructions.frontmatter import read_head
from smara.adapters.instructions.inline import lines_of, text_of
from smara.adapters.instructions.models import LeftOut, Parsed, Reference, Statement, Step
from smara.adapters.instructions.procedures import is_procedure
from smara.adapters.instructions.worth import nothing_to_remember

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_LINE_ENDS = re.compile("\r\n|\r|\v|\f|\x85|\u2028|\u2029")
_OWN_MARK = re.compile(r"<!--\s*smara:(begin|end)\b[^<>\n]{0,80}-->", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][\w:-]*(\s[^<>]*)?/?>")
_REFERENCE = re.compile(
    r"(?<![\w`@/.])@((?:~|\.{0,2})/?[\w][\w./ -]*\.\w{1,8}|(?:~|\.{1,2})?/[\w./-]+)"
)
_LONE_TAG = re.compile(r"\s*</?[A-Za-z][\w:-]*>\s*")
_NOTICE = re.compile(r"\[!(\w+)\]\s*", re.IGNORECASE)
_WARNINGS = ("warning", "caution", "important", "danger")
_BULLET = re.compile(r"^[•–—▪◦●✅❌]\s*")
_RULE_HEADING = re.compile(
    r"(never|do ?n[o']t|do not|always|must|avoid|forbidden|off[- ]limits|required|before|after"
    r"|when|whenever|if|only"
    r"|what (not )?to|things (not )?to|(do'?s (and|&) )?don'?ts|anti-?patterns|common mistakes)\b",
    re.IGNORECASE,
)
"""A heading that is half of the rule: *Never touch*, *Before committing*."""


def parse_instructions(text: str) -> Parsed:
    """All that an instruction file says."""
    lines = _LINE_ENDS.sub("\n", text.removeprefix("\ufeff")).split("\n")
    head = read_head(lines)
    # Blanked, not cut: every line keeps its number.
    body = "\n".join([""] * head.lines + lines[head.lines :])
    body = _without_lone_tags(_without_own_blocks(body))
    reader = _Reader(body)
    reader.read()
    return Parsed(
        head, tuple(reader.statements), _references(body), left_out=tuple(reader.left_out)
    )


def _without_own_blocks(body: str) -> str:
    """Without what we wrote into the file ourselves: a memory must not become its own evidence."""
    kept, at, begun = "", 0, None
    for mark in _OWN_MARK.finditer(body):
        if mark[1].lower() == "begin":
            begun = mark.start() if begun is None else begun
        elif begun is not None:
            kept += body[at:begun] + "\n" * body.count("\n", begun, mark.end())
            at, begun = mark.end(), None
    return kept + body[at:]


def _without_lone_tags(body: str) -> str:
    """Without lines that are nothing but a tag, ``<rules>``: hosts' own marks, and no Markdown."""
    lines = body.split("\n")
    for number, line in _prose(lines):
        if _LONE_TAG.fullmatch(line):
            lines[number - 1] = ""
    return "\n".join(lines)


def _references(body: str) -> tuple[Reference, ...]:
    """The files that are drawn in with ``@path``, outside code."""
    found: dict[str, Reference] = {}
    for number, line in _prose(body.split("\n")):
        for each in _REFERENCE.finditer(re.sub(r"`[^`]*`", "", line)):
            target = each[1].strip().rstrip(".")
            found.setdefault(target, Reference(target, number))
    return tuple(found.values())


def _prose(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines outside blocks of code, with their numbers."""
    is_code = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            yield number, line


class _Reader:
    """Walks the blocks of one file."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._lines = body.split("\n")
        self._headings: list[tuple[int, str]] = []
        self._marks: tuple[str, ...] = ()
        self.statements: list[Statement] = []
        self.left_out: list[LeftOut] = []

    def read(self) -> None:
        from markdown_it import MarkdownIt
        from markdown_it.tree import SyntaxTreeNode

        tokens = MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(self._body)
        self._blocks(SyntaxTreeNode(tokens).children, "")

    def _blocks(self, nodes: Sequence[SyntaxTreeNode], lead: str) -> None:
        """Blocks that stand one below the other; ``lead`` says what they are about, besides the
        headings.
        """
        here = ""  # a paragraph that leads to the next block
        waiting: SyntaxTreeNode | None = None
        attach = False  # whether a block of code belongs to the statement before it
        for node in nodes:
            if node.type == "paragraph":
                if waiting is not None:
                    self._paragraph(waiting, lead)
                waiting, here, attach = (node, "", True) if blocks.leads(node) else (None, "", True)
                if waiting is None:
                    attach = self._paragraph(node, lead)
                continue
            if waiting is not None:
                here = blocks.as_lead(text_of(waiting.children[0]))
            attach = self._block(node, blocks.joined(lead, here), waiting, attach=attach)
            waiting, here = None, ""
        if waiting is not None:
            self._paragraph(waiting, lead)

    def _block(
        self, node: SyntaxTreeNode, lead: str, led_by: SyntaxTreeNode | None, attach: bool
    ) -> bool:
        """One block that is no paragraph; whether a block of code behind it belongs to it."""
        if node.type == "heading":
            self._heading(node)
            return False
        if led_by is not None and node.type not in (
            "bullet_list",
            "ordered_list",
            "table",
            "fence",
            "code_block",
        ):
            self._paragraph(led_by, "")
        if node.type in ("fence", "code_block"):
            self._code(node, lead, led_by, attach)
            return attach or led_by is not None
        if node.type in ("bullet_list", "ordered_list"):
            self._list(node, lead, led_by)
        elif node.type == "table":
            self._table(node, lead)
        elif node.type == "blockquote":
            self._quote(node, lead)
        elif node.type == "html_block":
            self._html(node, lead)
        return node.type in ("bullet_list", "ordered_list")

    def _heading(self, node: SyntaxTreeNode) -> None:
        level = int(node.tag[1:] or 1)
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append(
            (level, re.sub(r"^[\W\d_]+(?=\w)", "", text_of(node.children[0])).strip())
        )

    def _paragraph(self, node: SyntaxTreeNode, lead: str) -> bool:
        first = blocks.first_line(node)
        pieces = blocks.pieces(lines_of(node.children[0]))
        for at, last, text in pieces:
            self._say(text, first + at, first + last, lead)
        return bool(pieces)

    def _list(self, node: SyntaxTreeNode, lead: str, led_by: SyntaxTreeNode | None) -> None:
        items = [blocks.Item(each, blocks.last_line(each, self._lines)) for each in node.children]
        title = lead or self._title()
        is_ordered = node.type == "ordered_list"
        if is_procedure([item.text for item in items], title, is_ordered):
            self._procedure(items, title, led_by)
        elif blocks.are_fragments(items) or blocks.are_terms(items):
            said = (", " if blocks.are_fragments(items) else "; ").join(
                item.text.rstrip(".,;") for item in items
            )
            self._say(f"{title}: {said}" if title else said, items[0].first, items[-1].last, "")
        else:
            for item in items:
                self._item(item, lead)

    def _item(self, item: blocks.Item, lead: str) -> None:
        if not item.node.children:
            return
        if item.is_lead:
            rest = item.node.children[1:]
            if all(each.type in ("fence", "code_block") for each in rest):
                self._say(
                    item.text,
                    item.first,
                    item.last,
                    lead,
                    "\n".join(map(blocks.fenced, rest)),
                    ("code",),
                )
            else:
                self._blocks(rest, blocks.joined(lead, blocks.as_lead(item.text)))
            return
        folded, rest = blocks.folded(item.node)
        text = item.text
        if (
            not lead
            and len(text.split()) < blocks.SHORT_WORDS
            and ":" not in text
            and self._title()
        ):
            lead = self._title()
        end = item.last if not rest else max(item.first, blocks.first_line(rest[0]) - 1)
        self._say(text, item.first, end, lead, folded, ("code",) if "```" in folded else ())
        self._blocks(rest, blocks.joined(lead, blocks.as_lead(text)))

    def _procedure(
        self, items: Sequence[blocks.Item], title: str, led_by: SyntaxTreeNode | None
    ) -> None:
        first = blocks.first_line(led_by) if led_by is not None else items[0].first
        steps = tuple(Step(blocks.cut(item.whole), item.first) for item in items)
        said = [
            title or "Steps",
            *(f"{number}. {step.description}" for number, step in enumerate(steps, 1)),
        ]
        self.statements.append(
            Statement(
                blocks.cut("\n".join(said)),
                first,
                items[-1].last,
                headings=self._under(),
                steps=steps,
                title=title or "Steps",
                marks=self._marks,
            )
        )

    def _code(
        self, node: SyntaxTreeNode, lead: str, led_by: SyntaxTreeNode | None, attach: bool
    ) -> None:
        last = blocks.last_line(node, self._lines)
        if led_by is not None:
            self._say(
                text_of(led_by.children[0]),
                blocks.first_line(led_by),
                last,
                "",
                blocks.fenced(node),
                ("code",),
            )
        elif attach and self.statements:
            before = self.statements.pop()
            marks = tuple(dict.fromkeys((*before.marks, "code")))
            whole = blocks.cut(f"{before.text}\n{blocks.fenced(node)}")
            self.statements.append(replace(before, text=whole, last_line=last, marks=marks))
        else:
            self._say(
                f"{lead or self._title() or 'Code'}:",
                blocks.first_line(node),
                last,
                "",
                blocks.fenced(node),
                ("code",),
            )

    def _table(self, node: SyntaxTreeNode, lead: str) -> None:
        rows = [row for part in node.children for row in part.children]
        if not rows:
            return
        names = [text_of(cell.children[0]) for cell in rows[0].children]
        for row in rows[1:]:
            cells = [text_of(cell.children[0]) if cell.children else "" for cell in row.children]
            text = blocks.row_text(names, cells)
            if text:
                about = lead or (
                    self._title() if len(text.split()) < 2 * blocks.SHORT_WORDS else ""
                )
                self._say(
                    text, blocks.first_line(row), blocks.first_line(row), about, marks=("row",)
                )

    def _quote(self, node: SyntaxTreeNode, lead: str) -> None:
        before = self._marks
        first = (
            text_of(node.children[0].children[0])
            if node.children and node.children[0].type == "paragraph"
            else ""
        )
        notice = _NOTICE.match(first)
        kind = notice[1].lower() if notice else ""
        self._marks = (*before, "warning" if kind in _WARNINGS else "note")
        self._blocks(node.children, lead)
        self._marks = before

    def _html(self, node: SyntaxTreeNode, lead: str) -> None:
        """A block of HTML: what is hidden in comments is left out, words between tags are read."""
        # A comment is not shown to whoever reads the page: nothing that nobody sees becomes a
        # memory.
        shown = _TAG.sub(" ", _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), node.content))
        if not shown.strip():
            reason = "a comment" if "<!--" in node.content else "markup"
            self.left_out.append(
                LeftOut(blocks.first_line(node), reason, " ".join(node.content.split())[:80])
            )
            return
        inner = _Reader(shown)
        inner._headings, inner._marks = list(self._headings), self._marks
        inner.read()
        move = blocks.first_line(node) - 1
        self.statements += [
            replace(each, first_line=each.first_line + move, last_line=each.last_line + move)
            for each in inner.statements
        ]
        self.left_out += [replace(each, line=each.line + move) for each in inner.left_out]

    def _say(
        self,
        text: str,
        first: int,
        last: int,
        lead: str = "",
        code: str = "",
        marks: tuple[str, ...] = (),
    ) -> None:
        text = _NOTICE.sub("", _BULLET.sub("", text.strip())).strip()
        if not lead and self._title() and _RULE_HEADING.match(self._title()):
            lead = self._title()
        reason = nothing_to_remember(text, is_part=bool(lead or code))
        if reason is not None:
            self.left_out.append(LeftOut(first, reason, text[:80]))
            return
        whole = f"{lead}: {text}" if lead else text
        whole = f"{whole}\n{code}" if code else whole
        self.statements.append(
            Statement(
                blocks.cut(whole),
                first,
                max(first, last),
                headings=self._under(),
                marks=(*self._marks, *marks),
            )
        )

    def _under(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._headings)

    def _title(self) -> str:
        """The heading that things stand under; the title of the file says too little to be said
        with each.
        """
        return (
            self._headings[-1][1].rstrip(":")
            if self._headings and self._headings[-1][0] > 1
            else ""
        )
