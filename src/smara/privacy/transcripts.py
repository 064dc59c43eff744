"""Choose whether a project keeps texts, and take them out.

Choosing changes nothing that is stored. `TranscriptTexts.withhold` does: the text of every message
that a transcript has word for word goes out of the store, with all that was made from it, as in
an erase; a pointer, the vector and hashed terms stay. A message whose text is nowhere else stays as
it is, and is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from smara.core import log
from smara.core.escape import to_storable
from smara.core.startup.record import dataclass, replace
from smara.database.database import Database, Session
from smara.database.fulltext import IndexRow, row_of
from smara.database.projects import ProjectContext
from smara.errors import InvalidInputError
from smara.knowledge.store import KnowledgeStore
from smara.messages.models import ERASED, Pointer
from smara.messages.parts import pack, parts_of, pointer_in
from smara.messages.prepare import redact_parts, stored_terms
from smara.privacy.erase import Eraser, write_receipt
from smara.privacy.holders import holders_of
from smara.privacy.models import ErasePlan, EraseReceipt
from smara.privacy.pointers import (
    Keeper,
    KeepStatus,
    TranscriptMessage,
    digest_of,
    facts_of,
    keep_status,
    packed,
    texts_at,
    transcript_messages,
)
from smara.privacy.probe import clear_spool, out_of_reach
from smara.privacy.provenance import settle
from smara.privacy.tables import RECORDS
from smara.privacy.walk import Walk
from smara.tasks.store import TaskStore

_LEARNED = ("behavior_", "observer_", "moment_receipts")
"""Tables of what was learned from conversations, and of what sessions were told."""
_STAYING = ("messages", "task_messages")


@dataclass(frozen=True, slots=True)
class WithholdReport:
    """The texts that a store gives up, or would give up.

    Attributes:
        messages: Messages whose text goes.
        hashed_again: Messages without text whose terms are hashed with the present key.
        refused: Messages whose text is in no transcript that was found; they stay as they are.
        plan: The rows that go or stay, by table.
        receipt: The receipt; ``None`` if nothing was changed.
    """

    messages: int
    hashed_again: int
    refused: int
    plan: ErasePlan
    receipt: EraseReceipt | None = None

    def lines(self, count: Callable[[int, str], str]) -> list[str]:
        """Say what went or would go, and what stays."""
        verbs = ("Would take", "Would hash") if self.receipt is None else ("Took", "Hashed")
        lines = [f"{verbs[0]} the text of {count(self.messages, 'message')} out of the store."]
        if self.hashed_again:
            again = count(self.hashed_again, "message")
            lines.append(f"{verbs[1]} the terms of {again} again.")
        if self.refused:
            stays = "stays" if self.refused == 1 else "stay"
            rest = count(self.refused, "message")
            lines.append(f"{rest} {stays} with text: no transcript has it.")
        return lines


class TranscriptTexts:
    """Says where the texts of one project are kept, and moves them."""

    def __init__(
        self,
        project: ProjectContext,
        keeper: Keeper,
        scrub: Callable[[Sequence[str], Collection[int]], list[str]],
    ) -> None:
        self._project = project
        self._database = project.database
        self._keeper = keeper
        self._scrub = scrub

    def status(self) -> KeepStatus:
        """Return where the texts of this project are.

        Returns:
            How many are in the store and in transcripts, and which cannot be read or found.
        """
        return keep_status(self._project, self._keeper.key)

    def keep(self, what: Literal["text", "vectors"]) -> KeepStatus:
        """Choose what is kept of conversations from now on; safe to repeat.

        What is stored already is not changed. Open the memory again afterwards: a memory that is
        open goes on as it was.

        Args:
            what: ``vectors`` leaves the texts in the agents' transcripts; ``text`` stores them.

        Returns:
            Where the texts are now.

        Raises:
            ConfigError: If the key cannot be written.
        """
        if what == "vectors":
            self._keeper.key.make()
            self._keeper.put_key(self._keeper.key.id)
        else:
            self._keeper.put_key(None)
        return replace(self.status(), keep=what)

    def plan(self, files: Iterable[tuple[str, str, str | None]]) -> WithholdReport:
        """Return what `withhold` would change; nothing is changed.

        Args:
            files: As for `withhold`.

        Returns:
            What would go and stay.
        """
        with self._database.snapshot() as session:
            return self._prepare(session, files)[1]

    def withhold(self, files: Iterable[tuple[str, str, str | None]]) -> WithholdReport:
        """Take out texts that transcripts have, with what they made.

        There is no undo. Messages that have no text already, and whose terms were hashed with
        another key, are read in their transcripts and hashed again.

        Args:
            files: Transcripts: path, format, and the session if a file has many. Sessions of other
                projects are passed over.

        Returns:
            What went, what stayed, and the traces that were looked for.

        Raises:
            InvalidInputError: If the project keeps text: the next session would be stored again.
        """
        if self._project.settings.keep != "vectors":
            raise InvalidInputError(
                "This project keeps the text of conversations. First choose otherwise:"
                " smara init --keep vectors"
            )
        self._keeper.mark()
        now, name = self._project.clock.now_ms(), self._project.new_id()
        projects = [int(self._project.scope.project_no)]
        with self._database.write() as session:
            for kind in (TaskStore, KnowledgeStore):
                kind(self._database, self._project.scope).lock(
                    session
                )  # no totals change meanwhile
            eraser, report, samples = self._prepare(session, files)
            self._hash_again(session)
            sessions = sorted(eraser.walk.sessions)
            # These sessions go on: their claims and events are not forgotten.
            eraser.walk.sessions = set()
            eraser.erase(now, None, False)
            write_receipt(
                session, name, now, self._project.actor, ["text in transcripts"], report.plan,
                projects=projects,
            )  # fmt: skip
            clear_spool(samples, sessions)
        clear_spool(samples, sessions)
        self._keeper.embed()
        traces = self._scrub(samples, projects)
        with self._database.write() as session:
            outcome = "traces left" if traces else "clean"
            session.run("UPDATE erasures SET outcome = ? WHERE id = ?", (outcome, name))
        log.event("store.withheld", messages=report.messages, outcome=outcome)
        receipt = EraseReceipt(
            name, now, report.plan, samples=len(samples), traces=tuple(traces),
            held_by=tuple(map(str, holders_of(self._database))) if traces else (),
            out_of_reach=tuple(out_of_reach(self._database)),
        )  # fmt: skip
        return replace(report, receipt=receipt)

    def _prepare(
        self, session: Session, files: Iterable[tuple[str, str, str | None]]
    ) -> tuple[_Withholder, WithholdReport, list[str]]:
        scope = self._project.scope
        places, refused = self._places(session, transcript_messages(files))
        walk = Walk(self._database, session, scope)
        walk.choose("messages", places)
        rows = walk.among("messages", "no", places, "t.thread_no, t.id")
        threads = {int(row[0]) for row in rows}
        if places:
            for table in RECORDS:
                if table.name.startswith(_LEARNED):
                    walk.choose_by(table, "1 = 1", [])
            walk.add_sessions({str(row[0]) for row in walk.among("threads", "no", threads, "t.id")})
        # What a person taught was written to be kept.
        taught = walk.select("memories", "t.source = 'user_taught'")
        walk.touched -= taught
        settle(walk)
        samples = walk.samples()
        eraser = _Withholder(self._database, session, scope, walk)
        eraser.places, eraser.keeper = places, self._keeper
        plan = eraser.plan(walk.follow_copies(samples), None)
        again = len(self._foreign(session)) if self._keeper.key.id else 0
        return eraser, WithholdReport(len(places), again, refused, plan), samples

    def _places(
        self, session: Session, found: Iterable[TranscriptMessage]
    ) -> tuple[dict[int, Pointer], int]:
        """Return the pointers of messages that transcripts have, and how many have none."""
        rows = session.all(
            "SELECT m.no, t.id, m.raw_content FROM messages m JOIN threads t ON t.no = m.thread_no"
            f" WHERE m.project_no = {int(self._project.scope.project_no)}"
            f" AND m.raw_content <> '{ERASED}'"
            " AND (m.parts IS NULL OR substr(m.parts, 1, 1) <> '{') ORDER BY m.no DESC"
        )
        by_text: dict[tuple[str, str], list[int]] = {}
        for no, thread_id, text in rows:
            by_text.setdefault((str(thread_id), digest_of(text)), []).append(int(no))
        places: dict[int, Pointer] = {}
        for thread_id, message, pointer in found:
            text, _ = pack(redact_parts(parts_of(message.content)))
            numbers = by_text.get((thread_id, digest := digest_of(to_storable(text))))
            if numbers:  # what was said twice stands there twice
                places[numbers.pop()] = replace(pointer, digest=digest)
        return places, len(rows) - len(places)

    def _foreign(self, session: Session) -> list[tuple[Any, ...]]:
        """Return the messages without text whose terms another key has hashed."""
        rows = session.all(
            "SELECT no, thread_no, role, raw_content, parts, term_count FROM messages"
            f" WHERE project_no = {int(self._project.scope.project_no)}"
            " AND substr(parts, 1, 1) = '{'"
        )
        key_id = self._keeper.key.id
        return [row for row in rows if getattr(pointer_in(row[4]), "key", "") != key_id]

    def _hash_again(self, session: Session) -> None:
        for row in self._foreign(session):
            place = pointer_in(row[4])
            if place is None:
                continue
            found = texts_at(
                place.path, place.format, place.session, lines=None, digests=[place.digest]
            )
            if found:
                text = to_storable(pack(found[place.digest])[0])
                put_pointer(self._database, session, self._keeper, row, place=place, text=text)


class _Withholder(Eraser):
    """Removes what was made from messages, and leaves a pointer in place of their text."""

    places: Mapping[int, Pointer]
    keeper: Keeper

    @property
    def walk(self) -> Walk:
        return self._walk

    def _bury(self, now_ms: int, shells: Sequence[tuple[Any, ...]], is_project: bool) -> None:
        """Leave no tombstones: a transcript that is read again brings no text."""

    def _delete(self, name: str) -> None:
        if name not in _STAYING:
            super()._delete(name)

    def _put_shells(self, shells: Sequence[tuple[Any, ...]]) -> None:
        """Put a pointer where a text was, and take words out of threads and memories."""
        walk = self._walk
        columns = "t.no, t.thread_no, t.role, t.raw_content, t.parts, t.term_count, t.metadata"
        for *row, metadata in walk.among("messages", "no", self.places, columns):
            place, text = self.places[int(row[0])], str(row[3])
            put_pointer(self._database, self._session, self.keeper, row, place=place, text=text)
            facts = facts_of(json.loads(metadata or "{}"))
            self._run(
                "UPDATE messages SET metadata = ? WHERE project_no = :project AND no = ?",
                (json.dumps(facts, separators=(",", ":")) if facts else None, row[0]),
            )
        threads = {int(row[1]) for row in shells}
        for no, metadata in walk.among("threads", "no", threads, "t.no, t.metadata"):
            text = json.dumps(facts_of(json.loads(metadata)), separators=(",", ":"))
            self._run("UPDATE threads SET title = NULL, metadata = ? WHERE no = ?", (text, no))
        rows = self._session.all(
            f"SELECT no, evidence FROM memories WHERE project_no = {int(self._project)}"
            " AND evidence LIKE '%\"quote\"%'"
        )
        ids = {str(row[0]) for row in walk.among("messages", "no", self.places, "t.id")}
        for no, evidence in rows:
            left = [
                {name: each[name] for name in each if name != "quote"}
                if each.get("message_id") in ids
                else each
                for each in json.loads(evidence)
            ]
            text = json.dumps(left, separators=(",", ":"))
            statement = "UPDATE memories SET evidence = ? WHERE project_no = :project AND no = ?"
            self._run(statement, (text, no))


def put_pointer(
    database: Database,
    session: Session,
    keeper: Keeper,
    row: Sequence[Any],
    *,
    place: Pointer,
    text: str,
) -> None:
    """Store a pointer and hashed terms in place of a text."""
    no, thread_no, role, stored, layout, term_count = row
    owner = session.one("SELECT resource_id, project_no FROM threads WHERE no = ?", (thread_no,))
    resource_id, project_no = owner or ("", 0)
    chunks = keeper.key.withhold(stored_terms(text, None))
    terms, pointer = packed(replace(place, key=keeper.key.id), chunks)
    count = sum(each.length for each in chunks)
    session.run(
        "UPDATE messages SET raw_content = ?, parts = ?, term_count = ? WHERE project_no = ?"
        " AND no = ?",
        (terms, pointer, count, project_no, no),
    )
    database.fulltext.remove(session, int(no))
    entries = [
        IndexRow(
            row_of(int(no), chunk), each.prose, each.code, project_no=int(project_no),
            thread_no=int(thread_no), resource_id=str(resource_id), role=str(role),
        )
        for chunk, each in enumerate(chunks)
    ]  # fmt: skip
    database.fulltext.add(session, entries)
    session.run(
        "UPDATE threads SET index_rows = index_rows + ?, index_terms = index_terms + ?"
        " WHERE no = ?",
        (len(chunks) - len(stored_terms(str(stored), layout)), count - int(term_count), thread_no),
    )
