"""Define `smara code`: index the code and query its graph."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from smara.codegraph.models import IndexReport
from smara.memory import Memory
from smara.surfaces.cli import output, render
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    limit_option,
    opening,
    text_or_input,
    with_memory,
)
from smara.texts import cochange_json, node_json, place, reached_json

_TARGET = click.argument("target")
_FEW = 4
_limit = partial(limit_option, most=10_000, help="Show at most N.")


@contextmanager
def _caught_up(call: Invocation) -> Iterator[Memory]:
    """Open the memory and index what was saved since; warn if that is not all."""
    with call.memory() as memory:
        if note := memory.code.catch_up():
            call.warnings.append(f"{note[0].upper()}{note[1:]}.")
        yield memory


_with_code = opening(_caught_up)


def _walk(name: str, verb: str, words: tuple[str, str], depth: int, help: str) -> click.Command:
    """Return a command that walks the graph from TARGET by a query of ``CodeQueries``."""

    @_TARGET
    @click.option(
        "--depth",
        type=click.IntRange(1, 20),
        default=depth,
        show_default=True,
        metavar="N",
        help="The number of steps, up to 20.",
    )
    @_limit(200)
    @_with_code
    def walk(
        memory: Memory, target: str, depth: int, limit: int, picture: str | None = None
    ) -> Reply:
        asking = memory.code.asking()
        result = getattr(asking, verb)(target, depth, limit)
        if picture:
            drawn = asking.draw(result, picture)
            yield {"picture": picture, "text": drawn}
            output.say(drawn)
            return
        yield {
            "targets": [node_json(node) for node in result.targets],
            "depth": result.depth,
            "total": result.total,
            "files": result.files,
            "tests": result.tests,
            "byDepth": {str(depth): n for depth, n in result.by_depth.items()},
            "isCut": result.is_cut,
            "reached": [reached_json(each) for each in result.reached],
            "overrides": [node_json(node) for node in result.overrides],
            "overriddenBy": [node_json(node) for node in result.overridden_by],
        }
        render.print_walk(result, *words, is_backward=verb != "deps")

    if verb == "impact":
        walk = click.option(
            "--picture",
            type=click.Choice(["dot", "mermaid"]),
            help="Draw a graph for Graphviz or Markdown instead.",
        )(walk)
    return click.command(name, help=help)(walk)


impact = _walk(
    "impact",
    "impact",
    ("depends on it", "depend on it"),
    depth=3,
    help="""Show what may break when TARGET changes, and why.

    TARGET is a file, a folder, a name, PATH:NAME or PATH:LINE.
    """,
)
deps = _walk(
    "deps",
    "deps",
    ("is used by it", "are used by it"),
    depth=1,
    help="List what TARGET depends on.",
)
callers = _walk(
    "callers", "callers", ("calls it", "call it"), depth=1, help="List the callers of TARGET."
)
tests = _walk(
    "tests",
    "tests_for",
    ("tests it", "test it"),
    depth=3,
    help="List the tests that reach TARGET, nearest first.",
)


@click.command("symbol")
@_TARGET
@_with_code
def symbol(memory: Memory, target: str) -> Reply:
    """Show TARGET: its signature, callers, tests and memories."""
    card = memory.code.asking().symbol(target)
    links = memory.code_knowledge.about([card.node])
    node = card.node
    yield {
        "name": node.label,
        "kind": node.kind,
        "path": node.path,
        "qualname": node.qualname,
        "firstLine": node.first_line,
        "lastLine": node.last_line,
        "signature": node.signature,
        "doc": node.doc,
        "isStale": node.is_stale,
        "members": [node_json(each) for each in card.members],
        "usedBy": [reached_json(each) for each in card.callers],
        "uses": [reached_json(each) for each in card.calls],
        "tests": [reached_json(each) for each in card.tests],
        "dependents": card.dependents,
        "commits": card.commits,
        "changesWith": [cochange_json(each) for each in card.changes_with],
        "known": [
            {
                "kind": link.kind,
                "memoryId": link.memory_id,
                "id": link.short_id,
                "type": link.type,
                "content": link.text,
                "path": link.path,
                "symbol": link.symbol,
                "verdict": link.verdict,
                "hedge": link.hedge,
            }
            for link in links
        ],
    }
    render.print_card(card, links)


@click.command("map")
@click.option(
    "--tokens",
    type=click.IntRange(1, 200_000),
    default=1_024,
    show_default=True,
    help="The budget of tokens.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="A file or folder you work on; may be repeated.",
)
@click.option(
    "--name", "names", multiple=True, metavar="NAME", help="A name you work on; may be repeated."
)
@_with_code
def map_code(memory: Memory, tokens: int, files: tuple[str, ...], names: tuple[str, ...]) -> Reply:
    """Print the most important names of the code within a budget."""
    found = memory.code.asking().map(tokens, files, names)
    yield {
        "text": found.text,
        "tokens": found.tokens,
        "budget": found.budget,
        "files": found.files,
        "symbols": found.symbols,
        "totalFiles": found.total_files,
        "totalSymbols": found.total_symbols,
    }
    output.say(found.text)
    if output.is_terminal():
        shown = (
            f"{found.symbols} of {found.total_symbols} names in {found.files} of "
            f"{found.total_files} files"
        )
        output.say(f"\n{found.tokens} tokens: {shown}.", dim=True)


@click.command("cycles")
@click.option("--lazy", is_flag=True, help="Count imports inside functions, too.")
@_limit(50)
@_with_code
def cycles(memory: Memory, lazy: bool, limit: int) -> Reply:
    """List files that import each other in a cycle."""
    found = memory.code.asking().cycles(limit, with_lazy=lazy)
    yield {
        "cycles": [
            {"path": list(each.path), "lines": list(each.lines), "files": list(each.files)}
            for each in found
        ]
    }
    if not found and output.is_terminal():
        output.say(
            "No import cycles found."
            + ("" if lazy else " --lazy also counts imports inside functions.")
        )
    for each in found:
        steps = [f"{path}:{line}" for path, line in zip(each.path, each.lines, strict=False)]
        output.say(" → ".join([*steps, each.path[-1]]))
        if len(each.files) > len(each.path) - 1 and output.is_terminal():
            output.say(f"  {len(each.files)} files are part of it", dim=True)


@click.command("hotspots")
@_limit(20)
@_with_code
def hotspots(memory: Memory, limit: int) -> Reply:
    """List files that many others depend on and that change often."""
    asking = memory.code.asking()
    asking.history.read()
    found = asking.hotspots(limit)
    yield {
        "hotspots": [
            {
                "path": each.path,
                "score": each.score,
                "centrality": each.centrality,
                "churn": each.churn,
                "usedByFiles": each.dependents,
                "commits": each.commits,
                "lines": each.lines,
            }
            for each in found
        ]
    }
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
@_with_code
def entries(memory: Memory, limit: int) -> Reply:
    """List entry points: commands, routes, main functions."""
    found = memory.code.asking().entry_points(limit)
    yield {
        "entryPoints": [
            node_json(each.node) | {"why": each.why, "reaches": each.reaches} for each in found
        ]
    }
    output.table(
        ("where", "name", "why", "reaches"),
        [(place(each.node), each.node.qualname, each.why, each.reaches) for each in found],
        folding=("where", "name"),
        wide=("reaches",),
    )


@click.command("cochange")
@click.argument("file")
@_limit(20)
@_with_code
def cochange(memory: Memory, file: str, limit: int) -> Reply:
    """List files that change together with FILE, from git history."""
    asking = memory.code.asking()
    asking.history.read()
    found = asking.cochange(file, limit)
    yield {"file": file, "files": [cochange_json(each) for each in found]}
    output.table(
        ("confidence", "together", "file", "last"),
        [
            (f"{each.confidence:.0%}", each.together, each.path, output.when(each.last_at))
            for each in found
        ],
        folding=("file",),
    )


@click.command("modules")
@click.argument("folders", nargs=-1)
@click.option("--describe", is_flag=True, help="Let the configured model describe them.")
@_limit(40)
@_with_code
def modules(memory: Memory, folders: tuple[str, ...], describe: bool, limit: int) -> Reply:
    """List the modules: their purpose, main names and dependencies."""
    asking = memory.code.asking()
    if describe:
        asking.describe(memory.models, limit)
    found = asking.modules([each.rstrip("/") or "." for each in folders])[:limit]
    yield {
        "modules": [
            {
                "path": each.path,
                "purpose": each.purpose,
                "source": each.source,
                "isStale": each.is_stale,
                "files": each.files,
                "symbols": each.symbols,
                "central": [node_json(node) for node in each.central],
                "uses": [{"path": path, "edges": count} for path, count in each.uses],
                "usedBy": [{"path": path, "edges": count} for path, count in each.used_by],
                "entryPoints": list(each.entry_points),
                "flows": [list(flow) for flow in each.flows],
            }
            for each in found
        ]
    }
    if not output.is_terminal():
        output.table(
            ("path", "files", "symbols", "source", "purpose"),
            [(each.path, each.files, each.symbols, each.source, each.purpose) for each in found],
        )
        return
    for each in found:
        output.say(f"{each.path}", bold=True)
        stale = " (described for older code)" if each.is_stale else ""
        output.say(output.paragraph(f"{each.purpose}{stale}", "  ", "  "))
        for name, value in [
            ("names", ", ".join(node.qualname for node in each.central[:_FEW])),
            ("uses", ", ".join(path for path, _ in each.uses)),
            ("used by", ", ".join(path for path, _ in each.used_by)),
            ("entries", ", ".join(each.entry_points[:_FEW])),
            *(
                ("flow", " → ".join(name.rpartition(":")[2] for name in flow))
                for flow in each.flows
            ),
        ]:
            if value:
                output.say(output.paragraph(value, f"  {name:<8}", " " * 10), dim=name != "names")
        output.say()


QUERIES: list[click.Command] = [
    impact, deps, callers, tests, symbol, map_code, modules, hotspots, cycles, entries, cochange,
]  # fmt: skip
"""The questions in the order of their use."""


@click.command("locate")
@click.argument("text")
@limit_option(10, 1_000)
@click.option("--tests", is_flag=True, help="Search tests, too.")
@_with_code
def locate(memory: Memory, text: str, limit: int, tests: bool) -> Reply:
    """Find the files that TEXT is about.

    TEXT is an issue, an error with its traceback or a question; - reads it from
    standard input.
    """
    found = memory.code.locate(text_or_input(text) or "", limit, tests=tests)
    yield {
        "files": [
            {
                "path": each.path,
                "score": each.score,
                "why": list(each.why),
                "name": each.name,
                "isStale": each.is_stale,
                "firstLine": each.first_line,
                "lastLine": each.last_line,
                "citation": each.citation,
            }
            for each in found
        ]
    }
    if not found:
        click.echo("No files match. Try other words, or --tests.", err=True)
        return
    output.table(
        ("score", "place", "in", "why"),
        [(f"{each.score:.2f}", each.citation, each.name, "; ".join(each.why)) for each in found],
        folding=("place", "in", "why"),
        wide=("in",),
    )


code_command = click.Group(
    "code", commands=[*QUERIES, locate], help="Index the code and query its dependencies."
)


@code_command.command("index")
@click.argument("root", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--full", is_flag=True, help="Read all files again, changed or not.")
@click.option(
    "--scip",
    type=click.Path(exists=True, dir_okay=False),
    help="A SCIP index; by default ROOT/index.scip.",
)
@common
def index(call: Invocation, root: str | None, full: bool, scip: str | None) -> Reply:
    """Index the code in ROOT, by default the current repository.

    Only changed files are read.
    """
    with call.memory() as memory, output.bar("Indexing") as progress:
        report = memory.code.index(root, full=full, progress=progress, scip=scip)
        status = memory.code.status(root)
    yield {"root": status.root, **_report_json(report)}
    output.say(f"{status.root}: {_summary(report)}")
    output.say(
        f"{report.files:,} files, {report.nodes:,} nodes, {report.edges:,} edges, "
        f"{report.chunks:,} chunks."
    )
    if report.skipped:
        output.say(f"Skipped: {_counted(report.skipped)}.")


@code_command.command("status")
@click.argument("root", required=False, type=click.Path(file_okay=False))
@click.option("--all", "is_all", is_flag=True, help="Show all indexed folders of the project.")
@with_memory
def status(memory: Memory, root: str | None, is_all: bool) -> Reply:
    """Show the state of the code index, and what was skipped."""
    memory.code.tree(root or os.curdir)  # an incomplete language is refused by name
    found = memory.code.trees() if is_all else [memory.code.status(root)]
    shown = [
        {
            "root": each.root,
            "state": each.state,
            "note": each.note,
            "branch": each.branch,
            "commit": each.commit,
            "files": each.files,
            "nodes": each.nodes,
            "edges": each.edges,
            "chunks": each.chunks,
            "staleFiles": each.stale_files,
            "skipped": each.skipped,
            "languages": each.languages,
            "indexedAt": each.indexed_at,
            "revision": each.revision,
        }
        for each in found
    ]
    yield {"trees": shown} if is_all else shown[0]
    for each in found:
        gone = "" if os.path.isdir(each.root) else " (gone; run `smara code forget --gone`)"
        facts = [
            ("root", each.root + gone),
            ("state", each.state + (f" ({each.note})" if each.note else "")),
        ]
        if each.state != "none":
            facts += [
                ("branch", f"{each.branch or '(none)'} {(each.commit or '')[:12]}".strip()),
                ("files", f"{each.files:,} ({_counted(each.languages)})"),
                ("graph", f"{each.nodes:,} nodes, {each.edges:,} edges"),
                ("chunks", f"{each.chunks:,}"),
                ("skipped", _counted(each.skipped) or "nothing"),
            ]
        output.facts(facts)
    if not found:
        output.say("No code is indexed in this project. Run `smara code index`.")


@code_command.command("watch")
@click.argument("root", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    metavar="S",
    help="Exit after so long; by default run until stopped.",
)
@common
def watch(call: Invocation, root: str | None, seconds: float | None) -> Reply:
    """Index the code and every change as it is saved, until stopped."""
    stop = threading.Event()
    seen: list[IndexReport] = []
    timer = None if seconds is None else threading.Timer(seconds, stop.set)
    with call.memory() as memory:

        def tell(report: IndexReport) -> None:
            seen.append(report)
            if not call.as_json:
                output.say(_summary(report))

        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            memory.code.watch(stop, root, tell)
        finally:
            if timer is not None:
                timer.cancel()
    yield {"updates": [_report_json(report) for report in seen]}


@code_command.command("forget")
@click.argument("root", required=False, type=click.Path(file_okay=False))
@click.option(
    "--gone", is_flag=True, help="Remove the indexes of all deleted folders of the project."
)
@with_memory
def forget(memory: Memory, root: str | None, gone: bool) -> Reply:
    """Remove the index of ROOT, by default of the current repository.

    The files themselves are not touched.
    """
    where = root or memory.code.status().root
    forgotten = memory.code.forget_gone() if gone else [where] if memory.code.forget(where) else []
    yield {"forgotten": forgotten}
    output.print_lines(f"Removed the index of {each}." for each in forgotten)
    if not forgotten:
        output.say(
            "No indexed folder of this project is gone."
            if gone
            else f"{where} is not indexed in this project."
        )


def _summary(report: IndexReport) -> str:
    return (
        f"{report.indexed:,} indexed, {report.removed:,} removed, {report.unchanged:,} unchanged "
        f"in {report.seconds:.2f} s."
    )


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{count:,} {reason.replace('_', ' ')}" for reason, count in sorted(counts.items())
    )


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
