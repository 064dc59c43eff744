"""Each signal: when it is seen, what memory it makes, and when it makes none."""

from __future__ import annotations

import pytest

from smara.behavior.models import Seen, SignalFinding
from smara.behavior.promote import taint_of
from smara.behavior.signals.registry import SIGNALS, draft_of, signal_of
from tests.agent_events import Script, seen_again

SCORES = {
    "co_access": (0.91, 3), "self_correction": (0.88, 1), "error_retry": (0.85, 2),
    "parallel_conflict": (0.82, 1),
    "read_abandon": (0.79, 3), "repeated_grep": (0.76, 2), "test_order": (0.74, 3),
    "tool_sequence": (0.73, 3),
    "file_access": (0.72, 3), "step_overrun": (0.71, 3), "backtrack": (0.68, 2),
    "config_touch": (0.66, 2),
    "glob_ignore": (0.64, 2), "context_spike": (0.63, 3), "external_reference": (0.61, 3),
    "import_chase": (0.52, 4),
    "time_anomaly": (0.48, 3),
}  # fmt: skip


def only(script: Script, kind: str) -> SignalFinding:
    found = script.findings(kind)
    assert len(found) == 1, found
    return found[0]


def content(finding: SignalFinding, times: int, **given) -> str:
    made = draft_of(finding, seen_again(finding, times, **given))
    assert made is not None
    return made.content


def test_the_table_has_every_signal_once_with_its_score_and_sessions():
    assert {signal.kind: (signal.value, signal.least_sessions) for signal in SIGNALS} == SCORES
    assert sorted(signal.number for signal in SIGNALS) == list(range(1, len(SCORES) + 1))


def test_the_value_of_a_signal_follows_the_formula():
    for signal in SIGNALS:
        worked = (
            0.5 * signal.diagnostic + 0.3 * signal.relevance + 0.2 * (1 - signal.false_positives)
        )
        assert signal.value == pytest.approx(worked)
        assert signal_of(signal.kind) is signal


# 1 file access


def test_files_read_for_a_module_are_named_when_nearly_every_session_reads_them():
    finding = only(
        Script().read("src/mail/queue.py").read("src/mail/rules.py").edit("src/mail/send.py"),
        "file_access",
    )
    rare = {"module": "mail", "files": ["src/mail/queue.py", "src/mail/rules.py", "docs/x.md"]}
    made = draft_of(finding, Seen(3, (finding.data, finding.data, rare)))
    assert made.type == "prefetch_pattern"
    assert made.data["always_read_files"] == ["src/mail/queue.py", "src/mail/rules.py"]
    assert made.data["session_count"] == 3


def test_a_file_that_fills_the_context_is_none_to_read_for_a_module():
    script = Script().read("src/mail/queue.py").read("src/mail/mail_pb2.py", "x = 1\n" * 10_000)
    script.read("src/mail/rules.py").edit("src/mail/send.py")
    read = only(script, "file_access").data["files"]
    assert [path for path in read if path.endswith(("queue.py", "rules.py", "pb2.py"))] == [
        "src/mail/queue.py",
        "src/mail/rules.py",
    ]


def test_reading_without_changing_anything_is_no_work_on_a_module():
    assert (
        Script().read("src/mail/queue.py").read("src/mail/rules.py").findings("file_access") == []
    )


# 2 co-access


def test_files_that_are_changed_together_depend_on_each_other_in_the_order_they_are_changed():
    finding = only(Script().edit("src/b/schema.py").edit("src/a/client.py"), "co_access")
    assert content(finding, 3) == (
        "When `src/b/schema.py` changes, `src/a/client.py` is changed with it: in 3 of 3 sessions "
        "that changed it."
    )


def test_a_file_that_is_mostly_changed_alone_depends_on_nothing():
    finding = only(Script().edit("src/b/schema.py").edit("src/a/client.py"), "co_access")
    alone = {"src/b/schema.py": 9, "src/a/client.py": 9}
    assert draft_of(finding, seen_again(finding, 3, edit_sessions=alone)) is None


def test_the_file_that_is_never_changed_alone_calls_for_the_other():
    finding = only(Script().edit("src/b/schema.py").edit("src/a/client.py"), "co_access")
    made = draft_of(finding, seen_again(finding, 3, edit_sessions={"src/b/schema.py": 9}))
    assert made.data["trigger_file"] == "src/a/client.py"


def test_a_file_that_every_session_changes_goes_with_none_in_particular():
    finding = only(Script().edit("src/b/schema.py").edit("src/a/hub.py"), "co_access")
    edits = {"src/b/schema.py": 3, "src/a/hub.py": 12}
    assert draft_of(finding, seen_again(finding, 3, edit_sessions=edits, all_sessions=15)) is None
    assert (
        draft_of(finding, seen_again(finding, 3, edit_sessions=edits, all_sessions=60)) is not None
    )


def test_what_was_changed_together_on_one_day_was_one_piece_of_work():
    finding = only(Script().edit("src/b/schema.py").edit("src/a/client.py"), "co_access")
    assert draft_of(finding, seen_again(finding, 3, days=1)) is None


def test_two_files_of_a_dozen_that_are_changed_need_not_belong_together():
    script = Script()
    for number in range(12):
        script.edit(f"src/a/f{number}.py")
    finding = script.findings("co_access")[0]
    assert draft_of(finding, seen_again(finding, 3)) is None
    assert draft_of(finding, seen_again(finding, 6)) is not None


def test_a_test_that_is_changed_calls_for_nothing():
    finding = only(Script().edit("tests/test_total.py").edit("src/a/client.py"), "co_access")
    assert draft_of(finding, seen_again(finding, 3)).data["trigger_file"] == "src/a/client.py"


@pytest.mark.parametrize("other", ["tests/test_schema.py", "package-lock.json"])
def test_a_test_with_its_source_and_what_tools_write_are_no_news(other):
    assert Script().edit("src/b/schema.py").edit(other).findings("co_access") == []


def test_a_sweep_over_many_files_couples_none_of_them():
    script = Script()
    for number in range(20):
        script.edit(f"src/a/f{number}.py")
    assert script.findings("co_access") == []


# 3 error and retry


def test_a_command_that_failed_is_told_with_the_one_that_worked():
    script = Script().fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
    finding = only(script, "error_retry")
    assert finding.is_proven
    assert content(finding, 2) == (
        "Running `npm test` failed (output said: `bash: npm: command not found`); "
        "what worked: `pnpm test`."
    )


def test_what_had_to_run_first_is_told_when_it_was_exactly_one_command():
    error = "Error: connect ECONNREFUSED 127.0.0.1:5432"
    script = Script().fail("make seed", error).run("docker compose up -d db").run("make seed")
    assert content(only(script, "error_retry"), 2).endswith(
        "what worked: running `docker compose up -d db` first."
    )
    several = (
        Script()
        .fail("make seed", error)
        .run("docker compose up -d")
        .run("make reset")
        .run("make seed")
    )
    assert (
        draft_of(only(several, "error_retry"), seen_again(only(several, "error_retry"), 2)) is None
    )


def test_a_commit_that_was_refused_without_a_reason_teaches_nothing():
    def learned(error: str) -> list[str]:
        script = Script().fail('git commit -m "Add shares"', error).run("pnpm generate")
        finding = only(script.run('git commit -m "Add shares"'), "error_retry")
        made = draft_of(finding, seen_again(finding, 2))
        return [] if made is None else [made.content]

    assert learned("please think again, and then do it over") == []
    assert len(learned("error: Cannot find module 'client'")) == 1


def test_a_name_that_differs_from_session_to_session_is_left_open():
    first = Script().fail("git push", "fatal: The current branch fix-1 has no upstream branch.")
    one = only(first.run("git push -u origin fix-1"), "error_retry")
    second = Script("s2").fail(
        "git push", "fatal: The current branch fix-2 has no upstream branch."
    )
    two = only(second.run("git push -u origin fix-2"), "error_retry")
    assert one.key == two.key
    made = draft_of(two, Seen(2, (two.data, one.data)))
    assert made.content == (
        "Running `git push` failed (output said: `fatal: The current branch … has no upstream "
        "branch.`); what worked: `git push -u origin …`."
    )


def test_an_option_that_is_not_known_is_learned_from_the_same_program_alone():
    script = (
        Script()
        .fail("lint run --only a src/b", "Error: unknown flag: --only")
        .run("check src/b", "fine")
    )
    assert [
        each for each in script.findings("error_retry") if draft_of(each, seen_again(each, 2))
    ] == []
    script = (
        Script()
        .fail("lint run --only a src/b", "Error: unknown flag: --only")
        .run("lint run src/b", "fine")
    )
    assert "what worked: `lint run src/b`" in content(only(script, "error_retry"), 2)


def test_a_program_that_was_found_elsewhere_is_told_with_its_place():
    script = Script().fail("go build", "bash: go: command not found")
    script.run('export PATH="/opt/go/bin:$PATH" && go build', "")
    assert content(only(script, "error_retry"), 2) == (
        "Running `go build` failed (output said: `bash: go: command not found`); "
        'what worked: `PATH="/opt/go/bin:$PATH" go build`.'
    )


def test_nothing_is_run_in_the_place_of_a_look():
    script = (
        Script().fail("cat tasks/lint", "cat: tasks/lint: Is a directory").run("mise run lint", "")
    )
    assert not only(script, "error_retry").is_proven


def test_a_file_that_is_elsewhere_is_told_with_its_place():
    script = Script().misread("src/settings.py").read("config/settings.py")
    assert content(only(script, "error_retry"), 2) == (
        "There is no `src/settings.py`; the file is `config/settings.py`."
    )


def test_a_failure_that_nothing_ended_makes_no_memory():
    finding = only(Script().fail("make deploy", "Error: could not connect"), "error_retry")
    assert not finding.is_proven
    assert draft_of(finding, seen_again(finding, 5)) is None


def test_a_command_that_works_when_it_is_simply_repeated_teaches_nothing():
    script = Script().fail("make deploy", "Error: could not connect").run("make deploy")
    assert not only(script, "error_retry").is_proven


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("grep -r total src", ""), ("make test", "1 failed, 3 passed"), ("ruff check .",
        "Found 3 errors."),
        ("make deploy", "The user doesn't want to proceed with this tool use."), ("diff a b",
        "1c1"),
    ],
)  # fmt: skip
def test_what_is_no_trouble_of_the_surroundings_is_no_error(command, error):
    assert Script().fail(command, error).findings("error_retry") == []


def test_failing_twice_before_something_worked_counts_as_two_sessions():
    script = Script().fail("npm test", "bash: npm: command not found")
    script.fail("npm test", "bash: npm: command not found").run("pnpm test")
    assert only(script, "error_retry").counts_as == 2


def test_a_change_that_mends_an_error_is_told_only_when_it_is_the_same_file_each_time():
    script = (
        Script()
        .fail("./deploy.sh", "Error: could not read settings")
        .edit("deploy/env.toml")
        .run("./deploy.sh")
    )
    finding = only(script, "error_retry")
    assert "each time a change of `deploy/env.toml` mended it" in content(finding, 2)
    other = {**finding.data, "files": ["src/x.py"]}
    assert draft_of(finding, Seen(2, (finding.data, other))) is None


# 4 backtrack


def test_a_change_that_is_taken_back_after_a_failure_is_a_trap():
    script = (
        Script()
        .edit("src/a/pool.py", "size = 1", "size = 9")
        .fail("./check.sh", "Error: could not connect")
    )
    finding = only(script.edit("src/a/pool.py", "size = 9", "size = 1"), "backtrack")
    assert "`./check.sh` had failed (output said: `Error: could not connect`)" in content(
        finding, 2
    )


def test_a_change_that_is_taken_back_for_no_visible_reason_makes_no_memory():
    script = Script().edit("src/a/pool.py", "1", "9").edit("src/a/pool.py", "9", "1")
    finding = only(script, "backtrack")
    assert draft_of(finding, seen_again(finding, 4)) is None


def test_restoring_files_with_git_takes_back_what_was_changed():
    script = (
        Script().edit("src/a/pool.py").edit("src/a/keep.py").run("git checkout -- src/a/pool.py")
    )
    assert [each.data["file"] for each in script.findings("backtrack")] == ["src/a/pool.py"]


# 5 read and abandoned


def test_a_file_that_is_opened_by_mistake_for_its_namesake():
    script = Script().read("src/a/client.py").read("lib/a/client.py").edit("lib/a/client.py")
    assert content(only(script, "read_abandon"), 3) == (
        "`src/a/client.py` is opened by mistake: in 3 sessions the change belonged into "
        "`lib/a/client.py`."
    )


def test_a_file_that_was_of_use_is_not_abandoned():
    script = (
        Script()
        .read("src/a/client.py")
        .read("lib/a/client.py")
        .edit("lib/a/client.py")
        .read("src/a/client.py")
    )
    assert script.findings("read_abandon") == []


# 6 repeated grep


def test_a_search_that_ends_in_the_same_file_again_and_again():
    script = Script()
    for _ in range(2):
        script.grep("price_book", "src/a/prices.py:3: class price_book").read("src/a/prices.py")
    finding = only(script, "repeated_grep")
    assert content(finding, 2) == (
        "`price_book` is in `src/a/prices.py`: it was searched for 4 times in 2 sessions, and that "
        "file read where it was the only hit."
    )


def test_a_search_that_once_had_hits_in_two_files_does_not_claim_one():
    script = Script().grep("price_book", "src/a/prices.py:3: x\nsrc/a/tax.py:1: import price_book")
    script.grep("price_book", "src/a/prices.py:3: class price_book").read("src/a/prices.py")
    stated = content(only(script, "repeated_grep"), 2)
    assert "`price_book` is in `src/a/prices.py`" in stated
    assert "nowhere else" not in stated


def test_a_search_with_hits_in_many_files_has_no_answer():
    script = Script()
    for _ in range(2):
        script.grep(
            "price_book", "src/a/prices.py:3: class price_book\nsrc/b/x.py:9: price_book"
        ).read("src/a/prices.py")
    assert (
        draft_of(only(script, "repeated_grep"), seen_again(only(script, "repeated_grep"), 3))
        is None
    )


def test_a_word_of_prose_is_not_worth_a_place():
    script = Script()
    for _ in range(2):
        script.grep("handshake", "src/a/net.py:3: handshake").read("src/a/net.py")
    assert (
        draft_of(only(script, "repeated_grep"), seen_again(only(script, "repeated_grep"), 3))
        is None
    )


def test_a_search_that_ends_elsewhere_each_time_says_nothing():
    finding = only(
        Script().grep("price_book").read("src/a/x.py").grep("price_book").read("src/a/y.py"),
        "repeated_grep",
    )
    assert draft_of(finding, seen_again(finding, 3)) is None


# 7 tool sequence


def test_commands_in_the_same_order_become_a_recipe():
    script = Script().edit("db/schema.sql").run("make migrate").run("make seed")
    finding = only(script, "tool_sequence")
    made = draft_of(finding, seen_again(finding, 3))
    assert made.type == "workflow_recipe"
    assert [step["description"] for step in made.data["steps"]] == [
        "edit `db/schema.sql`",
        "run `make migrate`",
        "run `make seed`",
    ]
    assert made.data["steps"][0]["canonical_file"] == "db/schema.sql"


def test_a_recipe_names_the_file_of_most_sessions_or_begins_with_a_command():
    each = [
        only(Script().edit(path).run("make migrate").run("make seed"), "tool_sequence").data
        for path in ("db/a.sql", "db/b.sql", "db/c.sql")
    ]
    finding = only(Script().edit("x.sql").run("make migrate").run("make seed"), "tool_sequence")
    made = draft_of(finding, Seen(3, tuple(each)))
    assert made.content == (
        "How it is done here, in 3 of 3 sessions: run `make migrate`, then run `make seed`."
    )


def test_a_hook_that_refused_a_commit_is_learned_with_the_command_that_satisfied_it():
    script = Script().edit("lib/a.ex")
    script.fail("git add lib/a.ex && git commit -m 'feat: x'", "** (Mix) mix format failed")
    script.run("mix format").run("git add -A && git commit -m 'feat: x'", "[main 1a2b3c4] feat: x")
    finding = only(script, "error_retry")
    assert (finding.data["command"], finding.data["how"], finding.data["fix"]) == (
        "git commit", "first", "mix format",
    )  # fmt: skip


def test_tests_that_cannot_be_imported_are_an_error_and_not_red():
    output = "E   ModuleNotFoundError: No module named 'redis'\nERROR test_a.py\n1 error in 0.12s"
    script = Script().edit("src/a.py").fail("pytest -q", output)
    assert script.pads()[0].facts.last_test_ok is None
    script.run("pip install redis").run("pytest -q", "3 passed in 0.1s")
    finding = only(script, "error_retry")
    assert (finding.data["command"], finding.data["fix"]) == ("pytest -q", "pip install redis")


def test_a_file_that_was_opened_by_mistake_was_not_read_for_the_module():
    script = Script().read("legacy/auth/session.py").read("shop/auth/session.py")
    script.read("shop/auth/tokens.py").edit("shop/auth/session.py")
    assert only(script, "read_abandon").data["wrong"] == "legacy/auth/session.py"
    assert "legacy/auth/session.py" not in only(script, "file_access").data["files"]


def test_a_note_that_was_read_is_no_module_that_a_page_was_consulted_for():
    script = Script().read("docs/note.md").read("shop/pay/refund.py")
    script.tool("WebFetch", "text", url="https://docs.example.com/api/refunds")
    assert only(script, "external_reference").data["modules"] == ["shop/pay"]


def test_the_order_that_most_sessions_had_is_told_and_none_when_there_is_none():
    one = only(Script().edit("db/schema.sql").run("make migrate").run("make seed"), "tool_sequence")
    other = only(
        Script().edit("db/schema.sql").run("make seed").run("make migrate"), "tool_sequence"
    )
    assert one.key == other.key
    assert draft_of(one, Seen(5, (one.data,) * 3 + (other.data,) * 2)).content == (
        "How it is done here, in 3 of 5 sessions: edit `db/schema.sql`, then run `make "
        "migrate`, then run `make seed`."
    )
    assert draft_of(one, Seen(6, (one.data,) * 3 + (other.data,) * 3)) is None


def test_what_few_of_all_sessions_did_is_not_how_it_is_done_here():
    finding = only(
        Script().edit("db/schema.sql").run("make migrate").run("make seed"), "tool_sequence"
    )
    assert draft_of(finding, seen_again(finding, 3, all_sessions=30)) is not None
    assert draft_of(finding, seen_again(finding, 3, all_sessions=31)) is None


@pytest.mark.parametrize(
    "commands",
    [
        ("go build ./pkg/a/...", "go test -race ./pkg/a/..."),
        ("git fetch", "git rebase main"),
        ("rtk git diff a.py", "rtk git commit"),
        ("node -e 'x'", "make a"),
    ],
)
def test_what_everybody_does_and_what_is_done_once_is_no_recipe(commands):
    script = Script().edit("db/schema.sql")
    for command in commands:
        script.run(command)
    assert all(
        draft_of(each, seen_again(each, 4)) is None for each in script.findings("tool_sequence")
    )


def test_a_command_that_fails_ends_a_sequence():
    script = (
        Script()
        .edit("db/schema.sql")
        .run("make migrate")
        .fail("make seed", "Error: no")
        .run("make seed")
    )
    assert script.findings("tool_sequence") == []


def test_looking_around_is_no_step_of_a_recipe():
    script = (
        Script()
        .edit("db/schema.sql")
        .run("git status")
        .run("ls")
        .run("cat x.txt")
        .run("make migrate")
    )
    assert script.findings("tool_sequence") == []


# 8 time anomaly


def slow(script: Script, seconds: float, error: str | None = None) -> Script:
    for number in range(4):
        script.event(
            "tool_pre", tool="Bash", tool_use_id=f"q{number}", tool_input={"command": "make x"}
        )
        script.event(
            "tool_post", 1, tool="Bash", tool_use_id=f"q{number}", tool_input={"command": "make x"}
        )
    given = {"tool": "Bash", "tool_use_id": "slow", "tool_input": {"command": "make index"}}
    return script.event("tool_pre", **given).event(
        "tool_fail" if error else "tool_post", seconds, error=error, **given
    )


@pytest.mark.parametrize(
    ("command", "error", "fix"),
    [
        (
            "docker build .",
            "exec /bin/sh: exec format error",
            "docker build --platform linux/amd64 .",
        ),
        (
            "docker compose build web",
            "failed to solve: node:18-alpin: not found",
            "docker compose build --pull web",
        ),
    ],
)
def test_the_build_of_an_image_that_another_command_mended_is_learned(command, error, fix):
    script = Script().fail(command, error).run(fix).edit("src/a.py").green()
    finding = only(script, "error_retry")
    assert f"what worked: `{fix}`" in content(finding, 2)


def test_a_command_that_is_slow_and_ran_out_of_time_is_a_trap():
    finding = only(slow(Script(), 120, "Command timed out after 2m"), "time_anomaly")
    assert "`make index` takes long here (up to 120 s in 3 sessions)" in content(finding, 3)


def test_slowness_alone_is_noticed_and_makes_no_memory():
    finding = only(slow(Script(), 90), "time_anomaly")
    assert draft_of(finding, seen_again(finding, 3)) is None
    assert slow(Script(), 20).findings("time_anomaly") == []


# 9 self-correction


def test_a_correction_that_says_both_sides_and_names_code_is_remembered():
    script = Script().read("src/a/total.py")
    script.say("I initially thought totals are cached, but `sum_up()` reads the table each time.")
    made = draft_of(only(script, "self_correction"), seen_again(only(script, "self_correction"), 1))
    assert (made.type, made.files) == ("gotcha", ("src/a/total.py",))
    assert (
        made.content
        == "Not as first assumed (totals are cached): `sum_up()` reads the table each time."
    )


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ("I initially thought totals are cached, but `total.py` reads them.", ("src/a/total.py",)),
        ("I initially thought `total.py` caches, but `sum_up()` reads them.", ("src/a/total.py",)),
        ("I initially thought totals are cached, but `sum_up()` reads them.", ()),
        ("I initially thought totals are cached, but `cart.py` reads them.", ()),
    ],
)
def test_a_correction_is_tied_to_the_file_it_names_and_to_none_that_was_only_opened_last(
    said, files
):
    script = Script().prompt("Why are totals slow?").read("src/a/total.py").read("src/b/view.py")
    finding = only(script.say(said), "self_correction")
    assert draft_of(finding, seen_again(finding, 1)).files == files


def test_a_correction_is_tied_to_the_one_file_that_was_touched_since_the_agent_last_spoke():
    script = Script().prompt("Why are totals slow?").read("src/b/view.py").say("The view is fine.")
    script.read("src/a/total.py").say("Let me see.")
    script.say("I initially thought totals are cached, but `sum_up()` reads the table each time.")
    finding = only(script, "self_correction")
    assert draft_of(finding, seen_again(finding, 1)).files == ("src/a/total.py",)


@pytest.mark.parametrize(
    "text",
    [
        "Wait, let me look again.", "Actually, I'll use `sum_up()`, not the cache.",
        "I initially thought so, but it works.", "Let me reconsider. Both are fine.",
    ],
)  # fmt: skip
def test_a_correction_that_says_too_little_is_not(text):
    for finding in Script().say(text).findings("self_correction"):
        assert draft_of(finding, seen_again(finding, 1)) is None


@pytest.mark.parametrize(
    "said",
    [
        "Actually, the simplest fix is to change `load()`, not `save()`.",
        "Actually, shows the default from `init`, not `theme.json`.",
        "Actually, `t.Setenv()` is compatible with `t.Chdir()` but not with `t.Parallel()`.",
        "This is actually creating a slice from `ids`, not modifying `ids`.",
        "I initially thought it was cached, but maybe `load()` reads it each time.",
    ],
)
def test_what_weighs_plans_or_was_cut_corrects_nothing(said):
    script = Script().say(said)
    assert all(
        draft_of(each, seen_again(each, 1)) is None for each in script.findings("self_correction")
    )


# 10 external reference


def test_a_page_that_a_module_needs_is_named_and_always_from_outside():
    script = (
        Script().edit("src/pay/card.py").tool("WebFetch", "text", url="https://pay.example/docs#x")
    )
    finding = only(script, "external_reference")
    made = draft_of(finding, seen_again(finding, 3))
    assert made.content == "Work on `pay` consulted https://pay.example/docs in 3 sessions."
    assert taint_of(finding, made, pads=[]) == ("web",)


# 11 glob ignored


def test_a_pattern_that_does_not_find_the_file_that_was_meant():
    script = Script().glob("assets/**/*.css", "").read("priv/static/shop.css")
    assert content(only(script, "glob_ignore"), 2) == (
        "`assets/**/*.css` does not find what is wanted here: in 2 sessions it was "
        "`priv/static/shop.css`."
    )


def test_a_pattern_whose_result_is_read_or_that_meant_something_else_is_fine():
    assert (
        Script().glob("src/**/*.css", "src/a/x.css").read("src/a/x.css").findings("glob_ignore")
        == []
    )
    assert Script().glob("src/**/*.css", "").read("README.md").findings("glob_ignore") == []


# 12 import chase


def test_files_that_are_read_along_imports_depend_on_each_other():
    script = (
        Script()
        .read("src/a/cart.py", "from shop.price import of\n")
        .read("src/a/price.py", "import shop.tax\n")
    )
    finding = only(script.read("src/a/tax.py"), "import_chase")
    assert "one reads `src/a/price.py`, `src/a/tax.py`, along its imports (4 sessions)" in content(
        finding, 4
    )


def test_files_that_do_not_import_each_other_are_no_chase():
    script = Script().read("src/a/cart.py", "x = 1").read("src/a/price.py").read("src/a/tax.py")
    assert script.findings("import_chase") == []


# 13 test order


def test_how_many_test_runs_a_change_takes_is_counted():
    script = (
        Script()
        .edit("src/a/cart.py")
        .red()
        .edit("src/a/cart.py")
        .red()
        .edit("src/a/cart.py")
        .green()
    )
    finding = only(script, "test_order")
    assert finding.data == {"module": "a", "order": "tests_after", "runs": [3]}
    assert "take 3 test runs until they are green" in content(finding, 3)


def test_tests_that_are_written_first_are_told_apart():
    script = Script().edit("tests/test_cart.py").red().edit("src/a/cart.py").green()
    assert only(script, "test_order").data["order"] == "tests_first"


def test_changes_that_are_green_at_once_need_no_calibration():
    finding = only(Script().edit("src/a/cart.py").green(), "test_order")
    assert draft_of(finding, seen_again(finding, 5)) is None


# 14 config touch


def test_a_configuration_that_follows_a_source_file():
    finding = only(Script().edit("src/a/routes.py").edit("config/routes.toml"), "config_touch")
    assert content(finding, 2) == (
        "When `src/a/routes.py` changes, the configuration `config/routes.toml` is changed, too "
        "(2 sessions)."
    )


def test_a_configuration_that_follows_another_file_each_time_follows_none():
    finding = only(Script().edit("src/a/routes.py").edit("config/routes.toml"), "config_touch")
    other = {"config": "config/routes.toml", "sources": ["src/b/other.py"]}
    assert draft_of(finding, Seen(2, (finding.data, other))) is None


# 15 step overrun


def planned(first: int, last: int) -> Script:
    script = Script().tool(
        "TodoWrite", todos=[{"content": f"step {number}"} for number in range(first)]
    )
    return script.edit("src/a/x.py").tool(
        "TodoWrite", todos=[{"content": f"step {number}"} for number in range(last)]
    )


def test_a_plan_that_has_grown_is_an_overrun():
    finding = only(planned(4, 8), "step_overrun")
    made = draft_of(finding, seen_again(finding, 3))
    assert (made.data["ratio"], made.data["sample_count"], made.data["module"]) == (2.0, 3, "a")


def test_a_plan_that_was_kept_is_none():
    finding = only(planned(4, 5), "step_overrun")
    assert draft_of(finding, seen_again(finding, 3)) is None


def test_plans_that_held_count_as_well():
    grown, kept = only(planned(4, 8), "step_overrun"), only(planned(8, 8), "step_overrun")
    assert draft_of(grown, Seen(9, (grown.data,) * 3 + (kept.data,) * 6)) is None


def test_another_task_begins_another_plan():
    script = planned(4, 4).tool(
        "TodoWrite", todos=[{"content": f"other {number}"} for number in range(3)]
    )
    assert only(script, "step_overrun").data["actual"] == 7
    assert only(script, "step_overrun").data["planned"] == 7


# 16 parallel conflict


def test_two_agents_that_change_a_file_at_the_same_time_are_in_conflict():
    script = Script()
    for turn in range(4):
        script.subagent = f"helper-{turn % 2}"
        if turn == 2:
            script.tool(
                "Edit",
                error="File has been modified since read",
                file_path="/nowhere/shop/src/a/shared.py",
            )
        script.edit("src/a/shared.py")
    finding = script.findings("parallel_conflict")[0]
    assert "was changed by 2 agents that worked at the same time" in content(finding, 1)


def test_agents_that_were_not_in_each_others_way_are_in_conflict_when_it_comes_again():
    script = Script()
    for turn in range(4):
        script.subagent = f"helper-{turn % 2}"
        script.edit("src/a/shared.py")
    finding = script.findings("parallel_conflict")[0]
    assert draft_of(finding, seen_again(finding, 1)) is None
    assert draft_of(finding, seen_again(finding, 2)) is not None


def test_an_agent_that_waits_for_the_one_it_called_is_in_no_conflict():
    script = Script().edit("src/a/shared.py")
    script.subagent = "helper"
    script.edit("src/a/shared.py").edit("src/a/shared.py")
    script.subagent = ""
    script.edit("src/a/shared.py")
    assert script.findings("parallel_conflict") == []


def test_two_agents_one_after_the_other_are_not():
    script = Script()
    for turn in range(4):
        script.subagent = f"helper-{turn // 2}"
        script.edit("src/a/shared.py")
    assert script.findings("parallel_conflict") == []


def test_a_file_that_changed_under_an_edit_is_noticed_and_blamed_on_nobody():
    script = Script().tool(
        "Edit", error="File has been modified since read", file_path="/nowhere/shop/src/a/x.py"
    )
    finding = only(script, "parallel_conflict")
    assert draft_of(finding, seen_again(finding, 3)) is None


# 17 context spike


def test_a_module_that_fills_the_context_has_its_cost_told():
    finding = only(Script().read("src/a/huge.py", "x" * 60_000), "context_spike")
    made = draft_of(finding, seen_again(finding, 3))
    assert made.data == {
        "module": "a",
        "average_tokens": 15_000,
        "peak_tokens": 15_000,
        "session_count": 3,
    }


def test_a_file_that_is_a_small_part_of_what_is_read_is_not_what_costs():
    script = Script().read("src/a/huge.py", "x" * 44_000)
    for number in range(8):
        script.read(f"src/a/other{number}.py", "x" * 12_000)
    assert (
        draft_of(only(script, "context_spike"), seen_again(only(script, "context_spike"), 3))
        is None
    )


def test_reading_of_a_usual_size_is_no_spike():
    assert Script().read("src/a/small.py", "x" * 8_000).findings("context_spike") == []
