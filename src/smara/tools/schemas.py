"""Derive tool schemas from the catalogue and validate calls.

A call is read leniently: aliases and `"3"` for 3 are accepted. A call that is still invalid is
refused with a message that names the allowed arguments.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from smara.core.extract import shorten
from smara.core.prompts import load_prompt
from smara.core.startup.regex import regex
from smara.errors import InvalidInputError
from smara.knowledge.kinds import KINDS
from smara.shapes import encodable
from smara.tools.catalogue import (
    EVERY_TOOL,
    TOOLS,
    CatalogueAction,
    Json,
    Profile,
    Tool,
    tools_of,
)

Form = Literal["flat", "union"]
_PROMPTS = Path(__file__).parent / "prompts"
# OpenAI's strict mode knows no defaults, and not every bound on every model.
_NOT_STRICT = ("default", "minimum", "maximum")
_LENGTHS = ("minLength", "maxLength", "maxItems")
_BOUNDS = ("minimum", "maximum")
_MOST_TOLD = 10


def schemas(form: Form = "flat", profile: Profile = "default") -> dict[str, Json]:
    """Return the input schemas of a profile by tool name."""
    if form not in ("flat", "union"):
        raise InvalidInputError(f"form must be flat or union; got {form!r}.")
    make = flat_schema if form == "flat" else union_schema
    return {name: make(tool) for name, tool in tools_of(profile).items()}


def union_schema(tool: Tool) -> Json:
    """Return a schema with one variant per action."""
    variants = [variant(tool, action) for action in tool.actions.values()]
    taken = Counter(name for action in tool.actions.values() for name in action.arguments)
    shared = [name for name in tool.arguments if taken[name] > 1]
    for properties in (each["properties"] for each in variants):
        for name in properties.keys() & set(shared):
            default = {key: value for key, value in properties[name].items() if key == "default"}
            properties[name] = {"$ref": f"#/$defs/{name}", **default}
    defined = {"$defs": {name: _argument(tool, name) for name in shared}} if shared else {}
    return {"type": "object", "oneOf": variants, **defined}


def variant(tool: Tool, action: CatalogueAction) -> Json:
    """Return the schema of one action's arguments."""
    arguments = {
        name: _argument(tool, name)
        | ({"default": action.defaults[name]} if name in action.defaults else {})
        for name in action.arguments
    }
    return {
        "type": "object",
        "properties": {"action": {"const": action.name}, **arguments},
        "required": ["action", *action.required],
        "additionalProperties": False,
    }


def flat_schema(tool: Tool) -> Json:
    """Return every argument of every action in one object.

    The descriptions say which action takes it. The longest text and the largest amount are left
    out: no model counts, calls are checked anyway, and it would cost a tenth of the budget.
    """
    properties: Json = {"action": {"type": "string", "enum": list(tool.actions)}}
    for name in tool.arguments:
        argument = _argument(tool, name)
        left_out = (*_LENGTHS, *(_BOUNDS if argument.get("maximum", 0) > _MOST_TOLD else ()))
        properties[name] = _without(argument, left_out) | _described(tool, name)
    # Nothing is said of other arguments: calls are checked anyway, and a host that checks them
    # first would refuse the near misses that are understood here.
    return {"type": "object", "properties": properties, "required": ["action"]}


def anthropic_tools(profile: Profile = "default") -> list[Json]:
    """Return the tools as Anthropic's Messages API takes them."""
    return [
        {"name": name, "description": description(name), "input_schema": flat_schema(tool)}
        for name, tool in tools_of(profile).items()
    ]


def openai_tools(
    strict: bool = False, api: Literal["chat", "responses"] = "chat", profile: Profile = "default"
) -> list[Json]:
    """Return the tools as OpenAI's Chat Completions (or Responses) API takes them.

    With ``strict`` every argument must be given and may be null, as that mode requires.
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
    """Return the purpose of a tool, for a model to read."""
    return _prompt(name)


def instructions(profile: Profile = "default") -> str:
    """Return what a host should know before loading the tools."""
    return _prompt("instructions", profile)


def system_prompt(profile: Profile = "default") -> str:
    """Return the part on memory for an agent's system prompt."""
    return _prompt("system-prompt", profile)


@lru_cache(maxsize=16)
def _prompt(name: str, profile: Profile = "default") -> str:
    """Return a prompt of this room with its inputs.

    ``code`` is the file ``NAME-code.md``, for profiles that ask about code; the other inputs are
    occasions, filled with the memory types that are recorded on them.
    """
    template = load_prompt(_PROMPTS, name)
    values = {
        occasion: ", ".join(kind.type for kind in KINDS.values() if kind.recorded_on == occasion)
        for occasion in template.inputs
    }
    if "code" in values:
        has_code = "code-query" in tools_of(profile)
        values["code"] = f"\n{_prompt(f'{name}-code')}" if has_code else ""
    return template.render(values)


def _argument(tool: Tool, name: str) -> Json:
    return {key: value for key, value in tool.arguments[name].items() if value != ""}


def _without(schema: Mapping[str, Any], keys: Collection[str]) -> Json:
    rest = {key: value for key, value in schema.items() if key not in keys}
    return rest | {"items": _without(rest["items"], keys)} if "items" in rest else rest


def _described(tool: Tool, name: str) -> Json:
    """Describe an argument in the flat form: who takes it, what it is, and its default."""
    takers = [each for each, action in tool.actions.items() if name in action.arguments]
    others = [each for each in tool.actions if each not in takers]
    who = ", ".join(takers) if len(others) >= len(takers) else f"all but {', '.join(others)}"
    says = [tool.arguments[name]["description"]]
    given = {each: tool.actions[each].defaults for each in takers}
    defaults = {each: values[name] for each, values in given.items() if name in values}
    shared = set(defaults.values())
    is_shared = len(defaults) == len(takers) and len(shared) == 1
    if defaults and not is_shared:
        # A default that not every taker shares would be filled in by some clients where it does not
        # belong.
        says.append("default " + ", ".join(f"{value} ({who})" for who, value in defaults.items()))
    text = ": ".join(filter(None, (who if others else "", ", ".join(filter(None, says)))))
    return {
        **({"default": shared.pop()} if is_shared else {}),
        **({"description": text} if text else {}),
    }


def _strict(schema: Mapping[str, Any]) -> Json:
    properties: Json = {}
    for name, each in schema["properties"].items():
        argument = _without(each, _NOT_STRICT)
        if name not in schema["required"]:
            argument["type"] = [argument["type"], "null"]
            if "enum" in argument:
                argument["enum"] = [*argument["enum"], None]
        properties[name] = argument
    return {
        **schema,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


INVALID_QUERY = "Search failed: invalid query"
_SNAKE = regex(r"_+([a-z0-9])")
_INTEGER = regex(r"\s*[+-]?\d{1,18}(\.0+)?\s*")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MOST_FAULTS = 3
_SHOWN = 60


def read_call(
    tool: Tool, given: object, tools: Mapping[str, Tool] = TOOLS
) -> tuple[CatalogueAction, Json]:
    """Read a call: its action and its complete arguments.

    Args:
        tool: The tool that is called.
        given: The arguments as a model wrote them: an object, or the text of one.
        tools: The tools that the caller has.

    Raises:
        InvalidInputError: If the call is invalid, with the facts ``brief`` and ``hint``.
    """
    if isinstance(given, str | bytes | bytearray):
        # OpenAI gives the arguments of a call as the text of a JSON object.
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"The arguments must be an object; got {_shown(given)}.",
            hint=_example(next(iter(tool.actions.values()))),
        )
    named = {str(name): value for name, value in given.items() if value is not None}
    action = _action(tool, named, tools)
    arguments = _named(tool, action, named)
    faults = _faults(tool, action, arguments)
    if not faults:
        return action, {**action.defaults, **encodable(arguments)}
    sentence = f"{action.name}: {'; '.join([*faults.values()][:_MOST_FAULTS])}."
    if "query" in faults:
        raise InvalidInputError(
            sentence, brief=INVALID_QUERY, hint=f"{sentence} {_example(action)}"
        )
    takes = (name if name in action.required else f"{name}?" for name in action.arguments)
    raise InvalidInputError(sentence, hint=f"It takes {', '.join(takes)}. {_example(action)}")


def action_of(given: object) -> str:
    """Return the action that a call names, or an empty text."""
    action = given.get("action") if isinstance(given, Mapping) else None
    return action[:_SHOWN] if isinstance(action, str) else ""


def unknown_tool(name: object, tools: Iterable[str] = TOOLS) -> InvalidInputError:
    """Return the refusal of a tool that the caller does not have."""
    return InvalidInputError(
        f"Unknown tool {_shown(name)}.", hint=f"The tools are {', '.join(tools)}."
    )


def _action(tool: Tool, named: Mapping[str, Any], tools: Mapping[str, Tool]) -> CatalogueAction:
    given = named.get("action", tool.default_action)
    takes = f"{tool.name} takes one of {', '.join(tool.actions)}."
    if given is None:
        raise InvalidInputError(
            f"action is missing. {takes}", hint=_example(next(iter(tool.actions.values())))
        )
    if isinstance(given, str):
        name = given.strip().lower().replace("-", "_")
        if name in tool.actions:
            return tool.actions[name]
        owners = [other.name for other in tools.values() if name in other.actions]
        if owners:
            raise InvalidInputError(f"{name} is an action of {' and '.join(owners)}. {takes}")
        takes = f"{takes}{_meant(name, tool.actions)}"
    raise InvalidInputError(
        f"Unknown action {_shown(given)}. {takes}", hint=_example(next(iter(tool.actions.values())))
    )


def _named(tool: Tool, action: CatalogueAction, given: Mapping[str, Any]) -> Json:
    """Return the arguments under their right names, with values of the right type."""
    by_lower = {each.lower(): each for each in action.arguments}
    by_alias = {
        alias: each for each in action.arguments[::-1] for alias in tool.aliases.get(each, ())
    }
    found: Json = {}
    for name, value in given.items():
        if name == "action":
            continue
        plain = name.strip().strip("_").replace("-", "_")
        camel = _SNAKE.sub(lambda match: match[1].upper(), plain)
        right = name if name in action.arguments else by_lower.get(camel.lower())
        right = right or by_alias.get(camel)
        if right is None:
            takes = ", ".join(action.arguments)
            raise InvalidInputError(
                f"{action.name} takes no argument {_shown(name)}; it takes "
                f"{takes}.{_meant(name, action.arguments)}",
                hint=_example(action),
            )
        clean = _as_meant(tool.arguments[right], value)
        if right in found and found[right] != clean:
            raise InvalidInputError(
                f"{right} is given twice, as {_shown(found[right])} and as {_shown(clean)}; give "
                "it once.",
                hint=_example(action),
            )
        found[right] = clean
    return found


def _as_meant(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value in the type of its schema where its meaning is clear: ``"3"`` is 3."""
    kind, is_text = schema["type"], isinstance(value, str)
    match kind:
        case "integer":
            if is_text and _INTEGER.fullmatch(value):
                value = int(float(value)) if "." in value else int(value)
            elif isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
                value = int(value)
            # More than there is room for on a page means as many as there is room for.
            if schema["minimum"] == 1 and isinstance(value, int) and not isinstance(value, bool):
                return min(value, schema["maximum"])
        case "boolean" if isinstance(value, str | int) and not isinstance(value, bool):
            return _FLAGS.get(str(value).strip().lower(), value)
        case "array" if is_text:
            try:
                items = json.loads(value) if value.strip().startswith("[") else None
            except (ValueError, RecursionError):
                items = None
            return (
                items
                if isinstance(items, list)
                else [text for each in value.split(",") if (text := each.strip())]
            )
        case "array" if isinstance(value, tuple):
            return list(value)
        case "string" if is_text and "enum" in schema:
            plain = value.strip().lower().replace(" ", "_")
            return next(
                (each for each in schema["enum"] if plain in (each, each.replace("-", "_"))), value
            )
        case "string" if isinstance(value, list | tuple) and value:
            is_one = len(value) == 1 and "enum" in schema
            are_texts = all(isinstance(each, str) for each in value)
            return value if not are_texts else value[0] if is_one else ", ".join(value)
    return value


def _faults(tool: Tool, action: CatalogueAction, arguments: Mapping[str, Any]) -> dict[str, str]:
    faults = {name: f"{name} is missing" for name in action.required if name not in arguments}
    for error in _checker(tool.name, action.name).iter_errors({"action": action.name, **arguments}):
        if error.absolute_path:
            name, *inside = error.absolute_path
            place = name + "".join(f"[{each}]" for each in inside)
            faults.setdefault(
                str(name), f"{place} must be {_allowed(error.schema)}; got {_shown(error.instance)}"
            )
    return {name: faults[name] for name in action.arguments if name in faults}


@lru_cache(maxsize=64)
def _checker(tool: str, action: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(variant(EVERY_TOOL[tool], EVERY_TOOL[tool].actions[action]))


def _allowed(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in words.

    >>> _allowed({"type": "integer", "minimum": 0, "maximum": 4})
    'an integer from 0 to 4'
    """
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    match schema:
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"an integer from {least} to {most}"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "array", "maxItems": most}:
            return f"a list of at most {most} texts"
        case {"maxLength": most}:
            least = schema.get("minLength")
            return f"a text of {f'{least} to' if least else 'at most'} {most:,} characters"
        case _:
            return "a text that is not empty" if schema.get("minLength") else "a text"


def _meant(name: str, names: Iterable[str]) -> str:
    close = get_close_matches(name[:_SHOWN], list(names), 1, 0.6)
    return f" Did you mean {close[0]}?" if close else ""


def _example(action: CatalogueAction) -> str:
    return f"For example: {json.dumps(dict(action.example))}"


def _shown(value: object) -> str:
    """A value as it may stand in a message: short, whatever it is."""
    match value:
        case str():
            text = json.dumps(value[: _SHOWN + 1], ensure_ascii=False)
            more = f'…" ({len(value):,} characters)'
            return text if len(value) <= _SHOWN else text[:_SHOWN] + more
        case Mapping():
            return f"an object with {len(value)} entries"
        case list() | tuple():
            return f"a list of {len(value)}"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        return f"a {type(value).__name__}"
    return shorten(text, _SHOWN)
