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
    """All rules, compiled: the union of openings first, each pattern when needed.

    Safe to share between threads: RE2 objects are, and compiling a pattern twice is harmless.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._rank = {rule.name: rank for rank, rule in enumerate(rules)}
        self._patterns: dict[str, tuple[Any, int]] = {}
        self._encoded = {
            opening: rule for rule in rules if (opening := encoded_opening(rule.literal))
        }
        self._union = _compile(_union(rules, self._encoded), _UNION_MEMORY)
        quotes = (b'"', b"'", b"`")
        self._rests = {
            quote: _compile(rf"[^{quote.decode()}\n]*", _RULE_MEMORY) for quote in quotes
        }
        self._token_rests = {
            quote: _compile(rf"[^{quote.decode()}\s\\]*", _RULE_MEMORY) for quote in quotes
        }
        self._bare_rest = _compile(r"[^\s\"'`\\,;]*", _RULE_MEMORY)
        self._run = _compile(_ENCODED_RUN, _RULE_MEMORY)
        self._pair = _compile(r"[\w.-]+=", _RULE_MEMORY)
        self._placeholder = _compile(r"\[REDACTED:[a-z0-9-]+\]", _RULE_MEMORY)

    def spans(self, data: bytes) -> list[Span]:
        """Return what to redact: sorted, without overlaps, clear of placeholders."""
        opening = self._union.search(data)
        if opening is None:
            return []
        found: list[Span] = []
        while opening is not None:
            after = opening.start() + 1
            start, span = opening.start(), None
            # The first rule that finds something wins.
            for index in sorted(self._openings.Match(data[start : start + _OPENING_BYTES]) or ()):
                if index < len(self._rules):
                    span = self._rule_at(self._rules[index], data, start)
                else:
                    span = self._decoded_at(data, start)
                if span:
                    break
            if span:
                found.append(span)
                # A sure format is stepped over. After anything else the search goes on one byte
                # further, because another opening may begin inside this one or inside the assigned
                # value.
                if span.rule.shape == "format":
                    after = max(after, span.end)
            opening = self._union.search(data, after)
        return self._apart(data, found) if found else []

    def count_openings(self, data: bytes, most: int) -> tuple[int, int]:
        """Count openings up to ``most``; return where the next begins."""
        count, opening = 0, self._union.search(data)
        while opening is not None and count < most:
            count += 1
            opening = self._union.search(data, opening.start() + 1)
        return count, len(data) if opening is None else opening.start()

    def _rule_at(self, rule: Rule, data: bytes, start: int) -> Span | None:
        if rule.name not in self._patterns:
            bounded = f"{START}(?:{rule.pattern})" if rule.is_bounded else rule.pattern
            compiled = _compile(bounded, _RULE_MEMORY)
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
        """Return the ends of a value: its closing quote, or a space.

        Only a password may contain spaces; a token ends at one even if its quote was never closed.
        """
        rests = self._rests if rule.shape == "password" else self._token_rests
        rest = rests.get(data[start - 1 : start], self._bare_rest)
        end: int = rest.match(data, start, min(len(data), start + _VALUE_BYTES)).end()
        while end > start and data[end - 1] == _BACKSLASH:  # of an escaped closing quote
            end -= 1
        return start, end

    def _judged(self, rule: Rule, data: bytes, opening: int, start: int, end: int) -> Span | None:
        """Judge the first characters of a value; a long value is read in full if they pass."""
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
            head,
            rule,
            data[opening:start].decode("latin-1"),
            is_quoted=is_quoted,
            ends_line=data[end - 1 : end] not in b")]}"
            and (
                data[end : end + 2].strip(b" ")[:1] in (b"", b"\n", b"\r", b"\\")
                # An argument of code would end with a comma.
                or (data[start - 1 : start] == b"=" and data[end : end + 1] in b";\"'")
                # `host=db password=… dbname=shop`, and not `reset_password=Reset your password`
                or (
                    data[start - 1 : start] == b"="
                    and data[end : end + 1] == b" "
                    and (
                        self._pair.match(data, end + 1, min(len(data), end + 40)) is not None
                        or b"=" in data[:opening].rpartition(b"\n")[2][-80:]
                    )
                )
            ),
        ):
            return None
        return Span(
            rule, start, start + len(shape.trim(data[start:end].decode("latin-1"), rule, is_quoted))
        )

    def _decoded_at(self, data: bytes, start: int) -> Span | None:
        """Return a known format inside base64, if its first characters begin the run."""
        run = self._run.search(data, start, min(len(data), start + 8192))
        if run is None:
            return None
        content = run.group()
        try:
            encoded = content.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
            plain = base64.b64decode(encoded + b"=" * (-len(encoded) % 4))
        except binascii.Error:
            return None
        for opening, rule in self._encoded.items():
            if content.startswith(opening.encode()):
                span = self._rule_at(rule, plain, 0)
                if span and span.start == 0:
                    return Span(rule, run.start(), run.end())
        return None

    def _apart(self, data: bytes, found: list[Span]) -> list[Span]:
        """Join overlaps under the surest rule, end at whole characters, skip placeholders."""
        joined: list[Span] = []
        for span in sorted(found, key=lambda span: (span.start, -span.end)):
            start, end = span.start, span.end
            while start > 0 and data[start] & 0xC0 == 0x80:
                start -= 1
            while end < len(data) and data[end] & 0xC0 == 0x80:
                end += 1
            if joined and start < joined[-1].end:
                before = joined[-1]
                rule = min(before.rule, span.rule, key=lambda rule: self._rank[rule.name])
                joined[-1] = Span(rule, before.start, max(before.end, end))
            else:
                joined.append(Span(span.rule, start, end))
        if b"[REDACTED:" not in data:
            return joined
        return list(_without(joined, [match.span() for match in self._placeholder.finditer(data)]))

    @cached_property
    def _openings(self) -> Any:
        """The set that tells which rules open at a place; the last is for encoded formats."""
        openings = re2.Set.MatchSet(_options(_UNION_MEMORY))
        for rule in self._rules:
            start = START if rule.is_bounded else ""
            openings.Add(f"{start}(?:{'|'.join(rule.keywords)})".encode("ascii"))
        openings.Add(f"{START}(?:{'|'.join(self._encoded)})".encode("ascii"))
        openings.Compile()
        return openings


def _compile(pattern: str, memory_bytes: int) -> Any:
    return re2.compile(pattern.encode("ascii"), _options(memory_bytes))


def _options(memory_bytes: int) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = memory_bytes
    return options


def _union(rules: tuple[Rule, ...], encoded: Iterable[str]) -> str:
    """Return one expression over all openings; what rules share is written once."""
    families: dict[tuple[bool, str], list[str]] = {(True, ""): list(encoded)}
    for rule in rules:
        families.setdefault((rule.is_bounded, rule.following), []).extend(rule.keywords)
    return "|".join(
        f"{START if is_bounded else ''}(?:{'|'.join(keywords)}){following}"
        for (is_bounded, following), keywords in families.items()
    )


def encoded_opening(literal: str) -> str:
    """Return the base64 characters a literal fixes.

    Of the 32 bits of `ghp_`, five.
    """
    encoded = base64.b64encode(literal.encode()).decode()
    return encoded[: len(literal) * 8 // 6] if len(literal) >= 4 else ""


def _without(spans: list[Span], placeholders: list[tuple[int, int]]) -> Iterable[Span]:
    """Yield spans without placeholders; a rest as short as punctuation is dropped."""
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
