//! Two guests on one namespace: reservations keep one of them from writing.

use nandscape_lab_guest::Guest;

use super::run;
use super::transport::{Served, Transport};

/// A guest with its own reservation key.
fn host(server: &Served, number: usize, key: u32) -> Guest {
    let mut guest = server.host(number);
    run(&mut guest, &format!("nvme resv-register /dev/nvme0n1 -n 1 --nrkey={key} --rrega=0"));
    guest
}

fn a_reservation_keeps_the_other_host_from_writing(transport: Transport) {
    let server = Served::over(transport, &[]);
    let (mut one, mut other) = (host(&server, 0, 1), host(&server, 1, 2));
    let write = "dd if=/dev/urandom of=/dev/nvme0n1 bs=4k count=16 oflag=direct";
    run(&mut other, write);
    run(&mut one, "nvme resv-acquire /dev/nvme0n1 -n 1 --crkey=1 --rtype=1 --racqa=0");
    run(&mut one, write);
    assert_ne!(other.attempt(write).unwrap().status, 0, "Write Exclusive");
    run(&mut other, "dd if=/dev/nvme0n1 of=/dev/null bs=4k count=16 iflag=direct");
    // The other takes it over.
    run(&mut other, "nvme resv-acquire /dev/nvme0n1 -n 1 --crkey=2 --prkey=1 --rtype=1 --racqa=1");
    run(&mut other, write);
    assert_ne!(one.attempt(write).unwrap().status, 0, "preempted");
    run(&mut other, "nvme resv-release /dev/nvme0n1 -n 1 --crkey=2 --rtype=1 --rrela=0");
    run(&mut one, write);
    one.power_off().unwrap();
    other.power_off().unwrap();
    server.figures();
}

#[test]
fn a_reservation_holds_between_two_pci_hosts() {
    a_reservation_keeps_the_other_host_from_writing(Transport::Pci);
}

#[test]
fn a_reservation_holds_between_two_hosts_over_tcp() {
    a_reservation_keeps_the_other_host_from_writing(Transport::Network);
}
