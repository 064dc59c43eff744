"""Choose the embedder and the reranker from their settings.

``auto`` tries, in order: Ollama with the largest Qwen3 embedder that fits into memory, OpenAI if
there is a key, the offline embedder. ``features``, the default of the reranker, ranks without a
model; ``off`` also ignores a reranker that a program passes in. A key or a server alone is no
permission: without a name in the setting, no text leaves the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from smara.config import Settings, ollama_url, vendor_key
from smara.core.startup.regex import regex
from smara.errors import ConfigError, MissingSettingError, ModelError
from smara.models.embedder import Embedder
from smara.models.embedders.offline import OfflineEmbedder
from smara.models.reranker import Reranker

if TYPE_CHECKING:
    from smara.models.embedders.servers import ServerEmbedder

_EMBEDDER_FORMS = (
    "Write offline, off, auto, ollama, ollama:MODEL, ollama:MODEL@http://HOST:PORT, openai, "
    "openai:MODEL, "
    "openai:MODEL@http://HOST:PORT/v1 for a server that speaks OpenAI's format, or onnx:/FOLDER."
)
_EMBEDDER_SERVER = regex(
    r"(?P<vendor>ollama|openai)(?::(?P<model>[^@\s]+))?(?:@(?P<address>https?://\S+))?"
)
_LOOK_SECONDS = 2.0
"""How long is waited for Ollama to say which models it has."""


class Choice(NamedTuple):
    """The unguarded embedder in force and the reason.

    None when embedding is off.
    """

    embedder: Embedder | ServerEmbedder | None
    why: str


def choose(settings: Settings, memory_bytes: int | None = None) -> Choice:
    """Choose the embedder that settings name, with its reason.

    Nothing heavy is imported or loaded yet.

    ``auto`` and ``ollama`` without a model ask Ollama what it has. ``ConfigError`` for a setting
    that cannot be used, ``ModelError`` when ``ollama`` is named and cannot be asked.
    ``memory_bytes`` is what this machine has.
    """
    chosen = settings.embedder.strip()
    match chosen:
        case "off":
            return Choice(None, "the setting embedder is off")
        case "" | "offline":
            return Choice(OfflineEmbedder(), "it is the default, and needs no server and no key")
        case "auto":
            # The first step of the ladder that holds.
            try:
                found = _ollama(None, ollama_url(), settings, memory_bytes=memory_bytes)
                return Choice(found.embedder, f"auto: {found.why}")
            except ModelError as error:
                missing = f"Ollama: {error.facts.get('reason', error.code)}".replace("_", " ")
            if vendor_key("OPENAI_API_KEY"):
                return Choice(
                    _openai(None, None, settings).embedder,
                    f"auto: there is a key of OpenAI ({missing})",
                )
            return Choice(
                OfflineEmbedder(), f"auto: nothing better is there ({missing}; no OPENAI_API_KEY)"
            )
        case _ if chosen.startswith("onnx:"):
            from smara.models.onnx import OnnxEmbedder

            return Choice(
                OnnxEmbedder(chosen.removeprefix("onnx:")), "the setting embedder names its folder"
            )
    match = _EMBEDDER_SERVER.fullmatch(chosen)
    if match is None:
        raise ConfigError(f"The setting embedder cannot be read. {_EMBEDDER_FORMS}")
    if match["vendor"] == "openai":
        return _openai(match["model"], match["address"], settings)
    return _ollama(
        match["model"], match["address"] or ollama_url(), settings, memory_bytes=memory_bytes
    )


def _ollama(
    model: str | None, address: str, settings: Settings, memory_bytes: int | None
) -> Choice:
    from smara.models.embedders import servers
    from smara.models.http import parse_address, without_login

    if model is not None:
        embedder = servers.OllamaEmbedder(model, address, settings)
        return Choice(embedder, f"the setting embedder names it, at {without_login(address)}")
    is_here = parse_address(address).hostname in ("127.0.0.1", "localhost", "::1")
    memory = (memory_bytes or servers.machine_memory_bytes()) if is_here else None
    found, why = servers.choose_model(address, _LOOK_SECONDS, memory)
    return Choice(servers.OllamaEmbedder(found, address, settings), why)


def _openai(model: str | None, address: str | None, settings: Settings) -> Choice:
    from smara.models.embedders import servers
    from smara.models.http import without_login

    if address is not None:  # OpenAI's own key is never sent to another server
        embedder = servers.OpenAIEmbedder(
            model or servers.OPENAI_MODEL, address, settings.embedder_api_key, settings=settings
        )
        return Choice(embedder, f"the setting embedder names it, at {without_login(address)}")
    key = settings.embedder_api_key or _key("OpenAI", "embedder_api_key", "OPENAI_API_KEY")
    return Choice(
        servers.OpenAIEmbedder(model or servers.OPENAI_MODEL, None, key, settings=settings),
        "the setting embedder names it",
    )


def _key(vendor: str, setting: str, *variables: str) -> str:
    """Return a vendor's key from its own variables, or say where it may stand."""
    if key := vendor_key(*variables):
        return key
    raise MissingSettingError(
        f"{vendor} needs a key. Set {variables[0]}, or {setting} (SMARA_{setting.upper()}).",
        setting=setting,
    )


NO_MODEL = ("features", "off")
_RERANKER_FORMS = (
    "Write features, off, ollama, ollama:MODEL, ollama:MODEL@http://HOST:PORT, cohere, "
    "cohere:MODEL, "
    "cohere:MODEL@http://HOST:PORT/v1 or http://HOST:PORT/v1 for a server that speaks Cohere's "
    "format, or onnx:/FOLDER."
)
_RERANKER_SERVER = regex(
    r"(?P<vendor>ollama|cohere)(?::(?P<model>[^@\s]+))?(?:@(?P<address>https?://\S+))?"
)


def open_reranker(settings: Settings) -> Reranker | None:
    """Open the reranker that settings name, unguarded; ``None`` without one.

    Nothing heavy is imported and no server is asked yet. Raises ``ConfigError`` for a setting that
    cannot be read, a key that is missing, a folder without a model.
    """
    chosen = settings.reranker.strip()
    if not chosen or chosen in NO_MODEL:
        return None
    if chosen.startswith("onnx:"):
        from smara.models.onnx import OnnxReranker

        return OnnxReranker(chosen.removeprefix("onnx:"))
    if chosen.startswith(("http://", "https://")):
        return _cohere(None, chosen, settings)
    match = _RERANKER_SERVER.fullmatch(chosen)
    if match is None:
        raise ConfigError(f"The setting reranker cannot be read. {_RERANKER_FORMS}")
    if match["vendor"] == "cohere":
        return _cohere(match["model"], match["address"], settings)
    from smara.models.rerankers.servers import OLLAMA_MODEL, OllamaReranker

    return OllamaReranker(match["model"] or OLLAMA_MODEL, match["address"])


def _cohere(model: str | None, address: str | None, settings: Settings) -> Reranker:
    from smara.models.rerankers.servers import COHERE_MODEL, COHERE_URL, CohereReranker

    if address is not None:  # Cohere's own key is never sent to another server
        return CohereReranker(model, address, settings.reranker_api_key)
    key = settings.reranker_api_key or _key(
        "Cohere", "reranker_api_key", "CO_API_KEY", "COHERE_API_KEY"
    )
    return CohereReranker(model or COHERE_MODEL, COHERE_URL, key, vendor="cohere")
