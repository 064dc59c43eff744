"""Summarize each folder: its purpose, central code, neighbors and flows.

The structure alone gives a summary, so it exists without a model. A configured model writes a
better purpose, which is stored until the names in the folder change. If the model fails, the
summary from the structure stays.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from smara.codegraph.language import tables
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.memory_graph import KIND_NO, NODE_KIND_NO, Floats, Graph, Ints
from smara.codegraph.models import CodeModule, Node
from smara.codegraph.structure import file_ranks, links_of, rank
from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import from_storable, neutralize, to_storable
from smara.core.prompts import load_prompt
from smara.errors import BadReplyError
from smara.models.caller import Models
from smara.models.chat import ChatRequest
from smara.secrets.redact import redact

FetchNodes = Callable[[Collection[int]], Mapping[int, Node]]
FirstWords = Callable[[str], str]
"""What a file says of itself in its first lines, or nothing."""

MOST_CENTRAL, MOST_NEIGHBORS, MOST_FLOWS, LONGEST_FLOW = 5, 6, 2, 6
LONGEST_PURPOSE = 200
_READMES = ("README.md", "readme.md", "README.rst", "README.txt", "README")
_CALLS = KIND_NO["calls"]
_CODE_KINDS = [NODE_KIND_NO[kind] for kind in ("class", "function", "method")]


@dataclass(frozen=True, slots=True)
class ModuleSources:
    """A graph with all that the modules are read from."""

    graph: Graph
    names: Sequence[str]
    fetch: FetchNodes
    first_words: FirstWords
    paths: Sequence[str]
    """Every file of the tree, those without code included."""
    entries: Mapping[int, str]


def folder_of(path: str) -> str:
    """Return the module of a file: its folder, ``.`` for the root."""
    return path.rpartition("/")[0] or "."


def make_modules(parts: ModuleSources, only: Collection[str] = ()) -> list[CodeModule]:
    """Return the modules of a tree, the most central first.

    With ``only``, just those folders.
    """
    graph = parts.graph
    ranks, by_file = rank(links_of(graph)), file_ranks(graph)
    folders: dict[str, list[int]] = defaultdict(list)
    has_code = np.zeros(len(graph.paths), dtype=bool)
    has_code[graph.files[graph.kinds != NODE_KIND_NO["file"]]] = True
    for number in np.flatnonzero(has_code).tolist():
        folders[folder_of(graph.paths[number])].append(number)
    uses = _uses(graph)
    found = [
        (float(by_file[files].sum()), _module(parts, folder, files, ranks=ranks, uses=uses))
        for folder, files in sorted(folders.items())
        if not only or folder in only
    ]
    return [module for _, module in sorted(found, key=lambda pair: (-pair[0], pair[1].path))]


def _module(
    parts: ModuleSources,
    folder: str,
    files: list[int],
    ranks: Floats,
    uses: Mapping[str, Counter[str]],
) -> CodeModule:
    graph = parts.graph
    inside = np.flatnonzero(np.isin(graph.files, files))
    central = _central(parts, inside, ranks)
    used_by = Counter({other: counts[folder] for other, counts in uses.items() if counts[folder]})
    doors = [place for place in parts.entries if int(graph.files[place]) in set(files)]
    starts = [
        *doors,
        *(int(graph.places_of([node.no])[0]) for node in central if node.kind != "class"),
    ]
    named = parts.fetch([int(graph.nos[place]) for place in doors])
    return CodeModule(
        folder,
        _purpose(parts, folder, files, central=central),
        "structure",
        files=len(files),
        symbols=int((graph.kinds[inside] != NODE_KIND_NO["file"]).sum()),
        central=tuple(central),
        uses=tuple(_most(uses.get(folder, Counter()))),
        used_by=tuple(_most(used_by)),
        entry_points=tuple(sorted(node.label for node in named.values())),
        flows=_flows(parts, starts, ranks),
    )


def _central(parts: ModuleSources, inside: Ints, ranks: Floats) -> list[Node]:
    """Return the classes and functions that are used most, private ones last."""
    graph = parts.graph
    code = inside[np.isin(graph.kinds[inside], _CODE_KINDS)]
    worth = ranks[code] * np.array(
        [0.1 if parts.names[place].startswith("_") else 1.0 for place in code.tolist()]
    )
    chosen = code[np.lexsort((code, -worth))][:MOST_CENTRAL] if len(code) else code
    nodes = parts.fetch(graph.nos[chosen].tolist())
    return [nodes[no] for no in graph.nos[chosen].tolist() if no in nodes]


def _uses(graph: Graph) -> dict[str, Counter[str]]:
    """For each folder how many edges lead to each other folder."""
    folders = [folder_of(path) for path in graph.paths]
    pairs = np.stack([graph.files[graph.from_places], graph.files[graph.to_places]], axis=1)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    if len(pairs):
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        for (one, other), count in zip(distinct.tolist(), counts.tolist(), strict=True):
            if folders[one] != folders[other]:
                found[folders[one]][folders[other]] += count
    return found


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_NEIGHBORS]


def _flows(
    parts: ModuleSources, starts: Sequence[int], ranks: Floats
) -> tuple[tuple[str, ...], ...]:
    """Return a few ways that a call takes, each step to the callee that matters most."""
    found: list[tuple[int, ...]] = []
    for start in dict.fromkeys(starts):
        path = _flow(parts.graph, start, ranks)
        if len(path) > 2 and not any(set(path) <= set(other) for other in found):
            found.append(path)
        if len(found) == MOST_FLOWS:
            break
    nodes = parts.fetch([int(parts.graph.nos[place]) for path in found for place in path])
    return tuple(
        tuple(nodes[no].label for place in path if (no := int(parts.graph.nos[place])) in nodes)
        for path in found
    )


def _flow(graph: Graph, start: int, ranks: Floats) -> tuple[int, ...]:
    path = [start]
    while len(path) < LONGEST_FLOW:
        edges = graph.edges_out(
            graph.within(np.array([path[-1]])) if len(path) == 1 else np.array([path[-1]])
        )
        called = np.unique(graph.to_places[edges[graph.edge_kinds[edges] == _CALLS]])
        called = called[~np.isin(called, path)]
        if not len(called):
            break
        leads_on = graph.out_starts[called + 1] > graph.out_starts[called]
        path.append(int(called[np.lexsort((called, -ranks[called], ~leads_on))][0]))
    return tuple(path)


def _purpose(
    parts: ModuleSources, folder: str, files: Sequence[int], central: Sequence[Node]
) -> str:
    """Return what a folder says of itself.

    Its README, its door, its main file; else what is in it.
    """
    graph = parts.graph
    here = "" if folder == "." else f"{folder}/"
    known = set(parts.paths)
    own = [graph.paths[number] for number in files]
    tried = [f"{here}{name}" for name in (*_READMES, *tables().doors) if f"{here}{name}" in known]
    tried += [node.path for node in central] + own[:1]
    for path in dict.fromkeys(tried):
        if said := first_sentence(parts.first_words(path)):
            return said
    names = ", ".join(node.name for node in central[:3])
    return (
        f"{len(files)} "
        f"{'file' if len(files) == 1 else 'files'}{f' around {names}' if names else ''}."
    )


def first_sentence(text: str) -> str:
    """Return a text's first sentence, on one bounded line.

    >>> first_sentence("Keeps sessions. They expire.")
    'Keeps sessions.'
    """
    plain = " ".join(text.split())
    found = re.match(r"(.+?[.!?。])(?:\s|$)", plain)
    said = found[1] if found else plain
    return (
        said
        if len(said) <= LONGEST_PURPOSE
        else said[: LONGEST_PURPOSE - 1].rpartition(" ")[0] + "…"
    )


def fingerprint(graph: Graph, names: Sequence[str], folder: str) -> str:
    """Return a hash of a folder's names.

    A purpose outlives most edits of bodies.
    """
    files = [number for number, path in enumerate(graph.paths) if folder_of(path) == folder]
    inside = np.flatnonzero(np.isin(graph.files, files)).tolist()
    told = sorted(f"{graph.paths[graph.files[place]]}\x00{names[place]}" for place in inside)
    return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()[:32]


PURPOSE = "describe"
AT_ONCE = 8
_PROMPTS = Path(__file__).parent / "prompts"
_OUTPUT_TOKENS = 4_000
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Described:
    """The stored description of a module."""

    purpose: str
    flows: tuple[tuple[str, ...], ...]
    model: str | None
    fingerprint: str


class Descriptions:
    """The table ``code_modules`` of one tree."""

    def __init__(self, lookup: CodeLookup, clock: Clock) -> None:
        self._lookup = lookup
        self._clock = clock

    def all(self) -> dict[str, Described]:
        """Return what models said of folders, by path."""
        with self._lookup.database.read() as session:
            rows = session.all(
                self._lookup.sql(
                    "SELECT path, purpose, flows, model, fingerprint FROM code_modules"
                    " WHERE project_no = :project AND tree_no = ?"
                ),
                (self._lookup.tree_no,),
            )
        return {
            from_storable(path): Described(
                from_storable(purpose),
                _flows_in_reply(json.loads(flows)),
                model,
                fingerprint=fingerprint,
            )
            for path, purpose, flows, model, fingerprint in rows
        }

    def put(self, found: Mapping[str, Described]) -> None:
        """Keep what was said of some folders."""
        version = load_prompt(_PROMPTS, "describe_system").version
        with self._lookup.database.write(is_derived=True) as session:
            session.run_many(
                self._lookup.sql(
                    "INSERT INTO code_modules (project_no, tree_no, path, purpose, flows, source, "
                    "model, prompt_version, fingerprint, made_at)"
                    " VALUES (:project, ?, ?, ?, ?, 'model', ?, ?, ?, ?)"
                    " ON CONFLICT (tree_no, path) DO UPDATE SET purpose = excluded.purpose,"
                    " flows = excluded.flows, source = excluded.source, model = excluded.model,"
                    " prompt_version = excluded.prompt_version,"
                    " fingerprint = excluded.fingerprint, made_at = excluded.made_at"
                ),
                [
                    (
                        self._lookup.tree_no,
                        to_storable(path),
                        to_storable(each.purpose),
                        json.dumps(each.flows),
                        each.model,
                        version,
                        each.fingerprint,
                        self._clock.now_ms(),
                    )
                    for path, each in found.items()
                ],
            )


def with_words(
    modules: Sequence[CodeModule], said: Mapping[str, Described], prints: Mapping[str, str]
) -> list[CodeModule]:
    """Modules with what a model said of them.

    What it said of other names is told as stale.
    """
    found = []
    for module in modules:
        each = said.get(module.path)
        if each is None:
            found.append(module)
            continue
        found.append(
            replace(
                module,
                purpose=each.purpose,
                source="model",
                flows=each.flows or module.flows,
                is_stale=each.fingerprint != prints.get(module.path),
            )
        )
    return found


def describe(
    models: Models, modules: Sequence[CodeModule], prints: Mapping[str, str]
) -> dict[str, Described]:
    """Return what the model says of some modules, in one call.

    Raises ``ModelError``; what it leaves out is left out.
    """
    mark = secrets.token_hex(4)
    told = neutralize("\n\n".join(_told(module) for module in modules))
    prompt = load_prompt(_PROMPTS, "describe").render({"mark": mark, "folders": told})
    system = load_prompt(_PROMPTS, "describe_system").text
    reply = models.complete(
        ChatRequest(prompt, system, max_output_tokens=_OUTPUT_TOKENS), purpose=PURPOSE
    )
    name = models.names[0] if models.names else None
    known = {module.path for module in modules}
    return {
        path: Described(purpose, flows, name, fingerprint=prints.get(path, ""))
        for path, purpose, flows in read_reply(reply.text)
        if path in known
    }


def read_reply(text: str) -> Iterable[tuple[str, str, tuple[tuple[str, ...], ...]]]:
    """Parse path, purpose and flows of each folder in a reply.

    Raises ``BadReplyError`` when it is no such object.
    """
    found = _OBJECT.search(text)
    try:
        folders = json.loads(found[0])["folders"] if found else None
    except (ValueError, KeyError, TypeError, RecursionError):
        folders = None
    if not isinstance(folders, list):
        raise BadReplyError(
            "The model did not answer with the JSON it was asked for. Ask again.",
            reason="unreadable",
        )
    read = []
    for each in folders:
        if (
            isinstance(each, dict)
            and isinstance(each.get("path"), str)
            and isinstance(each.get("purpose"), str)
        ):
            purpose = redact(" ".join(each["purpose"].split())).text[:LONGEST_PURPOSE]
            if purpose:
                read.append((each["path"].strip(), purpose, _flows_in_reply(each.get("flows"))))
    if not read:
        log.warning("modules.undescribed", reason="empty")
    return read


def _flows_in_reply(given: Any) -> tuple[tuple[str, ...], ...]:
    flows = given if isinstance(given, list | tuple) else ()
    lists = [
        flow[:LONGEST_FLOW] for flow in flows if isinstance(flow, list | tuple) and len(flow) > 1
    ]
    return tuple(
        tuple(redact(str(name)[:LONGEST_PURPOSE]).text for name in flow)
        for flow in lists[:MOST_FLOWS]
    )


def _told(module: CodeModule) -> str:
    lines = [
        f"folder {module.path} ({module.files} files, {module.symbols} names)",
        f"says: {module.purpose}",
    ]
    lines += [
        f"defines: {node.signature or node.kind + ' ' + node.qualname} in {node.path}"
        + (f" ({node.doc.splitlines()[0][:120]})" if node.doc else "")
        for node in module.central
    ]
    lines += [f"uses: {', '.join(path for path, _ in module.uses)}"] if module.uses else []
    lines += [f"used by: {', '.join(path for path, _ in module.used_by)}"] if module.used_by else []
    lines += [f"entered at: {', '.join(module.entry_points)}"] if module.entry_points else []
    lines += [f"calls: {' -> '.join(flow)}" for flow in module.flows]
    return "\n".join(lines)
