"""`smara why` tells what is known about a place, and nothing about another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from smara.memory import open_memory
from smara.messages.models import Part
from tests.surfaces.shell import on_terminal, plain, smara

CART = "def total(items):\n    return sum(items)\n\n\ndef tax(amount):\n    return amount // 5\n"


@pytest.fixture
def shop(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with reasons, a memory, and two files that change together."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("SMARA_PROJECT", "auto")

    def commit(message: str, **files: str) -> None:
        for name, text in files.items():
            (root / "src" / f"{name}.py").write_text(text)
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", *who, "commit", "-q", "-m", message], check=True)

    subprocess.run(["git", "init", "-q"], check=True)
    commit("Add the cart", cart=CART, till="import cart\n\n\ndef pay():\n    return cart.tax(5)\n")
    commit(
        "Round taxes down\n\nThe tax office rounds every line down, because rounding the sum "
        "loses a cent in each bill.",
        cart=CART.replace("amount // 5", "int(amount * 0.2)"),
        till="import cart\n\n\ndef pay():\n    return cart.tax(6)\n",
    )
    said = smara(
        "remember", "Amounts are integer cents, so `tax()` never divides", "--file", "src/cart.py"
    )
    assert said.code == 0
    assert smara("remember", "Till needs a printer", "--file", "src/till.py").code == 0
    assert smara("tasks", "add", "Test the rounding in src/cart.py").code == 0
    assert smara("tasks", "add", "Paint the shop").code == 0
    return root


def test_why_of_a_file_has_memories_reasons_changes_and_tasks(shop):
    seen = plain(on_terminal("why", "src/cart.py").out)
    assert max(map(len, seen.splitlines())) <= 80
    for words in (
        "Know before you change it",
        "Amounts are integer cents, so `tax()` never divides",
        "Why it is so, from the history",
        "The tax office rounds every line down",
        "by      Ann: 2 commits",
        "with    src/till.py (2 of 2)",
        "Test the rounding in src/cart.py",
    ):
        assert words in seen
    assert "printer" not in seen
    assert "Paint" not in seen


def test_why_of_a_line_says_whether_the_reason_is_its_own(shop):
    assert "This line is one of them." in smara("why", "src/cart.py:6").out
    assert "This line is one of them." not in smara("why", "src/cart.py:2").out


def test_why_of_a_line_redacts_it(shop):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (shop / "src" / "till.py").write_text(f'KEY = "{token}"\n')
    seen = smara("why", "src/till.py:1").out
    assert '1  KEY = "[REDACTED:github-token]"' in seen
    assert token not in seen


def test_why_of_a_name_finds_its_place_callers_and_no_other_function(shop):
    assert smara("code", "index").code == 0
    found = smara("why", "tax", "--json").data
    assert (found["path"], found["name"]) == ("src/cart.py", "tax")
    assert found["code"]["usedBy"][0]["path"] == "src/till.py"
    assert [each["content"] for each in found["memories"]] == [
        "Amounts are integer cents, so `tax()` never divides"
    ]
    assert len(found["reasons"]) == 1
    assert smara("why", "total", "--json").data["reasons"] == []


def test_why_of_a_method_has_the_reasons_of_its_lines(shop):
    """Git heads a change inside a class with the name of the class, or with nothing."""
    before = (
        "class Till:\n    def pay(self):\n        return 5\n\n"
        "    def shut(self):\n        return 0\n"
    )
    (shop / "src" / "till.py").write_text(before)
    subprocess.run(["git", "add", "-A"], check=True)
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *who, "commit", "-q", "-m", "Add the till"], check=True)
    (shop / "src" / "till.py").write_text(before.replace("return 0", "return 1"))
    why = (
        "Shut with one\n\nThe drawer opens again when it is shut with zero, because of its spring."
    )
    subprocess.run(["git", *who, "commit", "-qa", "-m", why], check=True)
    assert smara("code", "index").code == 0
    shut, pay = (smara("why", f"Till.{name}", "--json").data["reasons"] for name in ("shut", "pay"))
    assert ["spring" in str(each) for each in shut] == [True]
    assert pay == []


def test_why_of_a_name_without_an_index_says_how_to_make_one(shop):
    said = smara("why", "tax")
    assert said.code == 3
    assert "`smara code index` makes it" in said.err


def test_why_of_a_name_that_is_not_there_offers_names_that_hold_it_and_the_search(shop):
    (shop / "src" / "days.py").write_text(
        "def stickyHeader():\n    pass\n\n\ndef WeekScheduler():\n    pass\n"
    )
    assert smara("code", "index").code == 0
    said = smara("why", "Scheduler")
    assert said.code == 3
    assert "Did you mean WeekScheduler? `smara search Scheduler` looks" in said.err


def test_why_of_a_place_about_which_nothing_is_known_says_so(shop):
    (shop / "src" / "new.py").write_text("x = 1\n")
    said = smara("why", "src/new.py")
    assert said.code == 0
    assert "Nothing is known about it yet" in said.out


def test_why_of_a_file_cites_the_sessions_that_edited_it_and_the_failures_of_its_tests(shop):
    (shop / "tests").mkdir()
    (shop / "tests" / "test_cart.py").write_text(
        "from src.cart import tax\n\n\ndef test_tax():\n    assert tax(5) == 1\n"
    )
    assert smara("code", "index").code == 0
    red = "FAILED tests/test_cart.py::test_tax - assert 1 == 2\n1 failed in 0.1s"
    parts = [
        ("tool_call", {"name": "Edit", "arguments": {"file_path": "src/cart.py"}}),
        ("tool_result", {"text": "done"}),
        ("tool_call", {"name": "Bash", "arguments": {"command": "pytest"}}),
        ("tool_result", {"text": red, "is_error": True}),
    ]
    with open_memory(project="auto") as memory:
        for number, (kind, facts) in enumerate(parts):
            part = Part(kind, call_id=f"c{number // 2}", **facts)
            role = "assistant" if kind == "tool_call" else "tool"
            memory.messages.add(thread_id="monday", role=role, content=[part])
    found = smara("why", "src/cart.py", "--json").data
    assert [each["message"] for each in found["sessions"]] == ["monday:1"]
    assert [(each["test"], each["message"]) for each in found["failures"]] == [
        ("tests/test_cart.py::test_tax", "monday:4")
    ]
    seen = plain(on_terminal("why", "src/cart.py").out)
    assert "Edited in sessions\n  monday:1  just now\n" in seen
    assert "Its tests failed\n  monday:4  just now\n      tests/test_cart.py::test_tax\n" in seen
    assert smara("why", "src/till.py", "--json").data["sessions"] == []


def test_why_of_a_folder_names_its_files_and_answers_about_none_of_them(shop):
    unread = smara("why", "src")
    assert (unread.code, unread.err) == (2, "smara: 'src' is a folder. Name a file in it.\n")
    assert smara("code", "index").code == 0
    for target in ("src", "src/", "./src"):
        refused = smara("why", target)
        assert refused.code == 2
        assert "is a folder of 2 indexed files. Name a file, such as src/cart.py" in refused.err
    assert smara("code", "symbol", "src").code == 2


def test_why_of_a_folder_shows_what_was_said_about_the_folder(shop):
    assert smara("remember", "Everything in src is sold on Sundays", "--file", "src").code == 0
    assert smara("code", "index").code == 0
    found = smara("why", "src")
    assert found.code == 0
    assert "sold on Sundays" in found.out
    assert "integer cents" not in found.out


def test_why_of_a_line_behind_the_end_of_its_file_says_how_long_the_file_is(shop):
    refused = smara("why", "src/cart.py:99")
    assert refused.code == 3
    assert "src/cart.py has no line 99: it has 6 lines." in refused.err
