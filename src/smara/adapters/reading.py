"""The lines of a file, plain or compressed, one at a time and in bounded memory.

Whatever a line contains, reading goes on behind it: a line that is too long, or a
compressed file that breaks off, comes as a `Line` with a ``problem``.
"""

from __future__ import annotations

import gzip
import importlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from smara.adapters.records import Progress
from smara.errors import InvalidInputError, MissingExtraError, NotFoundError

# Room for a message of 64 MiB together with its JSON escapes.
MAX_LINE_BYTES = 80 * 1024 * 1024

_CHUNK_BYTES = 1024 * 1024
_LINES_PER_PROGRESS = 200
_GZIP_MAGIC = b"\x1f\x8b"
_SQLITE_MAGIC = b"SQLite format 3\x00"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BYTES = 512  # of which no more than 16 MiB can be made


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline. ``problem`` says why its bytes are not to be had."""

    number: int
    data: bytes
    is_terminated: bool = True
    problem: str | None = None


def read_lines(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Line]:
    """Every line of the file, in order; at most one line is in memory.

    Raises `NotFoundError` or `InvalidInputError` when the path is no readable file, and
    `MissingExtraError` when it is compressed in a way this Python cannot undo. A damaged
    compressed file yields what can be read, then one last line with a problem.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(_open(Path(path)))
        total = os.fstat(raw.fileno()).st_size
        source = _decompressed(raw, stack)
        number = 0
        for number, line in enumerate(
            _split(io.BufferedReader(source, _CHUNK_BYTES), max_line_bytes), start=1
        ):
            yield line
            if progress and number % _LINES_PER_PROGRESS == 0:
                progress(min(raw.tell(), total), total)
        if source.is_damaged:
            yield Line(number + 1, b"", problem="the compressed file is damaged or cut off here")
        if progress:
            progress(total, total)


def read_whole(
    path: str | os.PathLike[str], progress: Progress | None = None, *, max_bytes: int
) -> tuple[bytes, str | None]:
    """The content of a file, and what kept it from being read to its end; at most ``max_bytes`` of
    it.

    Raises as :func:`read_lines` does.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(_open(Path(path)))
        total = os.fstat(raw.fileno()).st_size
        source = _decompressed(raw, stack)
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
        return b"".join(
            chunks
        ), "the compressed file is damaged or cut off" if source.is_damaged else None


def is_database(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an SQLite database."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError:
        return False


class _Source(io.RawIOBase):
    """A stream that ends where it is damaged, so that what stands before the damage is read."""

    def __init__(self, stream: Any, damages: tuple[type[Exception], ...] = ()) -> None:
        self._stream = stream
        self._damages = damages
        self.is_damaged = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self._stream.read1(len(buffer))
        except self._damages:
            self.is_damaged = True
            return 0
        buffer[: len(chunk)] = chunk
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
            self._take(piece)
        if not self._ready and self._frame is not None:
            raise EOFError("the last frame is not whole")
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    def _take(self, piece: bytes) -> None:
        while piece:
            frame = self._frame or self._new_frame()
            self._ready += frame.decompress(piece)
            self._frame, piece = (None, frame.unused_data) if frame.eof else (frame, b"")


def _open(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}. Check the path.", path=str(path)) from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}. Give a file that you may read."
        raise InvalidInputError(message, path=str(path)) from error


def _decompressed(raw: IO[bytes], stack: ExitStack) -> _Source:
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP_MAGIC):
        unzipped = stack.enter_context(gzip.GzipFile(fileobj=raw))
        return _Source(unzipped, (EOFError, zlib.error, gzip.BadGzipFile))
    if magic == _ZSTD_MAGIC:
        return _zstd(raw, stack)
    return _Source(raw)


def _zstd(raw: IO[bytes], stack: ExitStack) -> _Source:
    standard = _find_module("compression.zstd")  # Python 3.14 and later
    if standard is not None:
        return _Source(stack.enter_context(standard.ZstdFile(raw)), (EOFError, standard.ZstdError))
    package = _find_module("zstandard")
    if package is not None:
        return _Source(_ZstdFrames(raw, package), (EOFError, package.ZstdError))
    message = (
        "This file is compressed with zstd. Install the package zstandard, or unpack the "
        "file with: unzstd FILE"
    )
    raise MissingExtraError(message, package="zstandard")


def _find_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _split(stream: io.BufferedReader, max_line_bytes: int) -> Iterator[Line]:
    number = 0
    while data := stream.readline(max_line_bytes + 1):
        number += 1
        if data.endswith(b"\n"):
            yield Line(number, data[:-1])
        elif len(data) <= max_line_bytes:
            yield Line(number, data, is_terminated=False)
        else:
            del data  # the oversized line must not stay in memory while its rest is skipped
            is_terminated = _skip_to_newline(stream)
            yield Line(
                number,
                b"",
                is_terminated,
                problem=f"the line is longer than {max_line_bytes} bytes",
            )


def _skip_to_newline(stream: io.BufferedReader) -> bool:
    while chunk := stream.readline(_CHUNK_BYTES):
        if chunk.endswith(b"\n"):
            return True
    return False
