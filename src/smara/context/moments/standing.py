"""Whether an experiment was begun or ended since, asked by a glance: for hooks, which cannot open
the whole room.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from smara.database.glance import Look

_CHANGED_AT = "SELECT changed_at FROM moment_state WHERE project_no = :project"


def mark(look: Look) -> int:
    """When the project's experiment was last begun or ended; 0 where there was none."""
    return look.number(_CHANGED_AT)


def has_changed(look: Look, since: int) -> bool:
    """Whether it was begun or ended since."""
    return mark(look) != since
