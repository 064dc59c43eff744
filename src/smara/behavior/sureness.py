"""How sure a count makes: three of three is less than thirty of thirty."""

from __future__ import annotations

from math import sqrt

_NINE_OF_TEN = 1.2816


def surely(times: int, of: int) -> float:
    """The share that is at least behind a count, nine times out of ten (Wilson's lower bound).

    >>> [round(surely(*each), 2) for each in ((3, 3), (3, 5), (30, 50))]
    [0.65, 0.33, 0.51]
    """
    share, width = times / of, _NINE_OF_TEN**2 / of
    spread = _NINE_OF_TEN * sqrt(share * (1 - share) / of + width / (4 * of))
    return (share + width / 2 - spread) / (1 + width)
