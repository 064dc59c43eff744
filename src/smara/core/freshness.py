"""Judge whether a statement still matches the code it names.

A statement is anchored to code when it is made: to a definition, to lines or to a file.
Each anchor gets a verdict from the code as it is now, without a model. The verdicts are
combined into one, which decides whether the statement is shown, hedged or withheld.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from smara.core.startup.record import dataclass

Verdict = Literal["fresh", "moved", "drifted", "orphaned", "unknown"]
"""As it was; the same elsewhere; changed; gone; or the code was not read as it is now."""
Disclosure = Literal["tell", "hedge", "withhold"]
"""Told as it is; told with what has changed since; not told unasked."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DISCLOSURES: tuple[Disclosure, ...] = get_args(Disclosure)
LITTLE_OF_A_FILE = 0.1
"""A file changes all the time: where only the file is named, so much of it may differ before that
counts.
"""


@dataclass(frozen=True, slots=True)
class AnchorVerdict:
    """The verdict on one piece of code that a statement names.

    ``path`` and ``symbol`` are where it was, ``now_path`` and ``now_symbol`` where it is today.
    ``changed`` is the share of it that differs, from 0 to 1, where that is known.
    """

    verdict: Verdict
    path: str
    symbol: str = ""
    now_path: str | None = None
    now_symbol: str = ""
    first_line: int | None = None
    last_line: int | None = None
    changed: float | None = None
    commit: str | None = None
    why: str = ""
    is_lines: bool = False
    """Whether it is lines that stand in no definition."""

    @property
    def was(self) -> str:
        """Its former place: ``src/auth.py:Session.login``."""
        return _code_name(self.path, self.symbol)

    @property
    def now(self) -> str | None:
        """Its present place, if any."""
        return None if self.now_path is None else _code_name(self.now_path, self.now_symbol)

    @property
    def summary(self) -> str:
        """The verdict as a few words."""
        match self.verdict:
            case "moved":
                return f"{self.was} is now {self.now}"
            case "drifted":
                place = self.was if self.now in (None, self.was) else f"{self.was}, now {self.now},"
                return f"{place} has changed since{_share(self.changed)}"
            case "orphaned":
                return f"{self.was} is gone" + (f" ({self.why})" if self.why else "")
            case "unknown":
                return f"{self.was}: {self.why or 'not known'}"
            case "fresh":
                return f"{self.was} is as it was"


@dataclass(frozen=True, slots=True)
class Policy:
    """The treatment of a statement whose code changed or went."""

    drifted: Disclosure = "hedge"
    orphaned: Disclosure = "withhold"
    withhold_fraction: float = 0.5
    """When more than this share of the code differs, a drifted statement is treated as an orphaned
    one.
    """


@dataclass(frozen=True, slots=True)
class Freshness:
    """The state of a statement relative to all its code."""

    verdict: Verdict
    anchors: tuple[AnchorVerdict, ...] = ()
    changed: float | None = None
    """The share of the code it names that differs."""
    telling: Disclosure = "tell"

    @property
    def is_withheld(self) -> bool:
        """True if it is not to be told unasked."""
        return self.telling == "withhold"

    @property
    def needs_review(self) -> bool:
        """True if a person should review it: its code changed."""
        return self.verdict in ("drifted", "orphaned")

    @property
    def hedge(self) -> str | None:
        """The caveat beside the statement, or ``None``."""
        match self.verdict:
            case "orphaned":
                return f"the code it speaks of is gone: {self._those('orphaned')}"
            case "drifted":
                those = self._those("drifted", "orphaned")
                return f"the code has changed since{_share(self.changed)} ({those})"
            case "moved":
                moved = [each for each in self.anchors if each.verdict == "moved"]
                return "; ".join(each.summary for each in moved[:3])
            case "unknown":
                return "whether the code is still the same is not known yet: it is being read again"
            case "fresh":
                return None

    @property
    def lines(self) -> list[str]:
        """Every anchor as a line of text."""
        return [each.summary for each in self.anchors]

    def _those(self, *verdicts: Verdict) -> str:
        found = [each.was for each in self.anchors if each.verdict in verdicts]
        return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")


@dataclass(frozen=True, slots=True)
class JudgedAnchor:
    """An anchor's verdict with what decides how much it counts."""

    verdict: AnchorVerdict
    is_file: bool = False
    """Whether only a file is named, not something in it."""


CODE_CHANGED = "the code "
"""What a hedge, and the reason of a review that it asks for, begins with when code has changed or
gone.
"""
NOTHING_NAMED = Freshness("fresh")
"""Of a statement that names no code we know: nothing speaks against it."""


def combine_verdicts(judged: Sequence[JudgedAnchor], policy: Policy | None = None) -> Freshness:
    """The verdict over all anchors of one statement.

    It is orphaned when everything it names is gone, and drifted when a part of it has changed or
    gone; the share is the mean over what it names. Where definitions are named, files are only
    their place.

    >>> gone, same = AnchorVerdict("orphaned", "a.py", "f"), AnchorVerdict("fresh", "b.py", "g")
    >>> both = combine_verdicts([JudgedAnchor(gone), JudgedAnchor(same)])
    >>> both.verdict, both.changed, both.telling
    ('drifted', 0.5, 'hedge')
    """
    policy = policy or Policy()
    # Where a definition of a file is named, what happens to it says more than the file.
    inside = {each.verdict.path for each in judged if not each.is_file}
    counted = [each for each in judged if not each.is_file or each.verdict.path not in inside]
    if not counted:
        return NOTHING_NAMED
    anchors = tuple(each.verdict for each in counted)
    shares = [
        {"orphaned": 1.0, "drifted": each.changed}.get(each.verdict, 0.0)
        for each in anchors
        if each.verdict != "unknown"
    ]
    shares_read = [share for share in shares if share is not None]
    changed = round(sum(shares_read) / len(shares_read), 4) if shares_read else None
    # A file of which little differs is as it was.
    verdicts = {
        "fresh"
        if each.is_file
        and each.verdict.verdict == "drifted"
        and (each.verdict.changed or 0.0) < LITTLE_OF_A_FILE
        else each.verdict.verdict
        for each in counted
    }
    verdict: Verdict = "fresh"
    telling: Disclosure = "tell"
    if verdicts == {"orphaned"}:
        verdict, telling = "orphaned", policy.orphaned
    elif verdicts & {"drifted", "orphaned"}:
        is_much = (changed or 0.0) > policy.withhold_fraction
        worst = policy.orphaned if is_much else "tell"
        verdict, telling = "drifted", max(policy.drifted, worst, key=DISCLOSURES.index)
    elif "unknown" in verdicts:
        verdict, telling = "unknown", "hedge"
    elif "moved" in verdicts:
        verdict, telling = "moved", "hedge"
    has_drifted = verdict in ("drifted", "orphaned")
    return Freshness(verdict, anchors, changed if has_drifted else None, telling=telling)


def _code_name(path: str, symbol: str) -> str:
    return f"{path}:{symbol}" if symbol else path


def _share(changed: float | None) -> str:
    """Whole percents; what has changed at all is never 0 %, and what is not all is never 100 %.

    >>> _share(0.4), _share(0.001), _share(0.999), _share(None)
    (': 40 % of it differs', ': 1 % of it differs', ': 99 % of it differs', '')
    """
    if changed is None:
        return ""
    return f": {100 if changed >= 1 else min(99, max(1, round(100 * changed)))} % of it differs"
