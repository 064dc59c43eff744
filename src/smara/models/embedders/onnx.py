"""An embedding model from a folder: ``model.onnx`` and ``tokenizer.json``, as sentence models are
published.

It runs in this process, on the processor, and nothing leaves the machine. Needs the extra ``onnx``.
What the folder says of itself is heeded: how tokens are pooled, how many are read, what is put in
front of a query.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smara.core.clock import Clock, SystemClock
from smara.errors import SmaraError
from smara.models import failures
from smara.models.embedding import ADVICE, Kind, bad_vectors, checked_rows
from smara.models.onnx_folder import TOKENIZER, OnnxFolder

if TYPE_CHECKING:
    from smara.models.embedding import Vectors

_POOLING = "1_Pooling/config.json"
_PROMPTS = "config_sentence_transformers.json"
_MOST_TOKENS = 2_048
_AT_ONCE = 16
_SAMPLE_BYTES = 1 << 20


class OnnxEmbedder:
    """Loads its model when it is first asked; safe to use from several threads."""

    is_local = True

    def __init__(
        self, folder: str | Path, clock: Clock | None = None, at_once: int = _AT_ONCE
    ) -> None:
        self._folder = OnnxFolder(folder, "embedder", _MOST_TOKENS)
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
        """As many numbers as come out for a text: exports do not always say."""
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
        """The rows of all texts, a few at a time; the deadline is looked at in between."""
        import numpy as np

        ends_at = None if deadline_seconds is None else self._clock.monotonic() + deadline_seconds
        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        there = [place for place, text in enumerate(texts) if text.strip()]
        there.sort(key=lambda place: len(texts[place]))  # less padding within a batch
        for start in range(0, len(there), self._at_once):
            if ends_at is not None and self._clock.monotonic() >= ends_at:
                raise failures.timed_out(
                    self.name, deadline_seconds or 0.0, may_be_billed=False, advice=ADVICE
                )
            places = there[start : start + self._at_once]
            found = self._raw([self._before[kind] + texts[place] for place in places])
            rows[places] = checked_rows(found, len(places), self.dims, name=self.name)
        return rows

    def _raw(self, texts: list[str]) -> Any:
        """One row for each text, as the model gives it."""
        try:
            outputs, mask = self._folder.run(texts)
        except SmaraError:
            raise
        except Exception as error:  # a class for every way in which a model can fail
            raise failures.failure(
                self.name, "request", str(error), may_be_billed=False, advice=ADVICE
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
