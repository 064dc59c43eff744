"""Whether a list is a procedure, to be done in its order, or a collection of rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.core.wordlists import word_set

_PROCEDURE = re.compile(
    r"\b(how to|steps?|step[- ]by[- ]step|procedure|process|workflow|recipe|checklist|release"
    r"|deploy(ing|ment)?|set ?up"
    r"|getting started|install(ation|ing)?|onboarding|migrat(e|ing|ion)|(to|when|for|before"
    r"|after) (add|creat|writ|mak"
    r"|chang|releas|deploy|fix|debug|updat|upgrad|implement|commit|merg|open|submit|start|finish"
    r"|complet|test)\w*"
    r"|(adding|creating|writing|making|changing|updating|upgrading|implementing|committing"
    r"|debugging|publishing|"
    r"landing)"
    r" (an? |the |new |your )?\w+|session (start|end|close|completion)|in this order|as follows"
    r"|do the following)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"(always|never|do not|don't|avoid|prefer|must|no|only|all|every|any|use|keep|be|favou?r)\b",
    re.IGNORECASE,
)
_DOING = word_set(
    "add analyze announce apply ask assign authenticate branch build bump call change check "
    "checkout choose claim clean"
    " clone close cd commit compare compile complete configure connect copy create cut define "
    "delete deploy describe"
    " determine disable document download draft edit enable ensure enter execute export extend "
    "extract fetch file fill"
    " find finish fix follow format generate get go identify implement import include initialize "
    "inspect install invoke"
    " land launch lint link list load log look make map mark merge migrate modify move name "
    "navigate notify open"
    " package"
    " paste pick plan post prepare press prune publish pull push put read rebase rebuild record "
    "refactor register"
    " release remove rename replace report reproduce request reset resolve restart restore return "
    "review revert"
    " run save"
    " scaffold search select send set ship sign squash stage start stash stop submit switch sync "
    "tag test trace train"
    " trigger try understand undo update upgrade upload validate verify visit wait wire write"
)
MOST_STEPS = 50
_LABEL = re.compile(r"[^:.`]{1,40}:\s+")
_FIRST_WORD = re.compile(
    r"[^A-Za-z`]*(?:then |now |next,? |first,? |finally,? |optionally,? )?([A-Za-z]+)",
    re.IGNORECASE,
)


def is_procedure(items: Sequence[str], title: str, is_ordered: bool) -> bool:
    """Whether the items are the steps of one thing. ``title`` is what leads to them.

    A numbered list is one when its items say what to do, or its title speaks of a procedure;
    an unnumbered one needs both. Numbered rules (*Always …*, *Never …*) are no procedure.
    """
    if not 2 <= len(items) <= MOST_STEPS:
        return False
    rules = sum(bool(_RULE.match(_without_label(item))) for item in items)
    doing = sum(_does(item) for item in items)
    named = bool(_PROCEDURE.search(title))
    if rules * 2 > len(items):
        return False
    if is_ordered:
        return doing * 2 >= len(items) or (named and rules == 0)
    return bool(
        re.search(r"\b(steps?|how to|procedure|checklist)\b", title, re.IGNORECASE)
    ) and doing == len(items)


def _without_label(item: str) -> str:
    return _LABEL.sub("", item, count=1)


def _does(item: str) -> bool:
    """Whether an item begins with something to do, also behind a label: *Verify: run the tests*."""
    return any(_begins_with_doing(each) for each in (item, _without_label(item)))


def _begins_with_doing(item: str) -> bool:
    if item.startswith(("`", "$ ")):
        return True
    found = _FIRST_WORD.match(item)
    return bool(found) and found[1].lower() in _DOING  # type: ignore[index]
