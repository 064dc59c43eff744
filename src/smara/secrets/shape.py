"""Judge whether a value looks like a secret or like code.

Entropy, digits and words decide. Examples, references to variables and function calls are
not secrets.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log2

from smara.core.extract import read_cues
from smara.secrets.rule import Rule

CUES, WORDS = read_cues(__file__, "cues.txt")
"""By what examples, references, code and words are recognized."""

JUDGED_BYTES = 160
_FEWEST_OTHER = 6
"""What has fewer letters and digits beside familiar words, and has one, is an example."""
_CODE_STARTS = (
    "$",
    "<",
    "{",
    "(",
    "[",
    "@",
    "*",
    "/",
    "./",
    "~/",
    "../",
    "%s",
    "%d",
    "-",
    "\\",
    "!",
    "&",
    "|",
    "#",
    "=",
    ">",
    ":",
)
_IDENTIFIERS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[]?.*", re.DOTALL)
_RUN = re.compile(r"[A-Za-z0-9]+")
_DIGIT = re.compile(r"[0-9]")
_SPACE = re.compile(r"\s")
_STRONG_SIGNS = frozenset("!@#$%^&*+=?~|;")
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}


def entropy(value: str) -> float:
    """Return bits per character: `aaaa` has 0, sixteen different characters have 4."""
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values()) if size else 0.0


def trim(value: str, rule: Rule, is_quoted: bool) -> str:
    """Return a value without the punctuation that follows the secret."""
    if is_quoted or rule.shape == "format":
        return value
    cut = CUES["cuts"].search(value) if "<" in value or "&" in value or "," in value else None
    value = value[: cut.start()] if cut else value
    closing = ".,;:)]}>!?" if rule.shape in ("prose", "near") else ",;:)]}>"
    # A bracket that closes one inside the value belongs to it.
    while value and value[-1] in closing:
        if value[-1] in _PAIRS and _PAIRS[value[-1]] in value:
            break
        value = value[:-1]
    return value


def is_secret(value: str, rule: Rule, name: str, is_quoted: bool, ends_line: bool = False) -> bool:
    """Judge a value by its rule's shape.

    `name` is the text before the value; `ends_line` says that nothing follows it in its line.
    """
    if rule.shape == "format":
        return entropy(value) >= rule.min_entropy and not CUES["example in format"].search(value)
    # In `f("password", "x")` the second string need not belong to the first.
    is_passed = name.rstrip("\"'`\\ \t\n").endswith((",", "("))
    if rule.shape != "url" and not is_passed and is_quoted and _reads_as(value, name):
        return False  # ``APP_SERVICE = "app.service"``: a constant that reads as it is called
    # ``key: ed25519.Ed25519PrivateKey``; a password may look like it, and is never taken for one.
    is_type = rule.shape == "token" and not is_quoted and CUES["type"].fullmatch(value)
    if is_type and all(map(_is_worded, value.split("."))):
        return False
    if rule.shape == "random":
        return _is_random(value) and not _is_example(value)
    if rule.shape == "near":
        return _is_near_secret(value, rule, name)
    if rule.shape in ("url", "argument"):
        # `-p 8080:80`, and "the options -u and -p take"
        is_other = CUES["ports"].fullmatch(value) or " and -" in name or " or -" in name
        return (
            len(value) >= 4
            and not (rule.shape == "argument" and (is_other or _is_example(value)))
            and not _is_reference(value)
            and value.lower() not in WORDS["weak passwords"]
            and len(set(value)) > 2
        )
    if rule.shape == "token" and not _is_random(value):  # most values end here, so it comes first
        return _is_plain_token(value, rule, name, is_quoted)
    if CUES["name of a fact"].search(name) and not rule.name.endswith("credential"):
        return False
    if _is_reference(value) or _is_example(value):
        return False
    if rule.shape == "token":
        return _is_token(value, name, is_quoted and not is_passed) and (
            not is_passed or len(value) >= 16
        )
    if rule.shape == "password":
        if is_passed and not is_quoted:
            return False
        is_deliberate = (
            (is_quoted and not is_passed)
            or CUES["environment name"].search(name) is not None
            # A line of YAML; a parameter's type is followed by something.
            or (ends_line and name.rstrip(" \t").endswith((":", "\xef\xbc\x9a")))
            or (ends_line and CUES["property"].fullmatch(name) is not None)
            or (ends_line and not CUES["identifier"].fullmatch(value))
            or (is_quoted and CUES["constant passed"].fullmatch(name) is not None)
            or name.startswith(("-", "login"))
            or name.endswith(">")
            or rule.name in ("pgpass-line", "literal-password", "named-value")
        ) and (is_quoted or not CUES["call"].match(value))
        if _is_password(value, is_deliberate):
            return True
        # A line of YAML may be the declaration of a type: a value there is no name.
        is_literal = is_quoted or not name.rstrip(" \t").endswith(":")
        is_spoken = name.startswith("-") and not ends_line  # `use the --password option`
        return is_deliberate and not is_spoken and _is_plain(value, is_literal)
    return _is_prose_secret(value, name) or (
        is_quoted
        and rule.name == "told-password"
        and not name.lower().startswith("pass ")
        and _is_plain(value, is_literal=True)
    )


def _is_worded(name: str) -> bool:
    return len(CUES["switch"].findall(name)) + len(CUES["unwordly"].findall(name)) < 3


def _reads_as(value: str, name: str) -> bool:
    own = _letters(value)
    return own != "" and _STRONG_SIGNS.isdisjoint(value) and _letters(name).endswith(own)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _is_token(value: str, name: str, is_quoted: bool) -> bool:
    if len(value) < 10 or _SPACE.search(value) or (not is_quoted and _is_call(value)):
        return False
    if CUES["uuid"].fullmatch(value):
        return CUES["names that allow uuid"].search(name) is not None
    is_deliberate = (
        is_quoted or name.startswith("-") or CUES["environment name"].search(name) is not None
    )
    if not is_deliberate and CUES["identifier"].fullmatch(value) and _is_worded(value):
        return False  # a class or a variable with a number in its name: FTS5Tokenizer
    return _is_random(value) and entropy(value) >= (3.0 if len(value) >= 16 else 2.8)


def _is_password(value: str, is_deliberate: bool) -> bool:
    """Letters with digits or strong signs; a bare word needs more, because it may be a variable."""
    if len(value) < 6 or len(value) > 128 or _SPACE.search(value) or len(set(value)) < 5:
        return False
    if (
        (not is_deliberate and _is_call(value))
        or ("{" in value and "}" in value)
        # A translation: who types a password of other letters has no keyboard for it elsewhere.
        or 2 * sum(sign > "\x7f" for sign in value) > len(value)
        or CUES["uuid"].fullmatch(value)
    ):
        return False
    has_letter = any(sign.isalpha() for sign in value)
    has_digit = any(sign.isdigit() for sign in value)
    signs = sum(sign in _STRONG_SIGNS for sign in value)
    if is_deliberate:
        # Letters alone are a word, or a name, unless small and capital ones are mixed as in none.
        is_mixed = (
            has_digit or 0 < signs < len(value) / 2 or CUES["unwordly"].search(value) is not None
        )
        return has_letter and is_mixed and (signs > 0 or len(value) >= 7)
    return has_letter and has_digit and (signs > 0 or len(CUES["switch"].findall(value)) >= 2)


def _is_plain(value: str, is_literal: bool) -> bool:
    """Words or digits alone, given to a password on purpose."""
    return (
        (CUES["plain"] if is_literal else CUES["plain in yaml"]).fullmatch(value) is not None
        and value.lower() not in WORDS["plain words"] | WORDS["weak passwords"]
        and not (value.isupper() and "_" in value)
        and len(value) <= 64
    )


def _is_plain_token(value: str, rule: Rule, name: str, is_quoted: bool) -> bool:
    """Words or digits alone, given to a secret or a key, not to a token: that is often a word."""
    return (
        (rule.name in ("assigned-secret", "assigned-key") or name.isupper())
        and (is_quoted or CUES["constant name"].fullmatch(name) is not None)
        and (
            not name.rstrip("\"'`\\ \t\n").endswith((",", "("))
            or CUES["constant passed"].fullmatch(name) is not None
        )
        and len(value) >= 8
        and (_is_plain(value, is_literal=True) or _is_password(value, is_deliberate=True))
        and not CUES["own words"].search(value)
        and not (CUES["name of a fact"].search(name) or _is_reference(value) or _is_example(value))
    )


def _is_prose_secret(value: str, name: str) -> bool:
    if _is_token(value, name, is_quoted=False):
        return True
    if name.lower().startswith("pass ") and ("=" in value or "_" in value):
        return False  # an argument that is passed
    is_name = (
        "_" in value and CUES["identifier"].fullmatch(value) and not CUES["phrase"].fullmatch(value)
    )
    if (
        len(value) < 6
        or is_name
        or CUES["call"].match(value)
        or _is_call(value)
        or len(set(value)) < 4
    ):
        return False
    digits = sum(sign.isdigit() for sign in value)
    signs = sum(sign in _STRONG_SIGNS for sign in value)
    has_letter = any(sign.isalpha() for sign in value)
    if has_letter and digits:
        is_mixed = len(value) >= 8 and len(CUES["switch"].findall(value)) >= 2
        return signs > 0 or digits > 1 or is_mixed or value.endswith("!")
    return (
        digits == len(value)
        or (has_letter and signs > 1)
        or CUES["phrase"].fullmatch(value) is not None
    )


def _is_near_secret(value: str, rule: Rule, name: str) -> bool:
    """Judge a value that no sign ties to the word beside it: nothing else may look like it."""
    if (
        (rule.name == "near-line" and CUES["name of a fact"].search(name))
        or CUES["call"].match(value)
        or CUES["uuid"].fullmatch(value)
        or _is_reference(value)
        or _is_example(value)
    ):
        return False
    is_token = "." not in value and _is_token(value, "", is_quoted=False)
    if is_token or CUES["words joined"].fullmatch(value):
        return True
    is_spoken = rule.name in ("near-word", "near-line", "before-word", "user-pair")
    if value.isdigit():
        is_tied = not is_spoken or name.rstrip("\"'`* ").endswith((":", "="))
        return len(value) >= 7 and is_tied
    digits, odd = len(_DIGIT.findall(value)), len(CUES["unwordly"].findall(value))
    signs = sum(sign in _STRONG_SIGNS for sign in value)
    is_mixed = digits + odd > 0 and digits + signs + odd > (len(value) < 8)
    if is_spoken:
        is_mixed = (len(value) >= 8 and (digits >= 2 or odd >= 2)) or (digits > 0 < signs)
    has_letter = any(map(str.isalpha, value))
    return (
        is_mixed and has_letter and 6 <= len(value) <= 64 and CUES["of code"].search(value) is None
    )


def _is_random(value: str) -> bool:
    """Return True if a long run, or two short ones, are mixed as no word is."""
    if not _DIGIT.search(value) and (value.islower() or value.isupper()):
        return False
    short_runs = 0
    for run in _RUN.findall(value):
        size = len(run)
        switches = len(CUES["switch"].findall(run))
        if size >= 8 and (
            switches >= max(2, size // 10)
            or (size >= 16 and switches + len(CUES["unwordly"].findall(run)) >= 3)
        ):
            return True
        if 4 <= size < 8 and switches >= 2:
            short_runs += 1
    return short_runs >= 2


def _is_reference(value: str) -> bool:
    return (
        # A password may begin with a sign, if what follows is like no name.
        (value.startswith(_CODE_STARTS) and not (value[0] in "!#=*-^&" and _is_random(value[1:])))
        or CUES["reference"].search(value) is not None
        or value.lower().startswith(
            ("sha1", "sha256", "sha384", "sha512", "md5", "h1:", "data:", "urn:", "arn:", "blake2")
        )
    )


def _is_example(value: str) -> bool:
    """``xxxx``, ``my-secret``, ``test_password1``; ``hunter2secret`` says something of its own."""
    if len(set(value.lower())) < 5 or CUES["example"].search(value):
        return True
    other, familiar = CUES["familiar"].subn(" ", value)
    own = CUES["beside familiar"].sub("", other) if familiar else value
    return familiar > 0 and sum(map(str.isalnum, own)) < _FEWEST_OTHER


def _is_call(value: str) -> bool:
    """`get_token(…)`, `config["x"]`, `settings.token`: an identifier that leads somewhere."""
    found = _IDENTIFIERS.fullmatch(value)
    if not found:
        return False
    return "(" in value or "[" in value or (value.count(".") > 0 and not _is_random(value))
