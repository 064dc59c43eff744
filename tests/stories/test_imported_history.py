"""A transcript is brought in, found, compacted, found again, and grows."""

from __future__ import annotations

import json

import smara
from tests.surfaces.shell import smara as shell
from tests.surfaces.shell import spawn

SESSION = "5e551011-0000-4000-8000-00000000000a"


def turn(number: int) -> list[dict[str, object]]:
    """A question and its answer, as a transcript has them."""
    shared = {
        "sessionId": SESSION,
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/app",
        "version": "2.1.39",
    }
    question = f"Why does parse_invoice_{number} fail for an empty file?"
    answer = f"It reads row_{number}[0] in src/invoices/reader_{number}.py; I added a guard."
    return [
        {
            **shared,
            "type": "user",
            "uuid": f"u-{number}",
            "timestamp": f"2026-02-11T10:{number:02}:00Z",
            "message": {"role": "user", "content": question},
        },
        {
            **shared,
            "type": "assistant",
            "uuid": f"a-{number}",
            "timestamp": f"2026-02-11T10:{number:02}:30Z",
            "message": {
                "role": "assistant",
                "id": f"m-{number}",
                "content": [{"type": "text", "text": answer}],
            },
        },
    ]


def test_imported_session_is_found_before_and_after_it_is_compacted(tmp_path, monkeypatch):
    """
    1. A session of forty messages is imported; every line is a message.
    2. A name of its middle is found.
    3. The session is compacted but for the newest ten; a window shows the summaries once each, then
      those ten.
    4. The same search gives the same message.
    5. The session went on; importing again stores the new turn alone.
    6. The compaction is undone: everything is shown whole.
    7. Nothing was changed on the way: each message is as the transcript has it.
    """
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "smara.db"))
    file = tmp_path / "session.jsonl"
    records = [record for number in range(20) for record in turn(number)]

    def write() -> None:
        file.write_text("".join(json.dumps(record) + "\n" for record in records))

    def found() -> list[tuple[str, str]]:
        results = shell("search", "reader_7", "--limit", "1", "--json").data["results"]
        return [(hit["id"], hit["content"]) for hit in results]

    # 1
    write()
    report = spawn("import", str(file), "--json").data["files"][0]
    assert (report["lines"], report["stored"], report["counted"]) == (40, 40, [])

    # 2
    before = found()
    assert [content for _, content in before] == [
        "It reads row_7[0] in src/invoices/reader_7.py; I added a guard."
    ]

    # 3
    done = shell("compact", "--thread", SESSION, "--keep", "10", "--json").data
    assert (done["messagesCompacted"], done["messagesWhole"]) == (30, 10)
    with smara.open(tmp_path / "smara.db") as memory:
        shown = memory.history.window(SESSION)
        assert len(shown) == len(done["compactions"]) + 10

    # 4
    assert found() == before

    # 5
    records += turn(20)
    write()
    assert shell("import", str(file), "--json").data["stored"] == 2
    assert shell("import", str(file), "--json").data["stored"] == 0

    # 6
    for compaction in done["compactions"]:
        assert shell("compact", "--undo", compaction["id"]).code == 0
    with smara.open(tmp_path / "smara.db") as memory:
        assert len(memory.history.window(SESSION)) == 42

        # 7
        texts = [message.raw_content for message in memory.messages.list(thread_id=SESSION)]
    told = [record["message"]["content"] for record in records]  # type: ignore[index]
    assert texts == [each if isinstance(each, str) else each[0]["text"] for each in told]
