//! Write amplification of greedy cleaning under uniform random overwrites of single units, in steady state.
//!
//! Balance of flows, for many blocks of `b` units. Each host write makes one current unit obsolete, any of the `L`
//! with the same chance, so that a block with `i` current units loses one at rate `i / L`. Blocks become full at rate
//! `F` a host write, and as many pass each count `i` on their way down to `v`, where greedy takes them. Then `n_i`, the
//! number of blocks with `i` current units, obeys `n_i i / L = F`. Hence
//!
//! - current units: `sum i n_i = F L (b - v) = L`, so `F = 1 / (b - v)`,
//! - blocks: `sum n_i = F L (1/b + 1/(b-1) + ... + 1/(v+1)) = N`.
//!
//! Each block filled takes `b` units, so write amplification is `F b = b / (b - v)`, or with `u = v / b`, `1 / (1 - u)`.
//! For large `b` the sum becomes a logarithm and the second line `ln(1/u) = (1 - u) / fill` with `fill = L / (N b)`,
//! that is `u = exp(-(1 - u) / fill)`. This is what Desnoyers (SYSTOR 2012) derives for cleaning in the order of
//! writing, to which greedy tends for large blocks, and what van Houdt (SIGMETRICS 2013) has as the mean field of greedy.

/// For large blocks: the share `u` of a victim that is current, as the root below 1 of `u = exp(-(1 - u) / fill)`.
pub(crate) fn large_block_waf(fill: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Right of the root and left of 1, where the other root is, the exponential is the smaller of the two.
    for _ in 0..200 {
        let u = 0.5 * (low + high);
        if libm::exp(-(1.0 - u) / fill) > u { low = u } else { high = u }
    }
    1.0 / (1.0 - low)
}

/// Erased blocks of a plane, parts of blocks being parts, on average: they hold neither data nor garbage. This follows
/// from the collector's rules, as long as it takes no time.
///
/// It ends when one more block is free than at its start. The host's open block is half written on average. The
/// collector's block is written to between `v` and `b`, each place as likely, where `v` is what a victim holds. The run
/// of victims ends with one whose units did not overflow into a new block, so the block holds at least these.
pub(crate) fn erased_blocks(fill: f64, gc_free_blocks: u32) -> f64 {
    let current = 1.0 - 1.0 / large_block_waf(fill);
    f64::from(gc_free_blocks + 1) + 0.5 + 0.5 * (1.0 - current)
}

/// For blocks of `units`, of which `padding` hold nothing from the start, on average: the form above with blocks that
/// are full at `b - padding`. The sum of inverses is `ln((b + 1/2) / (v + 1/2))` except for terms of the order of
/// `1 / v^2`.
pub(crate) fn greedy_waf(fill: f64, units: u32, padding: f64) -> f64 {
    let b = f64::from(units);
    let full = b - padding;
    let (mut low, mut high) = (0.0, full);
    for _ in 0..200 {
        let v = 0.5 * (low + high);
        if libm::log((full + 0.5) / (v + 0.5)) * fill * b > full - v { low = v } else { high = v }
    }
    b / (full - low)
}

#[test]
fn the_closed_form_gives_the_published_figures() {
    for (fill, published) in super::write_amplification::PUBLISHED {
        let form = large_block_waf(fill);
        assert!((form / published - 1.0).abs() < 0.01, "fill {fill}: {form:.4}, published {published}");
    }
}

#[test]
fn both_forms_agree_for_large_blocks_and_small_blocks_amplify_less() {
    for fill in [0.5, 0.7, 0.8, 0.88] {
        let (form, large, small) = (large_block_waf(fill), greedy_waf(fill, 1 << 16, 0.0), greedy_waf(fill, 16, 0.0));
        assert!((large / form - 1.0).abs() < 1e-3, "fill {fill}: {large} for large blocks, {form}");
        assert!(small < large, "fill {fill}: {small} for small blocks, {large} for large ones");
    }
}
