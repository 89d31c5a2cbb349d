//! Orders of the operator to a drive. They arrive, are stamped and are recorded like the commands of clients.
//!
//! Left out: their meaning, which the drive knows.

/// An order to a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Adds a fault rule, given as a line of text.
    AddFault(String),
    /// Removes all fault rules.
    ClearFaults,
    /// Changes a setting, given as `KEY=VALUE`.
    Set(String),
}

/// A fault rule of a drive, and how often it was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultCount {
    /// The rule as a line of text.
    pub rule: String,
    /// Operations that match it.
    pub matched: u64,
    /// Operations that it made fail.
    pub struck: u64,
}

const ADD_FAULT: u8 = 0;
const CLEAR_FAULTS: u8 = 1;
const SET: u8 = 2;

impl Order {
    /// Its form in a recording: the kind, and its text.
    pub(crate) fn to_parts(&self) -> (u8, &str) {
        match self {
            Order::AddFault(rule) => (ADD_FAULT, rule),
            Order::ClearFaults => (CLEAR_FAULTS, ""),
            Order::Set(setting) => (SET, setting),
        }
    }

    /// Back; `None` when it is no order.
    pub(crate) fn of_parts(kind: u8, text: &[u8]) -> Option<Order> {
        let own = |text: &[u8]| String::from_utf8(text.to_vec()).ok();
        match (kind, text) {
            (ADD_FAULT, rule) => own(rule).map(Order::AddFault),
            (SET, setting) => own(setting).map(Order::Set),
            (CLEAR_FAULTS, []) => Some(Order::ClearFaults),
            _ => None,
        }
    }
}
