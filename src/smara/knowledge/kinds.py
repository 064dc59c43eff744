"""Hold the memory types, one spec each.

The order of the table is the order of telling, the steadiest types first: a prompt cache holds up
to the first change. A *half-life* is the number of days without verified use after which a memory
is worth half. Fields are optional for a person; an inferred memory must have the needed ones.
`docs/howto/add-a-memory-type.md` shows how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

from smara.errors import InvalidInputError
from smara.knowledge.kind import (
    Cue,
    FieldShape,
    KindField,
    MemoryKind,
    TellMoment,
    by_snake_name,
)
from smara.knowledge.models import MemoryType


def _may(
    name: str, shape: FieldShape, meaning: str, choices: str = "", is_needed: bool = False
) -> KindField:
    return KindField(name, shape, meaning, is_needed=is_needed, choices=tuple(choices.split()))


def _cue(
    place: Literal["words", "heading", "form"], weight: float, name: str, *patterns: str
) -> Cue:
    return Cue(place, weight, name, pattern="|".join(patterns))


_needed = partial(_may, is_needed=True)
_SAID = (
    _may("thread", "text", "the session in which a person said it"),
    _may("wording", "choice", "whose words the statement is in", choices="person agent plan"),
    _may("method", "text", "the prompt with which a model chose it; empty without a model"),
    _may("earlier", "texts", "what still stands of the decision before"),
    _may("disagrees_with", "texts", "decisions of other people that say otherwise"),
    _may("commands", "texts", "the commands that it refuses"),
    _may("certainty", "number", "how surely the words settle something, from 0 to 1"),
)
_words, _heading, _form = partial(_cue, "words"), partial(_cue, "heading"), partial(_cue, "form")


def _any(alternatives: str) -> str:
    return rf"\b(?:{alternatives})\b"


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

_TABLE: tuple[MemoryKind, ...] = (
    MemoryKind(
        "requirement", "what the software must do or be",
        title="Required", name="requirement", scope="global",
        half_life_days=None,
        because="like a decision: somebody wants it until somebody says otherwise",
        told_at=("start", "search", "edit", "qa"), is_fact=False,
        contradicts="claims", recorded_on="wish",
        start_share=0.1,
        boost={"define": 1.2, "validate": 1.2},
        share={"define": 0.2, "validate": 0.25},
        fields=(
            _may("kind", "choice", "what it is about", choices="functional non_functional"),
            _may("acceptance", "text", "how one sees that it is met"),
        ),
        guess_rank=5,
        cues=(
            _words(3.5, "must",
                _any("must|shall|required|mandatory|non-negotiable|needs? to|ha(?:s|ve) to|"
                     "(?:not|never) allowed|forbidden|prohibited|off[- ]limits|may not|(?:at "
                     "(?:least|most)|no (?:more|less) than|max(?:imum)?(?: of)?|"
                     r"min(?:imum)?(?: of)?|under|within|below|up to) \d[\d,.]*"),
                r"\b\d+ ?%"),
            _words(2, "needs", _any("requires?|needs?")),
            _words(2.5, "never or always",
                _any("never|always|do not(?! forget)|don't(?! forget)|under no circumstances|"
                     "at all times|(?:every|each|all|any)(?: new| public)? (?:changes?|"
                     "commits?|prs?|pull requests?|endpoints?|apis?|tests?|features?|"
                     "functions?|files?)")),
            _words(2, "before something is done",
                r"\b(?:before|prior to|after) (?:every |each |any |all |you |a )?(?:commit\w*|"
                r"merg\w*|push\w*|releas\w*|deploy\w*|pull request|pr\b|opening|submitting|"
                r"mark\w*|finish\w*|complet\w*)"),
            _words(1.5, "should", _any("should|ensure|make sure|verify that|only")),
            _words(2, "about safety",
                _any(r"secrets?|credentials?|api keys?|passwords?|pii|gdpr|wcag|accessib\w+|"
                     r"backwards?[- ]compatib\w+|security|sanitiz\w+|encrypt\w*")),
            _heading(2, "under rules",
                _any("requirements?|rules?|must|never|always|forbidden|do not|don'?ts?|"
                     "boundaries|constraints?|invariants?|security|mandatory|critical|"
                     "non-negotiables?|definition of done|acceptance|polic(?:y|ies)|checklist|"
                     "limits?|quality gates?|review|pull requests?")),
        ),
    ),
    MemoryKind(
        "decision", "an architectural decision with its reasons",
        title="Decided", name="decision", scope="global",
        half_life_days=None, because="a decision stands until another one supersedes it",
        told_at=("start", "search", "file"), is_fact=False,
        contradicts="claims", recorded_on="wish",
        start_share=0.2,
        boost={"define": 1.1, "explore": 1.2},
        share={"define": 0.2, "explore": 0.25},
        fields=(
            _may("rationale", "text", "why it was decided so"),
            _may("alternatives", "texts", "what was considered and not taken"),
            _may("decided_by", "text", "who decided"),
            *_SAID,
        ),
        guess_rank=4,
        cues=(
            _words(4, "said to be decided",
                r"\b(?:we|i|the team|it was|was|were|has been|have been) (?:have |has |had "
                ")?(?:deliberately |intentionally |explicitly )?(?:decided|chose|chosen|opted|"
                "settled on|agreed|picked|went with|rejected|dropped|moved away|"
                r"standardi[sz]ed|migrated|switched)\b",
                r"\bdecision:|\b(?:decided (?:to|on|against|for)|ADR[- ]?\d+|by design)\b"),
            _words(2.5, "one thing over another, and why",
                r"\b(?:instead of|over|rather than|not|in favou?r of|no "
                r"longer)\b[^\n]{3,120}\b(?:because|so that|due to|as it|to (?:avoid|keep|"
                r"reduce|allow))\b"),
            _words(1.5, "a reason",
                _any("rationale|the reason (?:is|we|for|why)|trade-?offs?|deliberate(?:ly)?|on "
                     "purpose")),
            _words(1, "because", _any("because|that's why|which is why")),
            _heading(5, "under decisions",
                _any("decisions?|rationale|why|adrs?|trade-?offs?|design choices")),
        ),
    ),
    MemoryKind(
        "preference", "how the user or the project likes things done",
        title="Preferred here", name="preference", scope="global",
        half_life_days=365,
        because="habits change, but slowly: much slower than code, and not never, as decisions",
        told_at=("start", "search"), is_fact=False,
        contradicts="claims", recorded_on="wish",
        is_standing=True,
        start_share=0.1,
        fields=(
            _may("applies_to", "text", "to what, if not to everything"),
            _may("alternatives", "texts", "what was considered and not taken"),
            *_SAID,
        ),
        guess_rank=6,
        cues=(
            _words(4, "said to be preferred",
                _any(r"prefer\w*|favou?rs?|i (?:like|want|hate|love|always|never)|would rather|"
                     "we like")),
            _words(3.5, "one thing, not another",
                r"\b(?:use|using|write|stick (?:to|with)|go with)\b[^.;]{1,60}?(?:\b(?:instead "
                r"of|rather than|over|never)\b|[,(] ?(?:not|no)\b)"),
            _words(2, "what to do", r"^what (?:not )?to\b"),
            _words(2.5, "about style",
                _any(r"naming|camelcase|snake_case|kebab-case|pascalcase|upper_?case|indent\w*|"
                     "tabs?|spaces|semicolons?|quotes|trailing commas?|line (?:length|width)|"
                     "type (?:hints?|annotations?)|explicit types?|strict mode|comments?|"
                     r"docstrings?|formatt(?:ing|er)|style|readab\w+|concise|verbose|emojis?|"
                     r"tone|early returns?|immutab\w+|abbreviat\w+|commit messages?|"
                     "conventional commits|subject line|imperative mood|arrow functions?|"
                     "async/await|composition|(?:named|default) exports?|pure functions")),
            _heading(2, "under style",
                _any("style|conventions?|preferences?|formatting|naming|guidelines?|best "
                     "practices|communication|tone|principles|code quality|standards?|commits?|"
                     "git|typescript|python|documentation|comments?|imports?")),
            _form(2, "an instruction", "instruction"),
        ),
    ),
    MemoryKind(
        "pattern", "an implementation that can be used again",
        title="Patterns in use", name="pattern", scope="module",
        half_life_days=120,
        because="like a workflow recipe: it lasts as long as the structure of the code",
        told_at=("start", "search"), is_fact=False,
        contradicts="claims", recorded_on="insight",
        is_applied=True,
        start_share=0.08,
        boost={"implement": 1.1, "explore": 1.1},
        share={"implement": 0.15, "refine": 0.15, "explore": 0.2},
        fields=(
            _may("when_to_use", "text", "where it fits"),
            _may("example_file", "text", "where it can be seen"),
            _may("example_line", "count", "at which line"),
        ),
        guess_rank=7,
        cues=(
            _words(3.5, "said to be the pattern",
                _any("patterns?|idiom|boilerplate|canonical|reference implementation|see "
                     ".{2,60} (?:for|as) (?:an? |the )?(?:working )?(?:example|reference|"
                     "pattern|template)|(?:same|similar) (?:way|shape|structure) as|modell?ed "
                     "(?:on|after)|mirrors?|follow(?:s|ing)? the (?:existing|same)|copy "
                     ".{2,40} and")),
            _words(2.5, "all are made one way",
                r"\b(?:all|each|every|any|new) [\w-]+(?: [\w-]+)? (?:extends?|implements?|"
                "inherits?|go(?:es)? through|lives?|has|have|uses?|returns?|exports?|"
                r"registers?|wraps?|gets?|belongs?)\b"),
            _words(2.5, "a helper to go through",
                r"\b(?:use|call|via|through|with) (?:the |our |a )?`[^`]+`(?: \w+)? (?:helper|"
                r"wrapper|hook|util\w*|factory|decorator|fixture|client|middleware|base class|"
                r"macro|builder)\b"),
            _heading(2, "under patterns",
                _any("patterns?|examples?|idioms?|how we|common (?:tasks|operations)|recipes?|"
                     "commands?|scripts?|build|running|usage|quick (?:start|reference)|cli|"
                     "cheat ?sheet")),
            _form(2.5, "a command", "command"),
        ),
    ),
    MemoryKind(
        "workflow_recipe", "how a kind of task is done here, step by step",
        title="How it is done here", name="recipe", scope="global",
        half_life_days=120, because="it lasts as long as the structure of the code",
        told_at=("start", "search", "edit", "message"), is_fact=False,
        contradicts="own type", recorded_on="insight",
        is_applied=True,
        start_share=0.12,
        boost={"define": 1.4},
        share={"define": 0.3},
        fields=(
            _needed("task_pattern", "text", "for which kind of task"),
            _needed("steps", "steps", "what to do, in order"),
            _may("last_validated_at", "time", "when it last led to success"),
            _may("success_count", "count", "how often it did"),
        ),
        subject=("task_pattern",),
        guess_rank=9,
        cues=(
            _form(100, "steps in an order", "steps"),
        ),
    ),
    MemoryKind(
        "gotcha", "a trap, or a constraint that is not obvious",
        title="Traps", name="trap", scope="module",
        half_life_days=60, because="code is mended, and traps go with it",
        told_at=("start", "search", "file"), is_fact=True,
        contradicts="claims", recorded_on="surprise",
        is_trap=True,
        counted={},
        start_share=0.2,
        boost={"define": 0.8, "implement": 1.4, "refine": 1.2},
        share={"implement": 0.3, "refine": 0.25},
        fields=(
            _may("symptom", "text", "how it shows"),
            _may("cause", "text", "why it happens"),
            _may("workaround", "text", "what to do instead"),
        ),
        guess_rank=2,
        cues=(
            _words(4, "said to be a trap",
                _any("gotchas?|beware|watch out|pitfalls?|footguns?|caveats?|trap|be careful|"
                     r"careful with|counter-?intuitive\w*|heads[- ]up|easy to (?:miss|forget)")),
            _words(2.5, "does not do what one expects",
                _any(r"silently|surpris\w+|unexpected\w*|subtle|subtly|flaky|out of sync|"
                     "(?<!prevent )(?<!avoid )(?:race conditions?|deadlocks?|hangs?|leaks?)"),
                r"\b(?:does not|doesn't|won't|will not|cannot|can't|is not|isn't|are not|aren't|"
                r"never)\b [^.;]{0,40}?\b(?:work|supported|send|sync|thread-?safe|safe|"
                r"idempotent|reload\w*|refresh\w*|propagate\w*|inherit\w*|persist\w*|awaited|"
                r"retried|rolled back|hold)\b"),
            _words(2, "breaks something",
                _any("(?:will |would |can )?breaks?|corrupts?|overwrit(?:es?|ten)|wipes?|"
                     "rewrites?|or else|otherwise|stops? working|get(?:s)? lost|is lost")),
            _words(1.5, "marked as a note",
                r"^(?:note|warning|caution|nb|attention|⚠\S*)(?: ?[:!—–-]|\s+that\b)"),
            _words(1.5, "an exception",
                _any("unlike|except (?:that|when|for|in)|despite|even though|only works|known "
                     "issue|quirks?|there is no|not the same as")),
            _words(2, "easily forgotten",
                _any("(?:don't|do not) forget|remember (?:that|it)|keep in mind|be aware|note "
                     "that")),
            _heading(6.5, "under traps",
                _any("gotchas?|pitfalls?|caveats?|warnings?|watch out|known issues?|quirks?|"
                     "limitations?|things to (?:know|watch|avoid)|footguns?|lessons|"
                     "non-?obvious|(?:common )?mistakes|(?:critical|important) notes?")),
            _form(3, "a notice", "notice"),
        ),
    ),
    MemoryKind(
        "error_pattern", "an error that comes again, and its fix",
        title="Errors that come again", name="error", scope="module",
        half_life_days=60, because="errors go with the version that had them",
        told_at=("start", "search", "file", "error", "qa"), is_fact=True,
        contradicts="own type", recorded_on="surprise",
        is_trap=True,
        counted={},
        start_share=0.1,
        boost={"define": 0.8, "implement": 1.3, "validate": 1.4, "refine": 1.3},
        share={"implement": 0.25, "validate": 0.3, "refine": 0.35},
        fields=(
            _may("error", "text", "the message, or what is constant in it"),
            _may("fix", "text", "what helped"),
            _may("tool", "text", "which tool reported it"),
            _may("command", "text", "which command failed"),
            _may("fingerprint", "text", "what identifies it"),
            _may("occurrences", "count", "how often it was seen"),
        ),
        subject=("fingerprint",),
        guess_rank=1,
        cues=(
            _words(3, "an error and its remedy", rf"{_TROUBLE}[^\n]{{0,200}}?{_REMEDY}"),
            _words(2.5, "what to do about an error",
                r"\b(?:if|when|whenever|in case) (?:you (?:see|get|hit|encounter|run into)\b|"
                r"[^,.]{1,60}?\b(?:fails?|crash\w*|errors?|hangs?|breaks?|times out)\b)"),
            _words(1.5, "a remedy", r"\bfix: ", _any("to fix|workaround for|the fix is")),
            _heading(3, "under troubleshooting",
                _any(r"troubleshoot\w*|(?:common|known) (?:errors|problems|failures)|errors? "
                     "(?:and|&) (?:fix|solution)|debugging|faq")),
        ),
    ),
    MemoryKind(
        "dead_end", "an approach that was tried and given up",
        title="Tried and given up", name="given up", scope="global",
        half_life_days=90, because="what failed then may work with other versions",
        told_at=("start", "search", "file"), is_fact=True,
        contradicts="nothing", recorded_on="surprise",
        is_trap=True,
        planner=("Tried and given up: constraints", 8),
        start_share=0.07,
        boost={"define": 1.2, "implement": 1.2, "refine": 1.2, "reflect": 1.1},
        share={"define": 0.15, "implement": 0.1, "refine": 0.2, "reflect": 0.15},
        fields=(
            _needed("approach_tried", "text", "what was tried"),
            _needed("why_it_failed", "text", "why it did not work"),
            _may("alternative_used", "text", "what was done instead"),
            _may("task_context", "text", "for which task"),
        ),
        guess_rank=3,
        cues=(
            _words(4.5, "tried and given up",
                r"\b(?:we |i |was |were |already )?tried\b[^.]{0,120}\b(?:but|failed|did not|"
                "didn't|gave up|abandoned|reverted|too slow|no luck|not worth)",
                _any("dead end|(?:was|were) (?:tried and )?(?:abandoned|reverted|rolled back)|"
                     "gave up on")),
        ),
    ),
    MemoryKind(
        "causal_dependency", "a file that must be touched when another one changes",
        title="Files that must follow others", name="files that go together", scope="module",
        half_life_days=120, because="coupling outlives single changes, not a redesign",
        told_at=("start", "search", "file"), is_fact=True,
        contradicts="own type", recorded_on=None,
        planner=("Files that must follow", 10),
        counted={"trigger_file": "first file", "dependent_files": "further files",
                 "session_count": "sessions"},
        boost={"implement": 1.2},
        share={"implement": 0.15, "explore": 0.15},
        fields=(
            _needed("trigger_file", "text", "the file that changes"),
            _needed("dependent_files", "texts", "the files that must follow"),
            _may("reason", "text", "why"),
            _may("strength", "fraction", "in which share of the changes"),
            _may("session_count", "count", "how many sessions it was counted from"),
        ),
        subject=("trigger_file",),
    ),
    MemoryKind(
        "module_insight", "what a module is for and how it works",
        title="About modules", name="about a module", scope="module",
        half_life_days=90, because="what a module is for changes more slowly than its traps",
        told_at=("start", "search"), is_fact=False,
        contradicts="claims", recorded_on="insight",
        counted={},
        boost={"explore": 1.4},
        share={"explore": 0.4},
        fields=(
            _may("module", "text", "which module"),
            _may("purpose", "text", "what it is for"),
        ),
        guess_rank=8,
        cues=(
            _words(3, "a place and what is there",
                r"^`?[\w@.*-]*(?:/[\w.@*{},-]*)+`?(?: \([^)]*\))? ?(?::|—|–|->|→|-|=|\b(?:is|"
                r"are|contains?|holds?|defines?|has|documents?|handles?|owns?|keeps?)\b)"),
            _words(2.5, "what something is for",
                _any("contains?|lives? (?:in|under|at|on)|located (?:in|at|under)|(?:is|are) "
                     "responsible for|handles|manages|provides|exposes|implements|consists of|"
                     r"entry ?points?|is (?:an?|the) [\w -]{0,40}(?:app|application|service|"
                     "library|package|module|tool|server|client|cli|framework|monorepo|layer|"
                     "component|wrapper|api|database|branch|core|main)|wraps|defines|talks to|"
                     "depends on|(?:is )?built (?:with|on)|written in|powered by|runs on|"
                     "serves|stores")),
            _words(2, "a stack",
                "^(?:tech(?:nology)? )?(?:stack|languages?|frameworks?|frontend|front end|"
                "backend|database|db|runtime|monorepo|testing|tests|orm|ui|api|auth|state|"
                r"hosting|styling|package managers?|test frameworks?|build tool)\b[^:]{0,20}:"),
            _heading(2.5, "under structure",
                _any("architecture|structure|layout|overview|about|modules?|packages|"
                     "components|director(?:y|ies)|folders?|(?:key )?files|(?:tech(?:nology)? "
                     ")?stack|services?|domain|glossary|data model|project|codebase|what is|"
                     "context|entry points?|branching")),
            _form(0.8, "a description", "description"),
        ),
    ),
    MemoryKind(
        "e2e_observation", "how the running program behaves, seen from outside",
        title="Seen in the running program", name="seen in the running program", scope="global",
        half_life_days=30, because="user interfaces change most often of all",
        told_at=("start", "search", "qa"), is_fact=True,
        contradicts="own type", recorded_on=None,
        boost={"validate": 1.4},
        share={"validate": 0.25},
        fields=(
            _needed("observation_type", "choice", "what was seen",
                    choices="precondition timing ui_behavior test_sequence mcp_gotcha"),
            _may("tool", "text", "with which tool"),
        ),
    ),
    MemoryKind(
        "work_state", "unfinished work, for whoever goes on with it",
        title="Unfinished", name="unfinished work", scope="work_unit",
        half_life_days=7, because="after a week the tree has moved on",
        told_at=("message",), is_fact=True,
        contradicts="nothing", recorded_on=None,
        fields=(
            _may("done", "texts", "what is finished"),
            _may("remaining", "texts", "what is not"),
            _may("next_step", "text", "where to go on"),
            _may("branch", "text", "on which branch"),
            _may("open_files", "texts", "which files were being changed"),
        ),
    ),
    MemoryKind(
        "work_unit_outcome", "what came of one piece of work",
        title="What came of earlier work", name="outcome", scope="work_unit",
        half_life_days=90, because="an episode, like a dead end: it teaches for a season",
        told_at=("search", "message"), is_fact=True,
        contradicts="nothing", recorded_on=None,
        planner=("What came of earlier work", 5),
        boost={"validate": 1.1, "reflect": 1.4},
        share={"validate": 0.15, "reflect": 0.4},
        fields=(
            _needed("outcome", "choice", "how it ended",
            choices="success partial failure abandoned"),
            _may("summary", "text", "what was done"),
            _may("files_changed", "texts", "where"),
            _may("steps", "count", "in how many steps"),
            _may("what_helped", "text", "what made it go well"),
        ),
    ),
    MemoryKind(
        "task_calibration", "how many steps work takes, against how many were planned",
        title="How estimates went", name="estimates", scope="module",
        half_life_days=180, because="an average over many sessions moves slowly",
        told_at=("search", "message"), is_fact=True,
        contradicts="own type", recorded_on=None,
        planner=("How estimates went", 5),
        boost={"define": 1.1, "reflect": 1.3},
        share={"define": 0.1, "reflect": 0.35},
        fields=(
            _needed("module", "text", "of which module"),
            _needed("methodology", "text", "planned by which method"),
            _needed("average_actual_steps", "number", "steps taken"),
            _needed("average_planned_steps", "number", "steps planned"),
            _needed("ratio", "number", "taken to planned"),
            _needed("sample_count", "count", "over how many pieces of work"),
        ),
        subject=("module", "methodology"),
    ),
    MemoryKind(
        "prefetch_pattern", "files that are read together",
        title="Files that are read together", name="prefetch pattern", scope="module",
        half_life_days=60,
        because="counted from sessions, it is counted anew while it is true; like a gotcha, it "
                "goes with the code",
        told_at=("search", "file", "message"), is_fact=True,
        contradicts="own type", recorded_on=None,
        is_about_reading=True,
        counted={"module_trigger": "module", "always_read_files": "files",
                 "session_count": "sessions"},
        boost={"implement": 1.1},
        fields=(
            _needed("module_trigger", "text", "the module that makes them needed"),
            _needed("always_read_files", "texts", "read in more than 80 % of the sessions"),
            _may("frequently_read_files", "texts", "read in more than 50 % of them"),
            _needed("session_count", "count", "how many sessions it was counted from"),
        ),
        subject=("module_trigger",),
    ),
    MemoryKind(
        "context_cost", "how many tokens work on a module takes",
        title="What work takes", name="context cost", scope="module",
        half_life_days=60,
        because="sizes drift with the code, and are counted anew while they are true",
        told_at=("search", "read"), is_fact=True,
        contradicts="own type", recorded_on=None,
        fields=(
            _needed("module", "text", "of which module"),
            _needed("average_tokens", "count", "tokens of a session"),
            _may("peak_tokens", "count", "of the dearest one"),
            _needed("session_count", "count", "how many sessions it was counted from"),
        ),
        subject=("module",),
    ),
)  # fmt: skip


def index_kinds(table: tuple[MemoryKind, ...]) -> Mapping[MemoryType, MemoryKind]:
    """Return the specs by type; each type must have one.

    Raises:
        ValueError: If the table and ``MemoryType`` do not name the same types.
    """
    index = {kind.type: kind for kind in table}
    types = set(get_args(MemoryType))
    if len(index) != len(table) or types != set(index):
        named = ", ".join(sorted(types ^ set(index))) or "one of them is given twice"
        raise ValueError(f"Each memory type needs one spec in knowledge/kinds.py: {named}.")
    return index


KINDS: Mapping[MemoryType, MemoryKind] = index_kinds(_TABLE)


def types_told_at(moment: TellMoment) -> tuple[MemoryType, ...]:
    """Return the types that may be told at a moment."""
    return tuple(kind.type for kind in KINDS.values() if moment in kind.told_at)


def half_life_of(type_: MemoryType, own: float | None) -> float | None:
    """Return a memory's half-life in days; a type without one never fades."""
    days = KINDS[type_].half_life_days
    return None if days is None else own or days


def checked_data(type_: MemoryType, data: Mapping[str, Any], is_strict: bool) -> dict[str, Any]:
    """Return the fields of a memory, checked.

    Args:
        type_: The type, which decides what fields there are.
        data: The fields; names may be written as in JSON (``taskPattern``).
        is_strict: True if the needed fields must be there even when nothing else is.

    Raises:
        InvalidInputError: If a field is unknown, missing or of the wrong shape.
    """
    if not isinstance(data, Mapping):
        raise InvalidInputError(f"data must be a dict, not {type(data).__name__}.", field="data")
    given = by_snake_name(data)
    fields = {field.name: field for field in KINDS[type_].fields}
    unknown = sorted(set(given) - set(fields))
    if unknown:
        raise InvalidInputError(
            f"A {type_} has no field {', '.join(unknown)}. It may have: "
            f"{', '.join(fields) or 'none'}.",
            field="data",
        )
    missing = [
        field.name for field in fields.values() if field.is_needed and field.name not in given
    ]
    if missing and (given or is_strict):
        raise InvalidInputError(
            f"The data of a {type_} needs {', '.join(missing)}.", field="data", missing=missing
        )
    return {name: fields[name].check(given[name]) for name in fields if name in given}


def subject_key(type_: MemoryType, data: Mapping[str, Any]) -> str | None:
    """Return the key that all versions of one thing share."""
    names = KINDS[type_].subject
    values = [str(data[name]).casefold().strip() for name in names if data.get(name)]
    return f"{type_}:{'|'.join(values)}" if names and len(values) == len(names) else None
