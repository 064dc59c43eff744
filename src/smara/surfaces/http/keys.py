"""Know who asks: access keys for programs, and cookies for browsers.

A *key* is a long random text, sent as ``Authorization: Bearer KEY``: the server's own, or a named
one of the store. A browser gets a cookie for a code that is in the printed address and can be used
once. Codes, sessions and named keys lie in the store, so that every server of it knows them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from smara.requests.models import SECRET_LENGTH, Principal, hash_of
from smara.surfaces.http.store import Store


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

    def __init__(self, key: str, store: Store, now_ms: Callable[[], int], user: str) -> None:
        self._own = hash_of(key)
        self._store = store
        self._now_ms = now_ms
        self._user = user

    def by_own_key(self, secret: str) -> Principal | None:
        """Return the person whose server it is, for the server's own key."""
        # Hashes are compared: how long that takes tells nothing about the key.
        is_own = secrets.compare_digest(hash_of(secret), self._own)
        return Principal(self._user) if is_own else None

    def by_key(self, secret: str) -> Principal | None:
        """Return the holder of a valid named key."""
        if len(secret) != SECRET_LENGTH:
            return None  # the store is not asked for what cannot be a key
        with self._store.memory() as memory:
            return memory.internals.requests.access.find(secret, "key", self._now_ms())

    def by_session(self, secret: str) -> Principal | None:
        """Return the holder of a browser's session."""
        if len(secret) != SECRET_LENGTH:
            return None
        with self._store.memory() as memory:
            return memory.internals.requests.access.find(secret, "session", self._now_ms())

    def new_code(self, name: str | None = None) -> str:
        """Return a code that a browser can use once."""
        with self._store.memory() as memory:
            return memory.internals.requests.access.add_code(name or self._user, self._now_ms())

    def exchange(self, code: str) -> str | None:
        """Exchange a code for a new session."""
        with self._store.memory() as memory:
            return memory.internals.requests.access.exchange(code, self._now_ms())

    def leave(self, session: str) -> None:
        """End a browser's session."""
        with self._store.memory() as memory:
            memory.internals.requests.access.leave(session)
