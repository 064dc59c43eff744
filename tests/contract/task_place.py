"""What the tests of tasks share: lengths of time, and a short way to say what is expected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def titles(tasks: Iterable[Any]) -> list[str]:
    return [task.title for task in tasks]
