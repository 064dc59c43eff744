"""Classify shell commands as test runs or as checks and builds.

A command is one program with its arguments; callers strip `cd`, variables, wrappers and
output filters first.
"""

from __future__ import annotations

import re

_RUNNER = (
    r"(?:npm|pnpm|yarn|bun|deno)(?:\s+(?:-r|--filter[ =]\S+|-F\s+\S+|-w\s+\S+|run|-\S{1,20}))*"
    r"|(?:mise|task|just|nox|hatch|poetry|uv|pdm|pixi|nx|turbo|invoke|inv|composer|moon)(?:\s+run)?"
)
_TEST = re.compile(
    r"(?:^|/|\s)(?:pytest|py\.test|tox|nosetests|jest|vitest|mocha|rspec|phpunit|ctest|ava|karma"
    r"|behave)(?:\s|$)"
    r"|^(?:python[\d.]*\s+-m\s+)?(?:pytest|unittest)\b|^nox\b"
    rf"|^(?:{_RUNNER})\s+(?:[\w-]{{1,20}}:)*[\w-]*\btest|^npm\s+t\b"
    r"|^(?:go|cargo|mix|dotnet|swift|zig|sbt|rake|rails|bazel|gradle|\S{0,40}gradlew|mvn"
    r"|\S{0,40}mvnw|lein|stack|cabal"
    r"|dart|flutter)\s+(?:\S+\s+)?(?:\w{1,20}:)?(?:test\w{0,20}|nextest)\b"
    r"|^make\s+(?:-\S{1,20}\s+)*(?:\S*[-_:/.])?test|playwright\s+test|cypress\s+run"
    r"|manage\.py\s+test\b"
)
_CHECK = re.compile(
    r"(?:^|/|\s)(?:ruff|flake8|pylint|mypy|pyright|black|isort|eslint|prettier|tsc|clippy"
    r"|golangci-lint|shellcheck|credo"
    r"|dialyzer|rubocop|stylelint|biome|swiftlint|hadolint)(?:\s|$)"
    rf"|^(?:{_RUNNER})\s+(?:[\w-]{{1,20}}:)*(?:lint|fmt|format|check|typecheck|type-check|build"
    r"|compile|clippy)\b"
    r"|^(?:go|cargo|mix|dotnet|swift|zig|sbt|gradle|\S{0,40}gradlew|mvn|\S{0,40}mvnw|bazel"
    r"|flutter|stack|cabal|next)"
    r"\s+(?:build|compile|check|clippy|credo|format|fmt|vet|lint|dialyzer)\b"
    r"|^make\s+(?:-\S{1,20}\s+)*(?:lint|check|format|fmt|build|typecheck)\b|^gofmt\b"
    r"|pre-commit\s+run"
)


def is_test_run(command: str) -> bool:
    """Whether a command runs tests.

    >>> [is_test_run(each) for each in ("go test", "npm run test:ci", "uv run pytest -q", "make latest", "go vet")]
    [True, True, True, False, False]
    """  # noqa: E501
    return _TEST.search(command) is not None


def is_check_run(command: str) -> bool:
    """Whether a command builds, formats or checks code; its findings are work, and no trouble with
    the surroundings.

    >>> [is_check_run(each) for each in ("cargo clippy", "npx tsc --noEmit", "mise run lint", "npm start")]
    [True, True, True, False]
    """  # noqa: E501
    return _CHECK.search(command) is not None
