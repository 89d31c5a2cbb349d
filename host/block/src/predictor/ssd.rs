//! MittSSD (Li 3.1.7): an account of every chip and every channel. From it and the pages that a read senses follows
//! the read's wait.
//!
//! The FTL reports programs and erases as it sends them ([`FlashWatch`]). Reads are counted when the layer admits
//! them, before they reach the flash, so that reads on their way count. Operation times are initially the vendor's.
//! They are measured at the end of operations that were not delayed.
//!
//! It differs from the thesis in two ways. Errors are corrected when an operation ends, as in MittNoop. A channel has
//! a next free time; in the thesis, each operation of another chip of the channel counts with a fixed time.
//!
//! An undelayed read shows the sense time of its page. This covers ageing drives with read retries: the time is kept
//! by the page's number in its block.
//!
//! Left out: suspended programs and erases, differences in retries among pages of the same number, copybacks inside a
//! chip, and reads that complete writes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::flash::{FlashKind, FlashMap, FlashOp, FlashPage, FlashSheet, FlashWatch};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use smallvec::SmallVec;

use super::chip::{Behind, Chip, Order, Place};
use super::times::{FlashTimes, averaged, renewed};
use super::{Prediction, Predictor};
use crate::config::Config;
use crate::request::Request;

/// The host's knowledge of its flash.
pub struct Flash {
    /// The vendor's data sheet.
    pub sheet: FlashSheet,
    /// The order in which chips serve.
    pub order: Order,
    /// Where data is.
    pub map: Box<dyn FlashMap>,
}

/// See the file.
pub struct MittSsd {
    sim: Sim,
    flash: Flash,
    channels_count: bool,
    resamples: bool,
    state: RefCell<State>,
    /// Accounts of chips and channels read by predictions.
    looks: Cell<u64>,
}

struct State {
    chips: Vec<Chip>,
    /// When each channel has finished its transfers, in nanoseconds.
    channels: Vec<u64>,
    times: FlashTimes,
    reads: Slots<ReadUnderWay>,
    operations: Slots<Operation>,
    /// The last page that each chip read for a host: its number in its block, and its time at the chip and on the
    /// channel.
    read_last: Vec<Option<(u32, Span)>>,
}

/// A read that was let in.
struct ReadUnderWay {
    places: SmallVec<[(u32, Place); 2]>,
    /// The place that is to end last.
    last: usize,
    began: Time,
    /// If it was not delayed: its time, and its page if it has one.
    alone: Option<(Span, Option<FlashPage>)>,
}

/// An operation at a chip.
struct Operation {
    op: FlashOp,
    /// Its place; `None` of a read of a host, which has one by its command.
    place: Option<Place>,
    began: Time,
    /// Whether it was not delayed.
    is_alone: bool,
}

impl MittSsd {
    /// Over flash that the host manages.
    pub fn new(sim: &Sim, flash: Flash, config: &Config) -> Rc<MittSsd> {
        let sheet = &flash.sheet;
        let times = FlashTimes::of(sheet);
        let state = State {
            chips: (0..sheet.chips).map(|_| Chip::new(sheet.overlaps)).collect(),
            channels: vec![0; sheet.channels as usize],
            times: if config.page_types { times } else { times.without_page_types() },
            reads: Slots::new(),
            operations: Slots::new(),
            read_last: vec![None; sheet.chips as usize],
        };
        Rc::new(MittSsd {
            sim: sim.clone(),
            channels_count: config.channels,
            resamples: config.resample && config.page_types,
            flash,
            state: RefCell::new(state),
            looks: Cell::new(0),
        })
    }

    /// How long operations take, as far as is known.
    pub fn times(&self) -> FlashTimes {
        self.state.borrow().times.clone()
    }

    /// Accounts of chips and channels that predictions have read so far: their work.
    pub fn looks(&self) -> u64 {
        self.looks.get()
    }

    /// How long the chip is busy with a read.
    fn at_chip(&self, sense: Span, moving: Span) -> Span {
        if self.flash.sheet.overlaps { sense } else { sense + moving }
    }

    /// When the last page arrives: as predicted, and without delays.
    fn ends(&self, state: &State, pages: &[FlashPage], at: Time) -> (Time, Time) {
        let (mut last, mut alone) = (at, at);
        // Pages of this read on one chip, or on one channel, arrive one after the other.
        let mut mine: SmallVec<[(FlashPage, Span, Span); 4]> = SmallVec::new();
        for page in pages {
            let (sense, moving) = (state.times.sense(page.page), state.times.moving(page.bytes));
            let before = mine.iter().filter(|(other, ..)| other.chip == page.chip);
            let at_chip = before.map(|(_, sense, moving)| self.at_chip(*sense, *moving)).sum::<Span>();
            let on_channel = mine.iter().filter(|(other, ..)| other.channel == page.channel);
            let on_channel = on_channel.map(|(.., moving)| *moving).sum::<Span>();
            self.looks.set(self.looks.get() + 2);
            let sensed = state.chips[page.chip as usize].begins(at) + at_chip + sense;
            let busy = if self.channels_count { state.channels[page.channel as usize] } else { 0 };
            let free = Time::from_ns(busy.max(at.ns())) + on_channel;
            last = last.max(sensed.max(free) + moving);
            alone = alone.max((at + at_chip + sense).max(at + on_channel) + moving);
            mine.push((*page, sense, moving));
        }
        (last, alone)
    }
}

impl State {
    /// An undelayed read has ended after `took`. The time of its page at the chip and on the channel was observed
    /// there, including retries; the rest is the way to the drive and back.
    fn measure(&mut self, (alone, page): (Span, Option<FlashPage>), took: Span) {
        let seen = page.and_then(|page| {
            let (number, at_flash) = self.read_last[page.chip as usize].take()?;
            (number == page.page).then_some((page, at_flash))
        });
        if let Some((page, at_flash)) = seen {
            self.times.sensed(page.page, at_flash.saturating_sub(self.times.moving(page.bytes)));
        }
        let at_flash = seen.map_or(alone, |(_, at_flash)| at_flash);
        self.times.overhead = renewed(self.times.overhead, took.saturating_sub(at_flash));
    }

    fn use_channel(&mut self, channel: u32, now: Time, takes: Span) {
        let free = &mut self.channels[channel as usize];
        *free = (*free).max(now.ns()).saturating_add(takes.ns());
    }

    fn is_channel_idle(&self, channel: u32, now: Time) -> bool {
        self.channels[channel as usize] <= now.ns()
    }
}

impl Predictor for MittSsd {
    fn predict(&self, request: &Request, now: Time) -> Prediction {
        let mut pages = SmallVec::new();
        if request.is_read {
            self.flash.map.pages(request.slba, request.blocks, &mut |page| pages.push(page));
        }
        let state = self.state.borrow();
        let (last, alone) = self.ends(&state, &pages, now);
        Prediction { latency: last - now + state.times.overhead, wait: last - alone, pages }
    }

    fn accept(&self, request: &Request, prediction: &Prediction, now: Time) -> u64 {
        if !request.is_read {
            return u64::MAX;
        }
        let state = &mut *self.state.borrow_mut();
        let is_alone = prediction.wait.is_zero()
            && prediction
                .pages
                .iter()
                .all(|page| state.chips[page.chip as usize].is_idle() && state.is_channel_idle(page.channel, now));
        let overhead = state.times.overhead;
        let (mut places, mut last, mut latest) = (SmallVec::new(), 0, now);
        for page in &prediction.pages {
            let (sense, moving) = (state.times.sense(page.page), state.times.moving(page.bytes));
            let takes = self.at_chip(sense, moving);
            let chip = &mut state.chips[page.chip as usize];
            let sensed = chip.begins(now) + sense;
            let free = Time::from_ns(if self.channels_count { state.channels[page.channel as usize] } else { 0 });
            let end = sensed.max(free) + moving + overhead;
            let done = chip.begins(now) + takes;
            let place = chip.add(now, takes, end.since(done).saturating_sub(overhead), overhead);
            if end >= latest {
                (last, latest) = (places.len(), end);
            }
            places.push((page.chip, place));
            state.use_channel(page.channel, now, moving);
        }
        let page = if let [page] = prediction.pages[..] { Some(page) } else { None };
        let alone = is_alone.then_some((prediction.latency - overhead, page));
        state.reads.insert(ReadUnderWay { places, last, began: now, alone }).to_bits()
    }

    fn is_busy(&self, chip: u32) -> bool {
        self.state.borrow().chips.get(chip as usize).is_some_and(|chip| !chip.is_idle())
    }

    fn ended(&self, ticket: u64, now: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(read) = state.reads.remove(Key::from_bits(ticket)) else { return };
        for (number, (chip, place)) in read.places.iter().enumerate() {
            // The arrival of the other pages is unknown, so the prediction is assumed.
            let chip = &mut state.chips[*chip as usize];
            match number == read.last {
                true => drop(chip.end(place, now)),
                false => chip.end_as_predicted(place, now),
            }
        }
        if let Some(alone) = read.alone.filter(|_| self.resamples) {
            state.measure(alone, now - read.began);
        }
    }

    fn dropped(&self, ticket: u64, now: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(read) = state.reads.remove(Key::from_bits(ticket)) else { return };
        read.places.iter().for_each(|(chip, place)| state.chips[*chip as usize].drop_one(place, now));
    }
}

impl FlashWatch for MittSsd {
    fn began(&self, op: &FlashOp) -> u64 {
        let (now, state) = (self.sim.now(), &mut *self.state.borrow_mut());
        // Reads of hosts are known already, and measured.
        if op.for_host_read {
            let measures = op.kind == FlashKind::Read && self.resamples;
            let read = Operation { op: *op, place: None, began: now, is_alone: false };
            return if measures { state.operations.insert(read).to_bits() } else { u64::MAX };
        }
        let moving = state.times.moving(op.bytes);
        // Operations within a hold are part of it, and use the channel.
        if op.is_held {
            state.use_channel(op.channel, now, moving);
            return u64::MAX;
        }
        let is_alone = state.chips[op.chip as usize].is_idle() && state.is_channel_idle(op.channel, now);
        let at_array = match op.kind {
            FlashKind::Read => state.times.sense(op.page),
            FlashKind::Program => state.times.programming(op.page, op.last_page) + state.times.program_waits,
            FlashKind::Erase => state.times.erase,
            FlashKind::Hold if self.channels_count && !op.holds_channel => op.hold + state.times.hold_waits,
            FlashKind::Hold => op.hold,
        };
        let is_fifo = self.flash.order == Order::Fifo;
        let chip = &mut state.chips[op.chip as usize];
        // The page of a read behind another operation is transferred during that operation; a page to program
        // overlaps only some operations.
        let is_beside = match op.kind {
            FlashKind::Program if is_fifo => chip.takes_in_early(),
            _ => self.flash.sheet.overlaps && !chip.is_idle(),
        };
        let takes = if is_beside { at_array } else { at_array + moving };
        // A page waits for earlier transfers on the channel.
        let busy = if self.channels_count && !moving.is_zero() { state.channels[op.channel as usize] } else { 0 };
        let begins = chip.begins(now);
        // The page that was sensed last has to have left the register.
        let leaves = match op.kind {
            FlashKind::Program if is_fifo && !is_beside => chip.is_empty_at(now) - begins,
            _ => Span::ZERO,
        };
        let begins = begins + leaves;
        let waits = match op.kind {
            FlashKind::Read => Span::from_ns(busy.saturating_sub((begins + at_array).ns())),
            _ if is_beside => Span::from_ns((busy.max(now.ns()) + moving.ns()).saturating_sub(begins.ns())),
            _ => Span::from_ns(busy.saturating_sub(begins.ns())),
        };
        let takes = takes + waits + leaves;
        let place = match self.flash.order {
            Order::Fifo => chip.add_in_order(now, op.kind, takes),
            Order::ReadsFirst => {
                chip.add_behind(now, Behind { kind: op.kind, array: at_array, moving: moving + waits })
            }
        };
        let on_channel = if op.holds_channel { op.hold } else { moving };
        state.use_channel(op.channel, now, on_channel);
        state.operations.insert(Operation { op: *op, place: Some(place), began: now, is_alone }).to_bits()
    }

    fn ended(&self, ticket: u64) {
        let (now, state) = (self.sim.now(), &mut *self.state.borrow_mut());
        let Some(Operation { op, place, began, is_alone }) = state.operations.remove(Key::from_bits(ticket)) else {
            return;
        };
        let Some(place) = place else {
            state.read_last[op.chip as usize] = Some((op.page, now - began));
            return;
        };
        let off = state.chips[op.chip as usize].end(&place, now);
        if let Some(off) = off.filter(|_| self.resamples) {
            match op.kind {
                FlashKind::Hold if !op.holds_channel => state.times.hold_waits = averaged(state.times.hold_waits, off),
                FlashKind::Program => state.times.program_waits = averaged(state.times.program_waits, off),
                _ => {}
            }
        }
        if op.holds_channel {
            // No other transfer has happened meanwhile.
            state.channels[op.channel as usize] = now.ns();
        }
        if !self.resamples || !is_alone {
            return;
        }
        let measured = (now - began).saturating_sub(state.times.moving(op.bytes));
        match op.kind {
            FlashKind::Program if op.pages == 1 => {
                if let Some(time) = state.times.program.get_mut(op.page as usize) {
                    *time = renewed(*time, measured);
                }
            }
            FlashKind::Erase => state.times.erase = renewed(state.times.erase, measured),
            FlashKind::Read | FlashKind::Program | FlashKind::Hold => {}
        }
    }
}
