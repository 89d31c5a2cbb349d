//! A layer of a kind that this crate does not know: it opens over a drive, passes commands, and reports.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_drive::layer::{Layer, LayerNode, LayerReport, Shown, full_key, only};
use nandscape_drive::testing::{FakeDrive, INFO, Servers};
use nandscape_drive::{Drive, DriveInfo, HostMem, Io, Issuer, Node, Offers, Opening, Refused, Role, Use, node};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Passes every command and counts them, up to `most` connections.
#[derive(Debug)]
struct Counting {
    most: u32,
}

/// A view of it.
struct Passed(Cell<u64>);

struct CountingNode {
    name: &'static str,
    most: u32,
    connections: Cell<u32>,
    below: Rc<dyn Node>,
    passed: Rc<Passed>,
    begun: Cell<u64>,
}

struct Way {
    below: Rc<dyn Drive>,
    passed: Rc<Passed>,
}

#[derive(PartialEq, Debug)]
struct CountingReport {
    commands: u64,
}

impl Layer for Counting {
    fn kind(&self) -> &'static str {
        "counting"
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![("most", self.most.to_string())]
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        let (below, passed) = (only(below)?, Rc::new(Passed(Cell::new(0))));
        let (connections, begun) = (Cell::new(0), Cell::new(0));
        Ok(Rc::new(CountingNode { name: how.name, most: self.most, connections, below, passed, begun }))
    }
}

impl Node for CountingNode {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let number = self.connections.get() + 1;
        if number > self.most {
            let what = format!("{} has {} connections", self.name, self.most);
            return Err(Refused { what, status: Status::INVALID_QUEUE_ID, hint: "; raise most" });
        }
        self.connections.set(number);
        Ok(Rc::new(Way { below: self.below.connect(wanted)?, passed: self.passed.clone() }))
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        (of == TypeId::of::<Passed>()).then(|| self.passed.clone() as Rc<dyn Any>)
    }
}

impl LayerNode for CountingNode {
    fn offers(&self, below: Offers) -> Offers {
        below
    }

    fn begin(&self) {
        self.begun.set(self.passed.0.get());
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        Some(Arc::new(CountingReport { commands: self.passed.0.get() - self.begun.get() }))
    }
}

impl Drive for Way {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        self.passed.0.set(self.passed.0.get() + 1);
        self.below.submit(io);
    }
}

impl LayerReport for CountingReport {
    fn key(&self) -> &'static str {
        "counting"
    }

    fn json(&self) -> String {
        format!("{{\"commands\":{}}}", self.commands)
    }

    fn shown(&self) -> Vec<Shown> {
        vec![Shown::Line(format!("{} commands", self.commands))]
    }
}

/// The drive below.
struct Below(Rc<FakeDrive<Span>>);

impl Node for Below {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn connect(&self, _: Use) -> Result<Rc<dyn Drive>, Refused> {
        Ok(self.0.connect())
    }
}

#[test]
fn a_layer_of_an_unknown_kind_is_opened_used_and_reported() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let below: Rc<dyn Node> = Rc::new(Below(FakeDrive::new(&sim, INFO, Servers::Unlimited, Span::from_us(5))));
    let layer: Arc<dyn Layer> = Arc::new(Counting { most: 2 });
    assert_eq!((layer.takes(), layer.layout(), layer.holds()), (1, None, false));
    assert_eq!(layer.as_kind::<Counting>().map(|layer| layer.most), Some(2));

    let lower = layer.open(&Opening::new(&sim, "low"), vec![below]).expect("it has a drive");
    let upper = layer.open(&Opening::new(&sim, "top"), vec![lower.clone()]).expect("it has a layer");
    let wanted = Use { role: Role::Any, entries: 16 };
    let drive = upper.connect(wanted).expect("a connection");
    let issuer = Issuer::new(&sim);
    let read = |block| issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, block, 8), HostMem::none());
    for (block, is_begun) in [(0, true), (8, false), (16, false)] {
        let done = executor.block_on(read(block)).expect("it ends");
        assert_eq!(done.status, Status::SUCCESS);
        // The first is not in the measured phase.
        [&lower, &upper].into_iter().filter(|_| is_begun).for_each(|layer| layer.begin());
    }
    assert_eq!(sim.now().ns(), 15_000);
    for layer in [&lower, &upper] {
        let report = layer.report().expect("it counts");
        assert_eq!(report.as_kind(), Some(&CountingReport { commands: 2 }));
        assert_eq!((report.key(), &*report.json()), ("counting", "{\"commands\":2}"));
        assert_eq!(report.shown(), [Shown::Line("2 commands".to_owned())]);
        assert_eq!(node::view::<Passed>(&**layer).map(|passed| passed.0.get()), Some(3));
        assert!(layer.as_kind::<CountingNode>().is_some() && layer.is_at_rest() && layer.check().is_ok());
        assert_eq!(layer.take_held(), Ok(Vec::new()));
    }
    executor.block_on(upper.come_to_rest()).expect("it ends").expect("it is at rest");

    upper.connect(wanted).expect("the second");
    let refused = upper.connect(wanted).err().expect("a third").to_string();
    assert!(refused.starts_with("top has 2 connections: ") && refused.ends_with("; raise most"), "{refused}");
    assert!(
        layer.open(&Opening::new(&sim, "alone"), Vec::new()).is_err_and(|problem| problem.contains("nothing below"))
    );
}

#[test]
fn keys_have_the_kind_before_them_once() {
    for change in ["deadline=2ms", "block.deadline=2ms"] {
        assert_eq!(full_key("block", change), "block.deadline=2ms");
    }
    assert_eq!(full_key("block", "blocks=1"), "block.blocks=1");
}

#[test]
fn a_layer_that_places_data_passes_less() {
    let all =
        Offers { copy: true, compare: true, deadlines: true, attributes: 3, hints: 1, dlfeat: 9, ..Offers::default() };
    assert_eq!(all.placed(), Offers { compare: true, dlfeat: 1, ..Offers::default() });
    assert_eq!(Offers::default().answering(), Offers { deadlines: true, hints: 1, ..Offers::default() });
}
