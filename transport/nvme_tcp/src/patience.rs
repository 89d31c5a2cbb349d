//! How long a host may be silent before its connection ends (Base 3.6.2, 3.9.2).
//!
//! Left out: a host that was told of a violation, which has to leave at once.

use nandscape_sim::Span;
use nandscape_wire_nvme::register::{CC_EN, CSTS_RDY, CSTS_SHST};

/// The longest time that a host may leave data unsent that it was asked for, while it sends nothing else either.
const DATA_PATIENCE: Span = Span::from_s(30);
/// How long an association is preserved whose controller is not enabled.
const NOT_ENABLED: Span = Span::from_s(120);
/// Longer than any host is silent: about 136 years.
const EVER: Span = Span::from_s(u32::MAX as u64);

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
    /// By the values of CC and CSTS when CC was written. They change by nothing else.
    pub(crate) fn of(cc: u32, csts: u32) -> Enabling {
        match () {
            () if cc & CC_EN == 0 || csts & CSTS_RDY == 0 => Enabling::Disabled,
            () if csts & CSTS_SHST != 0 => Enabling::ShutDown,
            () => Enabling::Enabled,
        }
    }

    /// The longest silence of a host, and the reason that is logged at its end. `keep_alive` is the Keep Alive Timeout;
    /// `owes_data` says that the host was asked for data.
    pub(crate) fn patience(self, keep_alive: Option<Span>, owes_data: bool) -> (Span, &'static str) {
        match (self, keep_alive) {
            (Enabling::Disabled, _) => (NOT_ENABLED, "did not enable its controller"),
            (Enabling::Enabled, Some(time)) if !owes_data || time < DATA_PATIENCE => {
                (time, "keep alive timeout expired")
            }
            _ if owes_data => (DATA_PATIENCE, "left data unsent that it was asked for"),
            _ => (EVER, "was silent for a century"),
        }
    }
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
        let rows = [
            (Enabling::Disabled, None, false, NOT_ENABLED),
            (Enabling::Disabled, short, false, NOT_ENABLED),
            (Enabling::Disabled, long, true, NOT_ENABLED),
            (Enabling::Enabled, None, false, EVER),
            (Enabling::Enabled, short, false, Span::from_s(1)),
            (Enabling::Enabled, short, true, Span::from_s(1)),
            (Enabling::Enabled, long, true, DATA_PATIENCE),
            (Enabling::ShutDown, short, false, EVER),
            (Enabling::ShutDown, short, true, DATA_PATIENCE),
        ];
        for (enabling, keep_alive, owes_data, right) in rows {
            let (time, reason) = enabling.patience(keep_alive, owes_data);
            assert_eq!(time, right, "{enabling:?}, {keep_alive:?}, owes data: {owes_data}: {reason}");
        }
    }
}
