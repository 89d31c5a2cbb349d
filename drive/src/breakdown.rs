//! A command's latency by stage. The stages sum to the latency, to the nanosecond.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

use nandscape_sim::{Cause, Span, Wait};

/// A stage of a command's life inside the drive.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// In the submission queue, for the controller, for room in the write buffer.
    Queue,
    /// Firmware work on the command.
    Firmware,
    /// For the plane or die.
    DieWait,
    /// The flash array: sensing, programming, erasing.
    Array,
    /// For the channel, or for the register that the channel has yet to empty.
    ChannelWait,
    /// Data on the channel.
    Transfer,
    /// Error correction.
    Ecc,
    /// The host link, waiting for it included.
    Link,
}

impl Stage {
    /// All stages, in the order of a read.
    pub const ALL: [Stage; 8] = [
        Stage::Queue,
        Stage::Firmware,
        Stage::DieWait,
        Stage::Array,
        Stage::ChannelWait,
        Stage::Transfer,
        Stage::Ecc,
        Stage::Link,
    ];
    /// The stages that are waits, which are divided by cause.
    pub const WAITS: [Stage; 3] = [Stage::Queue, Stage::DieWait, Stage::ChannelWait];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Queue => "queue",
            Stage::Firmware => "firmware",
            Stage::DieWait => "die_wait",
            Stage::Array => "array",
            Stage::ChannelWait => "channel_wait",
            Stage::Transfer => "transfer",
            Stage::Ecc => "ecc",
            Stage::Link => "link",
        }
    }
}

/// On whose behalf something inside a drive is busy.
pub mod cause {
    use nandscape_sim::Cause;

    /// A read, compare or verify of the host.
    pub const HOST_READ: Cause = Cause::new(0);
    /// A host write, with all work that brings its data to flash.
    pub const HOST_WRITE: Cause = Cause::new(1);
    /// Garbage collection.
    pub const GC: Cause = Cause::new(2);
    /// Wear levelling.
    pub const WEAR: Cause = Cause::new(3);
    /// Mapping tables, logs, checkpoints.
    pub const METADATA: Cause = Cause::new(4);

    /// Reads of flash that complete writes of a part of a mapping unit.
    pub const READ_MODIFY_WRITE: Cause = Cause::new(5);

    /// A power cut: until power returns, the drive has restarted and its tables are loaded.
    pub const POWER: Cause = Cause::new(6);
    /// Read retries of an uncorrectable page.
    pub const RETRY: Cause = Cause::new(7);
    /// Time that a rule of the fault plan adds: slow operations, and dies that hang until they are reset.
    pub const FAULT: Cause = Cause::new(8);

    /// All, with their names in tables and JSON.
    pub const ALL: [(Cause, &str); 9] = [
        (HOST_READ, "host_read"),
        (HOST_WRITE, "host_write"),
        (GC, "gc"),
        (WEAR, "wear"),
        (METADATA, "metadata"),
        (READ_MODIFY_WRITE, "read_modify_write"),
        (POWER, "power"),
        (RETRY, "retry"),
        (FAULT, "fault"),
    ];

    /// Whether the cause is trouble. Tables and JSON leave out trouble that delayed no command.
    pub const fn is_of_trouble(cause: Cause) -> bool {
        cause.index() >= POWER.index()
    }
}

/// The name of a layer in breakdowns. Each distinct name is leaked once: there are few layers, however many runs
/// there are.
pub fn layer_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // After a panic the set of names is still valid.
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// The number of a power cut in the bits of [`Breakdown::met`].
pub const POWER_CUT: u32 = 63;

/// Time by stage; for the stages that are waits, by cause.
///
/// An empty one is a null pointer, and a full one moves as a pointer: it travels with its command through queues.
#[derive(Clone, Default, Debug)]
pub struct Breakdown(Option<Box<Times>>);

#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Times {
    queue: Wait,
    die_wait: Wait,
    channel_wait: Wait,
    firmware: Span,
    array: Span,
    transfer: Span,
    ecc: Span,
    link: Span,
    above: Option<Box<Above>>,
    /// See [`Breakdown::met`].
    met: u64,
    /// The next of the spare boxes.
    next: Option<Box<Times>>,
}

/// Time in the layers of a host above the drive by cause, the innermost first. A drive's own commands have none, which costs
/// them four instructions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Above(Vec<(&'static str, &'static str, Span)>);

impl Above {
    fn add(&mut self, layer: &'static str, cause: &'static str, span: Span) {
        match self.0.iter_mut().find(|(name, of, _)| (*name, *of) == (layer, cause)) {
            Some((.., sum)) => *sum += span,
            None => self.0.push((layer, cause, span)),
        }
    }
}

/// The cause of a layer's time that it gives none for.
pub const OWN: &str = "own";

/// Boxes for reuse: every command needs one, and the allocation would be most of its cost.
struct Spare {
    first: Cell<Option<Box<Times>>>,
    count: Cell<u32>,
}

thread_local! {
    static SPARE: Spare = const { Spare { first: Cell::new(None), count: Cell::new(0) } };
}

/// The most boxes that are kept. Dropping the list recurses once for each.
const MAX_SPARE: u32 = 1_024;

impl Spare {
    #[inline]
    fn take(&self) -> Option<Box<Times>> {
        let mut times = self.first.take()?;
        self.first.set(times.next.take());
        self.count.set(self.count.get() - 1);
        Some(times)
    }

    #[inline]
    fn keep(&self, mut times: Box<Times>) {
        if self.count.get() < MAX_SPARE {
            times.clear();
            times.next = self.first.take();
            self.first.set(Some(times));
            self.count.set(self.count.get() + 1);
        }
    }
}

impl Times {
    #[inline(never)]
    fn boxed() -> Box<Times> {
        // A thread that ends keeps no boxes.
        SPARE.try_with(Spare::take).ok().flatten().unwrap_or_default()
    }

    #[inline]
    fn clear(&mut self) {
        [&mut self.queue, &mut self.die_wait, &mut self.channel_wait].into_iter().for_each(Wait::clear);
        (self.firmware, self.array, self.transfer) = (Span::ZERO, Span::ZERO, Span::ZERO);
        (self.ecc, self.link) = (Span::ZERO, Span::ZERO);
        self.above = None;
        self.met = 0;
    }
}

impl Drop for Breakdown {
    #[inline]
    fn drop(&mut self) {
        if let Some(times) = self.0.take() {
            // A thread that ends keeps no boxes.
            let _ = SPARE.try_with(|spare| spare.keep(times));
        }
    }
}

impl Breakdown {
    /// No time yet.
    pub fn new() -> Breakdown {
        Breakdown::default()
    }

    #[inline(always)]
    fn times(&mut self) -> &mut Times {
        match &mut self.0 {
            Some(times) => times,
            none => none.insert(Times::boxed()),
        }
    }

    /// Adds time in a stage that is not a wait.
    ///
    /// # Panics
    /// When the stage is a wait, which needs a cause.
    #[inline]
    pub fn spend(&mut self, stage: Stage, span: Span) {
        let times = self.times();
        *match stage {
            Stage::Firmware => &mut times.firmware,
            Stage::Array => &mut times.array,
            Stage::Transfer => &mut times.transfer,
            Stage::Ecc => &mut times.ecc,
            Stage::Link => &mut times.link,
            Stage::Queue | Stage::DieWait | Stage::ChannelWait => panic!("{stage:?} is a wait and needs a cause"),
        } += span;
    }

    /// The waits of a stage, to be added to.
    ///
    /// # Panics
    /// When the stage is not a wait.
    #[inline]
    pub fn waits(&mut self, stage: Stage) -> &mut Wait {
        let times = self.times();
        match stage {
            Stage::Queue => &mut times.queue,
            Stage::DieWait => &mut times.die_wait,
            Stage::ChannelWait => &mut times.channel_wait,
            _ => panic!("{stage:?} is not a wait"),
        }
    }

    /// Time spent in a stage.
    pub fn stage(&self, stage: Stage) -> Span {
        let Some(times) = &self.0 else { return Span::ZERO };
        match stage {
            Stage::Queue => times.queue.total(),
            Stage::Firmware => times.firmware,
            Stage::DieWait => times.die_wait.total(),
            Stage::Array => times.array,
            Stage::ChannelWait => times.channel_wait.total(),
            Stage::Transfer => times.transfer,
            Stage::Ecc => times.ecc,
            Stage::Link => times.link,
        }
    }

    /// Time waited in a stage behind a cause; zero for stages that are not waits.
    pub fn waited(&self, stage: Stage, cause: Cause) -> Span {
        match (&self.0, stage) {
            (Some(times), Stage::Queue) => times.queue.by(cause),
            (Some(times), Stage::DieWait) => times.die_wait.by(cause),
            (Some(times), Stage::ChannelWait) => times.channel_wait.by(cause),
            _ => Span::ZERO,
        }
    }

    /// Whether any wait was behind `cause`.
    #[inline]
    pub fn waited_for(&self, cause: Cause) -> bool {
        let Some(times) = &self.0 else { return false };
        [&times.queue, &times.die_wait, &times.channel_wait].into_iter().any(|wait| !wait.by(cause).is_zero())
    }

    /// Adds the times of a step that is due to `cause`, such as a retry. Its waits are added unchanged; its own time becomes
    /// a wait behind the cause: the array and correction count as waits for the die, the transfer as a wait for the channel.
    pub fn add_behind(&mut self, cause: Cause, step: &Breakdown) {
        let Some(theirs) = &step.0 else { return };
        let mine = self.times();
        mine.die_wait += &theirs.die_wait;
        mine.channel_wait += &theirs.channel_wait;
        mine.die_wait.add(cause, theirs.array + theirs.ecc);
        mine.channel_wait.add(cause, theirs.transfer);
    }

    /// The command has met trouble number `number`: a rule of the fault plan, by its number, or [`POWER_CUT`]. Rules beyond
    /// the first 63 count as the last of these.
    #[cold]
    pub fn meet(&mut self, number: u32) {
        self.times().met |= 1 << number.min(if number == POWER_CUT { POWER_CUT } else { POWER_CUT - 1 });
    }

    /// The same, for each bit of a set.
    #[cold]
    pub fn meet_all(&mut self, numbers: u64) {
        self.times().met |= numbers;
    }

    /// The trouble that the command has met: a bit for each number.
    #[inline]
    pub fn met(&self) -> u64 {
        self.0.as_deref().map_or(0, |times| times.met)
    }

    /// Charges the part of `latency` that is not accounted for yet to a layer of the host, as the layer's own time.
    /// Afterwards the total is `latency`. A layer that took no time is not listed.
    ///
    /// # Panics
    /// When more than `latency` is accounted for.
    pub fn charge_rest(&mut self, layer: &'static str, latency: Span) {
        let below = self.total();
        assert!(below <= latency, "{layer}: {below} below it is more than its latency, {latency}");
        if below < latency {
            self.times().above.get_or_insert_default().add(layer, OWN, latency - below);
        }
    }

    /// Charges a time to a layer of the host and one of its causes. [`Breakdown::charge_rest`] charges the remainder.
    pub fn charge(&mut self, layer: &'static str, cause: &'static str, span: Span) {
        if !span.is_zero() {
            self.times().above.get_or_insert_default().add(layer, cause, span);
        }
    }

    /// Time in the layers of a host above the drive by layer and cause, the innermost first.
    pub fn causes(&self) -> impl Iterator<Item = (&'static str, &'static str, Span)> {
        let above = self.0.iter().filter_map(|times| times.above.as_deref());
        above.flat_map(|above| above.0.iter().copied())
    }

    /// Time in the layers of a host above the drive, the innermost first.
    pub fn layers(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let mut sums: Vec<(&'static str, Span)> = Vec::new();
        for (layer, _, span) in self.causes() {
            match sums.iter_mut().find(|(name, _)| *name == layer) {
                Some((_, sum)) => *sum += span,
                None => sums.push((layer, span)),
            }
        }
        sums.into_iter()
    }

    /// Time in the drive: the sum of all stages.
    #[inline]
    pub fn in_drive(&self) -> Span {
        let Some(times) = &self.0 else { return Span::ZERO };
        let waits = times.queue.total() + times.die_wait.total() + times.channel_wait.total();
        waits + times.firmware + times.array + times.transfer + times.ecc + times.link
    }

    /// All time, in the drive and in the layers above it.
    #[inline]
    pub fn total(&self) -> Span {
        match self.0.as_deref() {
            Some(Times { above: Some(above), .. }) => {
                above.0.iter().fold(self.in_drive(), |sum, (.., span)| sum + *span)
            }
            _ => self.in_drive(),
        }
    }
}

impl PartialEq for Breakdown {
    fn eq(&self, other: &Breakdown) -> bool {
        let zero = Times::default();
        self.0.as_deref().unwrap_or(&zero) == other.0.as_deref().unwrap_or(&zero)
    }
}

impl Eq for Breakdown {}

impl AddAssign<&Breakdown> for Breakdown {
    #[inline]
    fn add_assign(&mut self, other: &Breakdown) {
        let Some(theirs) = &other.0 else { return };
        let mine = self.times();
        mine.queue += &theirs.queue;
        mine.die_wait += &theirs.die_wait;
        mine.channel_wait += &theirs.channel_wait;
        mine.firmware += theirs.firmware;
        mine.array += theirs.array;
        mine.transfer += theirs.transfer;
        mine.ecc += theirs.ecc;
        mine.link += theirs.link;
        mine.met |= theirs.met;
        if let Some(above) = &theirs.above {
            let sums = mine.above.get_or_insert_default();
            above.0.iter().for_each(|(layer, cause, span)| sums.add(layer, cause, *span));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deliberate mistake of a layer: it charges a time that its command did not take.
    #[test]
    #[should_panic(expected = "stripe: 40us below it is more than its latency, 39us")]
    fn a_layer_that_charges_too_much_is_noticed() {
        let mut one = Breakdown::new();
        one.spend(Stage::Array, Span::from_us(40));
        one.charge_rest("stripe", Span::from_us(39));
    }

    #[test]
    fn layers_take_what_is_left_and_all_sums() {
        let mut one = Breakdown::new();
        one.spend(Stage::Array, Span::from_us(40));
        one.charge("stripe", "lock", Span::from_us(1));
        one.charge_rest("stripe", Span::from_us(43));
        one.charge_rest("cache", Span::from_us(44));
        let mut both = one.clone();
        both += &one;
        let layers: Vec<_> = both.layers().collect();
        assert_eq!(layers, [("stripe", Span::from_us(6)), ("cache", Span::from_us(2))]);
        let stripe: Vec<_> =
            both.causes().filter(|(layer, ..)| *layer == "stripe").map(|(_, of, time)| (of, time)).collect();
        assert_eq!(stripe, [("lock", Span::from_us(2)), (OWN, Span::from_us(4))]);
        assert_eq!((both.in_drive(), both.total()), (Span::from_us(80), Span::from_us(88)));
        drop((one, both));
        // The memory of a breakdown is used again, its layers are not.
        let mut next = Breakdown::new();
        next.spend(Stage::Link, Span::from_us(1));
        assert_eq!(next.layers().count(), 0);
    }

    #[test]
    fn a_name_of_a_layer_is_kept_once() {
        let (one, again) = (layer_name("cache-1"), layer_name(&String::from("cache-1")));
        assert!(std::ptr::eq(one, again) && one == "cache-1");
    }

    #[test]
    fn a_retry_is_a_wait_as_long_as_it_takes() {
        let (mut one, mut again) = (Breakdown::new(), Breakdown::new());
        one.spend(Stage::Array, Span::from_us(40));
        again.spend(Stage::Array, Span::from_us(45));
        again.spend(Stage::Ecc, Span::from_us(3));
        again.spend(Stage::Transfer, Span::from_us(20));
        again.waits(Stage::DieWait).add(cause::GC, Span::from_us(7));
        one.add_behind(cause::RETRY, &again);
        one.meet(2);
        one.meet(200);
        assert_eq!((one.total(), one.stage(Stage::Array)), (Span::from_us(115), Span::from_us(40)));
        assert_eq!(one.waited(Stage::DieWait, cause::RETRY), Span::from_us(48));
        assert_eq!(one.waited(Stage::DieWait, cause::GC), Span::from_us(7));
        assert_eq!(one.waited(Stage::ChannelWait, cause::RETRY), Span::from_us(20));
        let mut sum = Breakdown::new();
        sum.meet(POWER_CUT);
        sum += &one;
        assert_eq!(sum.met(), 1 << 2 | 1 << 62 | 1 << 63);
        drop((one, again, sum));
        let mut next = Breakdown::new();
        next.spend(Stage::Link, Span::from_us(1));
        assert_eq!(next.met(), 0, "memory that is used again has met nothing");
    }

    #[test]
    fn stages_sum_and_waits_keep_their_causes() {
        let mut one = Breakdown::new();
        one.spend(Stage::Array, Span::from_us(40));
        one.waits(Stage::DieWait).add(cause::GC, Span::from_us(7));
        let mut both = one.clone();
        both += &one;
        both += &Breakdown::new();
        assert_eq!(both.total(), Span::from_us(94));
        assert_eq!(both.waited(Stage::DieWait, cause::GC), Span::from_us(14));
        assert!(both.waited_for(cause::GC) && !both.waited_for(cause::WEAR));
    }
}
