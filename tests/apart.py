"""Packages that exclude others of this environment: ``make conformance`` makes them their own."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

PACKAGES = ("crewai",)


def missing(text: str) -> str | None:
    """Return the package that a program or a module's name needs and that is not here."""
    return next((name for name in PACKAGES if name in text and find_spec(name) is None), None)


def skip_without(text: str) -> None:
    """Skip the test if a package that the text needs has an environment of its own."""
    if name := missing(text):
        pytest.skip(f"{name} has an environment of its own: make conformance")


def warnings_for(text: str) -> str:
    """Return how a program's warnings are treated: those of these packages are not ours."""
    return "ignore" if any(name in text for name in PACKAGES) else "error"
