"""Outputs: exit codes, the line that says what went wrong, the reports of test runs."""

from __future__ import annotations

import re

import pytest

from smara.actions.failures import (
    constant_part,
    failure_in,
    fingerprint,
    outcome_of,
    read_outcome,
    telling_line,
)
from smara.actions.models import FailedTest
from smara.actions.reports import are_tests_green, failed_tests, read_test_run
from smara.actions.tool_output import error_of, exit_code, host_exit_code
from smara.core.events import HostEvent
from smara.observations.offline.calls import read_run
from smara.observations.offline.exchanges import ToolCall
from smara.observations.offline.notes import PathShortener

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: bad'


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Exit code 1\nboom", 1),
        ("boom\nExit Code: 1", 1),
        ("Process exited with code 2\nboom", 2),
        ("boom\n<exited with exit code 3>", 3),
        ("boom\n<shellId: 7 completed with exit code 0>", 0),
        ("exit status 2\nboom", 2),
        ("make: *** [x] Error 2\nexit status 2", 2),
        ("[exit code: 1]\nboom", 1),
        ('{"output":"boom","metadata":{"exit_code":1}}', 1),
        ("Command failed with exit code 1", 1),
        ("error Command failed with exit code 1.", 1),
        ("<exit_code>1</exit_code>\nboom", 1),
        ("Wall time: 1 s\nProcess exited with code 0\nOutput:\nexit status 9", 0),
        ("Command: make\nOutput: boom\nExit Code: 2\nSignal: (none)", 2),
        ("Exit code -1\nkilled", -1),
        ("the handler returns exit code 1 on purpose\nall went well", None),
        ("a\n" * 400 + "exit status 1\n" + "b\n" * 400, None),
        ("exit code 1 is what it ends with\nfine", None),
        ("", None),
    ],
)
def test_the_exit_code_of_an_output_is_read_alike_for_every_host(output, code):
    assert exit_code(output) == code
    event = HostEvent("claude", "tool_post", "s", at_ms=1, tool="Bash", tool_output=output)
    assert (outcome_of(event) == "failed") is (code not in (None, 0))


OUTCOMES = [
    # what a program or the shell says of its own failure
    ("make", "make: *** [Makefile:3: all] Error 2", "failed"),
    ("make test 2>&1 | tail -5", "make: *** [test] Error 1", "failed"),
    ("make", "make: Nothing to be done for 'all'.", "ok"),
    ("./run.sh", "bash: ./run.sh: Permission denied", "failed"),
    ("go build", "go: command not found", "failed"),
    ("npm ci", "npm ERR! code ERESOLVE", "failed"),
    ("docker ps", "Cannot connect to the Docker daemon", "failed"),
    ("curl -s x", "curl: (7) Failed to connect", "failed"),
    ("psql", "psql: error: connection refused", "failed"),
    ("psql -c 'select 1'", " msg\n ERROR: x\n(1 row)", "ok"),
    ("terraform apply", "Error: Invalid provider\n", "failed"),
    ("git push", "! [rejected] main -> main (non-fast-forward)\nerror: failed to push some refs",
     "failed"),
    ("git push || git push -f", "error: failed to push some refs\n+ main -> main", "unknown"),
    ("pytest -q && git push", "5 passed in 0.1s\n ! [rejected] main -> main", "failed"),
    ("cat missing; pytest -q", "cat: missing: No such file or directory\n5 passed in 0.1s", "ok"),
    ("cd /nowhere", "bash: cd: /nowhere: No such file or directory", "failed"),
    ("python3 x.py", "python3: can't open file '/w/x.py': [Errno 2] No such file", "failed"),
    ("tar xf a.tar", "tar: Removing leading `/' from member names", "ok"),
    # reports of tests, also where another command has the exit code
    ("pytest -q", "1 failed, 3 passed in 0.1s", "failed"),
    ("pytest -q", "FAILED tests/a.py::test_b - assert 1 == 2\n1 failed in 0.1s", "failed"),
    ("npm test", "Tests: 1 failed, 3 passed, 4 total", "failed"),
    ("pytest || true", "1 failed, 3 passed", "failed"),
    ("mix test | tail", "58 tests, 1 failure", "failed"),
    ("bun test | tail", "3 pass\n1 fail", "failed"),
    ("pytest -q", "ERROR root: a line of a log\n12 passed in 0.2s", "ok"),
    # the exit code of the host, and what compilers and checkers print
    ("ls", "Exit code 2\nls: cannot access 'x'", "failed"),
    ("cargo build", "error[E0425]: cannot find value `x`\n --> src/main.rs:2:5", "failed"),
    ("npx tsc --noEmit | head", "src/a.ts(3,5): error TS2345: Argument of type X", "failed"),
    ("mypy src | tail -1", "Found 3 errors in 2 files (checked 9 source files)", "failed"),
    ("npm run build | tail -3", "0 errors, 0 warnings", "ok"),
    # a program may print an error and go on, or print what others said
    ("python x.py", TRACEBACK, "unknown"),
    ("python x.py 2>&1 | tail -5", TRACEBACK, "failed"),
    ("python x.py 2>&1 | tail -5", f"{TRACEBACK}\nwent on", "unknown"),
    ("./deploy.sh", "Error: could not reach host", "unknown"),
    ("cat log.txt", "2024 ERROR something bad\nfatal: x", "ok"),
    ("git log -3", "commit abc\n    fatal: mend the error", "ok"),
    ("git commit -m x", "[main 1a2b3c4] error: say fatal: x\n 1 file changed", "ok"),
    ("curl -s http://x/api", '{"error": "not found"}', "ok"),
    ("ls docs || echo no docs", "ls: cannot access 'docs': No such file\nno docs", "ok"),
    ("grep -r foo src", "", "ok"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "output", "outcome"), OUTCOMES)
def test_a_command_ends_alike_for_whoever_reads_it(line, output, outcome):
    given = {"command": line}
    event = HostEvent(
        "claude", "tool_post", "s", at_ms=1, tool="Bash", tool_input=given, tool_output=output
    )
    run = read_run(ToolCall("Bash", given, output, seq=1, at=1), PathShortener(""))
    assert run is not None
    assert (read_outcome(line, output), outcome_of(event), run.outcome) == (outcome,) * 3


_LS = "ls: cannot access 'nothere': No such file or directory"
_FIND = "find: '/proc/1/task': Permission denied\nfind: '/root': Permission denied\n"
LOOKS = [
    ("find / -name x.py 2>&1 | head", f"{_FIND}/home/me/x.py\n", "ok"),
    ("find / -name x.py 2>&1 | head", f"{_FIND * 99}\n\n/home/me/x.py\n", "ok"),
    ("find / -name x.py 2>&1 | head", _FIND, "failed"),
    ("find / -name x.py 2>&1", _FIND * 99, "failed"),
    ("grep -rn foo . 2>&1 | head", "grep: ./sock: Permission denied\n./a.py:3:foo\n", "ok"),
    ("grep -rn foo a b", "grep: a: No such file or directory\ngrep: b: No such file", "failed"),
    ("grep --foo x a", "grep: unrecognized option '--foo'\nUsage: grep [OPTION]...", "failed"),
    ("rg foo src old", "rg: old: No such file or directory (os error 2)\nsrc/a.py:1:foo", "ok"),
    ("cat a b", "cat: a: No such file or directory\nb has 1 line\n", "ok"),
    ("head -2 a b", "head: cannot open 'a' for reading: No such file\n==> b <==\n1", "ok"),
    ("wc -l a b", "wc: a: No such file or directory\n  3 b\n  3 total", "ok"),
    ("sed -n 1,5p a b", "sed: can't read a: No such file or directory\nimport os", "ok"),
    ("tail -5 x", "tail: cannot open 'x' for reading: No such file or directory\n", "failed"),
    ("tail -f x", "tail: cannot open 'x' for reading: No such file\ntail: no files remaining",
     "failed"),
    ("du -sh * 2>&1 | sort -h | tail", "du: cannot read directory 'l': Permission denied\n4K\ta",
     "ok"),
    ("lsof -i :80", "lsof: WARNING: can't stat() fuse file system /x\n  Output may be incomplete.",
     "ok"),
    ("ls src nothere", f"{_LS}\nsrc:\na.py\n", "ok"),
    ("ls nothere", f"{_LS}\n", "failed"),
    ("ls --foo", "ls: unrecognized option '--foo'\nTry 'ls --help' for more information.",
     "failed"),
    ("stat a b", "stat: cannot statx 'a': No such file or directory\n  File: b\n  Size: 1", "ok"),
    ("git log x..y", "fatal: ambiguous argument 'x..y': unknown revision\nUse '--' to separate",
     "failed"),
    ("git status", "fatal: not a git repository\nStopping at filesystem boundary", "failed"),
    ("git show HEAD:x", "fatal: cannot open '.git/x': Permission denied\nsee above", "failed"),
    ("rg foo src; ls", "bash: rg: command not found\na.py\nb.py", "failed"),
    ("jq . a.json", "jq: error: syntax error, unexpected end\njq: 1 compile error", "failed"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "output", "outcome"), LOOKS)
def test_a_look_that_shows_something_has_not_failed(line, output, outcome):
    assert read_outcome(line, output) == outcome


MADE = "[main abc1234] fix: error: fatal: x\n 1 file changed, 2 insertions(+)\n"
PUSHED = "To github.com:a/b\n   111..222  main -> main\n"
REJECTED = "To github.com:a/b\n ! [rejected] main -> main (fetch first)\nerror: failed to push"
COMMITS = [
    ("git commit -am x", MADE, "ok"),
    ("git add -A && git commit -m 'fix: error: x'", MADE, "ok"),
    ("git commit -am x && git push 2>&1 | tail -3", f"{MADE}{PUSHED}", "ok"),
    ("git commit -am x && git push 2>&1 | tail -3", f"{MADE}{REJECTED}", "failed"),
    ("git commit -am x && git push", f"{MADE}{REJECTED}", "failed"),
    ("git commit -am x; git push", f"{MADE}{REJECTED}", "failed"),
    ("git commit -am 'a; b' && git push || true", f"{MADE}fatal: unable to access 'x'", "failed"),
    ("git commit -m \"$(cat <<'EOF'\nFix a; b\nEOF\n)\" && git push | tail -3",
     f"{MADE}{REJECTED}", "failed"),
    ("git commit -am x && npm test 2>&1 | tail -3", f"{MADE}Tests: 1 failed, 3 total", "failed"),
    ("git commit -am x && npm test 2>&1 | tail -3", f"{MADE}Tests: 3 passed, 3 total", "ok"),
    ("pytest -q | tail -1; git commit -am x", f"1 failed, 3 passed in 1s\n{MADE}", "failed"),
    ("pytest -q | tail -1 && git commit -am x", f"3 passed in 1s\n{MADE}", "ok"),
    ("npm run build && git commit -am x", f"error: none of note\n{MADE}", "ok"),
    ("git commit -am x && npx tsc --noEmit | head", f"{MADE}a.ts(3,5): error TS2345: no", "failed"),
    ("git commit -am x && ./deploy.sh", f"{MADE}Error: could not reach host", "ok"),
    ("git commit -am x && git log -3", f"{MADE}fatal: a subject", "ok"),
    ("git commit -am x && git status", f"{MADE}On branch error", "ok"),
    ("git commit -am x && git tag v1 && git push --tags | tail", f"{MADE}{REJECTED}", "failed"),
    ("git commit -am x && gh pr create | cat", f"{MADE}https://github.com/a/b/pull/3", "ok"),
    ("git commit -am x && make | tail -2", f"{MADE}make: *** [all] Error 2", "failed"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "output", "outcome"), COMMITS)
def test_a_commit_speaks_for_itself_and_for_what_had_to_work_before_it(line, output, outcome):
    assert read_outcome(line, output) == outcome
    code = 0 if outcome == "ok" or "|" in line else None  # a pipe has a code of its own
    assert read_outcome(line, output, code=code) == outcome


def test_an_exit_code_is_believed_where_it_is_the_commands_own():
    assert read_outcome("python x.py", TRACEBACK, code=0) == "ok"
    assert read_outcome("pytest | tail -2", "1 failed in 1s", code=0) == "failed"
    assert read_outcome("grep -r foo src", "", is_error=True) == "failed"


def test_what_a_program_says_in_its_last_line_is_no_word_of_the_host():
    assert host_exit_code("read this log\nexit status 1") is None
    assert error_of("read this log\nexit status 1") is None
    assert error_of("boom\n<exited with exit code 3>") == "boom"


def test_the_code_of_a_page_is_no_exit_code():
    page = {"code": 200, "codeText": "OK", "result": "words", "url": "https://example.org"}
    assert error_of(page, "WebFetch") is None
    assert error_of({"code": 3, "output": "boom"}, "Bash") == "boom"


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
    assert are_tests_green(output, failed) is verdict


LOG = "2026-03-11 ERROR 3 failed logins of bob\nFAIL: this message is expected\n"
REPORTS = [
    ("npm test", "  ✓ shows 2 failed jobs (3 ms)", "Tests:       2 passed, 2 total",
     "Tests:       1 failed, 1 passed, 2 total"),
    ("npx jest", "  ✓ Tests 2 failed jobs", "Test Suites: 1 passed, 1 total\nTests: 1 passed",
     "Test Suites: 1 failed, 1 passed, 2 total\nTests: 1 passed, 1 total"),
    ("npx vitest run", " ✓ a.test.ts > reports 3 failures", " Tests  4 passed (4)",
     " Tests  1 failed | 3 passed (4)"),
    ("npx vitest run", " ✓ a.test.ts > 3 failed", " Tests  4 passed (4)",
     " Tests  4 passed (4)\n     Errors  1 error"),
    ("npm run test", "web:test: ✓ shows 2 failed jobs", "web:test: Tests: 2 passed, 2 total",
     "web:test: Tests: 1 failed, 2 total"),
    ("docker compose run web pytest", "web-1  | 1 failed login", "web-1  | 3 passed in 0.1s",
     "web-1  | 1 failed, 3 passed in 0.1s"),
    ("npx mocha", "    2 failing jobs are shown\n      ✔ 1 failing", "  2 passing (9ms)",
     "  2 passing (9ms)\n  1 failing"),
    ("npx playwright test", "  ✓ 1 a.spec.ts › 2 failed jobs", "  5 passed (3s)",
     "  1 failed\n    a.spec.ts\n  5 passed (3s)"),
    ("node --test", "✔ shows 2 failed jobs (1ms)", "ℹ pass 3\nℹ fail 0", "ℹ pass 2\nℹ fail 1"),
    ("npm run test:unit", "ok 1 shows 2 failed jobs", "# tests 3\n# pass  3",
     "# pass  2\n# fail  1"),
    ("bun test", "(pass) shows 2 failed jobs [0.1ms]", " 3 pass\n 0 fail", " 2 pass\n 1 fail"),
    ("deno test", "shows 2 failed ... ok (1ms)", "ok | 3 passed | 0 failed (10ms)",
     "FAILED | 1 passed | 1 failed (10ms)"),
    ("go test -v ./...", "    x_test.go:3: gave up after 3 failed attempts\n--- PASS: TestX (0.0s)",
     "ok  \tpkg\t0.1s", "FAIL\tpkg\t0.1s"),
    ("go test ./...", "log: 3 failures", "ok  \tone\t0.1s",
     "ok  \tone\t0.1s\nFAIL\ttwo [build failed]"),
    ("go test ./... | grep -v FAIL", "log: 3 failures", "ok  \tone\t0.1s",
     "--- FAIL: TestX (0.00s)\nok  \tone\t0.1s"),
    ("rspec -fd", "Login\n  locks after 5 failed attempts", "3 examples, 0 failures",
     "3 examples, 1 failure"),
    ("rspec -fd", "  3 failed attempts lock\n  2 errors in 5 s", "3 examples, 0 failures",
     "3 examples, 1 failure"),
    ("rails test", "SIGNUP: 2 failed", "3 runs, 3 assertions, 0 failures, 0 errors, 0 skips",
     "3 runs, 3 assertions, 1 failures, 0 errors, 0 skips"),
    ("pytest -v", "a.py::test_x PASSED\n-- live log --\nWARNING 1 failed login", "3 passed in 0.1s",
     "1 failed, 3 passed in 0.1s"),
    ("pytest --cov", "2 failed logins", "=== 3 passed, 2 warnings in 0.1s ===",
     "FAIL Required test coverage of 90% not reached. Total: 80%\n=== 3 passed in 0.1s ==="),
    ("python -m unittest", "FAIL: expected", "Ran 3 tests in 0.1s\n\nOK",
     "Ran 3 tests in 0.1s\n\nFAILED (failures=1)"),
    ("behave", "2 failed logins", "1 feature passed, 0 failed, 0 skipped",
     "0 features passed, 1 failed, 0 skipped"),
    ("mvn test", "1 failure in a log", "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
     "[ERROR] Tests run: 5, Failures: 0, Errors: 1, Skipped: 0"),
    ("gradle test", "2 failures in a log", "5 tests completed, 0 failed",
     "5 tests completed, 1 failed"),
    ("sbt test", "- handles 2 failures", "[info] Passed: Total 3, Failed 0, Errors 0, Passed 3",
     "[error] Failed: Total 3, Failed 1, Errors 0, Passed 2"),
    ("dotnet test", "2 failed logins", "Test summary: total: 3, failed: 0, succeeded: 3",
     "Test summary: total: 3, failed: 1, succeeded: 2"),
    ("cargo test", "test two_failed ... ok\nsaw 2 failed jobs",
     "test result: ok. 3 passed; 0 failed; 0 ignored",
     "test result: FAILED. 2 passed; 1 failed; 0 ignored"),
    ("cargo nextest run", "3 failed tries",
     "Summary [ 0.01s] 3 tests run: 3 passed, 0 skipped",
     "Summary [ 0.01s] 3 tests run: 2 passed, 1 failed, 0 skipped"),
    ("mix test", "  * test 2 failures are shown (0.1ms)", "5 tests, 0 failures",
     "5 tests, 1 failure"),
    ("make test-bats", " ✓ shows 2 failed jobs", "3 tests, 0 failures", "3 tests, 1 failure"),
    ("ctest", "Test: 2 failed jobs ... Passed", "100% tests passed, 0 tests failed out of 1",
     "50% tests passed, 1 tests failed out of 2"),
    ("make test", "[ RUN      ] Job.Shows 2 failed", "[  PASSED  ] 3 tests.",
     "[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:"),
    ("flutter test", "00:01 +1: shows 2 failed jobs", "00:02 +3: All tests passed!",
     "00:02 +2 -1: Some tests failed."),
    ("make test", "ok 1 - 2 failed jobs", "All tests successful.\nResult: PASS", "Result: FAIL"),
    ("make test", "2 failed jobs", "3 successes / 0 failures / 0 errors / 0 pending",
     "2 successes / 1 failure / 0 errors / 0 pending"),
    ("swift test", "2 failed jobs", "Executed 3 tests, with 0 failures (0 unexpected) in 0.1 s",
     "Executed 3 tests, with 1 failure (0 unexpected) in 0.1 s"),
]  # fmt: skip


TWO_RUNS = [
    ("(pytest -q; pnpm -r test) 2>&1 | tail -30", "12 passed in 1.02s",
     "packages/a test:       Tests  {} | 3 passed (4)\npackages/a test: Done",
     "1 failed", "0 failed"),
    ("make test 2>&1 | tail", "ok  \texample.com/a\t0.003s", "[0] Tests: {}, 5 passed, 6 total",
     "1 failed", "0 failed"),
    ("gotestsum ./... | tail", "ok  \tpkg\t0.1s", "DONE 5 tests, {} in 0.1s",
     "1 failure", "0 failures"),
    ("npx cypress run | tail -40", "  3 passing (2s)", "    {}  00:05  8  7  1",
     "✖  1 of 2 failed (50%)", "✔  All specs passed!"),
    ("npx jest | tail -3", "Tests:       5 passed, 5 total", "Jest: {}",
     "1 test suite failed to run", "done"),
    ("npx ava | tail", "  3 tests passed", "  {}", "1 uncaught exception", "0 uncaught exceptions"),
    ("npm test | tail", "12 passed in 1.02s", "{}", "# failed 1 test", "# failed 0 tests"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "other", "report", "red", "green"), TWO_RUNS)
def test_a_green_summary_silences_no_report_of_another_run(line, other, report, red, green):
    shown = f"{other}\n{report}"
    assert read_outcome(line, shown.format(red)) == "failed"
    assert are_tests_green(shown.format(red), failed=False, is_hidden=True) is False
    assert are_tests_green(shown.format(green), failed=False, is_hidden=True) is True


@pytest.mark.parametrize(
    "red",
    ["web: Tests:       1 failed, 5 passed, 6 total", "pkg test:unit: 1 failed, 3 passed in 1s",
     "FAIL! -- 4 Passed | 1 Failed | 0 Pending | 0 Skipped", "[1] 1 failed, 3 passed in 1s"],
)  # fmt: skip
def test_a_later_green_summary_silences_no_red_one(red):
    output = f"{red}\n3 failed logins\nok  \tx/y\t0.01s"
    assert are_tests_green(output, failed=False, is_hidden=True) is False
    assert are_tests_green(output.replace(red, ""), failed=False, is_hidden=True) is True


@pytest.mark.parametrize(("line", "noise", "green", "red"), REPORTS)
def test_a_title_or_a_log_line_that_counts_failures_makes_no_run_red(line, noise, green, red):
    for before in (noise, LOG + noise):
        for shown in (line, f"{line} 2>&1 | tail -20"):
            assert read_outcome(shown, f"{before}\n{green}") in ("ok", "unknown")
            assert read_outcome(shown, f"{before}\n{red}\n{noise}") == "failed"
        assert are_tests_green(f"{before}\n{green}", failed=False)
        assert are_tests_green(f"{before}\n{red}", failed=False) is False
    run, red_run = (
        read_test_run([*noise.split("\n"), *report.split("\n")]) for report in (green, red)
    )
    assert run is not None
    assert red_run is not None
    assert (run.has_failures, red_run.has_failures) == (False, True)


def test_colors_hide_no_summary():
    green = "\x1b[32m✓ shows 2 failed jobs\x1b[39m\n\x1b[1mTests: \x1b[22m\x1b[32m2 passed\x1b[39m"
    assert read_outcome("npm test", green) == "ok"
    assert read_outcome("npm test", green.replace("2 passed", "2 failed")) == "failed"


@pytest.mark.parametrize(
    "summary",
    [
        "3 runs, 3 assertions, 0 failures, 1 errors, 0 skips",
        "4 tests, 9 assertions, 0 failures, 2 errors, 0 pendings, 0 omissions, 0 notifications",
        "0 failures, 1 errors.",
        "2 tests, 3 assertions, 1 errors, 0 failures.",
        "0 examples, 0 failures, 1 error occurred outside of examples",
        "3 examples, 0 failures, 10 errors, 0 pending",
        "3 successes / 0 failures / 1 error / 0 pending : 0.01 seconds",
        "Ran 3 tests in 0.001 seconds, 2 successes, 0 failures, 1 error",
        "Cases: 3  Tried: 3  Errors: 1  Failures: 0",
        "Tests run: 3, Failures: 0, Errors: 1, Skipped: 0",
    ],
)
def test_errors_without_failures_are_no_green_run(summary):
    clean = re.sub(r"\b(?:10|[12])(?= error)|(?<=Errors: )1", "0", summary)
    assert clean != summary
    for is_hidden in (True, False):
        assert are_tests_green(summary, failed=False, is_hidden=is_hidden) is False
        assert are_tests_green(clean, failed=False, is_hidden=is_hidden) is not False
    assert read_outcome("bin/rails test | tail -1", summary) == "failed"
    assert read_outcome("rake test", summary) == "failed"
    assert read_outcome("rake test", clean) == "ok"


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
    assert failed_tests(output) == [FailedTest(*found)]


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
        ("docs/a.md:148 error MD040 Blocks should have a language\n"
        "husky - pre-commit script failed (code 1)",
        "docs/a.md:148 error MD040 Blocks should have a language"),
        ("The client is not generated!\nTo skip this check, use: git commit --no-verify\n"
        "husky > pre-commit hook failed (add --no-verify to bypass)",
        "The client is not generated!"),
        ("error: hook failed: the key has expired", "error: hook failed: the key has expired"),
    ],
)  # fmt: skip
def test_the_line_that_says_why_is_found_and_none_where_none_says_it(output, line):
    assert telling_line(output) == line


@pytest.mark.parametrize(
    ("output", "summary", "has_failures"),
    [
        ("=== 1 failed, 41 passed in 2.31s ===", "1 failed, 41 passed in 2.31s", True),
        ("Tests:       1 failed, 5 passed, 6 total", "Tests: 1 failed, 5 passed, 6 total", True),
        ("18 tests, 0 failures", "18 tests, 0 failures", False),
        ("14 doctests, 68 tests, 2 failures", "14 doctests, 68 tests, 2 failures", True),
        (
            "test result: ok. 5 passed; 0 failed; 0 ignored",
            "test result: ok. 5 passed; 0 failed; 0 ignored",
            False,
        ),
        ("12 examples, 0 failures", "12 examples, 0 failures", False),
        ("  7 passing (2s)", "7 passing (2s)", False),
        (
            "3 runs, 3 assertions, 0 failures, 1 errors, 0 skips",
            "3 runs, 3 assertions, 0 failures, 1 errors, 0 skips",
            True,
        ),
        ("0 failures, 0 errors.", "0 failures, 0 errors.", False),
        ("OK (5 tests, 9 assertions)", "OK (5 tests, 9 assertions)", False),
        ("Tests run: 5, Failures: 1, Errors: 0", "Tests run: 5, Failures: 1, Errors: 0", True),
        ("ok  \tgithub.com/a/b\t0.010s", "ok github.com/a/b 0.010s", False),
    ],
)
def test_the_count_of_a_test_run_is_its_own_line(output, summary, has_failures):
    run = read_test_run(output.split("\n"))
    assert run is not None
    assert (run.summary, run.has_failures) == (summary, has_failures)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'id'",
        "KeyError: 'id'"),
        ("src/a.ts(3,5): error TS2345: Argument of type X",
        "src/a.ts(3,5): error TS2345: Argument of type X"),
        ("error[E0382]: borrow of moved value: `x`", "error[E0382]: borrow of moved value: `x`"),
        ("npm ERR! code EACCES", "npm ERR! code EACCES"),
        ("working\nfatal: The branch has no upstream branch.",
        "fatal: The branch has no upstream branch."),
        ("** (RuntimeError) no secret", "** (RuntimeError) no secret"),
        ("bash: frobnicate: command not found", "bash: frobnicate: command not found"),
        ("[D] Nested modules could be aliased.\n   lib/a.ex:135:5",
        "[D] Nested modules could be aliased."),
    ],
)  # fmt: skip
def test_of_a_failing_output_the_telling_line_is_found(output, line):
    failure = failure_in(output.split("\n"))
    assert failure is not None
    assert failure.line == line


def test_an_output_without_a_failure_has_none():
    assert failure_in(["Compiling 3 files", "0 errors, 0 warnings", "done"]) is None
