"""Lines of plain and compressed files, in bounded memory, whatever they contain."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from smara.adapters import lines as reading
from smara.adapters.lines import FileLine, JsonLine, decode, milliseconds, read_lines
from smara.adapters.records import Counted
from smara.errors import InvalidInputError, MissingExtraError, NotFoundError


def test_lines_come_without_their_newline_and_numbered_from_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\r\n\ntwo")
    assert list(read_lines(path)) == [
        FileLine(1, b"one\r"),
        FileLine(2, b""),
        FileLine(3, b"two", is_terminated=False),
    ]


def test_a_gzip_file_is_known_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert [line.data for line in read_lines(path)] == [b"one", b"two"]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    assert list(read_lines(path)) == []


def test_a_gzip_file_that_breaks_off_yields_its_lines_and_then_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    whole = gzip.compress(b"".join(b"%d\n" % number for number in range(100_000)), compresslevel=0)
    path.write_bytes(whole[: len(whole) // 2])
    lines = list(read_lines(path))
    assert len(lines) > 40_000
    assert [line.problem for line in lines if line.problem] == [
        "the compressed file is damaged or cut off here"
    ]
    assert lines[-1].problem
    assert lines[-1].number == len(lines)


def test_a_gzip_file_with_a_wrong_checksum_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n")[:-8] + b"\0" * 8)
    assert [line.problem for line in read_lines(path)][
        -1
    ] == "the compressed file is damaged or cut off here"


def test_an_overlong_line_is_skipped_in_bounded_memory_and_reading_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\nnext\n")
    tracemalloc.start()
    lines = list(read_lines(path, max_line_bytes=1_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == [
        FileLine(1, b"", problem="the line is longer than 1000000 bytes"),
        FileLine(2, b"next"),
    ]
    assert peak < 10_000_000


def test_a_line_of_exactly_the_greatest_length_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345\n12345")
    assert [line.data for line in read_lines(path, max_line_bytes=5)] == [b"12345", b"12345"]


def test_by_default_a_message_of_64_mib_fits_and_a_line_of_100_mb_does_not() -> None:
    assert 64 * 2**20 < reading.MAX_LINE_BYTES < 100_000_000


def test_progress_grows_to_the_size_of_the_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % (number**7) for number in range(20_000))))
    calls: list[tuple[int, int]] = []
    list(read_lines(path, lambda done, total: calls.append((done, total))))
    size = path.stat().st_size
    assert calls == sorted(calls)
    assert calls[-1] == (size, size)
    assert len(calls) > 10


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"gone\.jsonl"):
        list(read_lines(tmp_path / "gone.jsonl"))


def test_a_folder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        list(read_lines(tmp_path))


def test_zstd_without_a_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd....")
    monkeypatch.setattr(reading, "_find_module", lambda name: None)
    with pytest.raises(MissingExtraError, match="zstandard"):
        list(read_lines(path))


def test_zstd_is_read_where_a_library_is_installed(tmp_path: Path) -> None:
    zstd = reading._find_module("compression.zstd") or reading._find_module("zstandard")
    assert zstd is not None
    path = tmp_path / "a.zst"
    path.write_bytes(zstd.compress(b"one\ntwo\n"))
    assert [line.data for line in read_lines(path)] == [b"one", b"two"]
    path.write_bytes(zstd.compress(b"one\ntwo\n")[:-3])
    assert list(read_lines(path))[-1].problem


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "a blank line"),
        (b" \t\r", "a blank line"),
        (b"\0\0\0\0", "only NUL bytes (the file was cut off by a crash)"),
        (b'{"a": 1', "invalid JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"NaN", "not a JSON object"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number with too many digits"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply to be read"),
        (b'{"a":' + b"[" * 150 + b"]" * 150 + b"}", "nested too deeply to be read"),
    ],
)
def test_a_line_that_is_no_object_is_counted_with_the_reason(data: bytes, reason: str) -> None:
    counted = decode(FileLine(1, data))
    assert isinstance(counted, Counted)
    assert counted.reason == reason


def test_an_unterminated_invalid_last_line_may_still_be_written() -> None:
    counted = decode(FileLine(9, b'{"type": "us', is_terminated=False))
    assert counted == Counted(9, "broken", "incomplete last line (the file may still be written)")


def test_an_unterminated_but_whole_last_line_is_read() -> None:
    assert decode(FileLine(9, b'{"a": 1}', is_terminated=False)) == JsonLine(
        9, b'{"a": 1}', {"a": 1}
    )


@pytest.mark.parametrize(
    ("data", "value", "repair"),
    [
        (b'{"a": "\xff"}', {"a": "\ufffd"}, "invalid UTF-8 was replaced"),
        (
            b'{"a": "\\ud800x", "\\uDC00": [1]}',
            {"a": "\ufffdx", "\ufffd": [1]},
            "lone surrogates were replaced",
        ),
        (b'{"a": 1, "a": 2}', {"a": 2}, "a key was given twice; the last one counts"),
        (b'\0\0{"a": 1}', {"a": 1}, "NUL bytes around the line were dropped"),
    ],
)
def test_what_can_be_mended_is_mended_and_named(data: bytes, value: object, repair: str) -> None:
    assert decode(FileLine(1, data)) == JsonLine(1, data, value, repairs=(repair,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": NaN, "b": -Infinity, "c": 1e999}', {"a": "NaN", "b": "-Infinity", "c": "1e999"}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": "x\\u0000y\x01"}', {"a": "x\0y\x01"}),
        (b'\xef\xbb\xbf{"a": 1}\r', {"a": 1}),
    ],
)
def test_what_needs_no_mending_is_read_as_it_is(data: bytes, value: object) -> None:
    assert decode(FileLine(1, data)) == JsonLine(1, data, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1770841013366, 1770841013366),
        (1770841013366.9, 1770841013366),
        ("1770841013366", 1770841013366),
        ("2026-02-11T20:16:53.366Z", 1770841013366),
        ("2026-02-11T21:16:53.366+01:00", 1770841013366),
        ("2026-02-11T20:16:53.366", 1770841013366),
        ("20260211", 1770768000000),
        ("yesterday", None),
        ("", None),
        (True, None),
        (-1, None),
        (10**20, None),
        ([], None),
        ("0001-01-01T00:00:00+23:59", None),
    ],
)
def test_times_are_milliseconds_or_iso_8601(given: object, expected: int | None) -> None:
    assert milliseconds(given) == expected
