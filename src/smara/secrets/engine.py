"""Match rules against bytes with RE2 and return spans.

One union pattern finds where a secret may begin; each rule is then run only there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import re2

from smara.secrets.rule import START, Rule

_OPENING_BYTES = 512
_START_BYTES = 12
_VALUE_BYTES = 4096
_BACKSLASH = ord("\\")
_ENCODED_RUN = r"[A-Za-z0-9+/_-]{16,}={0,2}"
# Room for RE2's cache of states; it is filled only by what texts need, a few MiB in practice.
_UNION_MEMORY = 96 << 20
_RULE_MEMORY = 8 << 20


class Span(NamedTuple):
    """Bytes `start` to `end` hold what `rule` looks for."""

    rule: Rule
    start: int
    end: int


class Engine:
    """All rules, compiled: the union of openings at once, each pattern when it is first needed.

    Safe to share between threads: RE2 objects are, and compiling a pattern twice is harmless.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._rank = {rule.name: rank for rank, rule in enumerate(rules)}
        self._patterns: dict[str, tuple[Any, int]] = {}
        self._encoded = {
            opening: rule for rule in rules if (opening := _encoded_opening(rule.literal))
        }
        self._union = self._compile(_union(rules, self._encoded), _UNION_MEMORY)
        quotes = (b'"', b"'", b"`")
        self._rests = {
            quote: self._compile(rf"[^{quote.decode()}\n]*", _RULE_MEMORY) for quote in quotes
        }
        self._token_rests = {
            quote: self._compile(rf"[^{quote.decode()}\s\\]*", _RULE_MEMORY) for quote in quotes
        }
        self._bare_rest = self._compile(r"[^\s\"'`\\,;]*", _RULE_MEMORY)
        self._run = self._compile(_ENCODED_RUN, _RULE_MEMORY)
        self._placeholder = self._compile(r"\[REDACTED:[a-z0-9-]+\]", _RULE_MEMORY)

    def spans(self, data: bytes) -> list[Span]:
        """Return what is to be redacted, sorted, without overlaps and clear of placeholders."""
        opening = self._union.search(data)
        if opening is None:
            return []
        found: list[Span] = []
        while opening is not None:
            after = opening.start() + 1
            span = self._at(data, opening.start())
            if span:
                found.append(span)
                # A sure format is stepped over. After anything else the search goes on one byte
                # further, because another opening may begin inside this one or inside the assigned
                # value.
                if span.rule.shape == "format":
                    after = max(after, span.end)
            opening = self._union.search(data, after)
        return self._apart(data, found) if found else []

    def _at(self, data: bytes, start: int) -> Span | None:
        """Try the rules whose opening stands at `start`; the first that finds something wins."""
        window = data[start : start + _OPENING_BYTES]
        for index in sorted(self._openings.Match(window) or ()):
            if index >= len(self._rules):
                span = self._decoded_at(data, start)
            else:
                span = self._rule_at(self._rules[index], data, start)
            if span:
                return span
        return None

    def _rule_at(self, rule: Rule, data: bytes, start: int) -> Span | None:
        if rule.name not in self._patterns:
            compiled = self._compile(_pattern(rule), _RULE_MEMORY)
            self._patterns[rule.name] = compiled, compiled.groups
        pattern, groups = self._patterns[rule.name]
        end = min(len(data), start + rule.reach_bytes)
        if rule.lookback_bytes:
            found = pattern.search(data, max(0, start - rule.lookback_bytes - _START_BYTES), end)
        else:
            found = pattern.match(data, start, end)
        if found is None:
            return None
        value = next(
            (span for n in range(1, groups + 1) if (span := found.span(n))[0] >= 0), found.span()
        )
        return self._judged(
            rule, data, start, *(self._closed(rule, data, value[0]) if rule.is_open else value)
        )

    def _closed(self, rule: Rule, data: bytes, start: int) -> tuple[int, int]:
        """Return where the value that begins at `start` ends: at the quote that opened it, or at a
        space.

        Only a password may contain spaces; a token ends at one even if its quote was never closed.
        """
        rests = self._rests if rule.shape == "password" else self._token_rests
        rest = rests.get(data[start - 1 : start], self._bare_rest)
        end: int = rest.match(data, start, min(len(data), start + _VALUE_BYTES)).end()
        while end > start and data[end - 1] == _BACKSLASH:  # of an escaped closing quote
            end -= 1
        return start, end

    def _judged(self, rule: Rule, data: bytes, opening: int, start: int, end: int) -> Span | None:
        """Judge the first characters of a value; a long value is read in full only when they
        pass.
        """
        # Imported here: its expressions take longer to compile than a hook's one clean text to
        # scan.
        from smara.secrets import shape

        is_quoted = data[start - 1 : start] in self._rests and data[end : end + 1] in (
            b'"',
            b"'",
            b"`",
            b"\\",
        )
        if rule.shape != "format":
            head = shape.trim(
                data[start : min(end, start + shape.JUDGED_BYTES)].decode("latin-1"),
                rule,
                is_quoted,
            )
        else:
            head = data[start:end].decode("latin-1")
        if not shape.is_secret(
            head, rule, data[opening:start].decode("latin-1"), is_quoted=is_quoted
        ):
            return None
        return Span(
            rule, start, start + len(shape.trim(data[start:end].decode("latin-1"), rule, is_quoted))
        )

    def _decoded_at(self, data: bytes, start: int) -> Span | None:
        """A known format inside base64, where the format's first characters begin the encoded
        run.
        """
        run = self._run.search(data, start, min(len(data), start + 8192))
        if run is None:
            return None
        try:
            encoded = run.group().rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
            plain = base64.b64decode(encoded + b"=" * (-len(encoded) % 4))
        except binascii.Error:
            return None
        for opening, rule in self._encoded.items():
            if run.group().startswith(opening.encode()):
                span = self._rule_at(rule, plain, 0)
                if span and span.start == 0:
                    return Span(rule, run.start(), run.end())
        return None

    def _apart(self, data: bytes, found: list[Span]) -> list[Span]:
        """Join what overlaps under its surest rule, end at whole characters, and leave placeholders
        alone.
        """
        joined: list[Span] = []
        for span in sorted(found, key=lambda span: (span.start, -span.end)):
            span = _whole_characters(data, span)
            if joined and span.start < joined[-1].end:
                before = joined[-1]
                rule = min(before.rule, span.rule, key=lambda rule: self._rank[rule.name])
                joined[-1] = Span(rule, before.start, max(before.end, span.end))
            else:
                joined.append(span)
        if b"[REDACTED:" not in data:
            return joined
        return list(_without(joined, [match.span() for match in self._placeholder.finditer(data)]))

    def _compile(self, pattern: str, memory_bytes: int) -> Any:
        return re2.compile(pattern.encode("ascii"), self._options(memory_bytes))

    def _options(self, memory_bytes: int) -> Any:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.log_errors = False
        options.max_mem = memory_bytes
        return options

    @cached_property
    def _openings(self) -> Any:
        """One set that tells which rules open at a place; the last entry stands for all encoded
        formats.
        """
        openings = re2.Set.MatchSet(self._options(_UNION_MEMORY))
        for rule in self._rules:
            openings.Add(_opening(rule).encode("ascii"))
        openings.Add(f"{START}(?:{'|'.join(self._encoded)})".encode("ascii"))
        openings.Compile()
        return openings


def _pattern(rule: Rule) -> str:
    return f"{START}(?:{rule.pattern})" if rule.is_bounded else rule.pattern


def _opening(rule: Rule) -> str:
    return f"{START if rule.is_bounded else ''}(?:{'|'.join(rule.keywords)})"


def _union(rules: tuple[Rule, ...], encoded: Iterable[str]) -> str:
    """The one expression over all openings, with what rules have in common written once."""
    families: dict[tuple[bool, str], list[str]] = {(True, ""): list(encoded)}
    for rule in rules:
        families.setdefault((rule.is_bounded, rule.following), []).extend(rule.keywords)
    return "|".join(
        f"{START if is_bounded else ''}(?:{'|'.join(keywords)}){following}"
        for (is_bounded, following), keywords in families.items()
    )


def _encoded_opening(literal: str) -> str:
    """The base64 characters that `literal` fixes: `ghp_` has 32 bits, so five characters of six
    bits.
    """
    return (
        base64.b64encode(literal.encode()).decode()[: len(literal) * 8 // 6]
        if len(literal) >= 4
        else ""
    )


def _whole_characters(data: bytes, span: Span) -> Span:
    start, end = span.start, span.end
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return Span(span.rule, start, end)


def _without(spans: list[Span], placeholders: list[tuple[int, int]]) -> Iterable[Span]:
    """Cut placeholders out of spans; what remains of a cut span stays one when it is longer than
    punctuation.
    """
    first = 0
    for span in spans:
        while first < len(placeholders) and placeholders[first][1] <= span.start:
            first += 1
        start, at = span.start, first
        while at < len(placeholders) and placeholders[at][0] < span.end:
            if placeholders[at][0] - start >= 4:
                yield Span(span.rule, start, placeholders[at][0])
            start, at = placeholders[at][1], at + 1
        if at == first or span.end - start >= 4:
            yield Span(span.rule, start, span.end)
