//! File systems: made, filled, unmounted, mounted again, trimmed, checked.

use nandscape_lab_guest::Guest;

use super::super::{run, script};

/// ext4 and XFS keep their files.
pub(in super::super) fn file_systems_keep_their_files(guest: &mut Guest) {
    // The file /d/15 is removed, and the blocks that it had are trimmed.
    fill(guest, "mkfs.ext4 -q -F");
    let block = run(guest, "debugfs -R 'bmap /d/15 0' /dev/nvme0n1 2>/dev/null");
    let is_zero = first_bytes_are_zero(&block);
    assert_eq!(run(guest, "dumpe2fs -h /dev/nvme0n1 2>/dev/null | grep -c '^Block size: *4096'"), "1");
    assert_eq!(guest.attempt(&is_zero).unwrap().status, 1, "block {block} has the file's first bytes");
    trim(guest, "e2fsck -fn");
    run(guest, &is_zero);

    fill(guest, "mkfs.xfs -q -f");
    run(guest, "mount /dev/nvme0n1 /mnt");
    // The first extent, in blocks of 4,096 bytes: "0: 0.. 366: FIRST.. LAST: ...".
    let block = run(guest, "filefrag -b4096 -v /mnt/d/15 | awk '$1 == \"0:\" { print $4 + 0 }'");
    run(guest, "umount /mnt");
    let is_zero = first_bytes_are_zero(&block);
    assert_eq!(guest.attempt(&is_zero).unwrap().status, 1, "block {block} has the file's first bytes");
    trim(guest, "xfs_repair -n");
    run(guest, &is_zero);
}

/// A command that succeeds if a block of 4,096 bytes of the drive is zero, and ends with status 1 if it is not.
fn first_bytes_are_zero(block: &str) -> String {
    format!("dd if=/dev/nvme0n1 bs=4096 skip={block} count=1 iflag=direct 2>/dev/null | cmp -s -n 4096 - /dev/zero")
}

/// Makes a file system with twenty files and leaves it unmounted.
fn fill(guest: &mut Guest, make: &str) {
    script(
        guest,
        &format!(
            "{make} /dev/nvme0n1
             mount /dev/nvme0n1 /mnt
             mkdir /mnt/d
             for n in $(seq 20); do head -c ${{n}}0000 /dev/urandom > /mnt/d/$n || exit 1; done
             cd /mnt/d && sha256sum * > /run/sums
             umount /mnt"
        ),
    );
}

/// Removes half of the files and trims their blocks; the other half stays unchanged.
fn trim(guest: &mut Guest, check: &str) {
    script(
        guest,
        &format!(
            "mount /dev/nvme0n1 /mnt
             rm /mnt/d/1* && grep -v ' 1' /run/sums > /run/left
             umount /mnt && mount /dev/nvme0n1 /mnt
             cd /mnt/d && sha256sum -c /run/left
             fstrim -v /mnt
             umount /mnt && mount /dev/nvme0n1 /mnt
             cd /mnt/d && sha256sum -c /run/left
             umount /mnt
             {check} /dev/nvme0n1"
        ),
    );
}
