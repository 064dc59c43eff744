"""Choose the embedder from the setting ``embedder``.

``auto`` tries, in order: Ollama with the largest Qwen3 embedder that fits into memory, OpenAI if
there is a key, the offline embedder. A key or a server alone is no permission: without ``auto`` or
a name in the setting, no text leaves the machine.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from smara.config import Settings, vendor_key
from smara.errors import ConfigError, MissingSettingError, ModelError
from smara.models.embedder import Embedder
from smara.models.embedders import servers
from smara.models.embedders.offline import OfflineEmbedder
from smara.models.http import parse_address, without_login

_FORMS = (
    "Write offline, off, auto, ollama, ollama:MODEL, ollama:MODEL@http://HOST:PORT, openai, "
    "openai:MODEL, "
    "openai:MODEL@http://HOST:PORT/v1 for a server that speaks OpenAI's format, or onnx:/FOLDER."
)
_SERVER = re.compile(
    r"(?P<vendor>ollama|openai)(?::(?P<model>[^@\s]+))?(?:@(?P<address>https?://\S+))?"
)
_LOOK_SECONDS = 2.0
"""How long is waited for Ollama to say which models it has."""


class Choice(NamedTuple):
    """The unguarded embedder in force and the reason.

    None when embedding is off.
    """

    embedder: Embedder | servers.ServerEmbedder | None
    why: str


def choose(settings: Settings, memory_bytes: int | None = None) -> Choice:
    """Choose the embedder that settings name, with its reason.

    Nothing heavy is imported or loaded yet.

    ``auto`` and ``ollama`` without a model ask Ollama what it has. ``ConfigError`` for a setting
    that cannot be used, ``ModelError`` when ``ollama`` is named and cannot be asked.
    ``memory_bytes`` is what this machine has.
    """
    chosen = settings.embedder.strip()
    if chosen == "off":
        return Choice(None, "the setting embedder is off")
    if chosen in ("", "offline"):
        return Choice(OfflineEmbedder(), "it is the default, and needs no server and no key")
    if chosen == "auto":
        # The first step of the ladder that holds.
        try:
            found = _ollama(None, servers.OLLAMA_URL, settings, memory_bytes=memory_bytes)
        except ModelError as error:
            missing = f"Ollama: {error.facts.get('reason', error.code)}".replace("_", " ")
        else:
            return Choice(found.embedder, f"auto: {found.why}")
        if vendor_key("OPENAI_API_KEY"):
            return Choice(
                _openai(None, None, settings).embedder,
                f"auto: there is a key of OpenAI ({missing})",
            )
        return Choice(
            OfflineEmbedder(), f"auto: nothing better is there ({missing}; no OPENAI_API_KEY)"
        )
    if chosen.startswith("onnx:"):
        from smara.models.onnx import OnnxEmbedder

        return Choice(
            OnnxEmbedder(chosen.removeprefix("onnx:")), "the setting embedder names its folder"
        )
    match = _SERVER.fullmatch(chosen)
    if match is None:
        raise ConfigError(f"The setting embedder cannot be read. {_FORMS}")
    if match["vendor"] == "openai":
        return _openai(match["model"], match["address"], settings)
    return _ollama(
        match["model"], match["address"] or servers.OLLAMA_URL, settings, memory_bytes=memory_bytes
    )


def _ollama(
    model: str | None, address: str, settings: Settings, memory_bytes: int | None
) -> Choice:
    if model is not None:
        embedder = servers.OllamaEmbedder(model, address, settings)
        return Choice(embedder, f"the setting embedder names it, at {without_login(address)}")
    is_here = parse_address(address).hostname in ("127.0.0.1", "localhost", "::1")
    memory = (memory_bytes or servers.machine_memory_bytes()) if is_here else None
    found, why = servers.choose_model(address, _LOOK_SECONDS, memory)
    return Choice(servers.OllamaEmbedder(found, address, settings), why)


def _openai(model: str | None, address: str | None, settings: Settings) -> Choice:
    if address is not None:  # OpenAI's own key is never sent to whoever serves this address
        embedder = servers.OpenAIEmbedder(
            model or servers.OPENAI_MODEL, address, settings.embedder_api_key, settings=settings
        )
        return Choice(embedder, f"the setting embedder names it, at {without_login(address)}")
    key = settings.embedder_api_key or vendor_key("OPENAI_API_KEY")
    if key is None:
        raise MissingSettingError(
            "OpenAI needs a key. Set OPENAI_API_KEY, or embedder_api_key (SMARA_EMBEDDER_API_KEY).",
            setting="embedder_api_key",
        )
    return Choice(
        servers.OpenAIEmbedder(model or servers.OPENAI_MODEL, None, key, settings=settings),
        "the setting embedder names it",
    )
