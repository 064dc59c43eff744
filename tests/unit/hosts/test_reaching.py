"""What of our words stands in a host's record of a session: what its hooks told, and nobody's
quotations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.hosts.session import blocks_in

AT, AT_MS = "2026-03-02T09:00:00.250Z", 1_772_442_000_250
ONE, TWO = "<smara-memory>\n- One.\n</smara-memory>", "<smara-memory>\n- Two.\n</smara-memory>"


def attached(kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "attachment",
        "timestamp": AT,
        "attachment": {"type": kind, "hookEvent": "PreToolUse", **fields},
    }


def spoken(role: str, text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {
        "timestamp": AT,
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": content},
    }


def written(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return str(path)


@pytest.mark.parametrize(
    ("record", "blocks"),
    [
        (attached("hook_additional_context", content=[ONE]), [ONE]),
        (
            attached("hook_additional_context", content=[f"{ONE}\n{TWO}", "The build is red."]),
            [ONE, TWO],
        ),
        (spoken("developer", ONE), [ONE]),
        (attached("hook_success", stdout=json.dumps({"additionalContext": ONE})), []),
        (spoken("user", f"What is {ONE}?"), []),
        ({"type": "user", "timestamp": AT, "message": {"role": "user", "content": ONE}}, []),
        ({**attached("hook_additional_context", content=[ONE]), "timestamp": "yesterday"}, []),
        (attached("hook_additional_context", content=["<smara-memory> and no end"]), []),
        ([ONE], []),
        ({"type": "attachment", "attachment": ONE, "payload": [ONE], "timestamp": AT}, []),
    ],
)
def test_words_that_a_hook_told(record, blocks, tmp_path):
    path = written(tmp_path / "t.jsonl", {"type": "mode"}, record)
    assert blocks_in(path) == [(AT_MS, block) for block in blocks]


def test_a_record_that_cannot_be_read_holds_nothing(tmp_path):
    (tmp_path / "damaged").write_bytes(
        b'{"type": "attachment", "<smara-memory>\n\xff<smara-memory>'
    )
    assert blocks_in(str(tmp_path / "damaged")) == []
    assert blocks_in(str(tmp_path / "missing")) == []


def test_copilot_and_gemini_keep_what_hooks_told_within_marks_of_their_own(tmp_path):
    block, at = "<smara-memory>\n- Known.\n</smara-memory>", "2026-11-16T15:00:00.000Z"
    escaped = f"<hook_context>{block.replace('<', '&lt;').replace('>', '&gt;')}</hook_context>"
    guided = (
        f'3 passed\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\n{block}'
    )
    prompt = f"Go on\n\n<system_reminder>\n{block}\n</system_reminder>"
    result = [
        {
            "functionResponse": {
                "id": "c",
                "name": "x",
                "response": {"output": f"3 passed\n\n{escaped}"},
            }
        }
    ]
    records = [
        {
            "type": "user.message",
            "timestamp": at,
            "data": {"content": "Go on", "transformedContent": prompt},
        },
        {
            "type": "tool.execution_complete",
            "timestamp": at,
            "data": {"result": {"content": guided}},
        },
        {"type": "user", "timestamp": at, "content": [{"text": "Go on"}, {"text": escaped}]},
        {
            "type": "gemini",
            "timestamp": at,
            "content": "",
            "toolCalls": [{"id": "c", "result": result}],
        },
        {"type": "user.message", "timestamp": at, "data": {"content": f"What is {block}?"}},
        {"type": "user", "timestamp": at, "content": [{"text": f"What is {block}?"}]},
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    assert [words for _, words in blocks_in(str(path))] == [block] * 4
