"""Decide which paths git, tools or secrets keep out of an index.

``.gitignore`` counts at every level as git reads it, and so do ``.git/info/exclude`` and
``.smaraignore``. A tracked file is never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from smara.codegraph.index.tree_reader import NotRead, TreeReader
from smara.core.paths import is_generated_folder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


RULE_FILES = (".gitignore", ".smaraignore")
_LARGEST_RULES = 256 * 1024
_MOST_RULES = 5_000

_SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"}
)

_SECRET_NAMES = re.compile(
    "|".join(
        translate(pattern)
        for pattern in re.findall(
            r"\S+",
            ".env .env.* *.env .envrc *.pem *.key *.p12 *.pfx *.p8 *.jks *.keystore *.truststore "
            "*.kdbx *.ppk *.gpg"
            " *.age *.ovpn id_rsa id_rsa.* id_dsa id_dsa.* id_ecdsa id_ecdsa.* id_ed25519 "
            "id_ed25519.* .netrc _netrc"
            " .pgpass .my.cnf .npmrc"
            " .yarnrc .yarnrc.yml .pypirc .htpasswd .git-credentials .dockercfg .dockerconfigjson"
            " kubeconfig *.kubeconfig credentials credentials.json credentials.y*ml "
            "credentials.toml credentials.ini"
            " credentials.xml credentials.csv credentials.db *.credentials secrets secrets.json "
            "secrets.y*ml"
            " secrets.toml secrets.ini secrets.env secret.json secret.y*ml *.secret *.secrets "
            "client_secret*.json"
            " service-account*.json service_account*.json serviceaccount*.json "
            "*-service-account.json"
            " application_default_credentials.json *.tfstate *.tfstate.* *.tfvars *.tfvars.json "
            ".vault-token *.vault"
            " vault.y*ml master.key token .token *.token .s3cfg .boto .terraformrc terraform.rc "
            "auth.json .pgpass.conf"
            " *.agekey *.asc *.mobileprovision *.cer *.der *.crt htpasswd shadow",
        )
    ),
    re.IGNORECASE,
)
_EXAMPLES = re.compile(
    r".*\.(?:example|sample|template|tmpl|dist|defaults?)(?:\.[a-z]+)?$", re.IGNORECASE
)


class IgnoreRules(NamedTuple):
    """The patterns of one folder, and where it lies (with a slash at the end; empty for the
    root).
    """

    base: str
    spec: GitIgnoreSpec


def holds_secrets(path: str) -> bool:
    """Whether a file is of a kind that people keep secrets in, judged by its name alone.

    >>> [holds_secrets(path) for path in (".env", "src/secrets.py", "deploy/prod.pem", ".env.example")]
    [True, False, True, False]
    """  # noqa: E501
    *folders, name = path.split("/")
    if any(folder in _SECRET_FOLDERS for folder in folders):
        return True
    return _SECRET_NAMES.match(name) is not None and _EXAMPLES.match(name) is None


def is_made_folder(name: str, inside: Collection[str]) -> bool:
    """Whether a folder is a machine's, by its name or by what lies in it."""
    is_environment = "pyvenv.cfg" in inside or "CACHEDIR.TAG" in inside
    return is_environment or is_generated_folder(name)


def rules_in(
    reader: TreeReader, folder: str, names: Collection[str], above: Sequence[IgnoreRules]
) -> Sequence[IgnoreRules]:
    """The rules that hold in a folder: those from above, then its own."""
    lines: list[str] = []
    for name in RULE_FILES:
        if name in names:
            lines += _lines(reader, f"{folder}/{name}" if folder else name)
    spec = spec_of(lines)
    return above if spec is None else (*above, IgnoreRules(f"{folder}/" if folder else "", spec))


def spec_of(lines: Sequence[str]) -> GitIgnoreSpec | None:
    """The patterns of some lines; those that mean nothing are left out. ``None`` when none is
    left.
    """
    kept = tuple([line for line in lines if line.strip() and not line.startswith("#")])
    return _spec_of(kept) if kept else None


@lru_cache(maxsize=64)
def _spec_of(lines: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Kept, since compiling the patterns of a repository takes longer than reading a saved file."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except Exception:  # noqa: BLE001 - a pattern git would ignore too; the others still count
        usable = [line for line in lines if _is_pattern(line)]
    return GitIgnoreSpec.from_lines(usable) if usable else None


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except Exception:  # noqa: BLE001 - whatever the matcher says of it
        return False
    return True


def is_ignored(rules: Sequence[IgnoreRules], path: str, is_folder: bool) -> bool:
    """Whether the rules leave a path out; the rule nearest to it decides."""
    shown = f"{path}/" if is_folder else path
    for base, spec in reversed(rules):
        verdict = spec.check_file(shown[len(base) :]).include
        if verdict is not None:
            return verdict
    return False


def _lines(reader: TreeReader, path: str) -> list[str]:
    try:
        data = reader.read(path, _LARGEST_RULES).data
    except NotRead:
        return []
    return data.decode("utf-8", "replace").splitlines()[:_MOST_RULES]
