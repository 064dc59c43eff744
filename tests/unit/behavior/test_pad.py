"""The scratchpad: bounded whatever happens, constant in what it costs, and the same after it was kept."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smara.behavior.ledger import Ledger
from smara.behavior.pad import LEDGERS, LIMIT_BYTES, Pad
from smara.behavior.table import detect_all
from smara.behavior.taking import take
from smara.core.events import KINDS, HostEvent
from tests.agent_events import ROOT, Script

SMALL = 1_500_000
TEXTS = st.one_of(
    st.text(max_size=200),
    st.sampled_from(["x" * 5_000, "日" * 3_000, "I was wrong about `a`. `b` is actually c. " * 50]),
    st.builds("Error: could not find {}".format, st.integers()), st.just("\ud800 lone \x00 nul"),
)  # fmt: skip
PATHS = st.one_of(
    st.builds("{}/src/m{}/f{}.py".format, st.just(ROOT), st.integers(0, 50), st.integers(0, 5_000)),
    st.builds("{}/{}.toml".format, st.just(ROOT), st.text(max_size=300)), st.just("/etc/passwd"),
)  # fmt: skip
INPUTS = st.fixed_dictionaries(
    {},
    optional={
        "file_path": st.one_of(PATHS, st.integers()),
        "command": st.one_of(TEXTS, st.builds("make t{}".format, st.integers())),
        "pattern": TEXTS, "url": st.builds("https://x/{}".format, st.integers()), "old_string": TEXTS,
        "new_string": TEXTS,
        "todos": st.lists(st.one_of(TEXTS, st.dictionaries(st.just("content"), TEXTS)), max_size=5),
    },
)  # fmt: skip
EVENTS = st.builds(
    HostEvent, agent=st.just("claude"), kind=st.sampled_from(KINDS), session_id=st.just("s"),
    at_ms=st.integers(0, 10**12), cwd=st.sampled_from(["", ROOT]),
    tool=st.sampled_from(
        ["Bash", "Read", "Edit", "Write", "Grep", "Glob", "WebFetch", "TodoWrite", "mcp:browser:click", "?"]
    ),
    tool_input=INPUTS, tool_output=TEXTS, error=st.one_of(st.none(), TEXTS), text=TEXTS, prompt=TEXTS,
    tool_use_id=st.one_of(st.just(""), st.text(max_size=80)), tokens=st.one_of(st.none(), st.integers(0, 10**6)),
)  # fmt: skip


def real_bytes(value: Any, known: set[int] | None = None) -> int:
    """What a value really takes in memory, with everything it holds; what is held twice is counted once."""
    known = set() if known is None else known
    if id(value) in known:
        return 0
    known.add(id(value))
    inner = 0
    if isinstance(value, dict):
        inner = sum(real_bytes(key, known) + real_bytes(each, known) for key, each in value.items())
    elif isinstance(value, list | tuple | set):
        inner = sum(real_bytes(each, known) for each in value)
    return sys.getsizeof(value) + inner


def held(pad: Pad) -> int:
    return real_bytes(pad.facts) + sum(real_bytes(ledger.entries) for ledger in pad.ledgers.values())


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, max_size=60))
def test_any_stream_of_events_stays_within_the_bound_and_says_so_truly(events):
    pad = Pad(SMALL)
    for event in events:
        take(pad, event)
        assert pad.held_bytes <= SMALL
    assert held(pad) <= pad.held_bytes
    again = Pad.load(pad.dump(), SMALL)
    assert again.facts == pad.facts
    assert {name: dict(ledger.entries) for name, ledger in again.ledgers.items()} == {
        name: dict(ledger.entries) for name, ledger in pad.ledgers.items()
    }
    list(detect_all([again]))


def test_a_very_long_session_of_ever_new_files_and_errors_stays_within_fifty_megabytes():
    pad = Pad()
    script = Script()
    for number in range(2_500):
        script.read(f"src/{'日本' * 20}{number}/f{number}.py").edit(f"src/{'日本' * 20}{number}/g{number}.py")
        script.fail(f"make t{number}", f"Error: could not find {'x' * 200}{chr(97 + number % 26) * (number % 40)}")
        script.grep(f"word{number}").say(f"I was wrong about `a{number}`. `b{number}` is actually c.")
    for event in script.events:
        take(pad, event)
    assert held(pad) <= pad.held_bytes <= LIMIT_BYTES
    assert pad.evicted > 0
    assert len(pad["files"]) <= LEDGERS["files"][0]


def test_all_ledgers_full_are_within_the_limit():
    most = sum(Ledger(most, text).entry_bytes * most for most, text in LEDGERS.values())
    assert most < LIMIT_BYTES


def test_making_room_takes_from_what_is_worth_least_first():
    pad = Pad(SMALL)
    for number in range(100):
        pad["durations"].count(f"command {number}", number)
        pad["corrections"].count(f"said {number}", number)
    pad.limit_bytes = pad.held_bytes - 1
    pad.make_room()
    assert len(pad["corrections"]) == LEDGERS["corrections"][0]
    assert len(pad["durations"]) < 100


def test_what_was_counted_again_outlasts_what_was_seen_once():
    ledger = Ledger(10)
    for _ in range(3):
        ledger.count("often", 1)
    for number in range(40):
        ledger.count(f"once {number}", number)
    assert ledger.find("often") is not None
    assert len(ledger) == 10


def test_secrets_do_not_reach_the_scratchpad():
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    script = Script().fail(f"deploy --token {secret}", f"Error: could not use {secret}").grep(secret)
    script.say(f"I initially thought `{secret}` is old, but `{secret}` works in `x.py`.").prompt(f"use {secret}")
    script.tool("WebFetch", url=f"https://x.example/?token={secret}")
    for pad in script.pads():
        assert secret not in str(pad.facts)
        assert secret not in str([dict(ledger.entries) for ledger in pad.ledgers.values()])
