"""The file-system tests of Anthropic's memory tool."""

from __future__ import annotations

from tests.conformance.suite import Source, Suite

_FILE = "tests/lib/tools/memory_tools/test_filesystem.py"
_CLASS = "TestBetaLocalFilesystemMemoryTool"
_ON_DISK = "puts a file on the disk and reads it through the tool; our files are in the store"
_LINKS = "makes a symbolic link; there are none in the store"
_MODES = "looks at the mode bits of folders; the store is one private file, or a server"
_CASES = {
    "test_mkdir_parents_not_world_writable_under_permissive_umask": _MODES,
    "test_view_preserves_crlf_line_endings": _ON_DISK,
    "test_str_replace_preserves_crlf_line_endings": _ON_DISK,
    "test_insert_preserves_crlf_line_endings": _ON_DISK,
    "test_symlink_validation_reject_symlink_pointing_outside_memories": _LINKS,
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside": _LINKS,
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside": _LINKS,
}
SUITES = (
    Suite(
        "Anthropic memory tool",
        package="anthropic",
        version="2.8.0",
        covers="`smara.adapters.sdk.anthropic_memory`",
        source=Source(
            sha256="d34e389ba0544cd64e033eb7475f46cc1ac6f2a388cdcd472b33ad4ac29ef40c",
            files=(f"{_FILE}::{_CLASS}",),
            plugin="conformance_anthropic_memory",
            folders=("tests/lib/tools/memory_tools",),
        ),
        not_applicable={f"{_FILE}::{_CLASS}::{case}": why for case, why in _CASES.items()},
        remark="Where a test looks at the disk, the stand-in writes our files there first; texts, "
        "errors and contents are compared. `tests/contract/test_anthropic_memory.py` covers the "
        "cases below in our way (line ends, paths), and the async tool, which runs the same "
        "commands in threads.",
    ),
)
