"""Hold the suites of each framework; every module here has a tuple ``SUITES``."""

from __future__ import annotations

import importlib
import pkgutil

from tests.conformance.suite import Suite


def all_suites() -> tuple[Suite, ...]:
    """Return every suite, by name."""
    modules = [
        importlib.import_module(f"{__name__}.{each.name}")
        for each in pkgutil.iter_modules(__path__)
    ]
    suites = [suite for module in modules for suite in module.SUITES]
    return tuple(sorted(suites, key=lambda suite: suite.name))
