//! Policies of FTLs: one trait per decision, one file per policy.

mod admission;
mod allocation;
mod buffer;
mod flush;
mod gc;
mod patrol;
mod read;
mod refresh;
mod scrub;
mod stripe_wear;
mod turn;
mod victim;

pub use admission::{AdmissionPolicy, All, OnePerGroup, PlaneSet, Rotating};
pub use allocation::{AllocationPolicy, ByRange, Stripe, StripeOrder, Striped};
pub use buffer::{BufferFill, BufferPolicy};
pub use flush::{FlushCandidate, FlushPolicy, GcTolerant, InOrder};
pub use gc::{GcScheme, OwnerSource};
pub use patrol::{InTurn, PatrolOrder};
pub use read::{FailFast, PendingRead, ReadPolicy, Reconstruct, Verdict};
pub use refresh::{NearLimit, RefreshPolicy};
pub use scrub::{ScrubCandidate, ScrubPolicy, Suspects};
pub use stripe_wear::{StripeWearPolicy, Thresholds};
pub use turn::{Deterministic, Schedule, TurnPolicy};
pub use victim::{Candidate, CostBenefit, Greedy, VictimPolicy};
