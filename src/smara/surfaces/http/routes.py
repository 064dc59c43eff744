"""List every route with the method that answers it.

One table. From it come the server's dispatch, the description in OpenAPI, the Python client and the
reference page. A path is the noun, then the verb, as on the command line: ``smara tasks claim ID``
is ``POST /tasks/{task_id}/claim``. Parameters and results are those of the method.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

from smara.core.startup.record import dataclass
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
    **dict.fromkeys(("is_pinned", "is_verified", "needs_review", "is_stale"), bool | None),
}  # fmt: skip


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
        fields = field_types(NewMemory) if self.more == "fields" else more[self.more]
        found = Signature.of(self.function, fields)
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


_THREAD, _TASK, _MEMORY = "/threads/{thread_id}", "/tasks/{task_id}", "/memories/{memory_id}"


def _conversations() -> Iterator[Route]:
    """Yield the routes of search, threads and messages."""
    yield Route("GET", "/status", "status")
    yield Route("POST", "/search", "search", reads=True)
    yield Route("GET", "/search", "search")
    yield Route("POST", "/search/pack", "pack", reads=True)
    yield Route("GET", "/search/threads", "search_threads")
    yield Route("GET", "/search/pattern", "search_pattern")
    yield Route("GET", "/complete", "complete", "words")

    yield Route("GET", "/threads", "threads.list", "threads")
    yield Route("POST", "/threads", "threads.add")
    yield Route("PUT", "/threads", "threads.put")
    yield Route("GET", _THREAD, "threads.get")
    yield Route("PATCH", _THREAD, "threads.update", record="threads.get")
    yield Route("GET", f"{_THREAD}/messages", "messages.list", "messages")
    yield Route("POST", f"{_THREAD}/messages", "messages.add")
    yield Route("POST", f"{_THREAD}/messages/batch", "messages.add_many", "messages")
    yield Route("GET", f"{_THREAD}/messages/newest", "messages.last_tokens", "messages")
    yield Route("GET", f"{_THREAD}/messages/sizes", "messages.sizes", "sizes")
    yield Route("POST", f"{_THREAD}/seal", "messages.seal")
    yield Route("GET", f"{_THREAD}/window", "history.window", "entries")
    yield Route("GET", f"{_THREAD}/compactions", "compactions.list", "compactions")
    yield Route("POST", f"{_THREAD}/compactions", "compactions.compact")
    yield Route("POST", f"{_THREAD}/compactions/when-due", "compactions.compact_when_due")
    yield Route("POST", f"{_THREAD}/compactions/end-session", "compactions.end_session")
    yield Route("POST", f"{_THREAD}/compact", "compact")
    yield Route("POST", "/compactions/{compaction_id}/undo", "compactions.undo")
    yield Route("GET", "/messages/{message_id}", "messages.get")
    yield Route("GET", "/messages/{message_id}/around", "messages.around", "messages")
    yield Route("POST", "/messages/{message_id}/extend", "messages.extend")
    yield Route("GET", "/messages/{message_id}/tasks", "links.tasks", "tasks")


def _tasks() -> Iterator[Route]:
    """Yield the routes of tasks and working memory."""
    yield Route("GET", "/tasks", "tasks.list")
    yield Route("POST", "/tasks", "tasks.add")
    yield Route("PUT", "/tasks", "tasks.put_many")
    yield Route("GET", "/tasks/search", "search_tasks")
    yield Route("GET", "/tasks/ready", "tasks.ready")
    yield Route("GET", "/tasks/totals", "tasks.totals")
    yield Route("GET", "/tasks/tree", "tasks.tree", "nodes")
    yield Route("GET", "/tasks/critical-path", "tasks.critical_path", "tasks")
    yield Route("GET", "/tasks/problems", "tasks.problems", "problems")
    yield Route("GET", "/tasks/export", "tasks.export", "tasks")
    yield Route("POST", "/tasks/claim-next", "tasks.claim_next")
    yield Route("POST", "/tasks/compact", "tasks.compact")
    yield Route("POST", "/tasks/expire", "tasks.expire", "tasks")
    yield Route("POST", "/tasks/recount", "tasks.recount")
    yield Route("POST", "/tasks/sessions/{session_id}/seen", "tasks.seen")
    yield Route("POST", "/tasks/sessions/{session_id}/end", "tasks.end_session", "tasks")
    yield Route("GET", _TASK, "tasks.get")
    yield Route("PATCH", _TASK, "tasks.update", record="tasks.get")
    yield Route("GET", f"{_TASK}/show", "tasks.show")
    yield Route("GET", f"{_TASK}/history", "tasks.history", "events")
    yield Route("GET", f"{_TASK}/progress", "tasks.progress")
    yield Route("GET", f"{_TASK}/author", "tasks.author")
    yield Route("GET", f"{_TASK}/messages", "links.messages", "messages")
    yield Route("POST", f"{_TASK}/messages/{{message_id}}", "links.add")
    yield Route("DELETE", f"{_TASK}/messages/{{message_id}}", "links.remove")
    for verb in ("claim", "release", "hand_over", "close", "reopen", "depend", "undepend", "undo"):
        path = f"{_TASK}/{verb.replace('_', '-')}"
        yield Route("POST", path, f"tasks.{verb}", record="tasks.get")
    yield Route("POST", f"{_TASK}/restore", "tasks.restore", record="tasks.get")
    yield Route("POST", f"{_TASK}/claim-in-thread", "links.claim", record="tasks.get")
    yield Route("GET", f"{_THREAD}/task", "links.active")

    yield Route("GET", "/working", "working.get")
    yield Route("GET", "/working/find", "working.find")
    yield Route("PUT", "/working", "working.put", record="working.get")
    yield Route("PATCH", "/working", "working.update", record="working.get")
    yield Route("GET", "/working/history", "working.history", "versions")
    yield Route("GET", "/working/versions/{version}", "working.get_version")
    yield Route("POST", "/working/restore", "working.restore", record="working.get")
    yield Route("GET", "/working/render", "working.render")


def _memories() -> Iterator[Route]:
    """Yield the routes of memories."""
    yield Route("GET", "/memories", "memories.list", more="filters")
    yield Route("POST", "/memories", "memories.add", more="fields")
    yield Route("POST", "/memories/batch", "memories.add_many", "results", without=("put_aside",))
    yield Route("POST", "/memories/remember", "memories.remember", is_personal=True)
    yield Route("GET", "/memories/search", "search_memories")
    yield Route("GET", "/memories/review", "memories.to_review")
    yield Route("GET", "/memories/totals", "memories.totals")
    yield Route("GET", "/memories/problems", "memories.problems", "problems")
    yield Route("GET", "/memories/audit", "memories.audit")
    yield Route("GET", "/memories/for-files", "memories.for_files", "memories")
    yield Route("GET", "/memories/guess-type", "memories.guess_type")
    yield Route("GET", "/memories/export", "memories.export", "memories")
    yield Route("GET", "/memories/trust", "memories.trust")
    yield Route("PUT", "/memories/trust", "memories.set_trust_level", is_personal=True)
    yield Route("POST", "/memories/trust/decline", "memories.decline_offer", is_personal=True)
    yield Route("POST", "/memories/accept-all", "memories.accept_all", is_personal=True)
    yield Route("POST", "/memories/prune", "memories.prune")
    yield Route("POST", "/memories/recount", "memories.recount")
    yield Route("POST", "/memories/check-code", "memories.check_code", "memories")
    yield Route("POST", "/memories/check-files", "memories.check_files", "memories")
    yield Route("POST", "/memories/merge", "memories.merge", more="who")
    yield Route("POST", "/memories/supersede", "memories.supersede", more="who")
    yield Route("POST", "/memories/sessions/{session_id}/end", "memories.end_session")
    for verb in ("confidence", "staleness", "may_inject"):
        yield Route("POST", f"/memories/{verb.replace('_', '-')}", f"memories.{verb}", reads=True)
    yield Route("POST", "/memories/freshness", "memories.freshness", reads=True)
    yield Route("POST", "/memories/tellable", "memories.tellable", "memories", reads=True)
    yield Route("GET", _MEMORY, "memories.get")
    yield Route("PATCH", _MEMORY, "memories.update", more="fields", record="memories.get")
    yield Route("GET", f"{_MEMORY}/history", "memories.history", "events")
    yield Route("GET", f"{_MEMORY}/chain", "memories.chain", "memories")
    yield Route("GET", f"{_MEMORY}/why", "memories.why")
    yield Route(
        "POST", f"{_MEMORY}/accept", "memories.accept", more="fields", record="memories.get"
    )
    for verb in (
        "pin", "unpin", "verify", "forget", "retire", "restore", "relate", "unrelate",
        "mark_stale", "mark_fresh", "undo", "used", "reject",
    ):  # fmt: skip
        path = f"{_MEMORY}/{verb.replace('_', '-')}"
        yield Route("POST", path, f"memories.{verb}", more="who", record="memories.get")


def _learning() -> Iterator[Route]:
    """Yield the routes of what is noticed, decided and told."""
    yield Route("GET", "/decisions", "decisions.list")
    yield Route("GET", "/decisions/search", "decisions.search", "decisions")
    yield Route("GET", "/decisions/subjects", "decisions.subjects", "subjects")
    yield Route("GET", "/decisions/reasons", "decisions.reasons", "reasons")
    yield Route("POST", "/decisions/update", "decisions.update")
    yield Route("POST", f"{_THREAD}/decisions", "decisions.read")
    yield Route("GET", "/decisions/{decision_id}", "decisions.get")
    yield Route("GET", "/decisions/{decision_id}/why", "decisions.why")

    yield Route("GET", "/commits", "commits.list", "commits")
    yield Route("GET", "/commits/why", "commits.why", "reasons")
    yield Route("POST", "/commits/update", "commits.update")
    yield Route("GET", "/commits/{sha}", "commits.get")

    yield Route("GET", "/observations", "observations.list", "observations")
    yield Route("GET", "/observations/search", "search_observations")
    yield Route("GET", "/observations/failures", "observations.failures", "failures")
    yield Route("GET", "/observations/warnings", "observations.warned", "warnings")
    yield Route("GET", "/observations/{observation_id}", "observations.get")
    yield Route("GET", "/observations/{observation_id}/why", "observations.why", "messages")
    yield Route("GET", f"{_THREAD}/observations", "observations.active", "observations")
    yield Route("GET", f"{_THREAD}/observations/status", "observations.status")
    yield Route("GET", f"{_THREAD}/observations/record", "observations.record")
    yield Route("GET", f"{_THREAD}/observations/render", "observations.rendered")
    for verb in ("observe", "buffer", "activate", "reflect"):
        yield Route("POST", f"{_THREAD}/{verb}", f"observations.{verb}")
    yield Route("POST", f"{_THREAD}/end-session", "observations.end_session")

    yield Route("POST", f"{_THREAD}/context/input", "context.process_input")
    yield Route("POST", f"{_THREAD}/context/output", "context.process_output", "messages")
    yield Route("GET", "/context/preview", "moments.preview", without=("cwd",))
    yield Route("GET", "/receipts", "moments.receipts", "receipts")
    yield Route("GET", "/receipts/totals", "moments.totals")
    yield Route("GET", "/receipts/{receipt_id}", "moments.receipt")
    yield Route("POST", "/receipts/{receipt_id}/delivered", "moments.mark_delivered")
    yield Route("POST", "/receipts/{receipt_id}/used", "moments.mark_used")
    yield Route("PUT", "/receipts/arms", "moments.set_arms", is_personal=True)
    for verb in ("start", "first_message", "before_tool", "after_tool", "between_steps"):
        path = f"/sessions/{{session_id}}/{verb.replace('_', '-')}"
        yield Route("POST", path, f"moments.{verb}", without=("cwd",))

    yield Route("GET", "/behavior", "behavior.status")
    yield Route("GET", "/behavior/sessions", "behavior.sessions", "sessions")
    yield Route("GET", "/behavior/sessions/{session_id}", "behavior.session")
    yield Route("GET", "/behavior/sessions/{session_id}/noticed", "behavior.noticed", "noticed")
    yield Route("POST", "/behavior/sessions/{session_id}/finalize", "behavior.finalize")
    yield Route("POST", "/behavior/events", "behavior.observe_batch")
    yield Route("POST", "/behavior/run", "behavior.run_due")
    yield Route("GET", "/behavior/failures", "behavior.failures", "failures")
    yield Route("GET", "/behavior/modules", "behavior.modules", "modules")
    yield Route("GET", "/behavior/edges", "behavior.edges", "edges")


def _upkeep() -> Iterator[Route]:
    """Yield the routes of the code and of the store itself."""
    yield Route("GET", "/code/status", "code.status", without=("root",))
    yield Route("GET", "/code/trees", "code.trees", "trees")
    yield Route("POST", "/code/index", "code.index", without=("root", "scip", "workers"))
    yield Route("GET", "/code/locate", "code.locate", "places")
    for verb in ("find", "impact", "deps", "callers", "tests_for", "symbol"):
        path, noun = f"/code/{verb.replace('_', '-')}", "nodes" if verb == "find" else ""
        yield Route("GET", path, f"code.asking.{verb}", noun)
    for verb in ("cycles", "entry_points", "hotspots", "modules", "cochange"):
        path = f"/code/{verb.replace('_', '-')}"
        yield Route("GET", path, f"code.asking.{verb}", verb.replace("entry_points", "entryPoints"))
    yield Route("GET", "/code/map", "code.asking.map")

    yield Route("GET", "/embeddings", "embeddings.status")
    yield Route("POST", "/embeddings/update", "embeddings.embed_pending")
    yield Route("POST", "/embeddings/retry", "embeddings.retry")
    yield Route("GET", "/models", "models.status")
    yield Route("GET", "/models/calls", "models.calls", "calls")
    yield Route("GET", "/models/remaining", "models.remaining", "remaining")
    yield Route("GET", "/models/spent", "models.spent")
    yield Route("POST", "/models/pause", "models.pause", is_personal=True)
    yield Route("POST", "/models/resume", "models.resume", is_personal=True)
    yield Route("POST", "/worker/run", "worker.run_once")

    yield Route("POST", "/browse/facets", "browse.facets", reads=True)
    for verb in ("modules_named", "messages", "working", "coverage", "groups", "hosts", "timeline"):
        noun = verb.removesuffix("_named").replace("coverage", "modules")
        noun = noun.replace("timeline", "sessions")
        yield Route("GET", f"/browse/{verb.replace('_', '-')}", f"browse.{verb}", noun)
    yield Route("GET", "/browse/activity", "browse.activity", "days")
    yield Route("GET", "/browse/growth", "browse.growth", "days")
    yield Route("GET", "/browse/code-graph", "browse.code_graph")
    yield Route("GET", "/browse/arms", "browse.arms")
    yield Route("GET", "/browse/failures", "browse.failures")
    yield Route("GET", "/browse/health", "browse.health")
    yield Route("GET", "/browse/used-since", "browse.used_since")
    yield Route("GET", "/browse/window/{thread_id}", "browse.window")
    yield Route("GET", "/browse/why-not", "browse.why_not")
    yield Route("POST", "/browse/ask", "browse.ask", reads=True)
    yield Route("GET", "/jobs", "jobs.list", "jobs")
    yield Route("GET", "/jobs/leases", "jobs.leases", "leases")
    yield Route("GET", "/jobs/running/{kind}", "jobs.running")
    yield Route("GET", "/feed", "feed.list")
    yield Route("GET", "/feed/newest", "feed.newest")
    yield Route("GET", "/projects", "projects.list", "projects", is_store_wide=True)
    yield Route("POST", "/projects", "projects.named", is_store_wide=True)
    yield Route("GET", "/transcripts", "transcripts.status")
    yield Route("GET", "/retention", "retention.list", "kinds")
    yield Route("GET", "/retention/plan", "retention.plan")
    yield Route("POST", "/retention/run", "retention.run_due", is_personal=True)
    yield Route("POST", "/erase/plan", "privacy.plan_erase", reads=True, is_personal=True)
    yield Route("POST", "/erase", "privacy.erase", is_personal=True)
    yield Route("GET", "/export", "privacy.render", "lines")


ROUTES: tuple[Route, ...] = (
    *_conversations(),
    *_tasks(),
    *_memories(),
    *_learning(),
    *_upkeep(),
)


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
        if texts[0] == "graph":  # the name of "code" before; for one more release
            texts[0] = "code"
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
