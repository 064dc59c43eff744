"""Check the full-text index at open and rebuild it from records.

The index is derived data. It is dropped only if it is wrong, never because of a lock or a slow
disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from smara.core import log
from smara.core.escape import from_storable
from smara.database.database import Row, Session
from smara.database.fulltext import IndexRow, RecordKind, row_of
from smara.database.session import number
from smara.errors import DatabaseError
from smara.messages.store import MessageStore

# Up to this many messages a damaged index is rebuilt at once; beyond, the user is told.
REBUILD_AT_OPEN_LIMIT = 50_000

_PAGE = 500
_LACKING = (
    "SELECT count(*) FROM messages m WHERE NOT EXISTS"
    " (SELECT 1 FROM message_index_docsize d WHERE d.id = m.no << 16)"
)


class _NothingToCommitError(Exception):
    """FTS5 is asked to check itself by an insert; a damaged index could not even commit that."""


class Index:
    """The text index of one store, all projects together."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._database = store.database
        self._parts = (store.database.fulltext, store.database.words, store.database.records)

    def problems(self, deep: bool = False) -> list[str]:
        """Return what is wrong with the index; ``deep`` reads every row."""
        fulltext, words, records = self._parts
        if deep and self._database.kind == "sqlite":
            found: list[str] = []
            try:
                with self._database.write() as session:
                    found = fulltext.problems(session, deep=True)
                    if not found and (lacking := number(session, _LACKING)):
                        found = [f"The search index lacks {lacking} messages."]
                    found += words.problems(session, deep=True) + records.problems(
                        session, deep=True
                    )
                    raise _NothingToCommitError
            except _NothingToCommitError:
                return found
        # One moment: a message appended between two of these reads would look like a gap.
        with self._database.snapshot() as session:
            return [fault for part in self._parts for fault in part.problems(session, deep)]

    def check_at_open(self) -> None:
        """Rebuild a damaged index if that is quick, else report it."""
        problems = self.problems()
        if not problems:
            return
        log.warning("index.damaged", problems="; ".join(problems))
        first_ones = "SELECT count(*) FROM (SELECT 1 FROM messages LIMIT ?) AS first_ones"
        count = self._store.ask(number, first_ones, (REBUILD_AT_OPEN_LIMIT + 1,))
        if count > REBUILD_AT_OPEN_LIMIT:
            self._database.warnings.append(
                f"{problems[0]} Run `smara doctor --fix` to rebuild it; nothing is lost."
            )
            return
        try:
            count = self.rebuild()
        except DatabaseError as error:
            self._database.warnings.append(f"{problems[0]} It could not be rebuilt: {error}")
            return
        self._database.warnings.append(
            f"{problems[0]} It was rebuilt from {count} messages; nothing was lost."
        )

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild the index and the vocabulary; return the number of messages.

        One transaction: a killed rebuild leaves things as they were. After damage the file is
        written again, which needs as much free room as it has.
        """
        with self._database.read() as session:
            is_damaged = not all(part.is_sound(session) for part in self._parts)
        self._database.close_idle()
        with self._database.write() as session:
            total = number(session, "SELECT count(*) FROM messages")
            for part in self._parts:
                part.recreate(session, is_damaged)
            self._index_records(session, {})
            from smara.codegraph.parse.chunks import chunk_terms
            from smara.codegraph.store import indexed_chunks

            for no, project_no, path, chunk in indexed_chunks(session):
                terms = [(no, chunk_terms(path, chunk.name, chunk.text))]
                self._database.records.put(session, "code", project_no, terms, is_new=True)
            session.run("UPDATE threads SET index_rows = 0, index_terms = 0")
            done = self._index_messages(session, 0, lambda done: progress and progress(done, total))
        self._database.close_idle()  # they may hold on to the tables that were there before
        if is_damaged and self._database.kind == "sqlite":  # elsewhere the tables have new files
            self._database.vacuum()
        log.event("index.rebuilt", messages=done)
        return done

    def add_after(self, session: Session, newest: Mapping[str, int]) -> None:
        """Index the records of each table above a number.

        In the caller's transaction.
        """
        self._index_records(session, newest)
        self._index_messages(session, newest["messages"])

    def _index_messages(
        self, session: Session, after: int, progress: Callable[[int], object] = int
    ) -> int:
        seen: set[tuple[int, str]] = set()
        done = 0
        while page := session.all(
            "SELECT m.no, m.project_no, m.thread_no, t.resource_id, m.role, m.raw_content, m.parts"
            " FROM messages m JOIN threads t ON t.no = m.thread_no"
            " WHERE m.no > ? ORDER BY m.no LIMIT ?",
            (after, _PAGE),
        ):
            self._index(session, page, seen)
            done += len(page)
            after = page[-1][0]
            progress(done)
        return done

    def _index(
        self,
        session: Session,
        page: Sequence[Row],
        seen: set[tuple[int, str]],
    ) -> None:
        from smara.core.text import words
        from smara.messages.prepare import stored_terms

        rows: list[IndexRow] = []
        sizes: dict[int, list[int]] = {}
        fresh: dict[int, dict[str, None]] = {}
        for no, project_no, thread_no, resource_id, role, stored, layout in page:
            raw = "" if (layout or "").startswith("{") else from_storable(stored)
            size = sizes.setdefault(thread_no, [0, 0])
            for chunk, terms in enumerate(stored_terms(stored, layout)):
                rows.append(
                    IndexRow(
                        row_of(no, chunk),
                        terms.prose,
                        terms.code,
                        project_no=project_no,
                        thread_no=thread_no,
                        resource_id=resource_id,
                        role=role,
                    )
                )
                size[0] += 1
                size[1] += terms.length
            for word in words(raw):
                if (project_no, word) not in seen:
                    seen.add((project_no, word))
                    fresh.setdefault(project_no, {})[word] = None
        self._database.fulltext.add(session, rows)
        for project_no, found in fresh.items():
            self._database.words.add(session, project_no, list(found))
        session.run_many(
            "UPDATE threads SET index_rows = index_rows + ?, index_terms = index_terms + ? WHERE "
            "no = ?",
            [(size[0], size[1], thread_no) for thread_no, size in sizes.items()],
        )

    def _index_records(self, session: Session, newest: Mapping[str, int]) -> None:
        """Put the records of every project into the index: tasks, memories, commits and so on.

        Those of each table whose number is above the one in ``newest``.
        """
        from smara.commits.store import commit_terms, indexed_commits
        from smara.decisions.store import decision_terms, indexed_decisions
        from smara.frameworks.item_store import indexed_items, item_terms
        from smara.knowledge.store import indexed_memories, memory_terms
        from smara.observations.store import indexed_observations, observation_terms
        from smara.tasks.change import task_terms
        from smara.tasks.store import indexed_tasks
        from smara.working.store import indexed_pages

        records = self._database.records
        sources: tuple[tuple[RecordKind, str, Callable[..., Any], Callable[..., Any]], ...] = (
            ("task", "tasks", indexed_tasks, task_terms),
            ("observation", "observations", indexed_observations, observation_terms),
            ("memory", "memories", indexed_memories, memory_terms),
            ("working", "working_memory", indexed_pages, lambda terms: terms),
            ("commit", "commits", indexed_commits, commit_terms),
            ("decision", "decisions", indexed_decisions, decision_terms),
            ("item", "framework_items", indexed_items, item_terms),
        )
        for kind, table, read, terms_of in sources:
            for no, project_no, record in read(session, newest.get(table, 0)):
                records.put(session, kind, project_no, [(no, terms_of(record))])

    def rewrite(self, projects: Collection[int] | None, *, is_made_again: bool = False) -> None:
        """Write the files in which projects lie again, without what was freed.

        Args:
            projects: Numbers of projects; all of the store without.
            is_made_again: True to make the index from the messages. On SQLite it keeps terms of
                rows that are gone until then, or until it is compact; PostgreSQL writes it again
                like any other table.

        Raises:
            BusyError: If another process uses them.
        """
        if self._database.kind == "sqlite":
            (self.rebuild if is_made_again else self.optimize)()
        self._database.vacuum(projects)

    def optimize(self) -> None:
        """Merge the index into its most compact form."""
        with self._database.write() as session:
            self._database.fulltext.optimize(session)
            self._database.records.optimize(session)
