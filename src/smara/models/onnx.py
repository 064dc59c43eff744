"""Run embedding and reranking models from a local ONNX folder.

The folder holds ``model.onnx`` and ``tokenizer.json``, as models are published. The model runs in
this process, on the CPU, and no text leaves the machine. Needs the extra ``onnx``; heavy packages
are imported at the first call.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smara.core.clock import Clock, SystemClock
from smara.errors import ConfigError, MissingExtraError, SmaraError
from smara.models import failures
from smara.models.embedder import EMBEDDER_ADVICE, Kind, bad_vectors, check_rows
from smara.models.reranker import RERANKER_ADVICE, bad_scores, check_scores, finite, sigmoid

if TYPE_CHECKING:
    from smara.models.embedder import Vectors


TOKENIZER = "tokenizer.json"
_MODELS = ("model.onnx", "onnx/model.onnx")
_WINDOWS = (
    ("sentence_bert_config.json", "max_seq_length"),
    ("tokenizer_config.json", "model_max_length"),
)
_USUAL_TOKENS = 512


class OnnxFolder:
    """A folder with a model, loaded on first use, thread-safe.

    ``ConfigError`` for a folder that holds none, which ``setting`` names, and, when it is loaded,
    for broken files.
    """

    def __init__(self, folder: str | Path, setting: str, most_tokens: int) -> None:
        self.path = Path(folder).expanduser()
        self.model = self._found(setting)
        self._most_tokens = most_tokens
        self._loading = threading.Lock()
        for package in ("onnxruntime", "tokenizers"):
            if find_spec(package) is None:
                raise MissingExtraError(
                    f"A model from a folder needs {package}. Install it with `pip install "
                    '"smara[onnx]"`.',
                    package=package,
                )

    @property
    def name(self) -> str:
        return f"onnx:{self.path.name}"

    def told(self, file: str) -> dict[str, Any]:
        """Return a settings file's content; empty if missing or unreadable."""
        try:
            found = json.loads((self.path / file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def output_names(self) -> list[str]:
        return [output.name for output in self._loaded[0].get_outputs()]

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> tuple[list[Any], Any]:
        """Return the outputs for texts or pairs, and the token mask."""
        import numpy as np

        session, tokenizer = self._loaded
        read = tokenizer.encode_batch([_whole(text) for text in texts])
        known = {
            "input_ids": [each.ids for each in read],
            "attention_mask": [each.attention_mask for each in read],
            "token_type_ids": [each.type_ids for each in read],
        }
        wanted = [put.name for put in session.get_inputs()]
        if missing := set(wanted) - set(known):
            raise ConfigError(
                f"{self.model} wants {', '.join(sorted(missing))}, which is no input of a text "
                "model."
            )
        outputs = session.run(
            None, {name: np.asarray(known[name], dtype=np.int64) for name in wanted}
        )
        return list(outputs), np.asarray(known["attention_mask"], dtype=np.float64)

    @property
    def window(self) -> int:
        """The model's window in tokens; 512 if missing or absurd."""
        for file, field in _WINDOWS:
            told = self.told(file).get(field)
            if isinstance(told, int) and not isinstance(told, bool) and 16 <= told <= 1_000_000:
                return min(told, self._most_tokens)
        return _USUAL_TOKENS

    def _found(self, setting: str) -> Path:
        model = next((self.path / name for name in _MODELS if (self.path / name).is_file()), None)
        if model is None or not (self.path / TOKENIZER).is_file():
            raise ConfigError(
                f"{self.path} holds no model.onnx with its tokenizer.json. Check the setting "
                f"{setting}."
            )
        return model

    @property
    def _loaded(self) -> tuple[Any, Any]:
        with self._loading:  # two threads that come first must not load it twice
            return self._session, self._tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime as runtime

        options = runtime.SessionOptions()
        options.log_severity_level = 3
        try:
            return runtime.InferenceSession(
                str(self.model), options, providers=["CPUExecutionProvider"]
            )
        except (
            Exception
        ) as error:  # onnxruntime has a class for every way in which a file can be wrong
            raise ConfigError(
                f"{self.model} cannot be loaded: {error}. Export the model again."
            ) from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        path = self.path / TOKENIZER
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises plain exceptions
            raise ConfigError(
                f"{path} cannot be read: {error}. Put the model's own tokenizer.json there."
            ) from error
        tokenizer.enable_truncation(self.window)
        padding = tokenizer.padding or {}
        # Padding on the left would move the first and the last token, which some models are pooled
        # by.
        tokenizer.enable_padding(
            direction="right",
            pad_id=padding.get("pad_id", 0),
            pad_token=padding.get("pad_token", "[PAD]"),
        )
        return tokenizer


def _whole(text: str | tuple[str, str]) -> str | tuple[str, str]:
    """Return a text without halves of characters, which the tokenizer cannot take."""
    if isinstance(text, tuple):
        return tuple(_whole(part) for part in text)  # type: ignore[return-value]
    return text.encode("utf-8", "replace").decode("utf-8")


_POOLING = "1_Pooling/config.json"
_PROMPTS = "config_sentence_transformers.json"
_EMBEDDER_TOKENS = 2_048
_EMBEDDER_BATCH = 16
_SAMPLE_BYTES = 1 << 20


class OnnxEmbedder:
    """An ONNX embedder, loaded on first use, thread-safe."""

    is_local = True

    def __init__(
        self, folder: str | Path, clock: Clock | None = None, at_once: int = _EMBEDDER_BATCH
    ) -> None:
        self._folder = OnnxFolder(folder, "embedder", _EMBEDDER_TOKENS)
        self._clock = clock or SystemClock()
        self._at_once = at_once

    @property
    def name(self) -> str:
        return self._folder.name

    @property
    def model_id(self) -> str:
        return f"onnx/{self._folder.path.name}-{self._fingerprint}@{self.dims}"

    @cached_property
    def dims(self) -> int:
        """The numbers of a vector, as they come out.

        Exports do not always say.
        """
        return int(self._raw(["dimensions"]).shape[1])

    @property
    def first_dims(self) -> int:
        return self.dims

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        """Return all rows, a few at a time, within the deadline."""
        import numpy as np

        ends_at = None if deadline_seconds is None else self._clock.monotonic() + deadline_seconds
        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        there = [place for place, text in enumerate(texts) if text.strip()]
        there.sort(key=lambda place: len(texts[place]))  # less padding within a batch
        for start in range(0, len(there), self._at_once):
            if ends_at is not None and self._clock.monotonic() >= ends_at:
                raise failures.timed_out(
                    self.name, deadline_seconds or 0.0, may_be_billed=False, advice=EMBEDDER_ADVICE
                )
            places = there[start : start + self._at_once]
            found = self._raw([self._before[kind] + texts[place] for place in places])
            rows[places] = check_rows(found, len(places), self.dims, name=self.name)
        return rows

    def _raw(self, texts: list[str]) -> Any:
        """One row for each text, as the model gives it."""
        try:
            outputs, mask = self._folder.run(texts)
        except SmaraError:
            raise
        except Exception as error:  # a class for every way in which a model can fail
            raise failures.failure(
                self.name, "request", str(error), may_be_billed=False, advice=EMBEDDER_ADVICE
            ) from error
        return self._pooled(outputs, mask)

    def _pooled(self, outputs: list[Any], mask: Any) -> Any:
        """A vector for each text: made by the model itself, or out of those of its tokens."""
        import numpy as np

        names = self._folder.output_names
        chosen = names.index("sentence_embedding") if "sentence_embedding" in names else 0
        found = np.asarray(outputs[chosen], dtype=np.float64)
        if found.ndim == 2 and len(found) == len(mask):
            return found
        if found.ndim != 3 or found.shape[:2] != mask.shape:
            raise bad_vectors(
                self.name, f"an output of the shape {found.shape} for {len(mask)} texts"
            )
        if self._pooling == "cls":
            return found[:, 0]
        if self._pooling == "last":
            return found[np.arange(len(found)), mask.sum(axis=1).astype(int) - 1]
        return (found * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)

    @cached_property
    def _pooling(self) -> str:
        told = self._folder.told(_POOLING)
        if told.get("pooling_mode_cls_token"):
            return "cls"
        return "last" if told.get("pooling_mode_lasttoken") else "mean"

    @cached_property
    def _before(self) -> dict[str, str]:
        prompts = self._folder.told(_PROMPTS).get("prompts")
        prompts = prompts if isinstance(prompts, dict) else {}
        document = prompts.get("document") or prompts.get("passage") or ""
        return {"query": str(prompts.get("query") or ""), "document": str(document)}

    @cached_property
    def _fingerprint(self) -> str:
        """A few letters that change with what makes the vectors, so that another model is another
        space.

        Of a large file the size, the beginning, the middle and the end are looked at.
        """
        made = hashlib.sha256()
        size = self._folder.model.stat().st_size
        with self._folder.model.open("rb") as file:
            for place in (0, max(0, size // 2), max(0, size - _SAMPLE_BYTES)):
                file.seek(place)
                made.update(file.read(_SAMPLE_BYTES))
        made.update(json.dumps([size, self._pooling, self._before["document"]]).encode())
        made.update((self._folder.path / TOKENIZER).read_bytes())
        return made.hexdigest()[:8]


_RERANKER_TOKENS = 1_024
_RERANKER_BATCH = 8


class OnnxReranker:
    """A cross-encoder, loaded on first use, thread-safe."""

    is_local = True

    def __init__(
        self, folder: str | Path, clock: Clock | None = None, at_once: int = _RERANKER_BATCH
    ) -> None:
        self._folder = OnnxFolder(folder, "reranker", _RERANKER_TOKENS)
        self._clock = clock or SystemClock()
        self._at_once = at_once

    @property
    def name(self) -> str:
        return self._folder.name

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """Return all scores, a few at a time, within the deadline."""
        ends_at = self._clock.monotonic() + deadline_seconds
        by_length = sorted(
            range(len(texts)), key=lambda place: len(texts[place])
        )  # less padding within a batch
        scores: dict[int, float] = {}
        for start in range(0, len(texts), self._at_once):
            if self._clock.monotonic() >= ends_at:
                raise failures.timed_out(
                    self.name, deadline_seconds, may_be_billed=False, advice=RERANKER_ADVICE
                )
            places = by_length[start : start + self._at_once]
            scores.update(
                zip(places, self._batch(query, [texts[place] for place in places]), strict=True)
            )
        return check_scores([scores[place] for place in range(len(texts))], len(texts), self.name)

    def _batch(self, query: str, texts: list[str]) -> list[float]:
        try:
            outputs, _ = self._folder.run([(query, text) for text in texts])
        except SmaraError:
            raise
        except Exception as error:  # a class for every way in which a model can fail
            raise failures.failure(
                self.name, "request", str(error), may_be_billed=False, advice=RERANKER_ADVICE
            ) from error
        # One number is a logit; of two, the second says how relevant.
        output = outputs[0]
        count = len(texts)
        rows = output.reshape(count, -1) if output.shape and output.shape[0] == count else None
        if rows is None or rows.shape[1] not in (1, 2):
            raise bad_scores(self.name, f"an output of the shape {output.shape} for {count} texts")
        numbers = [[finite(float(number), self.name) for number in row] for row in rows]
        return [sigmoid(row[0] if len(row) == 1 else row[1] - row[0]) for row in numbers]
