"""What is known of embedding models: their dimensions, and the words they want around a text.

A model that is not in the table works too, when the setting ``embedder_dims`` says how many
dimensions it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from smara.config import Settings
from smara.errors import ConfigError, MissingSettingError

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
class Facts:
    """A model: the dimensions it gives, and whether its leading ones are a vector of their own
    (Matryoshka).
    """

    dims: int
    is_matryoshka: bool = False
    before_query: str = ""
    before_document: str = ""
    most_tokens: int = 2_000
    """How much of a text it reads."""


_FACTS = {
    "qwen3-embedding:0.6b": Facts(1_024, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding:4b": Facts(2_560, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding:8b": Facts(4_096, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding": Facts(4_096, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding-0.6b": Facts(1_024, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding-4b": Facts(2_560, True, _QWEN3_QUERY, most_tokens=8_000),
    "qwen3-embedding-8b": Facts(4_096, True, _QWEN3_QUERY, most_tokens=8_000),
    "text-embedding-3-small": Facts(1_536, True, most_tokens=8_000),
    "text-embedding-3-large": Facts(3_072, True, most_tokens=8_000),
    "text-embedding-ada-002": Facts(1_536, most_tokens=8_000),
    "nomic-embed-text": Facts(768, True, "search_query: ", before_document="search_document: "),
    "embeddinggemma": Facts(
        768, True, "task: search result | query: ", before_document="title: none | text: "
    ),
    "mxbai-embed-large": Facts(1_024, True, _RETRIEVE, most_tokens=500),
    "snowflake-arctic-embed2": Facts(1_024, True, "query: ", most_tokens=8_000),
    "bge-m3": Facts(1_024, most_tokens=8_000),
    "all-minilm": Facts(384, most_tokens=250),
}


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors that are asked of a model: how many of its dimensions, and the words around a
    text.
    """

    facts: Facts
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


class Served:
    """What an embedder of a server says of itself and of its vectors."""

    def __init__(self, vendor: str, model: str, space: Space) -> None:
        self._vendor = vendor
        self._model = model
        self._space = space

    @property
    def name(self) -> str:
        return f"{self._vendor}:{self._model}"

    @property
    def model_id(self) -> str:
        return f"{self._vendor}/{self._model}@{self.dims}"

    @property
    def dims(self) -> int:
        return self._space.dims

    @property
    def first_dims(self) -> int:
        return self._space.first_dims

    @property
    def most_tokens(self) -> int:
        return self._space.facts.most_tokens


def space_of(model: str, settings: Settings) -> Space:
    """The vectors of a model: as many dimensions as are asked for, or 1,024 at most where it can be
    cut.

    ``ConfigError`` when the model cannot give them.
    """
    facts, asked = facts_of(model), settings.embedder_dims
    if facts is None:
        if not asked:
            raise MissingSettingError(
                f"It is not known how many dimensions {model} has. Set embedder_dims "
                "(SMARA_EMBEDDER_DIMS) to them.",
                setting="embedder_dims",
            )
        return Space(Facts(asked), asked)
    if not asked:
        return Space(facts, min(facts.dims, USUAL_DIMS) if facts.is_matryoshka else facts.dims)
    if asked > facts.dims or (asked < facts.dims and not facts.is_matryoshka):
        can = f"has {facts.dims} dimensions" + (
            " at most" if facts.is_matryoshka else ", which cannot be cut"
        )
        raise ConfigError(
            f"{model} {can}; embedder_dims is {asked}. Set it to 0 for what is usual, or lower it."
        )
    return Space(facts, asked)


def facts_of(model: str) -> Facts | None:
    """What is known of a model, whatever folder or variant its name has.

    >>> facts_of("Qwen/Qwen3-Embedding-4B").dims, facts_of("nomic-embed-text:latest").dims, facts_of("mine")
    (2560, 768, None)
    """  # noqa: E501
    name = model.lower().rpartition("/")[2]
    for form in (
        name,
        name.partition(":")[0] if not name.startswith("qwen3") else name.removesuffix(":latest"),
    ):
        if form in _FACTS:
            return _FACTS[form]
    # qwen3-embedding:4b-q8_0 and its like: a quantization of a size that is known
    sized = next((form for form in _FACTS if ":" in form and name.startswith(f"{form}-")), None)
    return _FACTS[sized] if sized else None
