"""Messages as a model reads them: who spoke when, every part by its kind, nothing that can pass for
our own words.

The whole is fenced by a random mark, and so is each header, because what stands inside
may imitate anything that is known beforehand: a tag, a fence, a message of the user. The
mark is drawn after the words were written, and never one that occurs in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, NamedTuple

from smara.core.delimiters import neutralized
from smara.core.tokens import estimate_o200k
from smara.messages.models import Message, Part, plain
from smara.observations.render import local

_CUT = "\n[… {left:,} characters are left out here …]\n"
_DRAWS = 20
_HIGH = "🔴"
_THREAD = re.compile(r"\s*</?thread[\s>]")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a part is shown, in characters; what is longer loses its middle."""

    text: int = 60_000
    result: int = 4_000
    argument: int = 1_500
    reasoning: int = 300
    known_tokens: int = 2_000


def draw_mark(texts: Iterable[str], draw: Callable[[], str] | None = None) -> str:
    """A random mark that occurs in none of the texts."""
    folded = [text.casefold() for text in texts]
    for draw_one in [draw or _random_mark] * _DRAWS + [_long_mark]:
        mark = draw_one()
        if mark and not any(mark.casefold() in text for text in folded):
            break
    return mark


def _random_mark() -> str:
    return token_hex(4)


def _long_mark() -> str:
    """A mark that no text can hold: it has more bits than there are texts."""
    return token_hex(16)


class Piece(NamedTuple):
    """A part of a message: what its header says, still without the mark, and its words."""

    header: str
    text: str


def render_messages(messages: Sequence[Message], timezone: str, limits: Limits) -> list[Piece]:
    """The parts of messages. Each has a header, so that the output of a tool cannot go on in the
    user's voice.
    """
    names = {
        part.call_id: part.name
        for message in messages
        for part in message.parts
        if part.call_id and part.name
    }
    return [
        piece for message in messages for piece in _pieces(message, timezone, names, limits=limits)
    ]


def _pieces(
    message: Message, timezone: str, names: Mapping[str, str], limits: Limits
) -> list[Piece]:
    shown = [_part(part, names, limits) for part in message.parts if _is_shown(part)] or [
        Piece("", "(empty)")
    ]
    who = f"#{message.seq} {message.role} {local(message.created_at, timezone):%a %Y-%m-%d %H:%M}"
    first, *rest = shown
    headed = [Piece(f"{who} {first.header}".rstrip(), first.text)]
    headed += [Piece(each.header or "says", each.text) for each in rest]
    return [Piece(piece.header, neutralized(piece.text)) for piece in headed]


def _is_shown(part: Part) -> bool:
    return bool(part.text.strip()) or part.type in ("tool_call", "tool_result", "image", "file")


def _part(part: Part, names: Mapping[str, str], limits: Limits) -> Piece:
    if part.type == "text":
        return Piece("", cut(part.text, limits.text))
    if part.type == "reasoning":
        return Piece("thinks", cut(part.text, limits.reasoning))
    if part.type == "tool_call":
        written = [_arguments(part.arguments, limits), cut(part.text, limits.argument)]
        return Piece(f"calls {_short(part.name)}", "\n".join(text for text in written if text))
    if part.type == "tool_result":
        failed = ", failed" if part.is_error else ""
        name = _short(part.name or names.get(part.call_id or ""))
        return Piece(f"result of {name}{failed}", cut(part.text, limits.result) or "(empty)")
    return _placeholder(part)


def _short(name: str | None) -> str:
    """A tool's name as it may stand in a header: it comes from outside too."""
    return re.sub(r"[^\w.:/@-]", "_", (name or "tool")[:80])


def _arguments(arguments: Any, limits: Limits) -> str:
    if arguments is None:
        return ""
    if not isinstance(arguments, Mapping):
        return cut(plain(arguments), limits.argument)
    return "; ".join(
        f"{name}={cut(plain(value), limits.argument)}" for name, value in arguments.items()
    )


def _placeholder(part: Part) -> Piece:
    size = f"{part.size_bytes:,} bytes" if part.size_bytes is not None else ""
    label = (
        ", ".join(each for each in (part.name or part.uri, part.media_type, size) if each)
        or "unnamed"
    )
    return Piece(
        part.type, f"({cut(label, 400)})" + (f" {cut(part.text, 2_000)}" if part.text else "")
    )


def cut(text: str, characters: int) -> str:
    """A text of at most about so many characters: its beginning and its end, and how much was
    between them.

    >>> cut("a" * 50 + "b" * 50, 40).split()[0], len(cut("short", 40))
    ('aaaaaaaaaaaaaaaaaaaaaaaa', 5)
    """
    if len(text) <= characters:
        return text
    head = characters * 3 // 5
    tail = characters - head
    return f"{text[:head]}{_CUT.format(left=len(text) - characters)}{text[-tail:]}"


def newest_known(known: str, tokens: int) -> str:
    """As much of the known observations as fits: the newest lines, and before them the high ones.

    Three quarters of the room go to the newest lines, the rest to the newest high ones
    among the older; each keeps the date it stands under.
    """
    lines = [
        line
        for line in known.splitlines()
        if line.strip() and not line.strip().startswith(("<thread", "</thread"))
    ]
    if estimate_o200k("\n".join(lines)) <= tokens:
        return "\n".join(lines)
    kept: set[int] = set()
    left = _take(lines, reversed(range(len(lines))), tokens * 0.75, kept=kept, is_stopping=True)
    older_high = [at for at in reversed(range(len(lines))) if at not in kept and _HIGH in lines[at]]
    _take(lines, older_high, tokens * 0.25 + left, kept=kept, is_stopping=False)
    shown = [lines[at] for at in sorted(kept | _headings(lines, kept))]
    return "\n".join([f"[{len(lines) - len(shown)} older lines are left out]", *shown])


def _take(
    lines: Sequence[str], order: Iterable[int], room: float, kept: set[int], is_stopping: bool
) -> float:
    """Keep lines in the given order while there is room; what room is left."""
    for at in order:
        cost = estimate_o200k(lines[at]) + 1
        if cost > room:
            if is_stopping:
                break
            continue
        kept.add(at)
        room -= cost
    return room


def _headings(lines: Sequence[str], kept: set[int]) -> set[int]:
    """The date headings under which kept lines stand."""
    found: set[int] = set()
    last: int | None = None
    for at, line in enumerate(lines):
        if line.startswith("Date:"):
            last = at
        elif at in kept and last is not None:
            found.add(last)
    return found
