"""A progress bar on standard error, for people only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smara.surfaces.cli.output import printable


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Gives a function to call with (done, total); ``None`` when nobody is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),  # a file may be called "[bold].jsonl"
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(printable(label, sys.stderr), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
