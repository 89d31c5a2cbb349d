//! I/O commands that need a check before they are served: on a namespace that is being formatted or sanitized, or that is
//! reserved or write protected; Flush of all namespaces; and the reservation commands. All others cost one check of a flag of
//! the namespace.

use nandscape_drive::Breakdown;
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};

use super::NvmeController;
use crate::command_set::{Command, Reply};
use crate::namespace::{Access, Namespace, Registrant};

/// The opcodes of reservation commands, a bit each.
const RESERVATIONS: u32 = 1 << IoOpcode::RESERVATION_REGISTER.0
    | 1 << IoOpcode::RESERVATION_REPORT.0
    | 1 << IoOpcode::RESERVATION_ACQUIRE.0
    | 1 << IoOpcode::RESERVATION_RELEASE.0;
/// The same, and Flush.
const MAY_ASK: u32 = RESERVATIONS | 1 << IoOpcode::FLUSH.0;

/// Whether a command needs the check on every namespace.
#[inline]
pub(super) fn always_asks(entry: &SubmissionEntry) -> bool {
    let (opcode, nsid) = (entry.opcode, entry.nsid.get());
    opcode < 32 && MAY_ASK >> opcode & 1 != 0 && (opcode != IoOpcode::FLUSH.0 || nsid == NSID_ALL)
}

/// Whether a command is a reservation command.
fn is_reservation(opcode: u8) -> bool {
    opcode < 32 && RESERVATIONS >> opcode & 1 != 0
}

impl NvmeController {
    /// The host of this controller, as reservations know it.
    pub(crate) fn registrant(&self) -> Registrant {
        self.admin.settings.registrant()
    }

    /// Whether a command may use a namespace that is guarded.
    ///
    /// # Errors
    /// The status with which it is to end.
    pub(crate) fn admits(&self, namespace: &Namespace, access: Access) -> Result<(), Status> {
        namespace.check_state()?;
        namespace.reservations.check_access(self.registrant(), access).map_err(Status::final_)
    }

    /// Whether an I/O command may use a namespace.
    pub(super) fn admits_command(&self, namespace: &Namespace, entry: &SubmissionEntry) -> Result<(), Status> {
        self.admits(namespace, Access::of(entry.opcode)).and_then(|()| namespace.check_write(entry))
    }

    /// Serves a command that needs the check, or a reservation command.
    #[cold]
    pub(super) async fn serve_guarded(&self, command: Command<'_>, breakdown: &mut Breakdown) -> Reply {
        let (namespace, opcode) = (command.namespace, command.entry.opcode);
        if is_reservation(opcode) {
            return match namespace.check_state() {
                Ok(()) => self.serve_reservation(command, breakdown).await,
                Err(status) => Err(status).into(),
            };
        }
        // Only Flush gets here with the broadcast value.
        let admitted = match command.entry.nsid.get() {
            NSID_ALL => self.namespaces.all().iter().try_for_each(|each| self.admits_command(each, command.entry)),
            _ => self.admits_command(namespace, command.entry),
        };
        match admitted {
            Ok(()) => self.subsystem.set.serve(&command, breakdown).await,
            Err(status) => Err(status).into(),
        }
    }
}
