"""Record an event in the scratchpad: every count that it changes.

Each event takes constant time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from smara.actions.failures import has_failed, is_absent, is_harness, was_changed_by_others
from smara.actions.models import Action
from smara.actions.paths import is_config, is_source, is_test, module_of, root_of, stem_of
from smara.actions.tool_calls import actions_of
from smara.behavior import plans, work_state
from smara.behavior import runs as running
from smara.behavior.scratchpad import QUOTE, RECENT, Pad, quote
from smara.behavior.signals import e2e
from smara.behavior.speech_cues import listen
from smara.core.events import HostEvent

_TOGETHER_MS = 15 * 60_000
"""Files that are touched further apart are not touched together."""
_READ_TOGETHER = 4
"""What is read is paired with fewer files than what is changed: reading wanders."""
_ANSWER_STEPS = 4
_SPIKE_TOKENS = 10_000
_MOST_STARTS = 32
_IMPORT = re.compile(
    r"^\s*(?:\d+\s*[→|:\t]\s*)?(?:from\s+([\w.]+)\s+import|import\s+([\w.]+)"
    r"|.*?\bfrom\s+['\"]([^'\"]+)['\"]"
    r"|.*?\brequire\(['\"]([^'\"]+)['\"]\)|(?:use|alias|import)\s+([\w:.]+)"
    r"|#include\s+[\"<]([^\">]+))",
)
_IMPORTING = ("import", "from ", "require(", "use ", "alias ", "#include")
_ENDING = re.compile(r"\.(?:[cm]?[jt]sx?|h|hpp|py|css|vue)$")
_SEPARATOR = re.compile(r"[./:]")
_FRAMED = re.compile(r"^\s*(?:<([a-z][\w-]{2,40})>.*?</\1>\s*)+", re.DOTALL)
"""What an editor or a host puts before a person's words."""
_CUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (cue, re.compile(pattern, re.IGNORECASE))
    for cue, pattern in (
        (
            "review",
            r"^/(?:code-)?review\b|\breview (?:the |this |my |pr |pull request|#\d)|\bpull "
            r"request review\b"
            r"|\bcode review\b",
        ),
        ("changelog", r"\bchange ?log\b|\brelease notes\b"),
        ("roadmap", r"\broad ?map\b|\bbacklog\b|\bprioriti[sz]e\b"),
        (
            "spec",
            r"\b(?:write|draft|create|update) (?:the |a |an )?(?:\w+ )?(?:spec|specification"
            r"|design doc|prd"
            r"|rfc)\b|^/(?:spec|plan)\b",
        ),
    )
)


def take(pad: Pad, event: HostEvent) -> None:
    """Take one event into a scratchpad."""
    facts = pad.facts
    facts.events += 1
    facts.started = facts.started or event.at_ms
    facts.last = max(facts.last, event.at_ms)
    if event.tokens:
        facts.tokens += max(0, int(event.tokens))
    if event.cwd and not facts.root:
        facts.root = root_of(event.cwd)[:500]
    act = _BY_KIND.get(event.kind)
    if act is not None:
        act(pad, event)
    if event.text and event.kind in _SPOKEN:
        _listen(pad, event)
        work_state.heard(pad, event.text)
    if pad.may_overflow and pad.held_bytes > pad.limit_bytes:
        pad.make_room()


_SPOKEN = frozenset({"reasoning", "step", "turn_end", "subagent_stop", "tool_pre", "tool_post"})


def _prompt(pad: Pad, event: HostEvent) -> None:
    facts = pad.facts
    facts.prompts += 1
    facts.listed = ""  # the work goes on: what was left is not left any more
    text = event.prompt or event.text
    facts.asked = quote(_FRAMED.sub("", text[:4_000]), 200)
    facts.prompt = facts.prompt or facts.asked
    if facts.prompts <= 3:
        facts.cues = sorted(
            {*facts.cues, *(cue for cue, pattern in _CUES if pattern.search(text[:600]))}
        )


def _before(pad: Pad, event: HostEvent) -> None:
    if event.tool_use_id and event.tool == "Bash":
        starts = pad.facts.starts
        starts[event.tool_use_id[:64]] = event.at_ms
        while len(starts) > _MOST_STARTS:
            del starts[next(iter(starts))]


def _tool(pad: Pad, event: HostEvent) -> None:
    facts = pad.facts
    facts.step += 1
    failed = has_failed(event)
    told = event.error or event.tool_output
    if failed:
        facts.failures += 1
    actions = actions_of(event, facts.root)
    for action in actions:
        if action.verb == "run":
            running.ran(pad, event, action, failed=failed)
        elif failed:
            _failed(pad, event, action, told=told)
        else:
            _BY_VERB[action.verb](pad, event, action)
    facts.recent_tools = [*facts.recent_tools, _name(event.tool, actions)][-RECENT:]
    _outside(pad, event, actions)


def _name(tool: str, actions: list[Action]) -> str:
    command = actions[0].command if actions else None
    return f"{tool}:{command.head}"[:60] if command else tool[:60]


def _outside(pad: Pad, event: HostEvent, actions: list[Action]) -> None:
    """Where something from outside came in; what is said from the next step on may come from
    there.
    """
    outside = pad.facts.outside
    for action in actions:
        if action.verb == "fetch" or (action.command is not None and action.command.has("network")):
            outside.setdefault("web", pad.step)
        elif action.verb == "mcp":
            outside.setdefault("mcp", pad.step)


def _failed(pad: Pad, event: HostEvent, action: Action, told: str) -> None:
    if action.verb == "edit" and was_changed_by_others(told):
        entry = pad["files"].count(action.subject, pad.step)
        entry["x"] = entry.get("x", 0) + 1
    elif action.verb == "mcp":
        e2e.saw(pad, event, failed=True)
    elif action.verb == "read" and is_absent(told) and event.tool == "Read":
        running.missed(pad, action.subject, quote(told, 160))
    elif action.verb == "search" and not is_harness(told):
        pad["searches"].count(action.subject, pad.step)


def _read(pad: Pad, event: HostEvent, action: Action) -> None:
    path = action.subject
    pad.facts.reads += 1
    _answer(pad, path)
    _touch(pad, path, event, is_edit=False)
    running.found(pad, path)
    _chase(pad, path, event.tool_output)
    _weigh(pad, path, event.tool_output)


def _edit(pad: Pad, event: HostEvent, action: Action) -> None:
    facts, path = pad.facts, action.subject
    facts.edits += 1
    facts.last_edit = pad.step
    facts.listed = ""  # nor is what was left before further changes were made
    if is_test(path):
        facts.first_test_edit = facts.first_test_edit or pad.step
    elif is_source(path):
        facts.first_source_edit = facts.first_source_edit or pad.step
        facts.last_source_edit = pad.step
    if is_config(path):
        pad["configs"].count(path, pad.step)
    _touch(pad, path, event, is_edit=True)
    _take_back(pad, event, path)
    running.edited(pad, path)


def _touch(pad: Pad, path: str, event: HostEvent, is_edit: bool) -> None:
    facts, step, now = pad.facts, pad.step, event.at_ms
    entry = pad["files"].count(path, step)
    entry.setdefault("m", now)
    entry["l"] = now
    name = "e" if is_edit else "r"
    entry[name] = entry.get(name, 0) + 1
    if is_edit:
        entry.setdefault("es", step)
        entry.setdefault("em", now)
        entry["el"] = now
    others: list[list[Any]] = facts.recent_files
    pairs = pad.ledgers["pairs"]
    for other, at, other_edit in others if is_edit else others[-_READ_TOGETHER:]:
        apart_ms = now - at
        if other != path and apart_ms <= _TOGETHER_MS:
            is_first = other < path
            pair = pairs.count(f"{other}|{path}" if is_first else f"{path}|{other}", step)
            if apart_ms > 0:
                pair["d"] = pair.get("d", 0) + apart_ms
            # The first of the two names may have been the earlier one.
            pair["l"] = pair.get("l", 0) + (1 if is_first else -1)
            if is_edit and other_edit:
                pair["e"] = pair.get("e", 0) + 1
    rest = [each for each in others if each[0] != path or (each[2] and not is_edit)]
    facts.recent_files = [*rest, [path, now, is_edit]][-RECENT:]


def _answer(pad: Pad, path: str) -> None:
    """The file that was opened after a search, or in the place of what a search for files found."""
    facts = pad.facts
    search = facts.open_search
    if search is not None and pad.step - search[1] <= _ANSWER_STEPS:
        entry = pad["searches"].find(search[0])
        # Hits in many files are no answer, and opening one of them is none either.
        if (
            entry is not None
            and len(search[2]) == 1
            and (path == search[2][0] or path.endswith("/" + search[2][0]))
        ):
            answers = entry.setdefault("a", {})
            if path in answers or len(answers) < 4:
                answers[path] = answers.get(path, 0) + 1
            facts.open_search = None
    glob = facts.open_glob
    if glob is not None:
        entry = pad["globs"].find(glob[0])
        is_among = any(path == each or each.endswith("/" + path) for each in glob[2])
        if is_among or pad.step - glob[1] > _ANSWER_STEPS:
            facts.open_glob = None
        elif entry is not None:
            entry["o"] = path
            facts.open_glob = None


def _search(pad: Pad, event: HostEvent, action: Action) -> None:
    key = action.subject
    pad["searches"].count(key, pad.step)
    root = pad.facts.root
    found = _paths_in(event.tool_output, root)[:40]
    pad.facts.open_search = [key[:300], pad.step, found]


def _glob(pad: Pad, event: HostEvent, action: Action) -> None:
    pad["globs"].count(action.subject, pad.step)
    found = _paths_in(event.tool_output, pad.facts.root)[:60]
    pad.facts.open_glob = [action.subject[:300], pad.step, found]


def _paths_in(output: str, root: str) -> list[str]:
    """The files that a list of hits names, from the root of the project."""
    found: dict[str, None] = {}
    for line in output[:6_000].splitlines()[:80]:
        path = line.split(":", 1)[0].strip()
        if path.startswith(root + "/"):
            path = path[len(root) + 1 :]
        path = path.removeprefix("./")
        if 0 < len(path) <= 145 and ("/" in path or "." in path) and " " not in path:
            found[path] = None
    return list(found)


def _chase(pad: Pad, path: str, content: str) -> None:
    """Whether the file is one that a file read just before imports; chains of three and more are
    noted.
    """
    facts = pad.facts
    chain = [path]
    for earlier, names in reversed(facts.imports):
        if earlier[-1] != path and stem_of(path).lower() in names and path not in earlier:
            chain = [*earlier, path][-5:]
            break
    if len(chain) >= 3:
        entry = pad["chases"].count(chain[0], pad.step)
        if len(chain) > len(entry.get("c", ())):
            entry["c"] = chain
    facts.imports = [*facts.imports, [chain, _imported(content[:1_500])]][-3:]


def _imported(head: str) -> list[str]:
    """The last names of what is imported. Plain searches: at every line a pattern takes ten times
    as long.
    """
    if not any(word in head for word in _IMPORTING):
        return []
    lines = {
        line
        for line in head.splitlines()[:30]
        if "import" in line
        or "from " in line
        or "require(" in line
        or "use " in line
        or "alias " in line
        or "#include" in line
    }
    return sorted({_last(match) for match in map(_IMPORT.match, lines) if match})[:30]


def _last(match: re.Match[str]) -> str:
    name = _ENDING.sub("", match[match.lastindex or 0])
    return _SEPARATOR.split(name)[-1].lower()[:60]


def _weigh(pad: Pad, path: str, output: str) -> None:
    module = module_of(path)
    if module is None:
        return
    tokens = len(output) // 4
    entry = pad["outputs"].count(module, pad.step)
    entry["t"] = entry.get("t", 0) + tokens
    if tokens > entry.get("p", 0):
        entry["p"], entry["pf"] = tokens, path
    if tokens >= _SPIKE_TOKENS:
        entry["k"] = entry.get("k", 0) + 1


def _take_back(pad: Pad, event: HostEvent, path: str) -> None:
    """Return True if an edit puts back what another one had changed."""
    old, new = event.tool_input.get("old_string"), event.tool_input.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str) or old == new:
        return
    facts = pad.facts
    one, other = _mark(old), _mark(new)
    for earlier in reversed(facts.recent_edits):
        if earlier[0] == path and earlier[2] == other and earlier[3] == one:
            running.taken_back(pad, path, int(earlier[1]), what=quote(old, 160))
            facts.recent_edits.remove(earlier)
            return
    facts.recent_edits = [*facts.recent_edits, [path, pad.step, one, other]][-24:]


def _mark(text: str) -> str:
    return hashlib.blake2b(text[:20_000].encode("utf-8", "replace"), digest_size=8).hexdigest()


def _fetch(pad: Pad, event: HostEvent, action: Action) -> None:
    pad.facts.fetches += 1
    if event.tool == "WebFetch" and action.subject.startswith(("http://", "https://")):
        entry = pad["references"].count(action.subject.split("#", 1)[0], pad.step)
        recent = [each[0] for each in pad.facts.recent_files]
        modules = entry.setdefault("m", [])
        for module in filter(None, map(module_of, recent)):
            if module not in modules and len(modules) < 3:
                modules.append(module)


def _plan(pad: Pad, event: HostEvent, action: Action) -> None:
    plans.planned(pad, event)


def _mcp(pad: Pad, event: HostEvent, action: Action) -> None:
    e2e.saw(pad, event, failed=False)


def _accept(pad: Pad, event: HostEvent, action: Action) -> None:
    pad.facts.accepted = True


def _task(pad: Pad, event: HostEvent) -> None:
    if text := event.text or event.prompt:
        plans.added(pad, text)


def _turn(pad: Pad, event: HostEvent) -> None:
    pad.facts.turns += 1


def _listen(pad: Pad, event: HostEvent) -> None:
    for said in listen(event.text):
        sentence = quote(said.sentence, QUOTE)
        ledger = pad["corrections"] if said.kind == "correction" else pad["dead_ends"]
        entry = ledger.count(_mark(sentence), pad.step)
        if entry["n"] > 1:
            continue
        recent = pad.facts.recent_files
        entry["q"] = sentence
        entry["file"] = recent[-1][0] if recent else ""
        if said.kind == "correction":
            entry["wrong"], entry["right"] = (
                quote(said.wrong, QUOTE // 2),
                quote(said.right, QUOTE // 2),
            )
            entry["lang"] = said.language
        else:
            running.gave_up(pad, entry)


_BY_KIND: dict[str, Callable[[Pad, HostEvent], None]] = {
    "prompt": _prompt, "tool_pre": _before, "tool_post": _tool, "tool_fail": _tool, "task": _task,
    "turn_end": _turn,
}  # fmt: skip
_BY_VERB: dict[str, Callable[[Pad, HostEvent, Action], None]] = {
    "read": _read, "edit": _edit, "search": _search, "glob": _glob, "fetch": _fetch, "plan": _plan,
    "mcp": _mcp,
    "accept": _accept,
}  # fmt: skip
