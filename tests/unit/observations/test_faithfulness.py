"""A reply must be about what was said: its names and numbers are looked up, and enough of it must
be told.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import BadReplyError
from smara.observations.models import Note, ObservationDraft
from smara.observations.reply.check import (
    check_condensed_size,
    check_facts,
    check_language,
    check_observed_size,
)
from smara.observations.reply.mentions import (
    SourceText,
    files_in,
    lines_in,
    mentions_in,
    plain_number,
)
from smara.observations.reply.parse import parse_reply
from tests.unit.observations.replies import GOOD, conversation, reading

SOURCE = SourceText(each.raw_content for each in conversation())


def note(text, priority="medium", details=()):
    return Note(priority, "note", text, said_at=0, details=details)


def draft(*texts):
    return ObservationDraft(tuple(note(text) for text in texts))


def refused(check, *arguments):
    with pytest.raises(BadReplyError) as caught:
        check(*arguments)
    return caught.value.reason


# facts


def test_reply_whose_names_and_numbers_are_in_the_messages_is_kept_as_it_is():
    found = parse_reply(GOOD, reading())
    assert check_facts(found, SOURCE) is found


def test_reply_about_another_conversation_is_refused():
    other = draft(
        "User asked to migrate billing/invoices.rb to Sidekiq 7.2",
        "Agent wrote InvoiceWorker in app/workers/invoice_worker.rb",
        "Tests: 318 pass",
        "Agent ran bundle exec rspec spec/workers/invoice_worker_spec.rb",
    )
    assert refused(check_facts, other, SOURCE) == "unfounded"


def test_invented_line_is_left_out_of_a_good_reply():
    found = parse_reply(GOOD, reading())
    invented = note("Agent wrote InvoiceWorker in app/workers/invoice_worker.rb:318")
    checked = check_facts(ObservationDraft((*found.notes, invented)), SOURCE)
    assert checked.notes == found.notes
    assert len(checked.warnings) == 1


def test_single_name_that_was_written_otherwise_does_not_cost_the_reply():
    found = parse_reply(GOOD, reading())
    paraphrase = note("Agent fixed authenticateUser() with a NullCheck")
    assert paraphrase in check_facts(ObservationDraft((*found.notes, paraphrase)), SOURCE).notes


@pytest.mark.parametrize(
    "text",
    [
        "typescript",
        "TypeScript",
        "Src/Auth/Login.ts:45",
        "authenticate_user",
        "login.ts",
        "41 passed",
        "Express",
        "3 files, 7 runs",
    ],
)
def test_spelling_and_shortening_are_no_invention(text):
    assert check_facts(draft(f"Agent noted {text}"), SOURCE).notes


def test_dates_and_times_are_not_looked_up():
    assert mentions_in("User is away 2031-03-10..2031-03-16 at 10:30") == ((), ())


@pytest.mark.parametrize(
    ("text", "names", "numbers"),
    [
        ("Agent set REQUEST_TIMEOUT to 30,000 ms in .env", ("REQUEST_TIMEOUT",), ("30000",)),
        ("memory from 2.8 GB to 940 MB", (), ("2.8", "940")),
        ("User said Anna and Ben are in Oslo", (), ()),
        ("Agent installed bcrypt@5.1.0", ("bcrypt@5.1.0",), ()),
        ("see UserService.validate()", ("UserService.validate",), ()),
    ],
)
def test_what_can_be_checked_is_found(text, names, numbers):
    assert mentions_in(text) == (names, numbers)


def test_numbers_are_compared_by_value():
    assert [plain_number(text) for text in ("1,000,000", "1.5", "1,5", "007")] == [
        "1000000",
        "1.5",
        "1.5",
        "007",
    ]


def test_invented_current_task_is_left_out():
    found = parse_reply(GOOD, reading())
    astray = replace(
        found,
        current_task="Primary: port billing/invoices.rb to Sidekiq_7 in "
        "app/workers/invoice_worker.rb",
    )
    checked = check_facts(astray, SOURCE)
    assert (checked.current_task, checked.notes) == (None, found.notes)
    assert len(checked.warnings) == 1


# files and lines


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("src/auth/login.ts:45-60 and `tests/a_test.py`", ("src/auth/login.ts", "tests/a_test.py")),
        (
            "/abs/path/x.go, ~/notes.md, C:\\work\\a.cs",
            ("/abs/path/x.go", "~/notes.md", "C:\\work\\a.cs"),
        ),
        ("Node.js 20, bcrypt.compare(), z.string, v2.1.0, e.g. this", ()),
        ("https://example.com/a.html and http://x.y/z.js", ()),
        ("Dockerfile, docker/Dockerfile and .env", ("Dockerfile", "docker/Dockerfile", ".env")),
        ("POST /api/auth/login", ()),
        ("src/utils/ and lib/", ("src/utils/", "lib/")),
        ("package.json twice: package.json.", ("package.json",)),
    ],
)
def test_files_are_found_and_nothing_else(text, files):
    assert files_in(text) == files


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a.ts:45-60", (45, 60)),
        ("a.ts:45: missing", (45,)),
        ("lines 7–9, line 12, L3", (7, 9, 12, 3)),
        ("at 10:30, 2025-12-04", ()),
        ("localhost:8080/x", (8080,)),
        ("a.ts:45.", (45,)),
        ("ratio 1:2.5", ()),
    ],
)
def test_line_numbers_are_found(text, lines):
    assert lines_in(text) == lines


# language


RUSSIAN = "Пользователь попросил исправить ошибку входа в систему и добавить тесты"
CHINESE = (
    "用户要求修复登录错误并添加测试用例,代理运行了全部测试并确认通过,然后提交了更改并推送到远程仓库"
)


@pytest.mark.parametrize("text", [RUSSIAN, CHINESE])
def test_script_that_nobody_used_is_refused(text):
    assert (
        refused(
            check_language, [note(text)], "please fix the login bug and add tests, then push it"
        )
        == "wrong_language"
    )


@pytest.mark.parametrize(
    "text",
    [
        RUSSIAN,
        CHINESE,
        "修正してください。ログインのバグを直してテストを追加し、そのあと全部を実行してから報告してください",
    ],
)
def test_language_of_the_conversation_is_accepted(text):
    check_language([note(f"User asked to {text}")], text)


def test_english_notes_of_another_language_are_accepted():
    check_language(
        [note("User asked to fix the login bug and to add tests for the session cookie")], RUSSIAN
    )


def test_foreign_quote_in_a_short_note_is_accepted():
    check_language([note('User asked what "重跑" means')], "what does it mean")


# size


def test_one_line_for_a_long_history_is_shrunken():
    assert refused(check_observed_size, draft("User asked to fix it"), 30_000) == "shrunken"
    check_observed_size(draft("User asked to fix it"), 500)
    check_observed_size(draft("User asked to fix it. " * 40), 30_000)


def many(count, priority="high"):
    return [
        note(
            f"Agent wrote handler_{at}() in src/module_{at}.py:{at}0 for the billing feature",
            priority,
        )
        for at in range(count)
    ]


def test_reflection_that_lost_the_important_names_is_shrunken():
    summary = draft("Agent wrote many handlers for the billing feature in src/module_1.py")
    assert refused(check_condensed_size, summary, many(20)) == "shrunken"
    check_condensed_size(summary, many(20, "low"))


def test_reflection_in_which_next_to_nothing_is_left_is_shrunken():
    assert refused(check_condensed_size, draft("Agent worked"), many(300, "low")) == "shrunken"


def test_reflection_that_keeps_the_names_is_accepted():
    names = ", ".join(f"handler_{at}() in src/module_{at}.py" for at in range(20))
    check_condensed_size(draft(f"Agent wrote for billing: {names}"), many(20))


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_mentions_of_any_text_are_found_without_failing(text):
    mentions_in(text)
    files_in(text)
    lines_in(text)
    assert SourceText([text]).has_name("") in (True, False)
