"""The words of moments: facts on one line, cited, marked where nobody confirmed them, and never
able to break out.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.behavior.habits import KnownFailure
from smara.context.models import BUDGETS, InjectionItem, PointBudget
from smara.context.moments.draft import (
    CLOSING,
    OPENING,
    InjectionLine,
    failure_line,
    fenced,
    make_draft,
    memory_line,
    one_line,
    quoted,
)
from smara.context.moments.tool_calls import call_of, is_worth_saying
from smara.context.moments.triggers import constant_words
from smara.core.memory_block import tokens_of
from smara.core.tokens import counter_for
from smara.knowledge.models import Evidence, TypedMemory
from smara.knowledge.trust import Tellable, Verdict

NASTY = st.text(
    st.characters(codec="utf-8") | st.sampled_from(list("</>&[]#`\"'\n\r\u2028 smara-memory")),
    max_size=200,
)
FAILURE = KnownFailure(
    "npm test",
    "npm: command not found",
    "Bash",
    occurrences=4,
    sessions=3,
    last_seen_at=1_760_000_000_000,
    how="command",
    fix="pnpm test",
    files=(),
    fingerprint="ab12",
)


def memory(**fields) -> TypedMemory:
    made = TypedMemory(
        "0199",
        "m-1a2b",
        "gotcha",
        content="The queue is drained first",
        confidence=0.9,
        tags=(),
        files=("src/q.py",),
        modules=(),
        scope="module",
        source="agent_explicit",
        visibility="project",
        created_at=1_760_000_000_000,
        created_by="ann",
        updated_at=0,
        version=1,
    )
    return replace(made, **fields)


def told(hedge: str | None = None, **fields) -> Tellable:
    return Tellable(memory(**fields), Verdict(True, False, "why"), 0.9, hedge=hedge)


def test_a_confirmed_memory_is_a_plain_sentence_with_id_date_and_place():
    line = memory_line(told(is_verified=True), is_grouped=True)
    assert line == "- The queue is drained first [Memory #m-1a2b, 2025-10-09, src/q.py]"


def test_what_nobody_confirmed_is_a_quotation_that_says_so_with_its_evidence():
    line = memory_line(told(evidence=(Evidence(quote="QueueError"),), session_ids=("a", "b")))
    assert line == (
        '- trap (noted 2025-10-09, 2 sessions, not confirmed): "The queue is drained first" Seen: '
        '"QueueError"'
        " [Memory #m-1a2b, src/q.py]"
    )


def test_lines_of_evidence_are_cited_before_files():
    line = memory_line(told(is_verified=True, evidence=(Evidence.parse("src/q.py@3f2a9c1:10-20"),)))
    assert "src/q.py@3f2a9c1:10-20]" in line


def test_changed_code_is_said_beside_it():
    assert "(the code has changed since)" in memory_line(
        told("the code has changed since", is_verified=True)
    )


@given(NASTY, st.booleans())
def test_no_text_breaks_out_of_its_line_or_its_block(text, is_verified):
    line = memory_line(
        told(content=text, is_verified=is_verified, evidence=(Evidence(quote=text),))
    )
    assert len(line.splitlines()) == 1
    whole = fenced([line])
    assert whole.count(CLOSING) == whole.count(OPENING) == 1
    assert whole.count("[Memory #") == 1


@given(NASTY)
def test_a_quotation_cannot_be_closed_from_inside(text):
    assert quoted(text)[1:-1].count('"') == 0


def test_a_failure_says_how_often_when_why_and_what_worked():
    assert failure_line(FAILURE) == (
        "- `npm test` failed here before (4 times in 3 sessions, last on 2025-10-09; output "
        "said: `npm: command not found`). What worked instead: `pnpm test`. Not confirmed by a "
        "person. [Failure ab12]"
    )
    assert "This error came here before" in failure_line(FAILURE, is_error=True)
    assert "It worked after `make up` had been run." in failure_line(
        replace(FAILURE, how="first", fix="make up")
    )
    missing = replace(FAILURE, tool="Read", command="src/a.py", how="path", fix="lib/a.py")
    assert "The file `src/a.py` was not found (4 times" in failure_line(missing)
    assert "It is at `lib/a.py`." in failure_line(missing)


@pytest.mark.parametrize(
    ("how", "fix", "times", "sessions", "is_worth"),
    [
        ("command", "pnpm test", 1, 1, True), ("first", "make up", 1, 1, True), ("path", "lib/a.py",
        1, 1, True),
        ("edit", None, 9, 9, False), (None, None, 3, 2, True), (None, None, 9, 1, False), (None,
        None, 2, 2, False),
    ],
)  # fmt: skip
def test_a_failure_is_worth_saying_when_another_way_is_known_or_it_comes_again_and_again(
    how, fix, times, sessions, is_worth
):
    given = replace(FAILURE, how=how, fix=fix, occurrences=times, sessions=sessions)
    assert is_worth_saying(given) is is_worth


def test_nothing_said_is_an_order_or_names_a_clock():
    line = memory_line(told(is_verified=True))
    assert not any(word in line for word in ("MUST", "IMPORTANT", "ago", "today"))


@given(
    st.lists(st.text(max_size=120).map(lambda text: " ".join(text.split())), max_size=40),
    st.integers(20, 200),
)
def test_a_draft_keeps_within_its_budget_and_ends_with_something_said(lines, tokens):
    said = [
        InjectionLine(line, InjectionItem("memory", str(number), "why"))
        if number % 3
        else InjectionLine(line)
        for number, line in enumerate(lines)
    ]
    draft = make_draft(said, PointBudget(tokens, 800, 1.0))
    if draft is not None:
        assert draft.tokens <= tokens + 1
        assert len(draft.text) <= 800
        assert draft.items


def test_the_estimate_of_tokens_is_rather_too_high_on_what_is_really_said():
    texts = [
        "- Running `npm test` failed (output said: `bash: npm: command not found`); "
        "what worked: `pnpm test`. [Memory #m-1a2b]",
        "The session store lives in Redis because the load balancer has no state, see "
        "src/auth/session.py:10-20.",
        "重跑测试之前必须先启动数据库。",
        "Les réglages sont lus une fois; un redémarrage est nécessaire après chaque changement.",
    ]
    counter = counter_for("o200k_base")
    for text in texts:
        exact = counter.count(text).tokens
        assert exact <= tokens_of(text) <= 1.7 * exact


def test_every_point_has_its_budget_and_hosts_would_cut_none():
    unasked = [
        BUDGETS[point]
        for point in ("start", "first_message", "before_tool", "after_tool", "between_steps")
    ]
    assert all(each.tokens <= 2_400 and each.characters <= 9_500 for each in unasked)
    assert all(each.seconds <= 0.5 for each in unasked)


@pytest.mark.parametrize(
    ("error", "pieces"),
    [
        ("bash: npm: command not found", ("bash:", "npm:", "command", "found")),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", ("error:", "connect", "econnrefused")),
        ("/tmp/x81/build.rs:7: boom", ("boom",)),
    ],
)
def test_the_constant_pieces_of_an_error_stand_in_it_whatever_varies(error, pieces):
    assert constant_words(error) == pieces
    assert all(piece in error.lower() for piece in pieces)


def test_calls_of_any_host_are_read_in_one_vocabulary():
    assert call_of("exec_command", {"cmd": "npm test"}).command == "npm test"
    assert call_of("read_file", {"path": "a.py"}).files == ("a.py",)
    assert call_of("grep_search", {"query": "x_y"}).pattern == "x_y"
    assert call_of("Bash", {"command": 7}) == call_of("Bash", {})
    assert call_of("WebFetch", {"url": "u"}) == call_of("WebFetch", {})


def test_a_long_text_is_cut_and_says_so():
    assert one_line("word " * 500, 40).endswith("…")
    assert len(one_line("word " * 500, 40)) == 40
