//! Drives that are formatted while they are served.

use std::process::Command;

use nandscape_drive::{Drive as _, DriveInfo};
use nandscape_host_driver::nbd::NbdDrive;
use nandscape_lab_fuzz::{NvmeTcpHost, NvmeTcpTarget};
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry};
use serde_json::Value;

use crate::server::{SMALL, Server, run};
use crate::tools;

/// The answer to a client's GO for an export.
fn told(server: &Server) -> DriveInfo {
    NbdDrive::connect(&server.uri().parse().unwrap(), true, NbdDrive::PATIENCE).unwrap().info()
}

/// Clients that connect after a format get the new number of blocks, by INFO and by GO.
#[test]
fn an_nbd_export_is_described_as_it_is_after_a_format() {
    let more = ["--nbd", "unix:n.sock", "--nvme-tcp", "127.0.0.1:0"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..], &more].concat());
    let url = server.next_place("nvme-tcp://");
    let (address, nqn) = url.split_once('/').unwrap();
    let target = NvmeTcpTarget { address: address.to_owned(), nqn: nqn.to_owned() };
    let (mut admin, _) = NvmeTcpHost::admin(&target, Digests::default());
    let before = told(&server);
    assert_eq!((before.lba_bytes, before.bytes()), (512, 64 << 20));
    // The second format has blocks of 4 KiB.
    let format = SubmissionEntry { nsid: 1.into(), flags: 0x40, ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
    let mut format_when_unused = |entry: SubmissionEntry| {
        // The client of NBD has left, but the server may not have seen that yet: it refuses to change a namespace in use.
        let mut looks = (0..100_000).map(|_| admin.attempt(entry, &[]).0);
        let last = looks.find(|status| status.meaning() != Status::OPERATION_DENIED);
        assert!(last.is_some_and(Status::is_success), "{last:?}");
    };
    format_when_unused(SubmissionEntry { cdw10: 1.into(), ..format });
    let after = told(&server);
    assert_eq!((after.lba_bytes, after.bytes()), (4_096, 64 << 20));
    let info: Value = serde_json::from_str(&tools::run("nbdinfo", &["--json", &server.uri()])).unwrap();
    assert_eq!(info["exports"][0]["block_size_minimum"].as_u64(), Some(4_096));
    format_when_unused(format);
    assert_eq!(told(&server).lba_bytes, 512);
}

/// The hosts of this program do not support metadata: they reject such a namespace, and report why.
#[test]
fn a_namespace_with_metadata_is_refused_by_hosts_that_do_not_know_of_it() {
    let more = ["--nbd", "unix:n.sock", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..], &more].concat());
    let place = server.next_place("nvme-tcp://");
    let (address, nqn) = place.split_once('/').unwrap();
    let target = NvmeTcpTarget { address: address.to_owned(), nqn: nqn.to_owned() };
    let (mut admin, _) = NvmeTcpHost::admin(&target, Digests::default());
    // The third format has 8 bytes of metadata, which follow the data of each block (MSET, bit 4).
    let format = SubmissionEntry { nsid: 1.into(), flags: 0x40, ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
    admin.execute(SubmissionEntry { cdw10: (2 | 1 << 4).into(), ..format }, &[]);
    for url in [format!("nvme-tcp://{place}"), format!("vfio-user://{}", server.path("f.sock").display())] {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        bench.args(["bench", "--to", &url, "--rw", "randread", "--io-count", "1"]);
        let ended = run(bench);
        let told =
            "namespace 1 has 8 bytes of metadata for each block, which this initiator does not transfer; valid are";
        assert!(ended.code == Some(2) && ended.err.contains(&url) && ended.err.contains(told), "{ended:?}");
    }
}

/// They know of no zones either.
#[test]
fn a_drive_with_zones_is_refused_by_hosts_that_do_not_know_of_them() {
    let zoned = ["--drive", "zoned=wd-zn540", "--set", "capacity=32GiB", "--store", "none", "--no-delay", "--json"];
    let more = ["--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&zoned[..], &more].concat());
    let (_, place) = server.url().split_once("nvme-tcp://").unwrap();
    let place = place.split(' ').next().unwrap();
    for url in [format!("nvme-tcp://{place}"), format!("vfio-user://{}", server.path("f.sock").display())] {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        bench.args(["bench", "--to", &url, "--rw", "randread", "--io-count", "1"]);
        let ended = run(bench);
        assert!(ended.code == Some(2) && ended.err.contains("other command sets than NVM"), "{ended:?}");
    }
}
