//! Pages of any length, as chains of pieces (OX 7.2.1, second and third form), in a namespace that was formatted for them.
//!
//! A [`PieceBuffer`] gathers bases and deltas, which one command flushes: after a power cut, all of them are stored
//! or none. Putting a page gives it one piece; each appended delta adds one, until the page is put again.
//! [`read_pieces`] fetches the pieces of pages anywhere, the base first.
//!
//! | file | what |
//! |---|---|
//! | `limits` | a drive's limits, and the format |
//! | `buffer` | pieces that are flushed together |
//! | `batch` | pages that are read together |

mod batch;
mod buffer;
mod limits;

pub use batch::read_pieces;
pub use buffer::{PieceBuffer, PieceMisfit};
pub use limits::{PieceLimits, format_for_pieces};
