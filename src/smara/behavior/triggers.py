"""Early triggers: what shows before a session has ended, for those who advise the agent while it
works.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.behavior.models import EarlyTrigger
from smara.behavior.pad import Pad

_SEARCHES = 3
_EDITS = 2
_ERRORS = 2


def triggers_of(pads: Sequence[Pad]) -> list[EarlyTrigger]:
    """What has been triggered so far, the most urgent first."""
    found: list[EarlyTrigger] = []
    for pad in pads:
        for _, entry in pad["corrections"]:
            found.append(EarlyTrigger("self_correction", 0.9, str(entry["q"])))
            break
        for pattern, entry in pad["searches"]:
            if entry["n"] >= _SEARCHES:
                found.append(EarlyTrigger("repeated_grep", 0.8, pattern))
        if len(pad["errors"]) >= _ERRORS:
            last = max((entry for _, entry in pad["errors"]), key=lambda entry: int(entry["s"]))
            found.append(EarlyTrigger("error_retry", 0.75, f"{last['cmd']}: {last['line']}"))
        edited = sum(1 for _, entry in pad["files"] if entry.get("e"))
        if len(pad["configs"]) and edited >= _EDITS:
            found.append(
                EarlyTrigger("config_touch", 0.7, next(path for path, _ in pad["configs"]))
            )
    return sorted(found, key=lambda each: -each.priority)
