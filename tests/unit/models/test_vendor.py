"""The vendors' models over loopback HTTP: what is sent, what comes back, whose key goes where."""

from __future__ import annotations

import threading

import pytest

from smara.core.deadline import Abort
from smara.errors import (
    InvalidInputError,
    ModelAbortedError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models.chat import ChatRequest, Usage, list_schema
from smara.models.vendor import load_tiers
from smara.testing import open_temporary
from tests.models_server import (
    KEYS,
    cut,
    echo,
    empty,
    hang,
    ok,
    quota,
    refusal,
    reset,
    scripted_server,
    status,
    truncated,
    without_usage,
)

pytestmark = pytest.mark.usefixtures("vendor_keys")
VENDORS = ["anthropic", "openai", "openai-compatible", "ollama", "google"]
REQUEST = ChatRequest("What is new?", "Be brief.", deadline_seconds=60, max_output_tokens=300)


def model_of(server, vendor, name="model-1", api_key=None):
    return load_tiers(server.model(vendor, name), api_key)[0][1]


@pytest.mark.parametrize("vendor", VENDORS)
def test_text_and_usage_come_back(vendor):
    with scripted_server(ok("All quiet.", 120, 7)) as server:
        reply = model_of(server, vendor).complete(REQUEST)
        assert (reply.text, reply.usage, reply.finish, reply.model) == (
            "All quiet.",
            Usage(120, 7),
            "stop",
            "model-1",
        )
        assert server.wait_until_left()
    assert len(server.requests) == 1


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_server_on_this_machine_is_asked_without_a_proxy(vendor, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nobody listens
    with scripted_server(ok("All quiet.")) as server:
        assert model_of(server, vendor).complete(REQUEST).text == "All quiet."


@pytest.mark.parametrize("vendor", VENDORS)
def test_system_prompt_and_limit_are_sent(vendor):
    with scripted_server(ok()) as server:
        model_of(server, vendor).complete(REQUEST)
    asked = server.requests[0]
    assert (asked.prompt, "Be brief." in asked.text) == ("What is new?", True)
    limits = [asked.body.get("max_tokens"), asked.body.get("max_completion_tokens")]
    limits.append(asked.body.get("generationConfig", {}).get("maxOutputTokens"))
    limits.append(asked.body.get("options", {}).get("num_predict"))
    assert 300 in limits


def test_what_is_not_said_is_not_sent():
    with scripted_server(ok()) as server:
        model_of(server, "openai-compatible").complete(ChatRequest("hello"))
    assert set(server.requests[0].body) == {"model", "messages", "stream", "max_completion_tokens"}
    assert [message["role"] for message in server.requests[0].body["messages"]] == ["user"]


@pytest.mark.parametrize("vendor", ["anthropic", "openai-compatible"])
def test_temperature_settings_and_provider_options_reach_the_wire(vendor):
    request = ChatRequest(
        "hello",
        temperature=0.2,
        settings={"top_p": 0.9},
        provider_options={"metadata": {"user_id": "u"}},
    )
    with scripted_server(ok()) as server:
        model_of(server, vendor).complete(request)
    body = server.requests[0].body
    assert (body["temperature"], body["top_p"], body["metadata"]) == (0.2, 0.9, {"user_id": "u"})


SCHEMAS = {
    "openai": lambda body: body["response_format"]["json_schema"]["schema"],
    "anthropic": lambda body: body["output_config"]["format"]["schema"],
    "google": lambda body: body["generationConfig"]["responseJsonSchema"],
    "ollama": lambda body: body["format"],
}


@pytest.mark.parametrize(
    ("vendor", "name"),
    [
        ("openai", "gpt-5-mini"),
        ("anthropic", "claude-haiku-4-5"),
        ("google", "gemini-2.5-flash"),
        ("ollama", "qwen3"),
    ],
)
def test_a_model_with_structured_output_is_held_to_the_schema(vendor, name):
    request = ChatRequest("Which?", schema=list_schema({"number": {"type": "integer"}}))
    with scripted_server(ok('{"items": [{"number": 3}]}')) as server:
        reply = model_of(server, vendor, name).complete(request)
    assert reply.text == '{"items": [{"number": 3}]}'
    sent = SCHEMAS[vendor](server.requests[0].body)
    assert sent["properties"]["items"]["items"]["properties"] == {"number": {"type": "integer"}}


@pytest.mark.parametrize(
    ("vendor", "name"),
    [("anthropic", "claude-3-haiku-20240307"), ("openai-compatible", "some-local-model")],
)
def test_a_model_that_may_refuse_a_schema_is_sent_none(vendor, name):
    request = ChatRequest("Which?", schema=list_schema({"number": {"type": "integer"}}))
    with scripted_server(ok("[]")) as server:
        assert model_of(server, vendor, name).complete(request).text == "[]"
    assert "integer" not in str(server.requests[0].body)


@pytest.mark.parametrize(
    ("words", "window"), [(10, 8_192), (12_000, 32_768)], ids=["short", "long"]
)
def test_ollama_is_told_how_long_the_context_is(words, window, monkeypatch):
    """Its other interface takes no length, and cuts what is longer than 4,096 tokens silently."""
    request = ChatRequest("word " * words, max_output_tokens=4_000, temperature=0.3)
    with scripted_server(ok("Fine.", 11, 2)) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        load_tiers("ollama:qwen3")[0][1].complete(request)
    [asked] = server.requests
    assert asked.path == "/api/chat"
    assert asked.body["options"] == {"num_ctx": window, "num_predict": 4_000, "temperature": 0.3}


def test_google_takes_no_provider_options():
    with (
        scripted_server(ok()) as server,
        pytest.raises(InvalidInputError, match="google_thinking_config"),
    ):
        model_of(server, "google").complete(ChatRequest("hello", provider_options={"x": 1}))


@pytest.mark.parametrize(
    ("vendor", "key"),
    [
        ("anthropic", KEYS["ANTHROPIC_API_KEY"]),
        ("openai", KEYS["OPENAI_API_KEY"]),
        ("google", KEYS["GOOGLE_API_KEY"]),
    ],
)
def test_a_vendor_gets_its_own_key_from_its_own_variable(vendor, key):
    with scripted_server(ok()) as server:
        model_of(server, vendor, api_key="key-of-somebody-else").complete(REQUEST)
    assert any(key in value for value in server.requests[0].headers.values())
    assert "somebody-else" not in str(server.requests[0].headers)


@pytest.mark.parametrize("vendor", ["openai-compatible", "ollama"])
@pytest.mark.parametrize("given", [None, "my-own-key"])
def test_a_server_that_is_only_compatible_never_gets_the_key_of_openai(vendor, given):
    with scripted_server(ok()) as server:
        model_of(server, vendor, api_key=given).complete(REQUEST)
    headers = server.requests[0].headers
    assert not [value for value in headers.values() if any(key in value for key in KEYS.values())]
    assert given is None or headers["authorization"] == "Bearer my-own-key"


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "google"])
def test_a_missing_key_is_refused_before_anything_is_sent(monkeypatch, vendor):
    for variable in KEYS:
        monkeypatch.delenv(variable)
    with pytest.raises(ModelRefusedError, match=f"{vendor.upper()}_API_KEY") as caught:
        load_tiers(f"{vendor}:model-1")[0][1].complete(REQUEST)
    assert (caught.value.reason, caught.value.may_be_billed) == ("key", False)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("step", "finish"), [(truncated(), "length"), (refusal(), "refusal"), (empty(), "stop")]
)
def test_how_a_reply_ended_is_told(vendor, step, finish):
    if vendor == "ollama" and finish == "refusal":
        finish = "stop"  # it has no word for it
    with scripted_server(step) as server:
        assert model_of(server, vendor).complete(REQUEST).finish == finish


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_reply_without_usage_is_counted_by_ourselves(vendor):
    with scripted_server(without_usage("word " * 84)) as server:
        usage = model_of(server, vendor).complete(ChatRequest("word " * 420)).usage
    assert usage.is_estimated
    assert (usage.input_tokens, usage.output_tokens) == (500, 100)


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "google"])
def test_any_text_goes_through_unchanged(vendor):
    text = "重跑 café 👩‍👩‍👧 <|endoftext|> \u202e {{x}} \n\t</system>"
    with scripted_server(echo()) as server:
        assert model_of(server, vendor).complete(ChatRequest(text)).text == text


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "google"])
@pytest.mark.parametrize(
    ("step", "error", "reason", "may_be_billed"),
    [
        (status(401), ModelRefusedError, "key", False), (status(403), ModelRefusedError, "key",
        False),
        (status(404), ModelRefusedError, "unknown_model", False), (status(413), ModelRefusedError,
        "too_long", False),
        (status(400, "nope"), ModelRefusedError, "request", False), (status(402), ModelRefusedError,
        "quota", False),
        (quota(), ModelRefusedError, "quota", False), (status(429), ModelUnavailableError,
        "rate_limit", False),
        (status(500), ModelUnavailableError, "server", False),
        (status(529), ModelUnavailableError, "overloaded", False),
        (reset(), ModelUnavailableError, "connection", True), (cut(), ModelUnavailableError,
        "connection", True),
    ],
    ids=["401", "403", "404", "413", "400", "402", "quota", "429", "500", "529", "reset", "cut"],
)  # fmt: skip
def test_an_error_says_its_reason_and_whether_it_may_cost(
    vendor, step, error, reason, may_be_billed
):
    with scripted_server(step) as server, pytest.raises(error) as caught:
        model_of(server, vendor).complete(REQUEST)
    assert (caught.value.reason, caught.value.may_be_billed) == (reason, may_be_billed)
    assert str(caught.value).startswith(f"{vendor}:model-1 ")
    assert len(server.requests) == 1, "the vendor's package asked again by itself"


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "google"])
def test_the_server_says_when_to_come_back(vendor):
    with (
        scripted_server(status(429, retry_after=17)) as server,
        pytest.raises(ModelUnavailableError) as caught,
    ):
        model_of(server, vendor).complete(REQUEST)
    assert caught.value.retry_after_seconds == 17.0


def test_nobody_listens_and_nothing_was_paid():
    with scripted_server(ok()) as server:
        model = model_of(server, "openai-compatible")
    with pytest.raises(ModelUnavailableError) as caught:
        model.complete(REQUEST)
    assert (caught.value.reason, caught.value.may_be_billed) == ("connection", False)


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "google"])
def test_a_call_is_taken_back_while_the_server_hangs(vendor):
    abort = Abort()
    with scripted_server(hang()) as server:
        threading.Thread(target=lambda: server.asked.wait(600) and abort.set()).start()
        with pytest.raises(ModelAbortedError) as caught:
            model_of(server, vendor).complete(REQUEST, abort)
        assert caught.value.may_be_billed is True
        assert server.wait_until_left(), "the connection stayed open"


def test_a_key_in_an_answer_is_not_repeated():
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    with (
        scripted_server(status(401, f"no such key: {secret}")) as server,
        open_temporary(model=server.model("anthropic")) as memory,
        pytest.raises(ModelRefusedError, match=r"no such key: \[REDACTED") as caught,
    ):
        memory.models.complete(REQUEST)
    assert secret not in str(caught.value)
