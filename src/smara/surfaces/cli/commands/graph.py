"""``smara graph``"""

from __future__ import annotations

import os
import threading
from typing import Any

import click

from smara.codegraph.models import IndexReport, TreeStatus
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.graph_asking import ASKING
from smara.surfaces.cli.commands.graph_locate import locate
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.progress import bar


@click.group("graph")
def command() -> None:
    """What the code is: index it, watch it, ask what depends on what."""


@command.command("index")
@click.argument("root", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--full", is_flag=True, help="Read every file again, changed or not.")
@click.option(
    "--scip",
    type=click.Path(exists=True, dir_okay=False),
    help="A SCIP index; by default ROOT/index.scip.",
)
@common
def index(call: Call, root: str | None, full: bool, scip: str | None) -> None:
    """Index the code in ROOT, by default the repository around the current folder. Only what
    changed is read.
    """
    with call.memory() as memory, bar("Indexing") as progress:
        report = memory.code.index(root, full=full, progress=progress, scip=scip)
        status = memory.code.status(root)
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"root": status.root, **_report_json(report)}, warnings)
        return
    output.warn(warnings)
    output.say(f"{status.root}: {_told(report)}")
    output.say(
        f"{report.files:,} files, {report.nodes:,} nodes, {report.edges:,} edges, "
        f"{report.chunks:,} chunks."
    )
    if report.skipped:
        output.say("Left out: " + _counted(report.skipped) + ".")


@command.command("status")
@click.argument("root", required=False, type=click.Path(file_okay=False))
@click.option(
    "--all", "is_all", is_flag=True, help="Every tree of the project, not only the one here."
)
@common
def status(call: Call, root: str | None, is_all: bool) -> None:
    """How the index of the code stands: what is in it, what was left out and why."""
    with call.memory() as memory:
        found = memory.code.trees() if is_all else [memory.code.status(root)]
        warnings = memory.warnings
    if call.as_json:
        shown = [_status_json(each) for each in found]
        output.envelope({"trees": shown} if is_all else shown[0], warnings)
        return
    output.warn(warnings)
    for each in found:
        output.facts(_facts(each))
    if not found:
        output.say("No code is indexed in this project; `smara graph index` does it.")


@command.command("watch")
@click.argument("root", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    metavar="S",
    help="Leave after so long; without it, when stopped.",
)
@common
def watch(call: Call, root: str | None, seconds: float | None) -> None:
    """Index the code, and then every change as it is saved, until stopped."""
    stop = threading.Event()
    seen: list[IndexReport] = []
    timer = threading.Timer(seconds, stop.set) if seconds is not None else None
    with call.memory() as memory:

        def tell(report: IndexReport) -> None:
            seen.append(report)
            if not call.as_json:
                output.say(_told(report))

        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            memory.code.watch(stop, root, tell)
        finally:
            if timer is not None:
                timer.cancel()
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"updates": [_report_json(report) for report in seen]}, warnings)


@command.command("forget")
@click.argument("root", required=False, type=click.Path(file_okay=False))
@click.option(
    "--gone", is_flag=True, help="The indexes of all folders of the project that are gone."
)
@common
def forget(call: Call, root: str | None, gone: bool) -> None:
    """Remove the index of the code in ROOT, by default the repository around the current folder.

    The files themselves are not touched.
    """
    with call.memory() as memory:
        where = root or memory.code.status().root
        forgotten = (
            memory.code.forget_gone() if gone else [where] if memory.code.forget(where) else []
        )
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"forgotten": forgotten}, warnings)
        return
    output.warn(warnings)
    for each in forgotten:
        output.say(f"{each}: no longer indexed.")
    if not forgotten:
        output.say(
            "No folder of this project is gone."
            if gone
            else f"{where} is not indexed in this project."
        )


for _each in (*ASKING, locate):
    command.add_command(_each)


def _told(report: IndexReport) -> str:
    parts = [
        f"{report.indexed:,} read",
        f"{report.removed:,} removed",
        f"{report.unchanged:,} as before",
    ]
    return f"{', '.join(parts)} in {report.seconds:.2f} s."


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{count:,} {reason.replace('_', ' ')}" for reason, count in sorted(counts.items())
    )


def _facts(status: TreeStatus) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = [
        (
            "root",
            status.root
            + ("" if os.path.isdir(status.root) else " (gone; `smara graph forget --gone`)"),
        ),
        ("state", status.state + (f" ({status.note})" if status.note else "")),
    ]
    if status.state != "none":
        facts += [
            ("branch", f"{status.branch or '(none)'} {(status.commit or '')[:12]}".strip()),
            ("files", f"{status.files:,} ({_counted(status.languages)})"),
            ("graph", f"{status.nodes:,} nodes, {status.edges:,} edges"),
            ("chunks", f"{status.chunks:,}"),
            ("left out", _counted(status.skipped) or "nothing"),
        ]
    return facts


def _report_json(report: IndexReport) -> dict[str, Any]:
    return {
        "files": report.files,
        "indexed": report.indexed,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "nodes": report.nodes,
        "edges": report.edges,
        "chunks": report.chunks,
        "seconds": report.seconds,
        "skipped": report.skipped,
        "complete": report.is_complete,
    }


def _status_json(status: TreeStatus) -> dict[str, Any]:
    return {
        "root": status.root,
        "state": status.state,
        "note": status.note,
        "branch": status.branch,
        "commit": status.commit,
        "files": status.files,
        "nodes": status.nodes,
        "edges": status.edges,
        "chunks": status.chunks,
        "staleFiles": status.stale_files,
        "skipped": status.skipped,
        "languages": status.languages,
        "indexedAt": status.indexed_at,
        "revision": status.revision,
    }
