"""Call Anthropic, OpenAI, Ollama and Google chat models through pydantic-ai.

Every call opens its own client and closes it: calls are minutes apart, so no connection is kept.
The vendors' own retries are off, because each attempt must fit into the budget.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from smara.config import ollama_url
from smara.core.deadline import Abort, run_coroutine_within
from smara.core.tokens import estimate_o200k
from smara.errors import (
    BadReplyError,
    InvalidInputError,
    MissingExtraError,
    ModelError,
)
from smara.models import failures
from smara.models.chat import ChatModel, ChatReply, ChatRequest, Finish, Usage
from smara.models.embedders.servers import ollama_endpoint
from smara.models.http import bearer, is_this_machine, request_json
from smara.models.registry import PACKAGES, ModelSpec, Tiers, parse_tiers

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters


_NO_KEY = "none"
_DEADLINE_SECONDS = 60.0
_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}

# A reply of the allowed length is at most this long on the wire: 16 bytes for a token, twice as
# many for a script that JSON escapes, and room for the rest of the body. A server that sends more
# is cut off.
_BYTES_PER_TOKEN = 32
_BYTES_AROUND = 1_000_000
_LEAST_WINDOW_TOKENS = 8_192
# Other models cut a text into up to so many times the tokens that we count.
_TOKENS_OF_OTHERS = 1.3


def load_tiers(setting: str, api_key: str | None = None) -> Tiers:
    """Return the models that a setting names; nothing heavy is imported yet.

    Raises:
        ConfigError: The setting cannot be read.
        MissingExtraError: The package of a vendor is not installed.
    """
    tiers: list[tuple[int | None, ChatModel]] = []
    for below, spec in parse_tiers(setting):
        for package in ("pydantic_ai", "genai_prices", PACKAGES[spec.vendor]):
            try:
                is_there = find_spec(package) is not None
            except ModuleNotFoundError:  # the package around it is missing
                is_there = False
            if not is_there:
                raise MissingExtraError(
                    f"{spec.name} needs the package {package}. Install it with `pip install "
                    '"smara[models]"`.',
                    package=package,
                )
        kind = OllamaModel if spec.vendor == "ollama" else VendorModel
        tiers.append((below, kind(spec, api_key)))
    return tiers


class OllamaModel:
    """A model of Ollama, asked by Ollama's own interface.

    The one it shares with OpenAI takes no length of the context, and cuts long prompts silently.
    """

    def __init__(self, spec: ModelSpec, api_key: str | None = None) -> None:
        self.spec = spec
        self.name = spec.name
        self._url = ollama_endpoint(spec.base_url or ollama_url(), "/api/chat")
        self._headers = bearer(api_key)

    def complete(self, request: ChatRequest, abort: Abort | None = None) -> ChatReply:
        spoken = (("system", request.system), ("user", request.prompt))
        needed = round(estimate_o200k(request.system + request.prompt) * _TOKENS_OF_OTHERS)
        window = _LEAST_WINDOW_TOKENS
        # Powers of two: the model is loaded again for every other length.
        while window < needed + request.max_output_tokens:
            window *= 2
        reply = request_json(
            self._url,
            {
                "model": self.spec.model,
                "stream": False,
                "messages": [{"role": role, "content": text} for role, text in spoken if text],
                "options": {
                    **request.settings,
                    "num_ctx": window,
                    "num_predict": request.max_output_tokens,
                    **({} if request.temperature is None else {"temperature": request.temperature}),
                },
                **({} if request.schema is None else {"format": request.schema}),
                **request.provider_options,
            },
            model=self.name,
            deadline_seconds=request.deadline_seconds or _DEADLINE_SECONDS,
            headers=self._headers,
            most_bytes=_BYTES_AROUND + _BYTES_PER_TOKEN * request.max_output_tokens,
            advice={"unknown_model": f"Fetch it with `ollama pull {self.spec.model}`."},
            abort=abort,
        )
        message = reply.get("message") if isinstance(reply, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise failures.unreadable(self.name, "the reply holds no message")
        read, written = (int(reply.get(name) or 0) for name in ("prompt_eval_count", "eval_count"))
        return ChatReply(
            message["content"],
            _usage(request, message["content"], read, written),
            "length" if reply.get("done_reason") == "length" else "stop",
            model=reply.get("model") or self.spec.model,
        )


def _usage(
    request: ChatRequest, text: str, read: int, written: int, cache: tuple[int, int] = (0, 0)
) -> Usage:
    """Return what a call used; counted by ourselves where the server did not say."""
    if read > 0 and (written > 0 or not text):
        return Usage(read, written, *cache)
    prompt = request.system + request.prompt
    return Usage(round(estimate_o200k(prompt)), round(estimate_o200k(text)), is_estimated=True)


class VendorModel:
    """A model of a vendor, or of a compatible server."""

    def __init__(self, spec: ModelSpec, api_key: str | None = None) -> None:
        self.spec = spec
        self.name = spec.name
        self._api_key = api_key

    def complete(self, request: ChatRequest, abort: Abort | None = None) -> ChatReply:
        if request.provider_options and self.spec.vendor == "google":
            raise InvalidInputError(
                "Google takes no provider_options. Use settings, such as google_thinking_config."
            )
        seconds = request.deadline_seconds or _DEADLINE_SECONDS
        call = _VendorCall(self.spec, self._api_key, request)
        try:
            return run_coroutine_within(call.run, seconds, abort)
        except InterruptedError:
            raise failures.taken_back(self.name, call.was_sent) from None
        except TimeoutError:
            raise failures.timed_out(self.name, seconds, call.was_sent) from None


class _VendorCall:
    """One request and its answer."""

    def __init__(self, spec: ModelSpec, api_key: str | None, request: ChatRequest) -> None:
        self._spec = spec
        self._api_key = api_key
        self._request = request
        self.was_sent = False

    async def run(self) -> ChatReply:
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        request = self._request
        question = ModelRequest(
            parts=[UserPromptPart(request.prompt)], instructions=request.system or None
        )
        options: dict[str, Any] = {
            **request.settings,
            "max_tokens": request.max_output_tokens,
            "max_retries": 0,
            # Without it a vendor's package streams what it thinks will take long. The deadline
            # itself is ours.
            "timeout": request.deadline_seconds or _DEADLINE_SECONDS,
            **({} if request.temperature is None else {"temperature": request.temperature}),
            **({"extra_body": dict(request.provider_options)} if request.provider_options else {}),
        }
        try:
            async with self._client() as client:
                made = _make_model(self._spec, self._api_key, client)
                settings: Any = options
                answer = await model_request(
                    made,
                    [question],
                    model_settings=settings,
                    model_request_parameters=self._parameters(made),
                    instrument=False,
                )
            return self._reply(answer)
        except (ModelError, TimeoutError):
            raise
        except Exception as error:
            # A vendor's package may raise anything for a body that it did not expect.
            name = self._spec.name
            ours = _too_long_behind(error) or failures.translate(name, error, self.was_sent)
            if ours is None and not self.was_sent:
                raise
            raise ours or failures.unreadable(name, f"{type(error).__name__}: {error}") from error

    def _parameters(self, made: Model) -> ModelRequestParameters | None:
        """Return what holds the model to the schema of the reply."""
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        schema = self._request.schema
        # Whether a server that is only compatible refuses the field is not known.
        can_hold = self._spec.vendor != "openai-compatible" and made.profile.get(
            "supports_json_schema_output"
        )
        if schema is None or not can_hold:
            return None
        definition = OutputObjectDefinition(dict(schema), name="reply", strict=True)
        return ModelRequestParameters(output_mode="native", output_object=definition)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx2.AsyncClient]:
        import httpx2
        from pydantic_ai.models import create_async_httpx2_client

        spec, request = self._spec, self._request
        most = _BYTES_AROUND + _BYTES_PER_TOKEN * request.max_output_tokens

        class Bounded(httpx2.AsyncByteStream):
            """A body that is cut off when it is far too long."""

            def __init__(self, stream: Any) -> None:
                self._stream = stream

            async def __aiter__(self) -> AsyncIterator[bytes]:
                seen = 0
                async for piece in self._stream:
                    seen += len(piece)
                    if seen > most:
                        tokens = round(estimate_o200k(request.system + request.prompt))
                        raise BadReplyError(
                            f"{spec.name} sent far more than it was allowed to; the rest was not "
                            "read. Check the server.",
                            model=spec.name,
                            reason="too_long",
                            usage=Usage(tokens, seen // 4, is_estimated=True),
                        )
                    yield piece

            async def aclose(self) -> None:
                await self._stream.aclose()

        async def trace(event: str, facts: dict[str, Any]) -> None:
            # Before it, no connection was made: whatever goes wrong there costs nothing.
            if event.endswith("send_request_headers.started"):
                self.was_sent = True

        async def traced(outgoing: httpx2.Request) -> None:
            outgoing.extensions = {**outgoing.extensions, "trace": trace}

        async def bounded(response: httpx2.Response) -> None:
            response.stream = Bounded(response.stream)

        address = urlsplit(spec.base_url or "")
        is_plain = address.scheme == "http" and is_this_machine(address.hostname or "")
        # For a server on this machine that speaks without TLS: loading the authorities takes 30 ms
        # of every call.
        transport = httpx2.AsyncHTTPTransport(verify=False) if is_plain else None
        async with create_async_httpx2_client(transport=transport) as client:
            # Otherwise a small body may unpack to a large one.
            client.headers["Accept-Encoding"] = "identity"
            client.event_hooks["request"].append(traced)
            client.event_hooks["response"].append(bounded)
            yield client

    def _reply(self, answer: ModelResponse) -> ChatReply:
        text, counted = answer.text or "", answer.usage
        return ChatReply(
            text,
            _usage(
                self._request,
                text,
                counted.input_tokens,
                counted.output_tokens,
                cache=(counted.cache_read_tokens, counted.cache_write_tokens),
            ),
            _FINISHES.get(answer.finish_reason, "other"),
            model=answer.model_name or self._spec.model,
        )


def _too_long_behind(error: BaseException | None) -> ModelError | None:
    """Our own error, which the vendors' packages take for a broken connection."""
    while error is not None:
        if isinstance(error, BadReplyError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _make_model(spec: ModelSpec, api_key: str | None, client: httpx2.AsyncClient) -> Model:
    """Return pydantic-ai's model of a vendor; only this vendor's package is imported."""
    url = spec.base_url
    if spec.vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            spec.model, provider=AnthropicProvider(base_url=url, http_client=client)
        )
    if spec.vendor == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(spec.model, provider=GoogleProvider(base_url=url, http_client=client))
    from pydantic_ai.models.openai import OpenAIChatModel

    if spec.vendor == "openai":
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(
            spec.model, provider=OpenAIProvider(base_url=url, http_client=client)
        )
    if spec.vendor == "openai-compatible":
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        # A key is always given: without one, OPENAI_API_KEY would be sent to this address.
        compatible = OpenAICompatibleProvider(
            spec.vendor, base_url=url or "", api_key=api_key or _NO_KEY, http_client=client
        )
        return OpenAIChatModel(spec.model, provider=compatible)
    raise AssertionError(f"{spec.vendor} is among the vendors and has no model here")
