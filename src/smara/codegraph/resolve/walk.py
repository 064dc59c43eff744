"""One file's references, followed to definitions: local names first, then the file's, then what
lies beyond it.
"""

from __future__ import annotations

from smara.codegraph.models import FileFacts, Import
from smara.codegraph.resolve.outline import Outline
from smara.codegraph.resolve.rules import HOLDERS, Rules, plain_type, steps
from smara.codegraph.resolve.targets import Target

UNSAYABLE = "?"
"""The receiver of a name when it is no plain chain of names."""


class Walk:
    """The names in sight inside one file. ``target`` is asked for each reference, the same ones
    from a memo.
    """

    def __init__(self, rules: Rules, facts: FileFacts, outline: Outline) -> None:
        self.rules = rules
        self.outline = outline
        self._locals: dict[int, dict[str, str | Import]] = {}
        self._roots: dict[tuple[int, str], Target | None] = {}
        self._values: dict[tuple[int, str], Target | None] = {}
        self._classes: dict[int, Target | None] = {}
        kinds = outline.kinds
        for name, type_, scope in facts.bindings:
            if scope >= 0 and name != "()" and kinds[scope] not in HOLDERS:
                names = self._locals.setdefault(scope, {})
                # The first type that is told holds; a name that is also bound to something unknown
                # keeps it.
                if type_ or name not in names:
                    names[name] = names.get(name) or type_
        for each in facts.imports:
            if each.scope >= 0:
                bound = rules.bound_name(each)
                if bound:
                    self._locals.setdefault(each.scope, {}).setdefault(bound, each)

    def target(self, scope: int, receiver: str, name: str) -> Target | None:
        """What a name with its receiver means in a scope: a definition, an instance, a file, or
        ``None``.
        """
        if not receiver:
            return self.root(scope, name)
        holder = self.value(scope, receiver)
        return self.rules.attribute(holder, name) if holder is not None else None

    def value(self, scope: int, text: str) -> Target | None:
        """What stands before a dot."""
        key = (scope, text)
        if key in self._values:
            return self._values[key]
        self._values[key] = None
        found = self._values[key] = self._find_value(scope, text)
        return found

    def _find_value(self, scope: int, text: str) -> Target | None:
        if UNSAYABLE in text:
            return None
        rules = self.rules
        first, *rest = (text,) if text.isidentifier() else steps(text)
        if first in rules.upper_names:
            return self._upper(scope, rest)
        if first in rules.own_names:
            own = self.enclosing_class(scope)
            if own is not None:
                return rules.follow(Target(own.where, own.place, is_instance=True), False, rest)
        found = self.root(scope, first.removesuffix("()"))
        if found is not None and not first.endswith("()"):
            found = rules.value(found)
        return rules.follow(found, first.endswith("()"), rest)

    def _upper(self, scope: int, rest: list[str]) -> Target | None:
        own = self.enclosing_class(scope)
        if own is None or not isinstance(own.where, Outline):
            return None
        for base in self.rules.bases(own.where, own.place):
            found = self.rules.follow(Target(base.where, base.place, is_instance=True), False, rest)
            if found is not None:
                return found
        return None

    def root(self, scope: int, name: str) -> Target | None:
        """What a bare name means in a scope."""
        key = (scope, name)
        if key in self._roots:
            return self._roots[key]
        self._roots[key] = None
        found = self._roots[key] = self._find_root(scope, name)
        return found

    def _find_root(self, scope: int, name: str) -> Target | None:
        outline, rules = self.outline, self.rules
        if name in rules.own_names:
            return self.enclosing_class(scope) or rules.name_in(outline, name)
        place = scope
        while place >= 0:
            names = self._locals.get(place)
            if names is not None and name in names:
                return self._local(name, names[name], place)
            if rules.has_open_classes and outline.kinds[place] in HOLDERS:
                found = rules.member(outline, place, name)
                if found is not None:
                    return found
            elif outline.kinds[place] != "class" or place == scope:
                inside = outline.members.get(place)
                if inside is not None and name in inside:
                    return Target(outline, inside[name])
            place = outline.parents[place]
        if rules.has_open_classes:
            found = self._of_scattered_class(scope, name)
            if found is not None:
                return found
        found = rules.name_in(outline, name)
        return (
            self._answering(name)
            if found is None and scope >= 0 and outline.kinds[scope] == "route"
            else found
        )

    def _answering(self, name: str) -> Target | None:
        """What answers a route that is made inside a function: the only definition of that name in
        the file.
        """
        outline = self.outline
        places = [
            place
            for place, each in enumerate(outline.names)
            if each == name and outline.kinds[place] != "route"
        ]
        return Target(outline, places[0]) if len(places) == 1 else None

    def _of_scattered_class(self, scope: int, name: str) -> Target | None:
        own = self.enclosing_class(scope)
        if own is None or not isinstance(own.where, Outline):
            return None
        return self.rules.member(own.where, own.place, name)

    def _local(self, name: str, bound: str | Import, scope: int) -> Target | None:
        """A local name's meaning; one that is bound to something unknown hides what the file calls
        so.
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

    def enclosing_class(self, scope: int) -> Target | None:
        """The class whose method a scope is, or stands in."""
        if scope not in self._classes:
            self._classes[scope] = self._find_class(scope)
        return self._classes[scope]

    def _find_class(self, scope: int) -> Target | None:
        outline = self.outline
        place = scope
        while place >= 0:
            if outline.kinds[place] == "class":
                return Target(outline, place)
            parent = outline.parents[place]
            before = outline.qualnames[place].rpartition(".")[0]
            # A method that stands outside its class says its class by its qualified name only.
            if (
                before
                and outline.kinds[place] == "method"
                and (parent < 0 or outline.qualnames[parent] != before)
            ):
                found = self.rules.class_named(outline, before)
                return found if found is not None and self.rules.holds_members(found) else None
            place = parent
        return None

    def is_foreign(self, scope: int, receiver: str) -> bool:
        """Whether what stands before the dot is known, or is imported from outside the tree:
        nothing to guess about.
        """
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
            bound = self._locals.get(place, {}).get(first)
            if bound is not None:
                # A type that is named and not found belongs to another library.
                return bound != ""
            place = self.outline.parents[place]
        return first in self.rules.imports_of(self.outline)[0]
