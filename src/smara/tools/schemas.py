"""The tools' schemas, in two forms and two vendors' shapes, all made from the catalogue.

The *union* says all: one variant per action, told apart by ``action``; every call is checked
against it. The *flat* form has every argument in one object and says in words which action
takes it: several hosts reject a schema that has ``oneOf`` at its root, or drop the tool
without a word. Why both: docs/decisions/0007-tool-schemas.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from smara.core.prompts import load_prompt
from smara.errors import InvalidInputError
from smara.tools.catalogue import Profile, tools_of
from smara.tools.models import Action, Json, Tool

Form = Literal["flat", "union"]
_PROMPTS = Path(__file__).parent / "prompts"
# OpenAI's strict mode knows no defaults, and not every bound on every model.
_NO_DEFAULT = object()
_NOT_STRICT = ("default", "minimum", "maximum")
_LENGTHS = ("minLength", "maxLength", "maxItems")
_BOUNDS = ("minimum", "maximum")
_MOST_TOLD = 10


def schemas(form: Form = "flat", profile: Profile = "default") -> dict[str, Json]:
    """The input schema of each tool of a profile by its name."""
    if form not in ("flat", "union"):
        raise InvalidInputError(f"form must be flat or union; got {form!r}.")
    make = flat_schema if form == "flat" else union_schema
    return {name: make(tool) for name, tool in tools_of(profile).items()}


def union_schema(tool: Tool) -> Json:
    """One variant per action, each with exactly its own arguments; what several take is written
    once.
    """
    variants = [variant(tool, action) for action in tool.actions.values()]
    shared = [name for name in tool.arguments if len(_takers(tool, name)) > 1]
    for each in variants:
        for name in each["properties"].keys() & set(shared):
            default = each["properties"][name].get("default", _NO_DEFAULT)
            each["properties"][name] = {"$ref": f"#/$defs/{name}"}
            if default is not _NO_DEFAULT:
                each["properties"][name]["default"] = default
    defined = {"$defs": {name: _argument(tool, name) for name in shared}} if shared else {}
    return {"type": "object", "oneOf": variants, **defined}


def variant(tool: Tool, action: Action) -> Json:
    """The arguments of one action."""
    properties: Json = {"action": {"const": action.name}}
    for name in action.arguments:
        properties[name] = _argument(tool, name)
        if name in action.defaults:
            properties[name]["default"] = action.defaults[name]
    return {
        "type": "object",
        "properties": properties,
        "required": ["action", *action.required],
        "additionalProperties": False,
    }


def flat_schema(tool: Tool) -> Json:
    """Every argument of every action in one object; the descriptions say which action takes it.

    How long a text may be and how much an amount is left out: no model counts, calls are checked
    anyway, and it would cost a tenth of the budget.
    """
    properties: Json = {"action": {"type": "string", "enum": list(tool.actions)}}
    for name in tool.arguments:
        argument = _argument(tool, name)
        left_out = (*_LENGTHS, *(_BOUNDS if argument.get("maximum", 0) > _MOST_TOLD else ()))
        properties[name] = _without(argument, left_out) | _told(tool, name)
        if not properties[name]["description"]:
            del properties[name]["description"]
    # Nothing is said of other arguments: calls are checked anyway, and a host that checks them
    # first would refuse the near misses that are understood here.
    return {"type": "object", "properties": properties, "required": ["action"]}


def anthropic_tools(profile: Profile = "default") -> list[Json]:
    """The tools as Anthropic's Messages API takes them."""
    return [
        {"name": name, "description": description(name), "input_schema": flat_schema(tool)}
        for name, tool in tools_of(profile).items()
    ]


def openai_tools(
    strict: bool = False, api: Literal["chat", "responses"] = "chat", profile: Profile = "default"
) -> list[Json]:
    """The tools as OpenAI's Chat Completions (or Responses) API takes them.

    With ``strict`` every argument must be given and may be null, as that mode wants it.
    """
    if api not in ("chat", "responses"):
        raise InvalidInputError(f"api must be chat or responses; got {api!r}.")
    functions = [
        {
            "name": name,
            "description": description(name),
            "parameters": _strict(flat_schema(tool)) if strict else flat_schema(tool),
            "strict": strict,
        }
        for name, tool in tools_of(profile).items()
    ]
    if api == "responses":
        return [{"type": "function", **function} for function in functions]
    return [{"type": "function", "function": function} for function in functions]


def description(name: str) -> str:
    """What the tool is for and when to use it, for a model to read."""
    return prompt(name)


def instructions(profile: Profile = "default") -> str:
    """What a host should know about the tools before it has loaded any of them."""
    return _prompt_of("instructions", profile)


def system_prompt(profile: Profile = "default") -> str:
    """A text for an agent's system prompt: what memory there is, and what to use when."""
    return _prompt_of("system-prompt", profile)


def _prompt_of(name: str, profile: Profile) -> str:
    """A prompt with what a profile adds to it: the files ``NAME-recording.md`` speak of
    recording.
    """
    has_recording = "memory-record" in tools_of(profile)
    return prompt(name, prompt(f"{name}-recording") if has_recording else "")


@lru_cache(maxsize=16)
def prompt(name: str, recording: str | None = None) -> str:
    """A prompt of this room; ``recording`` is put where it speaks of that, on lines of its own."""
    found = load_prompt(_PROMPTS, name)
    if recording is None:
        return found.render()
    return found.render({"recording": f"\n{recording}" if recording else ""})


def _argument(tool: Tool, name: str) -> Json:
    return {key: value for key, value in tool.arguments[name].items() if value != ""}


def _without(schema: Mapping[str, Any], keys: Collection[str]) -> Json:
    """A schema without some of its keywords, also in the items of a list."""
    kept = {key: value for key, value in schema.items() if key not in keys}
    return kept | {"items": _without(kept["items"], keys)} if "items" in kept else kept


def _takers(tool: Tool, name: str) -> list[Action]:
    return [action for action in tool.actions.values() if name in action.arguments]


def _told(tool: Tool, name: str) -> Json:
    """The description of an argument in the flat form: who takes it, what it is, and its
    default.
    """
    takers = _takers(tool, name)
    others = [each for each in tool.actions if each not in {action.name for action in takers}]
    who = (
        f"all but {', '.join(others)}"
        if len(others) < len(takers)
        else ", ".join(action.name for action in takers)
    )
    who = who if others else ""
    says = tool.arguments[name]["description"]
    defaults = {action.name: action.defaults[name] for action in takers if name in action.defaults}
    told: Json = {}
    if len(defaults) == len(takers) and len(set(defaults.values())) == 1:
        told["default"] = next(iter(defaults.values()))
    elif defaults:
        # A default that not every taker shares would be filled in by some clients where it does not
        # belong.
        says += f"{', ' if says else ''}default " + ", ".join(
            f"{value} ({who})" for who, value in defaults.items()
        )
    return told | {"description": ": ".join(part for part in (who, says) if part)}


def _strict(schema: Mapping[str, Any]) -> Json:
    properties: Json = {}
    for name, each in schema["properties"].items():
        kept = _without(each, _NOT_STRICT)
        if name not in schema["required"]:
            kept["type"] = [kept["type"], "null"]
            if "enum" in kept:
                kept["enum"] = [*kept["enum"], None]
        properties[name] = kept
    return {
        **schema,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
