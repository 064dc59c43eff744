"""List the licenses of what an installation brings: ``python -m tests.licenses``.

Packages, and the files of others that the wheel itself holds for the panel.

Exits with 1 if a package names none, or one that asks for more than notice and attribution of
those who hand on a program that uses it.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path

from tests import vendor_files
from tests.test_install import installed

ROOT = Path(__file__).parents[1]
FREE = (
    "apache", "mit", "bsd", "isc", "mpl", "mozilla", "python software foundation", "psf", "zlib",
    "unlicense", "public domain", "osi approved", "any-osi", "0bsd",
)  # fmt: skip
_PREFIX = "License :: OSI Approved :: "


def license_of(found: PackageMetadata) -> str:
    """Return the license that a package states: an expression, else classifiers, else a text."""
    if expression := found.get("License-Expression"):
        return str(expression)
    named = [each for each in found.get_all("Classifier") or () if each.startswith("License ::")]
    if named:
        return ", ".join(each.removeprefix(_PREFIX) for each in named)
    return str(found.get("License") or "").strip().split("\n", 1)[0][:60]


def is_free(stated: str) -> bool:
    """Return True if a license asks for notice and attribution at most."""
    text = stated.lower()
    return any(name in text for name in FREE) and "gpl" not in text


def main() -> int:
    """Print every package with its license."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    trouble = 0
    for name in sorted(installed(project["dependencies"])):
        stated = license_of(metadata(name))
        if not is_free(stated):
            trouble = 1
        print(f"{name:<28}{stated or 'none stated'}{'' if is_free(stated) else '   <- look'}")  # noqa: T201
    for row in vendor_files.rows():
        trouble |= not is_free(row["license"])
        origin = f"{row['package']} {row['version']}, in the panel"
        print(f"{row['name']:<28}{row['license']} ({origin})")  # noqa: T201
    return trouble


if __name__ == "__main__":
    sys.exit(main())
