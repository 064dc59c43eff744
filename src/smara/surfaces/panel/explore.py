"""Read the timeline, the context, the map and the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from smara.browse.models import ModuleCoverage, ModuleGroup
from smara.core.startup.regex import regex
from smara.errors import NotFoundError, SmaraError
from smara.memory import Memory
from smara.surfaces.http.shape import Shaper
from smara.surfaces.panel.atlas import lay_out
from smara.surfaces.panel.graph import draw
from smara.surfaces.panel.page import ROWS, Facts, PageSpec, Query, number

_MOST_MESSAGES = 40
_SHORT = 1_000
_MODULES, _MOST_GROUPS = 16, 96
_SUMS = ("files", "covered", "memories", "traps", "decisions", "stale")
_MOST_REACHED = 120
_MOST_IN_A_COLUMN = 24
_MOST_TASKS = 60
_HITS = 20
_MOST_TEXT = 4_000
_CITED = regex(r"\[(\d{1,3})\]")


def timeline(memory: Memory, query: Query) -> Facts:
    """Read the sessions, newest first, and what the arms show."""
    offset = number(query, "offset")
    shape = Shaper(memory).shape
    lines = memory.browse.timeline(limit=ROWS + 1, offset=offset)
    return {
        "sessions": shape(lines[:ROWS]),
        "offset": offset,
        "next": offset + ROWS if len(lines) > ROWS else None,
        "arms": shape(memory.browse.arms()),
        "receipts": shape(memory.moments.totals()),
    }


def one_session(memory: Memory, query: Query) -> Facts:
    """Read a session: said, done, learned, told and used."""
    thread = memory.threads.get(query["id"])
    after = number(query, "after")
    shape = Shaper(memory).shape
    messages = memory.messages.list(thread_id=thread.id, after=after, limit=_MOST_MESSAGES)
    try:
        work: Any = shape(memory.behavior.session(thread.id))
        noticed = shape(memory.behavior.noticed(thread.id))
    except NotFoundError:  # a conversation that no hook watched
        work, noticed = None, []
    learned = memory.memories.list(state="all", session_id=thread.id, limit=ROWS)
    receipts = memory.moments.receipts(session_id=thread.id, limit=ROWS)
    return {
        "thread": shape(thread),
        "messages": [_cut(each) for each in shape(messages)],
        "after": after,
        "next": messages[-1].seq if len(messages) == _MOST_MESSAGES else None,
        "work": work,
        "noticed": noticed[:ROWS],
        "learned": shape(learned.memories),
        "observations": shape(memory.observations.list(thread_id=thread.id, limit=ROWS)),
        "receipts": [
            {**shape(each), "savedTokens": each.saved_tokens, "isUsed": each.is_used}
            for each in receipts
        ],
    }


def _cut(message: Facts) -> Facts:
    content = message["content"]
    return {**message, "content": content[:_SHORT], "length": len(content), "parts": []}


def context(memory: Memory, query: Query) -> Facts:
    """Read what fills the window of a thread, and what comes next."""
    threads = memory.threads.list(limit=_HITS)
    name = query.get("thread", "") or (threads[0].id if threads else "")
    shape = Shaper(memory).shape
    facts: Facts = {"threads": shape(threads), "thread": name, "window": None, "bar": []}
    if not name:
        return facts
    window = memory.browse.window(name)
    shaped = shape(window)
    shaped["sections"] = [
        {**each, "text": str(each["text"])[:_MOST_TEXT]} for each in window.sections
    ]
    parts = [(each["name"], int(each["tokens"])) for each in window.sections if not each["isLate"]]
    parts += [("messages", window.message_tokens)]
    parts += [(each["name"], int(each["tokens"])) for each in window.sections if each["isLate"]]
    return {
        **facts,
        "window": shaped,
        "bar": _bar(parts),
        "parts": [
            {"name": name, "tokens": tokens, "share": round(tokens / max(1, window.tokens), 4)}
            for name, tokens in parts
        ],
        "observations": shape(memory.observations.active(name)[-ROWS:]),
        "buffered": shape(memory.observations.list(thread_id=name, state="buffered", limit=ROWS)),
    }


def _bar(parts: Sequence[tuple[str, int]], width: int = 1_000) -> list[Facts]:
    """Return the pieces of a bar, each with its place and its width."""
    total = max(1, sum(tokens for _, tokens in parts))
    pieces, left = [], 0.0
    for name, tokens in parts:
        wide = width * tokens / total
        pieces.append(
            {"name": name, "tokens": tokens, "x": round(left, 1), "width": round(wide, 1)}
        )
        left += wide
    return pieces


def code_map(memory: Memory, query: Query) -> Facts:
    """Read the modules, or the folders of many, and their coverage."""
    shape = Shaper(memory).shape
    symbol, module = query.get("symbol", "").strip(), query.get("module", "")
    under = query.get("under", "").strip("/")
    coverage = memory.browse.coverage()
    is_folded = not module and (bool(under) or len(coverage) > _MODULES)
    groups = memory.browse.groups(under) if is_folded else []
    shown = [] if is_folded else [each for each in coverage if module in ("", each.path)]
    facts: Facts = {
        "symbol": symbol,
        "module": module,
        "under": under,
        "modules": [_module(shape, each) for each in shown],
        "groups": [_group(shape, each) for each in groups[:_MOST_GROUPS]],
        "total": len(coverage),
        "count": sum(len(each.modules) for each in groups) or len(shown),
        "note": memory.code.note,
        "graph": None if module or symbol else _module_graph(under, groups, shown),
        "known": shape(memory.memories.list(module=module, limit=_HITS).memories) if module else [],
        "impact": None,
        "impactGraph": None,
        "problem": "",
    }
    if symbol:
        try:
            walk = memory.code.asking().impact(symbol, limit=_MOST_REACHED)
        except SmaraError as error:
            return {**facts, "problem": str(error)}
        facts["impact"] = shape(walk)
        facts["impactGraph"] = _impact_graph(walk)
    return facts


def code_graph(memory: Memory, query: Query) -> Facts:
    """Read the whole code graph: its size, on demand its places."""
    graph = memory.browse.code_graph()
    drawn = lay_out(graph)
    return {
        "total": len(graph.names),
        "links": len(graph.links),
        "leftOut": graph.left_out,
        "modules": drawn["modules"],
        # Megabytes of a large repository: the script of the page asks for them.
        "graph": drawn if query.get("full") else None,
    }


def _module(shape: Callable[[Any], Any], module: ModuleCoverage) -> Facts:
    return {**shape(module), "share": round(module.share, 3)}


def _group(shape: Callable[[Any], Any], group: ModuleGroup) -> Facts:
    """Return a folder with its sums and the first of its modules."""
    sums = {name: group.total(name) for name in _SUMS}
    return {
        "path": group.path,
        "isModule": group.is_module,
        "count": len(group.modules),
        **sums,
        "share": round(sums["covered"] / max(1, sums["files"]), 3),
        "modules": [_module(shape, each) for each in group.modules[:_MODULES]],
    }


def _module_graph(
    under: str, groups: Sequence[ModuleGroup], modules: Sequence[ModuleCoverage]
) -> Facts | None:
    """Draw folders or modules, each with the two that it uses most."""
    nodes: list[Facts] = [
        {
            "name": each.path,
            "label": each.path.removeprefix(under and f"{under}/"),
            "href": f"/ui/map?{'module' if each.is_module else 'under'}={quote(each.path)}",
            "tone": _tone(each.total("traps"), each.total("covered")),
        }
        for each in groups[:_MODULES]
    ]
    nodes += [
        {"name": each.path, "label": each.path, "tone": _tone(each.traps, each.share)}
        for each in modules
    ]
    uses = [(each.path, each.uses) for each in groups]
    uses += [(each.path, each.uses) for each in modules]
    edges = [(path, used) for path, most in uses for used, _ in most[:2]]
    return draw(nodes, edges) if len(nodes) > 1 else None


def _tone(traps: int, share: float) -> str:
    return "bad" if traps else "good" if share else ""


def _impact_graph(walk: Any) -> Facts:
    """Return a symbol and all it reaches, by their distance, as a drawing."""
    first = walk.targets[0]
    nodes = [{"name": "target", "label": _label(first), "link": first.label, "tone": "warn"}]
    columns, edges = {"target": 0}, []
    names: dict[int, str] = {each.no: "target" for each in walk.targets}
    counts: dict[int, int] = {}
    for reached in walk.reached:
        counts[reached.depth] = counts.get(reached.depth, 0) + 1
        if counts[reached.depth] > _MOST_IN_A_COLUMN or reached.node.no in names:
            continue
        name = str(reached.node.no)
        names[reached.node.no] = name
        tone = "good" if reached.is_test else ""
        node = reached.node
        nodes.append({"name": name, "label": _label(node), "link": node.label, "tone": tone})
        columns[name] = reached.depth
        before = reached.path[-2].node.no if len(reached.path) > 1 else None
        edges.append((names.get(before, "target") if before is not None else "target", name))
    return draw(nodes, edges, columns)


def _label(node: Any) -> str:
    return str(node.path if node.kind == "file" else node.qualname)


def tasks(memory: Memory, query: Query) -> Facts:
    """Read the tasks as a board and as a graph."""
    shape = Shaper(memory).shape
    open_tasks = memory.tasks.list(status="open", limit=200).tasks
    running = memory.tasks.list(status="in_progress", limit=ROWS).tasks
    ready = {task.id for task in memory.tasks.ready(limit=200).tasks}
    linked = [task for task in (*running, *open_tasks) if task.dependencies]
    needed = {each.depends_on for task in linked for each in task.dependencies}
    around = [
        task for task in (*running, *open_tasks) if task.dependencies or task.short_id in needed
    ][:_MOST_TASKS]
    return {
        "columns": {
            "ready": shape([task for task in open_tasks if task.id in ready][:ROWS]),
            "inProgress": shape(running),
            "blocked": shape([task for task in open_tasks if task.id not in ready][:ROWS]),
            "closed": shape(memory.tasks.list(status="closed", limit=20).tasks),
        },
        "totals": shape(memory.tasks.totals()),
        "graph": draw(
            [
                {
                    "name": task.short_id,
                    "label": task.title,
                    "tone": "good" if task.id in ready else "warn" if task.holder else "",
                }
                for task in around
            ],
            [
                (each.depends_on, each.task)
                for task in around
                for each in task.dependencies
                if each.type != "related"
            ],
        )
        if around
        else None,
    }


def search(memory: Memory, query: Query) -> Facts:
    """Read a search with its stages, an answer, or a miss."""
    words, record = query.get("q", "").strip(), query.get("why_not", "").strip()
    facts: Facts = {
        "q": words,
        "record": record,
        "asks": bool(query.get("ask")),
        "answer": None,
        "reply": None,
        "miss": None,
        "isOffline": memory.models.is_offline,
    }
    if not words:
        return facts
    shape = Shaper(memory).shape
    answer = memory.search(words, limit=_HITS)
    facts["answer"] = _lean_hits(shape(answer))
    facts["funnel"] = _funnel(facts["answer"], answer.trace.candidates)
    if facts["asks"]:
        reply = shape(memory.browse.ask(words))
        facts["reply"] = {**reply, "pieces": _pieces(reply["text"])}
    if record:
        facts["miss"] = shape(memory.browse.why_not(words, record, limit=_HITS))
    return facts


def _lean_hits(answer: Facts) -> Facts:
    """Return an answer whose texts are cut, so that no page is heavy."""
    return {
        **answer,
        **{
            name: [{**hit, "content": hit["content"][:_SHORT]} for hit in answer[name]]
            for name in ("results", "nearest")
        },
    }


def _funnel(answer: Mapping[str, Any], candidates: int) -> list[Facts]:
    """Return how many records each stage left."""
    trace = answer["trace"]
    stages = [
        ("read", trace["postings"]),
        ("candidates", candidates),
        ("relevant", answer["totalHits"]),
        ("shown", len(answer["results"])),
    ]
    most = max(1, *(count for _, count in stages))
    return [
        {"name": name, "count": count, "width": round(300 * count / most, 1)}
        for name, count in stages
    ]


def _pieces(text: str) -> list[Facts]:
    """Return a text in pieces: words, and the numbers of its citations.

    >>> _pieces("Four [1].")
    [{'text': 'Four ', 'no': None}, {'text': '', 'no': 1}, {'text': '.', 'no': None}]
    """
    pieces = _CITED.split(text)
    return [
        {"text": "", "no": int(piece)} if at % 2 else {"text": piece, "no": None}
        for at, piece in enumerate(pieces)
        if piece
    ]


EXPLORE: tuple[PageSpec, ...] = (
    PageSpec("/search", "search.html", search, "Search", key="s"),
    PageSpec("/sessions", "timeline.html", timeline, "Timeline", key="h"),
    PageSpec("/sessions/{id:path}", "session.html", one_session, "Session"),
    PageSpec("/context", "context.html", context, "Context", key="c"),
    PageSpec("/map", "map.html", code_map, "Map", key="m"),
    PageSpec("/map/graph", "graph.html", code_graph, "Code graph"),
    PageSpec("/tasks", "tasks.html", tasks, "Tasks", key="k"),
)
