"""Define the records that an importer makes of a file's lines.

A line becomes a message (`Imported`) or is counted with a reason (`Counted`). The two
always add up to the number of lines. `Identities` gives messages their client ids, so that
importing a file again stores nothing twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from smara.core.extract import shorten
from smara.core.startup.record import dataclass, replace
from smara.core.startup.regex import regex
from smara.messages.models import NewMessage, NewThread, Part, Role
from smara.secrets import redact

MAX_TITLE_CHARS = 100
_BEFORE_TITLE = regex(
    r"\A\s*(?:<([A-Za-z][\w-]*)>[ \t]*\n(?s:.*?)\n[ \t]*</\1>[ \t]*(?:\n\s*|\Z))*"
    r"(?:[^\n]*:[ \t]*\n\s*(?=#{1,6}[ \t]))?(?:#{1,6}[ \t]+)?"
)


def shorten_title(text: str) -> str:
    """The first line with words, cut to the length of a title.

    A block of tags that a host put before it is left out, and so is a line such as "Implement the
    following plan:" above a heading.
    """
    words = _BEFORE_TITLE.sub("", text[:20_000], count=1)
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return shorten(line, MAX_TITLE_CHARS)


# Called with the bytes read so far and the bytes in the file, as they lie on disk.
Progress = Callable[[int, int], None]

MAX_ID_CHARS = 200
UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Imported:
    """A line that became a message.

    ``thread`` is what the file has said about the thread so far; it grows richer as the
    file goes on, and is the same object until it does. ``repairs`` says what had to be
    mended to read the line; the message carries the same list in its metadata.
    """

    line: int
    thread: NewThread
    message: NewMessage
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """A line that did not become a message, and why.

    ``reason`` is the same sentence for all lines of its sort, ``detail`` is about this
    line alone. ``thread`` is set when the line told something about a thread.
    """

    line: int
    kind: str
    reason: str
    detail: str = ""
    thread: NewThread | None = None


Record = Imported | Counted


class Identities:
    """Gives the messages of one file their client ids, and notices repeats.

    About 150 bytes are kept per message; the messages themselves are not.
    """

    def __init__(self) -> None:
        self._ordinals: Counter[bytes] = Counter()
        self._contents: dict[bytes, bytes] = {}

    def of_line(self, thread_id: str, raw: bytes) -> str:
        """Return an id for a line without one: its hash and ordinal.

        Reading the same file again gives the same ids, also after lines were appended.
        """
        digest = _digest(thread_id, raw)
        ordinal = self._ordinals[digest]
        self._ordinals[digest] += 1
        return f"line-{digest.hex()}" + (f"-{ordinal + 1}" if ordinal else "")

    def settle(self, imported: Imported) -> Record:
        """Return the record as stored: repeats counted, clashes of ids mended.

        Two different messages under one id would be stored as one, and the second lost;
        it therefore gets an id of its own, made from its content.
        """
        message = imported.message
        client_id = message.client_id or ""
        key = _digest(imported.thread.id, client_id.encode("utf-8", "replace"))
        content = _content_digest(message)
        stored = self._contents.setdefault(key, content)
        if stored is content:
            return imported
        if stored == content:
            reason = "repeats an earlier record with the same id"
            return Counted(imported.line, "repeat", reason, detail=client_id)
        repairs = (*imported.repairs, "its id belongs to another message")
        fresh = replace(
            message,
            client_id=f"{client_id}#{content.hex()[:16]}",
            metadata={**message.metadata, "repairs": list(repairs)},
        )
        return self.settle(replace(imported, repairs=repairs, message=fresh))


def build(
    line: int,
    thread: NewThread,
    role: Role,
    content: str | tuple[Part, ...],
    *,
    client_id: str,
    created_at: int | None,
    metadata: dict[str, Any],
    repairs: tuple[str, ...] = (),
    task_id: str | None = None,
) -> Imported:
    """An `Imported` whose message says in its metadata what was repaired."""
    if repairs:
        metadata = {**metadata, "repairs": list(repairs)}
    message = NewMessage(
        role, content, client_id, created_at=created_at, task_id=task_id, metadata=metadata
    )
    return Imported(line, thread, message, repairs=repairs)


def has_content(parts: Iterable[Part]) -> bool:
    """Return True if a message says anything; white space does not."""
    return any(part.type != "text" or part.text.strip() for part in parts)


def bounded_id(value: str) -> str:
    """Return an id fit to be a key, or its hash.

    The hash stands for one that is overlong, unprintable, or holds a secret.
    """
    if (
        len(value) <= MAX_ID_CHARS
        and value.isprintable()
        and (UUID.fullmatch(value) or _is_clean(value))
    ):
        return value
    return f"id-{_digest(value).hex()}"


@lru_cache(maxsize=4096)
def _is_clean(value: str) -> bool:
    return redact(value).text == value


def _content_digest(message: NewMessage) -> bytes:
    if isinstance(message.content, str):
        return _digest(message.role, message.content)
    # A tool's name is left out: it is known only when the call has been read before.
    return _digest(
        message.role,
        *(
            piece
            for part in message.content
            for piece in (part.type, part.text, part.call_id or "", repr(part.arguments))
        ),
    )


def _digest(*pieces: str | bytes) -> bytes:
    """A hash of the pieces that also depends on where one ends and the next begins."""
    encoded = (
        piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace") for piece in pieces
    )
    framed = b"".join(b"%d:%b" % (len(each), each) for each in encoded)
    return hashlib.sha256(framed).digest()[:16]
