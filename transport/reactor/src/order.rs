//! Orders to a drive from beside, by whoever runs it: not commands of its clients, and arrivals like them.
//!
//! What an order says is the drive's business; here it only gets there, at a time of its own, and into the recording.

/// What a drive is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// A fault is to happen from now on: a rule as a line of text.
    AddFault(String),
    /// No more faults are to happen.
    ClearFaults,
}

/// A rule for faults that a drive has been given, and how often it came into play.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultCount {
    /// The rule as a line of text.
    pub rule: String,
    /// Operations that it is about.
    pub matched: u64,
    /// Those that it struck.
    pub struck: u64,
}

const ADD_FAULT: u8 = 0;
const CLEAR_FAULTS: u8 = 1;

impl Order {
    /// As it stands in a recording: what kind, and its text.
    pub(crate) fn to_parts(&self) -> (u8, &str) {
        match self {
            Order::AddFault(rule) => (ADD_FAULT, rule),
            Order::ClearFaults => (CLEAR_FAULTS, ""),
        }
    }

    /// Back; `None` when it is no order.
    pub(crate) fn of_parts(kind: u8, text: &[u8]) -> Option<Order> {
        match (kind, text) {
            (ADD_FAULT, rule) => String::from_utf8(rule.to_vec()).ok().map(Order::AddFault),
            (CLEAR_FAULTS, []) => Some(Order::ClearFaults),
            _ => None,
        }
    }
}
