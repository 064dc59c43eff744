"""A conversation with tools as the vendors take it: by their own types, and by servers that refuse
what the real ones refuse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

import smara
from smara.errors import InvalidInputError
from smara.messages.models import Part
from smara.prompt.compose import NO_RESULT, ChatEntry
from smara.prompt.shapes import SHAPES, Shape, shaped
from smara.testing import FakeClock
from tests.faults.sizes import count
from tests.models_server import ModelServer, scripted_server, strict
from tests.vendor_rules import refusal

PATHS: dict[Shape, tuple[str, str]] = {
    "anthropic": ("/v1/messages", "messages"),
    "openai": ("/v1/chat/completions", "messages"),
    "openai-responses": ("/v1/responses", "input"),
    "google": ("/v1beta/models/m:generateContent", "contents"),
}
TOOL = {"name": "Bash", "description": "Run a command.", "input_schema": {"type": "object"}}


def on_the_wire(messages: list[dict[str, Any]], shape: Shape) -> list[dict[str, Any]]:
    """The messages as the vendor's own types read them, and as its package sends them."""
    if shape == "google":
        from google.genai import types

        read = [types.Content.model_validate(each) for each in messages]
        return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in read]
    if shape == "anthropic":
        from anthropic.types import MessageParam as Param
    elif shape == "openai":
        from openai.types.chat import ChatCompletionMessageParam as Param  # type: ignore[assignment]
    else:
        from openai.types.responses import ResponseInputItemParam as Param  # type: ignore[assignment]
    TypeAdapter(list[Param]).validate_python(messages)
    return json.loads(json.dumps(messages))


def refused(messages: list[dict[str, Any]], shape: Shape) -> str:
    path, name = PATHS[shape]
    return refusal(path, {name: on_the_wire(messages, shape), "tools": [TOOL]})


def call(name: str = "Bash", call_id: str | None = "c1", **arguments: Any) -> Part:
    return Part("tool_call", name=name, call_id=call_id, arguments=arguments)


def result(text: str, call_id: str | None = "c1", **rest: Any) -> Part:
    return Part("tool_result", text, call_id=call_id, **rest)


def entries(*messages: tuple[str, Any]) -> list[ChatEntry]:
    return [
        ChatEntry(role, [Part("text", said)] if isinstance(said, str) else said, f"m{at}")
        for at, (role, said) in enumerate(messages)
    ]


TESTS_RUN = (
    ("user", "Run the tests"),
    (
        "assistant",
        [Part("reasoning", "HIDDEN"), Part("text", "I run them."), call(command="npm test")],
    ),
    ("tool", [result("18 passed", name="Bash")]),
    ("assistant", "All pass."),
    ("user", "Thanks"),
)
HARD: dict[str, tuple[tuple[str, Any], ...]] = {
    "the usual": TESTS_RUN,
    "a result whose call is gone": (("tool", [result("18 passed")]), ("user", "go on")),
    "a call without its result": (("user", "go"), ("assistant", [call()]), ("user", "stop")),
    "a call at the end": (("user", "go"), ("assistant", [call()])),
    "the person between call and result": (
        ("user", "go"),
        ("assistant", [call()]),
        ("user", "wait"),
        ("tool", [result("done")]),
    ),
    "results in another order": (
        ("user", "go"),
        ("assistant", [call(call_id="a"), call("Read", "b")]),
        ("tool", [result("of b", "b")]),
        ("tool", [result("of a", "a")]),
    ),
    "calls of one step in messages of their own": (
        ("user", "go"),
        ("assistant", [call(call_id="a")]),
        ("assistant", [call("Read", "b")]),
        ("tool", [result("of a", "a")]),
        ("tool", [result("of b", "b")]),
    ),
    "the same id in each turn": (
        ("user", "go"),
        ("assistant", [call()]),
        ("tool", [result("one")]),
        ("assistant", [call()]),
        ("tool", [result("two")]),
    ),
    "no ids at all": (
        ("user", "go"),
        ("assistant", [call(call_id=None)]),
        ("tool", "18 passed"),
    ),
    "words between the calls of a message": (
        ("user", "go"),
        ("assistant", [call(call_id="a"), Part("text", "and"), call("Read", "b")]),
        ("tool", [result("of a", "a"), result("of b", "b")]),
    ),
    "names and ids that nobody takes": (
        ("user", "go"),
        ("assistant", [call("functions.run it!" * 9, "id with blanks" * 9)]),
        ("tool", [result("done", "id with blanks" * 9)]),
    ),
    "arguments that are no object": (
        ("user", "go"),
        ("assistant", [Part("tool_call", name="Bash", call_id="c1", arguments="ls -l")]),
        ("tool", [result("")]),
    ),
    "empty words": (("user", "  "), ("assistant", ""), ("user", "go"), ("assistant", " \n")),
    "the assistant first, a system message in the middle": (
        ("assistant", "Hello. "),
        ("system", "Be brief."),
        ("user", "go"),
        ("assistant", "Gone. "),
    ),
    "results as the user's, as Anthropic keeps them": (
        ("user", "go"),
        ("assistant", [call()]),
        ("user", [result("done"), Part("text", "and now?")]),
    ),
    "an image in a result": (
        ("user", [Part("image", "a red door", name="door.png"), Part("text", "what is it?")]),
        ("assistant", [call()]),
        ("tool", [result("one image"), Part("image", name="shot.png")]),
    ),
    "a step that failed twice": (
        ("user", "go"),
        ("assistant", [call()]),
        ("tool", [result("no such file", is_error=True)]),
        ("tool", [result("the same again", is_error=True)]),
    ),
}


@pytest.mark.parametrize("shape", PATHS)
@pytest.mark.parametrize("messages", HARD.values(), ids=HARD)
def test_vendors_take_what_a_conversation_became(
    messages: tuple[tuple[str, Any], ...], shape: Shape
) -> None:
    assert refused(shaped(entries(*messages), shape), shape) == ""


part = st.one_of(
    st.builds(Part, st.just("text"), st.sampled_from(["", " \n", "some words", "more words "])),
    st.builds(Part, st.just("reasoning"), st.just("HIDDEN")),
    st.builds(Part, st.just("image"), st.sampled_from(["", "a door"]), name=st.just("door.png")),
    st.builds(
        Part,
        st.just("tool_call"),
        name=st.sampled_from(["Bash", "mcp.run/it", None]),
        call_id=st.sampled_from([None, "", "a", "b", "c" * 60, "with blank"]),
        arguments=st.sampled_from([None, {}, {"command": "ls"}, "ls", "[1]", [1, 2], "{"]),
    ),
    st.builds(
        Part,
        st.just("tool_result"),
        st.sampled_from(["", "18 passed"]),
        name=st.sampled_from(["Bash", None]),
        call_id=st.sampled_from([None, "a", "b", "c" * 60, "with blank", "never called"]),
        is_error=st.booleans(),
    ),
)
entry = st.builds(
    ChatEntry,
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.lists(part, max_size=4),
    is_note=st.booleans(),
)


@settings(max_examples=count(40, 400))
@given(st.lists(entry, max_size=9))
def test_no_mixture_of_messages_is_refused(mixture: list[ChatEntry]) -> None:
    """Whatever was stored, in whatever order: every call and result goes out, paired."""
    for shape in PATHS:
        messages = shaped(mixture, shape)
        reason = refused(messages, shape) if messages else ""
        assert reason == ""
        assert "HIDDEN" not in str(messages)
    calls = sum(part.type == "tool_call" for each in mixture for part in each.parts)
    written = shaped(mixture, "openai-responses")
    assert sum(item.get("type") == "function_call" for item in written) == calls
    assert sum(item.get("type") == "function_call_output" for item in written) == calls


def test_openai_shape_of_a_tool_step() -> None:
    assert shaped(entries(*TESTS_RUN), "openai", "Be kind.") == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Run the tests"},
        {
            "role": "assistant",
            "content": "I run them.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "Bash", "arguments": '{"command": "npm test"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "18 passed"},
        {"role": "assistant", "content": "All pass."},
        {"role": "user", "content": "Thanks"},
    ]


def test_plain_shape_tells_the_command_with_its_result() -> None:
    assert [each["content"] for each in shaped(entries(*TESTS_RUN), "plain")] == [
        "Run the tests",
        "I run them.",
        "[tool:Bash command=npm test] 18 passed",
        "All pass.",
        "Thanks",
    ]


def test_order_of_what_was_said_stays_and_results_follow_their_calls() -> None:
    found = shaped(entries(*HARD["words between the calls of a message"]), "openai-responses")
    assert [item.get("type") or item["content"] for item in found] == [
        "go",
        "function_call",
        "function_call_output",
        "and",
        "function_call",
        "function_call_output",
    ]
    assert [item["output"] for item in found if "output" in item] == ["of a", "of b"]


def test_call_without_result_says_so_and_result_without_call_is_text() -> None:
    [_, _, missing, _] = shaped(entries(*HARD["a call without its result"]), "openai")
    assert missing["content"] == NO_RESULT
    [text, _] = shaped(entries(*HARD["a result whose call is gone"]), "openai")
    assert text == {"role": "user", "content": "[Result of a tool, called earlier]\n18 passed"}


def test_ids_are_the_same_when_the_conversation_goes_on() -> None:
    short = shaped(entries(*HARD["no ids at all"]), "openai")
    longer = shaped(entries(*HARD["no ids at all"], ("user", "thanks")), "openai")
    assert longer[: len(short)] == short


def test_unknown_shape_names_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match="openai-responses, anthropic"):
        shaped([], "cohere")  # type: ignore[arg-type]
    assert len(SHAPES) == 5


# the real door: stored, observed, sent by the vendors' own packages


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    clock = FakeClock(1_800_000_000_000)
    with smara.open(tmp_path / "m.db", clock=clock) as opened:
        for step in range(12):
            clock.advance(60)
            opened.messages.add(thread_id="t", role="user", content=f"Run test {step}.")
            opened.messages.add(
                thread_id="t",
                role="assistant",
                content=[
                    Part("reasoning", "HIDDEN"),
                    call(call_id=f"c{step}", command=f"npm test {step}"),
                ],
            )
            opened.messages.add(
                thread_id="t",
                role="tool",
                content=[result(f"{step} passed: " + "and so on " * 20, f"c{step}", name="Bash")],
            )
            opened.messages.add(thread_id="t", role="assistant", content=f"Test {step} passes.")
            if step == 5:
                opened.observations.observe("t")
        yield opened


def send(server: ModelServer, shape: Shape, request: dict[str, Any]) -> str:
    """Send a request by the package of the vendor; return the reply."""
    if shape == "anthropic":
        import anthropic

        with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
            reply = client.messages.create(model="m", max_tokens=9, tools=[TOOL], **request)
            return reply.content[0].text  # type: ignore[union-attr]
    if shape == "google":
        from google import genai

        client = genai.Client(api_key="k", http_options={"base_url": server.url})
        try:
            return client.models.generate_content(model="m", **request).text or ""
        finally:
            client.close()
    import openai

    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client:
        if shape == "openai-responses":
            return client.responses.create(model="m", **request).output_text
        made = client.chat.completions.create(model="m", **request)
        return made.choices[0].message.content or ""


@pytest.mark.usefixtures("vendor_keys")
@pytest.mark.parametrize("shape", PATHS)
@pytest.mark.parametrize("is_result", [False, True], ids=["a question", "a result"])
def test_context_of_a_thread_with_tools_is_sent_by_the_vendors_packages(
    memory: Any, shape: Shape, is_result: bool
) -> None:
    """Observed in part, with the reminder last, in the middle of a step and at its beginning."""
    incoming: list[Any] = [{"role": "user", "content": "And now?"}]
    if is_result:
        memory.messages.add(thread_id="t", role="assistant", content=[call(call_id="last")])
        incoming = [{"role": "tool", "content": [result("done", "last")]}]
    context = memory.context.process_input("t", incoming, step=int(is_result))
    assert context.receipt.observation_ids
    with scripted_server(strict("Taken.")) as server:
        assert send(server, shape, context.as_request(shape, instructions="Be kind.")) == "Taken."
        body = json.dumps(server.requests[-1].body)
    assert "HIDDEN" not in body
    last = json.dumps(context.as_messages(shape)[-2:], default=str)
    assert "Be kind." in body
    assert last.index("done" if is_result else "And now?") < last.index("It is ")


@pytest.mark.usefixtures("vendor_keys")
def test_strict_server_refuses_what_it_should(memory: Any) -> None:
    """A detector is proved by what it must catch."""
    import anthropic

    messages = memory.context.process_input("t").as_messages("anthropic")
    broken = [each for each in messages if "tool_result" not in str(each)]
    with scripted_server(strict()) as server, pytest.raises(anthropic.BadRequestError):
        send(server, "anthropic", {"messages": broken})


def test_anthropic_cache_marks_stand_before_what_changes(memory: Any) -> None:
    request = memory.context.process_input("t", [{"role": "user", "content": "go"}]).as_request(
        "anthropic"
    )
    blocks = [block for message in request["messages"] for block in message["content"]]
    [marked] = [at for at, block in enumerate(blocks) if "cache_control" in block]
    assert blocks[marked]["text"] == "go"
    assert "It is " in blocks[marked + 1]["text"]
    assert request["system"][-1]["cache_control"] == {"type": "ephemeral"}
    plain = memory.context.process_input("t").as_request("anthropic", is_cached=False)
    assert "cache_control" not in str(plain)
