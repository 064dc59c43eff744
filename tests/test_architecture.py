"""The house's rules that a machine can check: who may import whom, and where the environment, SQL
and printing live.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import smara

SOURCE = Path(__file__).parents[1] / "src" / "smara"
EVALS = Path(__file__).parents[1] / "evals"

# "Who may import whom" of the style guide, from the top row to the bottom: a row sees every row
# below it.
ROWS: tuple[tuple[str, ...], ...] = (
    ("surfaces", "__main__"),
    ("adapters",),  # a framework's agent gets the tools
    ("providers", "tools", "fleet"),  # a door may call them: `smara mcp` the tools
    ("memory", "rooms", "aio", "doctor", "testing", "shapes", "texts"),
    ("browse",),  # people look at every room
    ("context", "links", "privacy", "feed", "jobs", "requests"),
    ("search", "prompt"),
    ("meaning", "decisions", "frameworks"),
    ("observations", "behavior"),
    ("messages", "tasks", "working", "knowledge", "codegraph", "commits"),
    ("actions", "journal"),
    ("secrets", "models"),
    ("database",),
    ("core", "errors", "config", "environment", "telemetry"),
)
ROW_OF = {room: number for number, row in enumerate(ROWS) for room in row}
# Rooms of one row that belong together: the async face, the doctor and the fakes all open a Memory;
# those at the bottom are one ground floor; ``python -m smara`` is the command line.
TOGETHER = (
    {"memory", "rooms", "aio", "doctor", "testing"},
    {"core", "errors", "config", "environment", "telemetry"},
    {"surfaces", "__main__"},
)
MOST_LINES_OF_A_FILE = 640
MOST_LINES_OF_A_FUNCTION = 120


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = ("smara", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@pytest.fixture(scope="module", autouse=True)
def _trees_are_let_go() -> Iterator[None]:
    """A million nodes would slow down every test that comes after."""
    yield
    tree_of.cache_clear()
    nodes_of.cache_clear()
    class_names.cache_clear()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module of ours that a file imports, lazily or for type checking too, with its line."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            module = ".".join([*base, *([node.module] if node.module else [])])
            found = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in found if name.split(".")[0] == "smara")


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or any({importer, imported} <= rooms for rooms in TOGETHER):
        return True
    return ROW_OF.get(importer, len(ROWS)) < ROW_OF[imported]


def broken_imports(
    rooms: Callable[[str], bool], is_allowed: Callable[[str, str], bool]
) -> list[str]:
    """The imports of some rooms that are not allowed, as ``module:line imports name``."""
    return [
        f"{name_of(path)}:{line} imports {name}"
        for path in modules()
        if rooms(room := room_of(name_of(path)))
        for line, name in imports(path)
        if not is_allowed(room, name)
    ]


def test_arrows_go_down_only_and_rooms_of_one_row_do_not_see_each_other():
    assert (
        broken_imports(
            lambda room: room != "",
            lambda room, name: room_of(name) not in ROW_OF or may_import(room, room_of(name)),
        )
        == []
    )


def test_every_room_has_its_place_in_the_table():
    rooms = {room_of(name_of(path)) for path in modules()} - {""}
    assert rooms - set(ROW_OF) == set()


def test_the_table_names_no_room_that_is_not_there():
    assert set(ROW_OF) - {room_of(name_of(path)) for path in modules()} == set()


def test_contributing_shows_the_same_table():
    page = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("holds the table:\n\n```\n")[2].partition("```")[0]
    shown = [set(line.split()) for line in table.splitlines()]
    assert shown == [set(row) - {"__main__"} for row in ROWS]


ARCHITECTURE = SOURCE.parents[1] / "docs" / "design" / "architecture.md"


def is_there(name: str, rooms: Iterable[str]) -> bool:
    """Return True if a file, folder, module or class exists: at the top or in one of some rooms."""
    if (SOURCE.parents[1] / name).is_file():
        return True
    parts = name.removeprefix("smara.").strip("/").replace("/", ".").split(".")
    for folder in (SOURCE, *(SOURCE / room for room in rooms)):
        path = folder.joinpath(*parts)
        module = folder.joinpath(*parts[:-1]).with_suffix(".py")
        if path.is_dir() or path.with_suffix(".py").is_file():
            return True
        if module.is_file() and parts[-1] in {
            getattr(node, "name", "") for node in tree_of(module).body
        }:
            return True
    return name.removeprefix("smara.") in {*class_names(), *smara.__all__}


@cache
def class_names() -> set[str]:
    return {
        node.name for path in modules() for node in nodes_of(path) if isinstance(node, ast.ClassDef)
    }


def test_the_page_of_the_architecture_names_every_room():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    rooms = [room for cell in cells for room in re.findall(r"`(\w+)`", cell)]
    assert sorted(rooms) == sorted(set(ROW_OF) - {"__main__"})


def names_on(line: str) -> tuple[list[str], list[str]]:
    """Return the paths, modules and classes that a line of the page names, and its rooms."""
    if line.startswith("| `"):
        _, room, content, _ = line.split("|")
        return re.findall(r"`(\w[\w/.]*)`", content), re.findall(r"`(\w+)`", room)
    names = re.findall(r"`(\w+(?:\.\w+)+)`", line) + re.findall(r"(?<![\w/.])\w+/[\w/.]*", line)
    for room, stages in re.findall(r"\b(\w+)/ +((?:\w+ → )+\w+)", line):
        names += [f"{room}/{stage}" for stage in stages.split(" → ")]
    return names, []


def test_the_page_of_the_architecture_names_nothing_that_is_not_there():
    """Neither paths nor modules nor classes; in a row of the table those of its rooms count too."""
    lines = ARCHITECTURE.read_text(encoding="utf-8").splitlines()
    named = {name: rooms for names, rooms in map(names_on, lines) for name in names}
    assert len(named) > 30
    assert [name for name, rooms in named.items() if not is_there(name, rooms)] == []


@pytest.mark.parametrize(
    "line",
    [
        "| `codegraph` | files, `query/` |",
        "the wall is `core.scope.walled`",
        "by being a `database.stores.ProjectStore`",
        "search/  gather → candidates → rank",
    ],
)
def test_the_check_of_the_page_sees_what_is_not_there(line):
    names, rooms = names_on(line)
    assert [name for name in names if not is_there(name, rooms)]


@cache
def module_graph() -> dict[str, set[str]]:
    """Return which module imports which, lazily and for type checking too."""
    known = {name_of(path) for path in modules()}

    def target(name: str) -> str:
        return name if name in known else name.rpartition(".")[0]

    return {
        name_of(path): {target(name) for _, name in imports(path)} - {name_of(path)}
        for path in modules()
    }


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        reached[start], waiting = set(), [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - reached[start]
            reached[start] |= new
            waiting.extend(new)
    groups = {
        tuple(sorted(other for other in nodes if start in reached.get(other, ())))
        for start, nodes in reached.items()
        if start in nodes
    }
    return sorted(map(list, groups))


def folder_graph(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the graph of one room at a time, with each of its folders as one node."""

    def node(name: str) -> str:
        parts = name.split(".")
        return ".".join(parts[:3]) if SOURCE.joinpath(*parts[1:3]).is_dir() else name

    folded: dict[str, set[str]] = {}
    for name, others in graph.items():
        inside = {node(other) for other in others if room_of(other) == room_of(name)}
        folded.setdefault(node(name), set()).update(inside - {node(name)})
    return folded


def test_no_modules_import_each_other():
    assert cycles(module_graph()) == []


def test_no_folders_of_a_room_import_each_other():
    assert cycles(folder_graph(module_graph())) == []


def test_nothing_is_imported_that_is_not_there():
    known = {name_of(path) for path in modules()}
    assert (
        broken_imports(
            lambda room: True, lambda room, name: name in known or name.rpartition(".")[0] in known
        )
        == []
    )


def is_models_of_a_room(name: str) -> bool:
    """Return True for ``smara.<room>.models`` and its names, not for the room ``smara.models``."""
    return name.split(".")[2:3] == ["models"]


def test_a_door_sees_memory_errors_config_core_and_models_alone():
    allowed = {
        "",
        "__version__",
        "surfaces",
        "memory",
        "aio",
        "doctor",
        "testing",
        "shapes",
        "texts",
        "adapters",
        "providers",
        "tools",
        "fleet",
        "errors",
        "config",
        "core",
        "environment",
        "telemetry",
    }
    assert (
        broken_imports(
            lambda room: room == "surfaces",
            lambda room, name: room_of(name) in allowed or is_models_of_a_room(name),
        )
        == []
    )


def found_in(paths: Iterable[Path], is_bad: Callable[[ast.AST], bool]) -> list[str]:
    """Where in the source a kind of node stands, as ``file:line``."""
    return [
        f"{path.name}:{node.lineno}" for path in paths for node in nodes_of(path) if is_bad(node)
    ]


def test_the_evaluations_use_only_the_public_package():
    def reaches_inside(node: ast.AST) -> bool:
        if isinstance(node, ast.ImportFrom):
            return (node.module or "").startswith("smara.")
        return isinstance(node, ast.Import) and any(
            alias.name.startswith("smara.") for alias in node.names
        )

    assert found_in(sorted(EVALS.rglob("*.py")), reaches_inside) == []


def test_only_config_reads_the_environment():
    named = {"environ", "environb", "getenv", "getenvb"}

    def reads(node: ast.AST) -> bool:
        if isinstance(node, ast.ImportFrom):
            return node.module == "os" and bool({alias.name for alias in node.names} & named)
        return isinstance(node, ast.Attribute) and node.attr in named

    # A hook must know where the spool lies before it can afford to load the settings.
    allowed = {SOURCE / "config.py", SOURCE / "environment.py"}
    assert found_in([path for path in modules() if path not in allowed], reads) == []


def test_nothing_is_printed_but_at_a_door():
    def prints(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        )

    assert (
        found_in([path for path in modules() if room_of(name_of(path)) != "surfaces"], prints) == []
    )


# Names whose value is put into SQL, and why that is safe. Values given by callers are always bound.
_SAFE_IN_SQL = {
    "marks": "question marks", "joined": "conditions made of constants",
    "where": "conditions made of constants",
    "condition": "a constant", "conditions": "made of constants", "column": "a constant",
    "schema": "matched against [a-z0-9_]",
    "number": "a migration's number", "suffix": "one of five constants",
    "name": "a constant", "DESC": "a constant", "ASC": "a constant",
    "rest": "conditions and order made of constants", "columns": "names of columns",
    "order": "a constant",
    "statement": "made of constants", "table": "one of a few constants",
    "index_table": "one of two constants", "index_name": "a constant and a number",
    "source": "a constant", "lock": "a constant",
    "in_project": "a constant", "_wall": "a constant with a number", "wall": "the same",
}  # fmt: skip
_SESSION_METHODS = {
    "run",
    "run_many",
    "all",
    "one",
    "execute",
    "executemany",
    "number()",
    "row",
    "ask",
}


def sql_pieces(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that are put into a text: of an f-string, of ``+`` and of ``%`` and
    ``.format``.
    """
    if isinstance(node, ast.JoinedStr):
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                yield value.value
    elif isinstance(node, ast.BinOp):
        yield from sql_pieces(node.left)
        yield from sql_pieces(node.right)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
    ):
        yield node
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("sql", "walled")
    ):
        for argument in node.args:
            yield from sql_pieces(argument)


def is_constant(piece: ast.expr) -> bool:
    """A constant, a module's ``_CAPITALS``, ``int(…)``, a choice between constants, or a name known
    to be safe.
    """
    if isinstance(piece, ast.Constant):
        return True
    if isinstance(piece, ast.IfExp):
        return is_constant(piece.body) and is_constant(piece.orelse)
    if isinstance(piece, ast.Call):
        name = (
            piece.func.attr
            if isinstance(piece.func, ast.Attribute)
            else getattr(piece.func, "id", "")
        )
        return (
            name in ("int", "max", "min", "len", "join_terms", "where_clause")
            or name in _SAFE_IN_SQL
        )
    name = piece.attr if isinstance(piece, ast.Attribute) else getattr(piece, "id", "")
    return name.lstrip("_").isupper() or name in _SAFE_IN_SQL or name.endswith("_ms")


def is_statement(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", "") or f"{getattr(node.func, 'id', '')}()"
    return name.lstrip("_") in _SESSION_METHODS


def test_sql_is_composed_from_constants_only():
    broken = [
        f"{name_of(path)}:{node.lineno} {ast.unparse(piece)}"
        for path in modules()
        for node in filter(is_statement, nodes_of(path))
        for argument in node.args[:2]  # a store's own ``_run`` takes the session first
        for piece in sql_pieces(argument)
        if not is_constant(piece)
    ]
    assert broken == []


# The house does not grow back. A new room gets a line of its own here when it comes, and so does
# the file that a later feature brings to an older room. The numbers are those that were reached;
# decision 19 says what they leave out.
MOST_FILES = 393
MOST_FUNCTIONS = 4_582
MOST_STATEMENTS = 50_137
MOST_OF_NEW_ROOMS: dict[str, tuple[int, int, int]] = {
    "actions/error_quote": (1, 9, 107),
    "actions/issues": (1, 18, 257),
    "adapters/host_specs": (15, 45, 426),
    "adapters/sdk": (18, 355, 2_758),
    "behavior/outcome": (1, 5, 78),
    "browse": (10, 69, 831),
    "commits": (9, 98, 1_061),
    "core/files": (1, 5, 41),
    "core/startup": (3, 24, 166),
    "database/fulltext_postgres": (1, 23, 130),
    "database/partitions": (1, 1, 29),
    "database/postgres": (1, 14, 118),
    "database/servers": (1, 23, 205),
    "database/vacuum": (1, 8, 86),
    "decisions": (15, 174, 1_829),
    "frameworks": (8, 107, 745),
    "feed": (3, 5, 79),
    "jobs": (2, 16, 136),
    "meaning/arithmetic": (1, 8, 81),
    "fleet": (5, 46, 517),
    "privacy": (37, 541, 6_027),
    "prompt": (7, 55, 667),
    "requests": (4, 20, 170),
    "search/amend": (1, 10, 131),
    "search/copies": (1, 4, 52),
    "search/languages": (1, 3, 31),
    "search/ranker": (1, 4, 52),
    "search/relevance": (1, 9, 126),
    "surfaces/cli/commands/commits": (1, 6, 71),
    "surfaces/cli/commands/decisions": (1, 6, 71),
    "surfaces/cli/commands/privacy": (1, 14, 147),
    "surfaces/cli/commands/serve": (1, 8, 64),
    "telemetry": (3, 10, 103),
    "surfaces/http": (18, 307, 3_065),
    "surfaces/panel": (12, 107, 1_004),
    "surfaces/terminal": (16, 161, 2_074),
}
"""Files, functions and statements of the rooms and files that came later."""
MOST_FILES_IN_A_FOLDER = 30
MOST_POSITIONAL_ARGUMENTS = 6
# The fourth argument by position is one that a reader has to count; these only go down.
MOST_CALLS_BY_POSITION = 548
MOST_PRIVATE_FUNCTIONS_USED_ONCE = 1_110


def sizes(paths: Iterable[Path]) -> tuple[int, int, int]:
    """Count the files, functions and statements of modules."""
    every = list(paths)
    nodes = [node for path in every for node in nodes_of(path)]
    functions = sum(isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) for each in nodes)
    return len(every), functions, sum(isinstance(each, ast.stmt) for each in nodes)


def test_the_house_stays_within_its_files_functions_and_statements():
    limits = MOST_OF_NEW_ROOMS | {"": (MOST_FILES, MOST_FUNCTIONS, MOST_STATEMENTS)}
    by_room: dict[str, list[Path]] = {}
    for path in modules():
        parts = name_of(path).split(".")[1:]
        rooms = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        room = next((each for each in rooms if each in MOST_OF_NEW_ROOMS), "")
        by_room.setdefault(room, []).append(path)
    counts = {room: sizes(paths) for room, paths in by_room.items()}
    beyond = {
        room: count
        for room, count in counts.items()
        if any(number > limit for number, limit in zip(count, limits[room], strict=True))
    }
    assert beyond == {}


# Cut at something else than a number of characters, each for its reason.
_CUTS_OTHERWISE = {
    "smara.adapters.instructions.markdown.cut": "as memories of earlier imports end",
    "smara.adapters.instructions.markdown.as_lead": "at a whole word",
    "smara.adapters.instructions.markdown.fenced": "at a whole line of code",
    "smara.observations.offline.notes.clip": "at the end of a clause",
    "smara.surfaces.cli.render.cut": "by columns of a terminal",
    "smara.tools.toolbox._clipped": "in the middle",
}


def is_cut(node: ast.AST) -> bool:
    """Return True for a text's beginning joined with an ellipsis."""
    if not isinstance(node, ast.BinOp | ast.JoinedStr):
        return False
    inner = list(ast.walk(node))
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and "…" in each.value
        for each in inner
    ) and any(
        isinstance(each, ast.Slice) and each.lower is None and each.upper is not None
        for each in inner
    )


def test_only_core_extract_shortens_a_text():
    cuts = {
        f"{name_of(path)}.{function.name}"
        for path in modules()
        for function in nodes_of(path)
        if isinstance(function, ast.FunctionDef) and any(map(is_cut, ast.walk(function)))
    }
    assert cuts - {"smara.core.extract.shorten"} == set(_CUTS_OTHERWISE)


def name_called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def definitions(*, with_words: bool) -> set[str]:
    """Return the names of our functions that take ``*words``, or of all others and of classes."""
    return {
        node.name
        for path in modules()
        for node in nodes_of(path)
        if (isinstance(node, ast.ClassDef) and not with_words)
        or (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and bool(node.args.vararg) is with_words
        )
    }


def test_no_call_passes_many_arguments_by_position():
    """A call of a function with ``*words`` lists things of one kind; it may list any number."""
    lists_words = definitions(with_words=True)

    def is_bad(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or len(node.args) <= MOST_POSITIONAL_ARGUMENTS:
            return False
        return name_called(node) not in lists_words

    assert found_in(modules(), is_bad) == []


def test_no_more_calls_pass_a_fourth_argument_by_position():
    """Calls of our own functions and classes, by name."""
    ours = definitions(with_words=False) - definitions(with_words=True)

    def is_long(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and len(node.args) > 3 and name_called(node) in ours

    assert len(found_in(modules(), is_long)) <= MOST_CALLS_BY_POSITION


def used_once(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the private functions of a module whose name is read at one place of it."""
    every = list(nodes)
    reads = Counter(
        getattr(node, "id", "") or getattr(node, "attr", "")
        for node in every
        if isinstance(node, ast.Attribute)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    )
    return [
        node.name
        for node in every
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("_")
        and not node.name.startswith("__")
        and not node.decorator_list
        and reads[node.name] == 1
    ]


def test_no_more_private_functions_are_used_once():
    names = [name for path in modules() for name in used_once(nodes_of(path))]
    assert len(names) <= MOST_PRIVATE_FUNCTIONS_USED_ONCE


def test_the_count_of_functions_used_once_sees_them():
    code = "def _a(): _b(); _b()\ndef _b(): _c\ndef _c(): ...\nx._a()"
    assert used_once(ast.walk(ast.parse(code))) == ["_a", "_c"]


# Statements on which the formatter is off and that are no tables; it only goes down.
MOST_SKIPPED_CODE = 9
_CODE = (
    ast.Call, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.IfExp, ast.Lambda,
    ast.BoolOp, ast.Compare,
)  # fmt: skip


def skipped_code(text: str) -> list[int]:
    """Return the lines at whose end the formatter is switched off for more than data.

    A table stands at the top of a module or class, or holds no more than values.
    """
    tree = ast.parse(text)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    at_top = {
        child
        for node in (tree, *statements)
        if isinstance(node, ast.Module | ast.ClassDef)
        for child in node.body
    }
    found = []
    for line, words in enumerate(text.splitlines(), 1):
        if "# fmt: " not in words:
            continue
        ended = [node for node in statements if node.end_lineno == line]
        around = [node for node in statements if node.lineno <= line <= (node.end_lineno or 0)]
        node = max(ended or around, key=lambda each: each.lineno)
        held = node.iter if isinstance(node, ast.For) else getattr(node, "value", None)
        is_table = isinstance(node, ast.Assign | ast.AnnAssign) and node in at_top
        if held is None or (not is_table and any(isinstance(e, _CODE) for e in ast.walk(held))):
            found.append(line)
    return found


def test_the_formatter_is_off_for_tables_only():
    found = [
        f"{name_of(path)}:{line}"
        for path in modules()
        for line in skipped_code(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= MOST_SKIPPED_CODE, found


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    return g(  1)  # fmt: skip",
        "def f():\n    a = [x for x in  y]  # fmt: skip",
        "for a in ((1,  g()),):  # fmt: skip\n    pass",
        "if a  == b:  # fmt: skip\n    pass",
    ],
)
def test_the_check_of_the_formatter_sees_code(code):
    assert skipped_code(code)


@pytest.mark.parametrize(
    "table",
    [
        "A = {1: g(2),\n 3: 4}  # fmt: skip",
        "def f():\n    a = (1,  2)  # fmt: skip",
        "for a in (1,  2):  # fmt: skip\n    pass",
    ],
)
def test_the_check_of_the_formatter_lets_tables_be(table):
    assert skipped_code(table) == []


def test_no_folder_is_a_flat_list_that_shows_nothing():
    folders = Counter(path.parent for path in modules())
    assert {str(f): n for f, n in folders.items() if n > MOST_FILES_IN_A_FOLDER} == {}


def test_no_file_has_outgrown_its_noun():
    sizes = {
        name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()
    }
    assert {name: lines for name, lines in sizes.items() if lines > MOST_LINES_OF_A_FILE} == {}


def test_no_function_both_decides_and_does():
    def is_long(node: ast.AST) -> bool:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        return is_function and (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION

    assert found_in(modules(), is_long) == []


def test_every_module_says_what_it_is_for():
    assert [name_of(path) for path in modules() if not ast.get_docstring(tree_of(path))] == []


# The checks above are proved by code that they must catch.


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("messages", "database", True), ("database", "messages", False), ("messages", "tasks",
        False),
        ("search", "messages", True),
        ("core", "errors", True), ("secrets", "models", False), ("memory", "search", True),
        ("search", "memory", False),
        ("surfaces", "adapters", True), ("adapters", "surfaces", False), ("aio", "memory", True),
    ],
)  # fmt: skip
def test_the_table_of_rows_says_what_the_style_guide_says(importer, imported, allowed):
    assert may_import(importer, imported) is allowed


def test_the_check_of_cycles_sees_one_over_three_modules():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("smara.tasks.models.Task", True),
        ("smara.models.store.CallStore", False),
        ("smara.tasks.models_cache.x", False),
    ],
)
def test_the_models_of_a_room_are_not_the_room_of_models(name, allowed):
    assert is_models_of_a_room(name) is allowed


@pytest.mark.parametrize(
    "bad",
    [
        'f"SELECT {query}"',
        '"SELECT " + f"{user}"',
        '"SELECT {}".format(x)',
        'self.sql(f"… {text}")',
    ],
)
def test_the_check_of_sql_sees_values_in_the_text(bad):
    pieces = list(sql_pieces(ast.parse(bad, mode="eval").body))
    assert [piece for piece in pieces if not is_constant(piece)]
