"""Keep the texts of messages in transcripts, and read them there.

A project that keeps vectors only stores of a message its vector, its hashed terms, and a pointer:
file, format, line, and a hash of the text. `Keeper` takes the text out of what is stored, and reads
it again when it is shown. A text is shown only if its hash is the stored one; otherwise a sentence
says which file had it. Texts are held in memory alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from smara.config import config_path
from smara.core import log
from smara.core.escape import to_storable
from smara.core.scope import Scope
from smara.core.startup.record import asdict, dataclass, replace
from smara.core.text import analyze_chunks
from smara.database.database import Database
from smara.database.projects import ProjectContext, Projects
from smara.database.session import Session, number
from smara.errors import InvalidInputError, SmaraError
from smara.messages.models import ERASED, Message, NewMessage, Part, Pointer
from smara.messages.parts import pack, parts_of, pointer_in
from smara.messages.prepare import PreparedMessage, redact_parts
from smara.messages.store import MessageStore
from smara.privacy.keyed_terms import PointerStore, TermKey
from smara.secrets.redact import dump_metadata

if TYPE_CHECKING:
    from smara.meaning.embeddings import Embeddings

READER = "smara.adapters.importer:read_lines_of"
"""Who reads transcripts. Readers of hosts stand above this room and are found by name, as a host's
own description names its reader.
"""
FACTS = frozenset(
    {
        "agent", "agent_id", "agent_thread", "cwd", "git_branch", "host", "inherited", "kind",
        "message_id", "model", "parent", "session", "source", "taint", "told_by", "version",
    }
)  # fmt: skip
"""What else is stored of a message and a thread: names, places and kinds, no words."""
IS_POINTER = "substr(parts, 1, 1) = '{'"
"""The condition for messages whose text is elsewhere; an index serves it."""
_HEAD = frozenset({1, 2, 3})
"""The lines in which a transcript says which session it is."""
_MOST_CHARACTERS = 8_000_000
_MOST_WHOLE = 4
"""So many files are read from end to end to answer once, if their lines have moved."""
_PAGE = 500
_EMBED_SECONDS = 10.0
_LONGEST_FACT = 500


def digest_of(text: str) -> str:
    """Return the hash by which a text is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def facts_of(metadata: Any) -> dict[str, Any]:
    """Return the facts of metadata that hold no words of a conversation."""
    return {
        name: value
        for name, value in dict(metadata or {}).items()
        if name in FACTS
        and isinstance(value, bool | int | str)
        and len(str(value)) <= _LONGEST_FACT
        # A name has no spaces; a folder may have some.
        and (name == "cwd" or not re.search(r"\s", str(value)))
    }


class TranscriptMessage(NamedTuple):
    """A message that a transcript has, with its thread and its place."""

    thread_id: str
    message: NewMessage
    pointer: Pointer


@dataclass(frozen=True, slots=True)
class KeepStatus:
    """The state of a project's texts: kept, pointed to, unreadable.

    Attributes:
        keep: ``text`` or ``vectors``.
        pointers: Messages whose text is in a transcript alone.
        texts: Messages whose text is in the store.
        unreadable: Of the pointers, those to files that are not there.
        lost: Of the pointers, those whose terms no key here has hashed.
        key_path: The file of the key.
        has_key: True if it is there.
    """

    keep: str
    pointers: int
    texts: int
    unreadable: int
    lost: int
    key_path: str
    has_key: bool

    def lines(self) -> list[tuple[str, str]]:
        """Return names and values for people; none where text is kept."""
        if self.keep == "text" and not self.pointers:
            return []
        counts = f"{self.pointers:,} messages without text, {self.texts:,} with text"
        return [
            ("kept", f"{self.keep} ({counts})"),
            ("key of terms", self.key_path if self.has_key else "missing"),
            *(("note", each) for each in self.problems()),
        ]

    def finding(self) -> tuple[Literal["ok", "warning"], str] | None:
        """Return what the doctor says; None where text is kept."""
        if self.problems():
            return "warning", " ".join(self.problems())
        if self.keep == "text" and not self.pointers:
            return None
        text = f"The transcripts and the key of {self.pointers:,} messages without text are here."
        if self.texts and self.keep == "vectors":
            text += f" {self.texts:,} have text still: `smara erase --transcribed` lists them."
        return "ok", text

    def copy_lines(self) -> list[str]:
        """Say what a copy of this project lacks."""
        lacks = f"{self.pointers:,} of its messages have no text there: the transcripts do."
        key = f"The key of their terms is not in it: copy {self.key_path} too."
        return [lacks, key] if self.pointers else []

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "mode": self.keep,
            "withoutText": self.pointers,
            "withText": self.texts,
            "unreadable": self.unreadable,
            "notFoundByWords": self.lost,
            "key": self.key_path if self.has_key else None,
            "problems": self.problems(),
        }

    def problems(self) -> list[str]:
        """Return what does not work now, for people."""
        found = []
        if self.lost:
            found.append(
                f"Words do not find {self.lost:,} of the messages without text: the key that hashed"
                f" their terms is not {self.key_path}. Put it back; or make a new one (`smara init"
                " --keep vectors`) and hash them again from the transcripts (`smara erase"
                " --transcribed --yes`)."
            )
        if self.unreadable:
            found.append(
                f"The text of {self.unreadable:,} messages cannot be shown: the transcripts that"
                " had it are gone. Search still finds them, and says which file it was."
            )
        return found


class Keeper:
    """Takes the texts of one project's messages out, and reads them again."""

    def __init__(
        self, project: ProjectContext, store: MessageStore, embeddings: Callable[[], Embeddings]
    ) -> None:
        self._project = project
        self._store = store
        self._embeddings = embeddings
        self._projects = Projects(project.database, project.clock, project.new_id)
        self.key = TermKey(config_path().with_name("terms.key"))
        self._texts: dict[str, tuple[Part, ...]] = {}
        """The last texts that were read, by their hashes."""
        self._characters = 0
        self._is_marked = False

    @property
    def store(self) -> PointerStore:
        """The messages with their texts."""
        key_id = self._projects.key_of(self._project.scope)
        return PointerStore(self._store, self.key, self.reveal, key_id=key_id)

    def mark(self) -> None:
        """Write that this project keeps vectors, and make the key."""
        if self._projects.key_of(self._project.scope) is None:
            self.key.make()
            self.put_key(self.key.id)
        self._is_marked = True

    def put_key(self, key_id: str | None) -> None:
        """Write which key a project has, or that it keeps text."""
        no = self._project.scope.project_no
        with self._project.database.write() as session:
            session.run(
                "DELETE FROM project_notes WHERE project_no = ? AND kind = 'vectors'", (no,)
            )
            if key_id is not None:
                session.run(
                    "INSERT INTO project_notes (project_no, kind, other, at)"
                    " VALUES (?, 'vectors', ?, ?)",
                    (no, key_id, self._project.clock.now_ms()),
                )

    def withhold(self, prepared: PreparedMessage, pointer: Pointer | None) -> PreparedMessage:
        """Return a message without its text; see `TextKeeper`."""
        if pointer is None:
            raise InvalidInputError(
                "This project keeps vectors and no text, and no transcript of an agent has this"
                " message. Import the session's transcript, or set `keep` to `text`."
            )
        if not self._is_marked:
            self.mark()
        chunks = self.key.withhold(prepared.chunks)
        place = replace(pointer, digest=digest_of(prepared.raw_content), key=self.key.id)
        self._remember(place.digest, prepared.parts)
        facts = facts_of(json.loads(prepared.metadata)) if prepared.metadata else {}
        return prepared._replace(
            chunks=chunks,
            metadata=dump_metadata(facts) if facts else None,
            withheld=packed(place, chunks),
        )

    def embed(self) -> None:
        """Make the vectors that wait.

        Trouble leaves them to a worker, which reads transcripts.
        """
        if self._project.settings.embedder == "off":
            return
        try:
            self._embeddings().embed_pending(deadline_seconds=_EMBED_SECONDS)
        except SmaraError as error:
            log.warning("vectors.not_made", error=error.code)

    def holding(self, session: Session, text: str) -> set[int]:
        """Return messages without text whose transcripts hold a text.

        Case does not matter. One whose transcript is gone is among them if it has all the words.
        """
        hashed = self.key.withhold(analyze_chunks(text))
        words = {term for each in hashed for term in f"{each.prose} {each.code}".split()}
        found: set[int] = set()
        last = 0
        rest = f" AND m.no > ? AND {IS_POINTER.replace('parts', 'm.parts')} ORDER BY m.no LIMIT ?"
        while page := self._store.select(session, rest, (last, _PAGE)):
            last = page[-1][0]
            shown = self.reveal([message for _, message in page])
            unread = [row[0] for row, each in zip(page, shown, strict=True) if not each.parts]
            found |= {
                row[0]
                for row, each in zip(page, shown, strict=True)
                if each.parts and text.lower() in each.raw_content.lower()
            }
            for no, terms in self._store.rows(
                session,
                "SELECT no, raw_content FROM messages WHERE project_no = :project"
                " AND no IN (:some)",
                some=unread if words else (),
            ):
                if words <= set(terms.split()):
                    found.add(int(no))
        return found

    def reveal(self, messages: list[Message]) -> list[Message]:
        """Return messages with their texts, or with where they were."""
        texts = self._read([each.pointer for each in messages if each.pointer is not None])
        shown = []
        for message in messages:
            if message.pointer is not None and message.pointer.digest in texts:
                parts = texts[message.pointer.digest]
                message = replace(message, parts=parts, raw_content=pack(parts)[0])
            elif message.pointer is not None:
                # Without parts: a sentence of ours must not be embedded or quoted.
                message = replace(message, raw_content=absence(message.pointer))
            shown.append(message)
        return shown

    def _remember(self, digest: str, parts: tuple[Part, ...]) -> None:
        if digest not in self._texts:
            self._texts[digest] = parts
            self._characters += _size(parts)
        while self._characters > _MOST_CHARACTERS and len(self._texts) > 1:
            self._characters -= _size(self._texts.pop(next(iter(self._texts))))

    def _read(self, places: Sequence[Pointer]) -> dict[str, tuple[Part, ...]]:
        """Return texts by their hashes; those not at hand are read in their transcripts."""
        texts: dict[str, tuple[Part, ...]] = {}
        files: dict[tuple[str, str, str | None], list[Pointer]] = {}
        for each in places:
            if each.digest in self._texts:
                texts[each.digest] = self._texts[each.digest]
            else:
                files.setdefault((each.path, each.format, each.session), []).append(each)
        whole = 0
        for (path, format, session), pointers in files.items():
            if not os.path.isfile(path):
                continue
            digests = {each.digest for each in pointers}
            lines = {each.line for each in pointers} | _HEAD
            found = texts_at(path, format, session, lines=lines, digests=digests)
            if len(found) < len(digests) and whole < _MOST_WHOLE:
                whole += 1
                rest = digests - found.keys()
                found |= texts_at(path, format, session, lines=None, digests=rest)
            texts |= found
            for digest, parts in found.items():
                self._remember(digest, parts)
        return texts


def _size(parts: Sequence[Part]) -> int:
    return sum(len(each.text) + len(str(each.arguments or "")) for each in parts)


def texts_at(
    path: str,
    format: str,
    session: str | None,
    *,
    lines: Iterable[int] | None,
    digests: Iterable[str],
) -> dict[str, tuple[Part, ...]]:
    """Return the texts of a transcript that have these hashes."""
    missing, found = set(digests), dict[str, tuple[Part, ...]]()
    try:
        for each in transcript_messages([(path, format, session)], lines):
            parts = redact_parts(parts_of(each.message.content))
            digest = digest_of(to_storable(pack(parts)[0]))
            if digest in missing:
                found[digest] = parts
                missing.remove(digest)
                if not missing:
                    break
    except (SmaraError, OSError, LookupError, ValueError) as error:
        log.warning("transcript.unreadable", error=type(error).__name__)
    return found


def transcript_messages(
    files: Iterable[tuple[str, str, str | None]], lines: Iterable[int] | None = None
) -> Iterator[TranscriptMessage]:
    """Read the messages of transcripts, or of some of their lines.

    A transcript is a path, a format, and the session if a file has many.
    """
    module, _, name = READER.partition(":")
    read: Callable[..., Iterator[tuple[str, int, NewMessage]]] = getattr(
        import_module(module), name
    )
    for path, format, session in files:
        for thread_id, line, message in read(path, format, session, lines):
            place = Pointer(os.path.abspath(path), format, line, session=session)
            yield TranscriptMessage(thread_id, message, place)


def packed(place: Pointer, chunks: Sequence[Any]) -> tuple[str, str]:
    """Return what is stored in place of a text and its layout."""
    terms = "\n".join(f"{each.prose}\t{each.code}" for each in chunks)
    return terms, json.dumps({"pointer": asdict(place)}, separators=(",", ":"))


def same_text(stored: str, layout: str | None) -> str:
    """Return what two stores compare of a text: its hash."""
    place = pointer_in(layout)
    return stored if stored == ERASED else digest_of(stored) if place is None else place.digest


def count_texts(session: Session, project_no: int) -> int:
    """Count the texts in a project that should have none."""
    return number(
        session,
        "SELECT count(*) FROM messages m JOIN project_notes n ON n.project_no = m.project_no"
        f" AND n.kind = 'vectors' WHERE m.project_no = {int(project_no)}"
        f" AND m.raw_content <> '{ERASED}' AND coalesce(substr(m.parts, 1, 1), '') <> '{{'",
    )


def check_pointer(layout: str | None) -> None:
    """Raise ValueError if an archive's row has an invalid pointer."""
    place = pointer_in(layout)
    if place is not None and (
        not all(isinstance(each, str) for each in (place.path, place.format, place.digest))
        or not isinstance(place.key, str)
        or not isinstance(place.line, int)
    ):
        raise ValueError("a message has an invalid pointer")


def refuse_texts() -> NoReturn:
    """Raise: texts are on their way into a project that keeps none."""
    raise InvalidInputError(
        "The project keeps vectors and no text, and what is imported has the text of"
        " conversations. Nothing was stored. Import it into another project, or choose to keep"
        " text: smara init --keep text"
    )


def where(place: Pointer) -> str:
    """Say which file had a text when it was imported."""
    return f"The text is not in the store. Line {place.line} of {place.path} had it"


def absence(place: Pointer) -> str:
    """Say where a text was that cannot be read."""
    why = "no longer has it there" if os.path.isfile(place.path) else "is gone"
    return f"[{where(place)}, and that file {why}.]"


def adopt(database: Database, scope: Scope, now_ms: int) -> None:
    """Mark a project whose messages were all imported without text."""
    no = int(scope.project_no)
    with database.write() as session:
        row = session.one(
            f"SELECT parts FROM messages WHERE project_no = ? AND {IS_POINTER} LIMIT 1", (no,)
        )
        place = None if row is None else pointer_in(row[0])
        is_kept = session.one(
            "SELECT 1 FROM project_notes WHERE project_no = ? AND kind = 'vectors'"
            " UNION ALL SELECT 1 FROM messages WHERE project_no = ?"
            f" AND raw_content <> '{ERASED}' AND (parts IS NULL OR NOT {IS_POINTER})",
            (no, no),
        )
        if place is not None and is_kept is None:
            session.run(
                "INSERT INTO project_notes (project_no, kind, other, at)"
                " VALUES (?, 'vectors', ?, ?)",
                (no, place.key, now_ms),
            )


def keep_status(project: ProjectContext, key: TermKey) -> KeepStatus:
    """Count the messages with and without text, and those unreadable."""
    database, no = project.database, int(project.scope.project_no)
    where = f"FROM messages WHERE project_no = {no}"
    with database.read() as session:
        total = number(session, f"SELECT count(*) {where}")
        layouts = session.all(f"SELECT parts {where} AND {IS_POINTER}")
    pointers = [json.loads(row[0])["pointer"] for row in layouts]
    gone = {path for path in {each["path"] for each in pointers} if not os.path.isfile(path)}
    return KeepStatus(
        keep=project.settings.keep,
        pointers=len(pointers),
        texts=total - len(pointers),
        unreadable=sum(each["path"] in gone for each in pointers),
        lost=sum(not key.id or each["key"] != key.id for each in pointers),
        key_path=str(key.path),
        has_key=bool(key.id),
    )
