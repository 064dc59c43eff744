"""Find secrets in a text, and replace them by placeholders.

The time is linear in the length of the text. A placeholder says what kind of secret was there. In
JSON, a key such as `password` makes its value secret whatever it looks like. The engine and the
rules are loaded at the first scan, because compiling them is slow.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from smara.core.scope import require_id
from smara.core.secret_prefilter import may_hold_secret
from smara.core.startup.record import dataclass
from smara.core.validate import invalid
from smara.core.veils import cut, is_veiled, unveil
from smara.errors import InvalidInputError

if TYPE_CHECKING:
    from smara.secrets.engine import Engine, Span


PLACEHOLDER_START = "[REDACTED:"
# A redacted value gives its neighbors new borders, and a border may complete a pattern.
# Ordinary texts settle in the second round; the limit keeps a hostile one linear.
_MAX_ROUNDS = 6
_STEP_CHARACTERS = 4096
_LEFT_OUT = "…[{} characters left out: too much to scan]"


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """The place and the kind of a secret; never the secret itself."""

    rule: str
    label: str
    start: int
    end: int

    @property
    def placeholder(self) -> str:
        """The text that replaces the secret."""
        return f"{PLACEHOLDER_START}{self.label}]"


def scan(text: str) -> tuple[SecretFinding, ...]:
    """Return the secrets in a text: sorted, not overlapping.

    In characters of that text.

    Never raises for any text. A placeholder of an earlier redaction is not a finding.
    """
    data = text.encode("utf-8", "surrogatepass")
    spans = _spans(data)
    if not spans:
        return ()
    for _ in range(_MAX_ROUNDS):  # scan what redaction would leave until nothing more appears
        redacted, shifts = _redacted_bytes(data, spans)
        more = _spans(redacted)
        if not more:
            break
        # Spans never touch a placeholder, so one shift moves both ends.
        for span in more:
            shift = shifts[bisect_right(shifts, span.start, key=lambda each: each[0]) - 1][1]
            spans.append(span._replace(start=span.start + shift, end=span.end + shift))
        spans.sort(key=lambda span: span.start)
    is_ascii = len(data) == len(text)
    findings = []
    position = characters = 0
    for span in spans:
        start, end = span.start, span.end
        if not is_ascii:
            start = characters + len(data[position : span.start].decode("utf-8", "surrogatepass"))
            end = start + len(data[span.start : span.end].decode("utf-8", "surrogatepass"))
            position, characters = span.end, end
        findings.append(SecretFinding(span.rule.name, span.rule.label, start, end=end))
    return tuple(findings)


def _spans(data: bytes) -> list[Span]:
    """Return the secrets in bytes, also those that colors or invisible signs run through."""
    spans = _engine().spans(data)
    if not is_veiled(data):
        return spans
    plain, moves = unveil(data)
    starts = [start for start, _ in moves]
    for span in _engine().spans(plain):
        first, last = (
            place + moves[bisect_right(starts, place) - 1][1]
            for place in (span.start, span.end - 1)
        )
        spans.append(span._replace(start=first, end=last + 1))
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if joined and span.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _redacted_bytes(data: bytes, spans: list[Span]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the redacted bytes, and for each remaining piece its start there and its shift."""
    return cut(
        data,
        (
            (span.start, span.end, f"{PLACEHOLDER_START}{span.rule.label}]".encode())
            for span in spans
        ),
    )


@cache
def _engine() -> Engine:
    # Imported here: the engine loads RE2, which takes longer than all of `import smara.secrets`.
    from smara.secrets.engine import Engine
    from smara.secrets.rules import RULES

    return Engine(RULES)


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
    clean, _ = cut(text, ((each.start, each.end, each.placeholder) for each in findings))
    return Redaction(clean, findings)


Frame = tuple[Any, str, Iterator[tuple[Any, Any]], list[Any]]


def redact_value(value: Any, most_steps: int | None = None) -> tuple[Any, int]:
    """Return a copy without secrets and how many were replaced.

    With ``most_steps``, a hostile value cannot take long: each text, each 4 KiB of it and each
    place where a secret may begin is a step. What is left when they are used up is replaced by a
    mark that says so; nothing that was not scanned is returned.

    Dicts, lists and tuples are walked to any depth without recursion; a part
    that occurs several times is walked once, and a part that contains itself
    ends in `[CYCLE]`. Anything else that is not a string is kept as it is.
    """
    return _Walk(most_steps).run(value)


class _Walk:
    """One walk through a value, with an explicit stack."""

    def __init__(self, most_steps: int | None = None) -> None:
        self._count = 0
        self._steps = self._most_steps = most_steps

    def run(self, value: Any) -> tuple[Any, int]:
        finished: dict[tuple[int, str], Any] = {}
        unfinished: set[tuple[int, str]] = set()
        result: list[Any] = []
        stack: list[Frame] = [(None, "", iter([("", value)]), result)]
        while stack:
            container, name, entries, out = stack[-1]
            for name_of_part, part in entries:
                identity = (id(part), name_of_part)
                if isinstance(part, str):
                    out.append(self._text(part, name_of_part))
                elif not isinstance(part, dict | list | tuple):
                    out.append(part)
                elif identity in finished:
                    out.append(finished[identity])
                elif identity in unfinished:
                    out.append("[CYCLE]")
                else:
                    unfinished.add(identity)
                    stack.append((part, name_of_part, _entries(part, name_of_part), []))
                    break
            else:
                stack.pop()
                if stack:
                    built: Any = out
                    if isinstance(container, dict):
                        built = self._dict(container, out)
                    elif isinstance(container, tuple):
                        built = tuple(out)
                    unfinished.discard((id(container), name))
                    finished[id(container), name] = built
                    stack[-1][3].append(built)
        return result[0], self._count

    def _dict(self, original: dict[Any, Any], values: list[Any]) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        numbers: dict[Any, int] = {}
        # The names of fields have steps of their own: without them no value could be found.
        self._steps, spent = self._most_steps, self._steps
        for key, value in zip(original, values, strict=True):
            plain = unique = self._text(key, "") if isinstance(key, str) else key
            while unique in built:  # two keys that held different secrets of one kind
                numbers[plain] = numbers.get(plain, 1) + 1
                unique = f"{plain}#{numbers[plain]}"
            built[unique] = value
        self._steps = spent
        return built

    def _text(self, text: str, name: str) -> str:
        if self._steps is not None:
            if self._steps <= 0:
                return _LEFT_OUT.format(len(text))
            text = self._scannable(text)
        redaction = redact(text)
        if redaction.findings:
            self._count += len(redaction.findings)
            return redaction.text
        finding = _as_assignment(name, text) if text and _is_telling(name) else None
        self._count += finding is not None
        return finding.placeholder if finding else text

    def _scannable(self, text: str) -> str:
        """Return as much of a text as the steps allow to be scanned."""
        steps = self._steps or 0
        data = text[: steps * _STEP_CHARACTERS].encode("utf-8", "surrogatepass")
        openings, end = _engine().count_openings(data, steps)
        self._steps = steps - 1 - openings - len(text) // _STEP_CHARACTERS
        scanned = data[:end].decode("utf-8", "ignore")
        return scanned + _LEFT_OUT.format(len(text) - len(scanned)) if end < len(data) else text


def _entries(container: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The parts of a container by name; those of a list go by the name of the list."""
    if isinstance(container, dict):
        return ((key if isinstance(key, str) else "", part) for key, part in container.items())
    return ((name, part) for part in container)


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
    return dump(redact_value(dict(metadata))[0], "metadata") if metadata else "{}"


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
    return clean_id(require_id(value, what))


MAX_LINE_LENGTH = 200


def clean_line(value: object, what: str, longest: int = MAX_LINE_LENGTH) -> str:
    """One line of text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise invalid(
            f"{what} must be a text that is not blank; got {value!r}", "Give a few words.", what
        )
    line = " ".join(value.split())
    if len(line) > longest:
        raise invalid(
            f"{what} has {len(line)} characters; at most {longest} are allowed", "Shorten it.", what
        )
    return redact(line).text


def clean_list(
    values: object,
    what: str,
    most: int,
    clean: Callable[[object, str], str] = clean_line,
) -> tuple[str, ...]:
    """Return lines or paths, each once, in the order given."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise invalid(
            f"{what} must be a list of texts, not {type(values).__name__}", "Give a list.", what
        )
    found = dict.fromkeys(clean(value, what) for value in values)
    if len(found) > most:
        raise invalid(f"{len(found)} {what} are too many", f"At most {most} are allowed.", what)
    return tuple(found)


def redact_brief(text: str) -> str:
    """Return an id or a query without secrets.

    In a process that scans nothing else, loading the engine would take longer than its whole work,
    so a filter is asked first whether there may be something to find. What is stored goes through
    ``redact`` itself.
    """
    # A process that has loaded the engine asks it: that is ten times as fast as the filter, which
    # looks away from the ids of events, so that nothing in quotes is left to it.
    is_left_to_filter = not _engine.cache_info().currsize and '"' not in text
    if is_left_to_filter and not may_hold_secret(text.encode("utf-8", "surrogatepass")):
        return text
    return redact(text).text


@lru_cache(maxsize=4096)
def clean_id(value: str) -> str:
    """Return an id without secrets; most come back unchanged."""
    shown = redact_brief(value)
    # Two names that both look like secrets must not become one.
    is_clean = shown == value
    return value if is_clean else f"{shown}#{hashlib.sha256(value.encode()).hexdigest()[:8]}"
