"""Tell how far the first reading of a project is.

It is a job in the store, as every work in the background: the panel follows it, and a run whose
process died does not count as running.
"""

from __future__ import annotations

from typing import Any

from smara.memory import Memory

_MOST_JOBS = 500


def find_run(memory: Memory) -> dict[str, Any] | None:
    """Return how far the last run came.

    ``None`` if it ended well, or there was none.
    """
    job = next((each for each in memory.jobs.list(_MOST_JOBS) if each.kind == "init"), None)
    if job is None or job.state == "done":
        return None
    return {
        "stage": job.what or job.facts.get("stage", "beginning"),
        "done": job.done,
        "total": job.total,
        "left": job.facts.get("left", []),
        # Of one that was killed there is nothing to say but where it stopped.
        "error": "interrupted" if job.error == "KeyboardInterrupt" else "",
        "startedAt": job.started_at,
        "updatedAt": job.updated_at,
        "isRunning": job.state == "running",
    }


def share_of(done: int, total: int) -> int:
    """Return the share of a stage that is done, in percent.

    Its end is more than its last step.

    >>> share_of(1, 4), share_of(4, 4)
    (25, 99)
    """
    return min(99, 100 * done // total)


def stage_line(record: dict[str, Any]) -> str:
    """Return how far a run is, for people.

    >>> stage_line({"stage": "code", "done": 1, "total": 4, "left": ["vectors"],
    ...               "isRunning": True, "error": ""})
    'code, 25 %, then vectors'
    """
    share = f", {share_of(record['done'], record['total'])} %" if record["total"] else ""
    if not record["isRunning"]:
        why = f" ({record['error']})" if record["error"] else ""
        return f"stopped at {record['stage']}{share}{why}; `smara init` goes on"
    left = f", then {', '.join(record['left'])}" if record["left"] else ""
    return f"{record['stage']}{share}{left}"
