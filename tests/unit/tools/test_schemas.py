"""The schemas: one catalogue, two forms, two vendors' shapes, and a budget of tokens."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from smara.core.tokens import counter_for
from smara.errors import InvalidInputError
from smara.tools import (
    anthropic_tools,
    description,
    instructions,
    openai_tools,
    schemas,
    system_prompt,
)
from smara.tools.catalogue import EVERY_TOOL, PROFILES, TOOLS

COMBINATORS = {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs"}
MOST_TOKENS = 2_500
MOST_BYTES = 2_048
ACTIONS = [(tool, action) for tool in EVERY_TOOL.values() for action in tool.actions.values()]
EACH_PROFILE = pytest.mark.parametrize("profile", PROFILES)
EXAMPLES = pytest.mark.parametrize(("tool", "action"), ACTIONS, ids=lambda each: each.name)


def accepted(schema, call) -> bool:
    return Draft202012Validator(schema).is_valid(call)


@pytest.mark.parametrize("form", ["flat", "union"])
@pytest.mark.parametrize("name", EVERY_TOOL)
def test_schema_is_a_valid_object_schema(form, name):
    schema = schemas(form, "coding")[name]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"


def test_unknown_form_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="flat or union"):
        schemas("round")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EVERY_TOOL)
def test_flat_form_has_no_combinator_at_its_root_and_one_type_per_argument(name):
    """Anthropic's API rejects a root combinator, Claude Code drops the tool; some hosts know no
    lists of types.
    """
    schema = schemas("flat", "coding")[name]
    assert COMBINATORS & set(schema) == set()
    assert all(isinstance(each["type"], str) for each in schema["properties"].values())
    assert schema["required"] == ["action"]


@pytest.mark.parametrize("name", EVERY_TOOL)
def test_both_forms_have_the_same_actions_and_arguments(name):
    flat, union = schemas("flat", "coding")[name], schemas("union", "coding")[name]
    variants = {
        each["properties"]["action"]["const"]: each["properties"] for each in union["oneOf"]
    }
    assert flat["properties"]["action"]["enum"] == list(variants)
    assert set(flat["properties"]) == {argument for each in variants.values() for argument in each}


@pytest.mark.parametrize("name", EVERY_TOOL)
def test_both_forms_say_the_same_of_an_argument(name):
    told = ("description", "default", "minLength", "maxLength", "maxItems", "minimum", "maximum")
    flat, union = schemas("flat", "coding")[name], schemas("union", "coding")[name]
    for each in union["oneOf"]:
        for argument, schema in each["properties"].items():
            if argument != "action":
                found = union["$defs"][argument] if "$ref" in schema else schema
                bare = {key: value for key, value in found.items() if key not in told}
                served = {
                    key: value
                    for key, value in flat["properties"][argument].items()
                    if key not in told
                }
                assert {**bare, "items": 0} == {**served, "items": 0}


@EXAMPLES
def test_example_of_an_action_is_accepted_by_both_forms_and_names_what_is_needed(tool, action):
    call = dict(action.example)
    assert accepted(schemas("union", "coding")[tool.name], call)
    assert accepted(schemas("flat", "coding")[tool.name], call)
    assert set(action.required) <= set(call)


@EXAMPLES
def test_union_refuses_what_another_action_takes(tool, action):
    foreign = next(
        each for each in ("summary", "since", "includeMessages") if each not in action.arguments
    )
    assert not accepted(schemas("union", "coding")[tool.name], {**action.example, foreign: "x"})


@EXAMPLES
def test_description_tells_each_action_with_what_it_needs(tool, action):
    needs = f"({', '.join(action.required)}" if action.required else ""
    assert f"{action.name}{needs}" in description(tool.name)


@EXAMPLES
def test_defaults_of_the_union_are_what_a_call_gets(tool, action):
    variants = schemas("union", "coding")[tool.name]["oneOf"]
    variant = next(
        each for each in variants if each["properties"]["action"]["const"] == action.name
    )
    told = {
        name: each["default"] for name, each in variant["properties"].items() if "default" in each
    }
    assert told == dict(action.defaults)


def test_defaults_are_those_of_the_specification():
    defaults = {(tool.name, action.name): action.defaults for tool, action in ACTIONS}
    assert defaults["task-query", "ready"]["limit"] == 5
    assert defaults["task-query", "search"]["limit"] == 3
    assert defaults["memory-search", "search"]["limit"] == 3
    assert defaults["task-mutate", "dep"]["add"] is True
    assert defaults["task-mutate", "update_context"]["scope"] == "resource"


def test_default_that_only_one_action_has_is_told_in_words_not_filled_in():
    """A client that fills in defaults would otherwise reset the priority with every update."""
    priority = schemas()["task-mutate"]["properties"]["priority"]
    assert "default" not in priority
    assert "default 2 (create)" in priority["description"]


def test_anthropic_shape():
    for tool, name in zip(anthropic_tools(), TOOLS, strict=True):
        assert list(tool) == ["name", "description", "input_schema"]
        assert tool["name"] == name
        assert COMBINATORS & set(tool["input_schema"]) == set()


def test_openai_shapes():
    for chat, response in zip(openai_tools(), openai_tools(api="responses"), strict=True):
        assert chat["type"] == response["type"] == "function"
        assert chat["function"] == {
            name: value for name, value in response.items() if name != "type"
        }
        assert set(chat["function"]) == {"name", "description", "parameters", "strict"}
    with pytest.raises(InvalidInputError, match="chat or responses"):
        openai_tools(api="fax")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(3))
def test_strict_shape_wants_every_argument_and_lets_the_optional_ones_be_null(number):
    schema = openai_tools(strict=True)[number]["function"]["parameters"]
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    for name, each in schema["properties"].items():
        assert ("null" in each["type"]) == (name != "action")
        assert None in each.get("enum", [None]) or name == "action"
        assert not {"default", "minLength", "maxLength", "minimum", "maximum", "maxItems"} & {
            *each,
            *each.get("items", ()),
        }


def tokens(text: str) -> int:
    return counter_for("o200k_base").count(text).tokens


@EACH_PROFILE
@pytest.mark.parametrize("listed", [anthropic_tools, openai_tools])
def test_tools_and_instructions_stay_within_the_budget(listed, profile):
    assert tokens(json.dumps(listed(profile=profile))) + tokens(instructions(profile)) < MOST_TOKENS


@pytest.mark.parametrize("name", [*EVERY_TOOL, "instructions"])
def test_no_text_is_longer_than_hosts_show(name):
    """Claude Code cuts descriptions and instructions at 2 KB."""
    text = instructions("coding") if name == "instructions" else description(name)
    assert len(text.encode()) < MOST_BYTES


def test_default_profile_has_the_tools_to_look_and_to_record_and_coding_one_more():
    assert list(PROFILES["default"]) == [
        "task-query",
        "task-mutate",
        "memory-search",
        "memory-record",
    ]
    assert list(PROFILES["coding"]) == [*PROFILES["default"], "code-query"]


def test_amounts_have_no_bounds_in_the_flat_form_and_choices_of_numbers_do():
    served = schemas()
    assert not {"minimum", "maximum"} & set(served["task-query"]["properties"]["limit"])
    assert served["task-mutate"]["properties"]["priority"]["maximum"] == 4


@EACH_PROFILE
def test_texts_of_a_profile_speak_of_its_tools_alone(profile):
    for text in (instructions(profile), system_prompt(profile)):
        assert {name for name in EVERY_TOOL if name in text} == set(PROFILES[profile])
        assert "{{" not in text


@EACH_PROFILE
def test_system_prompt_speaks_of_every_tool_and_the_actions_an_agent_needs(profile):
    text = system_prompt(profile)
    assert all(f"`{name}`" in text for name in PROFILES[profile])
    assert all(
        f"`{name}`" in text
        for name in ("ready", "claim", "close", "release", "create", "update_context", "read")
    )
    assert tokens(text) < 900
