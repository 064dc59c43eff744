"""Find secrets in a text, in time linear in its length.

The engine and the rules are loaded at the first scan, because compiling them is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smara.secrets.engine import Engine, Span


PLACEHOLDER_START = "[REDACTED:"
# A redacted value gives its neighbors new borders, and a border may complete a pattern.
# Ordinary texts settle in the second round; the limit keeps a hostile one linear.
_MAX_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """Where a secret stands and what kind it is; never the secret itself."""

    rule: str
    label: str
    start: int
    end: int

    @property
    def placeholder(self) -> str:
        """What is written in place of the secret."""
        return f"{PLACEHOLDER_START}{self.label}]"


def scan(text: str) -> tuple[SecretFinding, ...]:
    """Return the secrets in a text: sorted, not overlapping, in characters of that text.

    Never raises for any text. A placeholder of an earlier redaction is not a finding.
    """
    data = text.encode("utf-8", "surrogatepass")
    spans = _engine().spans(data)
    return _settle(text, data, spans) if spans else ()


def _settle(text: str, data: bytes, spans: list[Span]) -> tuple[SecretFinding, ...]:
    """Scan what redaction would leave until nothing more appears."""
    for _ in range(_MAX_ROUNDS):
        redacted, kept = _redacted_bytes(data, spans)
        more = _engine().spans(redacted)
        if not more:
            break
        spans = sorted(
            [*spans, *(_original_spans(span, kept) for span in more)], key=lambda span: span.start
        )
    return _in_characters(text, data, spans)


def _redacted_bytes(data: bytes, spans: list[Span]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the bytes after redaction, and for each kept piece where it stands there and by how
    much it moved.
    """
    pieces: list[bytes] = []
    kept: list[tuple[int, int]] = []
    size = position = 0
    for span in spans:
        kept.append((size, position - size))
        placeholder = f"{PLACEHOLDER_START}{span.rule.label}]".encode()
        pieces += (data[position : span.start], placeholder)
        size += span.start - position + len(placeholder)
        position = span.end
    kept.append((size, position - size))
    pieces.append(data[position:])
    return b"".join(pieces), kept


def _original_spans(span: Span, kept: list[tuple[int, int]]) -> Span:
    """Return a span of the redacted bytes as a span of the original ones.

    Spans never touch a placeholder, so one shift moves both ends.
    """
    low, high = 0, len(kept)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kept[middle][0] <= span.start else (low, middle)
    shift = kept[low][1]
    return span._replace(start=span.start + shift, end=span.end + shift)


def _in_characters(text: str, data: bytes, spans: list[Span]) -> tuple[SecretFinding, ...]:
    if len(data) == len(text):
        return tuple(
            SecretFinding(span.rule.name, span.rule.label, span.start, end=span.end)
            for span in spans
        )
    findings = []
    position = characters = 0
    for span in spans:
        characters += len(data[position : span.start].decode("utf-8", "surrogatepass"))
        size = len(data[span.start : span.end].decode("utf-8", "surrogatepass"))
        findings.append(
            SecretFinding(span.rule.name, span.rule.label, characters, end=characters + size)
        )
        characters += size
        position = span.end
    return tuple(findings)


@cache
def _engine() -> Engine:
    # Imported here: the engine loads RE2, which takes longer than all of `import smara.secrets`.
    from smara.secrets.engine import Engine
    from smara.secrets.rules import RULES

    return Engine(RULES)
