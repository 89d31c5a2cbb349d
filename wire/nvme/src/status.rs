//! Statuses (Base 4.2.3): a type, a code, and whether a retry can succeed.

use core::fmt;

/// The status of a completion, without the phase tag.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Status(u16);

const DO_NOT_RETRY: u16 = 1 << 14;
const MORE: u16 = 1 << 13;

impl Status {
    /// A status of the given type (0 to 7) and code.
    pub const fn new(kind: u8, code: u8) -> Status {
        Status(code as u16 | (kind as u16 & 0b111) << 8)
    }

    /// The status in bits 15:1 of a completion's last half-dword.
    pub const fn from_bits(bits: u16) -> Status {
        Status(bits)
    }

    /// As it stands in bits 15:1 of a completion's last half-dword.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Status Code Type.
    pub const fn kind(self) -> u8 {
        (self.0 >> 8) as u8 & 0b111
    }

    /// Status Code.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }

    /// Do Not Retry: the same command would fail again.
    pub const fn do_not_retry(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }

    /// The same status with Do Not Retry set.
    pub const fn final_(self) -> Status {
        Status(self.0 | DO_NOT_RETRY)
    }

    /// More: the Error Information log has an entry for the command.
    pub const fn more(self) -> bool {
        self.0 & MORE != 0
    }

    /// The same status with More set.
    pub const fn with_more(self) -> Status {
        Status(self.0 | MORE)
    }

    /// The same status without Do Not Retry and More, to compare by meaning.
    pub const fn meaning(self) -> Status {
        Status(self.0 & !(DO_NOT_RETRY | MORE))
    }

    /// Whether the command succeeded.
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }
}

/// Of Connect (Base 6.3): Command Specific codes that mean something else in answer to other commands.
impl Status {
    /// The subsystem has no controller left for the host.
    pub const CONNECT_CONTROLLER_BUSY: Status = Status::new(1, 0x81);
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $code:literal, $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status::new($kind, $code);)*

            /// The specification's name for the status.
            pub const fn name(self) -> &'static str {
                match (self.kind(), self.code()) {
                    $(($kind, $code) => $text,)*
                    (7, _) => "Vendor Specific",
                    _ => "Unknown Status",
                }
            }
        }
    };
}

// Generic Command Status: Base 4.2.3.1; codes from 80h on: NVM 3.1.2.1. Command Specific: Base 4.2.3.2.
// From B6h on: ZNS 3.1. Media and Data Integrity Errors: Base 4.2.3.3, NVM 3.1.2.3; from C0h on: OC 5. Path Related Status: Base 4.2.3.4.
statuses! {
    /// The command succeeded.
    SUCCESS = 0, 0x00, "Successful Completion";
    /// The opcode is not known or not supported.
    INVALID_OPCODE = 0, 0x01, "Invalid Command Opcode";
    /// A field holds a value that is not allowed.
    INVALID_FIELD = 0, 0x02, "Invalid Field in Command";
    /// The identifier is in use by another command of the same queue.
    COMMAND_ID_CONFLICT = 0, 0x03, "Command ID Conflict";
    /// Data could not be moved between host and controller.
    DATA_TRANSFER_ERROR = 0, 0x04, "Data Transfer Error";
    /// Power was lost before the command was done.
    ABORTED_POWER_LOSS = 0, 0x05, "Commands Aborted due to Power Loss Notification";
    /// The controller failed.
    INTERNAL_ERROR = 0, 0x06, "Internal Error";
    /// An Abort command requested it.
    ABORT_REQUESTED = 0, 0x07, "Command Abort Requested";
    /// The queue was deleted.
    ABORTED_SQ_DELETION = 0, 0x08, "Command Aborted due to SQ Deletion";
    /// The other command of a fused operation failed.
    FUSED_FAILED = 0, 0x09, "Command Aborted due to Failed Fused Command";
    /// One of the two commands of a fused operation stands alone.
    FUSED_MISSING = 0, 0x0a, "Command Aborted due to Missing Fused Command";
    /// The namespace does not exist, or its format does not fit.
    INVALID_NAMESPACE = 0, 0x0b, "Invalid Namespace or Format";
    /// The order of commands is not allowed.
    COMMAND_SEQUENCE_ERROR = 0, 0x0c, "Command Sequence Error";
    /// An SGL segment descriptor is malformed, or stands where none may be.
    INVALID_SGL_SEGMENT = 0, 0x0d, "Invalid SGL Segment Descriptor";
    /// A segment descriptor is not the last of its segment, or there are more descriptors than the controller takes.
    INVALID_SGL_COUNT = 0, 0x0e, "Invalid Number of SGL Descriptors";
    /// The data pointer does not fit the command's length.
    DATA_SGL_LENGTH_INVALID = 0, 0x0f, "Data SGL Length Invalid";
    /// The metadata pointer does not fit the command's length.
    METADATA_SGL_LENGTH_INVALID = 0, 0x10, "Metadata SGL Length Invalid";
    /// The type of an SGL descriptor is not supported.
    SGL_TYPE_INVALID = 0, 0x11, "SGL Descriptor Type Invalid";
    /// A PRP entry has an offset where it must have none, or one that is not aligned.
    PRP_OFFSET_INVALID = 0, 0x13, "PRP Offset Invalid";
    /// More logical blocks than an atomic operation may have.
    ATOMIC_WRITE_UNIT_EXCEEDED = 0, 0x14, "Atomic Write Unit Exceeded";
    /// The host may not do this now.
    OPERATION_DENIED = 0, 0x15, "Operation Denied";
    /// An SGL names an offset outside the capsule.
    SGL_OFFSET_INVALID = 0, 0x16, "SGL Offset Invalid";
    /// The host identifier does not have the length that the command gives.
    HOST_ID_INCONSISTENT = 0, 0x18, "Host Identifier Inconsistent Format";
    /// The host has not been heard of for longer than the Keep Alive Timeout.
    KEEP_ALIVE_EXPIRED = 0, 0x19, "Keep Alive Timeout Expired";
    /// The Keep Alive Timeout is not supported.
    KEEP_ALIVE_INVALID = 0, 0x1a, "Keep Alive Timeout Invalid";
    /// The transport could not move data; a retry may succeed.
    TRANSIENT_TRANSPORT_ERROR = 0, 0x22, "Transient Transport Error";
    /// The last sanitize operation failed, and nothing else is allowed until one succeeds.
    SANITIZE_FAILED = 0, 0x1c, "Sanitize Failed";
    /// Another host has preempted the one of the command, and had its commands aborted.
    ABORTED_PREEMPT = 0, 0x1b, "Command Aborted due to Preempt and Abort";
    /// The command is not allowed while a sanitize operation is in progress.
    SANITIZE_IN_PROGRESS = 0, 0x1d, "Sanitize In Progress";
    /// A host has set the namespace write protected.
    NAMESPACE_WRITE_PROTECTED = 0, 0x20, "Namespace is Write Protected";
    /// Some logical block lies beyond the namespace.
    LBA_OUT_OF_RANGE = 0, 0x80, "LBA Out of Range";
    /// The namespace cannot take more data.
    CAPACITY_EXCEEDED = 0, 0x81, "Capacity Exceeded";
    /// The namespace is not ready; try again.
    NAMESPACE_NOT_READY = 0, 0x82, "Namespace Not Ready";
    /// Another host holds a reservation, or the host is not registered.
    RESERVATION_CONFLICT = 0, 0x83, "Reservation Conflict";
    /// The namespace is being formatted.
    FORMAT_IN_PROGRESS = 0, 0x84, "Format In Progress";
    /// The completion queue of a new submission queue does not exist.
    COMPLETION_QUEUE_INVALID = 1, 0x00, "Completion Queue Invalid";
    /// The queue identifier is out of range or in use.
    INVALID_QUEUE_ID = 1, 0x01, "Invalid Queue Identifier";
    /// The queue size is out of range.
    INVALID_QUEUE_SIZE = 1, 0x02, "Invalid Queue Size";
    /// More Abort commands than the controller takes at a time.
    ABORT_LIMIT_EXCEEDED = 1, 0x03, "Abort Command Limit Exceeded";
    /// More Asynchronous Event Requests than the controller takes at a time.
    EVENT_REQUEST_LIMIT_EXCEEDED = 1, 0x05, "Asynchronous Event Request Limit Exceeded";
    /// The interrupt vector does not exist.
    INVALID_INTERRUPT_VECTOR = 1, 0x08, "Invalid Interrupt Vector";
    /// The log page does not exist.
    INVALID_LOG_PAGE = 1, 0x09, "Invalid Log Page";
    /// The LBA format, or the protection requested with it, is not supported.
    INVALID_FORMAT = 1, 0x0a, "Invalid Format";
    /// A queue cannot be deleted while another depends on it.
    INVALID_QUEUE_DELETION = 1, 0x0c, "Invalid Queue Deletion";
    /// The feature does not keep its value over a reset.
    FEATURE_NOT_SAVEABLE = 1, 0x0d, "Feature Identifier Not Saveable";
    /// The feature cannot be set.
    FEATURE_NOT_CHANGEABLE = 1, 0x0e, "Feature Not Changeable";
    /// A namespace is named, and the feature is not one of namespaces.
    FEATURE_NOT_NAMESPACE_SPECIFIC = 1, 0x0f, "Feature Not Namespace Specific";
    /// There is not enough free capacity for the namespace.
    NAMESPACE_INSUFFICIENT_CAPACITY = 1, 0x15, "Namespace Insufficient Capacity";
    /// There are as many namespaces as there can be.
    NAMESPACE_ID_UNAVAILABLE = 1, 0x16, "Namespace Identifier Unavailable";
    /// The namespace is attached to a controller of the list already.
    NAMESPACE_ALREADY_ATTACHED = 1, 0x18, "Namespace Already Attached";
    /// The namespace is attached to another controller, and is not shared.
    NAMESPACE_IS_PRIVATE = 1, 0x19, "Namespace Is Private";
    /// The namespace is not attached to a controller of the list.
    NAMESPACE_NOT_ATTACHED = 1, 0x1a, "Namespace Not Attached";
    /// The capacity of a namespace is its size: there is no thin provisioning.
    THIN_PROVISIONING_NOT_SUPPORTED = 1, 0x1b, "Thin Provisioning Not Supported";
    /// A controller of the list does not exist, or the list is malformed.
    CONTROLLER_LIST_INVALID = 1, 0x1c, "Controller List Invalid";
    /// A device self-test is in progress.
    SELF_TEST_IN_PROGRESS = 1, 0x1d, "Device Self-test In Progress";
    /// No stream resources are left for the namespace.
    STREAM_RESOURCE_ALLOCATION_FAILED = 1, 0x7f, "Stream Resource Allocation Failed";
    /// The attributes of a Dataset Management command contradict each other.
    CONFLICTING_ATTRIBUTES = 1, 0x80, "Conflicting Attributes";
    /// The protection information of the command does not fit the format of the namespace.
    INVALID_PROTECTION = 1, 0x81, "Invalid Protection Information";
    /// The blocks are read-only.
    READ_ONLY_RANGE = 1, 0x82, "Attempted Write to Read Only Range";
    /// A Dataset Management or Write Zeroes command over its size limit.
    COMMAND_SIZE_LIMIT_EXCEEDED = 1, 0x83, "Command Size Limit Exceeded";
    /// The action, or the range that it names, is not valid for the zone.
    INVALID_ZONE_OPERATION = 1, 0xb6, "Invalid Zone Operation Request";
    /// All zone random write areas are in use.
    ZRWA_RESOURCES_UNAVAILABLE = 1, 0xb7, "Zone Random Write Area Resources Unavailable";
    /// Blocks of more than one zone, or beyond the capacity of a zone.
    ZONE_BOUNDARY_ERROR = 1, 0xb8, "Zone Boundary Error";
    /// The zone is full.
    ZONE_IS_FULL = 1, 0xb9, "Zone Is Full";
    /// The zone is read-only.
    ZONE_IS_READ_ONLY = 1, 0xba, "Zone Is Read Only";
    /// The zone is offline.
    ZONE_IS_OFFLINE = 1, 0xbb, "Zone Is Offline";
    /// The write does not begin at the write pointer.
    ZONE_INVALID_WRITE = 1, 0xbc, "Zone Invalid Write";
    /// Too many zones would be active.
    TOO_MANY_ACTIVE_ZONES = 1, 0xbd, "Too Many Active Zones";
    /// Too many zones would be open.
    TOO_MANY_OPEN_ZONES = 1, 0xbe, "Too Many Open Zones";
    /// The state of the zone does not allow the request.
    INVALID_ZONE_STATE_TRANSITION = 1, 0xbf, "Invalid Zone State Transition";
    /// Data could not be written.
    WRITE_FAULT = 2, 0x80, "Write Fault";
    /// Data could not be read back.
    UNRECOVERED_READ_ERROR = 2, 0x81, "Unrecovered Read Error";
    /// The guard of some logical block does not fit its data.
    GUARD_CHECK = 2, 0x82, "End-to-end Guard Check Error";
    /// The application tag of some logical block is not the expected one.
    APPLICATION_TAG_CHECK = 2, 0x83, "End-to-end Application Tag Check Error";
    /// The reference tag of some logical block is not the expected one.
    REFERENCE_TAG_CHECK = 2, 0x84, "End-to-end Reference Tag Check Error";
    /// Compare found a difference.
    COMPARE_FAILURE = 2, 0x85, "Compare Failure";
    /// A deallocated or unwritten block was read, and the host has requested an error (DULBE).
    DEALLOCATED_OR_UNWRITTEN = 2, 0x87, "Deallocated or Unwritten Logical Block";
    /// The chunk is out of use, or has become so in this reset.
    OFFLINE_CHUNK = 2, 0xc0, "Offline Chunk";
    /// The state of the chunk allows no reset.
    INVALID_RESET = 2, 0xc1, "Invalid Reset";
    /// The chunk was closed before its end: the data before its write pointer can be read.
    CHUNK_EARLY_CLOSE = 2, 0xf1, "Write Fail, Chunk Early Close";
    /// The write does not begin at the write pointer, or the chunk takes no writes.
    OUT_OF_ORDER_WRITE = 2, 0xf2, "Out of Order Write";
    /// The controller does not reach the drive behind it.
    CONTROLLER_PATHING_ERROR = 3, 0x60, "Controller Pathing Error";
    /// The host does not reach the controller: the command could not be sent, or its end is not known.
    HOST_PATHING_ERROR = 3, 0x70, "Host Pathing Error";
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{:02x}h)", self.name(), self.kind(), self.code())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_code_and_retry_stand_where_the_specification_puts_them() {
        let status = Status::COMPARE_FAILURE.final_();
        assert_eq!((status.kind(), status.code(), status.do_not_retry()), (2, 0x85, true));
        assert_eq!(status.bits(), 0x4285);
        assert_eq!((status.with_more().bits(), status.with_more().more()), (0x6285, true));
        assert_eq!(status.with_more().meaning(), Status::COMPARE_FAILURE);
        assert!(Status::SUCCESS.is_success() && !status.is_success());
        assert_eq!(status.name(), "Compare Failure");
    }
}
