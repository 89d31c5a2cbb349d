//! How much the host may write while lines are collected: a share of the programs under way, by the lines that are free.

/// The rule for the share by the number of free lines.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HostLimit {
    /// As the rate limiter of pblk (`pblk-rl.c`): all of the rate down to the spare lines, then in proportion to the
    /// free lines, over the next power of two above the spare lines. Lines are collected below the spare ones.
    Windows,
    /// As the limits of SPDK's FTL: all, 40%, 5% and nothing. There the levels are at 40, 20, 10 and 5 free bands. Here
    /// they are at the spare lines where these are fewer than 40, and at a half, a quarter and an eighth of that. Lines
    /// are collected from the first level on.
    Levels,
}

/// All, in thousandths.
pub(super) const ALL: u32 = 1_000;
/// The highest level of [`HostLimit::Levels`].
const FIRST_LEVEL: u32 = 40;

impl HostLimit {
    /// Whether lines are collected while `free` lines are free, on a drive with `spare` spare lines.
    pub(super) fn collects(self, free: u32, spare: u32) -> bool {
        match self {
            HostLimit::Windows => free < spare,
            HostLimit::Levels => free <= spare.min(FIRST_LEVEL),
        }
    }

    /// The share of the host during a collection, in thousandths.
    pub(super) fn share(self, free: u32, spare: u32) -> u32 {
        match self {
            HostLimit::Windows if free >= spare => ALL,
            HostLimit::Windows => ALL * free / spare.next_power_of_two().max(1),
            HostLimit::Levels => match spare.min(FIRST_LEVEL) {
                first if free > first / 2 => ALL,
                first if free > first / 4 => 400,
                first if free > first / 8 => 50,
                _ => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_lines_are_free_the_less_the_host_may_write() {
        for limit in [HostLimit::Windows, HostLimit::Levels] {
            for spare in 1..100 {
                let shares: Vec<u32> = (0..=spare + 1).map(|free| limit.share(free, spare)).collect();
                assert!(shares.is_sorted() && shares[0] == 0, "{limit:?} {spare}: {shares:?}");
                assert_eq!(*shares.last().expect("there are some"), ALL, "{limit:?} {spare}");
            }
        }
        assert_eq!(HostLimit::Windows.share(8, 30), 250);
        assert_eq!([50, 20, 15, 8, 5].map(|free| HostLimit::Levels.share(free, 90)), [ALL, 400, 400, 50, 0]);
        assert!(HostLimit::Windows.collects(29, 30) && !HostLimit::Windows.collects(30, 30));
    }
}
