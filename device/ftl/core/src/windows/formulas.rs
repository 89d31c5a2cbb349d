//! The formulas of TeaFA's windows (Li 3.2.4, 3.2.5): T_gc, B_gc, the bounds of T_win, and N_d.
//!
//! Where the thesis contradicts itself: its table 3.1 gives a T_gc of 0.4 s, the formula 0.2108 s, which yields the published
//! B_gc. The formulas are taken.
//!
//! Left out: which window within the bounds is best.

/// Mean figures of a drive's collections. Times are in seconds, sizes in bytes.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Collections {
    /// The current share of a block, which has to be moved (beta).
    pub valid: f64,
    /// Sensing a page (t_r).
    pub read: f64,
    /// Programming a page (t_w).
    pub program: f64,
    /// Erasing a block (t_e).
    pub erase: f64,
    /// Channel time of a page (t_ch).
    pub transfer: f64,
    /// Transfers of a page that a move waits for: 0 where they overlap with the array's work; 2 x 3 in the variant of 3.2.5, where
    /// three other planes send and receive a page each.
    pub transfers: f64,
    /// Pages of a block (n_pg).
    pub pages: f64,
    /// Bytes of a block (c_blk).
    pub block: f64,
    /// Collections at a time: the channels (n_ch), or the planes of a die on each.
    pub at_a_time: f64,
}

/// The bounds of a window's length, in seconds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Bounds {
    /// The minimum, so that collections end in it.
    pub shortest: f64,
    /// The bound that keeps the space for new data from running out; `None` where collections keep up with the writes.
    pub longest: Option<f64>,
}

impl Collections {
    /// T_gc: the time to collect a block.
    pub fn time(&self) -> f64 {
        (self.read + self.program + self.transfers * self.transfer) * self.valid * self.pages + self.erase
    }

    /// B_gc: the space that is gained in a second.
    pub fn rate(&self) -> f64 {
        (1.0 - self.valid) * self.block * self.at_a_time / self.time()
    }

    /// The bounds of T_win for `width` drives (N_d). Each is written at `user_rate` (B_u) and has `space` (C_ovp) for
    /// new data, so that `collections` (b) of a plane end in a window.
    pub fn bounds(&self, width: f64, user_rate: f64, space: f64, collections: f64) -> Bounds {
        let net = width * user_rate - self.rate();
        Bounds { shortest: collections * self.time(), longest: (net > 0.0).then(|| space / net) }
    }

    /// N_d: how many drives may take turns without additional space for new data.
    pub fn most_drives(&self, user_rate: f64) -> f64 {
        (self.rate() / user_rate).floor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Li, table 3.1.
    fn thesis() -> Collections {
        Collections {
            valid: 0.25,
            read: 100e-6,
            program: 1_500e-6,
            erase: 6e-3,
            transfer: 60e-6,
            transfers: 0.0,
            pages: 512.0,
            block: 8.0 * 1_048_576.0,
            at_a_time: 16.0,
        }
    }

    #[test]
    fn published_figures() {
        let plain = thesis();
        assert!((plain.time() - 0.2108).abs() < 1e-9);
        assert_eq!((plain.rate() / 1_048_576.0).round(), 455.0);
        let bounds = plain.bounds(16.0, 1e9, 100e9, 1.0);
        assert_eq!((bounds.longest.unwrap() * 10.0).round(), 64.0);
        assert!((bounds.shortest - 0.2108).abs() < 1e-9);
        let planes = Collections { transfers: 6.0, at_a_time: 64.0, ..plain };
        assert!((planes.time() - 0.25688).abs() < 1e-9);
        assert_eq!((planes.rate() / 1_048_576.0).round(), 1_495.0);
    }

    #[test]
    fn what_is_written_slowly_sets_no_bound() {
        assert_eq!(thesis().bounds(4.0, 100e6, 100e9, 2.0).longest, None);
        assert_eq!(thesis().most_drives(121e6), 3.0);
    }
}
