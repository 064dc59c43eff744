"""An embedding model from a folder: ``model.onnx`` and ``tokenizer.json``, as sentence models are published.

It runs in this process, on the processor, and nothing leaves the machine. Needs the extra ``onnx``. What the folder
says of itself is heeded: how tokens are pooled, how many are read, what is put in front of a query.
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
from smara.errors import ConfigError, MissingExtraError
from smara.models import failures
from smara.models.embedding import ADVICE, Kind, bad_vectors, checked_rows

if TYPE_CHECKING:
    from smara.models.embedding import Vectors

_MODELS = ("model.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_POOLING = "1_Pooling/config.json"
_PROMPTS = "config_sentence_transformers.json"
_WINDOWS = (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
_USUAL_TOKENS, _MOST_TOKENS = 512, 2_048
_AT_ONCE = 16
_SAMPLE_BYTES = 1 << 20


class OnnxEmbedder:
    """Loads its model when it is first asked; safe to use from several threads."""

    is_local = True

    def __init__(self, folder: str | Path, clock: Clock | None = None, at_once: int = _AT_ONCE) -> None:
        self._folder = Path(folder).expanduser()
        self._clock = clock or SystemClock()
        self._at_once = at_once
        self._loading = threading.Lock()
        self._model = _model_in(self._folder)
        for package in ("onnxruntime", "tokenizers"):
            if find_spec(package) is None:
                raise MissingExtraError(
                    f'An embedder from a folder needs {package}. Install it with `pip install "smara[onnx]"`.',
                    package=package,
                )

    @property
    def name(self) -> str:
        return f"onnx:{self._folder.name}"

    @property
    def model_id(self) -> str:
        return f"onnx/{self._folder.name}-{self._fingerprint}@{self.dims}"

    @cached_property
    def dims(self) -> int:
        """As many numbers as come out for a text: exports do not always say."""
        return int(self._raw(["dimensions"]).shape[1])

    @property
    def first_dims(self) -> int:
        return self.dims

    def embed(self, texts: Sequence[str], kind: Kind = "document", *, deadline_seconds: float | None = None) -> Vectors:
        """The rows of all texts, a few at a time; the deadline is looked at in between."""
        import numpy as np

        ends_at = None if deadline_seconds is None else self._clock.monotonic() + deadline_seconds
        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        there = [place for place, text in enumerate(texts) if text.strip()]
        there.sort(key=lambda place: len(texts[place]))  # less padding within a batch
        for start in range(0, len(there), self._at_once):
            if ends_at is not None and self._clock.monotonic() >= ends_at:
                raise failures.timed_out(self.name, deadline_seconds or 0.0, may_be_billed=False, advice=ADVICE)
            places = there[start : start + self._at_once]
            found = self._raw([self._before[kind] + texts[place] for place in places])
            rows[places] = checked_rows(found, len(places), self.dims, self.name)
        return rows

    def _raw(self, texts: list[str]) -> Any:
        """One row for each text, as the model gives it."""
        import numpy as np

        session, tokenizer = self._loaded
        read = tokenizer.encode_batch(texts)
        known = {
            "input_ids": [each.ids for each in read],
            "attention_mask": [each.attention_mask for each in read],
            "token_type_ids": [each.type_ids for each in read],
        }
        wanted = [put.name for put in session.get_inputs()]
        if missing := set(wanted) - set(known):
            raise ConfigError(f"{self._model} wants {', '.join(sorted(missing))}, which no embedder is given.")
        try:
            outputs = session.run(None, {name: np.asarray(known[name], dtype=np.int64) for name in wanted})
        except Exception as error:  # a class for every way in which a model can fail
            raise failures.failure(self.name, "request", str(error), may_be_billed=False, advice=ADVICE) from error
        return self._pooled(outputs, np.asarray(known["attention_mask"], dtype=np.float64))

    def _pooled(self, outputs: list[Any], mask: Any) -> Any:
        """A vector for each text: made by the model itself, or out of those of its tokens."""
        import numpy as np

        names = [output.name for output in self._session.get_outputs()]
        chosen = names.index("sentence_embedding") if "sentence_embedding" in names else 0
        found = np.asarray(outputs[chosen], dtype=np.float64)
        if found.ndim == 2 and len(found) == len(mask):
            return found
        if found.ndim != 3 or found.shape[:2] != mask.shape:
            raise bad_vectors(self.name, f"an output of the shape {found.shape} for {len(mask)} texts")
        if self._pooling == "cls":
            return found[:, 0]
        if self._pooling == "last":
            return found[np.arange(len(found)), mask.sum(axis=1).astype(int) - 1]
        return (found * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)

    @cached_property
    def _pooling(self) -> str:
        told = _told(self._folder / _POOLING)
        if told.get("pooling_mode_cls_token"):
            return "cls"
        return "last" if told.get("pooling_mode_lasttoken") else "mean"

    @cached_property
    def _before(self) -> dict[str, str]:
        prompts = _told(self._folder / _PROMPTS).get("prompts")
        prompts = prompts if isinstance(prompts, dict) else {}
        document = prompts.get("document") or prompts.get("passage") or ""
        return {"query": str(prompts.get("query") or ""), "document": str(document)}

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
            return runtime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class for every way in which a file can be wrong
            raise ConfigError(f"{self._model} cannot be loaded: {error}. Export the model again.") from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        path = self._folder / _TOKENIZER
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises plain exceptions
            raise ConfigError(f"{path} cannot be read: {error}. Put the model's own tokenizer.json there.") from error
        tokenizer.enable_truncation(_window(self._folder))
        padding = tokenizer.padding or {}
        # Padding on the left would move the first and the last token, which some models are pooled by.
        tokenizer.enable_padding(
            direction="right", pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]")
        )
        return tokenizer

    @cached_property
    def _fingerprint(self) -> str:
        """A few letters that change with what makes the vectors, so that another model is another space.

        Of a large file the size, the beginning, the middle and the end are looked at.
        """
        made = hashlib.sha256()
        size = self._model.stat().st_size
        with self._model.open("rb") as file:
            for place in (0, max(0, size // 2), max(0, size - _SAMPLE_BYTES)):
                file.seek(place)
                made.update(file.read(_SAMPLE_BYTES))
        made.update(json.dumps([size, self._pooling, self._before["document"]]).encode())
        made.update((self._folder / _TOKENIZER).read_bytes())
        return made.hexdigest()[:8]


def _model_in(folder: Path) -> Path:
    model = next((folder / name for name in _MODELS if (folder / name).is_file()), None)
    if model is None or not (folder / _TOKENIZER).is_file():
        raise ConfigError(f"{folder} holds no model.onnx with its tokenizer.json. Check the setting embedder.")
    return model


def _told(path: Path) -> dict[str, Any]:
    """What a file of settings says; nothing when it is not there or cannot be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _window(folder: Path) -> int:
    """How many tokens the model reads at once; a number that is missing, or absurd as it often is, is 512."""
    for name, field in _WINDOWS:
        told = _told(folder / name).get(field)
        if isinstance(told, int) and not isinstance(told, bool) and 16 <= told <= 1_000_000:
            return min(told, _MOST_TOKENS)
    return _USUAL_TOKENS
