"""What each mode of the agent adds to its notes, under their fixed names."""

from __future__ import annotations

from smara.observations.reply.parse import MODE_FIELDS, as_field
from tests.unit.observations.offline.talk import Talk, only

TRACE = "Traceback (most recent call last):\n  File \"src/a.py\", line 45, in get\nKeyError: 'id'"


def test_exploring_keeps_what_was_searched_and_not_found():
    talk = (
        Talk()
        .call("Grep", {"pattern": "ConnCase"}, "No matches found")
        .call("Glob", {"pattern": "*.ex"}, "lib/a.ex")
    )
    note = only(talk.notes(mode="explore"))
    assert note.priority == "medium"
    assert note.mode_specific["searchQueries"] == ["ConnCase", "*.ex"]
    assert note.mode_specific["notFound"] == ["ConnCase"]


def test_fixing_a_bug_keeps_type_trace_and_root_cause():
    talk = Talk().run("python src/a.py", TRACE, is_error=True)
    talk.agent("The root cause is that `id` is missing in the payload.").run("ls", "")
    error, finding = (
        talk.notes("error", mode="bug_fixing"),
        talk.notes("finding", mode="bug_fixing"),
    )
    assert only(error).mode_specific["errorType"] == "KeyError"
    assert "src/a.py" in only(error).mode_specific["stackTrace"]
    assert (
        only(finding).mode_specific["rootCause"]
        == "The root cause is that `id` is missing in the payload."
    )
    assert only(finding).priority == "high"


def test_testing_keeps_results_and_coverage():
    output = (
        "FAILED tests/a.py::test_b - x\nTOTAL      120     15    87%\n1 failed, 41 passed in 2s"
    )
    note = only(Talk().run("pytest --cov", output, is_error=True).notes(mode="testing"))
    summary, failing = note.mode_specific["testResults"]
    assert summary["status"] == "failed"
    assert summary["message"] == "1 failed, 41 passed in 2s"
    assert (summary["failed"], summary["passed"]) == (1, 41)
    assert failing == {"name": "tests/a.py::test_b", "status": "failed"}
    assert note.mode_specific["coverage"]["percent"] == "87"


def test_refactoring_keeps_the_files_and_the_names_that_are_gone():
    note = only(
        Talk()
        .edit("src/a.py", "def old():\n    pass", "def new():\n    pass")
        .notes(mode="refactoring")
    )
    assert note.mode_specific["filesAffected"] == ["src/a.py"]
    assert note.mode_specific["breaking"] == ["old"]


def test_debugging_keeps_symptoms_and_variables():
    output = "AssertionError: totals differ\nleft: 41\nright: 42\nuser_id = 7"
    note = only(Talk().run("./check", output, is_error=True).notes(mode="debugging"))
    assert note.mode_specific["symptoms"] == ["AssertionError: totals differ; left: 41"]
    assert note.mode_specific["variables"] == {
        "AssertionError": "totals differ",
        "left": "41",
        "right": "42",
        "user_id": "7",
    }


def test_research_keeps_its_sources():
    note = only(
        Talk()
        .call("WebFetch", {"url": "https://x.dev/a"}, "See https://y.dev/b for more.")
        .notes(mode="research")
    )
    assert note.mode_specific["sources"] == ["https://x.dev/a", "https://y.dev/b"]
    assert note.priority == "medium"


def test_the_fields_have_the_shapes_that_every_observer_uses():
    talk = (
        Talk()
        .run("pytest", "TOTAL 9 1 87%\n1 failed in 1s", is_error=True)
        .run("python a.py", TRACE, is_error=True)
    )
    talk.edit("a.py", "def a(): ...", "def b(): ...").call(
        "Grep", {"pattern": "x"}, "No matches found"
    )
    talk.call("WebFetch", {"url": "https://x.dev"}, "words")
    for mode, fields in MODE_FIELDS.items():
        for note in talk.notes(mode=mode):
            for name, value in note.mode_specific.items():
                if name in fields:
                    assert as_field(value, fields[name]) == value


def test_the_default_mode_adds_nothing_but_whose_words_they_are():
    for note in Talk().user("Fix it").run("make test", "1 failed", is_error=True).notes():
        assert set(note.mode_specific) == {"inputs"}
