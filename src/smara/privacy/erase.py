"""Erase rows for good: in tables, indexes and bytes.

One transaction removes what the walk found, and writes tombstones and the record of the act.
Afterwards the files are written again without what was freed, and searched for samples.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from smara.behavior.store import BehaviorStore
from smara.core.escape import from_storable
from smara.core.ids import key_of
from smara.core.scope import Scope
from smara.core.terms import expand
from smara.core.text import analyze_chunks, words
from smara.database.database import Database, Session, marks, parts
from smara.database.fulltext import IndexRow, RecordKind, Within, row_of, terms_of
from smara.database.migrate import HEAD, schema_version
from smara.database.partitions import INDEXES
from smara.database.project_store import Tombstones
from smara.database.vectors import Shelf, vector_kind
from smara.decisions.store import decision_terms
from smara.errors import SchemaTooNewError
from smara.messages.models import ERASED
from smara.messages.parts import pointer_in
from smara.messages.prepare import stored_terms
from smara.privacy.derive import judge_lesson, name_signal, put_totals
from smara.privacy.models import ErasePlan
from smara.privacy.pages import change_pages
from smara.privacy.rows import RowReader
from smara.privacy.tables import BY_NAME, RECORDS, TABLES
from smara.privacy.walk import Walk

_INDEXED: tuple[tuple[str, RecordKind], ...] = (
    ("tasks", "task"),
    ("observations", "observation"),
    ("memories", "memory"),
    ("memories", "decision"),
    ("working_memory", "working"),
    ("commits", "commit"),
    ("framework_items", "item"),
)
_ACTORS = (
    ("tasks", "assignee"), ("task_events", "actor"), ("memory_events", "actor"),
    ("memory_trust_events", "actor"), ("memories", "verified_by"), ("task_messages", "created_by"),
    ("task_dependencies", "created_by"), ("working_memory_versions", "actor"),
)  # fmt: skip
"""Columns that name a person on rows that stay."""
_NAMED = ("message_id", "observation_id")
_KEYS = ("message", "observation", "session")
"""Kinds of keys by which a memory is found from its sources."""
_WITNESSES, _MOST_WITNESSES, _MOST_ROWS = 20, 5_000, 200


class Eraser:
    """Removes what a walk found, within its transaction."""

    def __init__(self, database: Database, session: Session, scope: Scope, walk: Walk) -> None:
        self._database = database
        self._session = session
        self._scope = scope
        self._walk = walk
        self._project = int(scope.project_no)
        self._used: set[str] = set()
        """Words of messages that stay."""
        self._unused: set[str] = set()
        """Words that only messages had that went."""
        self._is_indexed = True
        """True until the messages that go are out of the index."""
        require_known_tables(database, session)

    def plan(self, elsewhere: dict[str, int], person: str | None) -> ErasePlan:
        """Count what goes."""
        walk, totals = self._walk, {name: len(found) for name, found in self._walk.rows.items()}
        for table in RECORDS:
            if not walk.is_numbered(table):
                where, values = self._unnumbered(table.name)
                totals[table.name] = walk.count(table.name, where, values)
        derived = {name: count - walk.chosen[name] for name, count in totals.items()}
        again = Counter(
            memories=len(walk.renewed) + len(walk.partial),
            working_memory=len(change_pages(walk, self._is_used)),
        )
        shown = "t.record_no, t.thread_no"
        places = walk.among("observations", "no", walk.rows["observations"], shown)
        again["observations"] = sum((record, thread) in walk.rewound for record, thread in places)
        for name, column in _ACTORS if person is not None else ():
            numbers = walk.rows.get(name) or set()
            gone = f" AND t.no NOT IN ({', '.join(map(str, sorted(numbers)))})" if numbers else ""
            again[name] += walk.count(name, f"t.{column} = ?{gone}", [person])
        return ErasePlan(
            {name: count for name, count in walk.chosen.items() if count},
            {name: count for name, count in derived.items() if count > 0},
            elsewhere,
            {name: count for name, count in again.items() if count},
        )

    def erase(
        self, now_ms: int, person: str | None, is_project: bool
    ) -> tuple[list[str], list[str]]:
        """Remove everything, and leave tombstones.

        Returns:
            The threads to read again for decisions, and the sessions that went.
        """
        vocabulary = self._vocabulary()
        shells = self._shells()
        self._bury(now_ms, shells, is_project)
        self._forget_observed()
        self._renew()
        self._put_pages()
        self._unquote()
        for name, kind in _INDEXED:
            self._database.records.remove(self._session, kind, sorted(self._walk.rows[name]))
        for no in sorted(self._walk.rows["messages"]):
            self._database.fulltext.remove(self._session, no)
        self._is_indexed = False
        self._clear_names(person)
        signals = self._signals()
        for table in reversed(RECORDS):
            self._delete(table.name)
        self._some(
            "DELETE FROM behavior_signals WHERE no IN (:some) AND NOT EXISTS"
            " (SELECT 1 FROM behavior_findings f WHERE f.signal_no = behavior_signals.no)",
            signals,
        )
        store = BehaviorStore(self._database, self._scope)
        for no in sorted(self._walk.numbers("behavior_signals", "no", signals)):
            name_signal(store, self._session, no, judge_lesson(store, self._session, no))
        self._put_shells(shells)
        if not is_project:
            self._look_for(vocabulary)
        gone = [each for each in vocabulary if is_project or not self._is_used(each)]
        if gone:
            self._database.words.remove(self._session, self._project, gone)
        self._put_totals()
        if is_project:
            self._erase_rest()
        rows = self._walk.among("threads", "no", self._walk.reread, "t.id")
        return [str(row[0]) for row in rows], sorted(self._walk.sessions)

    def _put_totals(self) -> None:
        put_totals(self._database, self._session, self._scope)

    def _run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._session.run(statement.replace(":project", str(int(self._project))), values)

    def _some(self, statement: str, numbers: Iterable[Any]) -> None:
        """Run a statement with ``:some`` for a list of any length."""
        for part in parts(sorted(numbers)):
            self._run(statement.replace(":some", marks(len(part))), part)

    def _bury(self, now_ms: int, shells: Sequence[tuple[Any, ...]], is_project: bool) -> None:
        """Write salted hashes of what goes, so that no import brings it back."""
        stones, salt = Tombstones(self._database, self._scope), secrets.token_bytes(32)

        def bury(kind: str, names: Iterable[str]) -> None:
            stones.add(self._session, kind, names, now_ms, salt, is_project)

        walk, reader = self._walk, RowReader(self._database, self._session, self._scope)
        bury("thread", sorted(walk.sessions))
        for table in RECORDS:
            owner = table.owner and table.refs[table.owner]
            # A row does not come back without the row that it belongs to.
            above = walk.rows[owner] if isinstance(owner, str) else set()
            if walk.is_numbered(table):
                numbers = walk.rows[table.name]
                if above:
                    shown = f"t.no, t.{table.owner}"
                    rows = walk.among(table.name, "no", numbers, shown)
                    numbers = {no for no, owner_no in rows if owner_no not in above}
                conditions = [
                    (f"t.no IN ({marks(len(part))})", part) for part in parts(sorted(numbers))
                ]
            else:
                conditions = [
                    (where, given) for name, where, given in walk.loose if name == table.name
                ]
            for where, values in conditions:
                names = list(reader.names(table, where, values))
                bury(table.name, names)
        for row in walk.among("tasks", "no", walk.rows["tasks"], "t.id, t.short_id"):
            bury("task", map(key_of, map(str, row)))
        gone = walk.rows["memories"] - walk.partial
        prints = walk.among("memories", "no", gone, "t.fingerprint")
        bury("words", (str(row[0]) for row in prints))
        origins = walk.among("decisions", "memory_no", gone, "t.origin")
        bury("decision", (str(row[0]) for row in origins))
        # A hook tells the words of a message under another id than the transcript.
        threads = {row[1] for row in shells}
        ids: dict[int, str] = dict(walk.among("threads", "no", threads, "t.no, t.id"))
        words = ("\0".join((ids[row[1]], row[4], from_storable(row[10]).strip())) for row in shells)
        bury("said", words)

    def _shells(self) -> list[tuple[Any, ...]]:
        """Return the erased messages of threads that stay."""
        shown = (
            "t.no, t.thread_no, t.seq, t.id, t.role, t.token_count, t.token_method, t.client_id,"
            " t.created_at, t.sealed_at, t.raw_content, t.term_count, t.metadata, t.parts"
        )
        rows = self._walk.among("messages", "no", self._walk.rows["messages"], shown)
        return [row for row in rows if row[1] not in self._walk.rows["threads"]]

    def _put_shells(self, shells: Sequence[tuple[Any, ...]]) -> None:
        """Put an empty message where one was, so that numbers and counts stay right."""
        (terms,) = analyze_chunks(ERASED)
        threads = {row[1] for row in shells}
        owners = {
            row[0]: row[1]
            for row in self._walk.among("threads", "no", threads, "t.no, t.resource_id")
        }
        for no, thread_no, seq, name, role, *counts, text, term_count, metadata, layout in shells:
            # An import looks there for messages that hooks have brought.
            is_hooked = json.loads(metadata or "{}").get("source") == "hook"
            counts[-1] = counts[-1] or counts[-2]  # sealed: nothing is added to it later
            self._run(
                "INSERT INTO messages (project_no, no, thread_no, seq, id, role, token_count,"
                " token_method, client_id, created_at, sealed_at, raw_content, term_count,"
                f" metadata) VALUES ({int(self._project)}, {marks(13)})",
                (
                    no,
                    thread_no,
                    seq,
                    name,
                    role,
                    *counts,
                    ERASED,
                    terms.length,
                    '{"source":"hook"}' if is_hooked else None,
                ),
            )
            row = IndexRow(
                row_of(no),
                terms.prose,
                terms.code,
                project_no=self._project,
                thread_no=thread_no,
                resource_id=owners[thread_no],
                role=role,
            )
            self._database.fulltext.add(self._session, [row])
            before = len(stored_terms(text, layout))
            self._run(
                "UPDATE threads SET index_rows = index_rows + ?, index_terms = index_terms + ?"
                " WHERE no = ?",
                (1 - before, terms.length - term_count, thread_no),
            )

    def _forget_observed(self) -> None:
        """Set observers back to before what goes, and what rested on it to what it was."""
        walk = self._walk
        for (record_no, thread_no), first in walk.rewound.items():
            for name in ("observed", "buffered"):
                self._run(
                    f"UPDATE observation_cursors SET {name}_seq = ?, {name}_tokens = (SELECT"
                    " coalesce(sum(m.token_count), 0) FROM messages m WHERE m.thread_no = ? AND"
                    " m.project_no = :project AND m.seq < ?) WHERE record_no = ? AND thread_no = ?"
                    f" AND {name}_seq >= ?",
                    (first - 1, thread_no, first, record_no, thread_no, first),
                )
            self._untitle(thread_no)
        for record_no, generation in walk.generations.items():
            self._run(
                "UPDATE observations SET state = 'active', reflected_into = NULL"
                " WHERE project_no = :project AND record_no = ? AND reflected_into >= ?",
                (record_no, generation),
            )
            self._run(
                "UPDATE observation_records SET generation = ? WHERE no = ?",
                (generation - 1, record_no),
            )
        records = {
            *walk.rows["observation_records"],
            *walk.generations,
            *(record_no for record_no, _ in walk.rewound),
        }
        self._some("DELETE FROM buffered_reflections WHERE record_no IN (:some)", records)
        self._some(
            "DELETE FROM observations WHERE +project_no = :project AND kind = 'reflection'"
            " AND state = 'buffered' AND record_no IN (:some)",
            records,
        )
        self._some("DELETE FROM observation_failures WHERE record_no IN (:some)", records)

    def _renew(self) -> None:
        """Leave memories with the sources that stay, and put back in force what was replaced."""
        walk = self._walk
        for no, left in walk.renewed.items():
            self._run(
                "UPDATE memories SET evidence = ?, session_ids = ?, session_id = ?"
                " WHERE project_no = :project AND no = ?",
                (
                    json.dumps(left.evidence, separators=(",", ":")),
                    json.dumps(left.session_ids, separators=(",", ":")),
                    next(iter(left.session_ids), None),
                    no,
                ),
            )
            names = {str(each[kind]) for each in left.evidence for kind in each if kind in _NAMED}
            for key, value in walk.among("memory_keys", "memory_no", [no], "t.kind, t.value"):
                if key in _KEYS and value not in names | set(left.session_ids):
                    self._run(
                        "DELETE FROM memory_keys WHERE memory_no = ? AND kind = ? AND value = ?",
                        (no, key, value),
                    )
        for name, pattern in walk.patterns.items():
            columns = ", ".join(f"{column} = ?" for column in pattern)
            self._run(
                f"UPDATE observer_error_patterns SET {columns}"
                f" WHERE project_no = {int(self._project)} AND error_fingerprint = ?",
                (*pattern.values(), name),
            )
        self._some("DELETE FROM decision_cursors WHERE thread_no IN (:some)", walk.reread)
        fallen = walk.rows["memories"] - walk.named
        replaced = walk.among("memories", "replaced_by_no", fallen, "t.no, t.deprecated_because")
        again = {no for no, why in replaced if why == "superseded"} - walk.rows["memories"]
        self._some(
            "UPDATE memories SET deprecated_at = NULL, deprecated_because = NULL,"
            " replaced_by_no = NULL WHERE +project_no = :project AND no IN (:some)",
            again,
        )
        self._some(
            "UPDATE decisions SET version = (SELECT m.version FROM memories m WHERE m.project_no"
            " = :project AND m.no = decisions.memory_no) WHERE memory_no IN (:some)",
            again,
        )
        for no, about in walk.among("decisions", "memory_no", again, "t.memory_no, t.about"):
            terms = [(int(no), decision_terms(about))]
            self._database.records.put(self._session, "decision", self._project, terms)

    def _put_pages(self) -> None:
        """Write pages without the lines that go, as new rows: vectors go with the old ones."""
        for change in change_pages(self._walk, self._is_used):
            where = f"project_no = {int(self._project)} AND"
            page = self._columns("working_memory", f"{where} no = ?", change.no)
            versions = self._columns("working_memory_versions", f"{where} memory_no = ?", change.no)
            self._run(
                f"DELETE FROM working_memory_versions WHERE {where} memory_no = ?", (change.no,)
            )
            self._run(f"DELETE FROM working_memory WHERE {where} no = ?", (change.no,))
            rows = [("working_memory", each, change.content) for each in page]
            rows += [
                ("working_memory_versions", each, change.versions[each["version"]])
                for each in versions
            ]
            for table, row, content in rows:
                row["content"] = content
                columns = ", ".join(row)
                self._run(
                    f"INSERT INTO {table} ({columns}) VALUES ({marks(len(row))})", [*row.values()]
                )
            terms = [(change.no, terms_of("", from_storable(change.content)))]
            self._database.records.put(self._session, "working", self._project, terms)

    def _columns(self, table: str, where: str, *values: Any) -> list[dict[str, Any]]:
        names = [each.name for each in self._walk.columns[table]]
        columns = ", ".join(names)
        rows = self._session.all(f"SELECT {columns} FROM {table} WHERE {where}", values)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _untitle(self, thread_no: int) -> None:
        """Take out of a thread what was observed in its messages: title and current task."""
        rows = self._walk.among("threads", "no", [thread_no], "t.metadata, t.title")
        titles = self._walk.among("observation_batches", "thread_no", [thread_no], "t.thread_title")
        metadata = json.loads(rows[0][0])
        metadata.pop("observations", None)
        title = None if rows[0][1] in {row[0] for row in titles} else rows[0][1]
        self._run(
            "UPDATE threads SET metadata = ?, title = ? WHERE no = ?",
            (json.dumps(metadata, separators=(",", ":")), title, thread_no),
        )

    def _unquote(self) -> None:
        """Take texts that repeat what goes out of what frameworks keep beside their entries."""
        staying = self._walk.quotes.keys() - self._walk.rows["framework_streams"]
        for no, data in self._walk.among("framework_streams", "no", staying, "t.no, t.data"):
            left = _without(json.loads(data), self._walk.quotes[no])
            text = json.dumps(left, separators=(",", ":"))
            self._run("UPDATE framework_streams SET data = ? WHERE no = ?", (text, no))

    def _clear_names(self, person: str | None) -> None:
        """Take names of erased rows, and of an erased person, out of rows that stay."""
        walk = self._walk
        tasks = {str(row[0]) for row in walk.among("tasks", "no", walk.rows["tasks"], "t.id")}
        statement = "UPDATE messages SET task_id = NULL WHERE project_no = :project"
        self._some(f"{statement} AND task_id IN (:some)", tasks)
        memories = walk.among("memories", "no", walk.rows["memories"], "t.id")
        for table in ("behavior_findings", "behavior_signals"):
            self._some(
                f"UPDATE {table} SET memory_id = NULL WHERE memory_id IN (:some)",
                {str(row[0]) for row in memories},
            )
        for table, column in (
            ("intake_events", "session_id"), ("intake_jobs", "session_id"), ("sessions", "id"),
        ):  # fmt: skip
            self._some(
                f"DELETE FROM {table} WHERE project_no = {int(self._project)}"
                f" AND {column} IN (:some)",
                walk.sessions,
            )
        self._some(
            "UPDATE threads SET title = NULL, metadata = '{}' WHERE no IN (:some)", walk.renamed
        )
        for table, column in _ACTORS if person is not None else ():
            self._run(
                f"UPDATE {table} SET {column} = 'erased' WHERE {column} = ?"
                f" AND project_no = {int(self._project)}",
                (person,),
            )

    def _signals(self) -> list[int]:
        sessions = self._walk.rows["behavior_sessions"]
        rows = self._walk.among("behavior_findings", "session_no", sessions, "t.signal_no")
        return sorted({int(row[0]) for row in rows})

    def _unnumbered(self, name: str) -> tuple[str, list[Any]]:
        """Return the condition for the rows of a table without numbers that go."""
        terms: list[str] = ["1 = 0"]
        values: list[Any] = []
        table = next(each for each in RECORDS if each.name == name)
        for column, target in table.refs.items():
            targets = {"": target} if isinstance(target, str) else target
            for owner, above in targets.items():
                numbers = ", ".join(map(str, sorted(self._walk.rows[above]))) or "NULL"
                is_owner = f"t.owner = '{owner}' AND " if owner else ""
                terms.append(f"({is_owner}t.{column} IN ({numbers}))")
        for loose, where, given in self._walk.loose:
            if loose == name:
                terms.append(f"({where})")
                values += given
        return f"({' OR '.join(terms)})", values

    def _delete(self, name: str) -> None:
        table = next(each for each in RECORDS if each.name == name)
        if not self._walk.is_numbered(table):
            where, values = self._unnumbered(name)
            condition = f"project_no = {int(self._project)} AND {where.replace('t.', '')}"
            self._run(f"DELETE FROM {table.name} WHERE {condition}", values)
            return
        required = {each.name for each in self._walk.columns[name] if each.is_required}
        # A row that stays must not name one that goes; those of its own table first.
        for is_own in (True, False):
            for column, target in table.refs.items():
                if column not in required and (target == name) is is_own:
                    self._some(
                        f"UPDATE {name} SET {column} = NULL WHERE +project_no = :project"
                        f" AND {column} IN (:some)",
                        self._walk.rows[str(target)],
                    )
            if is_own:
                statement = f"DELETE FROM {name} WHERE +project_no = :project AND no IN (:some)"
                self._some(statement, self._walk.rows[name])

    def _erase_rest(self) -> None:
        """Remove a project from the tables that are not exported."""
        columns = self._walk.columns
        rows = self._session.all(
            f"SELECT no FROM code_chunks WHERE project_no = {int(self._project)}"
        )
        self._database.records.remove(self._session, "code", [int(row[0]) for row in rows])
        shelves = self._session.all(
            f"SELECT no, space_no, kind FROM vector_shelves WHERE project_no = {int(self._project)}"
        )
        for no, space_no, code in shelves:
            shelf = Shelf(no, space_no, self._project, kind=vector_kind(code))
            self._database.vectors.erase(self._session, shelf)
        for table in reversed(TABLES):
            names = {each.name for each in columns.get(table.name, ())}
            if "project_no" in names and table.name not in INDEXES:
                self._run(f"DELETE FROM {table.name} WHERE project_no = {int(self._project)}")
        self._run(f"DELETE FROM projects WHERE no = {int(self._project)}")

    def _vocabulary(self) -> list[str]:
        """Return the words of the messages that go."""
        shown = "t.raw_content, t.parts"
        rows = self._walk.among("messages", "no", self._walk.rows["messages"], shown)
        texts = (from_storable(text) for text, layout in rows if pointer_in(layout) is None)
        return sorted({word for text in texts for word in words(text)})

    def _look_for(self, vocabulary: Sequence[str]) -> None:
        """Find out which words messages that stay have, many in one statement."""
        for part in parts(vocabulary):
            terms: dict[str, str] = {}
            for word in part:
                if word not in self._used:
                    terms[word] = expand(word).terms[0].text
            while terms:
                rows = self._database.fulltext.match(
                    self._session,
                    sorted(set(terms.values())),
                    Within(self._project),
                    _MOST_ROWS,
                    is_any=True,
                )
                self._use({row >> 16 for row in rows})
                found = [word for word in terms if word in self._used]
                if len(rows) < _MOST_ROWS:  # every row that has one of them was read
                    self._unused.update(word for word in terms if word not in self._used)
                    break
                if not found:  # a term is shared by several words; each is asked for by itself
                    break
                for word in found:
                    del terms[word]

    def _use(self, numbers: Iterable[int]) -> None:
        for (text,) in self._walk.among("messages", "no", numbers, "t.raw_content"):
            self._used.update(words(from_storable(text)))

    def _is_used(self, word: str) -> bool:
        """Return True if a message that stays has a word."""
        if word in self._used or word in self._unused:
            return word in self._used
        within, terms = Within(self._project), [expand(word).terms[0].text]
        gone = self._walk.rows["messages"] if self._is_indexed else set()
        most = _WITNESSES + min(len(gone), _MOST_WITNESSES)
        rows = self._database.fulltext.match(self._session, terms, within, most)
        for no in dict.fromkeys(row >> 16 for row in rows):
            if no in gone:
                continue
            self._use([no])  # its other words are asked for too, as a rule
            if word in self._used:
                return True
        return False


def require_known_tables(database: Database, session: Session) -> None:
    """Refuse to remove from a store with tables of a newer Smara.

    They may repeat what goes, or name its rows.

    Raises:
        SchemaTooNewError: If there is such a table.
    """
    version = schema_version(database, session)
    if version <= HEAD:
        return
    if unknown := sorted(database.tables(session).keys() - BY_NAME.keys()):
        raise SchemaTooNewError(
            f"A newer Smara brought this store to schema {version}, with tables that this one"
            f" cannot erase from: {', '.join(unknown)}. Upgrade with `pip install --upgrade smara`"
            " and erase with that release; nothing was removed.",
            found=version,
            known=HEAD,
        )


def write_receipt(
    session: Session,
    name: str,
    erased_at: int,
    actor: str,
    target: Sequence[str],
    plan: ErasePlan,
    projects: Collection[int] | None,
) -> None:
    """Record an erase: who, when, where, how many; never what."""
    counts = {"chosen": dict(plan.chosen), "derived": dict(plan.derived), "projects": projects}
    session.run(
        "INSERT INTO erasures (id, erased_at, actor, target, counts, outcome)"
        " VALUES (?, ?, ?, ?, ?, 'removed')",
        (name, erased_at, actor, " ".join(target), json.dumps(counts)),
    )


def _without(value: Any, texts: Collection[str]) -> Any:
    """Return a value without the texts that hold others; ``None`` for such a text itself."""
    if isinstance(value, dict):
        pairs = ((key, _without(each, texts), each) for key, each in value.items())
        return {key: left for key, left, each in pairs if left is not None or each is None}
    if isinstance(value, list):
        return [_without(each, texts) for each in value]
    is_quote = isinstance(value, str) and any(text in value.lower() for text in texts)
    return None if is_quote else value
