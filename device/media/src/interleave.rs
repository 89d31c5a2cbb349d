//! Interleaving of programs over the LUNs of a channel (ONFI: interleaved operations): when a LUN may program again.
//!
//! With [`Interleaving::Rows`] a channel programs in rows: each LUN once, in any order, and none a second time before all of the
//! row have ended. A controller does so that learns from one line of the channel, or from one loop of its firmware, that programs
//! have ended (Picoli 2019, 4.4.2.1: a thread that returns to a unit waits for all previous writes).
//!
//! Left out: programs of a collector that holds its plane or channel. It works alone and waits for nobody.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::resource::Hold;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Cause, Resource, Sim, Who};

/// When a LUN may program again.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Interleaving {
    /// When its own program has ended.
    #[default]
    Free,
    /// When all programs of its channel have ended.
    Rows,
}

impl Interleaving {
    /// All of them, by their names in profiles.
    pub const ALL: [(&str, Interleaving); 2] = [("free", Interleaving::Free), ("rows", Interleaving::Rows)];
}

/// The rows of all channels.
pub(crate) struct Rows {
    channels: Box<[Row]>,
    /// One program of a LUN at a time waits for its row; the others wait for it, by class and then in order.
    turns: Box<[Resource]>,
}

struct Row {
    /// The LUNs that have begun a program of this row.
    begun: RefCell<BTreeSet<usize>>,
    /// Programs of it that have not ended.
    under_way: Cell<usize>,
    /// The cause of the program that ended it: others waited for that.
    last: Cell<Cause>,
    ended: Signal,
}

/// A program's place in a row, given up when it is dropped.
pub(crate) struct InRow<'a> {
    row: &'a Row,
    cause: Cause,
    _turn: Hold<'a>,
}

impl Rows {
    pub(crate) fn new(sim: &Sim, channels: usize, luns: usize) -> Rows {
        let row = || Row {
            begun: RefCell::default(),
            under_way: Cell::new(0),
            last: Cell::new(nandscape_drive::breakdown::cause::HOST_WRITE),
            ended: Signal::new(sim),
        };
        Rows {
            channels: (0..channels).map(|_| row()).collect(),
            turns: (0..luns).map(|_| Resource::new(sim)).collect(),
        }
    }

    /// Waits until a LUN of a channel may begin a program.
    pub(crate) async fn join(
        &self,
        sim: &Sim,
        channel: usize,
        lun: usize,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> InRow<'_> {
        let turn = self.turns[lun].take(who, breakdown.waits(Stage::DieWait)).await;
        let row = &self.channels[channel];
        let asked = sim.now();
        while row.begun.borrow().contains(&lun) {
            row.ended.changed().await;
        }
        breakdown.waits(Stage::DieWait).add(row.last.get(), sim.now() - asked);
        row.begun.borrow_mut().insert(lun);
        row.under_way.set(row.under_way.get() + 1);
        InRow { row, cause: who.cause, _turn: turn }
    }
}

impl Drop for InRow<'_> {
    fn drop(&mut self) {
        let row = self.row;
        row.under_way.set(row.under_way.get() - 1);
        if row.under_way.get() == 0 {
            row.begun.borrow_mut().clear();
            row.last.set(self.cause);
            row.ended.notify();
        }
    }
}
