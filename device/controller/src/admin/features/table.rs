//! The features whose value is one dword, each with its default and its Supported Capabilities (Base 5.1.11).

use nandscape_wire_nvme::fdp;
use nandscape_wire_nvme::feature::{self, CAN_BE_CHANGED, CAN_BE_SAVED, OF_NAMESPACE, WRITE_CACHE_ENABLE};
use nandscape_wire_nvme::vendor::{ARBITER, NOTICES, WINDOWS, arbiter};

/// Composite temperature in kelvin. Constant: the model has no heat.
pub(crate) const TEMPERATURE: u16 = 308;
/// Warning and Critical Composite Temperature Threshold of Identify, in kelvin.
pub(crate) const WARNING_TEMPERATURE: u16 = 343;
pub(crate) const CRITICAL_TEMPERATURE: u16 = 353;

/// The capabilities of a feature.
#[derive(Copy, Clone, Debug)]
pub(super) struct Row {
    pub(super) id: u8,
    /// Bits of Supported Capabilities.
    pub(super) capabilities: u32,
    pub(super) default: u32,
}

const SAVED: u32 = CAN_BE_CHANGED | CAN_BE_SAVED;

const fn row(id: u8, capabilities: u32, default: u32) -> Row {
    Row { id, capabilities, default }
}

/// Every feature of one dword.
pub(super) const ROWS: [Row; 24] = [
    // Bursts of 8, as identified.
    row(feature::ARBITRATION, SAVED, 3),
    row(feature::POWER_MANAGEMENT, SAVED, 0),
    row(feature::TEMPERATURE_THRESHOLD, SAVED, WARNING_TEMPERATURE as u32),
    row(feature::ERROR_RECOVERY, SAVED | OF_NAMESPACE, 0),
    row(feature::VOLATILE_WRITE_CACHE, SAVED, WRITE_CACHE_ENABLE),
    row(feature::NUMBER_OF_QUEUES, CAN_BE_CHANGED, 0),
    row(feature::INTERRUPT_COALESCING, SAVED, 0),
    row(feature::INTERRUPT_VECTOR, CAN_BE_CHANGED, 0),
    row(feature::WRITE_ATOMICITY, SAVED, 0),
    row(feature::ASYNC_EVENT_CONFIG, SAVED, 0),
    row(feature::TIMESTAMP, CAN_BE_CHANGED, 0),
    row(feature::KEEP_ALIVE_TIMER, CAN_BE_CHANGED, 0),
    row(feature::PREDICTABLE_LATENCY_CONFIG, CAN_BE_CHANGED, 0),
    row(feature::PREDICTABLE_LATENCY_WINDOW, CAN_BE_CHANGED, 0),
    row(feature::HOST_BEHAVIOR, CAN_BE_CHANGED, 0),
    row(fdp::FEATURE, 0, 1),
    row(fdp::FEATURE_EVENTS, CAN_BE_CHANGED | OF_NAMESPACE, 0),
    row(feature::HOST_IDENTIFIER, CAN_BE_CHANGED, 0),
    row(feature::RESERVATION_MASK, CAN_BE_CHANGED | OF_NAMESPACE, 0),
    row(feature::RESERVATION_PERSISTENCE, CAN_BE_CHANGED | OF_NAMESPACE, 0),
    row(feature::WRITE_PROTECTION, CAN_BE_CHANGED | OF_NAMESPACE, 0),
    row(WINDOWS, CAN_BE_CHANGED, 0),
    row(ARBITER, SAVED, arbiter::DEFAULT),
    row(NOTICES, CAN_BE_CHANGED, 0),
];

/// The row of a feature.
pub(super) fn row_of(id: u8) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.id == id)
}
