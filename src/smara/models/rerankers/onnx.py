"""A cross-encoder from a folder. It runs in this process, on the processor, and nothing leaves the
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smara.core.clock import Clock, SystemClock
from smara.errors import SmaraError
from smara.models import failures
from smara.models.onnx_folder import OnnxFolder
from smara.models.rerank import ADVICE, bad_scores, checked, finite, sigmoid

_MOST_TOKENS = 1_024
_AT_ONCE = 8


class OnnxReranker:
    """Reads query and text together. Loads its model when it is first asked; safe to use from
    several threads.
    """

    is_local = True

    def __init__(
        self, folder: str | Path, clock: Clock | None = None, at_once: int = _AT_ONCE
    ) -> None:
        self._folder = OnnxFolder(folder, "reranker", _MOST_TOKENS)
        self._clock = clock or SystemClock()
        self._at_once = at_once

    @property
    def name(self) -> str:
        return self._folder.name

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """The scores of all texts, a few at a time; the deadline is looked at in between."""
        ends_at = self._clock.monotonic() + deadline_seconds
        by_length = sorted(
            range(len(texts)), key=lambda place: len(texts[place])
        )  # less padding within a batch
        scores: dict[int, float] = {}
        for start in range(0, len(texts), self._at_once):
            if self._clock.monotonic() >= ends_at:
                raise failures.timed_out(
                    self.name, deadline_seconds, may_be_billed=False, advice=ADVICE
                )
            places = by_length[start : start + self._at_once]
            scores.update(
                zip(places, self._batch(query, [texts[place] for place in places]), strict=True)
            )
        return checked([scores[place] for place in range(len(texts))], len(texts), self.name)

    def _batch(self, query: str, texts: list[str]) -> list[float]:
        try:
            outputs, _ = self._folder.run([(query, text) for text in texts])
        except SmaraError:
            raise
        except Exception as error:  # a class for every way in which a model can fail
            raise failures.failure(
                self.name, "request", str(error), may_be_billed=False, advice=ADVICE
            ) from error
        return self._relevance(outputs[0], len(texts))

    def _relevance(self, output: Any, count: int) -> list[float]:
        """One number is a logit; of two, the second says how relevant."""
        rows = output.reshape(count, -1) if output.shape and output.shape[0] == count else None
        if rows is None or rows.shape[1] not in (1, 2):
            raise bad_scores(self.name, f"an output of the shape {output.shape} for {count} texts")
        numbers = [[finite(float(number), self.name) for number in row] for row in rows]
        return [sigmoid(row[0] if len(row) == 1 else row[1] - row[0]) for row in numbers]
