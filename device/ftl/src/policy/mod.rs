//! What can be varied about an FTL without touching it: one trait a question, one file an answer.

mod admission;
mod allocation;
mod victim;

pub use admission::{AdmissionPolicy, All};
pub use allocation::{AllocationPolicy, StripeOrder, Striped};
pub use victim::{Candidate, CostBenefit, Greedy, VictimPolicy};
