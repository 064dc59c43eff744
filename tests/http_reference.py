"""Write ``docs/reference/http.md`` from the table of routes: ``python -m tests.http_reference``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from smara.surfaces.http.codec import camel
from smara.surfaces.http.routes import ROUTES, Route

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "http.md"
HEAD = """# Routes of the HTTP server

Written by `python -m tests.http_reference` from the table of routes; [the guide](../guide/http.md)
says how to ask. Values in **bold** are needed; **†** marks what only a person may do. Beside these
there are `/openapi.json`, `/events`, `/health`, `/live`, `/ready`, `/metrics`, `/login` and
`/logout`.
"""


def line(route: Route) -> str:
    """Return the row of a route."""
    values = ", ".join(
        f"**{camel(each.name)}**" if each.is_required else camel(each.name)
        for each in route.parameters
    )
    mark = " †" if route.is_personal else ""
    summary = route.summary.replace("|", "\\|")
    return f"| `{route.method} {route.path}`{mark} | {values} | {summary} |"


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    ordered = sorted(ROUTES, key=lambda each: each.segments[0])
    for noun, routes in groupby(ordered, key=lambda each: each.segments[0]):
        rows = "\n".join(line(each) for each in routes)
        parts.append(f"\n## {noun}\n\n| route | values | |\n|---|---|---|\n{rows}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
