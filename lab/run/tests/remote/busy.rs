//! A fail-fast read keeps its bit on the whole way from a host to the drive: the second server, whose
//! controller forwards it, the initiator, and the first server. Its completion has the wait that it would have had.

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_sim::Seed;
use nandscape_wire_nvme::identify::{Controller, cns};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::vendor::{BUSY, Capabilities, FAST_FAIL, Hints, PREDICT_ONLY};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::FromBytes;

use crate::host::Host;
use crate::served::served_again;
use crate::server::{Server, SsdExport};

/// One plane, whose programs take half a second, and writes that end in the buffer.
fn slow() -> Server {
    Server::of(None, 1 << 30, |sim| {
        let mut profile = Profile::load("default").unwrap();
        for change in [
            "capacity=64MiB",
            "geometry.channels=1",
            "geometry.dies_per_channel=1",
            "geometry.planes_per_die=1",
            "timing.program=500ms",
            "buffer.mode=volatile",
            "controller.queue_pairs=8",
            "controller.queue_entries=256",
        ] {
            profile.set(change).unwrap();
        }
        let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::Ram, Seed::new(1)).unwrap();
        SsdExport::of(sim, ssd)
    })
}

#[test]
fn its_time_to_wait_comes_back_through_two_servers() {
    let first = slow();
    let second = served_again(Target::new(&first.address, &first.nqn));
    let mut admin = Host::admin(&second, Digests::default());
    let (_, data) = admin.read_command(SubmissionEntry::identify(cns::CONTROLLER, 0), 4_096);
    let controller = Controller::read_from_bytes(&data).unwrap();
    let honoured = Capabilities::of(&controller.vendor).expect("the table is passed on").attributes.get();
    assert_eq!(honoured & (FAST_FAIL | PREDICT_ONLY), FAST_FAIL | PREDICT_ONLY);
    for server in [&first, &second] {
        let admin = Host::admin(server, Digests::default());
        let mut queue = admin.queue(server, 1, Digests::default());
        // The first page is on flash; a second is being programmed.
        assert_eq!(queue.write(0, &[1; 16 << 10], 16 << 10), Status::SUCCESS);
        assert_eq!(queue.execute(SubmissionEntry::io(IoOpcode::FLUSH, 1)).status(), Status::SUCCESS);
        assert_eq!(queue.write(1_024, &[2; 16 << 10], 16 << 10), Status::SUCCESS);
        let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8);
        let read = read.with_sgl(SglDescriptor::transport(4_096));
        let ended = queue.execute(SubmissionEntry { cdw2: FAST_FAIL.into(), ..read });
        let (us, hints) = (ended.dw0.get(), Hints(ended.dw1.get()));
        assert_eq!(ended.status().meaning(), BUSY);
        assert!(us > 1_000 && us <= 510_000 && hints.busy(), "{us} us, {hints:?}");
        assert!(u32::from(hints.remaining_bucket()).abs_diff(us * 256 / 500_000) <= 2, "{us} us, {hints:?}");
        // Without the bit it waits.
        assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![1; 4_096]));
    }
}
