"""Write parsed files as rows; unchanged definitions keep their numbers.

All writes happen in the caller's transaction. Files whose edges may have changed are marked stale
in the same one, so a killed process leaves no wrong edges behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smara.codegraph.index.dependents import OutlineChange, change_between
from smara.codegraph.index.edges import TreeCache
from smara.codegraph.index.workers import FileRecord, chunk_key
from smara.codegraph.language import tables
from smara.codegraph.resolve.symbols import FileOutline, outline_of, pack_outline, unpack_outline
from smara.codegraph.store import ChunkRow, CodeStore, FileRow, NodeRow, WriteBatch
from smara.core.escape import to_storable
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field
from smara.database.database import Session
from smara.database.fulltext import RecordTerms

_BLOCK = {"file": 64, "node": 2_000, "chunk": 1_000}


@dataclass(frozen=True, eq=False)
class Numbers:
    """New row numbers, reserved from the database in batches.

    Not inside a transaction: it is one itself.
    """

    store: CodeStore
    _free: dict[str, range] = field(default_factory=dict, init=False)

    def prepare(self, works: Sequence[FileRecord]) -> None:
        """Have enough numbers for whatever these files may need."""
        needed = {
            "file": len(works),
            "node": sum(1 + (len(work.facts.definitions) if work.facts else 0) for work in works),
            "chunk": sum(len(work.chunks) for work in works),
        }
        for kind, count in needed.items():
            if len(self._free.get(kind, ())) < count:
                size = max(count, _BLOCK[kind])
                start = self.store.reserve(kind, size)
                self._free[kind] = range(start, start + size)

    def take(self, kind: str) -> int:
        """Take one of the numbers that were prepared."""
        free = self._free[kind]
        self._free[kind] = free[1:]
        return free[0]


@dataclass(slots=True)
class StoredFiles:
    """The stored rows, nodes, chunks and outlines of some files."""

    rows: dict[str, FileRow]
    nodes: dict[int, list[NodeRow]]
    chunks: dict[int, list[ChunkRow]]
    outlines: dict[int, bytes]

    @classmethod
    def read(cls, session: Session, store: CodeStore, rows: Iterable[FileRow]) -> StoredFiles:
        """Read all that is stored of some files."""
        by_path = {row.path: row for row in rows}
        numbers = [row.no for row in by_path.values()]
        return cls(
            by_path,
            store.nodes(session, numbers),
            store.chunks(session, numbers),
            outlines=store.facts(session, "outline", numbers),
        )

    def is_current(self, row: FileRow) -> bool:
        """Return True if a file is still stored as it was read."""
        before = self.rows.get(row.path)
        return before is not None and (before.no, before.revision) == (row.no, row.revision)


class Writer:
    """Writes the files of one tree."""

    def __init__(self, store: CodeStore, tree_no: int, cache: TreeCache, numbers: Numbers) -> None:
        self._store, self._tree_no, self._cache, self._numbers = store, tree_no, cache, numbers

    def write(
        self,
        session: Session,
        works: Sequence[FileRecord],
        seen: Mapping[str, FileRow],
        now_ms: int,
        is_first: bool,
        earlier: StoredFiles | None = None,
    ) -> int:
        """Write files and return their number.

        Call ``numbers.prepare`` before the transaction. ``seen`` are the rows as they were when the
        caller decided to read the files: one that another process has written since is left as it
        is. ``is_first`` says that all edges are going to be made anyway. ``earlier`` saves reading
        what is stored of the files a second time.
        """
        store, tree_no = self._store, self._tree_no
        rows = store.files(session, tree_no, [work.path for work in works])
        works = [work for work in works if _is_as_seen(rows.get(work.path), seen.get(work.path))]
        revision = store.next_revision(session, tree_no)
        old = [
            row for work in works if (row := rows.get(work.path)) is not None and not work.is_same
        ]
        if earlier is None or not all(map(earlier.is_current, old)):
            earlier = StoredFiles.read(session, store, old)
        batch = WriteBatch()
        terms: list[tuple[int, RecordTerms]] = []
        changes: list[OutlineChange] = []
        outcome: dict[str, tuple[int, FileOutline | None]] = {}
        for work in works:
            row = rows.get(work.path)
            if work.is_same and row is not None:
                batch.touched.append((work.size, work.mtime_ns, row.no))
                continue
            no = row.no if row is not None else self._numbers.take("file")
            nodes = earlier.nodes.get(no, [])
            before = None
            if no in earlier.outlines:
                file_node = next((node.no for node in nodes if node.kind == "file"), 0)
                before = unpack_outline(work.path, file_node, earlier.outlines[no])
            stale_at = now_ms if work.facts is not None else None
            store.put_file(
                session,
                tree_no,
                (
                    *(no, work.path, work.language, work.kind, work.hash, work.size),
                    *(work.mtime_ns, work.lines, int(work.is_test), stale_at, now_ms),
                    *(revision, work.skip),
                ),
            )
            chunks = earlier.chunks.get(no, [])
            after = None
            if work.skip is not None:
                batch.removed_nodes += [node.no for node in nodes]
                batch.removed_chunks += [chunk.no for chunk in chunks]
            else:
                file_no, numbers = self._put_nodes(work, no, nodes, batch=batch)
                terms += self._put_chunks(work, no, [*numbers, file_no], chunks=chunks, batch=batch)
                after = outline_of(work.facts, file_no, numbers) if work.facts else None
            if after is None:
                batch.without_facts.append(no)
            else:
                batch.facts.append((no, pack_outline(after), work.uses, b""))
            outcome[work.path] = (no, after)
            change = change_between(work.path, before, after)
            if (
                change is None
                and work.path.rpartition("/")[2] in tables().module_files
                and (after is None or row is None)
            ):
                change = OutlineChange(work.path, None, is_come_or_gone=row is None)
            if change is not None:
                changes.append(change)
        store.write(session, tree_no, batch)
        store.database.records.put(session, "code", store.scope.project_no, terms, is_new=True)
        if not any(work.skip for work in works):
            self._cache.wrote_files(outcome, revision)
        if not is_first:
            self.mark_touched(session, changes, now_ms)
        return len(outcome)

    def remove(self, session: Session, rows: Sequence[FileRow], now_ms: int) -> int:
        """Remove files; how many were there.

        Those that another process has written since stay.
        """
        store = self._store
        stored = store.files(session, self._tree_no, [row.path for row in rows])
        gone = [row for row in rows if row.path in stored and _is_as_seen(stored[row.path], row)]
        if not gone:
            return 0
        store.next_revision(session, self._tree_no)
        numbers = [row.no for row in gone]
        outlines = store.facts(session, "outline", numbers)
        before = {
            row.path: unpack_outline(row.path, 0, outlines[row.no]) if row.no in outlines else None
            for row in gone
        }
        changes = [
            change_between(path, outline, None) or OutlineChange(path, None, is_come_or_gone=True)
            for path, outline in before.items()
        ]
        store.remove_files(session, numbers)
        self.mark_touched(session, changes, now_ms)
        return len(gone)

    def mark_touched(self, session: Session, changes: Sequence[OutlineChange], now_ms: int) -> None:
        """Mark the files stale whose edges may be others now."""
        if not changes:
            return
        cache, store = self._cache, self._store
        if (touched := cache.current_notes(session, store, self._tree_no).touched(changes)) is None:
            store.mark_all_stale(session, self._tree_no, now_ms)
            cache.project = None
        else:
            store.mark_stale(session, sorted(touched), now_ms)

    def _put_nodes(
        self, work: FileRecord, no: int, nodes: Sequence[NodeRow], batch: WriteBatch
    ) -> tuple[int, list[int]]:
        """Number the file and its definitions, each as it was before where it was there before."""
        earlier = {(node.kind, node.qualname, node.ordinal): node.no for node in nodes}
        file_no = earlier.get(("file", work.path, 0)) or self._numbers.take("node")
        rows = [
            NodeRow(
                file_no,
                no,
                "file",
                name=work.path.rpartition("/")[2],
                qualname=work.path,
                ordinal=0,
                parent_no=None,
                first_line=1,
                last_line=work.lines,
                body_hash=work.hash,
                sketch=b"",
                signature="",
                doc=to_storable(work.doc),
            )
        ]
        numbers: list[int] = []
        met: dict[tuple[str, str], int] = {}
        for each in work.facts.definitions if work.facts else ():
            ordinal = met.get((each.kind, each.qualname), 0)
            met[each.kind, each.qualname] = ordinal + 1
            place = (each.kind, each.qualname, ordinal)
            number = earlier.get(place) or self._numbers.take("node")
            texts = [each.name, each.qualname, each.signature, each.doc]
            joined = "".join(texts)
            if not joined.isascii() or "\0" in joined:
                texts = list(map(to_storable, texts))
            rows.append(
                NodeRow(
                    number,
                    no,
                    each.kind,
                    name=texts[0],
                    qualname=texts[1],
                    ordinal=ordinal,
                    parent_no=numbers[each.parent] if 0 <= each.parent < len(numbers) else file_no,
                    first_line=each.first_line,
                    last_line=each.last_line,
                    body_hash=each.body_hash,
                    sketch=each.sketch,
                    signature=texts[2],
                    doc=texts[3],
                )
            )
            numbers.append(number)
        old = {node.no: node for node in nodes}
        for row in rows:
            if (before := old.pop(row.no, None)) is None:
                batch.added_nodes.append(row)
            elif before != row:
                batch.changed_nodes.append(row)
        batch.removed_nodes += old
        return file_no, numbers

    def _put_chunks(
        self,
        work: FileRecord,
        no: int,
        node_nos: Sequence[int],
        chunks: Sequence[ChunkRow],
        batch: WriteBatch,
    ) -> list[tuple[int, RecordTerms]]:
        """Number the chunks and return the terms of new ones.

        Those with the text they had keep their numbers, and with them their vectors. The last of
        ``node_nos`` is the file's.
        """
        terms = []
        earlier = grouped(
            ((chunk.kind, chunk.name, chunk.prefix, chunk.text), chunk) for chunk in chunks
        )
        for ready in work.chunks:
            each = ready.chunk
            node_no = node_nos[each.definition]
            key = chunk_key(each)
            if same := earlier.get(key):
                before = same.pop(0)
                row = before._replace(
                    node_no=node_no, first_line=each.first_line, last_line=each.last_line
                )
                if row != before:
                    batch.moved_chunks.append(row)
                continue
            number = self._numbers.take("chunk")
            batch.added_chunks.append(
                ChunkRow(
                    number,
                    no,
                    node_no,
                    kind=key[0],
                    name=key[1],
                    first_line=each.first_line,
                    last_line=each.last_line,
                    prefix=key[2],
                    text=key[3],
                )
            )
            terms.append((number, RecordTerms(ready.head, ready.bodies)))
        batch.removed_chunks += [chunk.no for same in earlier.values() for chunk in same]
        return terms


def _is_as_seen(row: FileRow | None, seen: FileRow | None) -> bool:
    """Return True if a file's content in the index is the one that was there when it was
    decided to read the file again.
    """
    now, before = ((each.no, each.hash, each.skip) if each else None for each in (row, seen))
    return now == before
