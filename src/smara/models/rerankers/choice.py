"""Choose the reranker from the setting ``reranker``.

``features``, the default, ranks without a model. ``off`` also ignores a reranker that a program
passes in. A key in the environment is no permission: only the setting sends text to a server.
"""

from __future__ import annotations

import re

from smara.config import Settings, vendor_key
from smara.errors import ConfigError, MissingSettingError
from smara.models.reranker import Reranker

NO_MODEL = ("features", "off")
_FORMS = (
    "Write features, off, ollama, ollama:MODEL, ollama:MODEL@http://HOST:PORT, cohere, "
    "cohere:MODEL, "
    "cohere:MODEL@http://HOST:PORT/v1 or http://HOST:PORT/v1 for a server that speaks Cohere's "
    "format, or onnx:/FOLDER."
)
_SERVER = re.compile(
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
    match = _SERVER.fullmatch(chosen)
    if match is None:
        raise ConfigError(f"The setting reranker cannot be read. {_FORMS}")
    if match["vendor"] == "cohere":
        return _cohere(match["model"], match["address"], settings)
    from smara.models.rerankers.servers import OLLAMA_MODEL, OLLAMA_URL, OllamaReranker

    return OllamaReranker(match["model"] or OLLAMA_MODEL, match["address"] or OLLAMA_URL)


def _cohere(model: str | None, address: str | None, settings: Settings) -> Reranker:
    from smara.models.rerankers.servers import COHERE_MODEL, COHERE_URL, CohereReranker

    if address is not None:  # Cohere's own key is never sent to whoever serves this address
        return CohereReranker(model, address, settings.reranker_api_key)
    key = settings.reranker_api_key or vendor_key("CO_API_KEY", "COHERE_API_KEY")
    if key is None:
        raise MissingSettingError(
            "Cohere needs a key. Set CO_API_KEY, or reranker_api_key (SMARA_RERANKER_API_KEY).",
            setting="reranker_api_key",
        )
    return CohereReranker(model or COHERE_MODEL, COHERE_URL, key, vendor="cohere")
