"""Prepare a message for storage: check, redact, pack, count, analyze.

All of it happens before the transaction, so that the database is locked only briefly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from smara.core.clock import check_time
from smara.core.escape import from_storable, to_storable
from smara.core.scope import require_id
from smara.core.text import Analysis, analyze_chunks
from smara.core.tokens import TokenCounter
from smara.core.validate import one_of
from smara.errors import InvalidInputError
from smara.messages.models import ROLES, NewMessage, Part, Role
from smara.messages.parts import pack, parts_of
from smara.secrets import redact, redact_value
from smara.secrets.redact import dump_metadata

_FIELDS = frozenset(NewMessage.__slots__)


class PreparedMessage(NamedTuple):
    """A message ready to be written.

    ``withheld`` is stored in place of the text and its layout: hashed terms and a pointer.
    """

    role: Role
    parts: tuple[Part, ...]
    raw_content: str
    layout: str | None
    token_count: int
    token_method: str
    client_id: str | None
    task_id: str | None
    created_at: int | None
    metadata: str | None
    chunks: tuple[Analysis, ...]
    withheld: tuple[str, str] | None = None

    @property
    def term_count(self) -> int:
        """The number of its index terms."""
        return sum([chunk.length for chunk in self.chunks])


def as_new_message(value: NewMessage | Mapping[str, Any]) -> NewMessage:
    """Convert a dict to a ``NewMessage``; refuse unknown keys by name."""
    if isinstance(value, NewMessage):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"A message must be a dict or a NewMessage, not {type(value).__name__}."
        )
    unknown = set(value) - _FIELDS
    if unknown:
        raise InvalidInputError(
            f"Unknown message field {', '.join(sorted(map(str, unknown)))}. Allowed: "
            f"{', '.join(sorted(_FIELDS))}."
        )
    if "role" not in value or "content" not in value:
        raise InvalidInputError("A message needs a role and a content.")
    return NewMessage(**value)


def prepare(
    messages: Iterable[NewMessage | Mapping[str, Any]],
    counter: TokenCounter,
    max_bytes: int,
    first: int | None = None,
) -> list[PreparedMessage]:
    """Check and ready messages; raises ``InvalidInputError`` with what to change.

    Each step is taken for all of them before the next one: the tables of redaction, of tokens and
    of terms would drive each other out of the processor's cache, which doubles the time.

    Args:
        messages: The messages, or their fields.
        counter: Counts their tokens.
        max_bytes: The most that one may have.
        first: The number of the first one, to be named in errors; None for a single one.
    """
    drafts: list[PreparedMessage] = []
    for message in messages:
        try:
            drafts.append(_draft(as_new_message(message), max_bytes))
        except InvalidInputError as error:
            if first is None:
                raise
            position = first + len(drafts)
            raise InvalidInputError(
                f"Message {position}: {error}", position=position, **error.facts
            ) from None
    texts = [from_storable(draft.raw_content) for draft in drafts]
    counts = [counter.count(text) for text in texts]
    terms = [analyze_chunks(text) for text in texts]
    return [
        draft._replace(token_count=count.tokens, token_method=count.method, chunks=chunks)
        for draft, count, chunks in zip(drafts, counts, terms, strict=True)
    ]


def _draft(message: NewMessage, max_bytes: int) -> PreparedMessage:
    """Return a message without its secrets, not yet counted and analyzed."""
    one_of(message.role, ROLES, "role")
    parts = redact_parts(parts_of(message.content))
    raw, layout = pack(parts)
    size = len(raw) if raw.isascii() else len(raw.encode("utf-8", "replace"))
    if size > max_bytes:
        raise InvalidInputError(
            f"The message has {size:,} bytes; at most {max_bytes:,} are stored. "
            "Split it, or raise max_message_bytes. Nothing was stored.",
            size=size,
        )
    return PreparedMessage(
        role=message.role,
        parts=parts,
        raw_content=to_storable(raw),
        layout=layout,
        token_count=0,
        token_method="",
        client_id=None if message.client_id is None else require_id(message.client_id, "client_id"),
        task_id=None if message.task_id is None else require_id(message.task_id, "task_id"),
        created_at=check_time(message.created_at),
        metadata=dump_metadata(message.metadata) if message.metadata else None,
        chunks=(),
    )


def stored_terms(text: str, layout: str | None) -> tuple[Analysis, ...]:
    """Return a stored message's index terms; hashed without a text."""
    if layout is None or not layout.startswith("{"):
        return analyze_chunks(from_storable(text))
    return tuple(
        Analysis(prose, code, len(prose.split()) + len(code.split()))
        for prose, _, code in (line.partition("\t") for line in text.split("\n"))
    )


def redact_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts without their secrets."""
    found: list[Part] = []
    for part in parts:
        text = redact(part.text).text if part.text else part.text
        if part.type in ("text", "reasoning") and part.name is part.uri is None:
            found.append(part if text is part.text else replace(part, text=text))
            continue
        names: dict[str, Any] = {
            name: value and redact(value).text
            for name in ("name", "uri", "call_id", "media_type")
            if (value := getattr(part, name)) is not None
        }
        if part.arguments is not None:
            names["arguments"] = redact_value(part.arguments)[0]
        found.append(replace(part, text=text, **names))
    return tuple(found)


def repack(
    parts: Sequence[Part], content: str | Sequence[Part], counter: TokenCounter, max_bytes: int
) -> PreparedMessage:
    """Append parts to stored ones; text continues the last part."""
    more = parts_of(content)
    if parts and more and parts[-1].type == more[0].type == "text":
        more = (replace(more[0], text=parts[-1].text + more[0].text), *more[1:])
        parts = parts[:-1]
    return prepare([NewMessage("assistant", (*parts, *more))], counter, max_bytes)[0]
