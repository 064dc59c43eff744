"""Describe the routes as OpenAPI 3.1."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from smara import __version__
from smara.core.startup.regex import re, regex
from smara.surfaces.http.codec import Schemas, camel, field_types, parts
from smara.surfaces.http.problem import MEDIA_TYPE
from smara.surfaces.http.routes import ROUTES, Route
from smara.surfaces.http.shape import SHAPES, field_name

_KINDS = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "o": "object"}
SHAPED: dict[str, str] = {
    "Task": "id:s uuid:s title:s description:s status:s priority:i type:s labels:[s] assignee:s? "
    "sessionId:s? dependencies:[o] createdAt:i createdBy:s? updatedAt:i claimedAt:i? closedAt:i? "
    "closeReason:s? summary:s? compactionLevel:i compactedAt:i? metadata:o",
    "TaskDetails": "task:Task isBlocked:b blockingTasks:[o] dependents:[o] children:[o] "
    "parents:[o] related:[o] progress:o? linkedMessageIds:[s]",
    "TypedMemory": "id:s uuid:s type:s content:s confidence:n confidenceNow:n? trust:s isTainted:b "
    "taint:[s] needsReview:b reviewReasons:[s] isVerified:b verifiedAt:i? verifiedBy:s? "
    "isPinned:b isStale:b staleAt:i? staleBecause:s? isActive:b deprecatedAt:i? "
    "deprecatedBecause:s? supersededBy:s? supersedes:[s] tags:[s] files:[s] modules:[s] scope:s "
    "visibility:s source:s createdAt:i seenAt:i? createdBy:s updatedAt:i version:i sessionId:s? "
    "sessionIds:[s] commit:s? evidence:[Evidence] workUnit:o? methodology:s? relations:[o] "
    "halfLifeDays:n? citation:s? chunk:o? data:o verifiedUses:i corrections:i "
    "lastVerifiedUseAt:i? code:Freshness?",
    "Hit": "id:s source:s content:s rank:i taskId:s? createdAt:i threadId:s? score:n why:[s] "
    "snippet:s role:s? seq:i? resourceId:s? type:s? title:s? files:[s] isConfirmed:b freshness:x "
    "hedge:x copies:i? stages:o? before:[o] after:[o]",
    "Message": "id:s threadId:s resourceId:s seq:i role:s content:s parts:[o] tokenCount:i "
    "tokenMethod:s createdAt:i clientId:s? taskId:s? isSealed:b compactionLevel:i metadata:o",
    "Observation": "id:s kind:s state:s generation:i threadId:s? mode:s priority:s category:s "
    "text:s details:[s] files:[s] lines:x modeSpecific:o taint:[s] saidAt:i? refersTo:s? tokens:i "
    "firstSeq:i? lastSeq:i? method:s createdAt:i reflectedInto:s? code:Freshness?",
    "WorkingMemory": "id:s scope:s resourceId:s? threadId:s? format:s content:s value:x "
    "template:s? schema:x version:i createdAt:i updatedAt:i updatedBy:s?",
    "Commit": "id:s shortId:s at:i author:s subject:s body:s reason:s files:[s] functions:[s]",
    "Decision": "id:s shortId:s type:s rule:s quotations:[s] rejected:[x] isPlan:b decidedAt:i? "
    "threadId:s? files:[s] isInForce:b supersededBy:s? supersedes:[s]",
    "LineReason": "path:s commit:Commit lines:[x] functions:[s] lost:[o] undoneBy:Commit?",
    "Evidence": "messageId:s- observationId:s- path:s- commit:s- firstLine:i- lastLine:i- quote:s-",
    "Freshness": "verdict:s changed:x told:x hedge:x anchors:[o]",
    "Node": "name:s kind:s path:s line:i",
    "Reached": "name:s kind:s path:s line:i depth:i weight:n isTest:b via:[o]",
    "CoChange": "path:s together:i confidence:n lastAt:i?",
}
"""The shapes of ``smara.shapes``: name and kind of each field. ``?`` may be null, ``-`` may be
absent, ``x`` is anything.
"""
_FIELD = regex(r"(\w+):(\[?)(\w+)(\]?)([?-]?)")
PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "A stable name of the error."},
        "detail": {"type": "string", "description": "What is wrong, and what to do next."},
        "isRetryable": {"type": "boolean"},
        "facts": {"type": "object"},
    },
    "required": ["type", "title", "status", "code", "detail", "isRetryable"],
}


def shaped(text: str) -> dict[str, Any]:
    """Return the schema of a shape."""
    properties, required = {}, []
    for name, opening, kind, _, ending in _FIELD.findall(text):
        each: dict[str, Any] = {} if kind == "x" else {"type": _KINDS.get(kind, "")}
        if kind[0].isupper():
            each = {"$ref": f"#/components/schemas/{kind}"}
        if opening:
            each = {"type": "array", "items": each} if each else {"type": "array"}
        if ending == "?":
            each = {"anyOf": [each, {"type": "null"}]}
        properties[name] = each
        if ending != "-":
            required.append(name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


class ResultSchemas(Schemas):
    """The schemas of answers."""

    def __init__(self, records: dict[str, Any]) -> None:
        super().__init__()
        self.records = records

    def _record(self, kind: Any) -> dict[str, Any]:
        is_shaped = kind in SHAPES
        name = kind.__name__ if is_shaped else f"{kind.__name__}Result"
        if name not in self.records:
            self.records[name] = {}  # a record may hold its own kind
            if is_shaped:
                self.records[name] = shaped(SHAPED[name])
                for each in set(re.findall(r":\[?([A-Z]\w+)", SHAPED[name])):
                    self._record(next(one for one in SHAPES if one.__name__ == each))
            else:
                fields = {
                    field_name(kind, each): self.of(hint)
                    for each, hint in field_types(kind).items()
                }
                self.records[name] = {
                    "type": "object",
                    "properties": fields,
                    "required": list(fields),
                    "additionalProperties": False,
                }
        return {"$ref": f"#/components/schemas/{name}"}


@cache
def document() -> dict[str, Any]:
    """Return the whole description."""
    inputs = Schemas()
    results = ResultSchemas(inputs.records)
    paths: dict[str, Any] = {}
    for route in ROUTES:
        operation = _operation(route, inputs, results)
        path = re.sub(r"\{(\w+)\}", lambda found: f"{{{camel(found[1])}}}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Smara",
            "version": __version__,
            "description": "One memory for coding agents. Times are milliseconds since 1970, UTC.",
        },
        "paths": paths,
        "components": {
            "schemas": {**inputs.records, "Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _operation(route: Route, inputs: Schemas, results: ResultSchemas) -> dict[str, Any]:
    signature = route.signature
    parameters = [
        {
            "name": camel(name),
            "in": "path",
            "required": True,
            "schema": inputs.of(signature.parameters[name].hint),
        }
        for name in route.in_path
    ]
    parameters += [
        _header("Smara-Project", "The project; by default the one that is served."),
    ]
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}.{route.call}"
        if route.call == "search"
        else route.call,
        "summary": route.summary,
        "tags": [route.segments[0]],
        "x-writes": route.writes,
    }
    if route.record:
        parameters.append(_header("If-Match", "The ETag of what is changed; otherwise 409."))
    if route.writes:
        parameters.append(_header("Idempotency-Key", "Repeat a request without doing it twice."))
    if route.method == "GET":
        parameters += [
            {
                "name": camel(each.name),
                "in": "query",
                "required": each.is_required,
                "schema": inputs.of(each.hint),
            }
            for each in route.parameters
        ]
        if route.is_paged:
            text = "`nextCursor` of the page before."
            place = {"name": "cursor", "in": "query", "description": text}
            parameters.append({**place, "schema": {"type": "string"}})
    elif body := list(route.parameters):
        needed = [camel(each.name) for each in body if each.is_required]
        schema = {
            "type": "object",
            "properties": {camel(each.name): inputs.of(each.hint) for each in body},
            **({"required": needed} if needed else {}),
            "additionalProperties": False,
        }
        operation["requestBody"] = {
            "required": bool(needed),
            "content": {"application/json": {"schema": schema}},
        }
    operation["parameters"] = parameters
    operation["responses"] = _responses(route, results)
    return operation


def _header(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}


def _responses(route: Route, results: ResultSchemas) -> dict[str, Any]:
    status = "201" if route.call.endswith(".add") else "200"
    media = "application/x-ndjson" if route.signature.is_stream else "application/json"
    answer = {"description": "Done.", "content": {media: {"schema": result_schema(route, results)}}}
    problem = {
        "description": "Refused, with a code.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return {status: answer, "default": problem}


def result_schema(route: Route, results: ResultSchemas) -> dict[str, Any]:
    """Return the schema of a route's answer."""
    schema = results.of(route.signature.result)
    if route.signature.is_stream:
        return schema
    origin, _ = parts(route.signature.result)
    more = {"nextCursor": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    if schema.get("type") == "array":
        properties = {route.noun or "results": schema} | (more if route.is_paged else {})
        return {"type": "object", "properties": properties, "required": list(properties)}
    if inspect.isclass(origin) and "$ref" in schema and route.is_paged:
        # A page gives a cursor in place of the offset.
        return {"type": "object", "required": ["nextCursor"], "properties": more}
    if "$ref" in schema or schema.get("type") == "object" or not schema:
        return schema or {"type": "object"}
    if any("$ref" in each for each in schema.get("anyOf", ())):
        value = {"type": "object", "properties": {"value": {"type": "null"}}, "required": ["value"]}
        return {"anyOf": [each for each in schema["anyOf"] if "$ref" in each] + [value]}
    return {"type": "object", "properties": {"value": schema}, "required": ["value"]}
