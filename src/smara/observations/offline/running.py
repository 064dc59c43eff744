"""Runs of commands as notes: what went well together in one line, each failure, each commit, what
mended a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from smara.observations.models import Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.drafting import Scene, joined, make_note
from smara.observations.offline.exchanges import output_lines
from smara.observations.offline.runs import Run
from smara.observations.offline.telling import variables_in
from smara.observations.offline.test_runs import TestRun
from smara.observations.offline.wording import clip

_INLINE = 420
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s?%")
_QUIET_KINDS = frozenset({"git", "commit"})


def run_note(scene: Scene, runs: Sequence[Run]) -> Note | None:
    """Runs that went well, or whose end was not seen, as one note; the tests among them give it its
    kind.
    """
    told = _told(runs)
    if not told:
        return None
    tests = [run.tests for run in runs if run.tests is not None]
    is_install = all(run.command.kind == "install" for run in runs)
    label = phrases.INSTALLED if is_install else phrases.RAN
    whole = f"{label} {'; '.join(told)}"
    is_long = len(whole) > _INLINE
    priority: Priority = "high" if tests and scene.mode == "testing" else "medium"
    return make_note(
        scene,
        priority,
        "test" if tests else "command",
        text=f"{label}:" if is_long else whole,
        at=runs[0].call.at,
        seqs=[seq for run in runs for seq in run.seqs],
        inputs=["assistant", "tool"],
        details=told if is_long else (),
        **_test_facts(scene, runs),
    )


def _told(runs: Sequence[Run]) -> list[str]:
    """Each command once, with the outcomes of all its runs: ``make check: ok``."""
    outcomes: dict[str, list[str]] = {}
    for run in runs:
        outcomes.setdefault(run.command.shown, []).append(outcome_words(run))
    return [
        f"{shown}: {joined(dict.fromkeys(words), 260)}"
        for shown, words in outcomes.items()
        if shown
    ]


def outcome_words(run: Run) -> str:
    """What came of a run in a few words, its own where it has some."""
    if run.outcome == "failed":
        told = _failed_words(run)
        return f"{phrases.FAILED}: {told}" if told else phrases.FAILED
    if run.tests is not None:
        return run.tests.summary + (f"; {run.tests.coverage}" if run.tests.coverage else "")
    if run.outcome == "unknown":
        return phrases.NO_RESULT
    return run.words if run.words and run.command.kind not in _QUIET_KINDS else phrases.OK


def _failed_words(run: Run) -> str:
    """How many tests failed, and the line that tells why."""
    counts = run.tests.summary if run.tests is not None else ""
    line = run.failure.line if run.failure else ""
    return "; ".join(dict.fromkeys(filter(None, (counts, line))))


def commit_note(scene: Scene, run: Run) -> Note:
    """A commit: its subject, branch and hash."""
    text = f"{phrases.COMMITTED} {run.subject or run.words or run.command.shown}"
    return make_note(
        scene,
        "high",
        "completion",
        text=text,
        at=run.call.at,
        seqs=run.seqs,
        inputs=["assistant", "tool"],
    )


def error_note(scene: Scene, run: Run) -> Note:
    """A failure: the command, the line that tells what went wrong, its place, the tests that
    failed.
    """
    text = f"{run.command.shown} {outcome_words(run)}" + _place(scene, run)
    return make_note(
        scene,
        _priority(scene),
        "error",
        text=text,
        at=run.call.at,
        seqs=run.seqs,
        inputs=["assistant", "tool"],
        details=_failing(run.tests),
        **_places(scene, [run]),
        **_failure_facts(scene, [run]),
        **_test_facts(scene, [run]),
    )


def fix_note(scene: Scene, failed: Sequence[Run], mended: Run, changed: Sequence[str]) -> Note:
    """A failure that is over: what failed, what was changed since, and what the same command says
    now.

    Without ``failed`` it failed in messages that are not at hand.
    """
    after = f"; {phrases.AFTER} {joined(changed, 160, ', ')}" if changed else ""
    if failed:
        lines = dict.fromkeys(filter(None, map(_failed_words, failed)))
        told = f": {joined(lines, 560)}{_place(scene, failed[0])}" if lines else ""
        again = (
            f"{mended.command.shown}: " if mended.command.shown != failed[0].command.shown else ""
        )
        text = (
            f"{failed[0].command.shown} {phrases.FAILED}{told}{after}; {phrases.THEN} "
            f"{again}{outcome_words(mended)}"
        )
    else:
        text = f"{mended.command.shown}: {outcome_words(mended)}{after}"
    return make_note(
        scene,
        _priority(scene),
        "fix",
        text=f"{phrases.FIXED} {text}",
        at=mended.call.at,
        seqs=[seq for run in (*failed, mended) for seq in run.seqs],
        inputs=["assistant", "tool"],
        details=_failing(failed[0].tests) if failed else (),
        **_places(scene, failed, changed),
        **_failure_facts(scene, failed),
        **_test_facts(scene, [mended]),
    )


def _priority(scene: Scene) -> Priority:
    return "high" if scene.mode in ("bug_fixing", "debugging") else "medium"


def _place(scene: Scene, run: Run) -> str:
    place = scene.paths.short(run.failure.place) if run.failure else ""
    return f" ({place})" if place and place not in run.failure.line else ""  # type: ignore[union-attr]


def _places(scene: Scene, runs: Sequence[Run], changed: Sequence[str] = ()) -> dict[str, Any]:
    failures = [run.failure for run in runs if run.failure and run.failure.file]
    return {
        "files": [*(scene.paths.short(failure.file) for failure in failures), *changed],
        "lines": [failure.line_number for failure in failures],
    }


def _failing(tests: TestRun | None) -> list[str]:
    if tests is None or not tests.failing:
        return []
    more = ["…"] if len(tests.failing) > 5 else []
    return [f"{phrases.FAILING} {clip(name, 120)}" for name in tests.failing[:5]] + more


def _failure_facts(scene: Scene, runs: Sequence[Run]) -> dict[str, Any]:
    failures = [run.failure for run in runs if run.failure is not None]
    if scene.mode == "bug_fixing" and failures:
        return {"errorType": failures[0].type, "stackTrace": "\n".join(failures[0].trace)}
    if scene.mode == "debugging":
        seen = {
            name: value
            for run in runs
            for name, value in variables_in(output_lines(run.call, 200)).items()
        }
        return {
            "symptoms": [failure.line for failure in failures if failure.line][:6],
            "variables": seen,
        }
    return {}


def _test_facts(scene: Scene, runs: Sequence[Run]) -> dict[str, Any]:
    if scene.mode != "testing":
        return {}
    tests = [(run.command.shown, run.tests) for run in runs if run.tests is not None]
    results = [_result(name, each) for name, each in tests]
    results += [
        {"name": name, "status": phrases.FAILED} for _, each in tests for name in each.failing
    ]
    coverage = next((each.coverage for _, each in tests if each.coverage), "")
    percent = _PERCENT.search(coverage)
    return {
        "testResults": results,
        "coverage": {"percent": percent[1], "message": coverage} if percent else {},
    }


def _result(name: str, tests: TestRun) -> dict[str, Any]:
    status = phrases.FAILED if tests.has_failures else phrases.PASSED
    return {"name": name, "status": status, "message": tests.summary, **dict(tests.counts)}
