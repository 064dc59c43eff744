"""Remember which requests were done.

A client that lost the answer cannot know if its request was done. It sends the same key again: the
first is done, the second is answered. Only hashes are stored, and the name of the record that was
made, never its words: what a person erases is not kept here.
"""

from __future__ import annotations

import hashlib

from smara.core.startup.record import dataclass
from smara.database.project_store import ProjectStore
from smara.database.projects import ProjectContext
from smara.errors import ConflictError
from smara.requests.access import Access

RUNNING_MS = 10 * 60_000
"""After so long a request that did not end is taken for lost with its process."""


@dataclass(frozen=True, slots=True)
class DoneRequest:
    """A request that was done, and what it made."""

    call: str | None
    record_id: str | None


class Requests:
    """The keys of one project's requests."""

    def __init__(self, project: ProjectContext) -> None:
        self._store = ProjectStore(project.database, project.scope)
        self._clock = project.clock
        self.access = Access(project)

    def begin(self, key: str, request: str) -> DoneRequest | None:
        """Claim a key for a request, before it is done.

        Args:
            key: What the client calls it.
            request: All that makes it what it is.

        Returns:
            ``None`` if it has to be done now; what it made if it was done before.

        Raises:
            ConflictError: If the key stands for another request, or the first is still running or
                was lost.
        """
        now, hashed = self._clock.now_ms(), _hash(request)
        with self._store.database.write() as session:
            row = session.one(
                self._store.sql(
                    "SELECT request, begun_at, done_at, call, record_id FROM request_keys"
                    " WHERE project_no = :project AND key = ?"
                ),
                (_hash(key),),
            )
            if row is None:
                self._store.run(
                    session,
                    "INSERT INTO request_keys (project_no, key, request, begun_at)"
                    " VALUES (:project, ?, ?, ?)",
                    _hash(key),
                    hashed,
                    now,
                )
                return None
        if row[0] != hashed:
            raise ConflictError("This key was used for another request. Take a new key.")
        if row[2] is None and now - row[1] < RUNNING_MS:
            raise ConflictError("The first request with this key is still running. Wait for it.")
        if row[2] is None:
            raise ConflictError(
                "The first request with this key did not end; it may have been done. Look before"
                " you send it again with a new key."
            )
        return DoneRequest(row[3], row[4])

    def finish(self, key: str, call: str | None = None, record_id: str | None = None) -> None:
        """Note that a request was done, and what it made."""
        with self._store.database.write() as session:
            self._store.run(
                session,
                "UPDATE request_keys SET done_at = ?, call = ?, record_id = ?"
                " WHERE project_no = :project AND key = ?",
                self._clock.now_ms(),
                call,
                record_id,
                _hash(key),
            )

    def abandon(self, key: str) -> None:
        """Give a key back: the request was refused, and nothing was done."""
        with self._store.database.write() as session:
            self._store.run(
                session,
                "DELETE FROM request_keys WHERE project_no = :project AND key = ?",
                _hash(key),
            )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
