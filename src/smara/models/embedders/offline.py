"""Embed texts offline with the word-piece vectors of wordllama.

No server, no key, no torch: two files of the package wordllama are read, its code is never
imported. A text is cut into pieces that have a vector, and the vectors are added up. A piece that
occurs ``n`` times counts ``1 + ln n`` times. See ``docs/decisions/0010-embeddings.md``.
"""

from __future__ import annotations

import json
import math
import struct
import threading
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smara.core.startup.regex import re, regex
from smara.errors import ConfigError, MissingExtraError
from smara.models.embedder import Kind, unit_rows

if TYPE_CHECKING:
    from smara.models.embedder import Vectors


_WORD_START = "▁"
# A character of an alphabet without spaces; letters, digits, underscores or signs. A space in front
# of any marks the start of a word. What is longer than 32 characters is no word, and joining it
# would take long.
_CJK = "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # noqa: E501
_UNIT = regex(rf" ?[{_CJK}]| ?[^\W\d_{_CJK}]{{1,32}}| ?\d{{1,32}}| ?_{{1,32}}| ?[^\w\s]{{1,32}}")
# The same for plain text: the tables of other scripts take four milliseconds to compile.
_ASCII_UNIT = regex(r" ?[a-zA-Z]{1,32}| ?[0-9]{1,32}| ?_{1,32}| ?[^\w\s]{1,32}", re.ASCII)
_REMEMBERED = 100_000


class Subwords:
    """A cutter of texts into piece numbers, each word once."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._cut = lru_cache(maxsize=_REMEMBERED)(self._joined)

    def pieces(self, text: str) -> list[int]:
        """The numbers of the pieces of a text, in order."""
        spaced = " " + " ".join(text.split())
        unit = _ASCII_UNIT if spaced.isascii() else _UNIT
        return list(chain.from_iterable(map(self._cut, unit.findall(spaced))))

    def _joined(self, unit: str) -> tuple[int, ...]:
        parts = list(unit.replace(" ", _WORD_START))
        while len(parts) > 1:
            joints = [self._vocabulary.get(left + right) for left, right in pairwise(parts)]
            first = min((number for number in joints if number is not None), default=None)
            if first is None:
                break
            at = joints.index(first)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        pieces = [part for part in parts if part in self._vocabulary]
        # The start of a word that has no piece says nothing.
        return () if pieces == [_WORD_START] else tuple(self._vocabulary[part] for part in pieces)


MODEL_ID = "wordllama-l2-256"
_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
# The folder is called tokenizers in the wheel, and tokenizer in the code that comes with it.
_VOCABULARY = "tokenizer*/l2_supercat_tokenizer_config.json"
_DIMS, _FIRST_DIMS = 256, 128
_ROW = struct.Struct(f"<{_DIMS}e")
_ADDED_PLAINLY = 64


class OfflineEmbedder:
    """The default embedder, safe for threads.

    Maps its 16 MB when it is first asked.
    """

    model_id = MODEL_ID
    dims = _DIMS
    first_dims = _FIRST_DIMS
    is_local = True

    def __init__(self) -> None:
        self._loading = threading.Lock()

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        """Return one row per text, without looking at a deadline.

        A fraction of a millisecond each.
        """
        import numpy as np

        table, subwords = self._tables()
        rows = np.zeros((len(texts), _DIMS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            counts = Counter(subwords.pieces(text))
            if counts:
                weights = 1 + np.log(np.fromiter(counts.values(), dtype=np.float32))
                row[:] = weights @ _numbers(table)[list(counts)].astype(np.float32)
        return unit_rows(rows)

    def embed_question(self, text: str) -> array[float]:
        """Return the vector of a question.

        It is the same in every process and on every machine. numpy is loaded for a long text
        alone: for a command, which asks once, that takes longer than adding up a few pieces.
        """
        table, subwords = self._tables()
        counts = Counter(subwords.pieces(text))
        weights = [1 + math.log(count) for count in counts.values()]
        total = [0.0] * _DIMS
        if len(counts) > _ADDED_PLAINLY:
            import numpy as np

            total = (np.array(weights) @ _numbers(table)[list(counts)].astype(np.float64)).tolist()
        else:
            for piece, weight in zip(counts, weights, strict=True):
                numbers = _ROW.unpack_from(table, piece * _ROW.size)
                total = [
                    part + weight * number for part, number in zip(total, numbers, strict=True)
                ]
        length = math.sqrt(math.fsum(part * part for part in total))
        return array("f", [part / length for part in total] if length else total)

    def _tables(self) -> tuple[memoryview, Subwords]:
        with self._loading:  # two threads that come first must not read it twice
            return self._model

    @cached_property
    def _model(self) -> tuple[memoryview, Subwords]:
        """The vectors of all pieces, and what cuts texts into pieces.

        The vectors stay in their file: only what is looked up is read.
        """
        weights, vocabulary = _file(_WEIGHTS), _file(_VOCABULARY)
        path = weights
        try:
            with path.open("rb") as file:
                header = int.from_bytes(file.read(8), "little")
                place = json.loads(file.read(header))["embedding.weight"]
                if place["dtype"] != "F16" or place["shape"][1:] != [_DIMS]:
                    raise ValueError(f"it holds {place['shape']} of {place['dtype']}")
                start, size = 8 + header + place["data_offsets"][0], place["shape"][0] * _ROW.size
                table = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))[start:][:size]
            if len(table) != size:
                raise ValueError("its end is missing")
            path = vocabulary
            with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as whole:
                # The larger part of the file, behind the pieces, is not needed.
                end = whole.find(b'"merges": [')
                text = whole[: end if end >= 0 else len(whole)].decode()
            start = text.index("{", text.index('"vocab":'))
            return table, Subwords(json.JSONDecoder().raw_decode(text, start)[0])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise ConfigError(
                f"{path} cannot be read: {error}. Install it again with `pip install "
                f"--force-reinstall {_PACKAGE}`."
            ) from error


def _numbers(table: memoryview) -> Any:
    """The vectors of all pieces as an array, which stays in its file."""
    import numpy as np

    return np.frombuffer(table, dtype=np.float16).reshape(-1, _DIMS)


def _file(name: str) -> Path:
    """A file of the package that has the model, found without importing it."""
    spec = find_spec(_PACKAGE)
    found = sorted(Path(spec.origin).parent.glob(name)) if spec and spec.origin else []
    if not found:
        raise MissingExtraError(
            f"The offline embedder needs the package {_PACKAGE} with its model. "
            f"Install it with `pip install --force-reinstall {_PACKAGE}`, or set embedder to "
            "another, or to off.",
            package=_PACKAGE,
        )
    return found[0]
