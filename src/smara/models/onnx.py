"""Run embedding and reranking models from a local ONNX folder.

The folder holds ``model.onnx`` and ``tokenizer.json``, as models are published. The model runs in
this process, on the CPU, and no text leaves the machine. Needs the extra ``onnx``; heavy packages
are imported at the first call.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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
        models = [self.path / name for name in _MODELS if (self.path / name).is_file()]
        if not models or not (self.path / TOKENIZER).is_file():
            raise ConfigError(
                f"{self.path} holds no model.onnx with its tokenizer.json. Check the setting "
                f"{setting}."
            )
        self.model = models[0]
        self.name = f"onnx:{self.path.name}"
        self._most_tokens = most_tokens
        self._loading = threading.Lock()
        for package in ("onnxruntime", "tokenizers"):
            if find_spec(package) is None:
                raise MissingExtraError(
                    f"A model from a folder needs {package}. Install it with `pip install "
                    '"smara[onnx]"`.',
                    package=package,
                )

    def read_json(self, file: str) -> dict[str, Any]:
        """Return a settings file's content; empty if missing or unreadable."""
        try:
            found = json.loads((self.path / file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def run(self, texts: Sequence[str], query: str | None = None) -> tuple[dict[str, Any], Any]:
        """Return the outputs for texts by name, and the token mask.

        With a query, each text is read together with it.
        """
        import numpy as np

        with self._loading:  # two threads that come first must not load it twice
            session, tokenizer = self._loaded
        # The tokenizer cannot take halves of characters.
        question, *whole = (
            text.encode("utf-8", "replace").decode("utf-8") for text in (query or "", *texts)
        )
        encodings = tokenizer.encode_batch(
            whole if query is None else [(question, text) for text in whole]
        )
        inputs = {
            "input_ids": [each.ids for each in encodings],
            "attention_mask": [each.attention_mask for each in encodings],
            "token_type_ids": [each.type_ids for each in encodings],
        }
        names = [put.name for put in session.get_inputs()]
        if missing := set(names) - set(inputs):
            raise ConfigError(
                f"{self.model} wants {', '.join(sorted(missing))}, which is no input of a text "
                "model."
            )
        outputs = zip(
            (output.name for output in session.get_outputs()),
            session.run(None, {name: np.asarray(inputs[name], dtype=np.int64) for name in names}),
            strict=True,
        )
        return dict(outputs), np.asarray(inputs["attention_mask"], dtype=np.float64)

    @property
    def window(self) -> int:
        """The model's window in tokens; 512 if missing or absurd."""
        for file, field in _WINDOWS:
            size = self.read_json(file).get(field)
            if isinstance(size, int) and not isinstance(size, bool) and 16 <= size <= 1_000_000:
                return min(size, self._most_tokens)
        return _USUAL_TOKENS

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        import onnxruntime as runtime
        from tokenizers import Tokenizer

        options = runtime.SessionOptions()
        options.log_severity_level = 3
        try:
            session = runtime.InferenceSession(
                str(self.model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # a class for every way in which a file can be wrong
            raise ConfigError(
                f"{self.model} cannot be loaded: {error}. Export the model again."
            ) from error
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
        return session, tokenizer


_POOLING = "1_Pooling/config.json"
_PROMPTS = "config_sentence_transformers.json"
_SAMPLE_BYTES = 1 << 20


class _OnnxModel:
    """A model of a folder that reads texts in batches, within a deadline."""

    is_local = True
    setting: ClassVar[str]
    most_tokens: ClassVar[int]
    batch: ClassVar[int]
    advice: ClassVar[Mapping[str, str]]

    def __init__(
        self, folder: str | Path, clock: Clock | None = None, at_once: int | None = None
    ) -> None:
        self._folder = OnnxFolder(folder, self.setting, self.most_tokens)
        self._clock = clock or SystemClock()
        self._at_once = at_once or self.batch
        self.name = self._folder.name

    def _batches(
        self, texts: Sequence[str], places: Iterable[int], seconds: float | None
    ) -> Iterator[list[int]]:
        """Yield the places of each batch, shortest texts first: less padding within a batch."""
        ends_at = None if seconds is None else self._clock.monotonic() + seconds
        by_length = sorted(places, key=lambda place: len(texts[place]))
        for start in range(0, len(by_length), self._at_once):
            if ends_at is not None and self._clock.monotonic() >= ends_at:
                raise failures.timed_out(
                    self.name, seconds or 0.0, may_be_billed=False, advice=self.advice
                )
            yield by_length[start : start + self._at_once]

    def _run(self, texts: Sequence[str], query: str | None = None) -> tuple[dict[str, Any], Any]:
        try:
            return self._folder.run(texts, query)
        except SmaraError:
            raise
        except Exception as error:  # a class for every way in which a model can fail
            raise failures.failure(
                self.name, "request", str(error), may_be_billed=False, advice=self.advice
            ) from error


class OnnxEmbedder(_OnnxModel):
    """An ONNX embedder, loaded on first use, thread-safe."""

    setting = "embedder"
    most_tokens = 2_048
    batch = 16
    advice = EMBEDDER_ADVICE

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

        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        there = [place for place, text in enumerate(texts) if text.strip()]
        for places in self._batches(texts, there, deadline_seconds):
            vectors = self._raw([self._before[kind] + texts[place] for place in places])
            rows[places] = check_rows(vectors, len(places), self.dims, name=self.name)
        return rows

    def _raw(self, texts: list[str]) -> Any:
        """One row for each text: made by the model itself, or out of those of its tokens."""
        import numpy as np

        outputs, mask = self._run(texts)
        first = next(iter(outputs.values()))
        found = np.asarray(outputs.get("sentence_embedding", first), dtype=np.float64)
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
        pooling = self._folder.read_json(_POOLING)
        modes = (("cls_token", "cls"), ("lasttoken", "last"))
        return next((mode for name, mode in modes if pooling.get(f"pooling_mode_{name}")), "mean")

    @cached_property
    def _before(self) -> dict[str, str]:
        prompts = self._folder.read_json(_PROMPTS).get("prompts")
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


class OnnxReranker(_OnnxModel):
    """A cross-encoder, loaded on first use, thread-safe."""

    setting = "reranker"
    most_tokens = 1_024
    batch = 8
    advice = RERANKER_ADVICE

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """Return all scores, a few at a time, within the deadline."""
        scores = [0.0] * len(texts)
        for places in self._batches(texts, range(len(texts)), deadline_seconds):
            outputs, _ = self._run([texts[place] for place in places], query)
            output, count = next(iter(outputs.values())), len(places)
            rows = output.reshape(count, -1) if output.shape and output.shape[0] == count else None
            if rows is None or rows.shape[1] not in (1, 2):
                raise bad_scores(
                    self.name, f"an output of the shape {output.shape} for {count} texts"
                )
            for place, row in zip(places, rows, strict=True):
                # One number is a logit; of two, the second says how relevant.
                numbers = [finite(float(number), self.name) for number in row]
                scores[place] = sigmoid(
                    numbers[0] if len(numbers) == 1 else numbers[1] - numbers[0]
                )
        return check_scores(scores, len(texts), self.name)
