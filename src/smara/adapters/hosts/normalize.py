"""Normalize a host's hook payload into events.

A host's spec has the names of its events and of the fields of its payloads. No payload raises:
an unreadable one yields no event, and a field of the wrong type counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

from smara.actions.tool_output import failure_of, file_text, text_of
from smara.adapters.hook_output import own_words
from smara.adapters.host import Fields, Hooks
from smara.adapters.host_specs import HOOKS
from smara.adapters.host_specs.generic import GENERIC
from smara.adapters.lines import json_in, milliseconds
from smara.core.events import Agent, HostEvent, Kind, event_key
from smara.core.tool_names import tool_arguments, tool_name

_OUTPUT_CHARACTERS = 200_000
_ID_CHARACTERS = 200
_TOOL_KINDS = ("tool_pre", "tool_post", "tool_fail")


def events_of(agent: str, event: str, raw: bytes, at_ms: int, cwd: str = "") -> list[HostEvent]:
    """Return the events of a payload: usually one, or none."""
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    if not isinstance(payload, dict):
        return []
    who = agent_of(agent, event, payload)
    hooks = HOOKS[who]
    kind = hooks.events.get(event)
    if kind is not None and _text(payload, hooks.fields.parent_id):
        kind = hooks.helper_kinds.get(kind, kind)
    if kind is None:
        return []
    if kind == "tool_batch":
        # A batch is told call by call; the calls that were told before have the same keys.
        calls = payload.get("tool_calls")
        common = {name: value for name, value in payload.items() if name != "tool_calls"}
        return [
            _event(
                who, "tool_post", "PostToolUse", payload={**common, **call}, at_ms=at_ms, cwd=cwd
            )
            for call in (calls if isinstance(calls, list) else ())
            if isinstance(call, dict)
        ]
    if kind == "subagent_stop" and payload.get("agent_type") == "":
        # no helper of the agent: the host itself, which had a model write the summary of a
        # compaction
        return []
    return [_event(who, kind, event, payload=payload, at_ms=at_ms, cwd=cwd)]


def agent_of(named: str, event: str, payload: Mapping[str, Any]) -> Agent:
    """Return the host that runs a hook: by mark, then name.

    Hosts load each other's hooks, so the name in a command says who was set up, not who runs it.
    """
    for name, hooks in HOOKS.items():
        if hooks.mark and hooks.mark in payload:
            return name
        if named in hooks.runs_hooks_of and hooks.is_payload and hooks.is_payload(event, payload):
            return name
    if named in HOOKS and named != GENERIC.name:
        return named
    return next(
        (
            name
            for name, hooks in HOOKS.items()
            if hooks.is_payload and hooks.is_payload(event, payload)
        ),
        GENERIC.name,
    )


def _event(
    agent: Agent, kind: Kind, event: str, payload: Mapping[str, Any], at_ms: int, cwd: str
) -> HostEvent:
    hooks, fields = HOOKS[agent], HOOKS[agent].fields
    roots = payload.get("workspace_roots")
    cwd = _text(payload, fields.cwd) or (
        str(roots[0]) if isinstance(roots, list) and roots else cwd
    )
    session_id = _text(payload, fields.parent_id) or _text(payload, fields.session_id)
    if len(session_id) > _ID_CHARACTERS or not session_id.isprintable():
        raw = session_id.encode("utf-8", "surrogatepass")
        session_id = f"id-{event_key('', '', raw).lstrip(':')}"
    is_tool = kind in _TOOL_KINDS
    source = _text(payload, fields.source) if not is_tool else ""
    text = _text(payload, fields.text) if not is_tool else ""
    about: dict[str, Any] = {}
    if kind in ("file_changed", "instructions"):
        about = {"file_path": _text(payload, fields.file_path)}
    elif kind == "task":
        parts = (_text(payload, (name,)) for name in ("task_subject", "task_description"))
        text = "\n".join(filter(None, parts))
        about = {
            name: payload[name] for name in ("task_id", "todos", "teammate_name") if name in payload
        }
    error = _first(payload, fields.error)
    if error in (None, "", {}):
        error = "" if kind in ("tool_fail", "turn_fail") else None
    model = _first(payload, fields.model)
    if isinstance(model, Mapping):
        model = _text(model, ("id", "modelID", "display_name"))
    # Of a host that names no session: the agent's work in a folder on one day.
    unnamed = f"{agent}-{crc32(cwd.encode('utf-8', 'replace')):08x}-{at_ms // 86_400_000}"
    made = HostEvent(
        agent,
        kind,
        session_id or unnamed,
        at_ms=at_ms,
        cwd=cwd,
        source=hooks.sources.get(source, source) if kind == "session_start" else source,
        prompt=own_words(_text(payload, fields.prompt))
        if kind in ("prompt", "session_start")
        else "",
        subagent_id=_text(payload, fields.subagent_id),
        transcript_path=_text(payload, fields.transcript_path),
        text=text,
        error=error if error is None or isinstance(error, str) else text_of(error),
        model=model if isinstance(model, str) else "",
        tool_input=about,
    )
    if is_tool:
        made = _with_tool(made, event, payload, hooks=hooks)
    return made if made.tool_use_id else replace(made, key=_key(made, payload, fields))


def _with_tool(made: HostEvent, event: str, payload: Mapping[str, Any], hooks: Hooks) -> HostEvent:
    fields = hooks.fields
    name = hooks.event_tools.get(event) or _text(payload, fields.tool)
    if event in hooks.mcp_events and not name.startswith("mcp"):
        name = f"mcp__{_text(payload, ('server_name', 'server')) or made.agent}__{name}"
    tool = tool_name(name)
    given = _first(payload, fields.tool_input)
    if isinstance(given, str):  # some hosts give arguments as JSON inside a text
        given = json_in(given, otherwise={"text": given})
    if not isinstance(given, dict):
        given = {} if given is None else {"value": given}
    if event in hooks.event_tools:
        given = {key: payload[key] for key in hooks.event_arguments if key in payload}
    response = _first(payload, fields.tool_output)
    words = text_of(response)
    error = made.error
    if made.kind == "tool_post" and error is None:
        error = failure_of(payload, response, tool)
    kind: Kind = "tool_fail" if made.kind == "tool_post" and error is not None else made.kind
    use_id = _text(payload, fields.tool_use_id)
    took = _first(payload, fields.duration_ms)
    return replace(
        made,
        kind=kind,
        tool=tool,
        tool_input=tool_arguments(tool, given),
        tool_output=(file_text(words) if tool == "Read" else words)[:_OUTPUT_CHARACTERS],
        error=error,
        tool_use_id=use_id,
        duration_ms=int(took) if isinstance(took, int | float) and 0 <= took < 1e12 else None,
        key=event_key(made.session_id, _once(kind), use_id) if use_id else made.key,
    )


def _once(kind: Kind) -> Kind:
    """A call ends once: whether it was told as a result or as a failure, it is the same event."""
    return "tool_post" if kind == "tool_fail" else kind


def _key(made: HostEvent, payload: Mapping[str, Any], fields: Fields) -> str:
    """Return the key of an event from its content.

    Without anything that tells repeats apart, it is marked by a tilde and its time. Hosts that read
    each other's settings send one event in two dialects, so the words count and not their wrapping.
    The same words may be said twice in a session, and then they are two events. So two copies of
    such an event are one only when they came at nearly the same time, which the ingesting caller
    decides (:func:`smara.core.events.is_duplicate_key`).
    """
    if (
        made.kind in _TOOL_KINDS
    ):  # one that has no id of its own; the same call may be made again at once
        at = milliseconds(payload.get("timestamp"))
        body: Any = [made.tool, made.tool_input, made.tool_output, made.subagent_id, at]
    else:
        body = [made.source, made.prompt, made.text, made.error, made.subagent_id, made.tool_input]
    once = [payload[name] for name in fields.once if payload.get(name)]
    content = json.dumps([body, once], sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    key = event_key(made.session_id, _once(made.kind), content)
    return key if once else f"{key}~{made.at_ms}"


def _first(payload: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((payload[name] for name in names if payload.get(name) not in (None, "")), None)


def _text(payload: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next(
        (value for name in names if isinstance(value := payload.get(name), str) and value), ""
    )
