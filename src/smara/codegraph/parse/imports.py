"""Read a file's imports from the text of its import statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from smara.codegraph.models import Definition, Import, Language
from smara.codegraph.parse.definitions import Scopes
from smara.codegraph.parse.source import SourceFile

LONGEST_STATEMENT = 65_536
_FROM = re.compile(r"from\s*(\.*)\s*([\w.]*)\s*import\b(.*)", re.S)
_SCRIPT_COMMENT = re.compile(r"//[^\n\"'`]*$|/\*.*?\*/", re.M | re.S)
_LAST_STRING = re.compile(r"""["'`]([^"'`]*)["'`][^"'`]*\Z""")
_CALLED = re.compile(r"import\s*\(")
_IMPORT_WORDS = re.compile(r"^import\b\s*(?:type\s+(?!from\b|,))?(?:typeof\s+)?")
_BRACES = re.compile(r"\{[^{}]*\}")
_REQUIRE = re.compile(
    r"(?:(?P<local>\{[^{}]*\}"
    r"|[\w$]+)\s*(?::[^=]*)?=\s*)?require\s*\(\s*[\"'`](?P<module>[^\"'`]+)[\"'`]\s*\)(?:\.(?P<member>[\w$]+))?"
)
_EXPORTS = re.compile(
    r"(?:module\.)?exports(?:\.(?P<name>[\w$]+))?\s*=\s*(?P<value>[\w$]+|\{.*\}"
    r"|require\s*\(\s*[\"'`][^\"'`]+[\"'`]\s*\))\s*\Z",
    re.S,
)
_SLASHES = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_RUST_HEAD = re.compile(r"^(?:pub(?:\s*\([^)]*\))?\s+)?")
_RUST_MARKS = re.compile(r"[{},]")
_GO_IMPORT = re.compile(r"""([\w.]+)?\s*["`]([^"`]*)["`]""")
_INCLUDE = re.compile(r'include(?:_next)?\s*(?:"([^"]*)"|(<[^>]*>))')

Found = tuple[str, str, str, int, bool]
"""Module, name, alias, level, and whether it is passed on."""


def read_imports(source: SourceFile, scopes: Scopes, definitions: list[Definition]) -> list[Import]:
    """Return one import for each name that is brought in, in the order in which they stand."""
    read = _READERS[source.language]
    imports: list[Import] = []
    for node in sorted(source.found.get("import", ()), key=lambda node: node.start_byte):
        start, end = node.start_byte, min(node.end_byte, node.start_byte + LONGEST_STATEMENT)
        text = source.text(start, end)
        scope = scopes.at(start)
        while scope >= 0 and definitions[scope].kind == "constant":
            scope = definitions[scope].parent
        line = source.line(start)
        for module, name, alias, level, is_export in read(text):
            imports.append(
                Import(
                    module, name, alias, level=level, line=line, scope=scope, is_export=is_export
                )
            )
    for node in source.found.get("exported", ()):
        name = source.text(node.start_byte, node.end_byte)
        imports.append(
            Import(
                "",
                name,
                "default",
                level=0,
                line=source.line(node.start_byte),
                scope=-1,
                is_export=True,
            )
        )
    return imports


def _aliases(text: str, word: str = "as") -> Iterator[tuple[str, str]]:
    """Yield name and alias of a list such as ``a, b as c``."""
    for part in text.split(","):
        words = part.split()
        if len(words) >= 3 and words[-2] == word:
            yield " ".join(words[:-2]), words[-1]
        elif words:
            yield " ".join(words), ""


def _python(text: str) -> Iterator[Found]:
    if "#" in text or "\\" in text:
        text = re.sub(r"#[^\n]*|\\", " ", text)
    found = _FROM.match(text)
    if found is None:
        for module, alias in _aliases(text.removeprefix("import")):
            yield module.replace(" ", ""), "", alias, 0, False
        return
    for name, alias in _aliases(found[3].strip(" \t\r\n()")):
        yield found[2], name, alias, len(found[1]), False


def _script(text: str) -> Iterator[Found]:
    """Read JavaScript's and TypeScript's imports, exports from elsewhere, ``require`` and
    ``module.exports``.
    """
    text = _SCRIPT_COMMENT.sub(" ", text) if "//" in text or "/*" in text else text
    if text.startswith("import"):
        yield from _script_import(text)
    elif text.startswith("export") and not text.startswith("exports"):
        yield from _script_export(text)
    elif found := _EXPORTS.match(text):
        yield from _script_exports(found)
    elif found := _REQUIRE.match(text):
        local, module, member = (
            (found["local"] or "").strip(),
            found["module"],
            found["member"] or "",
        )
        if local.startswith("{"):
            for name, alias in _aliases(local.strip("{} ").replace(":", " as ").partition("=")[0]):
                yield module, name, alias, 0, False
        else:
            yield module, member, "" if local == member else local, 0, False


def _script_import(text: str) -> Iterator[Found]:
    module = _LAST_STRING.search(text)
    if module is None:
        return
    if _CALLED.match(text):
        yield module[1], "", "", 0, False
        return
    if "require" in text and (found := _REQUIRE.match(_IMPORT_WORDS.sub("", text))):
        yield module[1], "", found["local"] or "", 0, False
        return
    head = _IMPORT_WORDS.sub("", text[: module.start()]).strip()
    head = head.removesuffix("from").rstrip()
    if not head:
        yield module[1], "", "", 0, False
    for part in _BRACES.findall(head):
        for name, alias in _aliases(part.strip("{}")):
            yield module[1], name.removeprefix("type "), alias, 0, False
    for part in _BRACES.sub("", head).split(","):
        words = part.split()
        if words[:1] == ["*"]:
            yield module[1], "*", words[-1], 0, False
        elif words:
            yield module[1], "default", words[-1], 0, False


def _script_export(text: str) -> Iterator[Found]:
    text = text.removeprefix("export").strip()
    module = _LAST_STRING.search(text)
    source = module[1] if module and "from" in text else ""
    text = text.removeprefix("type ").strip()
    if text.startswith("*"):
        words = text.split()
        yield source, "*", words[2] if words[1:2] == ["as"] else "", 0, True
    elif text.startswith("{"):
        for name, alias in _aliases(text.partition("}")[0].strip("{ ")):
            yield source, name.removeprefix("type "), alias, 0, True
    elif text.startswith("default"):
        yield "", text.removeprefix("default").strip(" ;\n"), "default", 0, True


def _script_exports(found: re.Match[str]) -> Iterator[Found]:
    value = found["value"].strip()
    if value.startswith("{"):
        for part in value.strip("{}").split(","):
            name, _, other = part.partition(":")
            name, other = name.strip(), other.strip() or name.strip()
            if name.isidentifier() and other.isidentifier():
                yield "", other, "" if name == other else name, 0, True
    elif value.startswith("require") and (module := _LAST_STRING.search(value)):
        yield module[1], "", found["name"] or "default", 0, True
    elif value.isidentifier():
        alias = found["name"] or "default"
        yield "", value, "" if alias == value else alias, 0, True


def _rust(text: str) -> Iterator[Found]:
    """Read ``use``, ``mod x;`` and ``extern crate``; braces may hold braces."""
    is_export = text.startswith("pub")
    text = _RUST_HEAD.sub("", _SLASHES.sub(" ", text)).strip().rstrip(";").strip()
    if text.startswith("mod "):
        name = text.removeprefix("mod ").strip()
        yield f"self::{name}", "", name, 0, is_export
        return
    if text.startswith("extern crate "):
        for module, alias in _aliases(text.removeprefix("extern crate ")):
            yield module, "", alias, 0, is_export
        return
    for path in _unfold(text.removeprefix("use ").strip().removeprefix("::")):
        named, _, alias = path.partition(" as ")
        module, _, name = named.strip().rpartition("::")
        if name == "self":
            module, _, name = module.rpartition("::")
        if name:
            yield module, name, alias.strip(), 0, is_export


def _unfold(text: str) -> Iterator[str]:
    """Yield each path of a tree of braces: ``a::{b, c::{d}}`` is ``a::b`` and ``a::c::d``."""
    prefixes: list[str] = [""]
    start, prefix = 0, ""
    for found in _RUST_MARKS.finditer(text):
        part = " ".join(text[start : found.start()].split())
        start = found.end()
        if found[0] == "{":
            prefix = prefixes[-1] + part
            prefixes.append(prefix)
            continue
        if part:
            yield prefixes[-1] + part
        if found[0] == "}" and len(prefixes) > 1:
            prefixes.pop()
    rest = " ".join(text[start:].split())
    if rest:
        yield prefixes[-1] + rest


def _go(text: str) -> Iterator[Found]:
    found = _GO_IMPORT.match(text)
    if found:
        alias = found[1] or ""
        yield found[2], "*" if alias == "." else "", "" if alias == "." else alias, 0, False


def _java(text: str) -> Iterator[Found]:
    words = text.removeprefix("import").strip().rstrip(";").replace("static ", "", 1)
    module, _, name = "".join(words.split()).rpartition(".")
    yield module, name, "", 0, False


def _c(text: str) -> Iterator[Found]:
    if text.startswith("using"):
        words = text.removeprefix("using").strip().rstrip(";").split()
        if words[:1] == ["namespace"] and len(words) > 1:
            yield words[-1], "*", "", 0, False
        elif words:
            module, _, name = words[-1].rpartition("::")
            yield module, name, "", 0, False
        return
    found = _INCLUDE.search(text)
    if found:
        yield found[1] or found[2], "", "", 0, False


_READERS: dict[Language, Callable[[str], Iterator[Found]]] = {
    "python": _python, "typescript": _script, "tsx": _script, "javascript": _script, "rust": _rust,
    "go": _go,
    "java": _java, "c": _c, "cpp": _c,
}  # fmt: skip
