//! The events of a run, line by line: every operation of the flash as it ends, and the notes of the run.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_media::{BlockId, Geometry, PageId};
use nandscape_sim::trace::{Event, Listener};
use nandscape_sim::{Sim, Time};

/// See the module.
pub(super) struct Journal {
    sim: Sim,
    geometry: Geometry,
    lines: RefCell<Vec<String>>,
}

impl Journal {
    /// A journal of all that happens in a run from now on, which is also kept as a trace.
    pub(super) fn begin(sim: &Sim, geometry: Geometry) -> Rc<Journal> {
        let journal = Rc::new(Journal { sim: sim.clone(), geometry, lines: RefCell::default() });
        sim.trace().listen(journal.clone());
        sim.trace().switch_on();
        journal
    }

    /// Notes what happens at an instant.
    pub(super) fn note(&self, at: Time, what: &str) {
        self.lines.borrow_mut().push(format!("{:12.3} us  {what}", at.ns() as f64 / 1e3));
    }

    /// The last `lines` lines, or all if there are fewer.
    pub(super) fn last(&self, lines: usize) -> Vec<String> {
        let all = self.lines.borrow();
        all[all.len().saturating_sub(lines)..].to_vec()
    }

    fn place(&self, event: &Event) -> String {
        match event.name {
            "erase" => format!("block {}", event.detail),
            "read" | "program" => {
                let page = PageId(event.detail as u32);
                let BlockId(block) = self.geometry.block_of(page);
                format!("page {} of block {block}", self.geometry.page_in_block(page))
            }
            _ => event.detail.to_string(),
        }
    }
}

impl Listener for Journal {
    fn ended(&self, event: &Event) {
        // Each belongs to an operation.
        if event.name == "transfer" {
            return;
        }
        let track = self.sim.trace().name(event.track);
        let what =
            format!("{track}: {} {}, since {:.3} us", event.name, self.place(event), event.start.ns() as f64 / 1e3);
        self.note(event.end, &what);
    }
}
