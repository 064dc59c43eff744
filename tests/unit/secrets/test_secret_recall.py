"""How many random secrets are found, and which rule finds them.

The secrets come from `secret_samples`, which knows the vendors' formats but not the rules.
"""

from __future__ import annotations

import base64
import json
import random

import pytest
from secret_samples import BLOCKS, CARRIED, FORMATS, assignments, carriers, make

from smara.secrets import RULES, redact, scan
from smara.secrets.rules import NAMED_VENDORS

SEED = 20260


def left_over(secret: str, text: str) -> list[str]:
    """Return the pieces of a secret, eight characters each, that still stand in a text."""
    return [piece for at in range(4, len(secret) - 8, 4) if (piece := secret[at : at + 8]) in text]


@pytest.mark.parametrize("name", [*FORMATS, *BLOCKS])
def test_rule_finds_its_format_by_its_own_name(name: str) -> None:
    text, secret = make({**FORMATS, **BLOCKS}[name], random.Random(SEED))
    padded = f"see {text} there"
    found = {finding.rule: padded[finding.start : finding.end] for finding in scan(padded)}
    assert found.get(name) == secret


@pytest.mark.parametrize("name", CARRIED)
def test_rule_finds_the_value_that_its_carrier_holds(name: str) -> None:
    text, secret = make(CARRIED[name], random.Random(SEED))
    assert {finding.rule: text[finding.start : finding.end] for finding in scan(text)} == {
        name: secret
    }


@pytest.mark.parametrize("vendor", NAMED_VENDORS)
def test_vendor_name_makes_an_unmarked_value_a_secret(vendor: str) -> None:
    text, secret = make(f"{vendor.upper()}_VALUE=<<h32>>", random.Random(SEED))
    assert {finding.rule: text[finding.start : finding.end] for finding in scan(text)} == {
        f"named-{vendor}": secret
    }


def test_every_rule_has_a_sample_and_every_sample_a_rule() -> None:
    samples = {*FORMATS, *BLOCKS, *CARRIED, *(f"named-{vendor}" for vendor in NAMED_VENDORS)}
    assert {rule.name for rule in RULES} == samples
    assert len(RULES) == len(samples)


def test_at_least_sixty_vendors_are_known_by_format() -> None:
    assert len({rule.label for rule in RULES if rule.name in FORMATS}) >= 60


def test_vendor_formats_are_found_in_every_carrier() -> None:
    dice = random.Random(SEED)
    missed, total = [], 0
    for name, template in {**FORMATS, **BLOCKS}.items():
        text, secret = make(template, dice)
        for carrier, carried in carriers(text).items():
            written = secret
            for _ in range(carrier.count("json")):
                written = json.dumps(written)[1:-1]
            total += 1
            if left_over(written, redact(carried).text):
                missed.append((name, carrier))
    assert len(missed) <= total * 0.01, missed


def test_generic_assignments_are_found_in_nine_of_ten_cases() -> None:
    samples = assignments(random.Random(SEED), 2400)
    missed = [text for text, value in samples if value in redact(text).text]
    assert len(missed) <= len(samples) * 0.1, missed[:20]


def test_formats_with_a_fixed_start_are_found_inside_base64() -> None:
    dice = random.Random(SEED)
    names = [rule.name for rule in RULES if len(rule.literal) >= 4 and rule.name in FORMATS]
    encoded = [base64.b64encode(make(FORMATS[name], dice)[0].encode()).decode() for name in names]
    found = [text for text in encoded if text not in redact(f"  token: {text}\n").text]
    assert len(found) >= len(encoded) * 0.95
    assert len(names) >= 60
    bare = [text for text in encoded if text not in redact(f"the blob {text} again").text]
    assert len(bare) >= len(encoded) * 0.95


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", ""])
@pytest.mark.parametrize(
    "newline",
    ["\n", "\r\n", "\\n", "\\\\n", '\\n" +\n  "', "\n    ", "\n+", "\n> ", "\n   12\u2192"],
)
def test_key_block_is_found_however_its_lines_are_joined(kind: str, newline: str) -> None:
    block, _ = make(
        newline.join(
            [
                f"-----BEGIN {kind}PRIVATE KEY-----",
                *["<b64>"] * 20,
                "<b20>==",
                f"-----END {kind}PRIVATE KEY-----",
            ]
        ),
        random.Random(SEED),
    )
    assert redact(f"key:\n{block}\nend").text == "key:\n[REDACTED:private-key]\nend"


def test_key_block_of_sixteen_kilobytes_is_found_whole() -> None:
    block, _ = make(
        "-----BEGIN PRIVATE KEY-----\n" + "<b64>\n" * 252 + "-----END PRIVATE KEY-----",
        random.Random(SEED),
    )
    assert redact(f"a {block} z").text == "a [REDACTED:private-key] z"


def test_key_block_without_its_end_is_redacted_as_far_as_it_goes() -> None:
    block, _ = make(
        "-----BEGIN RSA PRIVATE KEY-----\n" + "<b64>\n" * 9 + "<b50>", random.Random(SEED)
    )
    assert (
        redact(f"{block}\n[output truncated]").text == "[REDACTED:private-key]\n[output truncated]"
    )


def test_encrypted_key_block_with_headers_is_found() -> None:
    block, _ = make(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "
        "AES-128-CBC,<h32>\n\n<b64>\n<b64>\n"
        "-----END RSA PRIVATE KEY-----",
        random.Random(SEED),
    )
    assert redact(block).text == "[REDACTED:private-key]"
