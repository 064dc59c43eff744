"""Fix chains: a file that was mended several times within days. What was hard to get right once is
so again.

Where nearly every commit is called a fix, the word tells nothing; there a fix counts only when it
says which earlier commit it mends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations, pairwise

from smara.adapters.git_history.models import Candidate, PastCommit
from smara.adapters.git_history.worth import is_code
from smara.behavior.quoting import code, quote
from smara.behavior.reasons.text import read_commit
from smara.core.wordlists import word_set

LEAST_FIXES = 3
WITHIN_DAYS = 14
MOST_CHAINS = 15
MOST_FIXES_READ = 3_000
_MOST_FILES = 4
"""A fix of more files is no fix of one of them."""
_USUAL_SHARE = 0.3
_DAY_MS = 86_400_000
_FIX = re.compile(
    r"^(?:\[[^\]]{1,30}\]\s*)?(?:fix(?:e[sd])?\b(?!ture)|bug ?fix|hot ?fix|repair|mend"
    r"|correct(?:ed|s)?\b"
    r"|resolve[sd]?\b|regression|follow[- ]up|really|actually)",
    re.I,
)
_NOT_A_FIX = re.compile(
    r"\b(?:typos?|docs?|documentation|docstrings?|comments?|spelling|grammar|lint\w*|format\w*"
    r"|style|flake8|tests?|"
    r"flaky|ci|build|links?|warnings?|mypy|types?|typing|annotations?|whitespace|indent\w*"
    r"|imports?|readme|changelog|"
    r"version|wording|example|occurr?ences|lints?|phpstan|psalm|eslint|clippy)\b",
    re.I,
)
_WORD = re.compile(r"[a-z_][a-z0-9_]{3,}")
_COMMON = word_set(
    "fixed fixes when with from that this into some wrong correct corrected handling error errors "
    "crash issue issues"
    " problem case cases regression properly using used after before which should missing support "
    "make made"
)
_MENDS = re.compile(
    r"\b(?:regression (?:in|from|of|introduced)|broken (?:in|by|since)|introduced (?:in|by)"
    r"|follow(?:s|ed|ing)?[- ]?up"
    r" (?:to|on|of)|fixes:?|bug in|caused by) (?:commit )?[0-9a-f]{7,40}\b",
    re.I,
)


def fixes_of(commits: Sequence[PastCommit]) -> list[PastCommit]:
    """The commits that mend something, the newest first and not too many."""
    fixes = [each for each in commits if _is_fix(each.message.split("\n", 1)[0])]
    if len(fixes) > _USUAL_SHARE * len(commits):
        fixes = [each for each in fixes if _MENDS.search(each.message)]
    return fixes[:MOST_FIXES_READ]


def chains_of(fixes: Sequence[PastCommit], files: Mapping[str, Sequence[str]]) -> list[Candidate]:
    """A candidate for every file with a chain, the newest chain of each; each commit tells of one
    chain alone.
    """
    by_file: dict[str, list[PastCommit]] = {}
    for fix in fixes:
        touched = [path for path in files.get(fix.sha, ()) if is_code(path)]
        for path in touched if len(touched) <= _MOST_FILES else ():
            by_file.setdefault(path, []).append(fix)
    found = [(path, chain) for path, some in by_file.items() if (chain := _newest_chain(some))]
    found.sort(key=lambda each: (-each[1][-1].at_ms, -len(each[1]), each[0]))
    used: set[str] = set()
    made: list[Candidate] = []
    for path, chain in found:
        if used.isdisjoint(each.sha for each in chain) and len(made) < MOST_CHAINS:
            used.update(each.sha for each in chain)
            made.append(_candidate(path, chain))
    return made


def _is_fix(first_line: str) -> bool:
    subject = read_commit(first_line)
    is_called_so = bool(_FIX.match(subject.first_line) or _FIX.match(subject.subject))
    return is_called_so and not _NOT_A_FIX.search(subject.subject)


def _newest_chain(fixes: Sequence[PastCommit]) -> list[PastCommit]:
    """The newest run of fixes that lie close enough together, the oldest first; empty when there is
    none.
    """
    ordered = sorted(fixes, key=lambda each: each.at_ms)
    runs: list[list[PastCommit]] = [ordered[:1]]
    for before, after in pairwise(ordered):
        if after.at_ms - runs[-1][0].at_ms <= WITHIN_DAYS * _DAY_MS and _differ(before, after):
            runs[-1].append(after)
        elif _differ(before, after):
            runs.append([after])
    related = (_about_one_thing(_once(run)) for run in reversed(runs) if len(run) >= LEAST_FIXES)
    return next((run for run in related if len(run) >= LEAST_FIXES), [])


def _once(run: Sequence[PastCommit]) -> list[PastCommit]:
    """A run without the fixes that were made again on other branches, in between others."""
    return list({read_commit(each.message).subject: each for each in reversed(run)}.values())[::-1]


def _about_one_thing(run: Sequence[PastCommit]) -> list[PastCommit]:
    """The most fixes of a run that have the same two words: a busy file is mended often, for
    reasons of all kinds.
    """
    subjects = [
        set(_WORD.findall(read_commit(each.message).subject.casefold())) - _COMMON for each in run
    ]
    pairs = Counter(pair for words in subjects for pair in combinations(sorted(words), 2))
    shared = set(min(pairs.items(), key=lambda each: (-each[1], each[0]))[0]) if pairs else {""}
    return [each for each, words in zip(run, subjects, strict=True) if shared <= words]


def _differ(one: PastCommit, other: PastCommit) -> bool:
    """Whether two commits say different things: a commit that was picked into another branch is one
    fix.
    """
    return read_commit(one.message).subject != read_commit(other.message).subject


def _candidate(path: str, chain: Sequence[PastCommit]) -> Candidate:
    subjects = [quote(read_commit(each.message).subject, 140).rstrip(".") for each in chain]
    first, last = (
        datetime.fromtimestamp(each.at_ms / 1000, UTC).date() for each in (chain[0], chain[-1])
    )
    days = (last - first).days + 1
    spread = "in one day" if days == 1 else f"within {days} days"
    told = "; ".join(f"“{each}”" for each in subjects[:6])
    content = (
        f"{code(path)} had to be fixed {len(chain)} times {spread} (until "
        f"{last.isoformat()}): {told}."
    )
    quotes = tuple(
        (each.sha, quote(each.message.split("\n", 1)[0], 300)) for each in reversed(chain)
    )
    newest = chain[-1]
    return Candidate(
        "fix chain",
        "gotcha",
        content,
        quotes=quotes,
        at_ms=newest.at_ms,
        author=newest.author,
        files=(path,),
        data={"symptom": quote("; ".join(subjects), 400)},
    )
