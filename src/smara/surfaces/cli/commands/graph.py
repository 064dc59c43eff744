"""Define `smara graph`: index the code and query its graph."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from smara.codegraph.models import CodeLocation, ImpactWalk, IndexReport, TreeStatus
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.output import bar
from smara.surfaces.cli.render import graph

_TARGET = click.argument("target")
_DEPTH = "How many steps, up to 20."
_MANY = click.IntRange(1, 10_000)


@contextmanager
def _query(call: Invocation) -> Iterator[tuple[Memory, Any, list[str]]]:
    """The memory, the tree that is asked, and what has to be known of its answers."""
    with call.memory() as memory:
        asking = memory.code.asking()
        note = memory.code.catch_up()
        yield (
            memory,
            asking,
            [*memory.warnings, *([f"{note[0].upper()}{note[1:]}."] if note else [])],
        )


def _limit(default: int) -> Callable[[Any], Any]:
    return click.option(
        "--limit", type=_MANY, default=default, show_default=True, metavar="N", help="Show so many."
    )


def _depth(default: int) -> Callable[[Any], Any]:
    return click.option(
        "--depth",
        type=click.IntRange(1, 20),
        default=default,
        show_default=True,
        metavar="N",
        help=_DEPTH,
    )


def _answer_walk(
    call: Invocation,
    walk: ImpactWalk,
    warnings: list[str],
    one: str,
    many: str,
    is_backward: bool = True,
) -> None:
    if call.as_json:
        output.envelope(graph.walk_json(walk), warnings)
        return
    output.warn(warnings)
    if output.is_terminal():
        graph.say_walk(walk, one, many, is_backward=is_backward)
    else:
        output.table(graph.WALK_COLUMNS, graph.walk_rows(walk.reached, is_backward))


@click.command("impact")
@_TARGET
@_depth(3)
@_limit(200)
@click.option(
    "--picture",
    type=click.Choice(["dot", "mermaid"]),
    help="Draw it instead: for Graphviz or Markdown.",
)
@common
def impact(call: Invocation, target: str, depth: int, limit: int, picture: str | None) -> None:
    """What may break when TARGET changes: who depends on it, and through what.

    TARGET is a file, a folder, a name, PATH:NAME or PATH:LINE.
    """
    with _query(call) as (_, asking, warnings):
        walk = asking.impact(target, depth, limit)
        drawn = asking.draw(walk, picture) if picture else None
    if drawn is None:
        _answer_walk(call, walk, warnings, one="depends on it", many="depend on it")
    elif call.as_json:
        output.envelope({"picture": picture, "text": drawn}, warnings)
    else:
        output.warn(warnings)
        output.say(drawn)


@click.command("deps")
@_TARGET
@_depth(1)
@_limit(200)
@common
def deps(call: Invocation, target: str, depth: int, limit: int) -> None:
    """What TARGET depends on."""
    with _query(call) as (_, asking, warnings):
        walk = asking.deps(target, depth, limit)
    _answer_walk(
        call, walk, warnings, one="is used by it", many="are used by it", is_backward=False
    )


@click.command("callers")
@_TARGET
@_depth(1)
@_limit(200)
@common
def callers(call: Invocation, target: str, depth: int, limit: int) -> None:
    """Who calls TARGET."""
    with _query(call) as (_, asking, warnings):
        walk = asking.callers(target, depth, limit)
    _answer_walk(call, walk, warnings, one="calls it", many="call it")


@click.command("tests")
@_TARGET
@_depth(3)
@_limit(200)
@common
def tests(call: Invocation, target: str, depth: int, limit: int) -> None:
    """The tests that come to TARGET, the nearest first."""
    with _query(call) as (_, asking, warnings):
        walk = asking.tests_for(target, depth, limit)
    _answer_walk(call, walk, warnings, one="tests it", many="test it")


@click.command("symbol")
@_TARGET
@common
def symbol(call: Invocation, target: str) -> None:
    """All there is to say of TARGET: its head, callers, tests, what is known about it."""
    with _query(call) as (memory, asking, warnings):
        card = asking.symbol(target)
        known = memory.code_knowledge.about([card.node])
    if call.as_json:
        output.envelope(graph.card_json(card, known), warnings)
        return
    output.warn(warnings)
    graph.say_card(card, known)


@click.command("map")
@click.option(
    "--tokens",
    type=click.IntRange(1, 200_000),
    default=1_024,
    show_default=True,
    help="At most so many.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="A file or folder in play; may be repeated.",
)
@click.option(
    "--name", "names", multiple=True, metavar="NAME", help="A name in play; may be repeated."
)
@common
def map_code(call: Invocation, tokens: int, files: tuple[str, ...], names: tuple[str, ...]) -> None:
    """The most important names of the code, in so many tokens, ranked for what is in play."""
    with _query(call) as (_, asking, warnings):
        found = asking.map(tokens, files, names)
    if call.as_json:
        output.envelope(graph.map_json(found), warnings)
        return
    output.warn(warnings)
    output.say(found.text)
    if output.is_terminal():
        shown = (
            f"{found.symbols} of {found.total_symbols} names in {found.files} of "
            f"{found.total_files} files"
        )
        output.say(f"\n{found.tokens} tokens: {shown}.", dim=True)


@click.command("cycles")
@click.option("--lazy", is_flag=True, help="Imports inside functions count, too.")
@_limit(50)
@common
def cycles(call: Invocation, lazy: bool, limit: int) -> None:
    """Files that import each other in a circle."""
    with _query(call) as (_, asking, warnings):
        found = asking.cycles(limit, with_lazy=lazy)
    if call.as_json:
        output.envelope({"cycles": [graph.cycle_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    if not found and output.is_terminal():
        output.say(
            "No file imports itself through others."
            + ("" if lazy else " --lazy looks into functions, too.")
        )
    for each in found:
        steps = [f"{path}:{line}" for path, line in zip(each.path, each.lines, strict=False)]
        output.say(" → ".join([*steps, each.path[-1]]))
        if len(each.files) > len(each.path) - 1 and output.is_terminal():
            output.say(f"  {len(each.files)} files are caught in it", dim=True)


@click.command("hotspots")
@_limit(20)
@common
def hotspots(call: Invocation, limit: int) -> None:
    """Files that much depends on and that change often."""
    with _query(call) as (_, asking, warnings):
        asking.read_history()
        found = asking.hotspots(limit)
    if call.as_json:
        output.envelope({"hotspots": [graph.hotspot_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    output.table(
        ("score", "file", "used by", "commits", "lines"),
        [
            (f"{each.score:.2f}", each.path, each.dependents, each.commits, each.lines)
            for each in found
        ],
        folding=("file",),
    )


@click.command("entries")
@_limit(50)
@common
def entries(call: Invocation, limit: int) -> None:
    """Where the program is entered: commands, routes, main functions."""
    with _query(call) as (_, asking, warnings):
        found = asking.entry_points(limit)
    if call.as_json:
        output.envelope({"entryPoints": [graph.entry_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    rows = [(graph.place(each.node), each.node.qualname, each.why, each.reaches) for each in found]
    output.table(("where", "name", "why", "reaches"), rows, folding=("where", "name"))


@click.command("cochange")
@click.argument("file")
@_limit(20)
@common
def cochange(call: Invocation, file: str, limit: int) -> None:
    """Files that change together with FILE, from the history of the repository."""
    with _query(call) as (_, asking, warnings):
        asking.read_history()
        found = asking.cochange(file, limit)
    if call.as_json:
        output.envelope(
            {"file": file, "files": [graph.cochange_json(each) for each in found]}, warnings
        )
        return
    output.warn(warnings)
    output.table(
        ("confidence", "together", "file", "last"),
        [
            (f"{each.confidence:.0%}", each.together, each.path, output.moment(each.last_at))
            for each in found
        ],
        folding=("file",),
    )


@click.command("modules")
@click.argument("folders", nargs=-1)
@click.option("--describe", is_flag=True, help="Let the configured model say what they are for.")
@_limit(40)
@common
def modules(call: Invocation, folders: tuple[str, ...], describe: bool, limit: int) -> None:
    """The parts of the program: what each is for, what matters in it, what it uses."""
    with _query(call) as (memory, asking, warnings):
        if describe:
            asking.describe(memory.models, limit)
        found = asking.modules([each.rstrip("/") or "." for each in folders])[:limit]
    if call.as_json:
        output.envelope({"modules": [graph.module_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    if not output.is_terminal():
        output.table(
            ("path", "files", "symbols", "source", "purpose"),
            [(each.path, each.files, each.symbols, each.source, each.purpose) for each in found],
        )
        return
    for each in found:
        graph.say_module(each)


QUERIES: list[click.Command] = [
    impact, deps, callers, tests, symbol, map_code, modules, hotspots, cycles, entries, cochange,
]  # fmt: skip
"""In the order in which a person meets them."""


@click.command("locate")
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 1_000), default=10, show_default=True, metavar="N")
@click.option("--tests", is_flag=True, help="Look among tests too.")
@common
def locate(call: Invocation, text: str, limit: int, tests: bool) -> None:
    """Find the files that TEXT is about: an issue, an error with its traceback, a question. With -
    it is read from the standard input.
    """
    said = sys.stdin.read() if text == "-" else text
    with call.memory() as memory:
        note = memory.code.catch_up()
        found = memory.code.locate(said, limit, tests=tests)
        warnings = [*memory.warnings, *([f"{note[0].upper()}{note[1:]}."] if note else [])]
    if call.as_json:
        output.envelope({"files": [_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    if not found:
        click.echo("No file says anything of it. Try other words, or --tests.", err=True)
        return
    rows = [(f"{each.score:.2f}", each.citation, each.name, "; ".join(each.why)) for each in found]
    output.table(("score", "place", "in", "why"), rows, folding=("place", "in", "why"))


def _json(each: CodeLocation) -> dict[str, Any]:
    return {
        "path": each.path,
        "score": each.score,
        "why": list(each.why),
        "name": each.name,
        "isStale": each.is_stale,
        "firstLine": each.first_line,
        "lastLine": each.last_line,
        "citation": each.citation,
    }


@click.group("graph")
def graph_command() -> None:
    """What the code is: index it, watch it, ask what depends on what."""


@graph_command.command("index")
@click.argument("root", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--full", is_flag=True, help="Read every file again, changed or not.")
@click.option(
    "--scip",
    type=click.Path(exists=True, dir_okay=False),
    help="A SCIP index; by default ROOT/index.scip.",
)
@common
def index(call: Invocation, root: str | None, full: bool, scip: str | None) -> None:
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


@graph_command.command("status")
@click.argument("root", required=False, type=click.Path(file_okay=False))
@click.option(
    "--all", "is_all", is_flag=True, help="Every tree of the project, not only the one here."
)
@common
def status(call: Invocation, root: str | None, is_all: bool) -> None:
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


@graph_command.command("watch")
@click.argument("root", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    metavar="S",
    help="Leave after so long; without it, when stopped.",
)
@common
def watch(call: Invocation, root: str | None, seconds: float | None) -> None:
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


@graph_command.command("forget")
@click.argument("root", required=False, type=click.Path(file_okay=False))
@click.option(
    "--gone", is_flag=True, help="The indexes of all folders of the project that are gone."
)
@common
def forget(call: Invocation, root: str | None, gone: bool) -> None:
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


for _each in (*QUERIES, locate):
    graph_command.add_command(_each)


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
