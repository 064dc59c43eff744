"""Metadata given by callers: redacted, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smara.errors import InvalidInputError
from smara.secrets.values import redact_value

_DEPTH_LIMIT = 200


def dump_metadata(metadata: Mapping[str, Any]) -> str:
    """Metadata as redacted JSON; a clear error for what JSON cannot hold."""
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata must be a dict, not {type(metadata).__name__}.")
    return dump(redact_value(dict(metadata))[0], "metadata")


def dump(value: Mapping[str, Any], what: str) -> str:
    """Metadata as JSON text; a clear error for what JSON cannot hold."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise InvalidInputError(
            f"{what} is nested too deeply. Keep it under {_DEPTH_LIMIT} levels."
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} cannot be written as JSON: {error}. Use texts, numbers, lists, dicts."
        ) from None
