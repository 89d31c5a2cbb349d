//! Kinds of time, and sums of time by kind; who keeps threads from their processors, and sums of that.

use nandscape_sim::Span;

/// How many kinds there are.
pub(crate) const KINDS: usize = 8;

/// What a processor does.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A thread's work outside the kernel.
    User,
    /// A thread's work inside the kernel.
    Kernel,
    /// Entering and handling hard interrupts: of devices, of other processors, of timers.
    Interrupt,
    /// Entering and handling softirqs.
    Softirq,
    /// Switching to a thread, with the end of a power state.
    Switch,
    /// Work that is lost to cold caches.
    Cold,
    /// A thread's wait that keeps the processor busy.
    Spin,
    /// Nothing.
    Idle,
}

impl Kind {
    /// All, with the names that reports and timelines use.
    pub const ALL: [(&str, Kind); KINDS] = [
        ("user", Kind::User),
        ("kernel", Kind::Kernel),
        ("interrupt", Kind::Interrupt),
        ("softirq", Kind::Softirq),
        ("switch", Kind::Switch),
        ("cold", Kind::Cold),
        ("spin", Kind::Spin),
        ("idle", Kind::Idle),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Kind::ALL[self as usize].0
    }
}

/// Sums of time by kind.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Times([Span; KINDS]);

impl Times {
    /// The time of a kind.
    pub const fn by(&self, kind: Kind) -> Span {
        self.0[kind as usize]
    }

    /// All kinds together. For a processor that is the time since the machine began.
    pub fn total(&self) -> Span {
        self.0.iter().copied().sum()
    }

    /// All kinds but [`Kind::Idle`].
    pub fn busy(&self) -> Span {
        self.total() - self.by(Kind::Idle)
    }

    /// Adds time of a kind.
    #[inline]
    pub(crate) fn add(&mut self, kind: Kind, span: Span) {
        self.0[kind as usize] += span;
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &Times) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The time since `earlier` sums.
    pub fn since(&self, earlier: &Times) -> Times {
        Times(std::array::from_fn(|kind| self.0[kind].saturating_sub(earlier.0[kind])))
    }
}

/// How many holders there are.
const HOLDERS: usize = 6;

/// Who has the processor for which a ready thread waits.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A hard interrupt: of a device, of another processor, of a timer.
    Interrupt,
    /// A softirq.
    Softirq,
    /// Another thread of an application, at work.
    Application,
    /// The same, while it polls or spins.
    Polling,
    /// A thread of [`Role::Load`].
    Load,
    /// A thread of [`Role::Kernel`].
    Kernel,
}

impl Holder {
    /// All, with the names that reports use.
    pub const ALL: [(&str, Holder); HOLDERS] = [
        ("interrupt", Holder::Interrupt),
        ("softirq", Holder::Softirq),
        ("application", Holder::Application),
        ("polling", Holder::Polling),
        ("load", Holder::Load),
        ("kernel", Holder::Kernel),
    ];
}

/// What a thread is for, which names it as a [`Holder`].
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Role {
    /// It runs an application that issues I/O.
    #[default]
    Application,
    /// It computes next to the applications.
    Load,
    /// It serves applications in the kernel: polls for all, issues requests, looks for entries of rings.
    Kernel,
}

/// How long a ready thread has waited for its processor, by who had it.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Waits([Span; HOLDERS]);

impl Waits {
    /// The wait for a holder.
    pub const fn by(&self, holder: Holder) -> Span {
        self.0[holder as usize]
    }

    /// All waits.
    pub fn total(&self) -> Span {
        self.0.iter().copied().sum()
    }

    /// Adds the time of a holder.
    #[inline]
    pub(crate) fn add(&mut self, holder: Holder, span: Span) {
        self.0[holder as usize] += span;
    }

    /// The waits since `earlier` ones.
    pub fn since(&self, earlier: &Waits) -> Waits {
        Waits(std::array::from_fn(|holder| self.0[holder].saturating_sub(earlier.0[holder])))
    }

    /// Adds other waits; only those for interrupts and softirqs, if `has_processor`.
    pub(crate) fn merge(&mut self, other: &Waits, has_processor: bool) {
        let most = if has_processor { Holder::Softirq as usize } else { HOLDERS - 1 };
        self.0.iter_mut().zip(other.0).take(most + 1).for_each(|(mine, theirs)| *mine += theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_in_the_order_of_their_names_and_a_processor_is_lost_to_interrupts_only() {
        assert!(Holder::ALL.iter().enumerate().all(|(index, (_, holder))| *holder as usize == index));
        let (mut held, mut waits) = (Waits::default(), Waits::default());
        Holder::ALL.iter().for_each(|(_, holder)| held.add(*holder, Span::from_ns(1 << *holder as u32)));
        waits.merge(&held, true);
        assert_eq!((waits.total().ns(), held.total().ns()), (1 + 2, 63));
        assert_eq!(held.since(&waits).by(Holder::Load).ns(), 16);
    }

    #[test]
    fn kinds_are_in_the_order_of_their_names_and_sums_are_exact() {
        assert!(Kind::ALL.iter().enumerate().all(|(index, (_, kind))| *kind as usize == index));
        let mut times = Times::default();
        times.add(Kind::User, Span::from_ns(5));
        let before = times;
        times.add(Kind::Idle, Span::from_ns(7));
        times.merge(&before);
        assert_eq!((times.total().ns(), times.busy().ns(), times.since(&before).by(Kind::User).ns()), (17, 10, 5));
        assert_eq!(Kind::Softirq.name(), "softirq");
    }
}
