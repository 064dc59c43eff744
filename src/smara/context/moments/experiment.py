"""Assign sessions to the arms of an injection experiment.

The arm depends on the session's id alone, so every process finds the same one. Hooks read
this module, so it imports nothing at the top.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from smara.context.models import Arm
    from smara.database.probe import Probe

CONTROL_SHARE, PASSIVE_SHARE = 5, 10
"""Of a hundred sessions; the others are told everything."""
_PASSIVE = ("start", "first_message")


def arm_of(session_id: str, project_id: str) -> Arm:
    """The arm of a session.

    >>> arm_of("s1", "shop") == arm_of("s1", "shop")
    True
    """
    import hashlib  # not needed without an experiment

    text = f"{session_id}:{project_id}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % 100
    if number < CONTROL_SHARE:
        return "control"
    return "passive" if number < CONTROL_SHARE + PASSIVE_SHARE else "full"


def may_say(arm: Arm | None, point: str) -> bool:
    """Return True if an arm is told something at a point.

    >>> may_say("control", "start"), may_say("passive", "start"), may_say("passive", "before_tool"), may_say(None, "qa")
    (False, True, False, True)
    """  # noqa: E501
    return arm in (None, "full") or (arm == "passive" and point in _PASSIVE)


_CHANGED_AT = "SELECT changed_at FROM moment_state WHERE project_no = :project"


def mark(look: Probe) -> int:
    """Return when the experiment was last begun or ended, or 0."""
    return look.number(_CHANGED_AT)


def has_changed(look: Probe, since: int) -> bool:
    """Return True if it was begun or ended since."""
    return mark(look) != since
