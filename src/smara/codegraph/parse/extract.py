"""Parse one file once and extract its facts with one query."""

from __future__ import annotations

from smara.codegraph.language import languages
from smara.codegraph.models import Definition, FileFacts, Import, Language
from smara.codegraph.parse.definitions import DefinitionReader, Scopes
from smara.codegraph.parse.grammar import captures, parse
from smara.codegraph.parse.references import hidden_names, read_bindings, read_references
from smara.codegraph.parse.routes import read_routes, route_pattern
from smara.codegraph.parse.source import SourceFile, readable

LONGEST_STATEMENT = 65_536


def extract(path: str, data: bytes, language: Language) -> FileFacts:
    """Return what a file says by itself, as much of it as can be read.

    Any bytes are taken: what is no proper code yields fewer facts and ``has_errors``, never an
    error. Offsets are those of ``readable(data)``.
    """
    text = readable(data)
    spec = languages()[language]
    root, is_whole = parse(language, spec.prepare(text) if spec.prepare else text)
    source = SourceFile.read(path, spec, text, found=captures(language, root))
    reader = DefinitionReader(source)
    reader.read()
    imports = read_imports(source, reader.scopes, reader.definitions)
    references = read_references(source, reader.scopes, reader.definitions, imports=imports)
    bindings = read_bindings(source, reader.scopes, reader.definitions)
    bindings += hidden_names(spec, reader.definitions, imports, bindings=bindings)
    routes, answers = read_routes(reader, root, route_pattern(spec, text))
    return FileFacts(
        path,
        language,
        _count_lines(text),
        definitions=(*reader.definitions, *routes),
        imports=tuple(imports),
        references=(*references, *answers),
        bindings=tuple(bindings),
        package=_package(source),
        has_errors=root.has_error or not is_whole,
        doc=reader.doc,
    )


def read_imports(source: SourceFile, scopes: Scopes, definitions: list[Definition]) -> list[Import]:
    """Return one import for each name that is brought in, in the order in which they stand."""
    imports: list[Import] = []
    for node in sorted(source.found.get("import", ()), key=lambda node: node.start_byte):
        start, end = node.start_byte, min(node.end_byte, node.start_byte + LONGEST_STATEMENT)
        text = source.text(start, end)
        scope = scopes.at(start)
        while scope >= 0 and definitions[scope].kind == "constant":
            scope = definitions[scope].parent
        line = source.line(start)
        for module, name, alias, level, is_export in source.spec.read_imports(text):
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


def _count_lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def _package(source: SourceFile) -> str:
    """Return what the file says it belongs to."""
    spans = source.spans("package")
    return source.text(*spans[0]) if spans else ""
