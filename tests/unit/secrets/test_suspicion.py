"""What the scanner would find is suspected without it, so that a hook never writes a secret down;
little else is.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from smara.core.secret_prefilter import may_hold_secret
from smara.secrets import scan
from smara.secrets.openings import TABLE, table
from tests.unit.secrets.secret_samples import FORMATS, assignments, carriers, make


def event(text: str) -> bytes:
    told = {
        "session_id": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
        "tool_use_id": "toolu_01Ab2Cd3Ef4Gh5",
        "text": text,
    }
    return json.dumps(told).encode()


def test_the_table_says_what_the_rules_say():
    written = TABLE.read_text(encoding="ascii")
    assert written == table(), "Run `python -m smara.secrets.openings`."


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_suspected_in_everything_that_carries_it(name):
    dice = random.Random(f"{name}")
    found = 0
    for _ in range(5):
        whole, secret = make(FORMATS[name], dice)
        for text in (whole, *carriers(secret).values()):
            if scan(text):
                found += 1
                assert may_hold_secret(event(text)), text
    assert found


def test_every_assignment_is_suspected():
    for text, _ in assignments(random.Random(17), 3_000):
        if scan(text):
            assert may_hold_secret(event(text)), text
            assert may_hold_secret(text.encode()), text


@pytest.mark.parametrize(
    "text",
    [
        "curl -u ann:hunter2hunter https://example.org", "https://ann:hunter2x@example.org/x",
        "the password is h7!kkdwq",
        "machine h login ann password h7kkdwq9", "localhost:5432:db:ann:h7kkdwq9",
        "Authorization: Basic dXNlcjpwYXNz",
        "Cookie: sid=a8f7Q2k9Zx1Lm4; theme=dark", "\\u0070assword: h7!kkdwq9",
        "PASSWORD=\"h7!kkdwq9\"",
        '{"auths": {"r.io": {"auth": "YW5uOmg3a2tkd3E5aDdra2R3cTk="}}}',
        "1234567890123456|aB3dE6gH9jK2mN5pQ8sT1vW4",
    ],
)  # fmt: skip
def test_other_carriers_are_suspected(text):
    assert may_hold_secret(event(text))


@pytest.mark.parametrize(
    "text",
    [
        "def check_password(user, password):\n    return hash(password) == user.digest",
        "The task-list and the disk-usage are fine; msg.text is shown.",
        "tokens are counted by the tokenizer",
        "3 passed, 1 failed in 0.4s\nbypass the cache",
        "commit 3f2a9c1d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a39\nAuthor: Ann",
        "GET https://example.org/a/b?page=2 200", "pwd\n/home/ann/work", "● done → next ✔ 3/3",
    ],
)  # fmt: skip
def test_ordinary_words_are_not(text):
    assert not may_hold_secret(event(text))


def test_a_long_text_is_looked_at_properly():
    assert may_hold_secret(event("x " * 100_000))


def test_suspecting_loads_no_scanner_and_nothing_else_that_takes_time():
    code = (
        "import sys; from smara.core.secret_prefilter import may_hold_secret\n"
        "print(*sorted({'re', 're2', 'json', 'typing', 'dataclasses', 'smara.secrets.redact'} & "
        "set(sys.modules)))"
    )
    anyway = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= set(anyway.stdout.split())


def test_a_query_loads_the_rules_only_if_it_may_hold_a_secret():
    program = (
        "import sys; from smara.secrets.redact import redact_brief\n"
        "for text in ('how do I count the tokens?', 'the password is h7!kkdwq',\n"
        '\'{"session_id": "ghp_\' + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6" + \'"}\'):\n'
        "    print('REDACTED' in redact_brief(text), 'smara.secrets.rules' in sys.modules)\n"
        "    sys.modules.pop('smara.secrets.rules', None)\n"
        "    from smara.secrets.redact import _engine; _engine.cache_clear()"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == ["False False", "True True", "True True"]
