"""Replace the secrets in a text by placeholders that say what was there."""

from __future__ import annotations

from dataclasses import dataclass

from smara.secrets.scan import Finding, scan


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and where they stood in the original."""

    text: str
    findings: tuple[Finding, ...]


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
