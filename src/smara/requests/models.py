"""The holders of keys, and how a key is made."""

from __future__ import annotations

import hashlib
import secrets

from smara.core.startup.record import dataclass, field

CODE_SECONDS = 3_600
SESSION_SECONDS = 12 * 3_600
SECRET_LENGTH = 43
"""256 bits, in the letters of an address."""
_ROUNDS = 200_000


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a key, and its rights."""

    name: str
    may_write: bool = True
    is_person: bool = True
    """False for an agent: it cannot confirm what it says."""
    projects: tuple[str, ...] | None = None
    """The projects it may see; all with ``None``."""
    expires_at: int | None = None
    """When it ends (ms)."""
    is_browser: bool = False
    key_hash: str = field(default="", compare=False)
    """Of the key that it has, or that opened its browser; empty if that key is a server's random
    one, which ends with the process."""


def hash_of(secret: str) -> str:
    """Return what is stored of a key."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def slow_hash_of(key: str) -> str:
    """Return what is stored of a key that may be a word."""
    secret = key.encode("utf-8", "replace")
    return hashlib.pbkdf2_hmac("sha256", secret, b"smara serve", _ROUNDS).hex()


def new_secret() -> str:
    """Return a random text of 256 bits."""
    return secrets.token_urlsafe(32)
