//! A drive as a PCI device of a guest.

use super::transport::{Served, Transport};
use super::{run, steps};
use crate::server::number;

/// With shadow doorbells that are read on notice; the other test has the default.
#[test]
fn a_host_identifies_and_fills_a_pci_drive() {
    let server = Served::over(Transport::Pci, &["--doorbells", "shadow"]);
    let mut guest = server.booted();
    steps::tools_identify_the_drive(&mut guest);
    steps::all_queues_verify(&mut guest);
    steps::file_systems_keep_their_files(&mut guest);
    guest.power_off().unwrap();
    let figures = server.figures();
    assert!(number(&figures, "/drives/0/writes/bytes") >= 16e6 && number(&figures, "/drives/0/reads/bytes") >= 16e6);
    assert_eq!(number(&figures, "/drives/0/writes/errors") + number(&figures, "/drives/0/reads/errors"), 0.0);
}

#[test]
fn a_host_maintains_and_resets_a_pci_drive() {
    let server = Served::over(Transport::Pci, &[]);
    let mut guest = server.guest();
    steps::failed_commands_are_logged(&mut guest);
    steps::self_tests_pass_and_are_logged(&mut guest);
    steps::sanitize_leaves_no_data(&mut guest);
    steps::resets_under_load_lose_nothing(&mut guest);
    steps::namespaces_are_created_attached_and_formatted(&mut guest);
    guest.power_off().unwrap();
    server.figures();
}

/// A function keeps the saved features of its guests; in a file they outlast the server as well. Another function has separate
/// values.
#[test]
fn saved_features_are_there_for_the_next_guest_of_a_function() {
    let saved = "nvme get-feature /dev/nvme0 -f 1 -s 2";
    let server = Served::over(Transport::Pci, &["--store", "file:drive.nand"]);
    let mut guest = server.guest();
    let default = run(&mut guest, saved);
    run(&mut guest, "nvme set-feature /dev/nvme0 -f 1 --value=5 --save");
    guest.power_off().unwrap();
    let mut next = server.guest();
    assert!(run(&mut next, saved).ends_with(":0x00000005"), "the arbitration burst");
    next.power_off().unwrap();
    let mut other = server.host(1);
    assert_eq!(run(&mut other, saved), default);
    other.power_off().unwrap();
    let server = server.again();
    let mut later = server.guest();
    assert!(run(&mut later, saved).ends_with(":0x00000005"), "after the end of the server");
    later.power_off().unwrap();
    server.figures();
}
