"""CrewAI's tests of its memory, which stores in LanceDB."""

from __future__ import annotations

from tests.conformance.suite import Environment, Source, Suite

VERSION = "1.15.30"
_LABELS = (
    "asks for the scope `/share\\` by the beginning of a label; scopes are whole labels here, so"
    " that `/team1` does not read `/team10`"
)
SUITES = (
    Suite(
        "CrewAI memory",
        package="crewai",
        version=VERSION,
        covers="`smara.adapters.sdk.crewai.SmaraStorage`",
        source=Source(
            sha256="17de4b7cc3f2c207033e9f82be4f7d749e540b0e415a3885a8d97bb43a90a318",
            files=tuple(
                f"tests/memory/test_{name}.py"
                for name in (
                    "unified_memory",
                    "memory_root_scope",
                    "dimension_mismatch",
                    "lancedb_update",
                    "lancedb_filter_escaping",
                )
            ),
            plugin="conformance_crewai",
            folders=("tests/memory",),
        ),
        environment=Environment(
            requirements=(f"crewai=={VERSION}",),
            tests=(
                "tests/contract/test_crewai.py",
                "tests/test_docs.py::test_snippet_runs_as_it_stands[docs/guide/crewai.md 1]",
                "tests/test_examples.py::test_example_runs_offline_and_prints_what_it_says"
                "[crewai_memory]",
            ),
        ),
        not_applicable={
            "tests/memory/test_lancedb_filter_escaping.py"
            "::test_percent_underscore_and_backslash_in_scope_names_match_literally": _LABELS,
        },
        remark="In an environment of its own: CrewAI excludes newer releases of packages that"
        " others need. Many of the cases look at CrewAI's own classes, and come to a storage little"
        " or not at all; `tests/contract/test_crewai.py` covers ours on both databases.",
    ),
)
