"""What `pip install smara` brings."""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
MOST_PACKAGES = 61
MOST_MEGABYTES = 240


def installed(requirements: list[str]) -> dict[str, int]:
    """Return the bytes of every package that these require, without extras, by name."""
    sizes: dict[str, int] = {}
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        requirement = waiting.pop()
        name = requirement.name.lower().replace("_", "-")
        if name in sizes or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found = distribution(name)
        files = [Path(str(each.locate())) for each in found.files or ()]
        sizes[name] = sum(each.stat().st_size for each in files if each.exists())
        waiting += [Requirement(each) for each in found.requires or ()]
    return sizes


def test_an_installation_grows_no_further():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sizes = installed(project["dependencies"])
    assert len(sizes) <= MOST_PACKAGES
    assert sum(sizes.values()) <= MOST_MEGABYTES * 1_000_000


def test_a_framework_that_holds_mcp_at_its_first_version_can_stand_beside():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {each.name: each.specifier for each in map(Requirement, project["dependencies"])}
    assert found["mcp"].contains("1.30")  # CrewAI asks for mcp>=1.30,<2
    assert not found["mcp"].contains("3.0")


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("MIT OR Apache-2.0", True),
        ("BSD License", True),
        ("GNU General Public License v3 (GPLv3)", False),
        ("LGPL-3.0", False),
        ("Proprietary", False),
        ("", False),
    ],
)
def test_a_license_that_asks_for_more_than_notice_is_seen(stated, expected):
    from tests.licenses import is_free

    assert is_free(stated) is expected
