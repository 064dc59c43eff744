"""Write ``src/smara/aio.pyi``, the types of the async face: ``python -m tests.async_stub``.

Every public method of `Memory` and of its rooms becomes a coroutine with the same parameters; a
generator becomes an async iterator. The annotations are taken as they are written in the source,
with the imports that their modules make.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from smara.codegraph.queries import CodeQueries
from smara.memory import Memory, Room, open_memory

STUB = Path(__file__).parents[1] / "src" / "smara" / "aio.pyi"
ROOMS = {"CodeQueries": CodeQueries}
"""What a room returns whose methods are awaited, too (``is_room``)."""
HEAD = '"""The types of the async face. Written by ``python -m tests.async_stub``."""\n'
TAIL = """

class OpeningMemory:
    def __await__(self) -> Generator[Any, None, AsyncMemory]: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

"""
ENTER = """    def __init__(self, memory: Memory) -> None: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ..."""


class Imports:
    """The names that the stub imports; a second meaning of a name gets another name."""

    def __init__(self) -> None:
        self._origins: dict[str, tuple[str, str]] = {}
        self._tables: dict[str, dict[str, tuple[str, str]]] = {}

    def add(self, module: str, name: str) -> str:
        """Return the name under which the stub knows a name of a module."""
        alias = name
        while self._origins.setdefault(alias, (module, name)) != (module, name):
            alias = f"{module.split('.')[1].title()}{alias}"
        return alias

    def table(self, module: str) -> dict[str, tuple[str, str]]:
        """Return the names of a module with where they come from."""
        if module not in self._tables:
            self._tables[module] = dict(origins(importlib.import_module(module)))
        return self._tables[module]

    def translate(self, annotation: str, module: ModuleType) -> str:
        """Return an annotation of a module with names that the stub imports."""
        names = self.table(module.__name__)
        tree = ast.parse(annotation, mode="eval")
        roots = {
            node.value.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                origin, name = names[node.id]
                # A module may pass on what it imports; the stub names the module that defines it.
                while origin.startswith("smara.") and name in self.table(origin):
                    before, (origin, name) = (origin, name), self.table(origin)[name]
                    if before == (origin, name):
                        break
                if node.id in roots:
                    self._origins[node.id] = (origin, "")
                else:
                    node.id = self.add(origin, name)
        return ast.unparse(tree)

    def render(self) -> str:
        lines = []
        for alias, (module, name) in sorted(self._origins.items(), key=lambda item: item[1]):
            if not name:
                lines.append(f"import {module}")
            else:
                lines.append(
                    f"from {module} import {name}" + (f" as {alias}" if alias != name else "")
                )
        return "\n".join(lines)


def origins(module: ModuleType) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the names that a module defines or imports, with where they come from."""
    tree = ast.parse(inspect.getsource(module))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, (module.__name__, node.name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, (module.__name__, target.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, (node.module or "", alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, (alias.name, "")


def signature(function: object, module: ModuleType, imports: Imports) -> tuple[str, str]:
    """Return the parameters and the result of a function, as the stub writes them."""
    found = inspect.signature(function)  # type: ignore[arg-type]
    parameters, is_named = [], False
    for each in found.parameters.values():
        annotation = ""
        if each.annotation is not each.empty:
            annotation = f": {imports.translate(each.annotation, module)}"
        if each.kind is each.KEYWORD_ONLY and not is_named:
            parameters.append("*")
        is_named = is_named or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else " = ..." if annotation else "=..."
        parameters.append(f"{star}{each.name}{annotation}{default}")
    result = "Any" if found.return_annotation is found.empty else found.return_annotation
    return ", ".join(parameters), imports.translate(result, module)


def members(kind: type, imports: Imports) -> Iterator[str]:
    """Yield the public methods and attributes of a class, as the async face has them."""
    own = [base for base in reversed(kind.__mro__) if base is not object]
    names = {name: value for base in own for name, value in vars(base).items()}
    for name, value in names.items():
        if name.startswith("_") or isinstance(value, Room):
            continue
        if isinstance(value, property) or hasattr(value, "func"):
            getter = value.fget if isinstance(value, property) else value.func
            _, result = signature(getter, importlib.import_module(getter.__module__), imports)
            yield f"    @property\n    def {name}(self) -> {result}: ..."
        elif inspect.isfunction(value):
            module = importlib.import_module(value.__module__)
            parameters, result = signature(value, module, imports)
            if (kind is Memory and result == "Memory") or result in ROOMS:
                result = f"Async{result}"
            is_stream = inspect.isgeneratorfunction(inspect.unwrap(value))
            if is_stream and value is inspect.unwrap(value):
                imports.add("collections.abc", "AsyncIterator")
                result = f"AsyncIterator[{result.partition('[')[2]}"
            start = "def" if is_stream and result.startswith("Async") else "async def"
            yield f"    {start} {name}({parameters}) -> {result}: ..."


def stub() -> str:
    """Return the text of ``aio.pyi``."""
    imports = Imports()
    for module, name in (
        ("collections.abc", "Generator"),
        ("types", "TracebackType"),
        ("typing", "Any"),
        ("smara.memory", "Memory"),
    ):
        imports.add(module, name)
    table = dict(origins(importlib.import_module("smara.rooms")))
    classes, attributes = [], []
    for name, value in vars(Memory).items():
        if not isinstance(value, Room):
            continue
        module, room = table[value.room.func.__annotations__["return"]]
        kind = getattr(importlib.import_module(module), room)
        body = "\n".join(members(kind, imports))
        classes.append(f"class Async{room}:\n{body}\n")
        attributes.append(f"    {name}: Async{room}")
    for name, kind in ROOMS.items():
        classes.append(f"class Async{name}:\n" + "\n".join(members(kind, imports)) + "\n")
    memory = "\n".join([*attributes, ENTER, *members(Memory, imports)])
    parameters, _ = signature(open_memory, importlib.import_module("smara.memory"), imports)
    return "\n".join(
        [
            HEAD,
            imports.render(),
            "",
            "\n".join(classes),
            f"class AsyncMemory:\n{memory}\n{TAIL}",
            f"def open_async({parameters}) -> OpeningMemory: ...\n",
        ]
    )


def formatted(text: str) -> str:
    """Return the text of a stub with sorted imports, in ruff's layout."""
    for command in (["format", "-"], ["check", "--select", "I,F401", "--fix", "-q", "-"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB)],
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(formatted(stub()), encoding="utf-8")
