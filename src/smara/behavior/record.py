"""Record an event in the scratchpad: every count that it changes.

Each event takes constant time.
"""

from __future__ import annotations

import hashlib

from smara.actions.failures import is_absent, is_harness, outcome_of
from smara.actions.models import Action
from smara.actions.paths import is_config, is_prose, is_source, is_test, module_of, root_of, stem_of
from smara.actions.tool_calls import actions_of
from smara.behavior import runs, work_state
from smara.behavior.cues import CUES, listen
from smara.behavior.ledger import FileLedgerEntry
from smara.behavior.scratchpad import (
    QUOTE,
    RECENT,
    EventPlace,
    ImportChain,
    OpenSearch,
    Pad,
    RecentEdit,
    RecentFile,
    quote,
)
from smara.behavior.signals import e2e
from smara.core.events import HostEvent
from smara.core.extract import distinct
from smara.core.startup.regex import re, regex

_TOGETHER_MS = 15 * 60_000
"""Files that are touched further apart are not touched together."""
_READ_TOGETHER = 4
"""What is read is paired with fewer files than what is changed: reading wanders."""
_ANSWER_STEPS = 4
_SPIKE_TOKENS = 10_000
_MOST_STARTS = 32
_IMPORTING = ("import", "from ", "require(", "use ", "alias ", "#include")
_ENDING = regex(r"\.(?:[cm]?[jt]sx?|h|hpp|py|css|vue)$")
_SEPARATOR = regex(r"[./:]")
_FILE_WORD = regex(r"[\w./-]*\w\.\w+")
_FRAMED = regex(r"^\s*(?:<([a-z][\w-]{2,40})>.*?</\1>\s*)+", re.DOTALL)
"""What an editor or a host puts before a person's words."""
_CUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (cue, regex(pattern, re.IGNORECASE))
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
_HARMLESS = frozenset(
    {"Read", "Grep", "Glob", "WebFetch", "WebSearch", "Bash", "Skill", "ToolSearch"}
    | {"AskUserQuestion", "EnterPlanMode", "BashOutput", "KillShell", "TaskOutput", "TaskList"}
)
"""Tools that edit no file when nothing is read from their call."""
_SPOKEN = frozenset({"reasoning", "step", "turn_end", "subagent_stop", "tool_pre", "tool_post"})


def take(pad: Pad, event: HostEvent) -> None:
    """Take one event into a scratchpad."""
    facts = pad.facts
    facts.events += 1
    facts.started_at = facts.started_at or event.at_ms
    facts.last_at = max(facts.last_at, event.at_ms)
    if event.cwd and not facts.root:
        facts.root = root_of(event.cwd)[:500]
    match event.kind:
        case "tool_post" | "tool_fail":
            _tool(pad, event)
        case "tool_pre" if event.tool_use_id and event.tool == "Bash":
            facts.starts[event.tool_use_id[:64]] = event.at_ms
            while len(facts.starts) > _MOST_STARTS:
                del facts.starts[next(iter(facts.starts))]
        case "prompt":
            facts.prompts += 1
            facts.spoke_at_step = facts.step
            facts.open_list = ""  # the work goes on: what was left is not left any more
            text = event.prompt or event.text
            facts.request = quote(_FRAMED.sub("", text[:4_000]), 200)
            facts.prompt = facts.prompt or facts.request
            if facts.prompts <= 3:
                cues = (cue for cue, pattern in _CUES if pattern.search(text[:600]))
                facts.cues = sorted({*facts.cues, *cues})
        case "task" if event.text or event.prompt:
            work_state.grow_plan(pad, [work_state.mark_of(event.text or event.prompt)])
        case "turn_end":
            facts.turns += 1
    if event.text and event.kind in _SPOKEN:
        _listen(pad, event.text)
        facts.spoke_at_step = facts.step
        work_state.read_open_list(pad, event.text)


def _tool(pad: Pad, event: HostEvent) -> None:
    facts = pad.facts
    if facts.spoke_at_step == facts.step:
        facts.work_from_step = facts.step
    facts.step += 1
    failed = (outcome := outcome_of(event)) == "failed"
    facts.failures += failed
    output = event.error or event.tool_output
    actions = actions_of(event, facts.root)
    # A file outside of the project, a sub-agent or an unknown tool: it may have edited something.
    facts.changing_runs += not (failed or actions or event.tool in _HARMLESS)
    for action in actions:
        if action.command is not None:
            runs.record_run(pad, event, action.command, outcome=outcome)
        elif action.verb == "mcp":
            e2e.record(pad, event, failed=failed)
        elif not failed:
            _act(pad, event, action)
        elif action.verb == "edit" and CUES["changed by others"].search(output[:600]):
            pad.files.count(action.subject, facts.step).refusals += 1
        elif action.verb == "read" and is_absent(output) and event.tool == "Read":
            runs.record_missing_file(pad, action.subject, quote(output, 160))
        elif action.verb == "search" and not is_harness(output):
            pad.searches.count(action.subject, facts.step)
        # What is said from the next step on may come from outside.
        if action.verb == "fetch" or (action.command is not None and action.command.has("network")):
            facts.outside.setdefault("web", facts.step)
        elif action.verb == "mcp":
            facts.outside.setdefault("mcp", facts.step)


def _act(pad: Pad, event: HostEvent, action: Action) -> None:
    facts, subject, output = pad.facts, action.subject, event.tool_output
    match action.verb:
        case "read":
            _answer(pad, subject)
            _touch(pad, subject, event.at_ms, is_edit=False).spikes += (
                len(output) // 4 >= _SPIKE_TOKENS
            )
            runs.record_found_file(pad, subject)
            _chase(pad, subject, output)
            if (module := module_of(subject)) is not None:
                tokens = len(output) // 4
                entry = pad.outputs.count(module, pad.step)
                entry.tokens += tokens
                if tokens > entry.peak_tokens:
                    entry.peak_tokens, entry.peak_file = tokens, subject
                entry.spikes += tokens >= _SPIKE_TOKENS
        case "edit":
            _edit(pad, event, subject)
        case "search":
            pad.searches.count(subject, pad.step)
            files = _paths_in(output, facts.root)[:40]
            facts.open_search = OpenSearch(subject[:300], pad.step, files)
        case "glob":
            pad.globs.count(subject, pad.step)
            files = _paths_in(output, facts.root)[:60]
            facts.open_glob = OpenSearch(subject[:300], pad.step, files)
        case "fetch":
            if event.tool == "WebFetch" and subject.startswith(("http://", "https://")):
                modules = pad.references.count(subject.split("#", 1)[0], pad.step).modules
                files = [each.path for each in facts.recent_files if not is_prose(each.path)]
                for module in filter(None, map(module_of, files)):
                    if module not in modules and len(modules) < 3:
                        modules.append(module)
        case "plan":
            work_state.record_plan(pad, event)
        case "accept":
            facts.accepted = True


def _edit(pad: Pad, event: HostEvent, path: str) -> None:
    facts, step = pad.facts, pad.step
    facts.edits += 1
    facts.edit = EventPlace(event.at_ms, step)
    if not is_prose(path):
        facts.code_edit = facts.edit
    facts.open_list = ""  # nor is what was left before further changes were made
    if is_test(path):
        facts.first_test_edit = facts.first_test_edit or step
    elif is_source(path):
        facts.first_source_edit = facts.first_source_edit or step
        facts.last_source_edit = step
    if is_config(path):
        pad.configs.count(path, step)
    _touch(pad, path, event.at_ms, is_edit=True)
    # An edit may put back what another one had changed.
    old, new = event.tool_input.get("old_string"), event.tool_input.get("new_string")
    if isinstance(old, str) and isinstance(new, str) and old != new:
        before, after = _mark(old), _mark(new)
        for earlier in reversed(facts.recent_edits):
            if (earlier.path, earlier.before, earlier.after) == (path, after, before):
                runs.record_backtrack(pad, path, earlier.step, what=quote(old, 160))
                facts.recent_edits.remove(earlier)
                pad.files.entries[path].standing -= 2  # this edit and the one it takes back
                break
        else:
            facts.recent_edits = [*facts.recent_edits, RecentEdit(path, step, before, after)][-24:]
    runs.record_edit(pad, path)


def _touch(pad: Pad, path: str, now: int, is_edit: bool) -> FileLedgerEntry:
    facts, step = pad.facts, pad.step
    entry = pad.files.count(path, step)
    entry.first_at = entry.first_at or now
    entry.last_at = now
    if is_edit:
        if not entry.edits:
            entry.first_edit_step, entry.first_edit_at = step, now
        entry.edits += 1
        entry.standing += 1
        entry.last_edit_at, entry.last_edit_step = now, step
    else:
        entry.reads += 1
    others, pairs = facts.recent_files, pad.pairs
    for other, at, other_edit in others if is_edit else others[-_READ_TOGETHER:]:
        apart_ms = now - at
        if other != path and apart_ms <= _TOGETHER_MS:
            is_first = other < path
            pair = pairs.count(f"{other}|{path}" if is_first else f"{path}|{other}", step)
            pair.apart_ms += max(0, apart_ms)
            # The first of the two names may have been the earlier one.
            pair.lead += 1 if is_first else -1
            pair.edits += is_edit and other_edit
    rest = [each for each in others if each.path != path or (each.is_edit and not is_edit)]
    facts.recent_files = [*rest, RecentFile(path, now, is_edit)][-RECENT:]
    return entry


def _answer(pad: Pad, path: str) -> None:
    """The file that was opened after a search, or in the place of what a search for files found."""
    facts = pad.facts
    search, glob = facts.open_search, facts.open_glob
    if search is not None and pad.step - search.step <= _ANSWER_STEPS:
        entry = pad.searches.find(search.pattern)
        # Hits in many files are no answer, and opening one of them is none either.
        if (
            entry is not None
            and len(search.files) == 1
            and (path == search.files[0] or path.endswith("/" + search.files[0]))
        ):
            if path in entry.answers or len(entry.answers) < 4:
                entry.answers[path] = entry.answers.get(path, 0) + 1
            facts.open_search = None
    if glob is not None:
        glob_entry = pad.globs.find(glob.pattern)
        is_among = any(path == each or each.endswith("/" + path) for each in glob.files)
        if is_among or pad.step - glob.step > _ANSWER_STEPS:
            facts.open_glob = None
        elif glob_entry is not None:
            glob_entry.opened = path
            facts.open_glob = None


def _paths_in(output: str, root: str) -> list[str]:
    """The files that a list of hits names, from the root of the project."""
    paths = (
        line.split(":", 1)[0].strip().removeprefix(root + "/").removeprefix("./")
        for line in output[:6_000].splitlines()[:80]
    )
    return distinct(
        path
        for path in paths
        if 0 < len(path) <= 145 and ("/" in path or "." in path) and " " not in path
    )


def _chase(pad: Pad, path: str, content: str) -> None:
    """Note chains of three and more files, each read just after one that imports it."""
    facts = pad.facts
    chain = [path]
    for earlier, names in reversed(facts.imports):
        if earlier[-1] != path and stem_of(path).lower() in names and path not in earlier:
            chain = [*earlier, path][-5:]
            break
    if len(chain) >= 3:
        entry = pad.chases.count(chain[0], pad.step)
        if len(chain) > len(entry.chain):
            entry.chain = chain
    # The last names of what is imported. Plain searches first: at every line a pattern takes ten
    # times as long.
    head, imported = content[:1_500], set[str]()
    if any(word in head for word in _IMPORTING):
        for line in set(head.splitlines()[:30]):
            if any(map(line.__contains__, _IMPORTING)) and (match := CUES["import"].match(line)):
                name = _ENDING.sub("", match[match.lastindex or 0])
                imported.add(_SEPARATOR.split(name)[-1].lower()[:60])
    facts.imports = [*facts.imports, ImportChain(chain, sorted(imported)[:30])][-3:]


def _mark(text: str) -> str:
    return hashlib.blake2b(text[:20_000].encode("utf-8", "replace"), digest_size=8).hexdigest()


def _file_of(pad: Pad, *statements: str) -> str:
    """Return the file that statements name, else the only one of the work they are said of.

    Of several files touched since the agent last spoke, the last one is a guess.
    """
    for statement in statements:
        names = tuple(
            f"/{word.removeprefix('./')}"
            for word in _FILE_WORD.findall(statement)
            if is_source(word) or is_config(word)
        )
        if names:
            named = [path for path, _ in pad.files if f"/{path}".endswith(names)]
            return named[0] if len(named) == 1 else ""
    since = pad.facts.work_from_step
    touched = [path for path, each in pad.files if each.last_step > since and not is_prose(path)]
    return touched[0] if len(touched) == 1 else ""


def _listen(pad: Pad, text: str) -> None:
    for cue in listen(text):
        sentence = quote(cue.sentence, QUOTE)
        file = _file_of(pad, cue.right, cue.sentence)
        if cue.kind == "correction":
            correction = pad.corrections.count(_mark(sentence), pad.step)
            if correction.count == 1:
                correction.quote, correction.file = sentence, file
                correction.wrong = quote(cue.wrong, QUOTE // 2)
                correction.right = quote(cue.right, QUOTE // 2)
                correction.language = cue.language
        else:
            dead_end = pad.dead_ends.count(_mark(sentence), pad.step)
            if dead_end.count == 1:
                dead_end.quote, dead_end.file = sentence, file
                since = max(0, pad.step - 15)
                if (failure := runs.newest_failure(pad, since)) is not None:
                    dead_end.command, dead_end.line = failure.command, failure.line
                dead_end.edited = pad.edited_files(since - 1)[:4]
