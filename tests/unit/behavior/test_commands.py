"""Shell commands: what they are for, which are the same, and what of their failing is constant."""

from __future__ import annotations

import pytest

from smara.behavior.commands import fails_by_nature, head_of, is_of_the_moment, is_same_aim, parse
from smara.behavior.failures import (
    constant_part,
    failed_tests,
    fingerprint,
    telling_line,
    test_verdict,
)


@pytest.mark.parametrize(
    ("line", "text", "purpose"),
    [
        ("cd /w/app && npm run build 2>&1 | tail -20", "npm run build", "check"),
        (
            "CI=1 FOO='a b' .venv/bin/python -m pytest tests -q",
            ".venv/bin/python -m pytest tests -q",
            "test",
        ),
        ("sudo timeout 60 make deploy > /dev/null", "make deploy", "other"),
        ('git add -A && git commit -m "fix: it"', "git add -A && git commit", "commit"),
        ("git commit -F - <<'EOF'\nwhy\nEOF", "git commit -F -", "commit"),
        ("curl -s https://example.org | jq .", "curl -s https://example.org | jq .", "network"),
        ("git checkout -- src/a.py", "git checkout -- src/a.py", "revert"),
        ("gh pr review 12 --approve", "gh pr review 12 --approve", "review"),
        ("rg -n total src", "rg -n total src", "search"),
        ("go test ./...", "go test ./...", "test"),
        ("cargo nextest run", "cargo nextest run", "test"),
        ("mix test test/a_test.exs", "mix test test/a_test.exs", "test"),
        ("git status", "git status", "look"),
    ],
)
def test_a_command_is_read_without_what_only_trims_it(line, text, purpose):
    command = parse(line)
    assert (command.text, command.purpose) == (text, purpose)


@pytest.mark.parametrize("line", ["", "   ", None, 3, "cd /x"])
def test_what_is_no_command_is_none(line):
    assert parse(line) is None


@pytest.mark.parametrize(
    ("failed", "worked", "is_same"),
    [
        ("npm test", "pnpm test", True), ("pytest tests", ".venv/bin/python -m pytest tests", True),
        ("node assets/build.js", "node build.js", True), ("git push", "git push -u origin x", True),
        ("make seed", "make reset", False), ("make seed", "make seed", False), ("ls src",
        "cargo build", False),
        ("git push", "git pull", False), ("docker ps", "docker compose up", False),
        ("git add one.py", "git add two.py", False),
        ("docker compose up", "docker-compose up", True), ("make deploy", "make deploy ENV=dev",
        True),
    ],
)  # fmt: skip
def test_two_commands_have_one_aim_when_they_say_the_same_differently(failed, worked, is_same):
    assert is_same_aim(failed, worked) is is_same


def test_heads_name_the_program_and_what_it_shall_do():
    assert head_of("/usr/bin/git -C x push") == "git push"
    assert head_of("npm run build") == "npm run build"
    assert head_of("") == ""


def test_searching_without_finding_is_no_failure():
    assert fails_by_nature("grep -r x src")
    assert not fails_by_nature("make deploy")


def test_the_line_that_tells_is_found_in_a_long_output():
    noise = "building something\n" * 3_000
    assert telling_line(f"{noise}ModuleNotFoundError: No module named 'yaml'\nmore\n") == (
        "ModuleNotFoundError: No module named 'yaml'"
    )
    assert telling_line("Exit code 1\nsomething odd") == "something odd"
    assert telling_line("") == ""


def test_numbers_times_hashes_and_folders_do_not_change_an_error():
    one = constant_part("/tmp/x1/app.py:31: Error at 2026-01-02T10:00:00 in 3f2a9c1d after 12 ms")
    other = constant_part("/home/u/app.py:7: Error at 2027-05-06T11:11:11 in 99aabb01 after 9 ms")
    assert one == other
    assert fingerprint("Bash", "npm test", "Error 1") != fingerprint(
        "Bash", "npm test", "Failure 1"
    )


@pytest.mark.parametrize(
    ("output", "failed", "verdict"),
    [
        ("41 passed in 2s", False, True), ("1 failed, 40 passed", True, False),
        ("1 failed, 40 passed", False, False),
        ("bash: pytest: command not found", True, None), ("no tests ran in 0.1s", True, None),
        ("5 tests, 0 failures", False, True), ("ok  \tshop/cart\t0.2s", False, True),
        ("--- FAIL: TestX", True, False),
    ],
)  # fmt: skip
def test_a_run_of_tests_is_green_red_or_none_at_all(output, failed, verdict):
    assert test_verdict(output, failed) is verdict


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("FAILED tests/a.py::test_x - ValueError: no\n", ("tests/a.py::test_x", "ValueError: no",
        "tests/a.py")),
        ("--- FAIL: TestCart (0.00s)\n", ("TestCart", "", "")),
        ("test cart::adds ... FAILED\n", ("cart::adds", "", "")),
        ("  ● Cart › adds\n\n    Expected 1\n", ("Cart › adds", "Expected 1", "")),
        ("  1) test adds (CartTest)\n     test/c_test.exs:4\n     no\n", ("adds (CartTest)", "no",
        "test/c_test.exs")),
    ],
)  # fmt: skip
def test_failed_tests_are_named_with_what_is_said_of_them(output, found):
    assert failed_tests(output) == [found]


test_verdict.__test__ = False  # type: ignore[attr-defined]  # a function of ours, not a test


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("building\nError: could not find libfoo\n[test] ERROR task failed\n",
        "Error: could not find libfoo"),
        ("[lint] ERROR task failed", ""),
        ("}\n", ""),
        ("fatal: The branch x has no upstream branch.\nexit status 128",
        "fatal: The branch x has no upstream branch."),
        ("! [rejected] main (fetch first)\nerror: failed to push some refs to 'x'",
        "! [rejected] main (fetch first)"),
        ("[Parser] Warning: could not parse\nError: broken pipe at last",
        "Error: broken pipe at last"),
        ("x" * 900 + " does not exist " + "y" * 900, ""),
    ],
)  # fmt: skip
def test_the_line_that_says_why_is_found_and_none_where_none_says_it(output, line):
    assert telling_line(output) == line


def test_what_stands_between_quotation_marks_is_no_second_command():
    assert parse("python -c 'a; b' && ls").text == "python -c 'a; b'"
    assert not parse("for x in a b; do make $x; done").is_simple


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("mise run test:ci", "test"), ("pnpm --filter web test", "test"), ("just test-all", "test"),
        ("mise run lint", "check"), ("pnpm -r build", "check"), ("git -C /x status", "look"),
    ],
)  # fmt: skip
def test_runners_of_tasks_are_understood(line, purpose):
    assert parse(line).purpose == purpose


def test_two_verbs_of_one_program_have_no_aim_in_common():
    assert not is_same_aim("git status src", "git read-tree src")
    assert is_same_aim("npm run tests", "npm tests")


@pytest.mark.parametrize(
    "command",
    [
        "gh pr create --title 'a long title of a pull request'",
        "git show 1a2b3c4d5e",
        "cat /tmp/x",
        "x " * 90,
    ],
)
def test_a_command_of_the_moment_is_told_apart(command):
    assert is_of_the_moment(command)
    assert not is_of_the_moment("npm run build")
