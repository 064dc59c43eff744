"""Lint the names and the English of the source: ``python -m tests.house_lint``.

The rules stand in CONTRIBUTING.md. Each finding is printed as ``file:line: rule: text``; the exit
code is 1 when a rule has more findings than its allowance below. Allowances only go down.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "smara"

NO_NAME = frozenset({"told", "said", "held", "kept", "asked", "wanted", "known"})
"""Participles: they name no parameter, attribute, class, variable, constant or function."""
NO_FILE = NO_NAME | {
    "found", "asking", "telling", "reading", "taking", "saving", "holding", "finding", "lately",
    "beside", "worth", "near", "earlier", "manager", "service", "handler", "helper", "helpers",
    "utils", "base", "common", "process", "data", "info", "misc",
}  # fmt: skip
NO_PHRASE = re.compile(r"\b(?:nobody|somebody|whoever|anew|(?:what|that) is none)\b", re.IGNORECASE)
NO_OPENING = re.compile(r"(?:What|Whether|How|Whose|Where|When|Who|Which|Why)\b")
MOST_WORDS = 12

ALLOWANCE = {
    "file": 0, "class": 0, "name": 11, "found": 10, "phrase": 0, "comment": 20, "text": 7,
    "first line": 0,
}  # fmt: skip
"""How many findings a rule may have. *Found* is a parameter of this name; a *comment* is also the
string after an attribute; a *text* is any other string.
"""


def bindings(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the rule for each name that a module binds, and the name in small letters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name
        else:
            continue
        bare = name.strip("_").lower()
        if bare in NO_NAME:
            yield node.lineno, "name", name
        elif isinstance(node, ast.arg) and bare == "found":
            yield node.lineno, "found", name


def docstrings(tree: ast.Module) -> Iterator[tuple[int, bool, str]]:
    """Yield the line of each docstring, whether it is of a public name, and its text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                name = getattr(node, "name", "module")
                yield getattr(node, "lineno", 1), not name.startswith("_"), text


def other_words(text: str, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield comments, the strings after attributes, and all strings but docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], "comment", token.string
    documented = {words for _, _, words in docstrings(tree)}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and inspect.cleandoc(node.value) not in documented
        ):
            yield node.lineno, "comment" if id(node) in alone else "text", node.value


def findings(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield what breaks a rule in one file, as line, rule and the words at fault."""
    tree = ast.parse(text)
    if path.stem in NO_FILE or (
        path.stem.endswith("ing") and path.stem not in ("working", "testing")
    ):
        yield 1, "file", path.stem
    yield from bindings(tree)
    for line, rule, words in other_words(text, tree):
        if phrase := NO_PHRASE.search(words):
            yield line, rule, phrase[0]
    for line, is_public, words in docstrings(tree):
        if phrase := NO_PHRASE.search(words):
            yield line, "phrase", phrase[0]
        first = words.splitlines()[0]
        if is_public and (len(first.split()) > MOST_WORDS or NO_OPENING.match(first)):
            yield line, "first line", first


def repeated_classes(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the names that stand for more than one class."""
    names = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    yield from (name for name, times in names.items() if times > 1)


def main() -> int:
    """Print what breaks a rule; return 1 if a rule has more findings than its allowance."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    found = [
        (rule, f"{path.relative_to(SOURCE.parents[1])}:{line}: {rule}: {words}")
        for path, text in texts.items()
        for line, rule, words in findings(path, text)
    ]
    trees = {path: ast.parse(text) for path, text in texts.items()}
    found += [("class", f"class: {name} stands for several") for name in repeated_classes(trees)]
    counts = Counter(rule for rule, _ in found)
    over = [rule for rule, most in ALLOWANCE.items() if counts[rule] > most]
    for rule, line in found:
        if rule in over or "--all" in sys.argv:
            sys.stdout.write(f"{line}\n")
    for rule, most in ALLOWANCE.items():
        sys.stdout.write(f"{rule}: {counts[rule]} of at most {most}\n")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
