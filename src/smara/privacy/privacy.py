"""Back up, restore, export, import and erase a memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from smara.behavior.store import BehaviorStore
from smara.core import log
from smara.core.clock import to_ms
from smara.core.files import read_regular
from smara.core.scope import Scope
from smara.core.validate import one_of
from smara.database.project_store import NamedStore
from smara.database.projects import ProjectContext, Projects
from smara.database.session import Session, number
from smara.errors import BusyError, InvalidInputError, NotFoundError
from smara.knowledge.store import KnowledgeStore
from smara.privacy.archive import file_hash, private_file, row_text, write_archive
from smara.privacy.derive import ProjectRooms, judge_again
from smara.privacy.erase import Eraser, require_known_tables, write_receipt
from smara.privacy.holders import holders_of
from smara.privacy.load import Loader, is_archive
from smara.privacy.markdown import (
    IS_MARKDOWN,
    instruction_lines,
    memory_lines,
    parse,
    task_lines,
    with_head,
)
from smara.privacy.models import (
    FORMATS,
    ArchiveReport,
    BackupReport,
    ErasePlan,
    EraseReceipt,
    EraseTarget,
    ExportFormat,
    ExportReport,
    ForeignReport,
    MarkdownReport,
    RestoreReport,
    erase_target,
)
from smara.privacy.pointers import adopt
from smara.privacy.probe import clear_spool, find_traces, out_of_reach
from smara.privacy.provenance import settle
from smara.privacy.restore_folder import clear_restores, dead_restores
from smara.privacy.rows import EVERYTHING, RowReader, Selection, record_counts
from smara.privacy.tables import BY_NAME, RECORDS
from smara.privacy.walk import Walk
from smara.tasks.store import TaskStore

if TYPE_CHECKING:
    from datetime import datetime

    from smara.privacy.foreign.importer import ImportRooms
    from smara.search.index import Index


_LOG = {
    "sqlite": "the write-ahead log, which another process reads",
    "postgres": "tables that another transaction holds",
}
_UNFINISHED = "outcome IN ('removed', 'traces left')"


class Privacy:
    """Yours to take along and to erase: backups, archives, imports, erases."""

    def __init__(
        self,
        project: ProjectContext,
        projects: Projects,
        index: Index,
        *,
        rooms: Callable[[], ImportRooms],
        rooms_of: Callable[[Scope], ProjectRooms],
    ) -> None:
        self._project = project
        self._database = project.database
        self._rooms = rooms
        self._rooms_of = rooms_of
        self._index = index
        self._loader = Loader(self._database, projects.named, index.add_after)

    def backup(self, path: str | os.PathLike[str]) -> BackupReport:
        """Write a backup into a new private file, while others may write.

        SQLite: the whole store, one moment of it, checked before the file gets its name.
        PostgreSQL: an archive of this project with the records of everyone in it.

        Args:
            path: The file to write; it must not exist.

        Returns:
            The file's size, checksum and rows by table.

        Raises:
            InvalidInputError: If the file exists or cannot be written.
        """
        target = os.path.abspath(os.fspath(path))
        if self._database.kind == "postgres":
            done = self._write(target, [self._project.scope], EVERYTHING)
            return BackupReport(target, "archive", done.size_bytes, done.sha256, done.counts)
        from smara.privacy.backup import back_up

        with private_file(target):
            pass  # refuses what cannot be written, before the pages are copied
        counts = back_up(self._database, target, is_counted=True)
        log.event("store.backed_up", path=target)
        return BackupReport(target, "sqlite", os.stat(target).st_size, file_hash(target), counts)

    def restore(self, path: str | os.PathLike[str]) -> RestoreReport:
        """Replace this store by a backup, or add an archive to it.

        A backup of SQLite replaces everything; a backup of what was there before is written
        beside the store first. The keys of its servers stay those of today. Other processes see
        the restored store at once; this memory is closed, open it again. A backup of another
        store is put into an empty store only.

        Args:
            path: A file that `backup` or `export` wrote.

        Returns:
            What is there now, and where the former content was saved.

        Raises:
            NotFoundError: If there is no such file.
            InvalidInputError: If it is not a backup for this kind of store.
            ConflictError: If it is of another store, and this one is not empty.
            CorruptError: If the file is damaged; nothing is changed.
        """
        source = os.path.abspath(os.fspath(path))
        if not os.path.isfile(source):
            raise NotFoundError(f"File not found: {path}.")
        if is_archive(source):
            return RestoreReport(source, "archive", None, self.import_archive(source).added)
        if self._database.kind != "sqlite":
            raise InvalidInputError(
                f"{path} is not an archive. A store in PostgreSQL is restored from one; `smara"
                " backup` writes it."
            )
        saved = None
        if self._database.path != ":memory:" and any(self._counts().values()):
            saved = f"{self._database.path}.before-restore-{self._project.clock.now_ms()}"
        erased = self._erasures()
        from smara.privacy.backup import replace

        replace(self._database, source, self._project.clock, saved)
        log.event("store.restored", path=source, saved_as=saved)
        counts = self._counts()
        undone = len(erased - self._erasures())
        self._database.close()  # the project that this memory works in may have another number now
        return RestoreReport(source, "sqlite", saved, counts, undone)

    def export(
        self,
        path: str | os.PathLike[str],
        format: ExportFormat = "zip",
        *,
        projects: Sequence[str] | None = None,
        is_all: bool = False,
        person: str | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
    ) -> ExportReport:
        """Write an archive: every record that you may see, in one ZIP.

        Args:
            path: The file to write; it must not exist.
            format: ``zip``, or one of `render`, which has this project alone.
            projects: The projects by name; by default this one.
            is_all: Export every project of the store.
            person: Only what belongs to this person: threads and pages of the resource, and
                memories and tasks that this person wrote.
            since: Only what is not older: milliseconds, an ISO 8601 text or a datetime.
            until: Only what is older, in the same forms.

        Returns:
            The file's size and checksum, and rows by table.

        Raises:
            NotFoundError: If there is no such project.
            InvalidInputError: If the file exists or cannot be written.
        """
        selection = Selection(
            person, to_ms(since, "since"), to_ms(until, "until"), viewer=self._project.actor
        )
        scopes = self._scopes(projects, is_all)
        target = os.path.abspath(os.fspath(path))
        if one_of(format, FORMATS, "format") == "zip":
            return self._write(target, scopes, selection)
        with private_file(target) as file:
            file.writelines(f"{line}\n".encode("utf-8", "replace") for line in self.render(format))
        here = (self._project.scope.project_id,)
        return ExportReport(target, os.stat(target).st_size, file_hash(target), here, {})

    def render(self, format: ExportFormat = "markdown") -> Iterator[str]:
        """Yield this project as text, line by line.

        Args:
            format: ``markdown`` (memories and tasks), ``claude-md`` and ``agents-md`` (the
                memories in force that a person confirmed, as instructions), or ``json`` (every
                record).

        Raises:
            InvalidInputError: If the format is unknown.
        """
        one_of(format, FORMATS[1:], "format")
        selection = Selection(viewer=self._project.actor)
        with self._database.snapshot() as session:
            reader = RowReader(self._database, session, self._project.scope)
            if format == "json":
                yield "{"
                for number_, table in enumerate(RECORDS):
                    yield f"{',' if number_ else ''}{json.dumps(table.name)}: ["
                    for position, row in enumerate(reader.rows(table, selection)):
                        yield ("," if position else "") + row_text(row)
                    yield "]"
                yield "}"
                return
            memories = reader.rows(BY_NAME["memories"], selection)
            if format != "markdown":
                yield from instruction_lines(memories)
                return
            tasks = reader.rows(BY_NAME["tasks"], selection)
            yield from with_head(chain(memory_lines(memories), task_lines(tasks)))

    def import_archive(
        self, path: str | os.PathLike[str], *, project: str | None = None
    ) -> ArchiveReport:
        """Add the records of an archive that this store lacks.

        One transaction, safe to repeat. What was confirmed stays confirmed: import archives that
        you made, or whose maker you trust.

        Args:
            path: The archive.
            project: Read an archive of one project into this one; by default its own.

        Returns:
            Rows by table: added, already there, and those that name a missing row.

        Raises:
            NotFoundError: If there is no such file.
            InvalidInputError: If it is not a sound archive; nothing is stored then.
        """
        report = self._loader.load(os.path.abspath(os.fspath(path)), project)
        for scope in self._scopes(report.projects, False):
            adopt(self._database, scope, self._project.clock.now_ms())
        log.event("archive.imported", rows=sum(report.added.values()))
        return report

    def import_foreign(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        only: str | None = None,
        is_dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> ForeignReport:
        """Import what another memory tool keeps or exports.

        Facts become memories that are tainted as imported and wait for review; what was said
        becomes messages. Nothing is stored if a record cannot be read. Safe to repeat.

        Args:
            path: The file or folder.
            format: ``mem0``, ``mcp-memory``, ``basic-memory``, ``claude-mem``, ``hindsight`` or
                ``zep``; by default recognized.
            only: Only this project, person or bank of the other tool.
            is_dry_run: Count what would be stored, and store nothing.
            progress: Called with the records that are done, and all of them.

        Returns:
            Every record, counted by what became of it.

        Raises:
            NotFoundError: If there is no such file.
            InvalidInputError: If it is not recognized, or a record cannot be read.
        """
        from smara.privacy.foreign.formats import format_of
        from smara.privacy.foreign.importer import ForeignImport

        place = os.path.abspath(os.fspath(path))
        chosen = format_of(place, format)
        with self._database.read() as session:
            scope = self._project.scope
            row = session.one("SELECT name FROM projects WHERE id = ?", (scope.project_id,))
        names = tuple(dict.fromkeys((*(row or ()), scope.project_id)))
        work = ForeignImport(
            self._rooms(), chosen, place, now_ms=self._project.clock.now_ms(), is_dry_run=is_dry_run
        )
        report = work.run(only, names, progress or (lambda done, total: None))
        log.event("foreign.imported", format=report.format, records=report.records)
        return report

    def import_markdown(
        self, path: str | os.PathLike[str], *, is_dry_run: bool = False
    ) -> MarkdownReport:
        """Read an export in Markdown back after a person edited it.

        Edited memories and tasks are updated as by that person, and can be undone; new ones are
        added. What changed here since the export is not overwritten, and what is gone from the
        file stays. The marks in the file are brought up to date, so that it can be edited again.
        Safe to repeat.

        Args:
            path: A file that `export` wrote as ``markdown``, or ``memories.md`` or ``tasks.md`` of
                an archive.
            is_dry_run: Say what would change, and change nothing.

        Returns:
            What was updated, added, refused, and what conflicts.

        Raises:
            NotFoundError: If there is no such file.
            InvalidInputError: If it is no such file, or a line belongs to nothing.
        """
        from smara.privacy.markdown_edits import MarkdownEdits, rewrite

        try:
            text = read_regular(path).decode("utf-8")
        except FileNotFoundError:
            raise NotFoundError(f"File not found: {path}.") from None
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"{path} cannot be read: {error}.") from error
        if not IS_MARKDOWN.match(text):
            raise InvalidInputError(
                f"{path} is not a Markdown export of Smara: its first line is not the one that"
                " `smara export --format markdown` writes."
            )
        edits = MarkdownEdits(self._rooms(), parse(text), os.fspath(path), is_dry_run=is_dry_run)
        report = edits.apply(self._entries("memories"), self._entries("tasks"))
        if not is_dry_run:
            rows = chain(self._entries("memories"), self._entries("tasks"))
            report.is_refreshed = rewrite(path, text, edits.refreshed(text, rows))
        log.event("markdown.imported", updated=len(report.updated), added=len(report.added))
        return report

    def _entries(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table that this person may see."""
        with self._database.snapshot() as session:
            reader = RowReader(self._database, session, self._project.scope)
            return list(reader.rows(BY_NAME[name], Selection(viewer=self._project.actor)))

    def erase(
        self,
        *,
        messages: Sequence[str] = (),
        threads: Sequence[str] = (),
        memories: Sequence[str] = (),
        tasks: Sequence[str] = (),
        person: str | None = None,
        path: str | None = None,
        text: str | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        is_project: bool = False,
        is_everything: bool = False,
    ) -> EraseReceipt:
        """Remove things for good, with all that was made from them.

        There is no undo. Rows, index terms, vectors and vocabulary go in one transaction; then
        the files are written again without them and searched for samples. A message of a thread
        that stays leaves an empty one in its place. `plan_erase` takes the same arguments and
        shows what would go.

        Args:
            messages: Messages by id.
            threads: Threads or sessions by id, with what was learned from them.
            memories: Memories by any id.
            tasks: Tasks by any id.
            person: Threads and pages of this resource, memories and tasks that this person
                wrote; the name is taken out of what stays.
            path: Every record that names this file, or a file in this folder.
            text: Every record that holds this text, whatever its case.
            since: Everything that is not older.
            until: Everything that is older.
            is_project: The whole project; this memory is closed afterwards.
            is_everything: Every project of the store; this memory is closed afterwards.

        Returns:
            What went, what stays elsewhere, which traces were found, and what is out of reach.

        Raises:
            NotFoundError: If a thing that was named is not there.
            InvalidInputError: If nothing is named.
            SchemaTooNewError: If the store has tables of a newer Smara; nothing is removed.
        """
        target = erase_target(
            messages=messages, threads=threads, memories=memories, tasks=tasks, person=person,
            path=path, text=text, since=since, until=until, is_project=is_project,
            is_everything=is_everything,
        )  # fmt: skip
        now, name = self._project.clock.now_ms(), self._project.new_id()
        projects = None if is_everything else [int(self._project.scope.project_no)]
        plan, samples, reread = self._remove(target, name, now, projects=projects)
        if not target.is_whole:
            self._derive_again(self._project.scope, reread)
        traces = self.scrub(samples, projects)
        outcome = "traces left" if traces else "clean"
        with self._database.write() as session:
            session.run("UPDATE erasures SET outcome = ? WHERE id = ?", (outcome, name))
        log.event("store.erased", rows=plan.total, outcome=outcome)
        receipt = EraseReceipt(
            name, now, plan, samples=len(samples), traces=tuple(traces),
            held_by=tuple(map(str, holders_of(self._database))) if traces else (),
            out_of_reach=tuple(out_of_reach(self._database)),
        )  # fmt: skip
        if target.is_whole:
            self._database.close()
        return receipt

    def plan_erase(
        self,
        *,
        messages: Sequence[str] = (),
        threads: Sequence[str] = (),
        memories: Sequence[str] = (),
        tasks: Sequence[str] = (),
        person: str | None = None,
        path: str | None = None,
        text: str | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        is_project: bool = False,
        is_everything: bool = False,
    ) -> ErasePlan:
        """Return what `erase` would remove; nothing is changed.

        Args:
            messages: As for `erase`, and so are the others.
            threads: Threads or sessions.
            memories: Memories.
            tasks: Tasks.
            person: A person.
            path: A file or folder.
            text: A text.
            since: A time.
            until: A time.
            is_project: The whole project.
            is_everything: The whole store.

        Returns:
            Rows by table: chosen, derived, and those that stay with the same words.

        Raises:
            NotFoundError: If a thing that was named is not there.
            InvalidInputError: If nothing is named.
        """
        target = erase_target(
            messages=messages, threads=threads, memories=memories, tasks=tasks, person=person,
            path=path, text=text, since=since, until=until, is_project=is_project,
            is_everything=is_everything,
        )  # fmt: skip
        scopes = self._scopes(None, target.is_everything)
        with self._database.snapshot() as session:
            return ErasePlan.joined([self._walk(session, each, target)[1] for each in scopes])

    def problems(self) -> list[str]:
        """Return the erases whose bytes are left, for the doctor."""
        with self._database.read() as session:
            count = number(session, f"SELECT count(*) FROM erasures WHERE {_UNFINISHED}")
        found = [f"The rows of {count} erases are gone, but not yet their bytes."] if count else []
        killed = "A restore that was killed left a copy of the store"
        found += [f"{killed}: {each}." for each in dead_restores(self._database)]
        return found

    def finish_erase(self) -> bool:
        """Rewrite files of unfinished erases; return False if a process interferes.

        Copies that killed restores left beside the store are removed.
        """
        copies = clear_restores(self._database)
        with self._database.read() as session:
            require_known_tables(self._database, session)
            left = session.all(f"SELECT id, counts FROM erasures WHERE {_UNFINISHED}")
        for scope in self._scopes(None, True):
            self._derive_again(scope)
        # One of all projects, or of an older Smara, does not say where.
        places = [json.loads(counts).get("projects") for _, counts in left]
        projects = None if None in places else set(chain(*places))
        try:
            self._index.rewrite(projects, is_made_again=True)
        except BusyError:
            return False
        is_done = self._database.shrink_log() and not copies
        if is_done:
            with self._database.write() as session:
                session.run_many(
                    "UPDATE erasures SET outcome = 'rewritten' WHERE id = ?",
                    [(name,) for name, _ in left],
                )
            self._database.shrink_log()
        return is_done

    def _derive_again(self, scope: Scope, threads: Sequence[str] = ()) -> None:
        """Derive what rests on other sources than the erased ones."""
        rooms = self._rooms_of(scope)
        judge_again(BehaviorStore(self._database, scope), rooms.memories)
        for thread_id in threads:
            rooms.decisions.read(thread_id)

    def _walk(
        self, session: Session, scope: Scope, target: EraseTarget
    ) -> tuple[Eraser, ErasePlan, list[str]]:
        walk = Walk(self._database, session, scope)
        for table, names in (("messages", target.messages), ("threads", target.threads)):
            found = {row[0]: row[1] for row in walk.among(table, "id", names, "t.id, t.no")}
            for name in names:
                if name not in found and not (table == "threads" and walk.has_session(name)):
                    raise NotFoundError(f"{table[:-1].capitalize()} not found: {name}.")
            walk.choose(table, found.values())
        for name in target.threads:
            walk.choose_session(name)
        stores: tuple[tuple[str, NamedStore, Sequence[str]], ...] = (
            ("memories", KnowledgeStore(self._database, scope), target.memories),
            ("tasks", TaskStore(self._database, scope), target.tasks),
        )
        for table, store, given in stores:
            walk.choose(table, {store.require_no(session, name) for name in given})
        if target.person is not None:
            walk.choose_person(target.person)
        if target.text is not None:
            walk.choose_text(target.text)
            walk.choose("messages", self._rooms_of(scope).keeper.holding(session, target.text))
        if target.since_ms is not None or target.until_ms is not None:
            walk.choose_time(target.since_ms, target.until_ms)
        if target.path is not None:
            walk.choose_path(target.path)
        if target.is_whole:
            walk.choose_project()
        settle(walk)
        samples = walk.samples()
        eraser = Eraser(self._database, session, scope, walk)
        return eraser, eraser.plan(walk.follow_copies(samples), target.person), samples

    def _remove(
        self, target: EraseTarget, name: str, now_ms: int, projects: Collection[int] | None
    ) -> tuple[ErasePlan, list[str], list[str]]:
        """Remove the rows, in one transaction, and the files of the spool.

        Returns:
            What went, samples to look for, and the threads to read again for decisions.
        """
        plans: list[ErasePlan] = []
        samples: list[str] = []
        reread: list[str] = []
        sessions: list[str] = []
        scopes = self._scopes(None, target.is_everything)
        with self._database.write() as session:
            for scope in scopes:
                for kind in (TaskStore, KnowledgeStore):
                    kind(self._database, scope).lock(session)  # no totals change meanwhile
                eraser, plan, pieces = self._walk(session, scope, target)
                reread, names = eraser.erase(now_ms, target.person, target.is_whole)
                plans.append(plan)
                samples += pieces
                sessions += names
            whole = ErasePlan.joined(plans)
            write_receipt(
                session, name, now_ms, self._project.actor, target.kinds, whole, projects=projects
            )
            texts = [*samples, *filter(None, (target.text, target.person))]
            # Before the end of the transaction: a process that is killed after it knows no more
            # what to look for. After it once more, for a brief that was made meanwhile.
            clear_spool(texts, sessions, is_everything=target.is_everything)
        clear_spool(texts, sessions, is_everything=target.is_everything)
        return whole, samples, reread

    def scrub(self, samples: Sequence[str], projects: Collection[int] | None = None) -> list[str]:
        """Write the files again without what was freed; return traces left.

        Args:
            samples: Pieces of what was erased, to look for.
            projects: Numbers of the projects whose files these are; all of the store without. On
                PostgreSQL the parts of other projects are left alone.
        """
        traces: list[str] = []
        for is_last in (False, True):
            self._database.close_idle()
            try:
                self._index.rewrite(projects, is_made_again=is_last)
                is_shrunk = self._database.shrink_log()
            except BusyError:
                is_shrunk = False
            traces = find_traces(self._database, samples, projects)
            if not is_shrunk:
                traces.append(_LOG[self._database.kind])
            if not is_shrunk or not traces:
                break
        # The copy of a restore that is under way holds what it held when that began.
        return list(dict.fromkeys([*traces, *clear_restores(self._database)]))

    def _write(self, path: str, scopes: Sequence[Scope], selection: Selection) -> ExportReport:
        from importlib.metadata import version

        facts = {
            "smara": version("smara"),
            "database": self._database.kind,
            "createdAt": self._project.clock.now_ms(),
        }
        report = write_archive(self._database, scopes, selection, path, facts=facts)
        log.event("archive.written", path=path, rows=sum(report.counts.values()))
        return report

    def _scopes(self, projects: Sequence[str] | None, is_all: bool) -> list[Scope]:
        with self._database.read() as session:
            rows = session.all("SELECT no, id FROM projects ORDER BY no")
        there = {project_id: Scope(int(no), project_id) for no, project_id in rows}
        if is_all:
            return list(there.values())
        names = [self._project.scope.project_id] if projects is None else projects
        missing = [name for name in names if name not in there]
        if missing:
            raise NotFoundError(f"Project not found: {missing[0]}. `smara projects` lists them.")
        return [there[name] for name in dict.fromkeys(names)]

    def _erasures(self) -> set[str]:
        with self._database.read() as session:
            return {str(row[0]) for row in session.all("SELECT id FROM erasures")}

    def _counts(self) -> dict[str, int]:
        with self._database.snapshot() as session:
            return record_counts(session)
