"""Replace secrets in texts, JSON values, metadata and names by placeholders.

A placeholder says what kind of secret was there. In JSON, a key such as `password` makes
its value secret whatever it looks like.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from smara.core.scope import require_id
from smara.core.validate import invalid
from smara.errors import InvalidInputError
from smara.secrets.scan import SecretFinding, scan


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and where they stood in the original."""

    text: str
    findings: tuple[SecretFinding, ...]


def redact(text: str) -> Redaction:
    """Replace every secret by `[REDACTED:label]`; twice is the same as once.

    A text without secrets is returned as the same object.
    """
    findings = scan(text)
    if not findings:
        return Redaction(text, ())
    pieces: list[str] = []
    position = 0
    for finding in findings:
        pieces += (text[position : finding.start], finding.placeholder)
        position = finding.end
    pieces.append(text[position:])
    return Redaction("".join(pieces), findings)


Frame = tuple[Any, str, Iterator[tuple[Any, Any]], list[Any]]


def redact_value(value: Any) -> tuple[Any, int]:
    """Return a copy without secrets and how many were replaced.

    Dicts, lists and tuples are walked to any depth without recursion; a part
    that occurs several times is walked once, and a part that contains itself
    ends in `[CYCLE]`. Anything else that is not a string is kept as it is.
    """
    return _Walk().run(value)


class _Walk:
    """One walk through a value, with an explicit stack."""

    def __init__(self) -> None:
        self._count = 0
        self._done: dict[tuple[int, str], Any] = {}
        self._open: set[tuple[int, str]] = set()

    def run(self, value: Any) -> tuple[Any, int]:
        result: list[Any] = []
        stack: list[Frame] = [(None, "", iter([("", value)]), result)]
        while stack:
            container, name, entries, out = stack[-1]
            entry = next(entries, None)
            if entry is not None:
                self._enter(entry[1], entry[0], out, stack=stack)
                continue
            stack.pop()
            if stack:
                built: Any = out
                if isinstance(container, dict):
                    built = self._dict(container, out)
                elif isinstance(container, tuple):
                    built = tuple(out)
                self._open.discard((id(container), name))
                self._done[id(container), name] = built
                stack[-1][3].append(built)
        return result[0], self._count

    def _enter(self, item: Any, name: str, out: list[Any], stack: list[Frame]) -> None:
        identity = (id(item), name)
        if isinstance(item, str):
            out.append(self._text(item, name))
        elif not isinstance(item, dict | list | tuple):
            out.append(item)
        elif identity in self._done:
            out.append(self._done[identity])
        elif identity in self._open:
            out.append("[CYCLE]")
        else:
            self._open.add(identity)
            # A list's parts go by the name of the list.
            entries: Iterator[tuple[str, Any]] = (
                ((key if isinstance(key, str) else "", part) for key, part in item.items())
                if isinstance(item, dict)
                else ((name, part) for part in item)
            )
            stack.append((item, name, entries, []))

    def _dict(self, original: dict[Any, Any], values: list[Any]) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key, value in zip(original, values, strict=True):
            plain = unique = self._text(key, "") if isinstance(key, str) else key
            number = 2
            while unique in built:  # two keys that held different secrets of one kind
                unique, number = f"{plain}#{number}", number + 1
            built[unique] = value
        return built

    def _text(self, text: str, name: str) -> str:
        redaction = redact(text)
        if redaction.findings:
            self._count += len(redaction.findings)
            return redaction.text
        finding = _as_assignment(name, text) if text and _is_telling(name) else None
        self._count += finding is not None
        return finding.placeholder if finding else text


@lru_cache(maxsize=4096)
def _is_telling(name: str) -> bool:
    """Return True if a random value under this key would be a secret."""
    return 0 < len(name) <= 80 and _as_assignment(name, "9f8aTq2Lx77bZpQm41Rs") is not None


def _as_assignment(name: str, text: str) -> SecretFinding | None:
    """Judge a value with its key as an assignment; only a wholly secret value counts."""
    quote = next((quote for quote in "\"'`" if quote not in text), None)
    if quote is None:
        return None
    opening = f'"{name}": {quote}'
    span = (len(opening), len(opening) + len(text))
    return next((f for f in scan(f"{opening}{text}{quote}") if (f.start, f.end) == span), None)


_DEPTH_LIMIT = 200


def dump_metadata(metadata: Mapping[str, Any]) -> str:
    """Return metadata as redacted JSON, or raise InvalidInputError."""
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata must be a dict, not {type(metadata).__name__}.")
    return dump(redact_value(dict(metadata))[0], "metadata")


def dump(value: Mapping[str, Any], what: str) -> str:
    """Return a value as JSON text, or raise InvalidInputError."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise InvalidInputError(
            f"{what} is nested too deeply. Keep it under {_DEPTH_LIMIT} levels."
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} cannot be written as JSON: {error}. Use texts, numbers, lists, dicts."
        ) from None


def clean_name(value: object, what: str) -> str:
    """Return a name of a person or session without secrets."""
    if not isinstance(value, str):
        raise invalid(
            f"{what} must be a text, not {type(value).__name__}", "Give a name or an id.", what
        )
    shown = redact(require_id(value, what)).text
    if shown == value:
        return value
    # Two names that both look like secrets must not become one holder.
    return f"{shown}#{hashlib.sha256(value.encode()).hexdigest()[:8]}"
