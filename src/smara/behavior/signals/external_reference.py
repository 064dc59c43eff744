"""Detect web sites consulted for work on a module (signal 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    10,
    "external_reference",
    0.56,
    relevance=0.70,
    false_positives=0.40,
    targets=("module_insight",),
    least_sessions=3,
    quotes=("agent", "web"),
    learned_in=("build", "spec"),
)
_OF_THE_MOMENT = frozenset(
    {"issues", "pull", "pulls", "commit", "actions", "releases", "discussions", "compare"}
)
_HERE = frozenset({"localhost", "127.0.0.1", "0.0.0.0"})  # noqa: S104


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect the sites whose pages were read.

    It is hardly ever the same page twice.
    """
    for url, entry in pad.references:
        if (site := site_of(url)) is not None:
            yield SignalFinding(
                "external_reference",
                site,
                url[:160],
                step=entry.first_step,
                data={"url": site, "page": url, "modules": entry.modules},
            )


def site_of(url: str) -> str | None:
    """Return a page's site, at most two folders deep, or ``None``.

    >>> site_of("https://docs.example.com/api/latest/rum/?x=1"), site_of("https://github.com/a/b/issues/12")
    ('https://docs.example.com/api/latest', None)
    """
    parts = urlsplit(url)
    folders = [each for each in parts.path.split("/") if each]
    if not parts.netloc or _OF_THE_MOMENT.intersection(folders[2:3]) or parts.hostname in _HERE:
        return None
    return f"{parts.scheme}://{parts.netloc}/{'/'.join(folders[:2])}".rstrip("/")


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft the address and its use; always tainted as outside.

    What the page says is not repeated.
    """
    counted = Counter(module for data in seen.history for module in data.get("modules", ()))
    module = max(counted, key=counted.__getitem__, default="")
    count = counted[module]
    if count < SIGNAL.least_sessions:
        return None
    pages = tuple(dict.fromkeys(str(data.get("page") or data["url"]) for data in seen.history))
    return MemoryDraft(
        "module_insight",
        f"Work on {code(module)} consulted {finding.data['url']} in {count} sessions.",
        pages[:3],
        modules=(module,),
        data={"module": module},
    )
