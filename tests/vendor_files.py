"""Compare the files of others in the panel with their table: ``python -m tests.vendor_files``.

The table (``static/vendor/files.toml``) has the version, the SHA-256 and the license of each. With
``--fetch`` every file is taken again from its package, by version, and compared before it is
written; a new version is put into the table first, with the hash that is then printed.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[1] / "src" / "smara" / "surfaces" / "panel" / "static" / "vendor"
TABLE = "files.toml"


def rows() -> list[dict[str, Any]]:
    """Return the table, a row for each file."""
    table: list[dict[str, Any]] = tomllib.loads(PLACE.joinpath(TABLE).read_text("utf-8"))["file"]
    return table


def differences(place: Path = PLACE) -> list[str]:
    """Return what in a folder is not as the table says."""
    table = rows()
    wrong = [
        f"{row['name']}: its SHA-256 is {found}"
        for row in table
        if (found := digest(place.joinpath(row["name"]).read_bytes())) != row["sha256"]
    ]
    listed = {TABLE} | {name for row in table for name in (row["name"], *row["notices"])}
    there = {each.name for each in place.iterdir()}
    return wrong + [
        f"{name}: in the folder or in the table alone" for name in sorted(listed ^ there)
    ]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(row: dict[str, Any]) -> bytes:
    """Return a file out of its published package."""
    with tempfile.TemporaryDirectory() as folder:
        wish = f"{row['package']}@{row['version']}"
        command = ["npm", "pack", "--silent", wish]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        archive = Path(folder, done.stdout.split()[-1]).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        member = opened.extractfile(f"package/{row['path']}")
        assert member is not None
        return member.read()


def main() -> int:
    """Print what differs; return 1 if something does."""
    if "--fetch" in sys.argv:
        for row in rows():
            content = fetch(row)
            if digest(content) == row["sha256"]:
                PLACE.joinpath(row["name"]).write_bytes(content)
            else:
                print(f"{row['name']}: published with SHA-256 {digest(content)}")  # noqa: T201
    wrong = differences()
    print("\n".join(wrong or [f"{len(rows())} files are as they were published."]))  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
