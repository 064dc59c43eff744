"""Which file systems are reached over a network."""

from __future__ import annotations

import pytest

from smara.database.filesystem import filesystem_type, from_mac, is_network_type, network_filesystem

MOUNTINFO = """22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw - nfs4 nas:/home rw
31 30 0:41 / /home/ann/local\\040disk rw - xfs /dev/sdb rw
32 22 0:42 / /mnt/remote rw - fuse.sshfs ann@host:/ rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/smara.db", "ext4"),
        ("/home/ann/smara.db", "nfs4"),
        ("/homes/smara.db", "ext4"),
        ("/home/ann/local disk/smara.db", "xfs"),
        ("/mnt/remote/smara.db", "fuse.sshfs"),
    ],
)
def test_the_deepest_mount_that_holds_a_path_decides(path, kind):
    assert filesystem_type(path, MOUNTINFO) == kind


def test_network_types_are_told_from_local_ones():
    assert all(
        map(is_network_type, ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone"))
    )
    assert not any(
        map(is_network_type, ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", "fuse.ntfs-3g"))
    )


def test_the_folder_of_the_tests_is_local(tmp_path):
    assert network_filesystem(tmp_path / "smara.db") is None


def test_the_mounts_of_macos_are_understood():
    table = from_mac(
        "/dev/disk3s1 on / (apfs, sealed)\n//ann@nas/home on /Volumes/My home (smbfs, nodev)"
    )
    assert filesystem_type("/Volumes/My home/smara.db", table) == "smbfs"
    assert filesystem_type("/Users/ann/smara.db", table) == "apfs"
