//! Interleaving of programs over the LUNs of a channel (ONFI: interleaved operations): when a LUN may program again.
//!
//! With [`Interleaving::Rows`] a channel programs in rows: each LUN once, in any order, and none again before all of the row
//! have ended. This models a controller that learns the ends of programs from one ready line of the channel, or from one
//! firmware loop. It is one reading of Picoli 2019, 4.4.2.1, where one thread that returns to a unit waits for all previous
//! writes.
//!
//! Left out: programs of a collector that holds its plane or channel, which works alone and waits for no one; programs
//! that a fault hangs; and remote flash.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_drive::breakdown::cause::HOST_WRITE;
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

/// The rows of the channels of some flash.
pub(crate) struct Rows {
    channels: Box<[Rc<Row>]>,
    luns: Box<[OfLun]>,
}

/// The state of one LUN.
struct OfLun {
    /// Its die in the channel of the drive, and its number in the die. Other flash may own other dies of the channel.
    key: (u32, u32),
    /// One program of it at a time waits for its row; the others wait for that one, by class and then in order.
    turn: Resource,
}

/// The row of a channel, which all flash on the channel shares.
pub(crate) struct Row {
    /// The LUNs that have begun a program of this row.
    begun: RefCell<BTreeSet<(u32, u32)>>,
    /// Programs of it that have not ended.
    under_way: Cell<usize>,
    /// The cause of the program that ended the last row: others waited for that.
    last: Cell<Cause>,
    ended: Signal,
}

impl Row {
    pub(crate) fn new(sim: &Sim) -> Row {
        Row { begun: RefCell::default(), under_way: Cell::new(0), last: Cell::new(HOST_WRITE), ended: Signal::new(sim) }
    }
}

/// The right of a LUN to begin the next program of its row.
pub(crate) struct Turn<'a> {
    row: &'a Row,
    key: (u32, u32),
    cause: Cause,
    _turn: Hold<'a>,
}

/// A program's place in a row, released when it is dropped.
pub(crate) struct InRow<'a>(Turn<'a>);

impl Rows {
    /// Rows of `channels`, each with LUNs of these dies of the drive in turn, `of_die` of a die.
    pub(crate) fn new(sim: &Sim, channels: Vec<Rc<Row>>, dies: &[u32], of_die: u32) -> Rows {
        let keys = dies.iter().flat_map(|die| (0..of_die).map(|number| (*die, number)));
        let luns = channels.iter().flat_map(|_| keys.clone());
        Rows {
            luns: luns.map(|key| OfLun { key, turn: Resource::new(sim) }).collect(),
            channels: channels.into_boxed_slice(),
        }
    }

    /// Waits until a LUN of a channel may begin a program.
    pub(crate) async fn turn(
        &self,
        sim: &Sim,
        channel: usize,
        lun: usize,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Turn<'_> {
        let OfLun { key, turn } = &self.luns[lun];
        let turn = turn.take(who, breakdown.waits(Stage::DieWait)).await;
        let row = &self.channels[channel];
        let asked = sim.now();
        while row.begun.borrow().contains(key) {
            row.ended.changed().await;
        }
        breakdown.waits(Stage::DieWait).add(row.last.get(), sim.now() - asked);
        Turn { row, key: *key, cause: who.cause, _turn: turn }
    }
}

impl<'a> Turn<'a> {
    /// The LUN has admitted the program, which joins the row now: a program that waits for a LUN delays no row.
    pub(crate) fn begin(self) -> InRow<'a> {
        let is_first = self.row.begun.borrow_mut().insert(self.key);
        debug_assert!(is_first, "a LUN begins one program of a row");
        self.row.under_way.set(self.row.under_way.get() + 1);
        InRow(self)
    }
}

impl Drop for InRow<'_> {
    fn drop(&mut self) {
        let Turn { row, cause, .. } = self.0;
        row.under_way.set(row.under_way.get() - 1);
        if row.under_way.get() == 0 {
            row.begun.borrow_mut().clear();
            row.last.set(cause);
            row.ended.notify();
        }
    }
}
