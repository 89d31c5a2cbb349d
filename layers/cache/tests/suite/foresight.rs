//! A cache over a node with foresight rejects late reads, whatever kind the node is of.

use std::any::{Any, TypeId};
use std::rc::Rc;

use nandscape_drive::testing::{FakeDrive, FakeNode, INFO, Servers};
use nandscape_drive::{
    Drive, DriveInfo, Expected, Foresight, HostMem, Issuer, Layer, Node, Opening, Refused, Role, Use, foresight,
};
use nandscape_layers_cache::CacheLayer;
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// A node whose reads take 80 us, 60 us of which they wait.
struct Slow(FakeNode);

struct Sure;

impl Foresight for Sure {
    fn expected(&self, _: u64, _: u32) -> Option<Expected> {
        Some(Expected { latency: Span::from_us(80), wait: Span::from_us(60) })
    }
}

impl Node for Slow {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        self.0.connect(wanted)
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        foresight::view(of, &Rc::new(Sure))
    }
}

#[test]
fn caches_over_any_node_with_foresight_reject_late_reads() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let layer = CacheLayer::read(&["memory=64KiB".to_owned()]).expect("a valid size");
    let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Span::from_us(80));
    let low = layer.open(&Opening::new(&sim, "low"), vec![Rc::new(Slow(FakeNode(drive)))]).unwrap();
    let high = layer.open(&Opening::new(&sim, "high"), vec![low.clone()]).unwrap();
    let issuer = Issuer::new(&sim);
    for (node, name, first) in [(low, "low", 0), (high, "high", 9)] {
        let drive = node.connect(Use { role: Role::Any, entries: 8 }).unwrap();
        for (page, deadline, expected) in [(first, 79, (BUSY, 60)), (first + 1, 100, (Status::SUCCESS, 0))] {
            let mut read = SubmissionEntry::blocks(IoOpcode::READ, 1, page * 8, 8);
            read.cdw3 = deadline.into();
            let ended = executor.block_on(issuer.execute(&*drive, read, HostMem::none())).unwrap();
            assert_eq!((ended.status.meaning(), ended.dw0), expected, "{name}: {deadline} us");
            assert!(ended.breakdown.layers().any(|(layer, _)| layer == name), "{name}: {deadline} us");
        }
    }
}
