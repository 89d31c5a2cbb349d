//! A drive over NVMe/TCP: Linux's own initiator in a guest, over QEMU's user network.

use super::steps::{self, Load};
use super::transport::{NQN, Served, Transport};
use super::{run, script, until};
use crate::server::number;

#[test]
fn a_host_identifies_fills_and_resets_a_drive_over_tcp() {
    let server = Served::over(Transport::Network, &[]);
    let mut guest = server.guest();
    run(&mut guest, &format!("nvme discover {} | grep {NQN}", server.address()));
    steps::tools_identify_the_drive(&mut guest);
    steps::all_queues_verify(&mut guest);
    steps::file_systems_keep_their_files(&mut guest);
    steps::resets_under_load_lose_nothing(&mut guest);
    run(&mut guest, &format!("nvme disconnect -n {NQN}"));
    guest.power_off().unwrap();
    let figures = server.figures();
    assert!(number(&figures, "/drives/0/writes/bytes") >= 16e6 && number(&figures, "/drives/0/reads/bytes") >= 16e6);
}

#[test]
fn a_host_maintains_a_drive_over_tcp() {
    let server = Served::over(Transport::Network, &[]);
    let mut guest = server.guest();
    steps::failed_commands_are_logged(&mut guest);
    steps::self_tests_pass_and_are_logged(&mut guest);
    steps::sanitize_leaves_no_data(&mut guest);
    steps::namespaces_are_created_attached_and_formatted(&mut guest);
    guest.power_off().unwrap();
    server.figures();
}

#[test]
fn a_broken_network_under_load_loses_nothing() {
    let server = Served::over(Transport::Network, &[]);
    let mut guest = server.guest();
    let load = Load::start(&mut guest);
    // The host misses its keep alive, gives up the connection, and makes a new one when it can.
    let state = |name: &str| until(&format!("grep -q {name} /sys/class/nvme/nvme0/state"));
    script(
        &mut guest,
        &format!(
            "ip link set eth0 down
             {}
             ip link set eth0 up
             ip route add default via 10.0.2.2
             {}",
            state("connecting"),
            state("live")
        ),
    );
    load.until_busy(&mut guest).end(&mut guest);
    let again = run(&mut guest, "dmesg | grep -ci 'reconnect'");
    assert!(again.parse::<u32>().unwrap() > 0, "{again}");
    guest.power_off().unwrap();
    server.figures();
}
