"""10, external reference: a page that is consulted whenever a module is worked on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.quoting import code

SIGNAL = Signal(10, "external_reference", 0.56, 0.70, 0.40, ("module_insight",), 3)


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    for pad in pads:
        for url, entry in pad["references"]:
            data = {"url": url, "modules": list(entry.get("m", ()))}
            yield Finding("external_reference", url, url[:160], entry["f"], data)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    """The address and for what it was used; what the page says is not repeated. It always counts as from outside."""
    counted = Counter(module for data in seen.history for module in data.get("modules", ()))
    if not counted:
        return None
    module, count = counted.most_common(1)[0]
    if count < SIGNAL.least_sessions:
        return None
    url = finding.data["url"]
    content = f"Work on {code(module)} consulted {url} in {count} sessions."
    return Draft("module_insight", content, (url,), (), (module,), {"module": module}, taint=("web",))
