"""Define instruction statements, and split Markdown into them.

Emphasis marks are dropped; code and paths stay as they stand. `is_procedure` separates a
list of ordered steps from a list of rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smara.core.extract import word_set
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.knowledge.models import MemoryType

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """A file that tells agents how to work here.

    Attributes:
        path: Where it is, relative to the root where it lies inside, with ``/``.
        place: The same, absolute, with links resolved: two names of one file are one file.
        host: Whose file it is: ``claude``, ``agents``, ``cursor`` …; ``any`` for a file that was
            named.
        folder: The folder it speaks of, relative to the root; empty for all of the repository.
        is_personal: Whether it is one person's own, and not for the team.
    """

    path: str
    place: str
    host: str
    folder: str = ""
    is_personal: bool = False


@dataclass(frozen=True, slots=True)
class RuleHead:
    """The front matter of a rule file of Cursor, Claude or Copilot.

    Attributes:
        globs: The files its rules are for.
        lines: How many lines the head has, its marks included.
    """

    description: str = ""
    globs: tuple[str, ...] = ()
    is_always: bool = True
    lines: int = 0


@dataclass(frozen=True, slots=True)
class ProcedureStep:
    """One step of a procedure.

    Attributes:
        line: Where it stands in the file.
    """

    description: str
    line: int


@dataclass(frozen=True, slots=True)
class InstructionStatement:
    """One thing an instruction file says.

    Attributes:
        headings: The headings it stands under, from the outermost.
        steps: What to do one after the other, when it is a procedure; ``title`` says what for.
        marks: What its form says of it: ``warning`` and ``note`` for quoted notices, ``code`` for a
            block of code.
        type: Of which type it is, where the file says so; otherwise it is guessed.
    """

    text: str
    first_line: int
    last_line: int
    headings: tuple[str, ...] = ()
    steps: tuple[ProcedureStep, ...] = ()
    title: str = ""
    marks: tuple[str, ...] = ()
    type: MemoryType | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a file that is no statement, and why."""

    line: int
    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class FileReference:
    """Another file that is drawn in with ``@path``."""

    target: str
    line: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """All that an instruction file says."""

    head: RuleHead = field(default_factory=RuleHead)
    statements: tuple[InstructionStatement, ...] = ()
    references: tuple[FileReference, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def lines_of(node: SyntaxTreeNode) -> list[str]:
    """Return the text of a block, line by line as written."""
    lines = [""]
    for child in node.children:
        _take(child, lines)
    return [" ".join(line.split()) for line in lines]


def text_of(node: SyntaxTreeNode) -> str:
    """The text of a block in one line."""
    return " ".join(line for line in lines_of(node) if line)


def _take(node: SyntaxTreeNode, lines: list[str]) -> None:
    match node.type:
        case "html_inline":
            return
        case "softbreak" | "hardbreak":
            lines.append("")
        case "code_inline":
            fence = "``" if "`" in node.content else "`"
            lines[-1] += f"{fence}{node.content}{fence}"
        case "text" | "text_special" | "image":
            lines[-1] += node.content
        case _:
            before = len(lines[-1])
            for child in node.children:
                _take(child, lines)
            # A link has its address behind its words where the words do not say it.
            address = str(node.attrs.get("href", "")) if node.type == "link" else ""
            words = lines[-1][before:].strip("`").removeprefix("@")
            is_own = address.startswith(("#", "mailto:"))
            if address and not is_own and words not in (address, address.partition("://")[2]):
                lines[-1] += f" ({address})"


_SENTENCE_END = regex(r"[.!?:;。!?][)\"”`]?$")
_BEGINS = regex(r"[^\W_a-z]|[`@✅❌⚠•–-]")
CODE, LISTS = ("fence", "code_block"), ("bullet_list", "ordered_list")
SHORT_WORDS = 4
_MOST_WORDS_OF_A_TERM = 14
_TERM = regex(r"`[\w-]{1,16}`(, `[\w-]{1,16}`)* ?(:|=|-|–|—|→)")
_LONGEST_LEAD = 120
_MOST_FOLDED = 4
_LONGEST_FOLDED = 600
LONGEST_CODE = 1_400
# Of a longer block of code or statement the beginning is kept; the lines of the file have the rest.
LONGEST = 1_900


class ListItem:
    """An item of a list: its words, and what stands below them."""

    def __init__(self, node: SyntaxTreeNode, last: int) -> None:
        self.node = node
        self.first = first_line(node)
        self.last = last
        has_text = bool(node.children) and node.children[0].type == "paragraph"
        text = text_of(node.children[0].children[0]) if has_text else ""
        self.text = re.sub(r"^\[[ xX]\]\s+", "", text)


def first_line(node: SyntaxTreeNode) -> int:
    return (node.map[0] if node.map else 0) + 1


def last_line(node: SyntaxTreeNode, lines: Sequence[str]) -> int:
    """The last line of a block that is not blank."""
    first, end = node.map or (0, 1)
    while end > first + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"


def as_lead(text: str) -> str:
    lead = text.rstrip().rstrip(":").rstrip()
    return lead if len(lead) <= _LONGEST_LEAD else lead[:_LONGEST_LEAD].rsplit(" ", 1)[0] + " …"


def joined(outer: str, inner: str) -> str:
    return f"{outer}: {inner}" if outer and inner else outer or inner


def fenced(node: SyntaxTreeNode) -> str:
    """A block of code as it is shown with its statement."""
    code = node.content.rstrip("\n")
    if len(code) > LONGEST_CODE:
        code = code[:LONGEST_CODE].rsplit("\n", 1)[0] + "\n…"
    fence = "````" if "```" in code else "```"
    return f"{fence}{node.info.split()[0] if node.type == 'fence' and node.info.strip() else ''}\n{code}\n{fence}"  # noqa: E501


def folded(
    item: SyntaxTreeNode, limit: int | None = _MOST_FOLDED
) -> tuple[str, list[SyntaxTreeNode]]:
    """Return the text below an item, and its independent blocks."""
    texts: list[str] = []
    rest: list[SyntaxTreeNode] = []
    for node in item.children[1:]:
        nested = _nested(node, "") if node.type in LISTS else []
        is_short = len(nested) <= (limit or 0) and sum(map(len, nested)) <= _LONGEST_FOLDED
        if rest:
            rest.append(node)
        elif node.type == "paragraph":
            texts.append(text_of(node.children[0]))
        elif node.type in CODE:
            texts.append(fenced(node))
        elif node.type in LISTS and (limit is None or is_short):
            texts += nested
        else:
            rest.append(node)
    return "\n".join(texts), rest


def _nested(node: SyntaxTreeNode, indent: str) -> list[str]:
    lines: list[str] = []
    for number, item in enumerate(node.children, 1):
        mark = f"{number}." if node.type == "ordered_list" else "-"
        for place, child in enumerate(item.children):
            if child.type == "paragraph":
                lines.append(f"{indent}{mark if place == 0 else ' '} {text_of(child.children[0])}")
            elif child.type in LISTS:
                lines += _nested(child, indent + "  ")
            elif child.type in CODE:
                lines.append(fenced(child))
    return lines


def are_fragments(items: Sequence[ListItem]) -> bool:
    """Return True if the items are words, not sentences: *React 19*."""
    return len(items) > 1 and all(
        len(item.node.children) == 1
        and item.text
        and ":" not in item.text
        and len(item.text.split()) < SHORT_WORDS
        and "`" not in item.text
        for item in items
    )


def are_terms(items: Sequence[ListItem]) -> bool:
    """Return True if the items explain words of one set.

    They say nothing alone: *`0` - urgent*, *`1` - soon*.
    """
    return len(items) > 1 and all(
        len(item.node.children) == 1
        and _TERM.match(item.text)
        and len(item.text.split()) < _MOST_WORDS_OF_A_TERM
        for item in items
    )


def row_text(names: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row of a table as a sentence.

    *make test: runs all tests; when: before a commit*.
    """
    if not any(cells):
        return ""
    if len(cells) < 3:
        return ": ".join(cell for cell in cells if cell)
    more = "; ".join(
        f"{name}: {cell}" if name else cell
        for name, cell in zip(names[1:], cells[1:], strict=False)
        if cell
    )
    return f"{cells[0]}: {more}" if cells[0] else more


def pieces(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the statements of a paragraph with their line offsets.

    Files without any Markdown put a rule on each line. Lines are taken apart when each begins
    as a sentence does and none breaks off in the middle of one; else they are one text.
    """
    filled = [(at, line) for at, line in enumerate(lines) if line]
    if not filled:
        return []
    begin = all(_BEGINS.match(line) for _, line in filled)
    ended = [bool(_SENTENCE_END.search(line)) for _, line in filled]
    if len(filled) > 1 and begin and (all(ended[:-1]) or not any(ended)):
        return [(at, at, line) for at, line in filled]
    return [(filled[0][0], filled[-1][0], " ".join(line for _, line in filled))]


_PROCEDURE = regex(
    r"\b(how to|steps?|step[- ]by[- ]step|procedure|process|workflow|recipe|checklist|release"
    r"|deploy(ing|ment)?|set ?up"
    r"|getting started|install(ation|ing)?|onboarding|migrat(e|ing|ion)|(to|when|for|before"
    r"|after) (add|creat|writ|mak"
    r"|chang|releas|deploy|fix|debug|updat|upgrad|implement|commit|merg|open|submit|start|finish"
    r"|complet|test)\w*"
    r"|(adding|creating|writing|making|changing|updating|upgrading|implementing|committing"
    r"|debugging|publishing|"
    r"landing)"
    r" (an? |the |new |your )?\w+|session (start|end|close|completion)|in this order|as follows"
    r"|do the following)\b",
    re.IGNORECASE,
)
_RULE = regex(
    r"(always|never|do not|don't|avoid|prefer|must|no|only|all|every|any|use|keep|be|favou?r)\b",
    re.IGNORECASE,
)
_DOING = word_set(
    "add analyze announce apply ask assign authenticate branch build bump call change check "
    "checkout choose claim clean"
    " clone close cd commit compare compile complete configure connect copy create cut define "
    "delete deploy describe"
    " determine disable document download draft edit enable ensure enter execute export extend "
    "extract fetch file fill"
    " find finish fix follow format generate get go identify implement import include initialize "
    "inspect install invoke"
    " land launch lint link list load log look make map mark merge migrate modify move name "
    "navigate notify open"
    " package"
    " paste pick plan post prepare press prune publish pull push put read rebase rebuild record "
    "refactor register"
    " release remove rename replace report reproduce request reset resolve restart restore return "
    "review revert"
    " run save"
    " scaffold search select send set ship sign squash stage start stash stop submit switch sync "
    "tag test trace train"
    " trigger try understand undo update upgrade upload validate verify visit wait wire write"
)
MOST_STEPS = 50
_LABEL = regex(r"[^:.`]{1,40}:\s+")
_FIRST_WORD = regex(
    r"[^A-Za-z`]*(?:then |now |next,? |first,? |finally,? |optionally,? )?([A-Za-z]+)",
    re.IGNORECASE,
)


def is_procedure(items: Sequence[str], title: str, is_ordered: bool) -> bool:
    """Return True if the items are steps; ``title`` leads to them.

    A numbered list is one when its items say what to do, or its title speaks of a procedure;
    an unnumbered one needs both. Numbered rules (*Always …*, *Never …*) are no procedure.
    """
    if not 2 <= len(items) <= MOST_STEPS:
        return False
    bare = [_LABEL.sub("", item, count=1) for item in items]
    rules = sum(bool(_RULE.match(item)) for item in bare)
    # What to do may also stand behind a label: *Verify: run the tests*.
    doing = sum(any(map(_begins_with_doing, pair)) for pair in zip(items, bare, strict=True))
    if rules * 2 > len(items):
        return False
    if is_ordered:
        return doing * 2 >= len(items) or (rules == 0 and bool(_PROCEDURE.search(title)))
    return doing == len(items) and bool(
        re.search(r"\b(steps?|how to|procedure|checklist)\b", title, re.IGNORECASE)
    )


def _begins_with_doing(item: str) -> bool:
    if item.startswith(("`", "$ ")):
        return True
    found = _FIRST_WORD.match(item)
    return bool(found) and found[1].lower() in _DOING  # type: ignore[index]
