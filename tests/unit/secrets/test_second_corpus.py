"""Recall on a corpus that was written without looking at the rules, and precision on real code."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from smara.core.secret_prefilter import may_hold_secret
from smara.secrets import redact, scan
from tests.unit.secrets import fifth_corpus, fourth_corpus, third_corpus
from tests.unit.secrets.second_corpus import context_samples, vendor_samples

LEAST_VENDOR, LEAST_CONTEXT, MOST_FALSE = 0.99, 0.90, 1 / 10_000


def recall(samples) -> float:
    found = [secret[-12:] not in redact(text).text for _, text, secret in samples]
    return sum(found) / len(found)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_vendors_tokens_are_found(seed):
    assert recall(vendor_samples(seed)) >= LEAST_VENDOR


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_secrets_that_only_their_surroundings_show_are_found(seed):
    assert recall(context_samples(seed)) >= LEAST_CONTEXT


def test_a_password_of_letters_alone_is_found_where_a_name_in_capitals_holds_it():
    for text in ("DB_PASSWORD=bluebirdmorning\n", 'export PGPASSWORD="harborlantern"\n'):
        assert "[REDACTED:password]" in redact(text).text
    for text in ("DB_PASSWORD=changemeplease\n", "PASSWORD=${SOMETHINGELSE}\n", "PWD=home\n"):
        assert redact(text).text == text


@pytest.mark.parametrize("prefix", ["sk-ant-", "sk-ant-api-", "sk-ant-oat01-"])
def test_a_key_of_anthropic_is_found_whatever_its_kind_and_length(prefix):
    assert redact(f"x {prefix}9382dffx1kVZQ2tqMnMc y").text == "x [REDACTED:anthropic-key] y"


def test_real_code_has_hardly_a_false_hit():
    lines = hits = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = path.read_text("utf-8", "replace")
        lines += text.count("\n")
        hits += len(scan(text))
    assert hits / lines <= MOST_FALSE


def test_a_hook_suspects_whatever_is_found():
    samples = [*vendor_samples(4), *context_samples(4)]
    found = [text for _, text, _ in samples if redact(text).text != text]
    assert [text for text in found if not may_hold_secret(text.encode())] == []


def test_plain_words_are_found_where_a_password_is_written_down():
    vendors = list(third_corpus.vendors())
    assert recall(vendors) >= LEAST_VENDOR
    contexts = [(name, text, secret) for name, _, text, secret in third_corpus.contexts()]
    assert recall(contexts) >= 0.85
    found = [text for _, text, _ in (*vendors, *contexts) if redact(text).text != text]
    assert [text for text in found if not may_hold_secret(text.encode())] == []


@pytest.mark.parametrize("is_held_back", [False, True])
def test_a_value_is_judged_by_what_it_is_made_of(is_held_back):
    samples = list(fourth_corpus.samples(4, is_held_back))
    found = [secret[-6:] not in redact(text).text for _, text, secret in samples]
    assert sum(found) / len(found) >= LEAST_CONTEXT
    redacted = [text for _, text, _ in samples if redact(text).text != text]
    assert [text for text in redacted if not may_hold_secret(text.encode())] == []


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2secret",
        "the password: hunter2secret, ok?",
        "log in with hunter2secret as the password",
        "the password's hunter2secret",
        "Password:\nhunter2secret\n",
        "| password | hunter2secret |",
        "das Passwort für den Server: hunter2secret",
        "mdp : hunter2secret",
        "la senha do banco é hunter2secret",
    ],
)
def test_a_familiar_word_in_a_password_does_not_make_it_an_example(text):
    assert "hunter2" not in redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        "forgot_password=Forgot your password?\nnew_password=Neues Passwort\n",
        "password=パスワードを変更\n",
        "spec = dict(password=dict(type='str', no_log=True))",
        "use the --ask-vault-password option here",
        "run --vault-password-file vault-password format_1_1_AES256.yml",
        "if self.update_password == 'always':",
        "ansible_password=@PASSWORD ansible_port=@PORT",
        "password: my-test-password",
        "Unlock account without password parameter",
    ],
)
def test_real_lines_that_speak_of_passwords_are_kept(text):
    assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "class Login:\n    password: string\n    other: int", "or pass 'ignore' to skip them",
        "check(password=userinput)\n", "the password is incorrect", "password: SecretStr\n",
        "keys = ['AES_KEY', 'PKCS7_ISSUER']", "to pass `isinstance` tests",
        "see the --password option of it", 'API_KEY = "google_api_key"',
    ],
)  # fmt: skip
def test_words_beside_a_password_are_kept(text):
    assert redact(text).text == text


def test_what_only_stands_near_a_word_is_found_in_formats_that_made_no_rule():
    samples = list(fifth_corpus.samples(5, is_held_back=True))
    found = [secret not in redact(text).text for _, _, text, secret in samples]
    assert sum(found) / len(found) >= 0.88
    redacted = [text for _, _, text, _ in samples if redact(text).text != text]
    assert [text for text in redacted if not may_hold_secret(text.encode())] == []


@pytest.mark.parametrize(
    "text",
    [
        "the first pass of gh-18450, extra arguments to pass to the fortran77 compiler",
        "information can be given by the options --username and --password instead of an address",
        "docker run -u 1000:1000 -p 8080:80 image",
        'password = password.encode("latin1")',
        'METHOD can be "trust", "password", "scram-sha-256"',
        "username, password = index_url_user_password",
        'MovedAttribute("HTTPPasswordMgr", "urllib2", "urllib.request")',
        "the password to decrypt the PKCS12 lump",
        "Pass `thread=False` to run without a password",
    ],
)
def test_what_stands_near_a_word_in_code_and_its_documents_is_left_alone(text):
    assert redact(text).text == text
