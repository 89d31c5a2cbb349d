//! Namespaces: created, attached, formatted, detached.

use nandscape_lab_guest::Guest;

use super::super::{run, script, until};
use super::json;

/// The driver learns of each change by an event.
pub(in super::super) fn namespaces_are_created_attached_and_formatted(guest: &mut Guest) {
    let controller = json(&run(guest, "nvme id-ctrl /dev/nvme0 -o json"))["cntlid"].to_string();
    script(
        guest,
        &format!(
            "nvme delete-ns /dev/nvme0 -n 1
             {}
             nvme create-ns /dev/nvme0 -s 0x40000 -c 0x40000 -f 0
             nvme create-ns /dev/nvme0 -s 0x800 -c 0x800 -f 1
             nvme attach-ns /dev/nvme0 -n 1 -c {controller}
             nvme attach-ns /dev/nvme0 -n 2 -c {controller}
             {}",
            until("[ ! -e /dev/nvme0n1 ]"),
            until("[ -e /dev/nvme0n1 -a -e /dev/nvme0n2 ]")
        ),
    );
    let size = |guest: &mut Guest, name: &str| run(guest, &format!("blockdev --getss --getsize64 /dev/{name}"));
    assert_eq!(size(guest, "nvme0n1"), format!("512\n{}", 128 << 20));
    assert_eq!(size(guest, "nvme0n2"), format!("4096\n{}", 8 << 20));
    script(
        guest,
        &format!(
            "dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=4 oflag=direct
             dd if=/dev/urandom of=/dev/nvme0n2 bs=1M count=4 oflag=direct
             sha256sum /dev/nvme0n2 > /run/sum
             nvme format /dev/nvme0n1 -l 1 -f
             cmp -n 4194304 /dev/nvme0n1 /dev/zero
             sha256sum -c /run/sum
             nvme detach-ns /dev/nvme0 -n 2 -c {controller}
             {}",
            until("[ ! -e /dev/nvme0n2 ]")
        ),
    );
    assert_eq!(size(guest, "nvme0n1"), format!("4096\n{}", 128 << 20));
}
