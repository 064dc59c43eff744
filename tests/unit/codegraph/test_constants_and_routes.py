"""Who mentions a constant, wherever it stands in an expression, and what answers a route."""

from __future__ import annotations

import pytest

from tests.unit.codegraph.projects import Tree

CONSTANTS = {
    "python": (
        {
            "limits.py": "LIMIT = 3\n",
            "cart.py": "import limits\nfrom limits import LIMIT\n\ndef full(n):\n    return n > "
                       "LIMIT\n\n"
            "def left(n):\n    return limits.LIMIT - n\n\ndef told():\n    return f'{LIMIT}'\n\n"
            "def not_meant(x):\n    # LIMIT\n    x(LIMIT=1)\n    return 'LIMIT'\n",
        },
        {"cart.py:full", "cart.py:left", "cart.py:told"}, "limits.py:LIMIT",
    ),
    "a field of the class": (
        {"pool.py": "class Pool:\n    SIZE = 3\n\n    def is_full(self, n):\n        return n >= "
                    "self.SIZE\n"},
        {"pool.py:Pool.is_full"}, "pool.py:Pool.SIZE",
    ),
    "typescript": (
        {
            "limits.ts": "export const LIMIT = 3;\n",
            "cart.ts": 'import { LIMIT } from "./limits";\nexport function full(n: number) { '
                       'return LIMIT < n; }\n',
        },
        {"cart.ts:full"}, "limits.ts:LIMIT",
    ),
    "rust": (
        {
            "Cargo.toml": '[package]\nname = "shop"\n',
            "src/lib.rs": "pub mod cart;\npub const LIMIT: usize = 3;\n",
            "src/cart.rs": "use super::LIMIT;\npub fn full(n: usize) -> bool { n > LIMIT }\n",
        },
        {"src/cart.rs:full"}, "src/lib.rs:LIMIT",
    ),
    "go": (
        {
            "go.mod": "module example.com/shop\n",
            "limits/limits.go": "package limits\n\nconst Most = 3\n",
            "cart/cart.go": 'package cart\n\nimport "example.com/shop/limits"\n\n'
            "func Full(n int) bool { return n > limits.Most }\n",
        },
        {"cart/cart.go:Full"}, "limits/limits.go:Most",
    ),
    "java": (
        {
            "shop/Limits.java": "package shop;\nclass Limits { static final int LIMIT = 3; }\n",
            "shop/Cart.java": "package shop;\nimport static shop.Limits.LIMIT;\n"
            "class Cart { boolean full(int n) { return n > LIMIT; } }\n",
        },
        {"shop/Cart.java:Cart.full"}, "shop/Limits.java:Limits.LIMIT",
    ),
    "c": (
        {
            "limits.h": "#define LIMIT 3\n",
            "cart.c": '#include "limits.h"\nint full(int n) { return n > LIMIT; }\n',
        },
        {"cart.c:full"}, "limits.h:LIMIT",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
def test_whoever_mentions_a_constant_is_joined_to_it(name: str) -> None:
    files, users, constant = CONSTANTS[name]
    found = {
        edge.split(" ")[1]
        for edge in Tree(files).edges()
        if edge.startswith("references ") and constant in edge
    }
    assert found == users


ROUTES = {
    "java": (
        {
            "shop/Cart.java": "package shop;\n@RestController\nclass Cart {\n"
            '  @GetMapping("/cart")\n  void show() {}\n}\n'
        },
        "calls shop/Cart.java:GET /cart -> shop/Cart.java:Cart.show",
    ),
    "a method": (
        {"api.py": 'class Api:\n    @router.get("/cart")\n    def show(self): ...\n'},
        "calls api.py:GET /cart -> api.py:Api.show",
    ),
    "inside a function": (
        {"app.py": 'def create():\n    @app.get("/cart")\n    def show(): ...\n    return app\n'},
        "calls app.py:GET /cart -> app.py:create.show",
    ),
    "a function without a name": (
        {
            "app.js": 'function open(id) {}\napp.get("/cart", (req, res) => { '
            "res.send(open(req.id)); });\n"
        },
        "calls app.js:GET /cart -> app.js:open",
    ),
    "a function without a name in Go": (
        {
            "main.go": "package main\n\nfunc open() {}\n\n"
            'func main() { http.HandleFunc("/cart", func(w W, r *R) { open() }) }\n'
        },
        "calls main.go:/cart -> main.go:open",
    ),
}


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_is_joined_to_what_answers_it(name: str) -> None:
    files, expected = ROUTES[name]
    assert expected in Tree(files).edges()


def test_a_method_is_found_in_the_source_of_its_header_in_another_folder() -> None:
    """1. The header's own body comes before the base's. 2. A variable made with arguments has its
    type.
    """
    found = Tree(
        {
            "include/shop/store.hpp": "namespace shop {\nclass Base { public: virtual void "
            "put(int x) = 0; };\n"
            "class Store : public Base { public: explicit Store(int n); void put(int x) override; "
            "};\n}\n",
            "src/store.cpp": '#include "shop/store.hpp"\nnamespace shop {\nvoid Store::put(int x) '
            "{}\n}\n",
            "src/main.cpp": '#include "shop/store.hpp"\nint main(int count) { shop::Store '
            "store(count); store.put(1); }\n",
        }
    ).edges()
    assert "calls src/main.cpp:main -> src/store.cpp:shop.Store.put" in found
    assert not any("Base.put" in edge for edge in found)
