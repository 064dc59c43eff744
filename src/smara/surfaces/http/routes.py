"""List every route with the method that answers it.

One table. From it come the server's dispatch, the description in OpenAPI, the Python client and the
reference page. A path is the noun, then the verb, as on the command line: ``smara tasks claim ID``
is ``POST /tasks/{task_id}/claim``. Parameters and results are those of the method.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

from smara.knowledge.models import NewMemory
from smara.memory import Memory, Room
from smara.surfaces.http.codec import Annotations, Parameter, Signature, field_types

_WHO: dict[str, Any] = {"actor": str | None, "session_id": str | None, "version": int | None}
_FILTERS: dict[str, Any] = {
    **dict.fromkeys(
        (
            "type", "source", "scope", "visibility", "tier", "tag", "file", "module",
            "session_id", "evidence_path", "message_id", "observation_id",
        ),
        str | None,
    ),
    "types": list[str] | None,
    **dict.fromkeys(("is_pinned", "is_verified", "needs_review"), bool | None),
}  # fmt: skip


@cache
def _fields() -> dict[str, Any]:
    hints = field_types(NewMemory)
    return {name: hints[name] | None for name in hints if name not in ("content", "type")}


@dataclass(frozen=True)
class Route:
    """One route, and what is true of it."""

    method: str
    path: str
    call: str
    """The method of the memory: ``tasks.claim``."""
    noun: str = ""
    """The name under which a list is given."""
    reads: bool = False
    """True for a POST that changes nothing."""
    is_personal: bool = False
    """True if only a person may do it."""
    is_store_wide: bool = False
    """True if it reaches beyond one project."""
    more: str = ""
    """The further named values that the method takes: ``who``, ``fields`` or ``filters``."""
    without: tuple[str, ...] = ()
    """Parameters that are not served, such as a path on the server's disk."""
    record: str = ""
    """The method that reads what a write changes, for If-Match: ``tasks.get``."""

    @property
    def writes(self) -> bool:
        """True if it may change something."""
        return self.method != "GET" and not self.reads

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path."""
        return tuple(self.path.removeprefix("/").split("/"))

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The parameters that stand in the path."""
        return tuple(each[1:-1] for each in self.segments if each.startswith("{"))

    @cached_property
    def function(self) -> Any:
        """The room's method, without a memory."""
        return method_of(self.call)

    @cached_property
    def signature(self) -> Signature:
        """The parameters and the result."""
        more = {"who": _WHO, "filters": _FILTERS, "": {}}
        found = Signature.of(self.function, _fields() if self.more == "fields" else more[self.more])
        if not self.without:
            return found
        served = {name: each for name, each in found.parameters.items() if name not in self.without}
        return Signature(
            served, found.result, found.unserved | frozenset(self.without), found.is_stream
        )

    @property
    def parameters(self) -> Iterator[Parameter]:
        """The parameters of the query or the body."""
        return (
            each for name, each in self.signature.parameters.items() if name not in self.in_path
        )

    @cached_property
    def is_paged(self) -> bool:
        """True if a cursor leads to the next page."""
        names = self.signature.parameters
        return "limit" in names and ("offset" in names or self.call == "messages.list")

    @cached_property
    def summary(self) -> str:
        """The first line of what the method says of itself."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


def method_of(call: str) -> Any:
    """Return the function that a call names, such as ``tasks.claim``."""
    kind: Any = Memory
    *rooms, name = call.split(".")
    for each in rooms:
        found = inspect.getattr_static(kind, each)
        if isinstance(found, Room):
            getter = found.room.func
            kind = Annotations(getter).resolve(getter.__annotations__["return"])
        else:  # a method that gives a room: `code.asking`
            kind = Annotations(found).resolve(inspect.signature(found).return_annotation)
    return inspect.getattr_static(kind, name)


def _routes() -> Iterator[Route]:
    read, thread, task, memory = (
        Route,
        "/threads/{thread_id}",
        "/tasks/{task_id}",
        "/memories/{memory_id}",
    )

    yield read("GET", "/status", "status")
    yield read("POST", "/search", "search", reads=True)
    yield read("GET", "/search", "search")
    yield read("POST", "/search/pack", "pack", reads=True)
    yield read("GET", "/search/threads", "search_threads")
    yield read("GET", "/search/pattern", "search_pattern")
    yield read("GET", "/complete", "complete", "words")

    yield read("GET", "/threads", "threads.list", "threads")
    yield read("POST", "/threads", "threads.add")
    yield read("PUT", "/threads", "threads.put")
    yield read("GET", thread, "threads.get")
    yield read("PATCH", thread, "threads.update", record="threads.get")
    yield read("GET", f"{thread}/messages", "messages.list", "messages")
    yield read("POST", f"{thread}/messages", "messages.add")
    yield read("POST", f"{thread}/messages/batch", "messages.add_many", "messages")
    yield read("GET", f"{thread}/messages/newest", "messages.last_tokens", "messages")
    yield read("POST", f"{thread}/seal", "messages.seal")
    yield read("GET", f"{thread}/window", "history.window", "entries")
    yield read("GET", f"{thread}/compactions", "compactions.list", "compactions")
    yield read("POST", f"{thread}/compactions", "compactions.compact")
    yield read("POST", f"{thread}/compact", "compact")
    yield read("POST", "/compactions/{compaction_id}/undo", "compactions.undo")
    yield read("GET", "/messages/{message_id}", "messages.get")
    yield read("GET", "/messages/{message_id}/around", "messages.around", "messages")
    yield read("POST", "/messages/{message_id}/extend", "messages.extend")
    yield read("GET", "/messages/{message_id}/tasks", "links.tasks", "tasks")

    yield read("GET", "/tasks", "tasks.list")
    yield read("POST", "/tasks", "tasks.add")
    yield read("PUT", "/tasks", "tasks.put_many")
    yield read("GET", "/tasks/search", "search_tasks")
    yield read("GET", "/tasks/ready", "tasks.ready")
    yield read("GET", "/tasks/totals", "tasks.totals")
    yield read("GET", "/tasks/tree", "tasks.tree", "nodes")
    yield read("GET", "/tasks/critical-path", "tasks.critical_path", "tasks")
    yield read("GET", "/tasks/problems", "tasks.problems", "problems")
    yield read("GET", "/tasks/export", "tasks.export", "tasks")
    yield read("POST", "/tasks/claim-next", "tasks.claim_next")
    yield read("POST", "/tasks/compact", "tasks.compact")
    yield read("POST", "/tasks/expire", "tasks.expire", "tasks")
    yield read("POST", "/tasks/recount", "tasks.recount")
    yield read("POST", "/tasks/sessions/{session_id}/seen", "tasks.seen")
    yield read("POST", "/tasks/sessions/{session_id}/end", "tasks.end_session", "tasks")
    yield read("GET", task, "tasks.get")
    yield read("PATCH", task, "tasks.update", record="tasks.get")
    yield read("GET", f"{task}/show", "tasks.show")
    yield read("GET", f"{task}/history", "tasks.history", "events")
    yield read("GET", f"{task}/progress", "tasks.progress")
    yield read("GET", f"{task}/author", "tasks.author")
    yield read("GET", f"{task}/messages", "links.messages", "messages")
    yield read("POST", f"{task}/messages/{{message_id}}", "links.add")
    yield read("DELETE", f"{task}/messages/{{message_id}}", "links.remove")
    for verb in ("claim", "release", "hand_over", "close", "reopen", "depend", "undepend", "undo"):
        path = f"{task}/{verb.replace('_', '-')}"
        yield read("POST", path, f"tasks.{verb}", record="tasks.get")
    yield read("POST", f"{task}/restore", "tasks.restore", record="tasks.get")
    yield read("POST", f"{task}/claim-in-thread", "links.claim", record="tasks.get")
    yield read("GET", f"{thread}/task", "links.active")

    yield read("GET", "/working", "working.get")
    yield read("PUT", "/working", "working.put", record="working.get")
    yield read("PATCH", "/working", "working.update", record="working.get")
    yield read("GET", "/working/history", "working.history", "versions")
    yield read("GET", "/working/versions/{version}", "working.get_version")
    yield read("POST", "/working/restore", "working.restore", record="working.get")
    yield read("GET", "/working/render", "working.render")

    yield read("GET", "/memories", "memories.list", more="filters")
    yield read("POST", "/memories", "memories.add", more="fields")
    yield read("POST", "/memories/batch", "memories.add_many", "results", without=("put_aside",))
    yield read("POST", "/memories/remember", "memories.remember", is_personal=True)
    yield read("GET", "/memories/search", "search_memories")
    yield read("GET", "/memories/review", "memories.to_review")
    yield read("GET", "/memories/totals", "memories.totals")
    yield read("GET", "/memories/problems", "memories.problems", "problems")
    yield read("GET", "/memories/audit", "memories.audit")
    yield read("GET", "/memories/for-files", "memories.for_files", "memories", without=("root",))
    yield read("GET", "/memories/guess-type", "memories.guess_type")
    yield read("GET", "/memories/export", "memories.export", "memories")
    yield read("GET", "/memories/trust", "memories.trust")
    yield read("PUT", "/memories/trust", "memories.set_trust_level", is_personal=True)
    yield read("POST", "/memories/trust/decline", "memories.decline_offer", is_personal=True)
    yield read("POST", "/memories/accept-all", "memories.accept_all", is_personal=True)
    yield read("POST", "/memories/prune", "memories.prune")
    yield read("POST", "/memories/recount", "memories.recount")
    yield read("POST", "/memories/check-code", "memories.check_code", "memories")
    yield read("POST", "/memories/check-files", "memories.check_files", "memories")
    yield read("POST", "/memories/merge", "memories.merge", more="who")
    yield read("POST", "/memories/supersede", "memories.supersede", more="who")
    yield read("POST", "/memories/sessions/{session_id}/end", "memories.end_session")
    for verb in ("confidence", "staleness", "may_inject"):
        yield read("POST", f"/memories/{verb.replace('_', '-')}", f"memories.{verb}", reads=True)
    yield read("POST", "/memories/freshness", "memories.freshness", reads=True)
    yield read("POST", "/memories/tellable", "memories.tellable", "memories", reads=True)
    yield read("GET", memory, "memories.get")
    yield read("PATCH", memory, "memories.update", more="fields", record="memories.get")
    yield read("GET", f"{memory}/history", "memories.history", "events")
    yield read("GET", f"{memory}/chain", "memories.chain", "memories")
    yield read("GET", f"{memory}/why", "memories.why")
    yield read("POST", f"{memory}/accept", "memories.accept", more="fields", record="memories.get")
    for verb in (
        "pin", "unpin", "verify", "forget", "retire", "restore", "relate", "unrelate",
        "mark_stale", "mark_fresh", "undo", "used", "reject",
    ):  # fmt: skip
        path = f"{memory}/{verb.replace('_', '-')}"
        yield read("POST", path, f"memories.{verb}", more="who", record="memories.get")

    yield read("GET", "/decisions", "decisions.list")
    yield read("GET", "/decisions/search", "decisions.search", "decisions")
    yield read("GET", "/decisions/subjects", "decisions.subjects", "subjects")
    yield read("GET", "/decisions/reasons", "decisions.reasons", "reasons")
    yield read("POST", "/decisions/update", "decisions.update")
    yield read("POST", f"{thread}/decisions", "decisions.read")
    yield read("GET", "/decisions/{decision_id}", "decisions.get")
    yield read("GET", "/decisions/{decision_id}/why", "decisions.why")

    yield read("GET", "/commits", "commits.list", "commits")
    yield read("GET", "/commits/why", "commits.why", "reasons")
    yield read("POST", "/commits/update", "commits.update")
    yield read("GET", "/commits/{sha}", "commits.get")

    yield read("GET", "/observations", "observations.list", "observations")
    yield read("GET", "/observations/search", "search_observations")
    yield read("GET", "/observations/failures", "observations.failures", "failures")
    yield read("GET", "/observations/warnings", "observations.warned", "warnings")
    yield read("GET", "/observations/{observation_id}", "observations.get")
    yield read("GET", "/observations/{observation_id}/why", "observations.why", "messages")
    yield read("GET", f"{thread}/observations", "observations.active", "observations")
    yield read("GET", f"{thread}/observations/status", "observations.status")
    yield read("GET", f"{thread}/observations/record", "observations.record")
    yield read("GET", f"{thread}/observations/render", "observations.rendered")
    for verb in ("observe", "buffer", "activate", "reflect"):
        yield read("POST", f"{thread}/{verb}", f"observations.{verb}")
    yield read("POST", f"{thread}/end-session", "observations.end_session")

    yield read("POST", f"{thread}/context/input", "context.process_input")
    yield read("POST", f"{thread}/context/output", "context.process_output", "messages")
    yield read("GET", "/context/preview", "moments.preview", without=("cwd",))
    yield read("GET", "/receipts", "moments.receipts", "receipts")
    yield read("GET", "/receipts/totals", "moments.totals")
    yield read("GET", "/receipts/{receipt_id}", "moments.receipt")
    yield read("POST", "/receipts/{receipt_id}/delivered", "moments.mark_delivered")
    yield read("POST", "/receipts/{receipt_id}/used", "moments.mark_used")
    yield read("PUT", "/receipts/arms", "moments.set_arms", is_personal=True)
    for verb in ("start", "first_message", "before_tool", "after_tool", "between_steps"):
        path = f"/sessions/{{session_id}}/{verb.replace('_', '-')}"
        yield read("POST", path, f"moments.{verb}", without=("cwd",))

    yield read("GET", "/behavior", "behavior.status")
    yield read("GET", "/behavior/sessions", "behavior.sessions", "sessions")
    yield read("GET", "/behavior/sessions/{session_id}", "behavior.session")
    yield read("GET", "/behavior/sessions/{session_id}/noticed", "behavior.noticed", "noticed")
    yield read("POST", "/behavior/sessions/{session_id}/finalize", "behavior.finalize")
    yield read("POST", "/behavior/events", "behavior.observe_batch")
    yield read("POST", "/behavior/run", "behavior.run_due")
    yield read("GET", "/behavior/failures", "behavior.failures", "failures")
    yield read("GET", "/behavior/modules", "behavior.modules", "modules")
    yield read("GET", "/behavior/edges", "behavior.edges", "edges")

    yield read("GET", "/graph/status", "code.status", without=("root",))
    yield read("GET", "/graph/trees", "code.trees", "trees")
    yield read("POST", "/graph/index", "code.index", without=("root", "scip", "workers"))
    yield read("GET", "/graph/locate", "code.locate", "places")
    for verb in ("find", "impact", "deps", "callers", "tests_for", "symbol"):
        path, noun = f"/graph/{verb.replace('_', '-')}", "nodes" if verb == "find" else ""
        yield read("GET", path, f"code.asking.{verb}", noun)
    for verb in ("cycles", "entry_points", "hotspots", "modules", "cochange"):
        path = f"/graph/{verb.replace('_', '-')}"
        yield read("GET", path, f"code.asking.{verb}", verb.replace("entry_points", "entryPoints"))
    yield read("GET", "/graph/map", "code.asking.map")

    yield read("GET", "/embeddings", "embeddings.status")
    yield read("POST", "/embeddings/update", "embeddings.embed_pending")
    yield read("POST", "/embeddings/retry", "embeddings.retry")
    yield read("GET", "/models", "models.status")
    yield read("GET", "/models/calls", "models.calls", "calls")
    yield read("GET", "/models/remaining", "models.remaining", "remaining")
    yield read("GET", "/models/spent", "models.spent")
    yield read("POST", "/models/pause", "models.pause", is_personal=True)
    yield read("POST", "/models/resume", "models.resume", is_personal=True)
    yield read("POST", "/worker/run", "worker.run_once")

    yield read("GET", "/feed", "feed.list")
    yield read("GET", "/feed/newest", "feed.newest")
    yield read("GET", "/projects", "projects.list", "projects", is_store_wide=True)
    yield read("POST", "/projects", "projects.named", is_store_wide=True)
    yield read("GET", "/retention", "retention.list", "kinds")
    yield read("GET", "/retention/plan", "retention.plan")
    yield read("POST", "/retention/run", "retention.run_due", is_personal=True)
    yield read("POST", "/erase/plan", "privacy.plan_erase", reads=True, is_personal=True)
    yield read("POST", "/erase", "privacy.erase", is_personal=True)
    yield read("GET", "/export", "privacy.render", "lines")


ROUTES: tuple[Route, ...] = tuple(_routes())


class Router:
    """Finds routes; a literal part goes before a parameter."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._root: dict[str, Any] = {}
        for route in routes:
            node = self._root
            for each in route.segments:
                node = node.setdefault("{}" if each.startswith("{") else f"={each}", {})
            node.setdefault("routes", {})[route.method] = route

    def find(self, raw_path: bytes) -> tuple[Mapping[str, Route], list[str]]:
        """Return a path's routes by method, and its values."""
        segments = raw_path.partition(b"?")[0].removeprefix(b"/").split(b"/")
        texts = [unquote_to_bytes(each).decode("utf-8", "replace") for each in segments]
        return self._walk(self._root, texts, []) or ({}, [])

    def _walk(
        self, node: dict[str, Any], texts: list[str], values: list[str]
    ) -> tuple[Mapping[str, Route], list[str]] | None:
        if not texts:
            return (node["routes"], values) if "routes" in node else None
        first, *rest = texts
        literal = node.get(f"={first}")
        found = self._walk(literal, rest, values) if literal is not None else None
        if found is None and "{}" in node:
            found = self._walk(node["{}"], rest, [*values, first])
        return found


ROUTE_OF: dict[str, Route] = {route.call: route for route in reversed(ROUTES)}
"""The first route of each call, which the client uses."""
