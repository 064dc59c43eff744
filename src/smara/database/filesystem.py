"""Detect network file systems, on which SQLite's locks are unreliable."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NETWORK_TYPES = frozenset(
    ["nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "ncpfs", "ceph", "glusterfs",
        "lustre", "gpfs",
     "9p", "drvfs", "vboxsf", "prl_fs", "davfs", "afpfs", "webdav", "beegfs", "ocfs2"]
)  # fmt: skip
_NETWORK_FUSE = (
    "sshfs",
    "rclone",
    "s3fs",
    "gcsfuse",
    "goofys",
    "davfs",
    "smbnetfs",
    "curlftpfs",
    "glusterfs",
    "ceph",
)


def network_filesystem(path: str | os.PathLike[str]) -> str | None:
    """Return the network file system type of ``path``, or ``None``."""
    if sys.platform == "win32":
        return _windows_network_drive(str(path))
    kind = filesystem_type(os.path.realpath(path), _mounts())
    return kind if kind and is_network_type(kind) else None


def _mounts() -> str:
    """Return the system's mount table; empty if it cannot be read."""
    if sys.platform == "darwin":
        import subprocess

        try:
            done = subprocess.run(
                ["/sbin/mount"], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return from_mac(done.stdout)
    for mounts in ("/proc/self/mountinfo", "/proc/mounts"):
        try:
            return Path(mounts).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return ""


def is_network_type(kind: str) -> bool:
    """Return True if a file system type goes over a network.

    Such as ``nfs4`` or ``fuse.sshfs``.
    """
    if kind.startswith("fuse."):
        return any(name in kind for name in _NETWORK_FUSE)
    return kind in _NETWORK_TYPES


def filesystem_type(real_path: str, mountinfo: str) -> str | None:
    """Return the type of the deepest mount holding ``real_path``.

    From the text of a mount table.
    """
    best, found = -1, None
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if " - " in line:
            mount, kind = fields[4], line.split(" - ", 1)[1].split(" ")[0]
        elif len(fields) >= 3:
            mount, kind = fields[1], fields[2]
        else:
            continue
        mount = mount.replace("\\040", " ")
        inside = real_path == mount or real_path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= best:
            best, found = len(mount), kind
    return found


def from_mac(mounts: str) -> str:
    """macOS's list of mounts in the form of ``/proc/mounts``."""
    lines = []
    for line in mounts.splitlines():
        _, found, rest = line.partition(" on ")
        folder, options_found, options = rest.rpartition(" (")
        if found and options_found:
            lines.append(
                f"x {folder.replace(' ', chr(92) + '040')} {options.split(',')[0].rstrip(')')}"
            )
    return "\n".join(lines)


def _windows_network_drive(path: str) -> str | None:
    if path.startswith("\\\\"):
        return "UNC path"
    try:
        import ctypes

        root = os.path.splitdrive(os.path.abspath(path))[0] + "\\"
        is_remote = ctypes.windll.kernel32.GetDriveTypeW(root) == 4  # type: ignore[attr-defined]  # Windows only
    except (OSError, AttributeError):
        return None
    return "network drive" if is_remote else None
