"""Summarize each folder: its purpose, central code, neighbors and flows.

The structure alone gives a summary, so it exists without a model. A configured model writes a
better purpose, which is stored until the names in the folder change. If the model fails, the
summary from the structure stays.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smara.codegraph.codec import KIND_NO, NODE_KIND_NO
from smara.codegraph.language import tables
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.memory_graph import FetchNodes, Floats, Graph
from smara.codegraph.models import CodeModule, Node
from smara.codegraph.structure import file_ranks, links_of, rank
from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import from_storable, neutralize, to_storable
from smara.core.items import grouped
from smara.core.prompts import load_prompt
from smara.core.startup.record import dataclass, replace
from smara.core.startup.regex import re, regex
from smara.errors import BadReplyError
from smara.models.caller import Models
from smara.models.chat import ChatRequest, list_schema
from smara.secrets.redact import redact

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
    first_words: Callable[[str], str]
    """What a file says of itself in its first lines, or nothing."""
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
    with_code = np.unique(graph.files[graph.kinds != NODE_KIND_NO["file"]]).tolist()
    folders = grouped((folder_of(graph.paths[number]), number) for number in with_code)
    # How many edges lead from each folder to each other one.
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    names = [folder_of(path) for path in graph.paths]
    pairs = np.stack([graph.files[graph.from_places], graph.files[graph.to_places]], axis=1)
    if len(pairs):
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        for (one, other), count in zip(distinct.tolist(), counts.tolist(), strict=True):
            if names[one] != names[other]:
                uses[names[one]][names[other]] += count
    chosen = [folder for folder in sorted(folders) if not only or folder in only]
    chosen.sort(key=lambda folder: -float(by_file[folders[folder]].sum()))
    return [_module(parts, folder, folders[folder], ranks=ranks, uses=uses) for folder in chosen]


def _module(
    parts: ModuleSources,
    folder: str,
    files: list[int],
    ranks: Floats,
    uses: Mapping[str, Counter[str]],
) -> CodeModule:
    graph = parts.graph
    inside = np.flatnonzero(np.isin(graph.files, files))
    # The classes and functions that are used most, private ones last.
    code = inside[np.isin(graph.kinds[inside], _CODE_KINDS)]
    is_private = [parts.names[place].startswith("_") for place in code.tolist()]
    worth = ranks[code] * np.where(is_private, 0.1, 1.0)
    best = graph.nos[code[np.lexsort((code, -worth))][:MOST_CENTRAL]].tolist()
    nodes = parts.fetch(best)
    central = [nodes[no] for no in best if no in nodes]
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


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_NEIGHBORS]


def _flows(
    parts: ModuleSources, starts: Sequence[int], ranks: Floats
) -> tuple[tuple[str, ...], ...]:
    """Return a few ways that a call takes, each step to the callee that matters most."""
    graph = parts.graph
    flows: list[list[int]] = []
    for start in dict.fromkeys(starts):
        path, last = [start], graph.within(np.array([start]))
        while len(path) < LONGEST_FLOW:
            edges = graph.edges_out(last)
            called = np.unique(graph.to_places[edges[graph.edge_kinds[edges] == _CALLS]])
            called = called[~np.isin(called, path)]
            if not len(called):
                break
            leads_on = graph.out_starts[called + 1] > graph.out_starts[called]
            last = called[np.lexsort((called, -ranks[called], ~leads_on))][:1]
            path.append(int(last[0]))
        if len(path) > 2 and not any(set(path) <= set(other) for other in flows):
            flows.append(path)
        if len(flows) == MOST_FLOWS:
            break
    nos = [graph.nos[path].tolist() for path in flows]
    nodes = parts.fetch([no for path in nos for no in path])
    return tuple(tuple(nodes[no].label for no in path if no in nodes) for path in nos)


def _purpose(
    parts: ModuleSources, folder: str, files: Sequence[int], central: Sequence[Node]
) -> str:
    """Return what a folder says of itself.

    Its README, its door, its main file; else what is in it.
    """
    graph = parts.graph
    here = "" if folder == "." else f"{folder}/"
    paths = set(parts.paths)
    tried = [path for name in (*_READMES, *tables().doors) if (path := f"{here}{name}") in paths]
    tried += [node.path for node in central] + [graph.paths[number] for number in files[:1]]
    for path in dict.fromkeys(tried):
        if sentence := first_sentence(parts.first_words(path)):
            return sentence
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
    match = re.match(r"(.+?[.!?。])(?:\s|$)", plain)
    sentence = match[1] if match else plain
    cut = sentence[: LONGEST_PURPOSE - 1].rpartition(" ")[0]
    return sentence if len(sentence) <= LONGEST_PURPOSE else f"{cut}…"


def fingerprint(graph: Graph, names: Sequence[str], folder: str) -> str:
    """Return a hash of a folder's names.

    A purpose outlives most edits of bodies.
    """
    files = [number for number, path in enumerate(graph.paths) if folder_of(path) == folder]
    inside = np.flatnonzero(np.isin(graph.files, files)).tolist()
    lines = sorted(f"{graph.paths[graph.files[place]]}\x00{names[place]}" for place in inside)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:32]


PURPOSE = "describe"
AT_ONCE = 8
_PROMPTS = Path(__file__).parent / "prompts"
_OUTPUT_TOKENS = 4_000
_SCHEMA = list_schema(
    {
        "path": {"type": "string"},
        "purpose": {"type": "string"},
        "flows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    },
    "folders",
)
_OBJECT = regex(r"\{.*\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Described:
    """The stored description of a module."""

    purpose: str
    flows: tuple[tuple[str, ...], ...]
    model: str | None
    fingerprint: str


@dataclass(frozen=True, eq=False)
class Descriptions:
    """The table ``code_modules`` of one tree."""

    lookup: CodeLookup
    clock: Clock

    def all(self) -> dict[str, Described]:
        """Return what models said of folders, by path."""
        rows = self.lookup.ask(
            self.lookup.rows,
            "SELECT path, purpose, flows, model, fingerprint FROM code_modules"
            " WHERE project_no = :project AND tree_no = ?",
            self.lookup.tree_no,
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

    def put(self, descriptions: Mapping[str, Described]) -> None:
        """Store the descriptions of some folders."""
        version = load_prompt(_PROMPTS, "describe_system").version
        with self.lookup.database.write(is_derived=True) as session:
            session.run_many(
                self.lookup.sql(
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
                        self.lookup.tree_no,
                        to_storable(path),
                        to_storable(each.purpose),
                        json.dumps(each.flows),
                        each.model,
                        version,
                        each.fingerprint,
                        self.clock.now_ms(),
                    )
                    for path, each in descriptions.items()
                ],
            )


def with_words(
    modules: Sequence[CodeModule], stored: Mapping[str, Described], prints: Mapping[str, str]
) -> list[CodeModule]:
    """Modules with a model's descriptions.

    One of other names is marked as stale.
    """
    return [
        module
        if (described := stored.get(module.path)) is None
        else replace(
            module,
            purpose=described.purpose,
            source="model",
            flows=described.flows or module.flows,
            is_stale=described.fingerprint != prints.get(module.path),
        )
        for module in modules
    ]


def describe(
    models: Models, modules: Sequence[CodeModule], prints: Mapping[str, str]
) -> dict[str, Described]:
    """Return what the model says of some modules, in one call.

    Raises ``ModelError``; what it leaves out is left out.
    """
    mark = secrets.token_hex(4)
    folders = neutralize("\n\n".join(map(_facts, modules)))
    prompt = load_prompt(_PROMPTS, "describe").render({"mark": mark, "folders": folders})
    system = load_prompt(_PROMPTS, "describe_system").text
    reply = models.complete(
        ChatRequest(prompt, system, max_output_tokens=_OUTPUT_TOKENS, schema=_SCHEMA),
        purpose=PURPOSE,
    )
    name = models.names[0] if models.names else None
    paths = {module.path for module in modules}
    return {
        path: Described(purpose, flows, name, fingerprint=prints.get(path, ""))
        for path, purpose, flows in read_reply(reply.text)
        if path in paths
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
        ) and (purpose := redact(" ".join(each["purpose"].split())).text[:LONGEST_PURPOSE]):
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


def _facts(module: CodeModule) -> str:
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
