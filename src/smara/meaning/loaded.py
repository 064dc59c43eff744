"""The vectors of some rows, held for as long as one search takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from smara.database.vectors import cosines
from smara.meaning.models import Vector

if TYPE_CHECKING:
    from smara.database.vectors import Codes


class Loaded:
    """Rows with their vectors, to be compared with more than one question."""

    def __init__(self, rows: Sequence[int], codes: Codes) -> None:
        self._places = {row: place for place, row in enumerate(rows)}
        self._codes = codes

    def scores(self, vector: Vector) -> dict[int, float]:
        """The cosine of each row with a question."""
        if not self._places:
            return {}
        return dict(zip(self._places, cosines(self._codes, vector.values).tolist(), strict=True))

    def moved(self, vector: Vector, rows: Sequence[int], share: float) -> Vector | None:
        """The question, moved towards the middle of some rows; ``None`` when none of them is here.

        With a share of 0.5 the middle counts half as much as what was asked.
        """
        import numpy as np

        places = [self._places[row] for row in rows if row in self._places]
        if not places:
            return None
        chosen = self._codes[places].astype(np.float64)
        units = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
        moved = vector.values.astype(np.float64) + share * units.mean(axis=0)
        length = float(np.linalg.norm(moved))
        return (
            None if length < 1e-9 else replace(vector, values=(moved / length).astype(np.float32))
        )
