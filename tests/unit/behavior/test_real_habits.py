"""What real sessions have that made-up ones had not: hidden failures, drives, many pages, agents
side by side.
"""

from __future__ import annotations

import pytest

from smara.actions.commands import is_same_aim, read_command
from smara.actions.failures import is_passing, outcome_of
from smara.actions.models import LOOKING, FailedTest
from smara.actions.paths import module_of, project_path, root_of
from smara.actions.reports import failed_tests
from smara.behavior.models import Seen, SignalFinding
from smara.behavior.signals.external_reference import site_of
from smara.behavior.signals.registry import draft_of
from smara.core.events import HostEvent
from tests.agent_events import Script, seen_again


def only(script: Script, kind: str) -> SignalFinding:
    (finding,) = script.findings(kind)
    return finding


def timed(command: str, *seconds: float) -> Script:
    script = Script()
    for number, each in enumerate(seconds):
        script.event(
            "tool_pre", tool="Bash", tool_input={"command": command}, tool_use_id=f"u{number}"
        )
        script.event(
            "tool_post",
            each,
            tool="Bash",
            tool_input={"command": command},
            tool_output="ok",
            tool_use_id=f"u{number}",
        )
    return script


# failures that a pager hides


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        (
            "rtk bun run test 2>&1 | tail -20",
            "error: unrecognized subcommand 'bun'\n\nUsage: rtk <COMMAND>",
            True,
        ),
        ("pnpm test | head -3", "bash: pnpm: command not found", True),
        ("rtk bun run test 2>&1", "error: unrecognized subcommand 'bun'", True),
        ("./rtk.sh 2>&1", "error: unrecognized subcommand 'bun'", False),
        (
            "grep -rn 'command not found' | head",
            "src/a.py:3: raise Absent('command not found')",
            False,
        ),
        ("make test | tail -3", "41 passed in 3.1s", False),
        ("cat log | tail", "error: command not found\n" + "later all went well\n" * 60, False),
    ],
)
def test_a_program_that_did_not_run_has_failed_even_behind_a_pager(command, output, expected):
    event = HostEvent(
        "claude",
        "tool_post",
        "s1",
        at_ms=1,
        tool="Bash",
        tool_input={"command": command},
        tool_output=output,
    )
    assert (outcome_of(event) == "failed") is expected


def test_a_hidden_failure_is_ended_by_what_worked():
    script = (
        Script()
        .run("rtk bun test | tail -5", "error: unrecognized subcommand 'bun'")
        .run("bun test", "3 pass")
    )
    assert only(script, "error_retry").data["fix"] == "bun test"


@pytest.mark.parametrize(
    "line", ["error: could not write index", "fatal: Unable to create '.git/index.lock'"]
)
def test_an_error_that_goes_by_itself_has_no_fix(line):
    assert is_passing(line)
    finding = only(Script().fail("git stash", line).run("git stash -u", "Saved"), "error_retry")
    assert draft_of(finding, seen_again(finding, 2)) is None


# paths of another system


def test_paths_with_drives_are_paths_of_the_project():
    root = root_of("D:\\shop")
    assert project_path("D:\\shop\\src\\pay\\card.py", root) == "src/pay/card.py"
    assert project_path("d:/shop/src/pay/card.py", root) == "src/pay/card.py"
    assert project_path("C:\\Windows\\system.ini", root) is None
    assert module_of(project_path("src\\pay\\card.py", root, "D:\\shop")) == "pay"


# commands that are slow each time


def test_a_command_that_is_slow_even_when_it_is_fastest_is_told_with_its_time():
    finding = only(timed("make test", 95, 70), "time_anomaly")
    made = draft_of(finding, seen_again(finding, 3))
    assert made.content == "`make test` takes about 70 s here, by its fastest runs in 3 sessions."
    assert made.data["workaround"].startswith("allow more than 140 s")


def test_sessions_in_which_it_was_fast_count_as_well_and_waiting_for_a_person_is_no_slowness():
    slow, fast = (
        only(timed("make test", 95), "time_anomaly"),
        only(timed("make test", 2), "time_anomaly"),
    )
    assert draft_of(slow, Seen(5, (slow.data, slow.data, fast.data, fast.data, fast.data))) is None
    looked = only(timed("git status", 1, 1, 1, 600), "time_anomaly")
    assert draft_of(looked, seen_again(looked, 5)) is None


# pages


def test_pages_of_one_place_count_together_and_what_is_of_the_moment_does_not():
    assert (
        site_of("https://docs.example.com/api/latest/rum/") == "https://docs.example.com/api/latest"
    )
    assert site_of("https://docs.example.com") == "https://docs.example.com"
    assert site_of("https://github.com/a/b/pull/12") is None
    assert site_of("http://localhost:3000/app") is None
    pages = [
        only(
            Script()
            .edit("src/pay/card.py")
            .tool("WebFetch", "t", url=f"https://pay.example/docs/api/{each}"),
            "external_reference",
        )
        for each in ("cards", "refunds", "payouts")
    ]
    assert len({each.key for each in pages}) == 1
    made = draft_of(pages[0], Seen(3, tuple(each.data for each in pages)))
    assert made.content == "Work on `pay` consulted https://pay.example/docs/api in 3 sessions."
    assert made.quotes[0] == "https://pay.example/docs/api/cards"


# corrections


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "I was wrong about `--max-bytes` helping the second path — it only triggers batching "
            "in bootstrap.",
            "Not as first assumed (`--max-bytes` helping the second path): it only triggers "
            "batching in bootstrap.",
        ),
        (
            "I misunderstood `Wakeup` — it's meant for the loop, not a general timer.",
            "Not as first assumed (`Wakeup`): it's meant for the loop, not a general timer.",
        ),
    ],
)
def test_a_mistake_that_is_admitted_with_a_dash_is_heard(said, expected):
    finding = only(Script().say(said), "self_correction")
    assert draft_of(finding, Seen(1, (finding.data,))).content == expected


@pytest.mark.parametrize(
    "said",
    [
        "I was wrong about the reviewer — it was a fair point.",
        "I misread the ticket: let me look at it again.",
        "I was wrong — my mistake.",
    ],
)
def test_a_mistake_about_nothing_of_the_code_is_not_remembered(said):
    for finding in Script().say(said).findings("self_correction"):
        assert draft_of(finding, Seen(1, (finding.data,))) is None


# agents that have sessions of their own


def refused(session_id: str, now_ms: int) -> SignalFinding:
    script = Script(session_id, now_ms).read("plan/status.yaml")
    script.tool(
        "Edit",
        error="File has been modified since read",
        file_path="/nowhere/shop/plan/status.yaml",
    )
    return only(script.edit("plan/status.yaml"), "parallel_conflict")


def test_two_sessions_that_were_refused_at_the_same_time_are_in_conflict():
    first, second = refused("s1", 1_760_000_000_000), refused("s2", 1_760_000_004_000)
    assert first.is_proven
    made = draft_of(second, Seen(2, (second.data, first.data)))
    assert (
        made.content
        == "`plan/status.yaml` was changed by 2 agents that worked at the same time; give it to "
        "one of them."
    )
    later = refused("s3", 1_760_900_000_000)
    assert draft_of(later, Seen(2, (later.data, first.data))) is None


# test runs


def test_failed_tests_of_go_and_bun_are_named_with_their_reason():
    plain = "--- FAIL: TestRun (0.02s)\n    run_test.go:41: got 3, want 4\nFAIL\n"
    assert failed_tests(plain) == [FailedTest("TestRun", "got 3, want 4", "run_test.go")]
    testify = (
        "--- FAIL: TestSum (0.00s)\n    sum_test.go:7: \n        Error Trace:\t/w/sum_test.go:7\n"
        "        Error:      \tNot equal: expected 4\n"
    )
    assert failed_tests(testify) == [FailedTest("TestSum", "Not equal: expected 4", "sum_test.go")]
    bun = (
        "error: expect(received).toBe(expected)\n\nExpected: 2\n      at a.test.ts:3\n(fail) "
        "cart > adds up [1.20ms]\n"
    )
    assert failed_tests(bun) == [
        FailedTest("cart > adds up", "expect(received).toBe(expected)", "")
    ]


def test_a_test_of_the_changed_file_itself_guards_nothing_unexpected():
    output = "FAILED tests/test_card.py::test_expiry - ValueError: no year\n1 failed"
    script = Script().edit("src/pay/card.py").red(output).edit("src/pay/card.py").green()
    assert script.findings("qa_report") == []
    script = (
        Script()
        .edit("src/pay/card.py")
        .red(output.replace("card", "mail"))
        .edit("src/pay/card.py")
        .green()
    )
    assert only(script, "qa_report").data["test"] == "tests/test_mail.py::test_expiry"


# what is a fix, and what only looks like one


@pytest.mark.parametrize(
    ("failed", "worked", "expected"),
    [
        ("stow --no --verbose .", "scripts/test-filter.sh stow", False),
        ("matugen", "cargo install matugen", False),
        ("pytest", "uv run pytest", True),
        ("ruff check", ".venv/bin/ruff check", True),
        ("go build ./cmd/web/", "/usr/local/go/bin/go build ./cmd/web/", True),
        ("deploy staging eu now", "notify staging", False),
    ],
)
def test_another_program_is_a_fix_only_when_it_is_given_the_same_to_do(failed, worked, expected):
    assert is_same_aim(failed, worked) is expected


@pytest.mark.parametrize(
    "asked", ["workmux list", "entire checkpoint search --help", "docker compose ls", "bd status"]
)
def test_a_program_that_is_asked_how_things_stand_mends_nothing(asked):
    assert read_command(asked).purpose in LOOKING
    script = (
        Script()
        .fail("git fetch origin", "fatal: repository not found")
        .run(asked)
        .run("git fetch origin")
    )
    assert not only(script, "error_retry").data.get("how")


def test_asking_whether_a_program_is_there_is_no_failure():
    assert (
        Script()
        .fail("command -v matugen", "(no output)")
        .run("cargo install matugen")
        .findings("error_retry")
        == []
    )


def test_what_every_toolchain_offers_is_no_recipe_and_what_a_project_chose_is_one():
    def told(*commands: str) -> bool:
        script = Script().edit("src/a.rs")
        for command in commands:
            script.run(command)
        found = [
            each
            for each in script.findings("tool_sequence")
            if len(each.data["steps"]) == len(commands) + 1
        ]
        return any(draft_of(each, seen_again(each, 3)) is not None for each in found)

    assert not told("cargo check", "cargo clippy")
    assert not told("go build ./...", "go test ./...")
    assert told("cargo check", "cargo deny check")
    assert told("mise run fmt", "mise run lint")


def test_a_manifest_that_changes_beside_a_file_needs_more_than_two_sessions():
    finding = only(Script().edit("src/plugin.js").edit("package.json"), "config_touch")
    two, three = ({"days": days, "edit_sessions": {"src/plugin.js": days}} for days in (2, 3))
    assert draft_of(finding, seen_again(finding, 2, **two)) is None
    assert draft_of(finding, seen_again(finding, 3, **three)) is not None
