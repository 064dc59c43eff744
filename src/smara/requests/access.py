"""Know who may ask a store's servers: keys, codes, sessions.

They lie in the store, so that every server of it knows them: a request may go to any, and what is
revoked is refused by all at once. Only hashes are stored: who reads the store cannot use them. A
code or a session holds as long as the key that opened it: a named key of the store, or ``own``, the
hash of the key that a server was given (empty for a server whose key is random).
"""

from __future__ import annotations

from smara.database.database import Session
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.requests.models import (
    CODE_SECONDS,
    SESSION_SECONDS,
    Principal,
    hash_of,
    new_secret,
)

_MOST_SESSIONS = 1_000
_COLUMNS = "hash, name, may_write, is_person, is_limited, expires_at, kind, key_hash"
# Asked at each use, not only when a key ends: a browser may be opened in that very moment.
_IS_VALID = (
    "hash = ? AND kind = ? AND (expires_at IS NULL OR expires_at > ?) AND (key_hash = ?"
    " OR key_hash IN (SELECT k.hash FROM access k WHERE k.kind = 'key'"
    " AND (k.expires_at IS NULL OR k.expires_at > ?)))"
)


class Access:
    """The named keys of a store, and its browsers' codes and sessions."""

    def __init__(self, project: ProjectContext) -> None:
        self._database = project.database

    def list(self) -> list[Principal]:
        """Return the holders of named keys, by name."""
        with self._database.read() as session:
            rows = session.all(f"SELECT {_COLUMNS} FROM access WHERE kind = 'key' ORDER BY name")
            return [_principal(session, row) for row in rows]

    def add(self, principal: Principal, now_ms: int) -> str:
        """Add a named key and return it; it is shown this once.

        Args:
            principal: Its holder. The projects it is limited to, by id or name, must exist.
            now_ms: The time.

        Returns:
            The key.

        Raises:
            ConflictError: If a key has this name.
            NotFoundError: If there is no such project.
            InvalidInputError: If several have this name.
        """
        secret, names = new_secret(), principal.projects or ()
        with self._database.write() as session:
            if session.one(
                "SELECT 1 FROM access WHERE kind = 'key' AND name = ?", (principal.name,)
            ):
                raise ConflictError(
                    f"There is a key {principal.name!r}. Revoke it first: `smara keys revoke`."
                )
            _insert(session, secret, principal, kind="key", now_ms=now_ms)
            for name in dict.fromkeys(names):
                session.run(
                    "INSERT INTO access_projects (project_no, hash) VALUES (?, ?)",
                    (find_project_no(session, name), hash_of(secret)),
                )
        return secret

    def revoke(self, name: str) -> Principal:
        """Remove a named key, and the browsers that its holder opened.

        Running servers refuse them from now on.

        Raises:
            NotFoundError: If no key has this name.
        """
        with self._database.write() as session:
            row = session.one(
                f"SELECT {_COLUMNS} FROM access WHERE kind = 'key' AND name = ?", (name,)
            )
            if row is None:
                raise NotFoundError(f"There is no key {name!r}. `smara keys list` shows them.")
            gone = _principal(session, row)
            session.run("DELETE FROM access WHERE key_hash = ?", (row[0],))
        return gone

    def find(self, secret: str, kind: str, now_ms: int, *, own: str = "") -> Principal | None:
        """Return the holder of a valid ``key`` or ``session``."""
        with self._database.read() as session:
            row = session.one(
                f"SELECT {_COLUMNS} FROM access WHERE {_IS_VALID}",
                _valid(secret, kind, now_ms, own=own),
            )
            return None if row is None else _principal(session, row)

    def add_code(self, holder: Principal, now_ms: int, *, own: str = "") -> str:
        """Return a code that opens a browser once.

        Raises:
            NotFoundError: If that key has ended.
        """
        code, until = new_secret(), now_ms + CODE_SECONDS * 1_000
        with self._database.write() as session:
            session.run("DELETE FROM access WHERE kind <> 'key' AND expires_at <= ?", (now_ms,))
            opened = Principal(holder.name, expires_at=until, key_hash=holder.key_hash)
            _insert(session, code, opened, kind="code", now_ms=now_ms)
            valid = _valid(code, "code", now_ms, own=own)
            if session.one(f"SELECT 1 FROM access WHERE {_IS_VALID}", valid) is None:
                raise NotFoundError(f"The key {holder.name!r} has ended.")
        return code

    def exchange(self, code: str, now_ms: int, *, own: str = "") -> str | None:
        """Exchange a code for a new session.

        Returns:
            The session; ``None`` if the code was used, is too old, or its key has ended.
        """
        secret = new_secret()
        if self.find(code, "code", now_ms, own=own) is None:
            return None  # who only guesses takes no lock
        with self._database.write() as session:
            row = session.one(
                f"DELETE FROM access WHERE {_IS_VALID} RETURNING name, key_hash",
                _valid(code, "code", now_ms, own=own),
            )
            if row is None:
                return None
            key = session.one("SELECT expires_at FROM access WHERE hash = ?", (row[1],))
            # It ends with the key that opened it.
            until = min([now_ms + SESSION_SECONDS * 1_000, *filter(None, key or ())])
            holder = Principal(str(row[0]), expires_at=until, key_hash=str(row[1]))
            _insert(session, secret, holder, kind="session", now_ms=now_ms)
            session.run(
                "DELETE FROM access WHERE kind = 'session' AND hash NOT IN (SELECT hash FROM access"
                " WHERE kind = 'session' ORDER BY expires_at DESC, hash LIMIT ?)",
                (_MOST_SESSIONS,),
            )
        return secret

    def leave(self, secret: str) -> None:
        """End a browser's session."""
        with self._database.write() as session:
            session.run(
                "DELETE FROM access WHERE hash = ? AND kind = 'session'", (hash_of(secret),)
            )


def find_project_no(session: Session, name: str) -> int:
    """Return the number of the project with an id or name."""
    rows = session.all("SELECT no, id FROM projects WHERE id = ? OR name = ?", (name, name))
    own = [row for row in rows if row[1] == name] or rows
    if not own:
        raise NotFoundError(
            f"There is no project {name!r}. `smara projects` lists them.", project=name
        )
    if len(own) > 1:
        ids = ", ".join(sorted(str(row[1]) for row in own))
        raise InvalidInputError(f"Several projects are called {name!r}. Name one: {ids}.")
    return int(own[0][0])


def _valid(secret: str, kind: str, now_ms: int, *, own: str) -> tuple[object, ...]:
    """Return the values for the marks of the condition."""
    return hash_of(secret), kind, now_ms, own, now_ms


def _insert(session: Session, secret: str, holder: Principal, *, kind: str, now_ms: int) -> None:
    session.run(
        "INSERT INTO access (hash, kind, key_hash, name, may_write, is_person, is_limited, made_at,"
        " expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            hash_of(secret),
            kind,
            hash_of(secret) if kind == "key" else holder.key_hash,
            holder.name,
            int(holder.may_write),
            int(holder.is_person),
            int(holder.projects is not None),
            now_ms,
            holder.expires_at,
        ),
    )


def _principal(session: Session, row: tuple[object, ...]) -> Principal:
    hashed, name, may_write, is_person, is_limited, expires_at, kind, key_hash = row
    projects = session.all(
        "SELECT p.id FROM access_projects a JOIN projects p ON p.no = a.project_no"
        " WHERE a.hash = ? ORDER BY p.id",
        (hashed,),
    )
    return Principal(
        str(name),
        may_write=bool(may_write),
        is_person=bool(is_person),
        # A key whose projects were all erased sees none.
        projects=tuple(str(each[0]) for each in projects) if is_limited else None,
        expires_at=expires_at if isinstance(expires_at, int) else None,
        is_browser=kind == "session",
        key_hash=str(key_hash),
    )
