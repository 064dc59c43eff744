"""Find secrets in a text, in time linear in its length.

The engine and the rules are loaded at the first scan, because compiling them is slow.
"""

from __future__ import annotations

from bisect import bisect_right
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
    spans = _engine().spans(data)
    if not spans:
        return ()
    for _ in range(_MAX_ROUNDS):  # scan what redaction would leave until nothing more appears
        redacted, shifts = _redacted_bytes(data, spans)
        more = _engine().spans(redacted)
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


def _redacted_bytes(data: bytes, spans: list[Span]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the redacted bytes, and for each remaining piece its start there and its shift."""
    pieces: list[bytes] = []
    shifts: list[tuple[int, int]] = []
    size = position = 0
    for span in spans:
        shifts.append((size, position - size))
        placeholder = f"{PLACEHOLDER_START}{span.rule.label}]".encode()
        pieces += (data[position : span.start], placeholder)
        size += span.start - position + len(placeholder)
        position = span.end
    shifts.append((size, position - size))
    pieces.append(data[position:])
    return b"".join(pieces), shifts


@cache
def _engine() -> Engine:
    # Imported here: the engine loads RE2, which takes longer than all of `import smara.secrets`.
    from smara.secrets.engine import Engine
    from smara.secrets.rules import RULES

    return Engine(RULES)
