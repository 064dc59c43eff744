"""Define the code's values: facts of a file, nodes, edges, reports.

A tree is one checked-out folder: a repository's main folder or one of its worktrees. A file's
facts are read from its text alone. Nodes and edges are those facts after they were joined to the
rest of the tree. Paths are relative to the root, lines count from one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from smara.core.startup.record import dataclass, field

Language = str
"""The name of a `LanguageSpec`: ``python``, ``tsx`` …"""
FileKind = Literal["code", "prose", "data"]
NodeKind = Literal["file", "module", "class", "function", "method", "constant", "test", "route"]
EdgeKind = Literal["contains", "imports", "calls", "inherits", "references", "tests"]
EdgeSource = Literal["ast", "scip", "guess"]
"""Read from the syntax; told by a compiler's index; joined by a name that only one place has."""
LinkKind = Literal["belongs_to", "flows_to", "is_entrypoint_for", "documents", "applies_pattern"]
ChunkKind = Literal["function", "class", "module", "prose"]
ReferenceKind = Literal["calls", "inherits", "references"]
SkipReason = Literal[
    "ignored",
    "secret",
    "outside",
    "not_a_file",
    "too_big",
    "binary",
    "minified",
    "generated",
    "unreadable",
    "changing",
    "too_many",
    "unknown",
]

DEPTH, LIMIT = 3, 200
"""How far, and to how many, a question follows dependents by default."""

NODE_KINDS: tuple[NodeKind, ...] = get_args(NodeKind)
EDGE_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)
EDGE_SOURCES: tuple[EdgeSource, ...] = get_args(EdgeSource)


class Definition(NamedTuple):
    """A definition in a file.

    ``parent`` is its place in the same list, -1 for the file itself.
    """

    kind: NodeKind
    name: str
    qualname: str
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    parent: int
    signature: str
    doc: str
    body_hash: bytes
    """Of what it says without its own name, comments and layout, so that a moved or renamed body is
    known again.
    """
    sketch: bytes = b""
    """A small fingerprint of its tokens, from which two bodies say how alike they are."""


class Import(NamedTuple):
    """One name that a file brings in.

    ``module`` is as written (``a.b``, ``./x``, ``crate::a``, ``"fmt"``), ``name`` what is taken of
    it (empty: the module itself, ``*``: everything), ``alias`` what it is called here. ``level``
    counts Python's leading dots. ``scope`` is the place of the definition it stands in, -1 for the
    file. ``is_export`` marks what is passed on (``export … from``, ``pub use``).
    """

    module: str
    name: str
    alias: str
    level: int
    line: int
    scope: int = -1
    is_export: bool = False


class Reference(NamedTuple):
    """A name that is used.

    ``receiver`` is what stands before it (``self``, ``os.path``, ``x``), or empty.

    ``scope`` is the place of the definition it stands in, -1 for the file.
    """

    kind: ReferenceKind
    name: str
    receiver: str
    line: int
    scope: int


class Binding(NamedTuple):
    """A variable, parameter or field with an evident type.

    For example ``x = Client()`` or ``x: Client``.
    """

    name: str
    type: str
    scope: int


class FileFacts(NamedTuple):
    """All that one file says by itself."""

    path: str
    language: Language
    lines: int
    definitions: tuple[Definition, ...]
    imports: tuple[Import, ...]
    references: tuple[Reference, ...]
    bindings: tuple[Binding, ...] = ()
    package: str = ""
    """What the file says it belongs to: Java's and Go's ``package``."""
    has_errors: bool = False


class CodeChunk(NamedTuple):
    """A piece of a file that is searched as one.

    ``definition`` is a place in the facts, -1 for none.
    """

    kind: ChunkKind
    name: str
    first_line: int
    last_line: int
    definition: int
    prefix: str
    text: str


class NewEdge(NamedTuple):
    """An edge out of a file.

    Between places in the file's facts and nodes by number.

    ``scope`` is the place of the definition it starts at, -1 for the file's own node.
    """

    scope: int
    to_no: int
    kind: EdgeKind
    line: int
    confidence: float = 1.0
    source: EdgeSource = "ast"


@dataclass(frozen=True, slots=True)
class Node:
    """A file or something in it."""

    no: int
    kind: NodeKind
    name: str
    qualname: str
    path: str
    first_line: int
    last_line: int
    parent_no: int | None = None
    signature: str = ""
    doc: str = ""
    body_hash: bytes = b""
    is_stale: bool = False

    @property
    def label(self) -> str:
        """Return how people and agents name it: ``src/auth.py:Session.login``."""
        return self.path if self.kind == "file" else f"{self.path}:{self.qualname}"


@dataclass(frozen=True, slots=True)
class Edge:
    """One node has to do with another."""

    from_no: int
    to_no: int
    kind: EdgeKind
    line: int
    confidence: float = 1.0
    source: EdgeSource = "ast"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of one run of the indexer."""

    files: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    nodes: int = 0
    edges: int = 0
    chunks: int = 0
    seconds: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class TreeStatus:
    """The status of a tree's index."""

    root: str
    state: Literal["none", "building", "ready"]
    branch: str | None = None
    commit: str | None = None
    files: int = 0
    nodes: int = 0
    edges: int = 0
    chunks: int = 0
    stale_files: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)
    indexed_at: int | None = None
    revision: int = 0

    @property
    def note(self) -> str | None:
        """Return what a caller has to know of the answer, or ``None``."""
        if self.state == "none":
            return "the code is not indexed yet; `smara code index` does it"
        if self.state == "building":
            return "the code is being indexed: answers may be incomplete"
        if self.stale_files:
            return (
                f"{self.stale_files} changed files are being read again: answers may be a "
                "moment behind"
            )
        return None


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a path: over which edge, and where it leads."""

    node: Node
    kind: EdgeKind
    line: int
    confidence: float
    source: EdgeSource


@dataclass(frozen=True, slots=True)
class Reached:
    """A node reached by a walk, with the path to it.

    ``weight`` is 1 for what is certainly touched and smaller with every uncertain or loose step.
    The path begins with the node's own edge and ends at the target.
    """

    node: Node
    depth: int
    weight: float
    path: tuple[Hop, ...]
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class ImpactWalk:
    """The dependents or dependencies of some code.

    The nearest first.
    """

    targets: tuple[Node, ...]
    depth: int
    reached: tuple[Reached, ...]
    total: int
    """How many there are; ``reached`` may show fewer."""
    by_depth: dict[int, int] = field(default_factory=dict)
    files: int = 0
    tests: int = 0
    overrides: tuple[Node, ...] = ()
    """The methods of base classes that a method stands for: who calls these may come to it."""
    overridden_by: tuple[Node, ...] = ()
    """The methods that stand for it in classes below."""

    @property
    def is_cut(self) -> bool:
        return self.total > len(self.reached)


@dataclass(frozen=True, slots=True)
class ImportCycle:
    """Files that import each other in a circle.

    ``path`` ends where it begins; ``lines`` are the imports in it.
    """

    path: tuple[str, ...]
    lines: tuple[int, ...]
    files: tuple[str, ...]
    """Every file that is caught in it, of which the path shows one way around."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """An entry point of a program, its reason, and its reach."""

    node: Node
    why: str
    reaches: int


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A file that much depends on and that changes often.

    Both from 0 to 1, against the others.
    """

    path: str
    score: float
    centrality: float
    churn: float
    dependents: int
    commits: int
    lines: int


@dataclass(frozen=True, slots=True)
class CoChange:
    """A file that changes together with another. ``confidence``.

    Of the other's commits, the share that touch both.
    """

    path: str
    together: int
    confidence: float
    last_at: int


@dataclass(frozen=True, slots=True)
class CodeMap:
    """The most important names of a tree, within a token budget."""

    text: str
    tokens: int
    budget: int
    files: int
    symbols: int
    total_files: int
    total_symbols: int


@dataclass(frozen=True, slots=True)
class CodeModule:
    """A folder of code.

    What it is for, what matters in it, and whom it has to do with.
    """

    path: str
    purpose: str
    source: Literal["structure", "model"]
    files: int
    symbols: int
    central: tuple[Node, ...] = ()
    uses: tuple[tuple[str, int], ...] = ()
    used_by: tuple[tuple[str, int], ...] = ()
    entry_points: tuple[str, ...] = ()
    flows: tuple[tuple[str, ...], ...] = ()
    is_stale: bool = False
    """Whether the code changed since a model described it."""


@dataclass(frozen=True, slots=True)
class SymbolCard:
    """All there is to say of one node."""

    node: Node
    members: tuple[Node, ...] = ()
    callers: tuple[Reached, ...] = ()
    calls: tuple[Reached, ...] = ()
    tests: tuple[Reached, ...] = ()
    dependents: int = 0
    changes_with: tuple[CoChange, ...] = ()
    commits: int = 0


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A file that a text is likely about, and where in it.

    ``score`` is the share of the text, by what its words tell, that this piece holds; a few words
    are all of a long text. It means the same in every answer.

    ``name`` and the lines are of the piece of the file that says most of what the text says.
    """

    path: str
    score: float
    why: tuple[str, ...] = ()
    name: str = ""
    first_line: int = 1
    last_line: int = 1
    is_stale: bool = False

    @property
    def citation(self) -> str:
        """Return where to look: ``src/auth.py:12-40``."""
        return f"{self.path}:{self.first_line}-{self.last_line}"


@dataclass(frozen=True, slots=True)
class CodePiece:
    """A piece of a file as it was indexed.

    What a hit of a search cites.
    """

    path: str
    kind: ChunkKind
    name: str
    first_line: int
    last_line: int
    text: str
    is_stale: bool = False
