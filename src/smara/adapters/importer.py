"""Find transcripts, detect their format, store and learn from them.

Each batch is one transaction. A killed import keeps every batch it reported, and the next
run stores only what is missing. Every line is accounted for. Only the head of each file is
read to find its folder, so finding thousands is fast. Readers are imported on demand, each
when its first file is read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from smara.adapters.host import Here, TranscriptFile, walk, written_at
from smara.adapters.host_specs import HOSTS, TRANSCRIPTS
from smara.adapters.lines import (
    JsonLine,
    bound_unpacking,
    decode,
    head_of,
    is_database,
    is_document,
    read_lines,
)
from smara.adapters.records import Counted, Imported, Progress, Record
from smara.adapters.replay import Learner, LearnReport
from smara.core.git import find_repository
from smara.core.scope import DEFAULT_PROJECT, is_id
from smara.core.startup.record import dataclass, field, replace
from smara.errors import DatabaseError, InvalidInputError, SmaraError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Pointer
from smara.privacy.foreign.formats import FOREIGN as FOREIGN
from smara.privacy.foreign.formats import recognize
from smara.privacy.markdown import is_markdown as is_markdown
from smara.privacy.pointers import facts_of

# Formats of no host: conversations in JSON, and messages line by line.
PLAIN = {
    "json": "smara.adapters.readers.plain:read_conversations",
    "jsonl": "smara.adapters.readers.plain:read_jsonl",
}
FORMATS: tuple[str, ...] = (*TRANSCRIPTS, *PLAIN)
_STRICT = [each for each in TRANSCRIPTS.values() if not each.is_loose]
_LOOSE = [each for each in TRANSCRIPTS.values() if each.is_loose]
_LINES_LOOKED_AT = 50


def reader_of(format: str) -> Callable[..., Iterator[Record]]:
    """Return the reader of a format; its module is imported now."""
    place = TRANSCRIPTS[format].reader if format in TRANSCRIPTS else PLAIN[format]
    module, _, name = place.partition(":")
    reader: Callable[..., Iterator[Record]] = getattr(import_module(module), name)
    return reader


def read_records(
    path: str | os.PathLike[str], progress: Progress | None = None, *, format: str | None = None
) -> Iterator[Record]:
    """Read the records of a file in its format."""
    return reader_of(format or sniff(path))(path, progress)


def read_lines_of(
    path: str, format: str, session: str | None, lines: Container[int] | None
) -> Iterator[tuple[str, int, NewMessage]]:
    """Yield thread, line and message of a transcript, or of some lines."""
    given: dict[str, Any] = {} if session is None else {"only": session}
    if format in TRANSCRIPTS and not TRANSCRIPTS[format].has_many_sessions:
        given["lines"] = lines
    for record in reader_of(format)(path, None, **given):
        if isinstance(record, Imported):
            yield record.thread.id, record.line, record.message


def sniff(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its first lines, else ``jsonl``.

    Reading it as such is harmless: each line that is no message is counted with what to mend.
    """
    for each in TRANSCRIPTS.values():
        if each.is_file(path):
            return each.format
    head = head_of(path).lstrip("\ufeff")  # which editors on Windows put in front
    if is_document(head):
        every = ((each, pattern) for each in TRANSCRIPTS.values() for pattern in each.documents)
        return next((each.format for each, pattern in every if re.search(pattern, head)), "json")
    for value in _first_objects(path):
        for each in _STRICT:
            if each.is_record(value):
                return each.format
        if "role" not in value and isinstance(value.get("messages"), list):
            return "json"
        for each in _LOOSE:
            if each.is_record(value):
                return each.format
        if "role" in value or value.get("type") == "thread":
            return "jsonl"
    return "jsonl"


def is_foreign(path: str) -> bool:
    """Return True if a path belongs to another memory tool."""
    # A database is known by its tables, which those of agents do not have.
    is_sure = os.path.isdir(path) or is_database(path)
    return recognize(path) is not None and (is_sure or sniff(path) not in TRANSCRIPTS)


def transcripts_of(memory: Memory, files: Sequence[str] = ()) -> list[tuple[str, str, str | None]]:
    """Return this machine's transcripts of sessions that a memory has.

    ``files`` are more transcripts, such as those outside the agents' folders.
    """
    return [
        (each.path, each.format, each.only)
        for each in find(tuple(TRANSCRIPTS), Here(os.getcwd()), everywhere=True)[0]
        if is_id(each.session_id) and memory.threads.find(each.session_id) is not None
    ] + [(path, sniff(path), None) for path in (expand(files) if files else ())]


def import_order(paths: Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """Return the same files, transcripts of sub-agents first.

    A session's file repeats some messages of its sub-agents. Whichever comes first decides
    their order in the thread, and only the sub-agent's own file has them all.
    """

    def is_session(path: str | os.PathLike[str]) -> bool:
        objects = _first_objects(path) if not is_database(path) else iter(())
        return not any(
            value.get("isSidechain") is True and "agentId" in value for value in islice(objects, 3)
        )

    return sorted(paths, key=is_session)


def _first_objects(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    for entry in map(decode, islice(read_lines(path), _LINES_LOOKED_AT)):
        if isinstance(entry, JsonLine):
            yield entry.value


BATCH = 500
_BATCH_CHARACTERS = 4_000_000


@dataclass(slots=True)
class ImportReport:
    """The result of one file: every line is accounted for.

    ``lines`` equals stored + repeated + counted + refused.
    """

    path: str
    format: str
    lines: int = 0
    stored: int = 0
    repeated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    repaired: int = 0
    threads: dict[str, str] = field(default_factory=dict)


class Importer:
    """Imports files into one memory.

    With a ``learner`` what the files tell is learned from, too; in a ``dry_run`` everything is
    read and compared with the store, and nothing is written. Without a memory nothing is known
    yet, and a dry run is all that can be had.
    """

    def __init__(
        self,
        memory: Memory | None,
        resource_id: str | None = None,
        *,
        learner: Learner | None = None,
        dry_run: bool = False,
    ) -> None:
        self._memory = memory
        if memory is not None:
            bound_unpacking(memory.settings)
        self._resource_id = resource_id
        # A project that keeps vectors stores no words, and so learns nothing from them.
        self._has_texts = memory is None or memory.settings.keep == "text"
        self._learner = learner if self._has_texts and not dry_run else None
        self._dry_run = dry_run
        self._met: dict[str, set[str]] = {}
        """The messages of this dry run, by their thread."""
        self._hooked: dict[str, Counter[tuple[str, str]]] = {}
        self._erased: dict[str, int] = {}
        self._report = ImportReport("", "jsonl")
        self._batch: list[Imported] = []
        self._is_foreign = False
        self._only: str | None = None
        self._batch_size = 0
        self._threads: dict[str, NewThread] = {}
        self._put: dict[str, NewThread] = {}

    def import_file(
        self,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        format: str | None = None,
        *,
        only: str | None = None,
        is_foreign: bool = False,
    ) -> ImportReport:
        """Import a file, or ``only`` one of its sessions; safe to repeat.

        Anyone can write a file that says ``user``: the messages of a foreign one are tainted.
        """
        chosen = format or sniff(path)
        self._is_foreign, self._only = is_foreign, only
        if self._learner is not None:
            self._learner.begin_file(written_at(path))
        records = reader_of(chosen)(path, progress, **({"only": only} if only is not None else {}))
        return self.import_records(records, ImportReport(os.fspath(path), chosen))

    def import_records(self, records: Iterable[Record], report: ImportReport) -> ImportReport:
        """Import records of a file or a live session."""
        self._report = report
        self._threads = {}
        for record in records:
            self._report.lines += 1
            if self._learner is not None:
                self._learner.take(record)
            if isinstance(record, Counted):
                self._report.counted[record.kind, record.reason] += 1
                if record.thread is not None:
                    self._threads[record.thread.id] = record.thread
            elif (record.message.created_at or 0) <= self._erased_at(record.thread.id):
                self._report.counted["erased", "messages of an erased session"] += 1
            elif self._was_told_by_hooks(record):
                self._report.counted["repeat", "words that a hook has told already"] += 1
            else:
                self._take(record)
        self._flush()
        if self._learner is not None:
            self._learner.flush()
        for thread in self._threads.values():
            self._report.threads.setdefault(thread.id, thread.kind)
            # The title of an erased session is made of its words.
            is_erased = self._erased_at(thread.id) >= 0
            is_new = self._put.get(thread.id) != thread
            if self._memory is not None and not self._dry_run and not is_erased and is_new:
                self._memory.threads.put(self._with_resource(thread))
                self._put[thread.id] = thread
        return self._report

    def _take(self, record: Imported) -> None:
        if self._batch and self._batch[0].thread.id != record.thread.id:
            self._flush()
        self._threads[record.thread.id] = record.thread
        if self._is_foreign:
            metadata = {**(record.message.metadata or {}), "taint": "import"}
            record = replace(record, message=replace(record.message, metadata=metadata))
        # A live session has no file: its messages are refused where no text is kept.
        if not self._has_texts and os.path.isfile(self._report.path):
            file = os.path.abspath(self._report.path)
            place = Pointer(file, self._report.format, record.line, session=self._only)
            record = replace(record, message=replace(record.message, pointer=place))
        self._batch.append(record)
        self._report.repaired += bool(record.repairs)
        content = record.message.content
        self._batch_size += (
            len(content)
            if isinstance(content, str)
            else sum(len(part.text) for part in content) + 200
        )
        if len(self._batch) >= BATCH or self._batch_size > _BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        batch, self._batch, self._batch_size = self._batch, [], 0
        if not batch:
            return
        thread = self._with_resource(batch[0].thread)
        self._report.threads[thread.id] = thread.kind
        try:
            self._store(thread, [record.message for record in batch])
        except InvalidInputError:
            # One message cannot be stored: the others go in one by one, and that one is
            # reported with its line and the reason.
            for record in batch:
                try:
                    self._store(thread, [record.message])
                except InvalidInputError as error:
                    self._report.refused.append((record.line, str(error)))

    def _store(self, thread: NewThread, messages: list[NewMessage]) -> None:
        # Preparing a message costs more than all else, and most imports are repeated.
        ids = {message.client_id or "" for message in messages}
        stored: set[str] = set()
        if self._memory is not None:
            stored = self._memory.messages.known_client_ids(thread.id, list(ids))
        met = self._met.setdefault(thread.id, set()) if self._dry_run else set()
        fresh = [each for each in messages if each.client_id not in stored | met]
        self._report.repeated += len(messages) - len(fresh)
        if self._memory is None or self._dry_run:
            met |= ids
            self._report.stored += len(fresh)
            return
        if not fresh:
            return
        # Without a title as yet: a file may tell a better one further on, and a thread keeps its
        # first.
        appended = self._memory.messages.append_batch(
            replace(thread, title=None), fresh, may_differ=True, compact=False
        )
        self._report.stored += appended.stored
        if not self._has_texts:
            self._memory.internals.keeper.embed()  # while their texts are at hand
        self._report.repeated += appended.repeated

    def _erased_at(self, thread_id: str) -> int:
        """Return when a session was erased, or -1."""
        if self._memory is not None and thread_id not in self._erased:
            self._erased |= self._memory.internals.intake.erased("thread", [thread_id])
        return self._erased.setdefault(thread_id, -1)

    def _was_told_by_hooks(self, record: Imported) -> bool:
        """Return True if hooks have brought these words into the thread, under another id."""
        thread_id, message = record.thread.id, record.message
        if thread_id not in self._hooked:
            thread = None if self._memory is None else self._memory.threads.find(thread_id)
            self._hooked[thread_id] = Counter(
                (each.role, each.raw_content.strip())
                for each in (
                    self._memory.messages.stream(thread_id=thread_id)
                    if self._memory is not None
                    and thread is not None
                    and thread.metadata.get("told_by") == "hooks"
                    else ()
                )
                if each.metadata.get("source") == "hook"
            )
        hooked, content = self._hooked[thread_id], message.content
        if self._memory is None or not hooked or message.role not in ("user", "assistant"):
            return False
        if not isinstance(content, str):
            is_text = all(part.type == "text" for part in content)
            content = "\n".join(part.text for part in content) if is_text else ""
        words = (message.role, content.strip())
        if not hooked[words]:
            return bool(
                self._memory.internals.intake.erased("said", ["\0".join((thread_id, *words))])
            )
        hooked[words] -= 1  # what was said twice was told twice
        return True

    def _with_resource(self, thread: NewThread) -> NewThread:
        if not self._has_texts:
            thread = replace(thread, title=None, metadata=facts_of(thread.metadata))
        if thread.resource_id is not None or self._resource_id is None:
            return thread
        return replace(thread, resource_id=self._resource_id)


_TRANSCRIPT_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".json.gz", ".db")


def expand(paths: Iterable[str]) -> list[str]:
    """Expand folders into the transcripts in them, newest first.

    Files stay as they are; transcripts of sub-agents come before their sessions.

    A folder may hold anything, so only what is surely a transcript is taken from it. Raises
    `InvalidInputError` for a folder without any.
    """

    def is_transcript(path: Path) -> bool:
        if not path.name.endswith(_TRANSCRIPT_ENDINGS):
            return False
        try:
            format = sniff(path)
            return format in TRANSCRIPTS and TRANSCRIPTS[format].has_sessions(path)
        except SmaraError:
            return path.name.endswith(".zst")  # why it cannot be read is told when it is

    files: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = [each for each in walk(Path(path)) if is_transcript(each)]
        if not inside:
            raise InvalidInputError(
                f"{path} is a folder without transcripts of agents. Name the files "
                "themselves: FOLDER/*.jsonl",
                path=path,
            )
        files += [
            str(each) for each in sorted(inside, key=lambda each: (-written_at(each), str(each)))
        ]
    return [os.fspath(each) for each in import_order(files)]


# The name of no project: of one that an import would make.
_NOT_THERE = ""
# Gives something to call with (done, total) while what is named is under way.
Bar = Callable[[str], AbstractContextManager[Progress | None]]


@dataclass(slots=True)
class BulkReport:
    """The result of importing many transcripts.

    Attributes:
        elsewhere: Transcripts of other folders, which were left out.
        unread: Files that could not be read at all, and why.
    """

    reports: list[ImportReport] = field(default_factory=list)
    elsewhere: int = 0
    unread: list[tuple[str, str]] = field(default_factory=list)
    learned: LearnReport = field(default_factory=LearnReport)


def find(
    formats: Sequence[str], here: Here, *, everywhere: bool = False
) -> tuple[list[TranscriptFile], int]:
    """Find the transcripts of these formats that belong here.

    The newest session comes first, its sub-agents before it; also returns how many belong
    elsewhere.

    Those that cannot be looked into are among them, so that they are told of.
    """
    everything = [each for format in formats for each in TRANSCRIPTS[format].find(here)]
    latest: dict[str, int] = {}
    for each in everything:
        latest[each.session_id] = max(latest.get(each.session_id, 0), each.at_ms)
    ordered = sorted(
        everything,
        key=lambda each: (
            -latest[each.session_id],
            each.session_id,
            not each.is_subagent,
            -each.at_ms,
            each.path,
        ),
    )
    if everywhere:
        return ordered, 0
    mine = [each for each in ordered if here.has(each.cwd) or each.is_unreadable]
    return mine, len(ordered) - len(mine)


class BulkImport:
    """An import of many transcripts, each into the project of its folder."""

    def __init__(
        self,
        memory: Memory,
        resource_id: str | None = None,
        *,
        everywhere: bool = False,
        learn: bool = True,
        reads_decisions: bool = True,
        dry_run: bool = False,
    ) -> None:
        self._memory = memory
        self._reads_decisions = reads_decisions
        bound_unpacking(memory.settings)
        self._resource = resource_id
        self._everywhere = everywhere
        self._learn = learn and not dry_run
        self._dry_run = dry_run
        self._importers: dict[str, tuple[Importer, Learner | None]] = {}
        self._projects: dict[str, str] = {}

    def run(self, files: Iterable[TranscriptFile], bar: Bar) -> BulkReport:
        """Import transcripts in the order given; skip those that cannot be read."""
        done = BulkReport()
        everything = list(files)
        for number, each in enumerate(everything, 1):
            importer = self._importer(each.cwd)
            with bar(f"{number}/{len(everything)} {each.format}") as progress:
                try:
                    done.reports.append(
                        importer.import_file(each.path, progress, each.format, only=each.only)
                    )
                except DatabaseError:
                    raise  # our own store has trouble: nothing else would go better
                except SmaraError as error:
                    done.unread.append((each.path, str(error)))
        self._finish(done, bar)
        return done

    def run_files(self, paths: Sequence[str], bar: Bar, format: str | None = None) -> BulkReport:
        """Import files, and the transcripts in folders; raise at an unreadable one."""
        done = BulkReport()
        files = expand(paths)
        importer = self._importer("")
        homes = [host.setup.home.path for host in HOSTS if host.setup and host.setup.home]
        for number, path in enumerate(files, 1):
            # Only an agent writes below its own folder.
            place = os.path.realpath(path)
            is_own = any(place.startswith(os.path.realpath(home) + os.sep) for home in homes)
            name = os.path.basename(path)
            with bar(name if len(files) == 1 else f"{number}/{len(files)} {name}") as progress:
                done.reports.append(
                    importer.import_file(path, progress, format, is_foreign=not is_own)
                )
        self._finish(done, bar)
        return done

    def _finish(self, done: BulkReport, bar: Bar) -> None:
        """Decide on what was watched, and read what people decided."""
        for _, learner in self._importers.values():
            if learner is not None:
                with bar("learning") as progress:
                    learner.finish(progress)
                if self._reads_decisions:
                    with bar("reading decisions") as progress:
                        learner.read_decisions(progress)
                done.learned += learner.learned

    def _importer(self, cwd: str) -> Importer:
        memory = self._memory
        if not self._everywhere:
            project = memory.project
        elif cwd in self._projects:
            project = self._projects[cwd]
        else:
            # A dry run makes no project that is not there yet.
            found = memory.projects.at(cwd, memory.settings.project, not self._dry_run)
            is_new = found is None and find_repository(cwd) is not None
            project = _NOT_THERE if is_new else found.project_id if found else DEFAULT_PROJECT
            self._projects[cwd] = project
        if project not in self._importers:
            learner = None
            if project == _NOT_THERE:
                importer = Importer(None, self._resource, dry_run=True)
            else:
                target = memory if project == memory.project else memory.in_project(project)
                is_learning = self._learn and target.settings.keep == "text"
                learner = Learner(target) if is_learning else None
                importer = Importer(target, self._resource, learner=learner, dry_run=self._dry_run)
            self._importers[project] = (importer, learner)
        return self._importers[project][0]


def project_of(memory: Memory, named: str, cwd: str) -> str | None:
    """Return the project of an event; ``None`` if its folder has none."""
    name = named or memory.settings.project
    scope = memory.projects.at(cwd, name if name is None or is_id(name) else DEFAULT_PROJECT)
    return scope.project_id if scope is not None else None
