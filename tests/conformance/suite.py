"""Define a framework's suite, and judge what came of a run of it.

A suite is either the tests in a framework's source package (`Source`), or a function of the
installed package that checks an implementation (`Check`). Nothing of theirs is in this tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Literal

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class CaseResult:
    """What came of one case."""

    case: str
    outcome: Outcome
    message: str = ""


Check = Callable[[str], Iterable[CaseResult]]
"""Check an adapter on an empty store, given as its path or URL."""


@dataclass(frozen=True)
class Source:
    """Tests that a source package carries."""

    sha256: str
    """Of the archive, checked before anything in it is run."""
    files: tuple[str, ...]
    """Paths in the archive that pytest is given."""
    plugin: str
    """A module in ``plugins/``: it puts our class in place of theirs before tests import it."""
    folders: tuple[str, ...] = ("tests",)
    """What is unpacked. The package itself is the installed one."""


@dataclass(frozen=True)
class Environment:
    """An environment of its own, for a package that excludes others of ours."""

    requirements: tuple[str, ...]
    tests: tuple[str, ...] = ()
    """Tests of ours that can run there alone."""


@dataclass(frozen=True)
class Suite:
    """The tests of one interface of a framework, at a version."""

    name: str
    package: str
    """The distribution that the tests are of; it is installed, or stands in an environment."""
    covers: str
    """What of ours stands the test."""
    source: Source | None = None
    check: Check | None = None
    version: str = ""
    """Of the source package; a check has the installed one."""
    databases: tuple[str, ...] = ("sqlite", "postgres")
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """Cases that cannot apply, with reasons; a name without brackets stands for all of a
    parametrized test.
    """
    environment: Environment | None = None
    remark: str = ""
    """What a reader of the counts should know."""

    def __post_init__(self) -> None:
        if (self.source is None) == (self.check is None):
            raise ValueError(f"{self.name}: give either a source or a check")
        if self.source is not None and not self.version:
            raise ValueError(f"{self.name}: name the version of the source package")

    @property
    def pinned(self) -> str:
        """The version that is tested."""
        return self.version or version(self.package)

    def reason(self, case: str) -> str | None:
        """Return why a case cannot apply, or ``None``."""
        return self.not_applicable.get(case) or self.not_applicable.get(case.split("[", 1)[0])


def judge(suite: Suite, results: Iterable[CaseResult]) -> list[str]:
    """Return what is wrong with a run: an empty list for one that conforms.

    A case outside the list has to pass. A case on the list has to fail or be skipped, so that the
    list cannot grow stale; and it has to exist.
    """
    seen = list(results)
    problems = [] if seen else ["no case was run"]
    for result in seen:
        if suite.reason(result.case) is None:
            if result.outcome != "passed":
                problems.append(f"{result.case} {result.outcome}: {result.message}")
        elif result.outcome == "passed":
            problems.append(f"{result.case} passes, though it is listed as not applicable")
    cases = {name for result in seen for name in (result.case, result.case.split("[", 1)[0])}
    problems += [f"{case} is listed, but does not exist" for case in suite.not_applicable
                 if case not in cases]  # fmt: skip
    return problems
