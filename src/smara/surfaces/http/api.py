"""Answer requests with the rooms' methods.

Nothing is decided here: the table of routes says what is served, the rooms' own types say which
values a request may have, and the rooms do the work, in a worker thread.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from smara.core.startup.record import dataclass, replace
from smara.core.validate import precondition
from smara.errors import (
    CannotOpenError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    SmaraError,
)
from smara.memory import Memory
from smara.requests.models import Principal
from smara.shapes import encodable
from smara.surfaces.http.codec import camel, decode, encode
from smara.surfaces.http.problem import MEDIA_TYPE, Refusal, problem
from smara.surfaces.http.routes import ROUTE_OF, Route, Router
from smara.surfaces.http.shape import Shaper, tag_of
from smara.surfaces.http.store import Store

RECORD = "application/vnd.smara.record+json"
"""What the Python client accepts: records as they are."""
PAGE = 100
MOST_ON_A_PAGE = 1_000
MOST_DEPTH = 64
_MOST_PROJECTS = 64
_THREADS = 16
_LONGEST_KEY = 255
_MOST_ANSWERS = 200
_LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: its key, project and session."""

    principal: Principal
    project: str | None
    actor: str | None
    session_id: str | None
    wants_records: bool

    @classmethod
    def of(cls, request: Request) -> Caller:
        """Read the caller of a request."""
        headers, principal = request.headers, request.scope["state"]["principal"]
        return cls(
            principal,
            project=headers.get("smara-project") or request.query_params.get("project") or None,
            actor=headers.get("smara-actor") or None,
            session_id=headers.get("smara-session") or None,
            wants_records=RECORD in headers.get("accept", ""),
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that is ready to be sent."""

    body: Any
    tag: str | None = None
    status: int = 200
    made: tuple[str | None, str | None] = (None, None)
    """The method that reads what was made, and its id."""
    is_replayed: bool = False
    lines: Iterator[bytes] | None = None


class Api:
    """The ASGI application behind every room's routes."""

    def __init__(self, store: Store, after_write: Callable[[Memory], object] | None = None) -> None:
        self._store = store
        self._after_write = after_write
        self._router = Router()
        self._limiter: anyio.CapacityLimiter | None = None
        self._answers: OrderedDict[str, Answered] = OrderedDict()
        self._siblings: WeakKeyDictionary[Memory, dict[str, Memory]] = WeakKeyDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self.respond(request)
        await response(scope, receive, send)

    async def respond(self, request: Request) -> Response:
        """Return the answer to a request."""
        raw = request.scope.get("raw_path") or request.url.path.encode()
        routes, values = self._router.find(raw)
        if not routes:
            raise Refusal(404, "no_route", "There is nothing at this path. See /openapi.json.")
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allowed = ", ".join(sorted(routes))
            raise Refusal(405, "wrong_method", f"Use {allowed} here.", allow=allowed)
        request.scope["state"]["route"] = route.path
        caller = Caller.of(request)
        check_right(route, caller)
        given = await read_values(request, route)
        given |= {
            name: decode(route.signature.parameters[name].hint, value, name, is_text=True)
            for name, value in zip(route.in_path, values, strict=True)
        }
        cursor, key = given.pop("cursor", None), request.headers.get("idempotency-key")
        call = Call(route, caller, given, cursor=cursor, match=request.headers.get("if-match"))
        if key and route.writes:
            answered = await self.in_thread(partial(self._answer_once, call, key))
        else:
            answered = await self.in_thread(partial(self.answer, call))
        return respond_with(request, caller, answered)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Run work beside the event loop, a few at a time."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    def answer(self, call: Call) -> Answered:
        """Answer a call, in a worker thread."""
        if call.route.signature.is_stream:
            lines = self._lines(call)
            first = next(lines, b"")  # what is wrong with the call shows here, before an answer
            return Answered(None, lines=chain([first], lines))
        try:
            return self._run(call)
        except CannotOpenError:  # the store was erased or replaced: once more, on what is there now
            return self._run(call)

    def _run(self, call: Call) -> Answered:
        with self.memory(call.caller, call.route.writes) as memory:
            try:
                answered = call.run(memory)
            except StaleError as error:
                return error.respond(memory)
            if call.route.writes:
                self.written(memory)
            return answered

    def _answer_once(self, call: Call, key: str) -> Answered:
        """Answer a request that may be sent again: it is done once.

        Raises:
            ConflictError: If the key stands for another request, or the first has not ended.
        """
        if len(key) > _LONGEST_KEY:
            raise InvalidInputError(
                f"Idempotency-Key has at most {_LONGEST_KEY} characters.", field="Idempotency-Key"
            )
        who, route = call.caller.principal.name, call.route
        place = f"{call.caller.project} {who} {key}"
        request = f"{route.method} {route.call} {json.dumps(encode(call.given), sort_keys=True)}"
        with self.memory(call.caller, may_add=True) as memory:
            requests = memory.internals.requests
            done = requests.begin(f"{who} {key}", request)
            if done is not None:
                return self._answers.get(place) or replayed(call, memory, done)
            try:
                answered: Answered = self.answer(call)
            except (SmaraError, Refusal):  # nothing was done
                requests.abandon(f"{who} {key}")
                raise
            if answered.status >= 400:
                requests.abandon(f"{who} {key}")
            else:
                requests.finish(f"{who} {key}", *answered.made)
                self._answers[place] = replace(answered, is_replayed=True)
                while len(self._answers) > _MOST_ANSWERS:
                    self._answers.popitem(last=False)
            return answered

    def written(self, memory: Memory) -> None:
        """Tell those who watch that something was written."""
        if self._after_write is not None:
            self._after_write(memory)

    def reload(self) -> None:
        """Open the memory again at its next use, for changed settings."""
        self._store.close()

    def _lines(self, call: Call) -> Iterator[bytes]:
        with self.memory(call.caller) as memory:
            yield from call.lines(memory)

    @contextmanager
    def memory(self, caller: Caller, may_add: bool = False) -> Iterator[Memory]:
        """Lend the memory of a caller's project.

        Raises:
            Refusal: If its key is for other projects.
            NotFoundError: If there is no such project, and none may be added.
        """
        with self._store.memory() as opened:
            name = caller.project or opened.project
            allowed = caller.principal.projects
            if allowed is not None and name not in allowed:
                raise Refusal(403, "foreign_project", "This key is for other projects.")
            yield self._sibling(opened, name, may_add)

    def _sibling(self, opened: Memory, name: str, may_add: bool) -> Memory:
        if name == opened.project:
            return opened
        siblings = self._siblings.setdefault(opened, {})
        if name not in siblings:
            if not may_add and all(name != each.id for each in opened.projects.list()):
                raise NotFoundError(f"There is no project {name!r}.", project=name)
            while len(siblings) >= _MOST_PROJECTS:
                siblings.pop(next(iter(siblings)))
            siblings[name] = opened.in_project(name)
        return siblings[name]


def check_right(route: Route, caller: Caller) -> None:
    """Refuse what the caller's key does not allow."""
    who = caller.principal
    if route.writes and not who.may_write:
        raise Refusal(403, "read_only_key", "This key may only read.")
    if route.is_personal and not who.is_person:
        raise Refusal(403, "not_a_person", "Only a person may do this, not an agent's key.")
    if route.is_store_wide and who.projects is not None:
        raise Refusal(403, "foreign_project", "This key is for some projects alone.")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a room's method."""

    route: Route
    caller: Caller
    given: dict[str, Any]
    cursor: str | None = None
    match: str | None = None

    def run(self, memory: Memory) -> Answered:
        """Call the method and shape what it returns.

        Raises:
            StaleError: If the record has another version than If-Match names.
        """
        route = self.route
        given = self._with_page(self._with_caller(self.given))
        if self.match is None or not route.record:
            result = bound(memory, route.call)(**given)
        else:
            result = self._run_matched(memory, given)
        following = self._following(result, given)
        tag = tag_of(result) if _is_tagged(route) and result is not None else None
        if self.caller.wants_records:
            body: Any = {"result": encode(result)}
        else:
            body = self._named(Shaper(memory).shape(result))
        if route.is_paged:
            body["nextCursor"] = following
        if route.call == "status" and self.caller.principal.projects is not None:
            body.get("result", body).pop("store")  # what is true of all projects
        status = 201 if route.call.endswith(".add") else 200
        # A record keeps half characters, which JSON can escape; other readers cannot take them.
        body = body if self.caller.wants_records else encodable(body)
        return Answered(body, tag, status, made_by(result))

    def _run_matched(self, memory: Memory, given: dict[str, Any]) -> Any:
        """Call a method that changes a record, if it still is as the caller saw it."""
        reader = ROUTE_OF[self.route.record]
        names = reader.signature.parameters
        read = partial(bound(memory, reader.call), **{k: v for k, v in given.items() if k in names})
        current = read()
        tags = {each.strip() for each in (self.match or "").split(",")}
        if "*" in tags:
            return bound(memory, self.route.call)(**given)
        if tag_of(current) not in tags:
            raise StaleError(current, tag_of(current), self)
        named = self.route.signature.parameters
        version = next((name for name in ("version", "expected_version") if name in named), None)
        if version is not None:
            given = {version: current.version, **given}

        def check(record: Any) -> None:
            # Between the look and the write another process may have changed it.
            if record.id == current.id and tag_of(record) != tag_of(current):
                raise ConflictError("It was changed since it was read.")

        token = precondition.set(check)
        try:
            return bound(memory, self.route.call)(**given)
        except ConflictError as error:
            newest = read()
            if tag_of(newest) == tag_of(current):
                raise
            raise StaleError(newest, tag_of(newest), self) from error
        finally:
            precondition.reset(token)

    def _with_caller(self, given: dict[str, Any]) -> dict[str, Any]:
        """Add who acts: a key decides if it is a person, its name stands in the history."""
        named, who = self.route.signature.parameters, self.caller.principal
        given = dict(given)
        if "by" in named:
            if given.get("by", "agent") != "agent" and not who.is_person:
                raise Refusal(403, "not_a_person", "This key acts as an agent, not as a person.")
            if given.get("by") == "system":
                raise Refusal(403, "not_the_system", "Only the store itself acts as the system.")
            if not who.is_person:
                given["by"] = "agent"
            elif not self.caller.wants_records:  # the client has the defaults of the methods
                given.setdefault("by", "person")
        if who.projects is not None and given.get("is_everything"):
            raise Refusal(403, "foreign_project", "This key is for some projects alone.")
        mine = {"actor": self.caller.actor, "session_id": self.caller.session_id}
        for name, value in mine.items():
            if name in named and name not in self.route.in_path and value is not None:
                given.setdefault(name, value)
        return given

    def _with_page(self, given: dict[str, Any]) -> dict[str, Any]:
        """Bound the size of a page and go to the place that a cursor names."""
        named = self.route.signature.parameters
        if "limit" not in named:
            return given
        limit = given.get("limit")
        if limit is not None and limit > MOST_ON_A_PAGE:
            raise InvalidInputError(f"limit is at most {MOST_ON_A_PAGE}.", field="limit")
        is_own = limit is None and named["limit"].default is None
        if is_own:
            given["limit"] = PAGE
        if self.cursor is not None:
            given[self._place] = read_cursor(self.cursor, self.route.call)
        elif self._place == "after" and given.get("before") is None:
            # With a limit alone the room gives the newest; pages begin with the oldest.
            first = {"after": 0} if is_own or not self.caller.wants_records else {}
            given = first | given
        return given

    @property
    def _place(self) -> str:
        return "after" if self.route.call == "messages.list" else "offset"

    def _following(self, result: Any, given: dict[str, Any]) -> str | None:
        """Return the cursor of the next page, if there may be one."""
        place = getattr(result, "next_offset", None)
        if self.route.is_paged and isinstance(result, list) and result:
            limit = given.get("limit", self.route.signature.parameters["limit"].default)
            if limit is not None and len(result) >= limit:
                if self._place == "offset":
                    place = given.get("offset", 0) + len(result)
                elif "after" in given:
                    place = result[-1].seq
        return None if place is None else write_cursor(place, self.route.call)

    def _named(self, shape: Any) -> dict[str, Any]:
        if isinstance(shape, list):
            return {self.route.noun or "results": shape}
        if isinstance(shape, dict):
            return {name: each for name, each in shape.items() if name != "nextOffset"}
        return {"value": shape}

    def lines(self, memory: Memory) -> Iterator[bytes]:
        """Yield the pieces of a stream, one JSON value to a line."""
        shaper = Shaper(memory)
        shape: Callable[[Any], Any] = encode if self.caller.wants_records else shaper.shape
        for each in bound(memory, self.route.call)(**self.given):
            yield json.dumps(shape(each)).encode() + b"\n"


class StaleError(Exception):
    """A second editor: the record is not what the caller saw."""

    def __init__(self, current: Any, tag: str, call: Call) -> None:
        super().__init__("The record was changed since it was read.")
        self.current, self.tag, self.call = current, tag, call

    def respond(self, memory: Memory) -> Answered:
        """Return the stored version and the one that was sent."""
        now = {"etag": self.tag, "record": Shaper(memory).shape(self.current)}
        sent = {"etag": self.call.match, "changes": encode(self.call.given)}
        detail = "It was changed since you read it. Look at both and send your change again."
        body = problem(409, "stale", detail, current=now, yours=sent)
        return Answered(encodable(body), self.tag, 409)


def bound(memory: Memory, call: str) -> Callable[..., Any]:
    """Return a room's method of a memory."""
    place: Any = memory
    *rooms, name = call.split(".")
    for each in rooms:
        place = getattr(place, each)
        place = place() if inspect.ismethod(place) else place  # `code.asking` gives a room
    method: Callable[..., Any] = getattr(place, name)
    return method


def _is_tagged(route: Route) -> bool:
    """Return True if an answer is one record that can be changed under If-Match."""
    return bool(route.record) or route.call in TAGGED


READERS = {"Task": "tasks.get", "TypedMemory": "memories.get", "Message": "messages.get"}
"""How to read again what a request made; only what has an id that means nothing."""
TAGGED = frozenset({"threads.get", "tasks.get", "working.get", "memories.get"})


def made_by(result: Any) -> tuple[str | None, str | None]:
    """Return the method that reads a record again, and its id."""
    record = getattr(result, "memory", result)
    call = READERS.get(type(record).__name__)
    return (call, record.id) if call else (None, None)


def replayed(call: Call, memory: Memory, done: Any) -> Answered:
    """Return what an earlier request made, as it is now."""
    if done.call is None:
        return Answered({"value": None}, is_replayed=True)
    record = bound(memory, done.call)(done.record_id)
    shape = encode(record) if call.caller.wants_records else Shaper(memory).shape(record)
    body = {"result": shape} if call.caller.wants_records else shape
    return Answered(encodable(body), tag_of(record), is_replayed=True)


async def read_values(request: Request, route: Route) -> dict[str, Any]:
    """Read the values of a request by the route's types.

    Raises:
        InvalidInputError: If a value is unknown, missing or of another type.
        Refusal: If the body is not JSON.
    """
    named = {camel(each.name): each for each in route.parameters}
    given: dict[str, Any] = {}
    is_record = RECORD in request.headers.get("accept", "")
    if route.method == "GET":
        for name in dict.fromkeys(request.query_params):
            values = request.query_params.getlist(name)
            if name == "cursor" and route.is_paged:
                given["cursor"] = values[-1]
            elif name in named:
                label = named[name].name if is_record else name
                given[named[name].name] = from_query(named[name].hint, values, label)
            elif name != "project":
                raise unknown(name, named)
    else:
        for name, value in (await read_body(request)).items():
            if name not in named:
                raise unknown(name, named)
            label = named[name].name if is_record else name
            given[named[name].name] = decode(named[name].hint, value, label)
    check_required(named, given)
    return given


def from_query(hint: Any, values: list[str], name: str) -> Any:
    """Decode the values of a query's name."""
    try:
        if values == ["[]"] and not isinstance(hint, type):
            return decode(hint, [], name)
        return decode(hint, values[0] if len(values) == 1 else values, name, is_text=True)
    except InvalidInputError:
        if len(values) > 1:
            raise
        try:
            return decode(hint, values, name, is_text=True)
        except InvalidInputError:
            pass
        raise


def check_required(named: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse a call without a value that it needs.

    Raises:
        InvalidInputError: If a required value is missing.
    """
    missing = [name for name, each in named.items() if each.is_required and each.name not in given]
    if missing:
        raise InvalidInputError(f"{missing[0]} is needed.", field=missing[0])


def unknown(name: str, named: Mapping[str, Any]) -> InvalidInputError:
    """Return the error of a value that no parameter has."""
    names = ", ".join(sorted(named)) or "none"
    return InvalidInputError(f"{name[:60]!r} is unknown here. There are: {names}.", field=name[:60])


async def read_body(request: Request) -> dict[str, Any]:
    """Read a JSON object; an empty body is an empty one.

    Raises:
        Refusal: If the body is of another type, is not JSON, or is nested too deeply.
    """
    body = await request.body()
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", RECORD):
        raise Refusal(415, "not_json", "Send the body as Content-Type: application/json.")
    try:
        value = json.loads(body, parse_constant=_refuse_constant, object_pairs_hook=_once)
        depth = depth_of(value)
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, _NotStrictError) else "it cannot be read"
        raise Refusal(400, "not_json", f"The body is not JSON: {why}.") from None
    if depth > MOST_DEPTH:
        raise Refusal(400, "too_deep", f"The body is nested deeper than {MOST_DEPTH}.")
    if not isinstance(value, dict):
        raise Refusal(400, "not_an_object", "The body must be an object.")
    is_record = RECORD in request.headers.get("accept", "")
    return value if is_record else dict(encodable(value))


class _NotStrictError(ValueError):
    """JSON that two readers would read differently."""


def _refuse_constant(name: str) -> Any:
    raise _NotStrictError(f"{name} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _NotStrictError("a name stands there twice")
    return made


def depth_of(value: Any) -> int:
    """Return how deeply a JSON value is nested.

    >>> depth_of({"a": [1]})
    2
    """
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def write_cursor(place: int, call: str) -> str:
    """Return the cursor of a place in a list."""
    return base64.urlsafe_b64encode(f"{call} {place}".encode()).decode("ascii").rstrip("=")


def read_cursor(text: str, call: str) -> int:
    """Return the place that a cursor of the same list names.

    Raises:
        InvalidInputError: If it is not a cursor of this list.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        name, _, place = base64.urlsafe_b64decode(padded.encode()).decode().partition(" ")
        if name == call and place.isascii() and place.isdigit() and len(place) < 19:
            return int(place)
    except (ValueError, binascii.Error):
        pass
    raise InvalidInputError("cursor is not one that this list gave.", field="cursor")


def respond_with(request: Request, caller: Caller, answered: Answered) -> Response:
    """Return the HTTP form of an answer."""
    if answered.lines is not None:
        lines = iterate_in_threadpool(answered.lines)
        return StreamingResponse(lines, media_type=_LINES)
    headers = {"etag": answered.tag} if answered.tag else {}
    headers |= {"idempotent-replayed": "true"} if answered.is_replayed else {}
    tags = {each.strip() for each in request.headers.get("if-none-match", "").split(",")}
    if answered.tag in tags and request.method in ("GET", "HEAD") and answered.tag.startswith('"h'):
        return Response(status_code=304, headers=headers)
    media = RECORD if caller.wants_records else "application/json"
    media = MEDIA_TYPE if answered.status >= 400 else media
    # Half characters can only be escaped; all others go as they are, which is shorter.
    text = json.dumps(answered.body, ensure_ascii=caller.wants_records, separators=(",", ":"))
    return Response(text, answered.status, headers, media)
