"""The files in which agents are told what to do, by host."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

# Host, and the path below the folder that the file speaks of. A ``**`` stands for any folders, also
# for none.
PATTERNS: tuple[tuple[str, str], ...] = (
    ("agents", "AGENTS.md"), ("agents", "AGENT.md"), ("agents", "AGENTS.override.md"),
    ("claude", "CLAUDE.md"), ("claude", "CLAUDE.local.md"), ("claude", ".claude/CLAUDE.md"),
    ("claude", ".claude/rules/**/*.md"),
    ("cursor", ".cursorrules"), ("cursor", ".cursor/rules/**/*.mdc"), ("cursor",
    ".cursor/rules/**/*.md"),
    ("gemini", "GEMINI.md"), ("gemini", ".gemini/GEMINI.md"), ("qwen", "QWEN.md"), ("warp",
    "WARP.md"),
    ("copilot", ".github/copilot-instructions.md"), ("copilot",
    ".github/instructions/**/*.instructions.md"),
    ("windsurf", ".windsurfrules"), ("windsurf", ".windsurf/rules/**/*.md"),
    ("cline", ".clinerules"), ("cline", ".clinerules/**/*.md"), ("cline", ".clinerules/**/*.txt"),
    ("roo", ".roorules"), ("roo", ".roo/rules*/**/*.md"), ("roo", ".roo/rules*/**/*.txt"),
    ("goose", ".goosehints"), ("aider", "CONVENTIONS.md"),
    ("continue", ".continuerules"), ("continue", ".continue/rules/**/*.md"),
    ("junie", ".junie/guidelines.md"), ("junie", ".junie/AGENTS.md"),
    ("amazonq", ".amazonq/rules/**/*.md"), ("kiro", ".kiro/steering/**/*.md"),
    ("augment", ".augment-guidelines"), ("augment", ".augment/rules/**/*.md"),
    ("trae", ".trae/rules/**/*.md"), ("zed", ".rules"), ("firebase", ".idx/airules.md"),
)  # fmt: skip
_NOTES = ("memory.md", "skill.md")
"""What hosts write and read by themselves, wherever it lies."""
_FOLDERS = (".claude/", ".codex/", ".gemini/")
"""Where hosts keep nothing else."""


def host_of(path: str) -> tuple[str, str] | None:
    """Whose instruction file a path is, and the folder it speaks of; ``None`` for any other file.

    >>> host_of("packages/app/CLAUDE.md")
    ('claude', 'packages/app')
    """
    parts = path.split("/")
    for depth in range(len(parts)):
        below = "/".join(parts[depth:])
        for host, pattern in PATTERNS:
            if fnmatchcase(below, pattern.replace("/**/", "/*")):
                return host, "/".join(parts[:depth])
    return None


@lru_cache(maxsize=1_024)
def is_instruction_file(path: str) -> bool:
    """Whether a path, in whatever letters and slashes, is a file in which agents are told what to
    do.

    >>> is_instruction_file("packages/app/CLAUDE.md"), is_instruction_file("src/claude.py")
    (True, False)
    """
    name = path.replace("\\", "/").casefold()
    if name.rpartition("/")[2] in _NOTES or any(f"/{folder}" in f"/{name}" for folder in _FOLDERS):
        return True
    parts = name.split("/")
    below = ["/".join(parts[depth:]) for depth in range(len(parts))]
    return any(fnmatchcase(each, pattern) for each in below for pattern in _FOLDED)


_FOLDED = tuple(pattern.replace("/**/", "/*").casefold() for _, pattern in PATTERNS)
