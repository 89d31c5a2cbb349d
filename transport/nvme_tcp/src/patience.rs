//! How long a host may be silent before its connection ends (Base 3.6.2, 3.9).
//!
//! The Keep Alive Timer is command based (Base 3.9.3.1), as Identify Controller does not offer Traffic Based Keep Alive: other
//! commands do not restart it.
//!
//! Left out: a host that was notified of a violation, which has to leave at once.

use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::register::{CC_EN, CSTS_RDY, CSTS_SHST};

/// The longest time for which a host may withhold requested data and send nothing else.
const DATA_PATIENCE: Span = Span::from_s(30);
/// How long an association is preserved whose controller is not enabled.
const NOT_ENABLED: Span = Span::from_s(120);

/// Whether the Keep Alive Timer of a controller is active.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Enabling {
    /// It is not: the controller is not enabled, or cannot be.
    Disabled,
    /// It is.
    Enabled,
    /// It is not: a shutdown has begun. The host decides when it leaves.
    ShutDown,
}

impl Enabling {
    /// From the values of CC and CSTS when CC was written. Nothing else changes them.
    pub(crate) fn of(cc: u32, csts: u32) -> Enabling {
        match () {
            () if cc & CC_EN == 0 || csts & CSTS_RDY == 0 => Enabling::Disabled,
            () if csts & CSTS_SHST != 0 => Enabling::ShutDown,
            () => Enabling::Enabled,
        }
    }

    /// When the connection ends, and the reason that is then logged; `None` if its host may be silent forever.
    /// `keep_alive` is the Keep Alive Timeout; `owes_data` means that the controller has requested data from the
    /// host.
    pub(crate) fn deadline(
        self,
        signs: Signs,
        keep_alive: Option<Span>,
        owes_data: bool,
    ) -> Option<(Time, &'static str)> {
        if self == Enabling::Disabled {
            return Some((signs.heard + NOT_ENABLED, "did not enable its controller"));
        }
        let alive = keep_alive.filter(|_| self == Enabling::Enabled);
        let alive = alive.map(|time| (signs.alive + time, "keep alive timeout expired"));
        let owes = owes_data.then(|| (signs.heard + DATA_PATIENCE, "left data unsent that it was asked for"));
        alive.into_iter().chain(owes).min_by_key(|(at, _)| *at)
    }
}

/// When a host last gave a sign of life.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Signs {
    /// The time of its last byte.
    pub(crate) heard: Time,
    /// When the Keep Alive Timer began: when the controller was enabled, or Keep Alive or Set Features of the timeout has
    /// completed.
    pub(crate) alive: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: u32 = CC_EN | 6 << 16 | 4 << 20;

    #[test]
    fn the_state_follows_from_the_properties() {
        let rows = [
            (0, 0, Enabling::Disabled),
            (READY, CSTS_RDY, Enabling::Enabled),
            (READY, 0b10, Enabling::Disabled),
            (READY | 1 << 14, CSTS_RDY | 0b01 << 2, Enabling::ShutDown),
            (READY, CSTS_RDY | 0b10 << 2, Enabling::ShutDown),
            (1 << 14, 0b10 << 2, Enabling::Disabled),
        ];
        for (cc, csts, right) in rows {
            assert_eq!(Enabling::of(cc, csts), right, "CC {cc:x}h, CSTS {csts:x}h");
        }
    }

    /// The timer counts for an enabled controller alone; one that is not enabled has two minutes, whatever its timeout is.
    #[test]
    fn the_timer_is_active_while_the_controller_is_enabled() {
        let (short, long) = (Some(Span::from_s(1)), Some(Span::from_s(600)));
        let seconds = |count| Time::ZERO + Span::from_s(count);
        let signs = Signs { heard: seconds(1_000), alive: seconds(900) };
        let rows = [
            (Enabling::Disabled, None, false, Some(1_120)),
            (Enabling::Disabled, short, false, Some(1_120)),
            (Enabling::Disabled, long, true, Some(1_120)),
            (Enabling::Enabled, None, false, None),
            (Enabling::Enabled, None, true, Some(1_030)),
            (Enabling::Enabled, short, false, Some(901)),
            (Enabling::Enabled, short, true, Some(901)),
            (Enabling::Enabled, long, false, Some(1_500)),
            (Enabling::Enabled, long, true, Some(1_030)),
            (Enabling::ShutDown, short, false, None),
            (Enabling::ShutDown, short, true, Some(1_030)),
        ];
        for (enabling, keep_alive, owes_data, right) in rows {
            let deadline = enabling.deadline(signs, keep_alive, owes_data).map(|(at, _)| at);
            assert_eq!(deadline, right.map(seconds), "{enabling:?}, {keep_alive:?}, owes data: {owes_data}");
        }
    }
}
