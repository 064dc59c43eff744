"""A small shop as a repository, for questions about code."""

from __future__ import annotations

import subprocess
from pathlib import Path

FILES = {
    "pyproject.toml": '[project]\nname = "shop"\n\n[project.scripts]\nshop = "shop.cli:main"\n',
    "README.md": "# Shop\n\nSells things to people who ask.\n",
    "shop/__init__.py": '"""A shop that sells things."""\n',
    "shop/store.py": (
        '"""Keeps what is for sale."""\n\n\nclass Store:\n    """All things and their '
        'prices."""\n\n'
        "    def get(self, name: str) -> int:\n        return self._find(name)\n\n"
        "    def _find(self, name: str) -> int:\n        return len(name)\n\n\n"
        "def open_store() -> Store:\n    return Store()\n"
    ),
    "shop/prices.py": (
        "from shop.store import Store, open_store\n\n\n"
        "def price(name: str) -> int:\n    store: Store = open_store()\n    return "
        "store.get(name) * 2\n\n\n"
        "def discount(name: str) -> int:\n    return price(name) // 2\n"
    ),
    "shop/cli.py": (
        "from shop.prices import discount\n\n\ndef main() -> int:\n    return "
        "discount('apple')\n\n\n"
        "def unused() -> None:\n    pass\n"
    ),
    "shop/loop_a.py": "from shop import loop_b\n\n\ndef a() -> None:\n    loop_b.b()\n",
    "shop/loop_b.py": "from shop import loop_a\n\n\ndef b() -> None:\n    loop_a.a()\n",
    "tests/test_prices.py": (
        "from shop.prices import discount\n\n\ndef test_discount_is_half():\n    assert "
        "discount('ab') == 2\n"
    ),
}


def write_shop(root: Path) -> Path:
    """The shop's files, with three commits behind them."""
    for path, text in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    for number in range(2):
        for name in ("store", "prices"):
            file = root / "shop" / f"{name}.py"
            file.write_text(f"{file.read_text()}\n\nVERSION_{number} = {number}\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "change")
    return root


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, check=True)
