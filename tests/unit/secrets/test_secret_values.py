"""Redacting JSON-like data."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.secrets import redact, redact_value

TOKEN = "ghp_" + "".join(random.Random(3).choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789", k=36))
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=15,
)


def test_strings_are_redacted_at_any_depth_and_counted() -> None:
    value, count = redact_value({"a": [1, {"b": f"use {TOKEN}"}], "c": (TOKEN, None, 2.5, True)})
    assert value == {
        "a": [1, {"b": "use [REDACTED:github-token]"}],
        "c": ("[REDACTED:github-token]", None, 2.5, True),
    }
    assert count == 2


@pytest.mark.parametrize(
    ("name", "secret", "label"),
    [
        ("password", "hunter2-Xy9", "password"),
        ("api_key", "9f8aTq2Lx77bZpQm41Rs", "api-key"),
        ("client_secret", "9f8aTq2Lx77bZpQm41Rs", "secret"),
        ("authToken", "9f8aTq2Lx77bZpQm41Rs", "token"),
        ("authorization", "9f8aTq2Lx77bZpQm41Rs", "authorization"),
        ("Authorization", "Bearer 9f8aTq2Lx77bZpQm41Rs", "bearer-token"),
        ("x-acme-auth", "9f8aTq2Lx77bZpQm41Rs", "api-key"),
    ],
)
def test_telling_key_makes_a_plausible_value_secret(name: str, secret: str, label: str) -> None:
    value, count = redact_value({name: secret, "other": secret.split()[-1][:6]})
    assert f"[REDACTED:{label}]" in value[name]
    assert secret.split()[-1] not in value[name]
    assert count == 1


@pytest.mark.parametrize(
    "harmless", ["", "none", "string", "${PASSWORD}", "changeme", "********", "see the wiki page"]
)
def test_telling_key_with_an_implausible_value_is_kept(harmless: str) -> None:
    assert redact_value({"password": harmless, "token": harmless}) == (
        {"password": harmless, "token": harmless},
        0,
    )


def test_list_under_a_telling_key_is_judged_by_that_key() -> None:
    value, count = redact_value({"passwords": ["hunter2-Xy9", "horse9-Battery"]})
    assert value == {"passwords": ["[REDACTED:password]"] * 2}
    assert count == 2


def test_keys_are_redacted_and_stay_distinct() -> None:
    value, count = redact_value({TOKEN: 1, TOKEN[:-1] + "9": 2, 3: "three"})
    assert list(value.values()) == [1, 2, "three"]
    assert TOKEN not in str(value)
    assert count == 2


def test_scalars_and_containers_keep_their_kind() -> None:
    assert redact_value(7) == (7, 0)
    assert redact_value(b"raw") == (b"raw", 0)
    assert redact_value([]) == ([], 0)
    assert redact_value(()) == ((), 0)
    assert redact_value(TOKEN) == ("[REDACTED:github-token]", 1)


def test_original_is_not_changed() -> None:
    original = {"a": [TOKEN]}
    redact_value(original)
    assert original == {"a": [TOKEN]}


def test_hundred_thousand_levels_are_walked_without_recursion() -> None:
    value: Any = TOKEN
    for _ in range(100_000):
        value = [value]
    walked, count = redact_value(value)
    while isinstance(walked, list):
        (walked,) = walked
    assert (walked, count) == ("[REDACTED:github-token]", 1)
    while isinstance(value, list):
        (value,) = value


def test_part_that_is_shared_many_times_is_walked_once() -> None:
    value: Any = [TOKEN]
    for _ in range(60):
        value = [value, value]
    assert redact_value(value)[1] == 1


def test_value_that_contains_itself_ends_in_a_mark() -> None:
    value: dict[str, Any] = {"a": 1}
    value["self"] = value
    assert redact_value(value)[0] == {"a": 1, "self": {"a": 1, "self": "[CYCLE]"}}


@settings(max_examples=100)
@given(json_like)
def test_redacting_data_twice_equals_once(value: Any) -> None:
    once, _ = redact_value(value)
    assert redact_value(once) == (once, 0)


def test_steps_grow_with_the_number_of_names_not_with_its_square() -> None:
    def lines_run(size: int) -> int:
        count = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal count
            count += event == "line"
            return trace if frame.f_code.co_filename.endswith("redact.py") else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            redact_value({f"k{number}": "v" for number in range(size)}, 20)
        finally:
            sys.settrace(before)
        return count

    assert lines_run(800) < 3 * lines_run(400)


def test_a_password_that_is_the_name_of_its_user_is_found() -> None:
    text = "https://Tr0ub4dor3xyz:Tr0ub4dor3xyz@example.com"
    assert redact(text).text == "https://Tr0ub4dor3xyz:[REDACTED:password]@example.com"


@pytest.mark.parametrize(
    "text",
    [
        "postgres://app:{}@db.example.org/x", "redis://:{}@cache:6379", "password={}",
        "DB_PASSWORD={}", "export PGPASSWORD={}", "mysql -u root -p{}", "pass: {}",
        "mysql -u root --password={}", "curl -u anna:{} https://example.org",
        "sshpass -p {} ssh x", "machine x login bob password {}",
    ],
)  # fmt: skip
def test_a_password_of_two_words_with_a_dot_is_not_taken_for_a_type(text: str) -> None:
    assert "summer.Rain1" not in redact(text.format("summer.Rain1")).text


@pytest.mark.parametrize(
    "text",
    [
        "api_key: k3j4h5g6f7d8s9a0q1w2e3.Prod",
        "auth_token=a8f9e0c1d2b3a4958677.Live",
        "secret = f0e1d2c3b4a5968778695a4b3c2d1e0f.Main",
        'HTTPBasicAuth("Tr0ub4dor3xyz", "Tr0ub4dor3xyz")',
        'login("Tr0ub4dor3xyz", "Tr0ub4dor3xyz")',
        'password = "Pass!Word!!"',
        "password='p!a!s!s!w!o!r!d'",
    ],
)
def test_a_value_is_only_a_name_if_all_of_it_reads_so(text: str) -> None:
    assert redact(text).findings
