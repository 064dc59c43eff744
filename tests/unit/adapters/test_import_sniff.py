"""Which format a file is in, and which file goes first."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accounting import Account

from smara.adapters.importer import import_order, read_records, sniff
from smara.adapters.records import Imported

Write = Callable[..., Path]

SPOKEN = {
    "type": "user",
    "sessionId": "s",
    "parentUuid": None,
    "message": {"role": "user", "content": "hi"},
}
PLAIN = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("lines", "format"),
    [
        ([SPOKEN], "claude-code"),
        (
            [
                b"broken",
                {"type": "file-history-snapshot", "snapshot": {}, "isSnapshotUpdate": False},
                SPOKEN,
            ],
            "claude-code",
        ),
        ([{"type": "summary", "summary": "x", "leafUuid": "l"}], "claude-code"),
        ([{"type": "queue-operation", "operation": "enqueue", "sessionId": "s"}], "claude-code"),
        ([PLAIN], "jsonl"),
        ([{"type": "thread", "id": "t"}], "jsonl"),
        ([{"type": "message", "sessionId": "s", **PLAIN}], "jsonl"),
        ([b"\0\xff"], "jsonl"),
        ([], "jsonl"),
    ],
)
def test_a_format_is_known_by_its_first_records(
    write: Write, lines: list[Any], format: str
) -> None:
    assert sniff(write(*lines)) == format


def test_a_compressed_file_is_read_like_a_plain_one(write: Write) -> None:
    path = write(SPOKEN)
    path.write_bytes(gzip.compress(path.read_bytes()))
    (item,) = read_records(path)
    assert isinstance(item, Imported)
    assert item.thread.metadata["host"] == "claude-code"


def test_a_mark_that_an_editor_put_in_front_changes_nothing(write: Write) -> None:
    path = write(b'{"info": {"id": "ses_1", "directory": "/x"},', b' "messages": []}')
    assert sniff(path) == "opencode"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert sniff(path) == "opencode"


def test_the_format_may_be_given(write: Write) -> None:
    (item,) = read_records(write(SPOKEN), format="jsonl")
    assert isinstance(item, Imported)
    assert item.thread.id == "s"
    assert "host" not in item.thread.metadata


def test_files_of_sub_agents_go_before_their_sessions(write: Write) -> None:
    session = write(SPOKEN, name="a.jsonl")
    agent = write({**SPOKEN, "isSidechain": True, "agentId": "x"}, name="b.jsonl")
    plain = write(PLAIN, name="c.jsonl")
    assert import_order([session, agent, plain]) == [agent, session, plain]


def test_an_account_sums_what_became_of_the_lines(write: Write) -> None:
    account = Account.of(read_records(write(PLAIN, b"", {**PLAIN, "created_at": "?"}, {})))
    assert (account.lines, account.imported, account.repaired) == (4, 2, 1)
    assert account.counted["blank", "a blank line"] == 1
