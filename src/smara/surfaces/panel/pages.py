"""Read what each page of the panel shows.

A page is one frozen `PageSpec`: its address, its template and the function that reads its data from
a memory. The navigation, the addresses and the JSON twins are derived from the list. What a page
shows is what its JSON twin gives, so that nothing is computed in a template.
"""

from __future__ import annotations

from smara.memory import Memory
from smara.surfaces.http.shape import Shaper
from smara.surfaces.panel.browse import BROWSE
from smara.surfaces.panel.explore import EXPLORE
from smara.surfaces.panel.inbox import INBOX
from smara.surfaces.panel.page import Facts, PageSpec, Query
from smara.surfaces.panel.setup import SETUP

CHART_HEIGHT = 60


def today(memory: Memory, query: Query) -> Facts:
    """Read the health of a project and its next start."""
    shape = Shaper(memory).shape
    totals = memory.memories.totals()
    receipts = memory.moments.totals()
    preview = memory.moments.preview()
    health = memory.browse.health()
    activity, growth = shape(memory.browse.activity(30)), shape(memory.browse.growth(30))
    return {
        "status": {
            **memory.threads.totals(),
            "memories": shape(totals),
            "tasks": shape(memory.tasks.totals()),
        },
        "used": memory.browse.used_since(30),
        "days": [{**use, **day} for use, day in zip(activity, growth, strict=True)],
        "charts": charts(activity, growth),
        "hosts": shape(memory.browse.hosts()),
        # The graph of the code takes longer than all the rest: a page asks for it when it is drawn.
        "coverage": [
            {**shape(each), "share": round(each.share, 3)} for each in memory.browse.coverage()
        ]
        if query.get("whole")
        else None,
        "receipts": shape(receipts),
        "trust": shape(memory.memories.trust()),
        "health": shape(health),
        "failures": dict(health.failures),
        "stale": health.stale,
        "next": {"text": preview.text, "tokens": preview.tokens, "items": shape(preview.items)},
    }


def charts(days: list[Facts], growth: list[Facts]) -> Facts:
    """Draw the last days as bars, and memories as a line.

    >>> charts([{"at": 0, "used": 1, "tokens": 50}], [{"at": 0, "inForce": 4}])["used"]["bars"]
    [{'at': 0, 'count': 1, 'x': 0, 'height': 60}]
    """

    def bars(name: str) -> Facts:
        most = max((each[name] for each in days), default=0)
        return {
            "total": sum(each[name] for each in days),
            "most": most,
            "bars": [
                {
                    "at": each["at"],
                    "count": each[name],
                    "x": at * 20,
                    "height": round(CHART_HEIGHT * each[name] / most) if most else 0,
                }
                for at, each in enumerate(days)
            ],
        }

    most = max((each["inForce"] for each in growth), default=0) or 1
    line = [
        f"{at * 20 + 10},{CHART_HEIGHT - round((CHART_HEIGHT - 4) * each['inForce'] / most)}"
        for at, each in enumerate(growth)
    ]
    return {"width": len(days) * 20, "height": CHART_HEIGHT, "line": " ".join(line)} | {
        name: bars(name) for name in ("tokens", "used")
    }


def operations(memory: Memory, query: Query) -> Facts:
    """Read what works in the background, what failed, and what models cost."""
    shape = Shaper(memory).shape
    is_measured = bool(query.get("measure"))
    return {
        "embeddings": shape(memory.embeddings.status()),
        "models": shape(memory.models.status()),
        "calls": shape(memory.models.calls(limit=20)),
        "jobs": shape(memory.jobs.list(limit=20)),
        "leases": shape(memory.jobs.leases()),
        "code": shape(memory.code.trees()),
        "failures": {
            "observations": shape(memory.observations.failures()),
        },
        # Every row is read to weigh it: that is done when a person asks.
        "isMeasured": is_measured,
        "retention": shape(memory.retention.list(2.0 if is_measured else 0.0)),
    }


PAGES: tuple[PageSpec, ...] = (
    PageSpec("/", "today.html", today, "Today", key="t"),
    *INBOX,
    *BROWSE,
    *EXPLORE,
    PageSpec("/operations", "operations.html", operations, "Operations", key="o"),
    *SETUP,
)
