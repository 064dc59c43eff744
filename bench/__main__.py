"""``python -m bench [compare|search|processes|tasks|calls|observe|steps|hooks|watch|say|
embed|code|decisions|copy|export|adapters|http|fleet|databases|tenants|triggers|volume|
peers] [--small] [--large]``
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench import calling, observing, processes, searching, stepping, tasking
from bench.measure import Report

_PARTS = [
    "compare", "processes", "search", "tasks", "calls", "observe", "steps", "hooks",
    "watch", "say", "embed", "code", "decisions", "copy", "export", "adapters", "http",
    "fleet", "databases", "tenants",
]  # fmt: skip


def main() -> int:
    """Run the benchmarks; the exit code says whether every target was met."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=_PARTS)
    parser.add_argument("--small", action="store_true", help="stop at 100,000 messages")
    parser.add_argument(
        "--large",
        action="store_true",
        help="decisions: go to 100,000 sessions; copy, export, databases: to 1,000,000 messages",
    )
    parser.add_argument("--out", type=Path, default=Path(".bench"))
    options = parser.parse_args()
    os.environ.setdefault(
        "SMARA_EMBED_IN_BACKGROUND", "false"
    )  # only the part that measures it wants it
    report = Report()
    with tempfile.TemporaryDirectory(prefix="smara-bench-") as name:
        folder = Path(name)
        for part in options.parts:
            print(f"-- {part}", flush=True)
            if part == "compare":
                from bench import comparing

                comparing.run(
                    folder, report, comparing.SIZES[:1] if options.small else comparing.SIZES
                )
            elif part == "processes":
                processes.run(folder, report)
            elif part == "search":
                searching.run(
                    folder, report, searching.SIZES[:2] if options.small else searching.SIZES
                )
            elif part == "tasks":
                tasking.run(folder, report, tasking.SIZES[:2] if options.small else tasking.SIZES)
            elif part == "calls":
                calling.run(folder, report)
            elif part == "observe":
                observing.run(
                    folder, report, observing.SIZES[:2] if options.small else observing.SIZES
                )
            elif part == "steps":
                stepping.run(
                    folder, report, stepping.SIZES[:2] if options.small else stepping.SIZES
                )
            elif part == "hooks":
                from bench import hooking

                hooking.run(folder, report, 3_000 if options.small else hooking.MESSAGES)
            elif part == "watch":
                from bench import watching

                watching.run(folder, report)
            elif part == "say":
                from bench import saying

                saying.run(folder, report)
            elif part == "embed":
                os.environ["OPENBLAS_NUM_THREADS"] = (
                    "1"  # its threads go on spinning, and slow down whoever comes next
                )
                from bench import embedding

                embedding.run(
                    folder, report, embedding.SIZES[:1] if options.small else embedding.SIZES
                )
            elif part == "code":
                from bench import code

                code.run(folder, report, code.SIZES[:2] if options.small else code.SIZES)
            elif part == "decisions":
                from bench import deciding

                sizes = deciding.LARGE if options.large else deciding.SIZES
                deciding.run(folder, report, sizes[:1] if options.small else sizes)
            elif part == "copy":
                from bench import copying

                sizes = copying.LARGE if options.large else copying.SIZES
                copying.run(folder, report, sizes[:1] if options.small else sizes)
            elif part == "export":
                from bench import exporting

                sizes = exporting.LARGE if options.large else exporting.SIZES
                exporting.run(folder, report, sizes[:1] if options.small else sizes)
            elif part == "adapters":
                from bench import adapting

                adapting.run(folder, report)
            elif part == "http":
                from bench import serving

                serving.run(folder, report, serving.SIZES[:1] if options.small else serving.SIZES)
            elif part == "fleet":
                from bench import fleet

                fleet.run(folder, report)
            elif part == "databases":
                from bench import databases

                sizes = databases.LARGE if options.large else databases.SIZES
                databases.run(folder, report, sizes[:1] if options.small else sizes)
            elif part == "tenants":
                from bench import tenants

                tenants.run(folder, report, 10 if options.small else tenants.GROWTH)
            elif part == "triggers":
                from bench import triggers

                triggers.run(folder, report)
            elif part == "volume":
                from bench import volume

                volume.run(folder, report)
            elif part == "peers":
                from bench import peers

                peers.run(folder, report, options.small)
            elif part == "panel":
                from bench import panel

                panel.run(folder, report)
            else:
                parser.error(f"unknown part {part}; choose from {', '.join(_PARTS)}")
    report.write(options.out)
    print(f"\nwritten to {options.out}/report.md")
    if report.missed:
        print("missed: " + "; ".join(report.missed))
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
