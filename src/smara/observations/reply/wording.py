"""What kind of observation a line is, by how it is worded.

The prompts ask for lines that begin with who and what ("User asked to …", "Agent ran …"),
so the first verb decides. Models paraphrase; the verbs they use instead are here too.
"""

from __future__ import annotations

import re

from smara.observations.models import Category

_SUBJECTS = {
    "user": "user", "human": "user",
    "agent": "agent", "assistant": "agent", "ai": "agent", "claude": "agent", "codex": "agent",
    "model": "agent",
}  # fmt: skip

_USER_VERBS: dict[Category, str] = {
    "request": "request instruct order assign",
    "question": "wonder question",
    "preference": "prefer like dislike hate love favor favour require insist want expect",
    "change": "switch migrate change replace stop move rename drop remove cancel quit",
    "decision": "decide choose chose agree approve reject confirm accept settle pick",
    "blocker": "wait blocked",
}
_AGENT_VERBS: dict[Category, str] = {
    "fix": "fix resolve correct repair patch solve mend",
    "error": "try attempt fail could couldn't unable cannot",
    "command": "run ran rerun reran execute commit push install uninstall call invoke deploy "
               "build built query merge "
               "rebase start stop launch",
    "test": "test",
    "decision": "decide choose chose",
    "code": "write wrote rewrite rewrote create add implement change edit refactor rename move "
            "remove delete configure "
            "set define update introduce extract generate replace migrate modify optimize "
            "optimise import upgrade bump "
            "split apply",
    "answer": "answer explain recommend suggest tell told list describe provide show propose "
              "advise compare summarize "
              "summarise outline reply offer give gave",
    "finding": "find found discover notice learn read view see saw search look investigate "
               "identify determine verify "
               "inspect measure confirm debug explore review analyze analyse locate trace check",
    "question": "ask",
    "blocker": "wait blocked",
    "completion": "complete finish",
}  # fmt: skip
_BEGINNINGS: dict[Category, str] = {
    "blocker": "blocked blocker blockers waiting",
    "error": "error exception traceback failed failure fails crash",
    "test": "test tests coverage",
    "fix": "fix fixed resolved",
    "decision": "decision decided chose",
    "preference": "preference prefer",
    "change": "switched migrated replaced renamed",
    "finding": "found finding cause root discovered according symptom symptoms",
    "command": "ran command committed installed delegated",
    "code": "wrote created added implemented refactored changed removed",
    "question": "question",
    "request": "request requested todo task",
    "answer": "answer answered explained recommended",
    "completion": "completed done finished",
}  # fmt: skip
_PHRASES: dict[Category, str] = {
    "change": r"\b(?:switch(?:ed|ing)|migrat(?:ed|ing)|replac(?:ed|ing)|no longer|instead of"
              r"|changing from)\b|\(was\s"
              r"|\bupdating (?:a |the )?(?:previous|earlier)\b",
    "preference": r"\b(?:prefer(?:s|red|ence)?|rather than|always|never|(?:dis)?likes)\b",
    "decision": r"\b(?:decided|chose|approved|rejected)\b",
    "blocker": r"\b(?:blocked (?:by|on)|waiting (?:for|on))\b",
}  # fmt: skip
_OVERLOOKED = frozenset(
    ("the", "then", "also", "again", "later", "first", "now", "has", "have", "had", "is", "was",
    "are", "were", "will",
     "just", "still", "not")
)  # fmt: skip
_ASKED_TO = frozenset(("to", "for", "that", "not", "help", "again"))
_TOUCHES_TESTS = (
    "write",
    "wrote",
    "add",
    "create",
    "update",
    "extend",
    "run",
    "ran",
    "rerun",
    "reran",
    "execute",
)
_WORD = re.compile(r"[\w'’-]+")
_FAILED = re.compile(r"\bfailed(?::| with\b)", re.IGNORECASE)
_LOOKED_AT = 400


def _forms(verb: str) -> tuple[str, ...]:
    """How a verb is written: ``fix`` also as fixes, fixed, fixing."""
    stem = verb[:-1] if verb.endswith("e") else verb
    forms = [
        verb,
        f"{verb}s",
        f"{verb}es",
        f"{stem}ed",
        f"{stem}ing",
        f"{verb}{verb[-1]}ed",
        f"{verb}{verb[-1]}ing",
    ]
    if verb.endswith("y"):
        forms += [f"{verb[:-1]}ied", f"{verb[:-1]}ies"]
    return tuple(forms)


def _table(verbs: dict[Category, str], is_inflected: bool = True) -> dict[str, Category]:
    return {
        form: category
        for category, listed in verbs.items()
        for verb in listed.split()
        for form in (_forms(verb) if is_inflected else (verb,))
    }


_USER, _AGENT, _BEGINNING = (
    _table(_USER_VERBS),
    _table(_AGENT_VERBS),
    _table(_BEGINNINGS, is_inflected=False),
)
_ASK, _WANT = frozenset(_forms("ask")), frozenset(_forms("want"))
_TESTING = frozenset(form for verb in _TOUCHES_TESTS for form in _forms(verb))


def subject_of(text: str) -> str | None:
    """Who a line is about, ``user`` or ``agent``; ``None`` for neither."""
    words = _WORD.findall(text[:40].lower())
    name = next((word for word in words if word != "the"), "")
    return _SUBJECTS.get(re.sub("['’]s$", "", name))


def category_of(text: str) -> Category:
    """The kind of a line.

    >>> category_of("User asked how to test it"), category_of("User asked to test it"), category_of("Agent ran pytest")
    ('question', 'request', 'command')
    """  # noqa: E501
    head = text[:_LOOKED_AT].lstrip(" \"'*`")
    words = _WORD.findall(head.lower())
    subject = subject_of(head)
    if subject is None:
        return (
            _of_beginning(words)
            or _of_phrases(head)
            or ("error" if _FAILED.search(head) else "note")
        )
    said = [word for word in words if word not in _OVERLOOKED and not word.endswith("ly")][1:12]
    if subject == "agent":
        return _of_agent(said) or "note"
    return _of_user(said) or _of_phrases(head) or "statement"


def _of_user(said: list[str]) -> Category | None:
    if not said:
        return None
    verb, rest = said[0], [word for word in said[1:] if word not in _SUBJECTS]
    if verb in _ASK:
        return "request" if rest and rest[0] in _ASKED_TO else "question"
    if verb == "told" or verb in _WANT:
        is_order = len(said) > 1 and said[1] in _SUBJECTS and "to" in rest[:2]
        return "request" if is_order else _USER.get(verb)
    return _USER.get(verb)


def _of_agent(said: list[str]) -> Category | None:
    if not said:
        return None
    return "test" if _is_about_tests(said) else _AGENT.get(said[0])


def _is_about_tests(words: list[str]) -> bool:
    return words[0] in _TESTING and bool({"test", "tests"} & set(words[1:6]))


def _of_beginning(words: list[str]) -> Category | None:
    if not words:
        return None
    if words[0].endswith(("error", "exception")):
        return "error"
    if words[:2] == ["not", "found"]:
        return "finding"
    return "test" if _is_about_tests(words) else _BEGINNING.get(words[0])


def _of_phrases(text: str) -> Category | None:
    return next(
        (category for category, words in _PHRASES.items() if re.search(words, text, re.IGNORECASE)),
        None,
    )
