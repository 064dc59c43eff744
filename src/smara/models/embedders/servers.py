"""Embed texts through Ollama, OpenAI or a compatible server.

A table holds the dimensions and prompt prefixes of well-known models. Any other model works if the
setting ``embedder_dims`` gives its dimensions. vLLM, LM Studio, llama.cpp, TEI and gateways speak
OpenAI's format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from smara.config import Settings
from smara.core.startup.record import dataclass
from smara.errors import ConfigError, MissingSettingError, ModelRefusedError
from smara.models.embedder import EMBEDDER_ADVICE, EmbeddingReply, Kind, bad_vectors, check_rows
from smara.models.http import bearer, parse_address, request_json

USUAL_DIMS = 1_024
FIRST_DIMS = 256

# Qwen3 was trained with a task in front of each query, in this form, and nothing in front of a
# document.
_QWEN3_QUERY = (
    "Instruct: Given a question about earlier work or conversations, find the messages, notes and "
    "code that answer it"
    "\nQuery:"
)
_RETRIEVE = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's dimensions, and whether they can be cut (Matryoshka)."""

    dims: int
    is_matryoshka: bool = False
    before_query: str = ""
    before_document: str = ""
    most_tokens: int = 2_000
    """How much of a text it reads."""


_FACTS = {
    "qwen3-embedding:0.6b": ModelFacts(1_024, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding:4b": ModelFacts(2_560, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding:8b": ModelFacts(4_096, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding": ModelFacts(4_096, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding-0.6b": ModelFacts(1_024, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding-4b": ModelFacts(2_560, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding-8b": ModelFacts(4_096, True, _QWEN3_QUERY, most_tokens=8_000),
    "text-embedding-3-small": ModelFacts(1_536, True, most_tokens=8_000),
    "text-embedding-3-large": ModelFacts(3_072, True, most_tokens=8_000),
    "text-embedding-ada-002": ModelFacts(1_536, most_tokens=8_000),
    "nomic-embed-text": ModelFacts(
        768, True, "search_query: ", before_document="search_document: "
    ),
    "embeddinggemma": ModelFacts(
        768, True, "task: search result | query: ", before_document="title: none | text: "
    ),
    "mxbai-embed-large": ModelFacts(1_024, True, _RETRIEVE, most_tokens=500),
    "snowflake-arctic-embed2": ModelFacts(1_024, True, "query: ", most_tokens=8_000),
    "bge-m3": ModelFacts(1_024, most_tokens=8_000),
    "all-minilm": ModelFacts(384, most_tokens=250),
}


@dataclass(frozen=True, slots=True)
class ModelSpace:
    """The vectors asked of a model: dimensions and surrounding words."""

    facts: ModelFacts
    dims: int

    @property
    def is_cut(self) -> bool:
        return self.dims < self.facts.dims

    @property
    def first_dims(self) -> int:
        return FIRST_DIMS if self.facts.is_matryoshka and self.dims > FIRST_DIMS else self.dims

    def worded(self, text: str, kind: str) -> str:
        """A text with the words the model wants in front of it."""
        return (self.facts.before_query if kind == "query" else self.facts.before_document) + text


class ServerEmbedder:
    """An embedder over a wire, one request at a time.

    ``name`` stands in calls and prices, as ``openai:text-embedding-3-small``. Only a
    `GuardedEmbedder` calls it, with at most ``most_texts`` texts; of a text of more than
    ``most_tokens`` the beginning is sent.
    """

    most_texts: ClassVar[int]

    def __init__(self, vendor: str, model: str, space: ModelSpace) -> None:
        self._model = model
        self._space = space
        self.dims = space.dims
        self.first_dims = space.first_dims
        self.most_tokens = space.facts.most_tokens
        self.name = f"{vendor}:{model}"
        self.model_id = f"{vendor}/{model}@{space.dims}"

    def ask(self, texts: Sequence[str], kind: Kind, deadline_seconds: float) -> EmbeddingReply:
        """Return the vectors of a few texts, or raise ``ModelError``."""
        raise NotImplementedError


def space_of(model: str, settings: Settings) -> ModelSpace:
    """Return a model's space: requested dimensions, or 1,024 at most.

    ``ConfigError`` when the model cannot give them.
    """
    facts, dims = facts_of(model), settings.embedder_dims
    if facts is None:
        if not dims:
            raise MissingSettingError(
                f"It is not known how many dimensions {model} has. Set embedder_dims "
                "(SMARA_EMBEDDER_DIMS) to them.",
                setting="embedder_dims",
            )
        return ModelSpace(ModelFacts(dims), dims)
    if not dims:
        return ModelSpace(facts, min(facts.dims, USUAL_DIMS) if facts.is_matryoshka else facts.dims)
    if dims > facts.dims or (dims < facts.dims and not facts.is_matryoshka):
        can = f"has {facts.dims} dimensions" + (
            " at most" if facts.is_matryoshka else ", which cannot be cut"
        )
        raise ConfigError(
            f"{model} {can}; embedder_dims is {dims}. Set it to 0 for what is usual, or lower it."
        )
    return ModelSpace(facts, dims)


def facts_of(model: str) -> ModelFacts | None:
    """Return the facts of a model by any variant of its name.

    >>> facts_of("Qwen/Qwen3-Embedding-4B").dims, facts_of("nomic-embed-text:latest").dims, facts_of("mine")
    (2560, 768, None)
    """  # noqa: E501
    name = model.lower().rpartition("/")[2]
    plain = name.removesuffix(":latest") if name.startswith("qwen3") else name.partition(":")[0]
    # qwen3-embedding:4b-q8_0 and its like: a quantization of a size that is known
    sized = [form for form in _FACTS if ":" in form and name.startswith(f"{form}-")]
    return next((_FACTS[form] for form in (name, plain, *sized) if form in _FACTS), None)


OLLAMA_FAMILY = "qwen3-embedding"
_GIB = 1 << 30
# Each size, and the memory a machine should have more of to run it beside everything else; the
# largest first.
OLLAMA_SIZES = (("8b", 32 * _GIB), ("4b", 8 * _GIB), ("0.6b", 0))
_BYTES_PER_NUMBER = 32


class OllamaEmbedder(ServerEmbedder):
    """Asks Ollama at ``/api/embed``. Safe to use from several threads."""

    most_texts = 16

    def __init__(self, model: str, address: str, settings: Settings) -> None:
        super().__init__("ollama", model, space_of(model, settings))
        self._url = ollama_endpoint(address, "/api/embed")
        self._advice = {
            **EMBEDDER_ADVICE,
            "unknown_model": f"Fetch it with `ollama pull {model}`, or set embedder.",
        }

    def ask(self, texts: Sequence[str], kind: Kind, deadline_seconds: float) -> EmbeddingReply:
        # Older servers do not know the field "dimensions", so the whole vector is taken and cut
        # here.
        reply = request_json(
            self._url,
            {
                "model": self._model,
                "input": [self._space.worded(text, kind) for text in texts],
                "truncate": True,
            },
            model=self.name,
            deadline_seconds=deadline_seconds,
            advice=self._advice,
            most_bytes=1_000_000 + len(texts) * self._space.facts.dims * _BYTES_PER_NUMBER,
        )
        found = reply.get("embeddings") if isinstance(reply, dict) else None
        whole = check_rows(found, len(texts), self._space.facts.dims, name=self.name)
        rows = check_rows(whole, len(texts), self.dims, name=self.name, may_cut=True)
        tokens = reply.get("prompt_eval_count")
        return EmbeddingReply(rows, tokens if isinstance(tokens, int) and tokens > 0 else None)


def choose_model(
    address: str, deadline_seconds: float, memory_bytes: int | None = None
) -> tuple[str, str]:
    """Choose the largest Qwen3 embedder Ollama has and this machine holds.

    Returns the reason, too. ``memory_bytes`` is what the machine has, for a server on another
    machine ``None``: the person who fetched a model there knows that it fits. Raises ``ModelError``
    when the server cannot be asked or has none of them.
    """
    name = f"ollama:{OLLAMA_FAMILY}"
    reply = request_json(
        ollama_endpoint(address, "/api/tags"),
        model=name,
        deadline_seconds=deadline_seconds,
        advice=EMBEDDER_ADVICE,
    )
    models = reply.get("models") if isinstance(reply, dict) else None
    there = {
        each["name"]
        for each in (models if isinstance(models, list) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    }
    fitting = [size for size, least in OLLAMA_SIZES if memory_bytes is None or memory_bytes > least]
    sizes = [*fitting, *(size for size, _ in reversed(OLLAMA_SIZES) if size not in fitting)]
    for size in sizes:
        # A name is this size of the family, or a quantization of it; the plain name is Ollama's
        # word for 8b.
        plain = (OLLAMA_FAMILY, f"{OLLAMA_FAMILY}:latest") if size == "8b" else ()
        tag = f"{OLLAMA_FAMILY}:{size}"
        of_size = (
            each
            for each in sorted(there)
            if each in plain or each == tag or each.startswith(f"{tag}-")
        )
        found = next(of_size, None)
        if found is not None:
            best = fitting[0] if memory_bytes is not None else size
            better = (
                f"; {OLLAMA_FAMILY}:{best} would fit too: `ollama pull {OLLAMA_FAMILY}:{best}`"
                if best != size
                else ""
            )
            return found, f"Ollama has {found}{better}"
    raise ModelRefusedError(
        f"Ollama has no {OLLAMA_FAMILY}. Fetch one with `ollama pull "
        f"{OLLAMA_FAMILY}:{fitting[0]}`, or set "
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
        import ctypes

        library = getattr(ctypes, "windll", None)
        if library is None:
            return None
        kilobytes = ctypes.c_ulonglong()
        is_given = library.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
        return kilobytes.value * 1_024 if is_given else None


def ollama_endpoint(address: str, path: str) -> str:
    parts = parse_address(address)
    return parts._replace(path=parts.path.rstrip("/").removesuffix("/v1") + path).geturl()


OPENAI_MODEL = "text-embedding-3-small"
_OPENAI_URL = "https://api.openai.com/v1"


class OpenAIEmbedder(ServerEmbedder):
    """Asks for vectors at ``/embeddings``. Safe to use from several threads."""

    most_texts = 64

    def __init__(
        self, model: str, address: str | None, api_key: str | None, settings: Settings
    ) -> None:
        parts = parse_address(address or _OPENAI_URL)
        super().__init__(
            "openai" if address is None else "openai-compatible", model, space_of(model, settings)
        )
        self._url = parts._replace(path=parts.path.rstrip("/") + "/embeddings").geturl()
        self._headers = bearer(api_key)

    def ask(self, texts: Sequence[str], kind: Kind, deadline_seconds: float) -> EmbeddingReply:
        body: dict[str, Any] = {
            "model": self._model,
            "input": [self._space.worded(text, kind) for text in texts],
            "encoding_format": "float",
        }
        # A server that is only compatible may not know the field, so it is sent where it has
        # something to say.
        if self._space.is_cut:
            body["dimensions"] = self.dims
        reply = request_json(
            self._url,
            body,
            model=self.name,
            deadline_seconds=deadline_seconds,
            headers=self._headers,
            advice=EMBEDDER_ADVICE,
            most_bytes=1_000_000
            + len(texts) * max(self._space.facts.dims, self.dims) * _BYTES_PER_NUMBER,
        )
        data = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            raise bad_vectors(self.name, "no list of vectors")
        # Each vector says which text it is of.
        by_place = {each.get("index", place): each for place, each in enumerate(data)}
        if len(data) != len(texts) or set(by_place) != set(range(len(texts))):
            raise bad_vectors(
                self.name, f"{len(data)} vectors for {len(texts)} texts, or some twice"
            )
        vectors = [by_place[place].get("embedding") for place in range(len(texts))]
        rows = check_rows(vectors, len(texts), self.dims, name=self.name)
        usage = reply.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens = usage.get("total_tokens", usage.get("prompt_tokens"))
        return EmbeddingReply(rows, tokens if isinstance(tokens, int) and tokens > 0 else None)
