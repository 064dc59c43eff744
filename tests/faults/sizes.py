"""How much is tried, and with which random numbers."""

from __future__ import annotations

import os
import secrets

IS_LARGE = os.environ.get("SMARA_FAULTS") == "large"
SEED = os.environ.get("SMARA_SEED") or (secrets.token_hex(4) if IS_LARGE else "smara")
"""The same in every small run, which must not fail for something that the change at hand has
nothing to do with; new in every large one. A failure is repeated with ``SMARA_SEED=…``. Read at
import, before any test takes it away.
"""


def count(small: int, large: int) -> int:
    """The one of two counts that this run is for."""
    return large if IS_LARGE else small
