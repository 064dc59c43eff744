"""Ask every route of the HTTP server that reads for canaries: by words, as lists, by ids.

The routes are those of the server's own table, so that a new one is asked, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

from smara.surfaces.http.routes import ROUTES, Route
from tests.faults import canaries
from tests.surfaces.http_server import Site, http_site

_IDS = {
    "message_id": "messages", "thread_id": "threads", "session_id": "threads",
    "memory_id": "memories", "task_id": "tasks",
}  # fmt: skip
_LISTS = {"decision_id": "/decisions", "receipt_id": "/receipts", "observation_id": "/observations"}
"""Where the ids are listed of what no erase is told by its id."""
_ECHO = ("query", "terms", "pattern", "prefix", "target")
_QUESTIONS = {"path": "src/{}.py", "paths": "src/{}.py", "text": "{}_fee"}
"""What is asked with a word where the word alone is no question."""
Ids = dict[str, list[str]]


@contextmanager
def served(address: str, folder: Path) -> Iterator[Site]:
    """Serve a store with canaries."""
    opened = partial(canaries.open_store, address)
    with http_site(address, folder, opened=opened, has_mem0=True) as site:
        yield site


def ids(site: Site, targets: Iterable[canaries.Target]) -> Ids:
    """Return the ids of targets, and of what was made of them, by the names in paths."""
    found: Ids = {name: [] for name in (*_IDS, *_LISTS)}
    for target in targets:
        for name, key in _IDS.items():
            found[name] += target.get(key, ())
    for name, path in _LISTS.items():
        for page in _pages(site, path):
            rows = next(each for each in page.values() if isinstance(each, list))
            found[name] += [row["id"] for row in rows]
    return found


def tellers(site: Site, every: list[str], named: Ids) -> list[str]:
    """Return the routes that answer with a word of canaries."""
    needles = canaries.windows(every)
    found = [
        route.path
        for route in ROUTES
        if route.method == "GET"
        and any(canaries.has_window(body, needles) for body in _bodies(site, route, named))
    ]
    texts = [(route, _question(route)) for route in ROUTES if route.method == "GET"]
    for word in every:
        found += [
            route.path
            for route, asked in texts
            if asked and _tells(site, f"{route.path}?{asked.format(word)}", word)
        ]
        said = site.post("/v3/memories/search/", {"query": word, "filters": {}})
        tool = {"tool": "Edit", "toolInput": {"file_path": f"src/{word}.py"}}
        told = site.post(f"/sessions/{uuid4()}/before-tool", tool)
        found += ["mem0"] * (word in str(said)) + ["before-tool"] * (word in str(told))
    return sorted(set(found))


def _question(route: Route) -> str | None:
    """Return the query of a route that is asked with a text, with a place for a word."""
    needed = [each.name for each in route.parameters if each.is_required]
    if route.in_path or len(needed) != 1:
        return None
    return urlencode({needed[0]: _QUESTIONS.get(needed[0], "{}")}, safe="{}")


def _bodies(site: Site, route: Route, named: Ids) -> Iterator[bytes]:
    """Yield the answers of a route that lists, exports, or is asked by an id."""
    if any(each.is_required and each.name != "tokens" for each in route.parameters):
        return
    given = {each.name for each in route.parameters}
    query = "limit=1000" if "limit" in given else "tokens=100000" if "tokens" in given else ""
    if not route.in_path:
        paths = [route.path]
    else:
        (name,) = route.in_path
        places = named.get(name, ())
        paths = [route.path.replace(f"{{{name}}}", quote(each, safe="")) for each in places]
    for path in paths:
        for page in _pages(site, path, query):
            yield json.dumps(page, ensure_ascii=False).encode()


def _pages(site: Site, path: str, query: str = "") -> Iterator[Any]:
    """Yield the pages of an answer; a stream of lines is one; what is gone has none."""
    cursor = ""
    while cursor is not None:
        reply = site.ask("GET", f"{path}?{query}{cursor}", smara_project="shop")
        assert reply.status in (200, 400, 404, 409, 422), (path, reply.body)
        if reply.status != 200:
            return
        is_json = reply.headers["Content-Type"] == "application/json"
        page = reply.json if is_json else {"lines": reply.body.decode()}
        yield page
        following = page.get("nextCursor") if isinstance(page, dict) else None
        cursor = f"&cursor={quote(following)}" if following else None


def _tells(site: Site, path: str, word: str) -> bool:
    place, _, query = path.partition("?")
    return any(word in json.dumps(_without_question(page)) for page in _pages(site, place, query))


def _without_question(value: Any) -> Any:
    """Return an answer without the question in it."""
    if isinstance(value, dict):
        return {name: _without_question(each) for name, each in value.items() if name not in _ECHO}
    return [_without_question(each) for each in value] if isinstance(value, list) else value
