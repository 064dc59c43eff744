"""Know who asks: access keys for programs, and cookies for browsers.

A *key* is a long random text, sent as ``Authorization: Bearer KEY``: the server's own, or a named
one of the store. A browser gets a cookie for a code that is in the printed address and can be used
once. Codes, sessions and named keys lie in the store, so that every server of it knows them. A
browser ends with the key that opened it. Where the store cannot be written, the codes and sessions
of the server's own user are kept in this process.
"""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from smara.core import log
from smara.errors import DatabaseError
from smara.requests.models import (
    CODE_SECONDS,
    SECRET_LENGTH,
    SESSION_SECONDS,
    Principal,
    hash_of,
    new_secret,
    slow_hash_of,
)
from smara.surfaces.http.store import Store

_MOST_LOGINS = 1_000


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
    """Knows the keys, the codes and the sessions that a server takes."""

    def __init__(self, key: str | None, store: Store, now_ms: Callable[[], int], user: str) -> None:
        self.key = key or new_secret()
        self._own = hash_of(self.key)
        self._store = store
        self._now_ms = now_ms
        # The next process has another random key, and knows the browsers of this one.
        self._owner = Principal(user, key_hash=slow_hash_of(key) if key else "")
        self._logins: OrderedDict[tuple[str, str], Principal] = OrderedDict()

    def by_own_key(self, secret: str) -> Principal | None:
        """Return the person whose server it is, for the server's own key."""
        # Hashes are compared: how long that takes tells nothing about the key.
        return self._owner if secrets.compare_digest(hash_of(secret), self._own) else None

    def by_key(self, secret: str) -> Principal | None:
        """Return the holder of a valid named key."""
        return self._find(secret, "key")

    def by_session(self, secret: str) -> Principal | None:
        """Return the holder of a browser's session."""
        return self._find(secret, "session")

    def _find(self, secret: str, kind: str) -> Principal | None:
        if len(secret) != SECRET_LENGTH:
            return None  # the store is not asked for what cannot be a key
        if (login := self._logins.get((kind, hash_of(secret)))) is not None:
            return login if (login.expires_at or 0) > self._now_ms() else None
        with self._store.memory() as memory:
            return memory.internals.requests.access.find(
                secret, kind, self._now_ms(), own=self._owner.key_hash
            )

    def new_code(self, holder: Principal | None = None) -> str:
        """Return a code that a browser can use once."""
        who = holder or self._owner
        try:
            with self._store.memory() as memory:
                return memory.internals.requests.access.add_code(
                    who, self._now_ms(), own=self._owner.key_hash
                )
        except DatabaseError as error:
            # A store that is busy, full or read-only is shown to its user all the same. What a
            # named key opens would have to end with it.
            if who.key_hash != self._owner.key_hash:
                raise
            log.warning("http.login_kept", error=error.code)
            return self._keep("code", CODE_SECONDS)

    def exchange(self, code: str) -> str | None:
        """Exchange a code for a new session."""
        if len(code) != SECRET_LENGTH:
            return None
        if (login := self._logins.pop(("code", hash_of(code)), None)) is not None:
            is_valid = (login.expires_at or 0) > self._now_ms()
            return self._keep("session", SESSION_SECONDS) if is_valid else None
        with self._store.memory() as memory:
            return memory.internals.requests.access.exchange(
                code, self._now_ms(), own=self._owner.key_hash
            )

    def leave(self, session: str) -> None:
        """End a browser's session."""
        if self._logins.pop(("session", hash_of(session)), None) is None:
            with self._store.memory() as memory:
                memory.internals.requests.access.leave(session)

    def _keep(self, kind: str, seconds: int) -> str:
        """Keep a new code or session of the server's own user in this process."""
        secret, until = new_secret(), self._now_ms() + seconds * 1_000
        while len(self._logins) >= _MOST_LOGINS:
            self._logins.popitem(last=False)
        self._logins[kind, hash_of(secret)] = replace(
            self._owner, expires_at=until, is_browser=kind == "session"
        )
        return secret
