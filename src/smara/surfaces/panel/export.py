"""Write one page of a project that needs no server.

Everything stands in the file itself: no address is loaded, and a policy in its head forbids it. It
is read page by page from the store and written as it comes, however large the project is.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from smara import __version__
from smara.core.clock import SystemClock
from smara.memory import Memory
from smara.surfaces.http.shape import Shaper
from smara.surfaces.panel.page import Facts
from smara.surfaces.panel.panel import environment

_PAGE = 200


def export(memory: Memory, path: Path, language: str = "en") -> Facts:
    """Write the page of a project in place of an older one.

    Returns:
        How many records it has, by kind, and its bytes.
    """
    counts: dict[str, int] = {}
    shaper = Shaper(memory)
    preview = memory.moments.preview()

    def rows(name: str, read: Callable[[int], tuple[list[Any], int | None]]) -> Iterator[Facts]:
        offset: int | None = 0
        while offset is not None:
            records, offset = read(offset)
            counts[name] = counts.get(name, 0) + len(records)
            yield from shaper.shape(records)

    def memories(offset: int) -> tuple[list[Any], int | None]:
        page = memory.memories.list(limit=_PAGE, offset=offset)
        return list(page.memories), page.next_offset

    def tasks(offset: int) -> tuple[list[Any], int | None]:
        page = memory.tasks.list(limit=_PAGE, offset=offset)
        return list(page.tasks), offset + _PAGE if len(page.tasks) == _PAGE else None

    def sessions(offset: int) -> tuple[list[Any], int | None]:
        page = memory.threads.list(limit=_PAGE, offset=offset)
        return page, offset + _PAGE if len(page) == _PAGE else None

    style, script = _static("panel.css"), _static("exported.js")
    pieces = (
        environment(language)
        .get_template("export.html")
        .generate(
            language=language,
            project=memory.project,
            version=__version__,
            now=SystemClock().now_ms(),
            style=Markup(style),  # noqa: S704 - our own file, word for word
            script=Markup(script),  # noqa: S704
            policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'",
            next={"text": preview.text, "tokens": preview.tokens},
            totals={"memories": memory.memories.totals().active},
            memories=rows("memories", memories),
            tasks=rows("tasks", tasks),
            sessions=rows("sessions", sessions),
        )
    )
    partial = path.with_name(f"{path.name}.part")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.writelines(pieces)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return {"path": str(path), "bytes": path.stat().st_size, "counts": counts}


def _static(name: str) -> str:
    return files("smara.surfaces.panel").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the source of a policy that allows one inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
