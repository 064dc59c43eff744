"""Read a file as safe JSON objects.

Line by line, or as the list in one JSON document.

`read_lines` yields the lines of a plain or compressed file in bounded memory. `decode` turns
a line into an object and never raises: it repairs what it can (invalid UTF-8, lone
surrogates, duplicate keys) and rejects the rest with a reason. `elements` reads the list in a
document; one that breaks off in the middle still yields the elements before the break.
"""

from __future__ import annotations

import gzip
import importlib
import io
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from smara.adapters.records import Counted, Progress
from smara.config import Settings
from smara.core.files import open_regular, read_regular
from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError, MissingExtraError, NotFoundError
from smara.shapes import encodable

# Room for a message of 64 MiB together with its JSON escapes.
MAX_LINE_BYTES = 80 * 1024 * 1024

_unpacking: ContextVar[Settings] = ContextVar("unpacking", default=Settings())  # noqa: B039 - frozen
"""How far a packed file may grow. Blank lines pack best: 16 MiB are 16 million lines to read."""
_CHUNK_BYTES = 1024 * 1024
_LINES_PER_PROGRESS = 200
_GZIP_MAGIC = b"\x1f\x8b"
_SQLITE_MAGIC = b"SQLite format 3\x00"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BYTES = 512  # of which no more than 16 MiB can be made


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line without its newline; ``problem`` says why it is unreadable."""

    number: int
    data: bytes
    is_terminated: bool = True
    problem: str | None = None


def bound_unpacking(settings: Settings) -> None:
    """Read packed files of this context within the bounds of these settings."""
    _unpacking.set(settings)


def read_lines(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[FileLine]:
    """Yield every line of a file, with one in memory at most.

    Raises `NotFoundError` or `InvalidInputError` when the path is no readable file, and
    `MissingExtraError` when it is compressed in a way this Python cannot undo. A damaged
    compressed file yields what can be read, then one last line with a problem.
    """
    with ExitStack() as stack:
        raw, source, total = _open(Path(path), stack)
        number = 0
        for number, line in enumerate(
            _split(io.BufferedReader(source, _CHUNK_BYTES), max_line_bytes), start=1
        ):
            yield line
            if progress and number % _LINES_PER_PROGRESS == 0:
                progress(min(raw.tell(), total), total)
        if source.is_damaged:
            yield FileLine(
                number + 1, b"", problem="the compressed file is damaged or cut off here"
            )
        if progress:
            progress(total, total)


def read_whole(
    path: str | os.PathLike[str], progress: Progress | None = None, *, max_bytes: int
) -> tuple[bytes, str | None]:
    """Return the content of a file up to ``max_bytes``, and any problem.

    Raises as :func:`read_lines` does.
    """
    with ExitStack() as stack:
        raw, source, total = _open(Path(path), stack)
        reader = io.BufferedReader(source, _CHUNK_BYTES)
        chunks: list[bytes] = []
        size = 0
        while size <= max_bytes and (chunk := reader.read(min(_CHUNK_BYTES, max_bytes + 1 - size))):
            chunks.append(chunk)
            size += len(chunk)
            if progress:
                progress(min(raw.tell(), total), total)
        if size > max_bytes:
            return b"", f"the document is longer than {max_bytes} bytes"
        damage = "the compressed file is damaged or cut off" if source.is_damaged else None
        return b"".join(chunks), damage


def is_database(path: str | os.PathLike[str]) -> bool:
    """Return True if a file is an SQLite database."""
    try:
        return read_regular(path, len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False


class _Source(io.RawIOBase):
    """A stream that ends where it is damaged, so that what stands before the damage is read."""

    def __init__(
        self,
        stream: Any,
        damages: tuple[type[Exception], ...] = (),
        packed: IO[bytes] | None = None,
    ) -> None:
        self._stream = stream
        self._damages = damages
        self.is_damaged = False
        self._packed = packed
        self._unpacked_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self._stream.read1(len(buffer))
        except self._damages:
            self.is_damaged = True
            return 0
        buffer[: len(chunk)] = chunk
        if self._packed is not None:
            self._unpacked_bytes += len(chunk)
            bounds = _unpacking.get()
            most = max(
                bounds.import_unpacked_mib << 20, bounds.import_unpack_ratio * self._packed.tell()
            )
            if self._unpacked_bytes > min(most, bounds.import_most_unpacked_gib << 30):
                raise InvalidInputError(
                    f"This file unpacks to more than {bounds.import_unpack_ratio:,} times its size,"
                    f" or to more than {bounds.import_most_unpacked_gib} GiB. It was not read to"
                    " its end. If you trust it, unpack it (gunzip FILE, unzstd FILE) and import the"
                    " unpacked file, or raise import_unpack_ratio or import_most_unpacked_gib."
                )
        return len(chunk)


class _ZstdFrames:
    """A file read with the package ``zstandard``, whose own reader does not tell when a file breaks
    off.
    """

    def __init__(self, raw: IO[bytes], package: Any) -> None:
        self._raw = raw
        self._new_frame = package.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._ready = bytearray()

    def read1(self, size: int) -> bytes:
        while not self._ready and (piece := self._raw.read(_ZSTD_BYTES)):
            while piece:
                frame = self._frame or self._new_frame()
                self._ready += frame.decompress(piece)
                self._frame, piece = (None, frame.unused_data) if frame.eof else (frame, b"")
        if not self._ready and self._frame is not None:
            raise EOFError("the last frame is not whole")
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data


def _open(path: Path, stack: ExitStack) -> tuple[IO[bytes], _Source, int]:
    """Return a file, its content unpacked, and its size."""
    try:
        raw = stack.enter_context(open_regular(path))
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}. Check the path.", path=str(path)) from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}. Give a file that you may read."
        raise InvalidInputError(message, path=str(path)) from error
    magic = raw.read(4)
    raw.seek(0)
    source = _Source(raw)
    if magic.startswith(_GZIP_MAGIC):
        unzipped = stack.enter_context(gzip.GzipFile(fileobj=raw))
        source = _Source(unzipped, (EOFError, zlib.error, gzip.BadGzipFile), raw)
    elif magic == _ZSTD_MAGIC and (standard := _find_module("compression.zstd")):
        # Python 3.14 and later
        unzipped = stack.enter_context(standard.ZstdFile(raw))
        source = _Source(unzipped, (EOFError, standard.ZstdError), raw)
    elif magic == _ZSTD_MAGIC and (package := _find_module("zstandard")):
        source = _Source(_ZstdFrames(raw, package), (EOFError, package.ZstdError), raw)
    elif magic == _ZSTD_MAGIC:
        message = (
            "This file is compressed with zstd. Install the package zstandard, or unpack the "
            "file with: unzstd FILE"
        )
        raise MissingExtraError(message, package="zstandard")
    return raw, source, os.fstat(raw.fileno()).st_size


def _find_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _split(stream: io.BufferedReader, max_line_bytes: int) -> Iterator[FileLine]:
    number = 0
    while data := stream.readline(max_line_bytes + 1):
        number += 1
        if data.endswith(b"\n"):
            yield FileLine(number, data[:-1])
        elif len(data) <= max_line_bytes:
            yield FileLine(number, data, is_terminated=False)
        else:
            del data  # the oversized line must not stay in memory while its rest is skipped
            chunk = b""
            while not chunk.endswith(b"\n") and (more := stream.readline(_CHUNK_BYTES)):
                chunk = more
            yield FileLine(
                number,
                b"",
                chunk.endswith(b"\n"),
                problem=f"the line is longer than {max_line_bytes} bytes",
            )


MAX_DEPTH = 100

_ESCAPED_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
_PADDING = "\x00 \t\r\n\ufeff"
_LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A line that holds a JSON object."""

    line: int
    raw: bytes
    value: dict[str, Any]
    repairs: tuple[str, ...] = ()


def decode(line: FileLine) -> JsonLine | Counted:
    """The object in a line, or why there is none."""
    if line.problem:
        return Counted(line.number, "unreadable", line.problem)
    raw, repairs = _text_of(line.data)
    text = raw.strip(_PADDING)
    if not text and "\x00" in raw:
        return Counted(line.number, "broken", "only NUL bytes (the file was cut off by a crash)")
    if not text:
        return Counted(line.number, "blank", "a blank line")
    if "\x00" in raw[: raw.index(text[0])] + raw[raw.rindex(text[-1]) :]:
        repairs.append("NUL bytes around the line were dropped")
    try:
        value, more_repairs = load_json(text)
    except RecursionError:
        return Counted(line.number, "broken", "nested too deeply to be read")
    except ValueError as error:
        if not line.is_terminated and isinstance(error, json.JSONDecodeError):
            return Counted(
                line.number, "broken", "incomplete last line (the file may still be written)"
            )
        if isinstance(error, json.JSONDecodeError):
            return Counted(
                line.number, "broken", "invalid JSON", detail=f"{error.msg}, column {error.colno}"
            )
        return Counted(line.number, "broken", "a number with too many digits")
    if not isinstance(value, dict):
        names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
        detail = f"it is {names.get(type(value), 'a number')}"
        return Counted(line.number, "broken", "not a JSON object", detail=detail)
    return JsonLine(line.number, line.data, value, repairs=(*repairs, *more_repairs))


def _text_of(data: bytes) -> tuple[str, list[str]]:
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), ["invalid UTF-8 was replaced"]


def load_json(text: str) -> tuple[Any, list[str]]:
    """Return the value in a JSON text, made safe, with the repairs.

    Raises `ValueError` when the text is not JSON, `RecursionError` when it is too deep.
    """
    has_twins = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_twins
        made = dict(items)
        has_twins = has_twins or len(made) != len(items)
        return made

    def finite(digits: str) -> float | str:
        number = float(digits)
        return number if math.isfinite(number) else digits

    # NaN and infinities become words: no database accepts them as numbers in JSON.
    value = json.loads(
        text, object_pairs_hook=pairs, parse_constant=str, parse_float=finite, strict=False
    )
    # With fewer openings containers cannot be nested deeper than allowed.
    level = [value] if text.count("{") + text.count("[") > MAX_DEPTH else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise RecursionError("the JSON is nested too deeply")
    repairs = []
    if has_twins:
        repairs.append("a key was given twice; the last one counts")
    if _ESCAPED_SURROGATE.search(text):
        clean = encodable(value)
        if clean != value:
            value = clean
            repairs.append("lone surrogates were replaced")
    return value, repairs


def json_in(text: str, otherwise: Any = None) -> Any:
    """Return the value in a JSON text; ``otherwise`` for other text."""
    try:
        return load_json(text)[0]
    except (ValueError, RecursionError):
        return otherwise


def text_in(value: Any) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def mapping_in(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def given(before: Mapping[str, Any] | None = None, /, **facts: Any) -> dict[str, Any]:
    """Return the facts that say something; they replace those from ``before``."""
    return {name: fact for name, fact in {**(before or {}), **facts}.items() if fact}


def milliseconds(value: Any) -> int | None:
    """Return milliseconds since the epoch from a time of any form.

    A number, a datetime, or ISO 8601:

    1770841013366 → 1770841013366; "2026-02-11T20:16:53.366Z" → 1770841013366. Text
    without a zone is taken as UTC.
    """
    try:
        if isinstance(value, str):
            at: float = _written_ms(value)
        elif isinstance(value, datetime):
            at = _moment_ms(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            at = value
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return int(at) if 0 <= at <= _LATEST_MS else None


def _written_ms(text: str) -> int:
    # Eight digits are a day, such as 20260211.
    if text.isascii() and text.isdigit() and len(text) <= 15 and len(text) != 8:
        return int(text)
    return _moment_ms(datetime.fromisoformat(text.strip()))


def _moment_ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


MAX_DOCUMENT_BYTES = 256 * 1024 * 1024

_HEAD_BYTES = 4096
_GAP = regex(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Document:
    """The elements of a list in a document, with its surroundings.

    Attributes:
        around: The document without the list; of a broken one what stands before it; ``None`` when
            it is the list itself.
    """

    entries: list[JsonLine | Counted]
    around: Any = None
    is_broken: bool = False


def is_document(head: str) -> bool:
    """Return True if a file that begins so is one JSON document.

    Unlike a file of one object a line, it opens what its first line does not close.
    """
    lines = head.lstrip(_PADDING).splitlines()
    first = lines[0].strip() if lines else ""
    if first.startswith("["):
        return True
    # A line alone may be an object whose end is not written yet: a document has more of them.
    is_open = first == "{" or (first.startswith("{") and first.endswith((",", "{", "[")))
    return is_open and any(line.strip() for line in lines[1:])


def head_of(path: str | os.PathLike[str]) -> str:
    """The first characters of a file, unpacked."""
    found = ""
    for line in islice(read_lines(path), 200):
        found += line.data[:_HEAD_BYTES].decode("utf-8", "replace") + "\n"
        if len(found) >= _HEAD_BYTES:
            break
    return found


def elements(
    path: str | os.PathLike[str],
    key: str | None,
    progress: Progress | None = None,
    *,
    broken_keys: tuple[str, ...] = (),
) -> Document:
    """Read the elements of the list under ``key``, or of the document.

    Nothing in the file raises. Whatever is no object is counted. Of a broken document the list
    under the first of ``broken_keys`` that is found is read, too.
    """
    data, problem = read_whole(path, progress, max_bytes=MAX_DOCUMENT_BYTES)
    if not data:
        return Document(
            [Counted(1, "unreadable" if problem else "blank", problem or "an empty file")]
        )
    raw, repairs = _text_of(data)
    text = raw.strip(_PADDING)
    try:
        value, more_repairs = load_json(text)
    except (ValueError, RecursionError):
        return _salvaged(text, (*((key,) if key else ()), *broken_keys), problem)
    listed, around = value, None
    if isinstance(value, dict):
        listed = value.get(key)
        around = {k: v for k, v in value.items() if k != key or not isinstance(listed, list)}
    mended, values = (*repairs, *more_repairs), enumerate(list_in(listed), 1)
    return Document([entry_of(number, each, mended) for number, each in values], around)


def entry_of(number: int, value: Any, repairs: tuple[str, ...] = ()) -> JsonLine | Counted:
    """An element as if it stood on a line of its own."""
    if not isinstance(value, dict):
        return Counted(number, "broken", "not a JSON object")
    raw = json.dumps(encodable(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return JsonLine(number, raw.encode("utf-8", "replace"), value, repairs=repairs)


def _salvaged(text: str, keys: tuple[str, ...], problem: str | None) -> Document:
    """The elements that can be read of a document that is broken, and a count of the break."""
    entries: list[JsonLine | Counted] = []
    around = None
    names = "|".join(map(re.escape, keys))
    opening = re.search(rf'"(?:{names})"\s*:\s*\[', text) if keys else None
    start = 1 if text.startswith("[") else opening.end() if opening else None
    if start is not None:
        # What stands before the list, as if the list were empty and the object ended there.
        around = json_in(text[:start] + "]}")
        entries += [
            entry_of(number, value) for number, value in enumerate(_objects(text, start), 1)
        ]
    reason = problem or "the document breaks off or is not JSON from here on"
    return Document([*entries, Counted(len(entries) + 1, "broken", reason)], around, is_broken=True)


def _objects(text: str, start: int) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    while True:
        gap = _GAP.match(text, start)
        start = gap.end() if gap else start
        try:  # the end of the list, too, is no value
            _, end = decoder.raw_decode(text, start)
            value, _ = load_json(text[start:end])
        except (ValueError, RecursionError):
            return
        yield value
        start = end
