"""Write an archive: one ZIP with every record of some projects.

Lines of JSON by table for programs, Markdown and CSV for people, a manifest with counts and
checksums, and a JSON Schema. Everything is read from one moment of the store and written as it is
read, so that the size of the store does not matter.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from smara.core.files import make_private
from smara.core.scope import Scope
from smara.core.startup.regex import re, regex
from smara.database.database import Database, Session
from smara.database.migrate import HEAD
from smara.errors import InvalidInputError
from smara.privacy.markdown import memory_lines, task_lines, thread_lines, with_head
from smara.privacy.models import ExportReport
from smara.privacy.rows import RowReader, Selection, exported_name
from smara.privacy.tables import BY_NAME, RECORDS, TableSpec

FORMAT = "smara-archive"
VERSION = 1
MANIFEST = "manifest.json"
_HALF = regex("[\ud800-\udfff]")
_CSV: Mapping[str, Sequence[str]] = {
    "memories": (
        "short_id", "type", "content", "confidence", "tags", "files", "source", "created_by",
        "created_at", "is_verified", "is_pinned", "deprecated_because", "id",
    ),
    "tasks": (
        "short_id", "title", "status", "priority", "type", "assignee", "description",
        "close_reason", "created_at", "closed_at", "id",
    ),
}  # fmt: skip


def write_archive(
    database: Database,
    scopes: Sequence[Scope],
    selection: Selection,
    path: str,
    *,
    facts: Mapping[str, Any],
) -> ExportReport:
    """Write the selected records of some projects into a new private file.

    Args:
        database: The store.
        scopes: The projects.
        selection: Whose records, and of which time.
        path: The file; it must not exist.
        facts: What else the manifest says.

    Raises:
        InvalidInputError: If the file exists or cannot be written.
    """
    with private_file(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        with database.snapshot() as session:
            writer = _Writer(archive)
            for number, scope in enumerate(scopes, 1):
                writer.add_project(session, database, scope, selection, f"{number:02}")
        selected = {key: value for key, value in asdict(selection).items() if value is not None}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **facts,
            "schema": HEAD,
            "selection": selected,
            "redaction": "Secrets were replaced by placeholders before they were stored.",
            "leftOut": "Indexes, vectors and the graph of the code are made again at import.",
            "projects": writer.projects,
            "counts": dict(writer.counts),
            "files": writer.files,
        }
        for name, content in (("schema.json", writer.schema), (MANIFEST, manifest)):
            archive.writestr(_entry(name), json.dumps(content, ensure_ascii=False, indent=2))
    return ExportReport(
        path,
        os.stat(path).st_size,
        file_hash(path),
        projects=tuple(scope.project_id for scope in scopes),
        counts=dict(writer.counts),
    )


@contextmanager
def private_file(path: str) -> Iterator[IO[bytes]]:
    """Open a new file that only its owner can read.

    It gets its name when it is whole.

    Raises:
        InvalidInputError: If there is a file of that name, or none can be made.
    """
    if os.path.exists(path):
        raise InvalidInputError(f"{path} exists. Choose another name, or remove it first.")
    partial = f"{path}.partial"
    try:
        if not os.path.isdir(folder := os.path.dirname(os.path.abspath(path))):
            make_private(folder)
        with suppress(FileNotFoundError):
            os.unlink(partial)
        number = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInputError(f"Cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(number, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def file_hash(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Writer:
    """Writes the files of an archive and notes what is in them."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.projects: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self.schema: dict[str, Any] = {}

    def add_project(
        self, session: Session, database: Database, scope: Scope, selection: Selection, number: str
    ) -> None:
        """Write all files of one project."""
        reader = RowReader(database, session, scope)
        self.schema = self.schema or _schema(reader)
        folder = f"{number}-{re.sub(r'[^A-Za-z0-9._-]+', '_', scope.project_id)[:60]}"
        row = session.one("SELECT name, created_at FROM projects WHERE id = ?", (scope.project_id,))
        name, created_at = row or (scope.project_id, 0)
        self.projects.append(
            {"id": scope.project_id, "name": name, "createdAt": created_at, "folder": folder}
        )
        for table in RECORDS:
            lines = (_line(each) for each in reader.rows(table, selection))
            count = self._write(f"{folder}/{table.name}.ndjson", lines, table)
            if count:
                self.counts[table.name] += count
        rows = {
            name: lambda name=name: reader.rows(BY_NAME[name], selection)
            for name in ("memories", "tasks", "messages")
        }
        for name, columns in _CSV.items():
            self._write(f"{folder}/{name}.csv", _csv_lines(columns, rows[name]()))
        for name, render in (("memories", memory_lines), ("tasks", task_lines)):
            self._write(f"{folder}/{name}.md", _encoded(with_head(render(rows[name]()))))
        self._write(f"{folder}/conversations.md", _encoded(thread_lines(rows["messages"]())))

    def _write(self, path: str, chunks: Iterable[bytes], table: TableSpec | None = None) -> int:
        """Write a file and describe it; one without content is left out."""
        source = iter(chunks)
        chunk = next(source, None)
        if chunk is None:
            return 0
        digest, size, count = hashlib.sha256(), 0, 0
        with self._archive.open(_entry(path), "w", force_zip64=True) as file:
            while chunk is not None:
                file.write(chunk)
                digest.update(chunk)
                size, count = size + len(chunk), count + 1
                chunk = next(source, None)
        facts: dict[str, Any] = {"path": path, "bytes": size, "sha256": digest.hexdigest()}
        if table is not None:
            facts |= {"kind": table.name, "rows": count}
        self.files.append(facts)
        return count


def _entry(path: str) -> ZipInfo:
    entry = ZipInfo(path)
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def _line(row: Mapping[str, Any]) -> bytes:
    return row_text(row, separators=(",", ":")).encode() + b"\n"


def row_text(row: Mapping[str, Any], separators: tuple[str, str] = (", ", ": ")) -> str:
    """Return a row as JSON; escaped if it holds half a character."""
    text = json.dumps(row, ensure_ascii=False, separators=separators)
    return json.dumps(row, separators=separators) if _HALF.search(text) else text


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (f"{line}\n".encode("utf-8", "replace") for line in lines)


def _csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    is_first = True
    for row in rows:
        if is_first:
            writer.writerow(columns)
            is_first = False
        writer.writerow([_cell(row[name]) for name in columns])
        yield buffer.getvalue().encode("utf-8", "replace")
        buffer.seek(0)
        buffer.truncate()


def _cell(value: Any) -> Any:
    text = ", ".join(map(str, value)) if isinstance(value, list) else value
    # A spreadsheet would run a cell that begins so.
    return f"'{text}" if isinstance(text, str) and text[:1] in "=+-@\t\r" and text else text


def _schema(reader: RowReader) -> dict[str, Any]:
    """Return the JSON Schema of a line of each table."""
    kinds: dict[str, str] = {"bytes": "object"}
    definitions = {}
    for table in RECORDS:
        properties: dict[str, Any] = {}
        for column in reader.exported(table):
            types = [kinds.get(column.type, column.type), *([] if column.is_required else ["null"])]
            if column.name in table.refs:
                types = ["string", "array", *types[1:]]
            elif column.type == "string":
                types += ["array", "object"]
            properties[exported_name(table, column.name)] = {"type": types}
        definitions[table.name] = {
            "type": "object",
            "description": f"One row of {table.label}.",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lines of a Smara archive: one definition for each NDJSON file",
        "description": "Times are milliseconds since 1970. A reference is the key of its row.",
        "$defs": definitions,
    }
