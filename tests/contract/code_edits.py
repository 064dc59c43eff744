"""A small project that is edited at random: names, bases, imports and files come and go."""

from __future__ import annotations

import random
from pathlib import Path

_WORDS = ("load", "store", "parse", "render", "check", "merge", "split", "route", "guess", "fetch")
_CLASSES = ("Engine", "Client", "Store", "Router", "Parser", "Worker")


class Project:
    """Python modules in packages, and some TypeScript and Go beside them, that use each other."""

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng = rng
        self.root = root
        self.modules: list[str] = []
        for path in ("app/__init__.py", "app/core/__init__.py"):
            self._write(path, "")
        for _ in range(6):
            self._add()

    def edit(self) -> list[str]:
        """Change something; the paths that changed."""
        kinds = (
            self._rewrite,
            self._rewrite,
            self._rewrite,
            self._grow,
            self._shrink,
            self._insert,
            self._insert,
            self._replace,
            self._add,
            self._remove,
            self._move,
        )
        return self.rng.choice(kinds)()

    def _add(self) -> list[str]:
        ending = self.rng.choice((".py", ".py", ".py", ".ts", ".go"))
        folder = (
            self.rng.choice(("app", "app/core", "tests"))
            if ending == ".py"
            else {".ts": "web", ".go": "srv"}[ending]
        )
        name = self.rng.choice(_WORDS) + self.rng.choice(("", "", "s", "er"))
        path = f"{folder}/{'test_' if folder == 'tests' else ''}{name}{ending}"
        if path not in self.modules:
            self.modules.append(path)
        self._write(path, self._text(path))
        return [path]

    def _remove(self) -> list[str]:
        if len(self.modules) < 4:
            return self._add()
        path = self.modules.pop(self.rng.randrange(len(self.modules)))
        (self.root / path).unlink()
        return [path]

    def _move(self) -> list[str]:
        if len(self.modules) < 4:
            return self._add()
        before = self.rng.choice(self.modules)
        after = (
            before.replace("app/core/", "app/").replace("app/", "app/core/", 1)
            if before.endswith(".py")
            else before
        )
        if after == before or after in self.modules:
            return self._rewrite()
        self.modules[self.modules.index(before)] = after
        (self.root / before).rename(self.root / after)
        return [before, after]

    def _rewrite(self) -> list[str]:
        path = self.rng.choice(self.modules)
        self._write(path, self._text(path))
        return [path]

    def _grow(self) -> list[str]:
        path = self.rng.choice(self.modules)
        file = self.root / path
        self._write(path, file.read_text() + "\n" + self._function(path))
        return [path]

    def _shrink(self) -> list[str]:
        path = self.rng.choice(self.modules)
        lines = (self.root / path).read_text().splitlines()
        self._write(path, "\n".join(lines[: self.rng.randint(0, len(lines))]) + "\n")
        return [path]

    def _insert(self) -> list[str]:
        """Put something between two lines, wherever that may be."""
        path = self.rng.choice(self.modules)
        lines = (self.root / path).read_text().splitlines(keepends=True)
        word, name = self.rng.choice(_WORDS), self.rng.choice(_CLASSES)
        new = self.rng.choice(
            (
                "\n",
                "# said\n",
                f"    {self._call('self')}\n",
                f"        {self._call('y')}\n",
                self._import(path),
                f"    def {word}(self, {self.rng.choice(_WORDS)}):\n        self.held = {name}()\n",
                f"{word} = {name}()\n",
                self._function(path),
                self._class(path),
            )
        )
        place = self.rng.randint(0, len(lines))
        self._write(path, "".join([*lines[:place], new, *lines[place:]]))
        return [path]

    def _replace(self) -> list[str]:
        """Put one name for another, in one place or in all."""
        path = self.rng.choice(self.modules)
        text = (self.root / path).read_text()
        names = self.rng.choice((_WORDS, _CLASSES))
        old, new = self.rng.choice(names), self.rng.choice(names)
        self._write(path, text.replace(old, new, self.rng.choice((1, -1))))
        return [path]

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _text(self, path: str) -> str:
        if path.endswith(".py"):
            parts = [self._import(path) for _ in range(self.rng.randint(0, 4))]
            parts += [self._class(path) for _ in range(self.rng.randint(0, 2))]
        elif path.endswith(".go"):
            parts = ["package srv\n"]
        else:
            parts = [self._import(path) for _ in range(self.rng.randint(0, 2))]
        return "\n".join([*parts, *(self._function(path) for _ in range(self.rng.randint(0, 3)))])

    def _import(self, path: str) -> str:
        other = self.rng.choice(
            [each for each in self.modules if each.endswith(path[-3:])] or ["app/core/load.py"]
        )
        name = self.rng.choice(_WORDS + _CLASSES)
        if path.endswith(".ts"):
            return f'import {{ {name} }} from "./{other.rpartition("/")[2].removesuffix(".ts")}";\n'
        dotted = other.removesuffix(".py").replace("/", ".")
        above, _, last = dotted.rpartition(".")
        return self.rng.choice(
            (
                f"from {dotted} import {name}\n",
                f"from {dotted} import {name} as {self.rng.choice(_WORDS)}\n",
                f"import {dotted}\n",
                f"import {dotted} as {last}\n",
                f"from {above or dotted} import {last}\n",
                f"from {dotted} import *\n",
                f"from .{last} import {name}\n",
            )
        )

    def _class(self, path: str) -> str:
        rng = self.rng
        name, base = rng.choice(_CLASSES), rng.choice((*_CLASSES, "", "core.Engine"))
        methods = "".join(
            f"    def {rng.choice(_WORDS)}(self, x: {rng.choice(_CLASSES)}):\n        return "
            f"{self._call('self')}\n\n"
            for _ in range(rng.randint(1, 3))
        )
        return (
            f"class {name}{f'({base})' if base else ''}:\n    held = "
            f"{rng.choice(_CLASSES)}()\n\n{methods}"
        )

    def _function(self, path: str) -> str:
        rng = self.rng
        name, other, type_ = rng.choice(_WORDS), rng.choice(_WORDS), rng.choice(_CLASSES)
        if path.endswith(".ts"):
            return f"export function {name}(x: {type_}) {{\n  return {other}(x.{name}());\n}}\n"
        if path.endswith(".go"):
            one, two = rng.randint(1, 3), rng.randint(1, 3)
            return f"func {name.title()}{one}() int {{\n\treturn {other.title()}{two}()\n}}\n"
        returned = rng.choice(("", f" -> {rng.choice(_CLASSES)}"))
        test = "test_" if path.startswith("tests/") else ""
        body = f"    y = {self._call('x')}\n    return {self._call('y')}\n"
        return f"def {test}{name}(x: {type_}){returned}:\n{body}"

    def _call(self, receiver: str) -> str:
        word, name = self.rng.choice(_WORDS), self.rng.choice(_CLASSES)
        calls = (
            f"{word}()",
            f"{receiver}.{word}()",
            f"{name}().{word}()",
            f"{receiver}.held.{word}()",
            f"{name}()",
        )
        return self.rng.choice(calls)
