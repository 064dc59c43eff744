"""What redaction promises for any text at all."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_samples import CARRIED, FORMATS, assignments, carriers, make

from smara.secrets import Redaction, SecretFinding, redact, scan

TOKEN = "ghp_" + "".join(random.Random(3).choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789", k=36))
PIECES = [
    *(make(template, random.Random(n))[0] for n, template in enumerate([*FORMATS.values(),
    *CARRIED.values()])),
    *(text for text, _ in assignments(random.Random(5), 40)),
    "[REDACTED:password]", "[REDACTED:github-token]", "[REDACTED:", "password=", '"', "token: ",
    "\\n", "é", "日本",
    "\ud800", "\x00", "://a:", "@", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    " is ",
    "Bearer ", "=", ";",
    "\n",
]  # fmt: skip
mixtures = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=7).map(
    "".join
)
any_text = st.text(st.characters(exclude_categories=()), max_size=200)


def check_promises(text: str) -> None:
    redaction = redact(text)
    assert redact(redaction.text).text == redaction.text
    position, rebuilt = 0, []
    for finding in redaction.findings:
        assert position <= finding.start < finding.end <= len(text)
        rebuilt += [text[position : finding.start], finding.placeholder]
        position = finding.end
    assert redaction.text == "".join([*rebuilt, text[position:]])
    if not redaction.findings:
        assert redaction.text is text


@settings(max_examples=300)
@given(mixtures)
def test_mixed_secrets_are_redacted_once_and_nothing_else_changes(text: str) -> None:
    check_promises(text)


@settings(max_examples=200)
@given(any_text)
def test_any_text_is_accepted_and_redacting_twice_equals_once(text: str) -> None:
    check_promises(text)


@pytest.mark.parametrize("name", FORMATS)
def test_redacting_a_carried_secret_twice_equals_once(name: str) -> None:
    for text in carriers(make(FORMATS[name], random.Random(11))[0]).values():
        check_promises(text)


def test_text_without_secrets_is_returned_as_the_same_object() -> None:
    text = "Nothing to see here, not even a token."
    assert redact(text).text is text
    assert redact(text).findings == ()


def test_placeholder_says_what_was_there() -> None:
    assert redact(f"use {TOKEN} now").text == "use [REDACTED:github-token] now"
    assert redact('password = "hunter2-Xy9!"').text == 'password = "[REDACTED:password]"'
    assert redact("the password is hunter2-Xy9!").text == "the password is [REDACTED:password]!"


def test_only_the_password_of_a_url_is_replaced() -> None:
    redacted = redact("connect to postgres://app:s3cr7tZ9q@db:5432/app?sslmode=on").text
    assert redacted == "connect to postgres://app:[REDACTED:password]@db:5432/app?sslmode=on"


def test_vendor_names_a_secret_that_an_assignment_also_finds() -> None:
    assert redact(f'GITHUB_TOKEN="{TOKEN}"').text == 'GITHUB_TOKEN="[REDACTED:github-token]"'


def test_two_secrets_side_by_side_are_both_replaced() -> None:
    assert redact(f"{TOKEN},{TOKEN}\n{TOKEN}").text == "{0},{0}\n{0}".format(
        "[REDACTED:github-token]"
    )


def test_offsets_count_characters_also_after_wide_ones() -> None:
    text = f"é日本🙏 {TOKEN} é"
    assert [text[finding.start : finding.end] for finding in scan(text)] == [TOKEN]


def test_lone_surrogates_and_zero_bytes_survive_around_a_secret() -> None:
    assert redact(f"\ud800\x00 {TOKEN} \udfff").text == "\ud800\x00 [REDACTED:github-token] \udfff"


def test_finding_does_not_carry_the_secret() -> None:
    finding = scan(f"use {TOKEN} now")[0]
    assert finding == SecretFinding("github-personal", "github-token", 4, 44)
    assert TOKEN not in repr(redact(TOKEN))


def test_results_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        redact("x").text = "y"  # type: ignore[misc]  # that is what is tested
    assert isinstance(redact("x"), Redaction)


def test_secret_in_the_middle_of_a_long_text_is_found_at_any_place() -> None:
    filler = "lorem ipsum dolor sit amet " * 40_000
    for at in (0, 65_530, 524_288, len(filler)):
        text = f"{filler[:at]} {TOKEN} {filler[at:]}"
        assert [text[finding.start : finding.end] for finding in scan(text)] == [TOKEN]


def test_rejected_openings_cost_the_same_however_long_the_text_is() -> None:
    """A hostile text full of openings is settled by counted steps: one search for each opening."""
    from smara.secrets.redact import _engine

    class CountedUnion:
        def __init__(self, union: object) -> None:
            self.union, self.searches = union, 0

        def search(self, *arguments: object) -> object:
            self.searches += 1
            return self.union.search(*arguments)  # type: ignore[attr-defined]  # an RE2 pattern

    engine = _engine()
    counted = CountedUnion(engine._union)
    engine._union = counted
    try:
        assert scan("token=abcdefg " * 1000) == ()
    finally:
        engine._union = counted.union
    assert counted.searches == 1001


def test_importing_the_room_does_not_load_the_engine() -> None:
    code = (
        "import sys, smara.secrets; sys.exit('re2' in sys.modules or 'smara.secrets.rules' in "
        "sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
