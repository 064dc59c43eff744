"""The scratchpad: bounded whatever happens, constant in what it costs, and the same after it was
kept.
"""

from __future__ import annotations

import json
import random
import sys
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smara.behavior.ledger import (
    LARGE,
    CorrectionEntry,
    DurationEntry,
    E2eEntry,
    Entry,
    ErrorEntry,
    FileLedgerEntry,
    GlobEntry,
    Ledger,
    OutputEntry,
    PairEntry,
    SearchEntry,
    TestEntry,
)
from smara.behavior.record import take
from smara.behavior.scratchpad import OpenFailure, Pad, PadFacts, RecentFile, Todo
from smara.behavior.signals.registry import detect_all
from smara.core.events import KINDS, HostEvent
from tests.agent_events import ROOT, Script

LIMIT_BYTES = 50 * 1024 * 1024
FACT_BYTES = 600_000
"""An upper bound of the facts and short lists beside the ledgers."""
TEXTS = st.one_of(
    st.text(max_size=200),
    st.sampled_from(["x" * 5_000, "日" * 3_000, "I was wrong about `a`. `b` is actually c. " * 50]),
    st.builds("Error: could not find {}".format, st.integers()),
    st.just("\ud800 lone \x00 nul"),
)
PATHS = st.one_of(
    st.builds("{}/src/m{}/f{}.py".format, st.just(ROOT), st.integers(0, 50), st.integers(0, 5_000)),
    st.builds("{}/{}.toml".format, st.just(ROOT), st.text(max_size=300)),
    st.just("/etc/passwd"),
)
INPUTS = st.fixed_dictionaries(
    {},
    optional={
        "file_path": st.one_of(PATHS, st.integers()),
        "command": st.one_of(TEXTS, st.builds("make t{}".format, st.integers())),
        "pattern": TEXTS,
        "url": st.builds("https://x/{}".format, st.integers()),
        "old_string": TEXTS,
        "new_string": TEXTS,
        "todos": st.lists(st.one_of(TEXTS, st.dictionaries(st.just("content"), TEXTS)), max_size=5),
    },
)
EVENTS = st.builds(
    HostEvent,
    agent=st.just("claude"),
    kind=st.sampled_from(KINDS),
    session_id=st.just("s"),
    at_ms=st.integers(0, 10**12),
    cwd=st.sampled_from(["", ROOT]),
    tool=st.sampled_from(
        [
            "Bash",
            "Read",
            "Edit",
            "Write",
            "Grep",
            "Glob",
            "WebFetch",
            "TodoWrite",
            "mcp:browser:click",
            "?",
        ]
    ),
    tool_input=INPUTS,
    tool_output=TEXTS,
    error=st.one_of(st.none(), TEXTS),
    text=TEXTS,
    prompt=TEXTS,
    tool_use_id=st.one_of(st.just(""), st.text(max_size=80)),
    tokens=st.one_of(st.none(), st.integers(0, 10**6)),
)


def real_bytes(value: Any, known: set[int] | None = None) -> int:
    """What a value really takes in memory, with everything it holds; what is held twice is counted
    once.
    """
    known = set() if known is None else known
    if id(value) in known:
        return 0
    known.add(id(value))
    inner = 0
    if isinstance(value, dict):
        inner = sum(real_bytes(key, known) + real_bytes(each, known) for key, each in value.items())
    elif isinstance(value, list | tuple | set):
        inner = sum(real_bytes(each, known) for each in value)
    elif isinstance(value, Entry | PadFacts):
        inner = sum(real_bytes(getattr(value, each), known) for each in value.__match_args__)
    return sys.getsizeof(value) + inner


def held(pad: Pad) -> int:
    parts = [
        pad.facts,
        *([each.entries, each._changed, each._left] for each in pad.ledgers.values()),
    ]
    return real_bytes(parts)


def bound(pad: Pad) -> int:
    """What the entries of a pad may take at the most."""
    return FACT_BYTES + sum(len(each) * each.entry_bytes for each in pad.ledgers.values())


def content(pad: Pad) -> dict[str, Any]:
    """Everything a pad holds, the entries in their order."""
    return {
        "facts": pad.facts.stored_form(),
        **{name: list(ledger) for name, ledger in pad.ledgers.items()},
    }


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, max_size=60))
def test_any_stream_of_events_stays_within_the_bound_and_says_so_truly(events):
    pad = Pad()
    for event in events:
        take(pad, event)
    assert held(pad) <= bound(pad)
    again = Pad.load([pad.save().data])
    assert content(again) == content(pad)
    list(detect_all([again]))


class Kept:
    """A store of one pad, as the database keeps it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.numbers: list[int] = []

    def put(self, pad: Pad) -> None:
        saved = pad.save()
        self.numbers.append(saved.number)
        self.parts = [saved.data] if saved.number == 0 else [*self.parts, saved.data]
        assert len(self.parts) == saved.number + 1


def test_what_changed_is_kept_instead_of_the_whole_and_comes_back_as_it_was():
    pad, kept, rng = Pad(), Kept(), random.Random(5)
    written = []
    for turn in range(150):
        script = Script()
        for _ in range(rng.randint(1, 30)):
            path = f"src/m{rng.randint(0, 20)}/{'é' * rng.randint(0, 3)}f{rng.randint(0, 70 + turn)}.py"  # noqa: E501
            script.edit(path) if rng.random() < 0.5 else script.read(path)
        script.fail(f"make t{rng.randint(0, 40)}", f"Error: could not find {turn}")
        for event in script.events:
            take(pad, event)
        kept.put(pad)
        written.append(len(kept.parts[-1]))
        if turn % 7 == 0:
            assert content(Pad.load(kept.parts)) == content(pad)
        if turn % 31 == 30:
            pad = Pad.load(kept.parts)  # another process goes on
    assert len(pad.pairs) == pad.pairs.most
    assert kept.numbers.count(0) < len(kept.numbers) / 4
    assert sum(written) < len(written) * max(written) / 3
    assert sum(map(len, kept.parts[1:])) <= len(kept.parts[0])


@settings(max_examples=60)
@given(st.lists(st.one_of(st.integers(0, 30), st.sampled_from(["keep", "find"])), max_size=120))
def test_a_large_ledger_that_was_kept_change_by_change_is_the_same_in_the_same_order(steps):
    ledger, other = Ledger(SearchEntry, LARGE), Ledger(SearchEntry, LARGE)
    ledger.most = 12  # full at once
    for number, step in enumerate(steps):
        if step == "keep":
            other.apply(*json.loads(json.dumps(ledger.changes())))
            ledger.mark_stored()
            assert list(other) == list(ledger)
        elif step == "find":
            if (entry := ledger.find("k3")) is not None:
                entry.answers["src/a.py"] = number
        else:
            ledger.count(f"k{step}", number)


OLD_ERROR = {"n": 2, "s": 5, "f": 3, "tool": "Bash", "cmd": "make", "line": "no x", "env": True,
             "how": "edit", "done": 6, "fix": "make", "files": ["a.py"]}  # fmt: skip
OLD_LEDGERS: dict[str, Any] = {
    "files": {"a.py": {"n": 2, "s": 4, "f": 1, "r": 1, "e": 1, "x": 1, "m": 7, "l": 9, "es": 4,
                       "em": 9, "el": 9}},
    "pairs": {"a.py|b.py": {"n": 1, "s": 4, "f": 4, "d": 12, "l": -1, "e": 1}},
    "errors": {"f00": OLD_ERROR},
    "tests": {"t": {"n": 1, "s": 2, "f": 2, "red": 2, "green": 4, "why": "no", "cmd": "pytest",
                    "at": "t.py", "own": True, "files": ["a.py"]}},
    "durations": {"make": {"n": 1, "s": 2, "f": 2, "t": 9.5, "b": 9.4, "w": True, "x": 1}},
    "outputs": {"app": {"n": 1, "s": 2, "f": 2, "t": 40, "p": 30, "pf": "a.py", "k": 1}},
    "corrections": {"c": {"n": 1, "s": 2, "f": 2, "q": "I was wrong", "lang": "en"}},
    "abandons": {"gone": {"n": 1}},
}  # fmt: skip
OLD_FACTS = {
    "events": 9, "asked": "go on", "listed": "- [ ] a", "started": 5, "last": 8, "green_at": 3,
    "committed_at": 2, "recent_tools": ["Read"], "last_test_ok": False,
    "recent_files": [["a.py", 7, True]], "todos": {"1": ["write it", "open"]},
    "open_failures": [
        {"fp": "f00", "cmd": "b.py", "step": 3, "edits": [], "between": ["ls"], "simple": True,
         "read": True}
    ],
}  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_a_scratchpad_of_an_earlier_version_is_read_by_the_names_of_today(version):
    stored = {"v": version, "facts": OLD_FACTS}
    if version == 1:
        stored["ledgers"] = OLD_LEDGERS
    else:
        stored["changes"] = {name: (None, each) for name, each in OLD_LEDGERS.items()}
    pad = Pad.load([zlib.compress(json.dumps(stored).encode("ascii"))])
    facts = pad.facts
    assert (facts.request, facts.open_list, facts.commit_step) == ("go on", "- [ ] a", 2)
    assert (facts.started_at, facts.last_at, facts.green_step) == (5, 8, 3)
    assert facts.last_test_ok is False
    assert facts.recent_files == [RecentFile("a.py", 7, True)]
    assert facts.todos == {"1": Todo("write it", "open")}
    assert facts.open_failures == [OpenFailure("f00", "b.py", 3, [], ["ls"], True, True)]
    assert dict(pad.files) == {"a.py": FileLedgerEntry(2, 4, 1, 1, 1, 1, 7, 9, 4, 9, 9)}
    assert dict(pad.pairs) == {"a.py|b.py": PairEntry(1, 4, 4, 12, -1, 1)}
    error = ErrorEntry(2, 5, 3, "Bash", "make", "no x", True, "edit", 6, "make", ["a.py"])
    assert dict(pad.errors) == {"f00": error}
    test = TestEntry(1, 2, 2, 2, 4, "no", "pytest", "t.py", True, ["a.py"])
    assert dict(pad.tests) == {"t": test}
    assert dict(pad.durations) == {"make": DurationEntry(1, 2, 2, 9.5, 9.4, True, 1)}
    assert dict(pad.outputs) == {"app": OutputEntry(1, 2, 2, 40, 30, "a.py", 1)}
    correction = CorrectionEntry(1, 2, 2, "I was wrong", language="en")
    assert dict(pad.corrections) == {"c": correction}
    assert content(Pad.load([pad.save().data])) == content(pad)


def test_values_of_a_ledger_are_read_by_the_names_that_were_stored_with_them():
    names = ["last_step", "gone", "count"]
    changes = {"globs": (None, {"*.py": [4, True, 2]}, names), "e2e": (None, {"k": {"quote": "q"}})}
    stored = {"v": 4, "facts": {}, "changes": changes}
    pad = Pad.load([zlib.compress(json.dumps(stored).encode("ascii"))])
    assert dict(pad.globs) == {"*.py": GlobEntry(2, 4)}
    assert dict(pad.e2e) == {"k": E2eEntry(quote="q")}


def test_a_field_that_this_version_does_not_know_is_left_out():
    later = {"v": 9, "facts": {"events": 1, "mood": 2}, "changes": {
        "worked": (None, {"make": {"count": 3, "weather": "fine"}}), "moods": (None, {}),
    }}  # fmt: skip
    pad = Pad.load([zlib.compress(json.dumps(later).encode("ascii"))])
    assert dict(pad.worked) == {"make": Entry(3)}


def test_a_very_long_session_of_ever_new_files_and_errors_stays_within_fifty_megabytes():
    pad = Pad()
    script = Script()
    for number in range(2_500):
        script.read(f"src/{'日本' * 20}{number}/f{number}.py").edit(
            f"src/{'日本' * 20}{number}/g{number}.py"
        )
        script.fail(
            f"make t{number}",
            f"Error: could not find {'x' * 200}{chr(97 + number % 26) * (number % 40)}",
        )
        script.grep(f"word{number}").say(
            f"I was wrong about `a{number}`. `b{number}` is actually c."
        )
    for event in script.events:
        take(pad, event)
    assert held(pad) <= bound(pad) <= LIMIT_BYTES
    assert len(pad.pairs) == pad.pairs.most
    assert len(pad.files) <= pad.files.most


def test_all_ledgers_full_are_within_the_limit():
    most = sum(each.entry_bytes * each.most for each in Pad().ledgers.values())
    assert FACT_BYTES + most < LIMIT_BYTES


def test_what_was_counted_again_outlasts_what_was_seen_once():
    ledger = Ledger(Entry, 10)
    for _ in range(3):
        ledger.count("often", 1)
    for number in range(40):
        ledger.count(f"once {number}", number)
    assert ledger.find("often") is not None
    assert len(ledger) == 10


def test_secrets_do_not_reach_the_scratchpad():
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    script = (
        Script().fail(f"deploy --token {secret}", f"Error: could not use {secret}").grep(secret)
    )
    script.say(f"I initially thought `{secret}` is old, but `{secret}` works in `x.py`.").prompt(
        f"use {secret}"
    )
    script.tool("WebFetch", url=f"https://x.example/?token={secret}")
    for pad in script.pads():
        assert secret not in str(pad.facts)
        assert secret not in str([dict(ledger.entries) for ledger in pad.ledgers.values()])
