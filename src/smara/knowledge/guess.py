"""Guess the type of a memory from the words of its statement.

No model is called. Each cue has a weight for one type, more in the statement than in the headings
above it. The type with the most weight wins and its cues are returned as the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from smara.knowledge.models import MemoryType


class Cue(NamedTuple):
    """Words that speak for a kind, how strongly, and what they are called."""

    kind: MemoryType
    weight: float
    name: str
    words: re.Pattern[str]


def _cue(kind: MemoryType, weight: float, name: str, *words: str) -> Cue:
    return Cue(kind, weight, name, words=re.compile("|".join(words), re.IGNORECASE))


def _words(*words: str) -> str:
    return rf"\b(?:{'|'.join(words)})\b"


_TROUBLE = (
    r"(?:errors?\b|exceptions?\b(?!:)|traceback|crash\w*|segfaults?|panics?\b|ECONN\w+|ENOENT"
    r"|EADDR\w+|exit code \d|"
    r"fail(?:s|ed|ing)? (?:with|on|to|when|because)|hangs?\b|times out\b|\w+(?:Error|Exception)\b)"
)
_REMEDY = (
    r"(?:\bfix(?:ed)?(?: it| this| by)?\b|\bsolution\b|\bworkaround\b|\bresolved?s? (?:by|with)"
    r"|\bre-?run\b|"
    r"\bre-?install\b|\brestart\b|\bclear the\b|\bdelete the\b|\bmeans\b|\bcaused by\b"
    r"|\bbecause\b|\b(?:try|do|run|set|"
    r"check|use|add|start|kill|remove|install|increase|export)\b|→|=>)"
)

IN_WORDS: tuple[Cue, ...] = (
    _cue("error_pattern", 3, "an error and its remedy", rf"{_TROUBLE}[^\n]{{0,200}}?{_REMEDY}"),
    _cue(
        "error_pattern", 2.5, "what to do about an error",
        r"\b(?:if|when|whenever|in case) (?:you (?:see|get|hit|encounter|run into)\b"
        r"|[^,.]{1,60}?\b(?:fails?|crash\w*|"
        r"errors?|hangs?|breaks?|times out)\b)",
    ),
    _cue("error_pattern", 1.5, "a remedy", r"\bfix: ", _words("to fix", "workaround for",
    "the fix is")),
    _cue(
        "gotcha", 4, "said to be a trap",
        _words(
            "gotchas?", "beware", "watch out", "pitfalls?", "footguns?", "caveats?", "trap",
            "be careful",
            "careful with", r"counter-?intuitive\w*", "heads[- ]up", "easy to (?:miss|forget)",
        ),
    ),
    _cue(
        "gotcha", 2.5, "does not do what one expects",
        _words(
            "silently", r"surpris\w+", r"unexpected\w*", "subtle", "subtly", "flaky",
            r"out of sync",
            "(?<!prevent )(?<!avoid )(?:race conditions?|deadlocks?|hangs?|leaks?)",
        ),
        r"\b(?:does not|doesn't|won't|will not|cannot|can't|is not|isn't|are not|aren't|never)\b "
        r"[^.;]{0,40}?\b(?:work|"
        r"supported|send|sync|thread-?safe|safe|idempotent|reload\w*|refresh\w*|propagate\w*"
        r"|inherit\w*|persist\w*|"
        r"awaited|retried|rolled back|hold)\b",
    ),
    _cue(
        "gotcha", 2, "breaks something",
        _words(
            "(?:will |would |can )?breaks?", "corrupts?", "overwrit(?:es?|ten)", "wipes?",
            "rewrites?", "or else",
            "otherwise", "stops? working", "get(?:s)? lost", "is lost",
        ),
    ),
    _cue("gotcha", 1.5, "marked as a note",
    r"^(?:note|warning|caution|nb|attention|⚠\S*)(?: ?[:!—–-]|\s+that\b)"),
    _cue(
        "gotcha", 1.5, "an exception",
        _words(
            "unlike", "except (?:that|when|for|in)", "despite", "even though", "only works",
            "known issue", "quirks?",
            "there is no", "not the same as",
        ),
    ),
    _cue(
        "gotcha", 2, "easily forgotten",
        _words("(?:don't|do not) forget", "remember (?:that|it)", "keep in mind", "be aware",
        "note that"),
    ),
    _cue(
        "dead_end", 4.5, "tried and given up",
        r"\b(?:we |i |was |were |already )?tried\b[^.]{0,120}\b(?:but|failed|did not|didn't|gave "
        r"up|abandoned|reverted|"
        r"too slow|no luck|not worth)",
        _words("dead end", "(?:was|were) (?:tried and )?(?:abandoned|reverted|rolled back)",
        "gave up on"),
    ),
    _cue(
        "decision", 4, "said to be decided",
        r"\b(?:we|i|the team|it was|was|were|has been|have been) (?:have |has |had "
        r")?(?:deliberately |intentionally |"
        r"explicitly )?(?:decided|chose|chosen|opted|settled on|agreed|picked|went with|rejected"
        r"|dropped|moved away|"
        r"standardi[sz]ed|migrated|switched)\b",
        r"\bdecision:|\b(?:decided (?:to|on|against|for)|ADR[- ]?\d+|by design)\b",
    ),
    _cue(
        "decision", 2.5, "one thing over another, and why",
        r"\b(?:instead of|over|rather than|not|in favou?r of|no longer)\b[^\n]{3,120}\b(?:because"
        r"|so that|due to|as it|"
        r"to (?:avoid|keep|reduce|allow))\b",
    ),
    _cue(
        "decision", 1.5, "a reason",
        _words("rationale", "the reason (?:is|we|for|why)", "trade-?offs?", "deliberate(?:ly)?",
        "on purpose"),
    ),
    _cue("decision", 1, "because", _words("because", "that's why", "which is why")),
    _cue(
        "requirement", 3.5, "must",
        _words(
            "must", "shall", "required", "mandatory", "non-negotiable", "needs? to",
            "ha(?:s|ve) to",
            "(?:not|never) allowed", "forbidden", "prohibited", "off[- ]limits", "may not",
            r"(?:at (?:least|most)|no (?:more|less) than|max(?:imum)?(?: of)?|min(?:imum)?(?: "
            r"of)?|under|within|below|"
            r"up to) \d[\d,.]*",
        ),
        r"\b\d+ ?%",
    ),
    _cue("requirement", 2, "needs", _words("requires?", "needs?")),
    _cue(
        "requirement", 2.5, "never or always",
        _words(
            "never", "always", "do not(?! forget)", "don't(?! forget)", "under no circumstances",
            "at all times",
            "(?:every|each|all|any)(?: new| public)? (?:changes?|commits?|prs?|pull "
            "requests?|endpoints?|apis?|tests?|"
            "features?|functions?|files?)",
        ),
    ),
    _cue(
        "requirement", 2, "before something is done",
        r"\b(?:before|prior to|after) (?:every |each |any |all |you |a )?(?:commit\w*|merg\w*"
        r"|push\w*|releas\w*|"
        r"deploy\w*|pull request|pr\b|opening|submitting|mark\w*|finish\w*|complet\w*)",
    ),
    _cue("requirement", 1.5, "should", _words("should", "ensure", "make sure", "verify that",
    "only")),
    _cue(
        "requirement", 2, "about safety",
        _words(
            "secrets?", "credentials?", "api keys?", "passwords?", "pii", "gdpr", "wcag",
            r"accessib\w+",
            r"backwards?[- ]compatib\w+", "security", r"sanitiz\w+", r"encrypt\w*",
        ),
    ),
    _cue(
        "preference", 4, "said to be preferred",
        _words(r"prefer\w*", "favou?rs?", "i (?:like|want|hate|love|always|never)", "would rather",
        "we like"),
    ),
    _cue(
        "preference", 3.5, "one thing, not another",
        r"\b(?:use|using|write|stick (?:to|with)|go with)\b[^.;]{1,60}?(?:\b(?:instead of|rather "
        r"than|over|never)\b|"
        r"[,(] ?(?:not|no)\b)",
    ),
    _cue("preference", 2, "what to do", r"^what (?:not )?to\b"),
    _cue(
        "preference", 2.5, "about style",
        _words(
            "naming", "camelcase", "snake_case", "kebab-case", "pascalcase", "upper_?case",
            r"indent\w*", "tabs?",
            "spaces", "semicolons?", "quotes", "trailing commas?", "line (?:length|width)",
            "type (?:hints?|annotations?)", "explicit types?",
            "strict mode", "comments?", "docstrings?", "formatt(?:ing|er)", "style", r"readab\w+",
            "concise", "verbose", "emojis?", "tone", "early returns?", r"immutab\w+",
            r"abbreviat\w+",
            "commit messages?", "conventional commits", "subject line", "imperative mood",
            "arrow functions?",
            "async/await", "composition", "(?:named|default) exports?", "pure functions",
        ),
    ),
    _cue(
        "pattern", 3.5, "said to be the pattern",
        _words(
            "patterns?", "idiom", "boilerplate", "canonical", "reference implementation",
            "see .{2,60} (?:for|as) (?:an? |the )?(?:working "
            ")?(?:example|reference|pattern|template)",
            "(?:same|similar) (?:way|shape|structure) as", "modell?ed (?:on|after)", "mirrors?",
            "follow(?:s|ing)? the (?:existing|same)", "copy .{2,40} and",
        ),
    ),
    _cue(
        "pattern", 2.5, "all are made one way",
        r"\b(?:all|each|every|any|new) [\w-]+(?: [\w-]+)? (?:extends?|implements?|inherits?"
        r"|go(?:es)? through|lives?|"
        r"has|have|uses?|returns?|exports?|registers?|wraps?|gets?|belongs?)\b",
    ),
    _cue(
        "pattern", 2.5, "a helper to go through",
        r"\b(?:use|call|via|through|with) (?:the |our |a )?`[^`]+`(?: \w+)? (?:helper|wrapper"
        r"|hook|util\w*|factory|"
        r"decorator|fixture|client|middleware|base class|macro|builder)\b",
    ),
    _cue(
        "module_insight", 3, "a place and what is there",
        r"^`?[\w@.*-]*(?:/[\w.@*{},-]*)+`?(?: \([^)]*\))? ?(?::|—|–|->|→|-|=|\b(?:is|are"
        r"|contains?|holds?|defines?|has|"
        r"documents?|handles?|owns?|keeps?)\b)",
    ),
    _cue(
        "module_insight", 2.5, "what something is for",
        _words(
            "contains?", "lives? (?:in|under|at|on)", "located (?:in|at|under)",
            "(?:is|are) responsible for",
            "handles", "manages", "provides", "exposes", "implements", "consists of",
            "entry ?points?",
            r"is (?:an?|the) [\w -]{0,40}(?:app|application|service|library|package|module|tool"
            r"|server|client|cli|"
            r"framework|monorepo|layer|component|wrapper|api|database|branch|core|main)", "wraps",
                "defines",
            "talks to", "depends on", "(?:is )?built (?:with|on)", "written in", "powered by",
            "runs on", "serves",
            "stores",
        ),
    ),
    _cue(
        "module_insight", 2, "a stack",
        r"^(?:tech(?:nology)? )?(?:stack|languages?|frameworks?|frontend|front end|backend"
        r"|database|db|runtime|"
        r"monorepo|"
        r"testing|tests|orm|ui|api|auth|state|hosting|styling|package managers?|test frameworks?"
        r"|build"
        r" tool)\b[^:]{0,20}:",
    ),
)  # fmt: skip

IN_HEADINGS: tuple[Cue, ...] = (
    _cue(
        "error_pattern", 3, "under troubleshooting",
        _words(
            r"troubleshoot\w*", "(?:common|known) (?:errors|problems|failures)",
                "errors? (?:and|&) (?:fix|solution)",
            "debugging", "faq",
        ),
    ),
    _cue(
        "gotcha", 6.5, "under traps",
        _words(
            "gotchas?", "pitfalls?", "caveats?", "warnings?", "watch out", "known issues?",
            "quirks?", "limitations?",
            "things to (?:know|watch|avoid)", "footguns?", "lessons", "non-?obvious",
            "(?:common )?mistakes",
            "(?:critical|important) notes?",
        ),
    ),
    _cue(
        "decision", 5, "under decisions",
        _words("decisions?", "rationale", "why", "adrs?", "trade-?offs?", "design choices"),
    ),
    _cue(
        "requirement", 2, "under rules",
        _words(
            "requirements?", "rules?", "must", "never", "always", "forbidden", "do not", "don'?ts?",
            "boundaries",
            "constraints?", "invariants?", "security", "mandatory", "critical", "non-negotiables?",
            "definition"
            " of done",
            "acceptance", "polic(?:y|ies)", "checklist", "limits?", "quality gates?", "review",
            "pull requests?",
        ),
    ),
    _cue(
        "preference", 2, "under style",
        _words(
            "style", "conventions?", "preferences?", "formatting", "naming", "guidelines?",
            "best practices",
            "communication", "tone", "principles", "code quality", "standards?", "commits?", "git",
            "typescript",
            "python", "documentation", "comments?", "imports?",
        ),
    ),
    _cue(
        "pattern", 2, "under patterns",
        _words(
            "patterns?", "examples?", "idioms?", "how we", "common (?:tasks|operations)",
            "recipes?", "commands?",
            "scripts?", "build", "running", "usage", "quick (?:start|reference)", "cli",
            "cheat ?sheet",
        ),
    ),
    _cue(
        "module_insight", 2.5, "under structure",
        _words(
            "architecture", "structure", "layout", "overview", "about", "modules?", "packages",
            "components",
            r"director(?:y|ies)", "folders?", "(?:key )?files", "(?:tech(?:nology)? )?stack",
                "services?", "domain",
            "glossary", "data model", "project", "codebase", "what is", "context", "entry points?",
            "branching",
        ),
    ),
)  # fmt: skip

COMMAND = re.compile(
    r"(?:^|(?<=[\s$>;&|(]))(?:npm|npx|pnpm|yarn|bun|bunx|deno|node|uv|uvx|pip|pipx|poetry"
    r"|python3?|pytest|tox|nox|"
    r"make|just|"
    r"task|cargo|rustc|go|gradle|\./[\w./-]+|mvn|docker|docker-compose|podman|kubectl|helm"
    r"|terraform|git|gh|rake|"
    r"bundle|"
    r"rails|mix|composer|php|dotnet|swift|xcodebuild|flutter|dart|bazel|cmake|ctest|ruff|mypy"
    r"|eslint|prettier|jest|"
    r"vitest|playwright|tsc|turbo|nx|curl|ssh|psql|redis-cli|alembic|prisma|supabase|vercel|aws"
    r"|gcloud|brew|apt|smara)"
    r"(?=\s|$)",
    re.MULTILINE,
)
_VERBS = (
    "add|ask|avoid|be|break|call|catch|check|choose|clean|commit|consider|create|define|delete|document|do|explain|"
    "favou?r|fix|follow|format|get|give|group|handle|implement|import|include|install|keep|leave|let|limit|link|"
    "list|log|"
    "look|make|mark|minimi[sz]e|name|open|order|place|plan|prefer|provide|put|read|refactor|remove|rename|return|reuse|"
    "review|run|search|separate|set|show|sort|split|start|stick|stop|store|test|think|track|treat|try|update|use|"
    "validate|verify|wrap|write|conform|answer|respond|skip|pass|build|deploy|generate|match|respect|tell|target|"
    "mock|assert|"
    "reset|flag|reserve|default|distinguish|fail|apply|aim|ensure|assume|convert|expose|declare|extract|inject|"
    "require|stay"
)
IMPERATIVE = re.compile(
    r"(?:[\w /+&.-]{1,30}: )?(?:please |just |simply |(?:when|if|before|after|for"
    r"|in)\b[^,.]{3,90}, )?"
    rf"(?:{_VERBS})\b",
    re.IGNORECASE,
)
"""A statement that tells somebody to do something, also behind a label or a condition."""


# Where two kinds weigh the same, the one that would be missed more.
_ORDER: tuple[MemoryType, ...] = (
    "error_pattern", "gotcha", "dead_end", "decision", "requirement", "preference", "pattern",
    "module_insight",
    "workflow_recipe",
)  # fmt: skip
_FENCE = re.compile(r"(`{3,})[^\n]*\n(.*?)(?:\1|\Z)", re.DOTALL)
_INLINE = re.compile(r"`([^`\n]*)`")
_PATH = re.compile(r"[\w@.*{},/-]*/[\w@.*{},/-]*")
_ERROR = re.compile(r"[\w.]*(?:Error|Exception)\b|E[A-Z]{4,}\b")
_STEPS = re.compile(r"(?:^|[\s(])1[.)] .*(?:^|[\s(])2[.)] ", re.DOTALL | re.MULTILINE)
_HEADING_SHARE = 0.6
_HEADINGS_READ = 3
_MOST_WORDS_OF_A_COMMAND = 10
_READ_CHARACTERS = 4_000
"""What a statement is shows at its beginning; a giant must not cost more than a long one."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The type of a statement, and the cues that spoke for it."""

    type: MemoryType
    why: tuple[str, ...] = ()


def type_of(
    text: str,
    headings: Sequence[str] = (),
    marks: Sequence[str] = (),
    *,
    is_procedure: bool = False,
) -> Guess:
    """The type of memory that a statement is.

    ``headings`` are those it stands under, from the outermost; ``marks`` what its form says of
    it (``warning`` for a notice).

    >>> type_of("Use uv, never pip").type
    'preference'
    >>> type_of("Every endpoint must check permissions").type
    'requirement'
    """
    text = text[:_READ_CHARACTERS]
    if is_procedure or _STEPS.search(text):
        return Guess("workflow_recipe", ("steps in an order",))
    weights = _Weights()
    words = _INLINE.sub(_masked, _FENCE.sub(" ", text)).strip()
    for cue in IN_WORDS:
        if cue.words.search(words):
            weights.add(cue.kind, cue.weight, cue.name)
    # The heading right above says most, one further out half of that.
    for distance, heading in enumerate(reversed(headings[-_HEADINGS_READ:])):
        for cue in IN_HEADINGS:
            if cue.words.search(heading):
                weights.add(cue.kind, cue.weight * _HEADING_SHARE / (1 + distance), cue.name)
    _add_form(weights, text, words, marks=marks)
    return weights.heaviest()


class _Weights:
    """What speaks for each kind."""

    def __init__(self) -> None:
        self._sums: dict[MemoryType, float] = {}
        self._names: dict[MemoryType, list[str]] = {}

    def add(self, kind: MemoryType, weight: float, name: str) -> None:
        self._sums[kind] = self._sums.get(kind, 0.0) + weight
        self._names.setdefault(kind, []).append(name)

    def heaviest(self) -> Guess:
        kind = max(_ORDER, key=lambda each: (self._sums.get(each, 0.0), -_ORDER.index(each)))
        return Guess(kind, tuple(dict.fromkeys(self._names[kind])))


def _add_form(weights: _Weights, text: str, words: str, marks: Sequence[str]) -> None:
    """What the shape of a statement says, beside its words; one of the last two always does."""
    if "warning" in marks:
        weights.add("gotcha", 3, "a notice")
    if _is_command(text):
        weights.add("pattern", 2.5, "a command")
    if IMPERATIVE.match(words):
        weights.add("preference", 2, "an instruction")
    else:
        weights.add("module_insight", 0.8, "a description")


def _is_command(text: str) -> bool:
    """Whether a statement is mostly a command and what it is for: *Lint: `make lint`*."""
    blocks = _FENCE.findall(text)
    if blocks:
        return any(COMMAND.search(code) for _, code in blocks)
    coded = _INLINE.findall(text)
    said = _INLINE.sub(" ", text)
    return len(said.split()) <= _MOST_WORDS_OF_A_COMMAND and any(
        COMMAND.match(code) for code in coded
    )


def _masked(found: re.Match[str]) -> str:
    """Code says nothing of its kind by its words, but a path is a place, and an error an error."""
    return found[0] if _PATH.fullmatch(found[1]) or _ERROR.match(found[1]) else "`code`"
