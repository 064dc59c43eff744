"""Commands with their outcome: tests, builds, installs, git, errors, and what mended them."""

from __future__ import annotations

import pytest

from tests.unit.observations.offline.talk import Talk, only


def test_commands_that_went_well_are_one_line():
    talk = (
        Talk()
        .run("make build", "")
        .run("./deploy.sh staging", "deployed to https://staging.shop.dev")
    )
    note = only(talk.notes())
    assert (
        note.text
        == "Ran make build: ok; ./deploy.sh staging: output said: `deployed to https://staging.shop.dev`"
    )
    assert (note.first_seq, note.last_seq) == (1, 4)


def test_a_failure_keeps_its_line_its_type_and_its_place():
    output = (
        'Traceback (most recent call last):\n  File "src/api/users.py", line 45, in '
        "get\nTypeError: value is None"
    )
    note = only(Talk().run("python src/main.py", output, is_error=True).notes())
    assert note.category == "error"
    assert note.text == (
        "python src/main.py failed: output said: `TypeError: value is None` (src/api/users.py:45)"
    )
    assert (note.files, note.lines) == (("src/api/users.py",), (45,))


def test_failing_tests_are_named():
    output = "FAILED tests/test_cart.py::test_total - assert 1 == 2\n1 failed, 3 passed in 0.1s"
    note = only(Talk().run("pytest", output, is_error=True).notes())
    assert note.details == ("failing: tests/test_cart.py::test_total",)


def test_what_mended_a_failure_is_told_with_it():
    talk = Talk().run("pytest tests/a.py", "E   KeyError: 'id'\n1 failed in 1s", is_error=True)
    talk.edit("src/a.py", "x = d['id']", "x = d.get('id')").run(
        "pytest tests/a.py", "1 passed in 1s"
    )
    fix = only(talk.notes("fix"))
    assert fix.text == (
        "Fixed: pytest tests/a.py failed: 1 failed in 1s; output said: `KeyError: 'id'`; "
        "after changes in src/a.py; then 1 passed in 1s"
    )
    assert (fix.first_seq, fix.last_seq) == (1, 6)
    assert talk.notes("error") == []


def test_tests_of_other_files_mend_nothing():
    talk = (
        Talk()
        .run("pytest tests/a.py", "1 failed in 1s", is_error=True)
        .run("pytest tests/b.py", "1 passed in 1s")
    )
    assert [note.category for note in talk.notes()] == ["error", "test"]


def test_a_part_of_a_longer_line_can_mend():
    talk = (
        Talk()
        .run("make lint", "a.py:1: error: bad", is_error=True)
        .run("make build && make lint", "")
    )
    assert only(talk.notes("fix")).text.startswith(
        "Fixed: make lint failed: output said: `a.py:1: error: bad`"
    )


def test_another_way_to_the_same_end_mends_too():
    talk = (
        Talk()
        .run("git push", "fatal: no upstream branch", is_error=True)
        .run("git push -u origin login", "ok")
    )
    assert (
        only(talk.notes()).text
        == "Fixed: git push failed: output said: `fatal: no upstream branch`; then git push -u "
        "origin login: ok"
    )


def test_a_commit_keeps_its_subject_branch_and_hash():
    output = "[login 1a2b3c4] feat: add JWT login\n 3 files changed, 12 insertions(+)"
    note = only(Talk().run("git commit -m 'feat: add JWT login'", output).notes())
    assert (note.category, note.priority) == ("completion", "high")
    assert note.text == "Committed: feat: add JWT login [login 1a2b3c4]"


REJECTED = "To github.com:a/b\n ! [rejected] main -> main\nerror: failed to push some refs"


@pytest.mark.parametrize(
    ("rest", "output", "text"),
    [
        ("git push 2>&1 | tail -3", REJECTED,
         "git push failed: output said: `! [rejected] main -> main`"),
        ("git push || true", REJECTED, "git push failed: output said: `! [rejected] main -> main`"),
        ("npm test | tail -3", "Tests: 1 failed, 3 total",
         "npm test failed: Tests: 1 failed, 3 total"),
    ],
)  # fmt: skip
def test_a_commit_does_not_speak_for_the_push_behind_it(rest, output, text):
    made = "[main abc1234] fix: error: x\n 1 file changed\n"
    talk = Talk().run(f"git commit -am 'fix: error: x' && {rest}", made + output)
    note = only(talk.notes())
    assert (note.category, note.text) == ("error", text)
    assert note.details == ("Committed: fix: error: x [main abc1234]",)
    note = only(talk.run(rest.partition(" |")[0], "done").notes())
    assert (note.category, note.text[:6]) == ("fix", "Fixed:")
    assert note.details == ("Committed: fix: error: x [main abc1234]",)


STATISTICS = (
    "[main abc1234] fix: x\n 5 files changed, 2 insertions(+)\n create mode 100644 error.py\n"
    " delete mode 100644 fail.py\n rename {a => b}/error.py (90%)\n rewrite fail.py (70%)\n"
    " mode change 100644 => 100755 failed.sh\n"
)


@pytest.mark.parametrize(
    ("rest", "said", "text"),
    [
        ("./deploy.sh", "Host unreachable", "./deploy.sh failed"),
        ("git push && npm publish", "Everything is broken",
         "git push && npm publish failed: output said: `Everything is broken`"),
        ("make deploy", "", "make deploy failed"),
        ("git log -3 | grep zzz", "", "git log -3 failed"),
        ("ls nope", "ls: cannot access 'nope': No such file or directory",
         "ls nope failed: output said: `ls: cannot access 'nope': No such file or directory`"),
    ],
)  # fmt: skip
def test_a_commit_that_was_made_is_not_what_failed(rest, said, text):
    for line in (f"git add -A && git commit -m 'fix: x' && {rest}", f"git commit -m x; {rest}"):
        note = only(Talk().run(line, STATISTICS + said, is_error=True).notes())
        assert (note.category, note.text) == ("error", text)
        assert note.details == ("Committed: fix: x [main abc1234]",)


def test_a_commit_with_nothing_to_blame_behind_it_was_made():
    note = only(Talk().run("git commit -m 'fix: x' && cd nope", STATISTICS, is_error=True).notes())
    assert (note.category, note.text) == ("completion", "Committed: fix: x [main abc1234]")


def test_a_commit_message_given_as_a_here_document_is_read():
    command = "git commit -m \"$(cat <<'EOF'\nfeat: add export\n\nLonger words.\nEOF\n)\""
    assert only(Talk().run(command, "").notes()).text == "Committed: feat: add export"


def test_an_installed_version_survives():
    text = Talk().run("npm install @auth0/auth0-spa-js@2.1.0", "added 3 packages in 2s").text()
    assert (
        text
        == "Installed npm install @auth0/auth0-spa-js@2.1.0: output said: `added 3 packages in 2s`"
    )


def test_a_query_survives_as_it_was_run():
    text = Talk().run('sqlite3 shop.db "SELECT * FROM users WHERE email = ?"', "7|ada").text()
    assert 'SELECT * FROM users WHERE email = ?": output said: `7|ada`' in text


def test_a_masked_exit_code_is_not_called_ok():
    assert "ok" not in Talk().run("mypy src | head -3", "src/a.py:1 note: see docs").text()


def test_a_checker_is_told_with_its_verdict():
    assert (
        Talk().run("mix credo", "40 mods/funs, found no issues.").text()
        == "Ran mix credo: output said: `40 mods/funs, found no issues.`"
    )


def test_the_same_command_is_told_once_with_all_outcomes():
    talk = Talk().run("./tool", "one file").run("./tool", "two files")
    assert talk.text() == "Ran ./tool: output said: `one file`; output said: `two files`"


def test_what_only_looks_is_low_and_together():
    talk = (
        Talk(cwd="/p")
        .call("Read", {"file_path": "/p/src/auth/a.py"}, "1→x")
        .call("Read", {"file_path": "/p/src/auth/b.py"}, "")
    )
    talk.call("Grep", {"pattern": "def login"}, "src/x.py").call(
        "Glob", {"pattern": "*.vue"}, "No files found"
    )
    note = only(talk.notes())
    assert note.priority == "low"
    assert (
        note.text == "Looked at src/auth/: a.py, b.py; searched for def login; nothing found: *.vue"
    )


def test_a_file_that_is_changed_is_not_told_as_read():
    talk = Talk().call("Read", {"file_path": "a.py"}, "1→x").edit("a.py", "x", "def y(): ...")
    assert [note.category for note in talk.notes()] == ["code"]


def test_a_result_that_came_later_in_the_background_is_the_commands():
    talk = Talk().run(
        "make test",
        "Command running in background with ID: b1c2. Output is being written to: /tmp/b1c2",
    )
    output = (
        "<status>completed</status>\n<exit_code>0</exit_code>\n<output>\n12 passed in 3s\n</output>"
    )
    talk.call("TaskOutput", {"task_id": "b1c2"}, output)
    assert talk.text() == "Ran make test: 12 passed in 3s"


def test_a_command_whose_result_has_not_come_says_so():
    assert (
        Talk().call("Bash", {"command": "make deploy"}, None).text()
        == "Ran make deploy: no result seen"
    )


def test_a_result_whose_call_was_observed_before_is_no_crash():
    from smara.messages.models import Part

    Talk().add(
        "tool", Part("tool_result", "Error: boom", name="Bash", call_id="gone", is_error=True)
    ).notes()


def test_what_the_host_refused_to_run_is_not_told():
    assert (
        Talk()
        .run("make", "<tool_use_error>Sibling tool call errored</tool_use_error>", is_error=True)
        .notes()
        == []
    )


@pytest.mark.parametrize(
    ("read", "other"),
    [
        ('python3 -c "import json; json.load(open(1))"', 'python3 -c "print(open(2).read())"'),
        ("python3 - <<'EOF'\njson.load(open(1))\nEOF", "python3 - <<'EOF'\nprint(2)\nEOF"),
        ('psql -c "select a"', 'psql -c "select 1"'),
        ('npx tsx -e "a()"', 'npx tsx -e "b()"'),
    ],
)
def test_another_script_given_to_an_interpreter_is_no_fix(read, other):
    talk = Talk().user("Look into it").run(read, "JSONDecodeError: Extra data", is_error=True)
    assert talk.run(other, "text").text("fix") == ""
    assert "Fixed: " in talk.run(read, "fine").text("fix")


def test_the_same_script_under_the_other_name_of_its_interpreter_is_a_fix():
    talk = Talk().user("Look").run('python -c "import x"', "python: not found", is_error=True)
    assert "Fixed: " in talk.run('python3 -c "import x"', "fine").text("fix")
