"""Embeddings of a model under Ollama, and which of the Qwen3 family fits this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from smara.config import Settings
from smara.errors import ModelRefusedError
from smara.models.embedders.known import Served, space_of
from smara.models.embedding import ADVICE, Embedded, Kind, checked_rows
from smara.models.http import get_json, parse_address, post_json

DEFAULT_URL = "http://127.0.0.1:11434"
FAMILY = "qwen3-embedding"
_GIB = 1 << 30
# Each size, and the memory a machine should have more of to run it beside everything else; the
# largest first.
SIZES = (("8b", 32 * _GIB), ("4b", 8 * _GIB), ("0.6b", 0))
_MOST_TEXTS = 16
_BYTES_PER_NUMBER = 32


class OllamaEmbedder(Served):
    """Asks Ollama at ``/api/embed``. Safe to use from several threads."""

    most_texts = _MOST_TEXTS

    def __init__(self, model: str, address: str, settings: Settings) -> None:
        super().__init__("ollama", model, space_of(model, settings))
        self._url = _endpoint(address, "/api/embed")
        self._advice = {
            **ADVICE,
            "unknown_model": f"Fetch it with `ollama pull {model}`, or set embedder.",
        }

    def ask(self, texts: Sequence[str], kind: Kind, deadline_seconds: float) -> Embedded:
        # Older servers do not know the field "dimensions", so the whole vector is taken and cut
        # here.
        body = {
            "model": self._model,
            "input": [self._space.worded(text, kind) for text in texts],
            "truncate": True,
        }
        reply = post_json(
            self._url,
            body,
            model=self.name,
            deadline_seconds=deadline_seconds,
            advice=self._advice,
            most_bytes=1_000_000 + len(texts) * self._space.facts.dims * _BYTES_PER_NUMBER,
        )
        found = reply.get("embeddings") if isinstance(reply, dict) else None
        whole = checked_rows(found, len(texts), self._space.facts.dims, name=self.name)
        rows = checked_rows(whole, len(texts), self.dims, name=self.name, may_cut=True)
        tokens = reply.get("prompt_eval_count")
        return Embedded(rows, tokens if isinstance(tokens, int) and tokens > 0 else None)


def choose_model(
    address: str, deadline_seconds: float, memory_bytes: int | None = None
) -> tuple[str, str]:
    """The largest Qwen3 embedder that Ollama has and this machine can hold, and why it was taken.

    ``memory_bytes`` is what the machine has, for a server on another machine ``None``: whoever
    fetched a model there knows that it fits. ``ModelError`` when the server cannot be asked or has
    none of them.
    """
    name = f"ollama:{FAMILY}"
    reply = get_json(
        _endpoint(address, "/api/tags"),
        model=name,
        deadline_seconds=deadline_seconds,
        advice=ADVICE,
    )
    there = set(_names(reply))
    fitting = [size for size, least in SIZES if memory_bytes is None or memory_bytes > least]
    sizes = [*fitting, *(size for size, _ in reversed(SIZES) if size not in fitting)]
    for size in sizes:
        found = next((each for each in sorted(there) if _is_of(each, size)), None)
        if found is not None:
            wanted = fitting[0] if memory_bytes is not None else size
            better = (
                f"; {FAMILY}:{wanted} would fit too: `ollama pull {FAMILY}:{wanted}`"
                if wanted != size
                else ""
            )
            return found, f"Ollama has {found}{better}"
    raise ModelRefusedError(
        f"Ollama has no {FAMILY}. Fetch one with `ollama pull {FAMILY}:{fitting[0]}`, or set "
        "embedder.",
        model=name,
        reason="unknown_model",
        may_be_billed=False,
    )


def machine_memory_bytes() -> int | None:
    """The memory of this machine; ``None`` when it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return _windows_memory_bytes()


def _windows_memory_bytes() -> int | None:
    import ctypes

    library = getattr(ctypes, "windll", None)
    if library is None:
        return None
    kilobytes = ctypes.c_ulonglong()
    if not library.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
        return None
    return kilobytes.value * 1_024


def _endpoint(address: str, path: str) -> str:
    parts = parse_address(address)
    return parts._replace(path=parts.path.rstrip("/").removesuffix("/v1") + path).geturl()


def _names(reply: Any) -> list[str]:
    models = reply.get("models") if isinstance(reply, dict) else None
    found = (
        [each.get("name") for each in models if isinstance(each, dict)]
        if isinstance(models, list)
        else []
    )
    return [name for name in found if isinstance(name, str)]


def _is_of(name: str, size: str) -> bool:
    """Whether a name is this size of the family, or a quantization of it; the plain name is
    Ollama's word for 8b.
    """
    if name in (FAMILY, f"{FAMILY}:latest"):
        return size == "8b"
    return name == f"{FAMILY}:{size}" or name.startswith(f"{FAMILY}:{size}-")
