//! A drive over NVMe/TCP: Linux's own initiator in a guest, over QEMU's user network.

use nandscape_lab_guest::{Guest, Machine};
use tempfile::tempdir;

use super::{run, script, start, until};
use crate::server::{Server, number};

/// Where the drive listens. The guest reaches this machine's loopback at 10.0.2.2.
fn serve() -> (Server, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let drive =
        ["--drive", "disk=default", "--set", "capacity=1GiB", "--set", "identity.nqn=nqn.2026-11.org.example:disk"];
    let args = [&drive[..], &["--no-delay", "--check", "--json", "--nvme-tcp", &address]].concat();
    (Server::start(tempdir().unwrap(), &args), port)
}

fn connected(port: u16) -> Guest {
    let mut guest = start(&Machine::default());
    script(
        &mut guest,
        &format!(
            "nvme discover -t tcp -a 10.0.2.2 -s {port} | grep nqn.2026-11.org.example:disk
             nvme connect -t tcp -a 10.0.2.2 -s {port} -n nqn.2026-11.org.example:disk -k 2 --reconnect-delay=1
             {}",
            until("[ -e /dev/nvme0n1 ]")
        ),
    );
    guest
}

const VERIFY: &str = "fio --name=load --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --iodepth=32 --rw=randrw \
                      --bs=4k --size=64m --verify=crc32c --verify_backlog=64 --verify_fatal=1";

#[test]
fn a_host_connects_verifies_and_makes_a_file_system() {
    let (server, port) = serve();
    let mut guest = connected(port);
    script(
        &mut guest,
        &format!(
            "nvme list | grep Nandscape
             {VERIFY}
             mkfs.ext4 -q -F /dev/nvme0n1
             mount /dev/nvme0n1 /mnt
             head -c 10000000 /dev/urandom > /mnt/file
             fstrim /mnt
             umount /mnt
             e2fsck -fn /dev/nvme0n1
             nvme disconnect -n nqn.2026-11.org.example:disk"
        ),
    );
    guest.power_off().unwrap();
    assert!(number(&server.figures(), "/drives/0/writes/bytes") >= 32e6);
}

#[test]
fn a_broken_network_under_load_loses_nothing() {
    let (server, port) = serve();
    let mut guest = connected(port);
    // Longer than the keep alive timeout: target and host give up the connection, and the host makes a new one.
    let pull = "(sleep 1; ip link set eth0 down; sleep 6; ip link set eth0 up; ip route add default via 10.0.2.2)";
    run(&mut guest, &format!("{pull} & {VERIFY} --time_based --runtime=15 && wait"));
    let again = run(&mut guest, "dmesg | grep -ci 'reconnect'");
    assert!(again.parse::<u32>().unwrap() > 0, "{again}");
    guest.power_off().unwrap();
    server.figures();
}
