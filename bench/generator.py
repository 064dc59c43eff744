"""Fill a PostgreSQL store with synthetic projects: millions of messages in minutes.

A few template projects go through Smara as a user's would: text index, words, vectors, tasks and
memories. The server then copies them under new numbers, projects and ids, as often as asked for,
each copy in a transaction of its own: one that is stopped goes on where it was.
``python -m tests.with_postgres python -m bench.generator 100000`` fills a store with 100,000
messages, and reports; a second number is that of the messages of each project.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import smara
from bench.corpus import Corpus

MESSAGES = 500
"""Messages of each project, unless another number is asked for."""
TEMPLATES = 8
_SHELVES = 6 * (TEMPLATES + 1)
_THREADS = 5
_SHIFTED = frozenset(
    (
        "no", "project_no", "thread_no", "memory_no", "task_no", "target_no", "replaced_by_no",
    )
)  # fmt: skip
_TABLES = (
    "projects", "threads", "messages", "message_index", "words", "tasks", "task_totals",
    "memories", "memory_state", "memory_keys", "record_index", "vector_fills", "vector_walks",
)  # fmt: skip
_ID = "md5({0}.id || '{1}')::uuid::text"
_TERMS = (
    "(SELECT coalesce(array_agg(t.project_no + {1} || substr(e, strpos(e, ':'))), '{{}}')"
    " FROM unnest({0}) e)"
)
_SEQUENCES = ("projects", "threads", "messages", "tasks", "memories", "vector_shelves")


class Generator:
    """Copies of template projects in one store.

    The store must be empty before, but for the project it was opened with, or made by this.
    """

    def __init__(self, memory: smara.Memory, size: int = MESSAGES) -> None:
        self._memory = memory
        self._database: Any = memory.internals.database
        self._size = size
        # So far apart are the numbers of two copies: whole blocks of 256 vectors, with room for
        # the messages of all templates and of the project that the store was opened with.
        self._stride = 1 << (size * TEMPLATES * 3 // 2 + 2_000).bit_length()
        with self._database.read() as session:
            row = session.one("SELECT max(no) FROM projects")
        self.copies = row[0] // self._stride if row and row[0] else 0

    @property
    def projects(self) -> int:
        """How many projects were made."""
        return TEMPLATES * (self.copies + 1)

    @property
    def messages(self) -> int:
        """How many messages they have."""
        return self.projects * self._size

    def make_templates(self) -> None:
        """Write the templates through Smara, and make their vectors."""
        for number in range(TEMPLATES):
            project = self._memory.in_project(f"template-{number}")
            fill(project, seed=100 + number, size=self._size)

    def fill(self, messages: int) -> None:
        """Make the templates, if there are none, and so many copies that there are as many."""
        if self.copies == 0:
            self.make_templates()
        self.copy(max(0, -(-messages // (self._size * TEMPLATES)) - 1))
        self.settle()

    def copy(self, copies: int) -> None:
        """Let the server copy all templates until there are so many copies."""
        while self.copies < copies:
            self.copies += 1
            with self._database.write(is_derived=True) as session:
                # What the triggers would queue is copied as well; keys are right by construction.
                session.run("SET LOCAL session_replication_role TO replica")
                tables = self._database.tables(session)
                for table in _TABLES:
                    names = [column.name for column in tables[table]]
                    self._copy_rows(session, table, names)
                self._copy_vectors(session)

    def settle(self) -> None:
        """Move the sequences behind the copies, and let the server count what is there."""
        with self._database.write() as session:
            for table in _SEQUENCES:
                session.run(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'no'),"
                    f" (SELECT max(no) FROM {table}))"
                )
        with self._database.autocommit() as session:
            for table in (*_TABLES, "vectors", "vector_blocks", "vector_shelves"):
                session.run(f"VACUUM (ANALYZE) {self._database.schema}.{table}")

    def _copy_rows(self, session: Any, table: str, names: list[str]) -> None:
        shift, mark = self.copies * self._stride, f"/{self.copies}"
        values = []
        for name in names:
            if name in _SHIFTED:
                values.append(f"t.{name} + {shift}")
            elif name == "id" and table != "threads":
                values.append(_ID.format("t", mark))
            elif name == "terms":
                terms = _TERMS.format("tsvector_to_array(t.terms)", shift)
                values.append(f"array_to_tsvector({terms})")
            elif name == "trigrams":
                values.append(_TERMS.format("t.trigrams", shift))
            else:
                values.append(f"t.{name}")
        place = "t.no" if table == "projects" else "t.project_no"
        session.run(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table} t"
            f" WHERE {place} BETWEEN 2 AND {TEMPLATES + 1}"
        )

    def _copy_vectors(self, session: Any) -> None:
        shift, shelves = self.copies * self._stride, self.copies * _SHELVES
        chosen = f"FROM vector_shelves s WHERE s.project_no BETWEEN 2 AND {TEMPLATES + 1}"
        session.run(
            "INSERT INTO vector_shelves (no, project_no, space_no, kind)"
            f" SELECT s.no + {shelves}, s.project_no + {shift}, s.space_no, s.kind {chosen}"
        )
        session.run(
            "INSERT INTO vector_blocks (shelf_no, block, stamp, size, offsets, signs)"
            f" SELECT b.shelf_no + {shelves}, b.block + {shift >> 8}, b.stamp, b.size, b.offsets,"
            f" b.signs FROM vector_blocks b WHERE b.shelf_no IN (SELECT s.no {chosen})"
        )
        session.run(
            f"INSERT INTO vectors (no, project_no, vector) SELECT v.no + ({shelves}::bigint << 47)"
            f" + ({shift}::bigint << CASE s.kind WHEN 1 THEN 16 ELSE 0 END),"
            f" v.project_no + {shift}, v.vector"
            " FROM vector_shelves s JOIN vectors v ON v.project_no = s.project_no"
            " AND v.no >= s.no << 47 AND v.no < (s.no + 1) << 47"
            f" WHERE s.project_no BETWEEN 2 AND {TEMPLATES + 1}"
        )


def fill(memory: smara.Memory, seed: int, size: int = MESSAGES) -> None:
    """Write the messages, tasks and memories of one project, and make their vectors."""
    corpus = Corpus(seed)
    for number in range(_THREADS):
        memory.messages.add_many(
            thread_id=f"thread-{number}",
            messages=corpus.messages(size // _THREADS, number * size // _THREADS),
        )
    for number in range(10):
        memory.tasks.add(" ".join(corpus.text(number).split()[:8]))
        memory.memories.remember(corpus.text(number), type="gotcha", files=(f"src/{number}.py",))
    memory.embeddings.embed_pending()


def main() -> int:
    """Fill the store of SMARA_EVAL_POSTGRES with so many messages."""
    wanted, size = int(sys.argv[1]), int((*sys.argv, MESSAGES)[2])
    with smara.open(os.environ["SMARA_EVAL_POSTGRES"], project="first") as memory:
        generator = Generator(memory, size)
        started = time.perf_counter()
        generator.fill(wanted)
        spent = time.perf_counter() - started
    print(f"{generator.messages:,} messages in {generator.projects:,} projects, {spent:,.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
