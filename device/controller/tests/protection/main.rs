//! Logical blocks with metadata and protection information: every command against a model that keeps blocks in a map without
//! flash; unwritten blocks; damage and power cuts; and each wrong field.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed of what is random; failures print their seed.
#![allow(clippy::print_stdout, reason = "a failing test names its seed")]

mod against_model;
mod allocations;
#[path = "../suite/common/mod.rs"]
mod common;
mod damage;
mod host;
mod memory;
mod model;
mod wrong;

use model::Shape;
use nandscape_sim::Rng;

/// A format with metadata, with or without protection information.
fn draw_shape(rng: &mut Rng) -> Shape {
    let index = 2 + rng.below(3) as u8;
    let (data, metadata) = [(512, 8), (4_096, 8), (4_096, 64)][usize::from(index - 2)];
    let (is_extended, is_first) = (rng.chance(0.5), rng.chance(0.5));
    Shape { index, data, metadata, is_extended, kind: rng.below(4) as u8, is_first }
}
