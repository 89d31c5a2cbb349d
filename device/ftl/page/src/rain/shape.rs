//! The ages of blocks and their current share on a drive with stripes after uniform random overwrites.
//!
//! Each overwrite also replaces the parity of its stripe, so a parity lives for a fraction of the time of a unit of
//! data. Half of the writes of a plane are data and half parity; both are replaced at a constant rate. Let `r` be the
//! rate of data and `w - 1` times that the rate of parity, in pages written to the plane, and `t` the share of a block
//! that is current when it is collected. The blocks that the host's data fills fall to `t` after `h` pages; those that
//! collectors fill hold data nearly alone, and fall to `t` after `c`. Collectors write `t / (1 - t)` pages for each
//! page of the host, so `h + c t / (1 - t)` pages are in full blocks: this equation determines `t`. Blocks of either
//! kind are spread evenly over their ages.
//!
//! The buffer is assumed to merge nothing. If it does, the overwrites that follow the image correct the error.

/// A block of the image.
#[derive(Copy, Clone, Debug)]
pub(super) struct Block {
    /// Pages written to the plane since it was filled, as a share of its life.
    pub(super) age: f64,
    /// Pages that are current: of data and of parity.
    pub(super) data: u32,
    pub(super) parity: u32,
}

/// The full blocks of a plane that holds `data` and `parity` units, the oldest first.
pub(super) fn blocks(data: u32, parity: u32, full: usize, pages: u32) -> Vec<Block> {
    let (per_block, room) = (f64::from(pages), full as f64 * f64::from(pages));
    let (slow, fast) = (0.5 / f64::from(data.max(1)), 0.5 / f64::from(parity.max(1)));
    let of_host = |age: f64| (0.5 * libm::exp(-slow * age), 0.5 * libm::exp(-fast * age));
    let life_of_host = |share: f64| {
        let left = |age: f64| of_host(age).0 + of_host(age).1;
        bisect(0.0, 64.0 / slow, |age| left(age) > share)
    };
    let life_of_moved = |share: f64| -libm::log(share) / slow;
    let taken = |share: f64| life_of_host(share) + share / (1.0 - share) * life_of_moved(share);
    // The less is left of a block when it is collected, the more blocks there are.
    let share = bisect(1e-6, 1.0 - 1e-6, |share| taken(share) > room);
    let (host, moved) = (life_of_host(share), life_of_moved(share));
    let of_host_blocks = ((host / per_block).round() as usize).min(full);
    let even = |count: usize, life: f64| (0..count).map(move |index| life * (index as f64 + 0.5) / count as f64);
    let mut shares: Vec<(f64, f64, f64)> =
        even(of_host_blocks, host).map(|age| (age, of_host(age).0, of_host(age).1)).collect();
    shares.extend(even(full - of_host_blocks, moved).map(|age| (age, libm::exp(-slow * age), 0.0)));
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut blocks: Vec<Block> = shares.iter().map(|(age, ..)| Block { age: *age, data: 0, parity: 0 }).collect();
    spread(&mut blocks, parity, &shares.iter().map(|(.., share)| *share).collect::<Vec<_>>(), pages, |block| {
        &mut block.parity
    });
    spread(&mut blocks, data, &shares.iter().map(|(_, share, _)| *share).collect::<Vec<_>>(), pages, |block| {
        &mut block.data
    });
    blocks
}

/// The point between two where `is_below` ceases to hold.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Gives `total` units to blocks by their shares, each as many as it has room for.
fn spread(blocks: &mut [Block], total: u32, shares: &[f64], pages: u32, of: impl Fn(&mut Block) -> &mut u32) {
    let sum: f64 = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut exact, mut given) = (0.0, 0);
    for (block, share) in blocks.iter_mut().zip(shares) {
        exact += share / sum * f64::from(total);
        let room = pages - block.data - block.parity;
        let units = (exact.round() as u32).saturating_sub(given).min(room);
        *of(block) += units;
        given += units;
    }
    // The rest goes to the youngest with room.
    let mut left = total - given;
    for block in blocks.iter_mut().rev() {
        let more = left.min(pages - block.data - block.parity);
        *of(block) += more;
        left -= more;
    }
    assert_eq!(left, 0, "{total} units fit their plane");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_all_units_and_parity_is_young() {
        let (data, parity, full, pages) = (7_000, 1_000, 42, 256);
        let blocks = blocks(data, parity, full, pages);
        let sum = |of: &dyn Fn(&Block) -> u32| blocks.iter().map(of).sum::<u32>();
        assert_eq!((sum(&|block| block.data), sum(&|block| block.parity)), (data, parity));
        assert!(blocks.iter().all(|block| block.data + block.parity <= pages));
        assert!(blocks.windows(2).all(|pair| pair[0].age >= pair[1].age));
        let young: u32 = blocks[full / 2..].iter().map(|block| block.parity).sum();
        assert!(young > parity * 8 / 10, "{young} of {parity} parities are in the younger half");
    }
}
