"""Follow names to definitions by the rules that all languages share.

`LanguageRules` knows the names of a module, the members of a class and the types of values; each
language extends it. `ReferenceWalk` follows one file's references: local names first, then the
file's, then other files'. Every walk is bounded, so a circle of re-exports ends in "not found".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, ClassVar, TypeVar, cast

from smara.codegraph.models import FileFacts, Import
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    Package,
    ProjectFiles,
    Symbol,
    SymbolTable,
)
from smara.core.startup.regex import regex

DEEPEST = 12
"""Steps of types, base classes and dotted names that are followed at most."""
DEEPEST_QUESTION = 60
"""Questions that one question leads to, one inside the other, at most."""
HOLDERS = frozenset({"class", "module"})
"""Kinds of definitions whose names are reached with a dot."""

_UNASKED = object()
_OPEN = object()

_MARKS = regex(r"[&*]|\b(?:const|mut|dyn|struct|class|impl|typename|final|readonly)\b\s*|'\w+\s+")
_POINTERS = frozenset({"Box", "Rc", "Arc", "unique_ptr", "shared_ptr", "scoped_refptr", "RefPtr"})
steps = regex(r"\.|::|->").split
"""Split a dotted name: ``a::b.c()`` gives ``a``, ``b`` and ``c()``."""

T = TypeVar("T")
Find = TypeVar("Find", bound="Callable[..., NameTarget | None]")


def once(find: Find) -> Find:
    """Answer a question about an outline once.

    Circles of re-exports, types and base classes end in ``None``. What was found inside a circle
    depends on where it was entered, so it is dropped after the outermost question: the same file
    gives the same edges whatever was resolved before it.
    """
    name = find.__name__

    @wraps(find)
    def ask(self: LanguageRules, outline: FileOutline, *rest: Any) -> Any:
        memo, key = self._memo, (name, outline.path, *rest)
        if (answer := memo.get(key, _UNASKED)) is not _UNASKED and answer is not _OPEN:
            return answer
        if answer is _OPEN or self._depth >= DEEPEST_QUESTION:
            self._is_doubtful = True
            return None
        memo[key] = _OPEN
        self._depth += 1
        answer = memo[key] = find(self, outline, *rest)
        self._depth -= 1
        if self._is_doubtful:
            self._doubtful.append(key)
            if not self._depth:
                for each in self._doubtful:
                    memo.pop(each, None)
                self._doubtful.clear()
                self._is_doubtful = False
                memo[key] = answer
        return answer

    return cast(Find, ask)


class LanguageRules(ABC):
    """The name resolution of one language.

    A subclass says how modules are found, and what else is in sight.
    """

    own_names: ClassVar[frozenset[str]] = frozenset({"self", "this", "cls", "Self"})
    """What an instance, or its class, is called inside its methods."""
    upper_names: ClassVar[frozenset[str]] = frozenset({"super()", "super"})
    has_open_classes: ClassVar[bool] = False
    """Whether a bare name inside a class may be one of its members, as in Java and C++."""
    has_scattered_members: ClassVar[bool] = False
    """Whether a file may give a class members outside its braces: ``impl``, ``View.prototype``."""

    def __init__(self, table: SymbolTable, project: ProjectFiles) -> None:
        self.table = table
        self.project = project
        self._bound: dict[FileOutline, tuple[dict[str, Import], list[Import]]] = {}
        """Of each outline; it follows from the outline alone, so that it is kept from one file to
        the next.
        """
        self._memo: dict[Hashable, object] = {}
        """What was learned from outlines, dropped before the next file."""
        self._bases: dict[tuple[str, int], list[NameTarget]] = {}
        self._depth = 0
        self._is_doubtful = False
        self._doubtful: list[Hashable] = []

    def forget(self) -> None:
        """Drop what was learned from other files' outlines.

        What paths and manifests say is kept.
        """
        self._memo.clear()
        self._bases.clear()

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of outlines before, or make it."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast(T, self._memo[key])

    @abstractmethod
    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        """Return the file or package an import names, or ``None``."""

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        """Return the files that an import leads to."""
        module = self.find_module(outline, imported)
        return [module.where] if module and isinstance(module.where, FileOutline) else []

    def submodule(self, outline: FileOutline, name: str) -> NameTarget | None:
        """Return a module below a file's own, where a language has such."""
        return None

    def beyond_file(self, outline: FileOutline, name: str) -> NameTarget | None:
        """Resolve a bare name outside the file: same package or crate."""
        return None

    def package_member(self, package: Package, name: str) -> NameTarget | None:
        """Return a name of a package that is a folder."""
        return None

    def scattered_member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        """Return a class's member defined outside its braces."""
        qualname = f"{outline.qualnames[place]}.{name}" if self.has_scattered_members else ""
        member = outline.by_qualname.get(qualname)
        return NameTarget(outline, member) if member is not None else None

    def qualified(self, walk: ReferenceWalk, scope: int, receiver: str, name: str) -> str | None:
        """Return the qualified name to look up in the whole tree.

        ``None`` in languages where a name that was not brought in is not in sight.
        """
        return None

    def choose(self, outline: FileOutline, symbols: list[Symbol]) -> Symbol | None:
        """Return which of the definitions of a qualified name a file means.

        The only one, or none.
        """
        return symbols[0] if len(symbols) == 1 else None

    def meant(self, target: NameTarget) -> NameTarget:
        """Return what a target stands for when it is called or extended.

        A module may stand for what it exports.
        """
        return target

    def file(self, path: str) -> NameTarget | None:
        """Return a file as a target, when it is indexed code."""
        outline = self.table.outline(path)
        return NameTarget(outline, -1) if outline is not None else None

    def bound_name(self, imported: Import) -> str:
        """Return what an import is called in its file.

        Empty for one that binds nothing.
        """
        return imported.alias or imported.name

    def imports_of(self, outline: FileOutline) -> tuple[dict[str, Import], list[Import]]:
        """Return a file's imports by bound name, and the star imports."""
        if outline not in self._bound:
            stars = [each for each in outline.imports if each.name == "*" and not each.alias]
            others = [each for each in outline.imports if each.name != "*" or each.alias]
            # The first import of a name holds.
            named = {name: each for each in others[::-1] if (name := self.bound_name(each))}
            self._bound[outline] = (named, stars)
        return self._bound[outline]

    @once
    def name_in(self, outline: FileOutline, name: str) -> NameTarget | None:
        """Return what a file calls ``name``.

        Its own, what it imports, what it passes on.
        """
        place = outline.top.get(name)
        imported = self.imports_of(outline)[0].get(name)
        own = NameTarget(outline, place) if place is not None else None
        # ``const x = require("y")`` is a variable and an import, of which the import says more.
        if own is not None and (imported is None or outline.kinds[own.place] != "constant"):
            return own
        if imported is not None:
            # ``from . import x`` in an ``__init__`` file means the module below it.
            return self.imported(outline, imported) or own or self.submodule(outline, name)
        if type_ := outline.fields.get(-1, {}).get(name):
            return self.instance(outline, type_)
        return (
            self.from_stars(outline, name)
            or self.submodule(outline, name)
            or self.beyond_file(outline, name)
        )

    def from_stars(self, outline: FileOutline, name: str) -> NameTarget | None:
        """Return a name that a star import, or an include, brings in."""
        modules = (self.find_module(outline, star) for star in self.imports_of(outline)[1])
        targets = (self.attribute(module, name) for module in modules if module is not None)
        return next(filter(None, targets), None)

    @once
    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        """Return what an import binds: a module, or a name of one."""
        module = self.find_module(outline, imported)
        if module is not None and imported.name not in ("", "*"):
            return self.attribute(module, imported.name)
        return module

    def attribute(self, target: NameTarget, name: str, depth: int = 0) -> NameTarget | None:
        """Return ``target.name``."""
        where, place, _ = target
        if isinstance(where, Package):
            return self.package_member(where, name)
        if place < 0:
            return self.name_in(where, name)
        if where.kinds[place] in HOLDERS:
            return self.member(where, place, name)
        if (scattered := self.scattered_member(where, place, name)) is not None:
            return scattered
        value = self.value(target, depth + 1) if depth < DEEPEST else None
        return self.attribute(value, name, depth + 1) if value is not None else None

    @once
    def member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        """Return a member of a class, its own or one it inherits.

        Or the type of a field, as an instance.
        """
        if (own := outline.members.get(place, {}).get(name)) is not None:
            return NameTarget(outline, own)
        if (scattered := self.scattered_member(outline, place, name)) is not None:
            return scattered
        if type_ := outline.fields.get(place, {}).get(f"self.{name}"):
            return self.instance(outline, type_)
        for base in self.bases(outline, place):
            if isinstance(base.where, FileOutline) and (
                inherited := self.member(base.where, base.place, name)
            ):
                return inherited
        return None

    def bases(self, outline: FileOutline, place: int) -> list[NameTarget]:
        """Return the classes that a class extends, those that can be found."""
        key = (outline.path, place)
        if (found := self._bases.get(key)) is None:
            self._bases[key] = []
            texts = map(plain_type, outline.bases.get(place, ()))
            named = [self.dotted(outline, text) for text in texts]
            meant = [self.meant(each) for each in named if each is not None]
            found = [each for each in meant if is_class(each) and each[:2] != (outline, place)]
            del self._bases[key]
            if not self._is_doubtful:
                self._bases[key] = found
        return found

    def class_named(self, outline: FileOutline, qualname: str) -> NameTarget | None:
        """Return the class named before a method outside its braces."""
        target = self.dotted(outline, qualname)
        return target if target is not None and is_class(target) else None

    def dotted(self, outline: FileOutline, text: str, depth: int = 0) -> NameTarget | None:
        """Return what a dotted name means at the top of a file."""
        if depth > DEEPEST:
            return None
        first, *rest = steps(text)
        start = self.name_in(outline, first.removesuffix("()"))
        return self.follow(start, first.endswith("()"), rest, depth=depth)

    def follow(
        self, target: NameTarget | None, is_called: bool, rest: list[str], depth: int = 0
    ) -> NameTarget | None:
        """Follow a dotted name from its first step to its last."""
        if is_called and target is not None:
            target = self.result(target, depth + 1)
        for step in rest[:DEEPEST]:
            if target is None:
                return None
            target = self.attribute(target, step.removesuffix("()"), depth + 1)
            if step.endswith("()") and target is not None:
                target = self.result(target, depth + 1)
        return target

    def instance(self, outline: FileOutline, type_: str, depth: int = 0) -> NameTarget | None:
        """Return a value of the type that a file writes so.

        A function's name means what it returns.
        """
        if depth > DEEPEST:
            return None
        return self.made_by(self.dotted(outline, plain_type(type_), depth + 1), depth)

    def made_by(self, target: NameTarget | None, depth: int = 0) -> NameTarget | None:
        """Return an instance of a class, or the result of a function.

        An instance is itself.
        """
        return target if target is None or target.is_instance else self.result(target, depth + 1)

    def result(self, target: NameTarget, depth: int = 0) -> NameTarget | None:
        """Return what calling ``target`` gives, when it is plain to see."""
        where, place, is_instance = target
        if is_instance or isinstance(where, Package) or place < 0 or depth > DEEPEST:
            return None
        if where.kinds[place] in HOLDERS:
            return NameTarget(where, place, is_instance=True)
        return self._returned(where, place, depth)

    def _returned(self, where: FileOutline, place: int, depth: int) -> NameTarget | None:
        if not (returned := where.fields.get(place, {}).get("()")):
            return None
        parent = where.parents[place]
        if returned in self.own_names and parent >= 0:
            return NameTarget(where, parent, is_instance=True)
        return self.instance(where, returned, depth + 1)

    def value(self, target: NameTarget, depth: int = 0) -> NameTarget | None:
        """Return what stands in a variable, a field or behind a property.

        A class or a module is itself.
        """
        where, place, is_instance = target
        if is_instance or isinstance(where, Package) or place < 0 or where.kinds[place] in HOLDERS:
            return target
        if depth > DEEPEST:
            return None
        parent, name = where.parents[place], where.names[place]
        types = where.fields.get(parent, {})
        type_ = types.get(name) or types.get(f"self.{name}")
        if type_:
            return self.instance(where, type_, depth + 1)
        return self._returned(where, place, depth) if where.kinds[place] == "method" else None


@lru_cache(maxsize=65_536)
def plain_type(text: str) -> str:
    """Return a type without its arguments and marks.

    Of one that only points to another, the other.

    ``&mut Foo<T>`` is ``Foo``, ``std::unique_ptr<Foo>`` and ``Box<dyn Foo>`` are ``Foo``.
    """
    if text.isidentifier():
        return text
    plain = _MARKS.sub("", text).partition("+")[0].strip()
    outer, opened, rest = plain.partition("<")
    if not opened:
        return plain.partition("[")[0]
    if outer.strip().rpartition(":")[2] in _POINTERS:
        return plain_type(rest.rpartition(">")[0].partition(",")[0])
    return outer.strip()


def is_class(target: NameTarget) -> bool:
    return (
        isinstance(target.where, FileOutline)
        and target.place >= 0
        and target.where.kinds[target.place] in HOLDERS
    )


def guarded(find: Find) -> Find:
    """Answer a question about a scope once.

    While it is open, the answer is ``None``.
    """
    name = find.__name__

    @wraps(find)
    def ask(self: ReferenceWalk, scope: int, *rest: str) -> NameTarget | None:
        memo, key = self._memo, (name, scope, *rest)
        if key not in memo:
            memo[key] = None
            memo[key] = find(self, scope, *rest)
        return memo[key]

    return cast(Find, ask)


UNSAYABLE = "?"
"""The receiver of a name when it is no plain chain of names."""


class ReferenceWalk:
    """The names in scope inside one file, memoized."""

    def __init__(self, rules: LanguageRules, facts: FileFacts, outline: FileOutline) -> None:
        self.rules = rules
        self.outline = outline
        self._locals: dict[int, dict[str, str | Import]] = {}
        self._memo: dict[Hashable, NameTarget | None] = {}
        kinds = outline.kinds
        for name, type_, scope in facts.bindings:
            if scope >= 0 and name != "()" and kinds[scope] not in HOLDERS:
                names = self._locals.setdefault(scope, {})
                # The first type that is told holds; a name that is also bound to something unknown
                # keeps it.
                if type_ or name not in names:
                    names[name] = names.get(name) or type_
        for each in facts.imports:
            if each.scope >= 0 and (bound := rules.bound_name(each)):
                self._locals.setdefault(each.scope, {}).setdefault(bound, each)

    def target(self, scope: int, receiver: str, name: str) -> NameTarget | None:
        """Return what a name with its receiver means in a scope.

        A definition, an instance, a file, or ``None``.
        """
        if not receiver:
            return self.root(scope, name)
        holder = self.value(scope, receiver)
        return self.rules.attribute(holder, name) if holder is not None else None

    @guarded
    def value(self, scope: int, text: str) -> NameTarget | None:
        """Return what stands before a dot."""
        if UNSAYABLE in text:
            return None
        rules = self.rules
        first, *rest = (text,) if text.isidentifier() else steps(text)
        is_upper = first in rules.upper_names
        own = self.enclosing_class(scope) if is_upper or first in rules.own_names else None
        if is_upper:
            if own is not None and isinstance(own.where, FileOutline):
                for base in rules.bases(own.where, own.place):
                    instance = NameTarget(base.where, base.place, is_instance=True)
                    if (found := rules.follow(instance, False, rest)) is not None:
                        return found
            return None
        if own is not None:
            return rules.follow(NameTarget(own.where, own.place, is_instance=True), False, rest)
        found = self.root(scope, first.removesuffix("()"))
        if found is not None and not first.endswith("()"):
            found = rules.value(found)
        return rules.follow(found, first.endswith("()"), rest)

    @guarded
    def root(self, scope: int, name: str) -> NameTarget | None:
        """Return what a bare name means in a scope."""
        outline, rules = self.outline, self.rules
        if name in rules.own_names:
            return self.enclosing_class(scope) or rules.name_in(outline, name)
        place = scope
        while place >= 0:
            if (names := self._locals.get(place)) is not None and name in names:
                return self._local(name, names[name], place)
            if rules.has_open_classes and outline.kinds[place] in HOLDERS:
                if (found := rules.member(outline, place, name)) is not None:
                    return found
            elif (
                (outline.kinds[place] != "class" or place == scope)
                and (inside := outline.members.get(place)) is not None
                and name in inside
            ):
                return NameTarget(outline, inside[name])
            place = outline.parents[place]
        own = self.enclosing_class(scope) if rules.has_open_classes else None
        if (
            own is not None
            and isinstance(own.where, FileOutline)
            and (found := rules.member(own.where, own.place, name))
        ):
            return found
        found = rules.name_in(outline, name)
        if found is None and scope >= 0 and outline.kinds[scope] == "route":
            # A route made inside a function is answered by the only definition of that name.
            places = [
                place
                for place, each in enumerate(outline.names)
                if each == name and outline.kinds[place] != "route"
            ]
            return NameTarget(outline, places[0]) if len(places) == 1 else None
        return found

    def _local(self, name: str, bound: str | Import, scope: int) -> NameTarget | None:
        """Return a local name's meaning.

        One that is bound to something unknown hides what the file calls so.
        """
        if isinstance(bound, Import):
            return self.rules.imported(self.outline, bound)
        if not bound:
            return None
        first, *rest = steps(plain_type(bound))
        if first in self.rules.own_names:
            return self.rules.made_by(self.value(scope, bound))
        made_by = first.removesuffix("()")
        # ``let builder = builder(x)``: the name on the right is not yet the one on the left.
        start = self.root(self.outline.parents[scope] if made_by == name else scope, made_by)
        return self.rules.made_by(self.rules.follow(start, first.endswith("()"), rest))

    @guarded
    def enclosing_class(self, scope: int) -> NameTarget | None:
        """Return the class whose method a scope is, or stands in."""
        outline = self.outline
        place = scope
        while place >= 0:
            if outline.kinds[place] == "class":
                return NameTarget(outline, place)
            parent = outline.parents[place]
            before = outline.qualnames[place].rpartition(".")[0]
            # A method that stands outside its class says its class by its qualified name only.
            if (
                before
                and outline.kinds[place] == "method"
                and (parent < 0 or outline.qualnames[parent] != before)
            ):
                return self.rules.class_named(outline, before)
            place = parent
        return None

    def is_foreign(self, scope: int, receiver: str) -> bool:
        """Return True if the receiver is known or imported from outside."""
        if UNSAYABLE in receiver:
            return False
        if self.value(scope, receiver) is not None:
            return True
        first = steps(receiver)[0]
        if first in self.rules.upper_names:
            return True
        first = first.removesuffix("()")
        place = scope
        while place >= 0:
            if (bound := self._locals.get(place, {}).get(first)) is not None:
                # A type that is named and not found belongs to another library.
                return bound != ""
            place = self.outline.parents[place]
        return first in self.rules.imports_of(self.outline)[0]
