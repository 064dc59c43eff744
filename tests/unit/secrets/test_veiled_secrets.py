"""Secrets that colors or signs without width run through are found as if these were not there."""

from __future__ import annotations

import json
import random
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.secret_prefilter import may_hold_secret
from smara.core.veils import is_veiled, unveil
from smara.secrets import redact, redact_value, scan
from tests.unit.secrets.secret_samples import CARRIED, FORMATS, make

VEILS = (
    "\x1b[01;31m\x1b[K", "\x1b[m\x1b[K", "\x1b[0m", "\x1b[38;5;196m", "\x9b31m", "\x1b(B", "\u200b",
    "\u200d", "\u00ad", "\u2060", "\ufeff", "\u202e", "\u2066", "\ufe0f",
)  # fmt: skip
TOKEN = make(FORMATS["github-personal"], random.Random(7))[0]


def veil(text: str, dice: random.Random, count: int) -> str:
    for _ in range(count):
        at = dice.randrange(len(text) + 1)
        if not {"\x1b", "\x9b"} & {*text[max(0, at - 12) : at]}:  # a mark inside a mark breaks both
            text = text[:at] + dice.choice(VEILS) + text[at:]
    return text


@pytest.mark.parametrize("name", [*FORMATS])
def test_a_format_is_found_through_colors_and_invisible_signs(name: str) -> None:
    dice = random.Random(name)
    text, secret = make(FORMATS[name], dice)
    plain = redact(text).text
    hidden = veil(text, dice, 4)
    shown = unveil(redact(hidden).text.encode())[0].decode()
    assert [found.label for found in scan(hidden)] == [found.label for found in scan(text)]
    assert shown == plain
    assert secret not in shown


@pytest.mark.parametrize("name", [*CARRIED])
def test_what_a_carrier_holds_is_found_through_colors(name: str) -> None:
    dice = random.Random(name)
    text, secret = make(CARRIED[name], dice)
    # As `grep --color` and `jq -C` write: around words, not inside them.
    hidden = text.replace(secret, f"\x1b[32m{secret}\x1b[0m").replace(" ", " \x1b[35m\x1b[K", 1)
    assert secret not in unveil(redact(hidden).text.encode())[0].decode()


@pytest.mark.parametrize(
    "text",
    [
        f"12:\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K{TOKEN[4:]}",
        f"\x1b[35m\x1b[KGITHUB_TOKEN\x1b[m\x1b[K=\x1b[36m{TOKEN}\x1b[0m",
        f"gh\u200bp_{TOKEN[4:]}",
        f"\x1b]0;title\x07{TOKEN[:9]}\x1b]0;other\x07{TOKEN[9:]}",
        json.dumps({"output": f"\x1b[01;31mghp_\x1b[m{TOKEN[4:]}"}),
        json.dumps({"output": json.dumps({"inner": f"ghp_\u200b{TOKEN[4:]}"})}),
        rf'{{"text": "ghp_\uFE0F{TOKEN[4:]}"}}',
        rf"printf '\e[31mghp_\e[0m{TOKEN[4:]}'",
    ],
)
def test_the_shapes_that_programs_write_are_seen_through(text: str) -> None:
    redacted = redact(text)
    assert [found.label for found in redacted.findings] == ["github-token"]
    assert TOKEN[20:] not in redacted.text
    assert redact(redacted.text).text == redacted.text
    assert may_hold_secret(text.encode())
    assert may_hold_secret(json.dumps({"tool_response": text}).encode())


def test_a_link_that_carries_a_password_is_found_in_the_mark_itself() -> None:
    text = "\x1b]8;;https://ann:S3cr3tPq9@host/x\x1b\\the page\x1b]8;;\x1b\\"
    assert "S3cr3tPq9" not in redact(text).text


def test_colored_words_without_a_secret_stay_as_they_are() -> None:
    text = "\x1b[32m3 passed\x1b[0m, \x1b[31m1 failed\x1b[0m 👩‍💻 \ufeffdone"
    assert redact(text).text is text
    event = json.dumps({"tool_response": text}, ensure_ascii=False)
    assert not may_hold_secret(event.encode())


def test_values_of_json_are_seen_through_at_any_depth() -> None:
    value, count = redact_value({"a": [{"b": f"ghp_\x1b[0m{TOKEN[4:]}"}]})
    assert count == 1
    assert TOKEN[4:] not in json.dumps(value)


def test_what_grep_colors_is_redacted(tmp_path) -> None:
    (tmp_path / ".env").write_text(f"GITHUB_TOKEN={TOKEN}\nDB_PASSWORD=hunter2Xk9!\n")
    for word in ("ghp_", "PASSWORD", "TOKEN"):
        done = subprocess.run(
            ["grep", "--color=always", "-n", word, str(tmp_path / ".env")],
            capture_output=True,
            text=True,
            check=True,
        )
        shown = unveil(redact(done.stdout).text.encode())[0].decode()
        assert TOKEN[4:] not in shown
        assert "hunter2Xk9!" not in shown


@given(st.text(alphabet=[*VEILS[-8:], "\x1b", "[", "m", "K", "0", "]", "\\", "é", "a", "_"]))
def test_unveiling_says_where_each_piece_stood(text: str) -> None:
    data = text.encode()
    plain, moves = unveil(data)
    ends = [*(start for start, _ in moves[1:]), len(plain)]
    for (start, move), end in zip(moves, ends, strict=True):
        assert data[start + move : end + move] == plain[start:end]
    assert is_veiled(data) or plain == data
    assert redact(redact(text).text).text == redact(text).text
