"""Know who asks: access keys for programs, and cookies for browsers.

A *key* is a long random text, sent as ``Authorization: Bearer KEY``. Named keys live in a file that
their owner alone can read, as hashes: who reads the file cannot use them. A browser gets a cookie
for a code that is in the printed address and can be used once; the cookie's value is a random
session, known to this process alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from smara.core.startup.record import asdict, dataclass
from smara.errors import ConfigError, ConflictError, NotFoundError

CODE_SECONDS = 3_600
SESSION_SECONDS = 12 * 3_600
_MOST_SESSIONS = 1_000


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


def hash_of(secret: str) -> str:
    """Return what is stored of a key."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def new_secret() -> str:
    """Return a random text of 256 bits."""
    return secrets.token_urlsafe(32)


class KeyFile:
    """The named keys of a user, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._keys: dict[str, Principal] = {}

    def read(self) -> Mapping[str, Principal]:
        """Return the keys by hash; read again when the file has changed.

        Raises:
            ConfigError: If others can read the file, or it is damaged.
        """
        try:
            facts = self.path.stat()
        except OSError:
            self._stamp, self._keys = None, {}
            return self._keys
        stamp = facts.st_mtime_ns, facts.st_size
        if stamp != self._stamp:
            if os.name == "posix" and facts.st_mode & 0o077:
                raise ConfigError(f"Other users can read {self.path}. Run: chmod 600 {self.path}")
            try:
                rows = json.loads(self.path.read_text(encoding="utf-8"))
                self._keys = {name: _principal(row) for name, row in rows.items()}
            except (OSError, ValueError, TypeError, AttributeError, KeyError):
                raise ConfigError(
                    f"{self.path} cannot be read. Remove it and make new keys."
                ) from None
            self._stamp = stamp
        return self._keys

    def add(self, principal: Principal) -> str:
        """Add a key and return it; it is shown this once.

        Raises:
            ConflictError: If a key has this name.
        """
        keys = dict(self.read())
        if any(each.name == principal.name for each in keys.values()):
            raise ConflictError(
                f"There is a key {principal.name!r}. Revoke it first: `smara keys revoke`."
            )
        secret = new_secret()
        self._write(keys | {hash_of(secret): principal})
        return secret

    def revoke(self, name: str) -> Principal:
        """Remove a key; a running server refuses it from now on.

        Raises:
            NotFoundError: If no key has this name.
        """
        keys = dict(self.read())
        found = next((key for key, each in keys.items() if each.name == name), None)
        if found is None:
            raise NotFoundError(f"There is no key {name!r}. `smara keys list` shows them.")
        gone = keys.pop(found)
        self._write(keys)
        return gone

    def _write(self, keys: Mapping[str, Principal]) -> None:
        rows = {key: asdict(each) for key, each in keys.items()}
        write_private(self.path, json.dumps(rows, indent=1))
        self._stamp = None


def _principal(row: Any) -> Principal:
    projects = row["projects"]
    return Principal(
        str(row["name"]),
        may_write=row["may_write"] is True,
        is_person=row["is_person"] is True,
        projects=None if projects is None else tuple(projects),
        expires_at=row["expires_at"],
    )


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix":
        path.parent.chmod(0o700)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)


class Doorkeeper:
    """Knows the keys, the codes and the sessions of one running server."""

    def __init__(
        self,
        key: str,
        file: KeyFile,
        now_ms: Callable[[], int],
        *,
        user: str = "local",
    ) -> None:
        self._own = hash_of(key)
        self._file = file
        self._now_ms = now_ms
        self._user = user
        self._lock = threading.Lock()
        self._codes: dict[str, int] = {}
        self._sessions: dict[str, Principal] = {}

    def by_key(self, secret: str) -> Principal | None:
        """Return the holder of a valid key."""
        hashed = hash_of(secret)
        # Hashes are compared: how long that takes tells nothing about the key.
        if secrets.compare_digest(hashed, self._own):
            return Principal(self._user)
        found = self._file.read().get(hashed)
        return found if found is not None and self._is_valid(found) else None

    def by_session(self, secret: str) -> Principal | None:
        """Return the holder of a browser's session."""
        with self._lock:
            found = self._sessions.get(hash_of(secret))
        return found if found is not None and self._is_valid(found) else None

    def new_code(self) -> str:
        """Return a code that a browser can use once."""
        code, now = new_secret(), self._now_ms()
        with self._lock:
            self._codes = {each: until for each, until in self._codes.items() if until > now}
            self._codes[hash_of(code)] = now + CODE_SECONDS * 1_000
        return code

    def exchange(self, code: str) -> str | None:
        """Exchange a code for a new session."""
        now, session = self._now_ms(), new_secret()
        with self._lock:
            until = self._codes.pop(hash_of(code), 0)
            if until <= now:
                return None
            while len(self._sessions) >= _MOST_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[hash_of(session)] = Principal(
                self._user, is_browser=True, expires_at=now + SESSION_SECONDS * 1_000
            )
        return session

    def leave(self, session: str) -> None:
        """End a browser's session."""
        with self._lock:
            self._sessions.pop(hash_of(session), None)

    def _is_valid(self, principal: Principal) -> bool:
        return principal.expires_at is None or principal.expires_at > self._now_ms()
