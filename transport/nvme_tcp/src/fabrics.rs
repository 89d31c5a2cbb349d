//! Fabrics commands after Connect: properties, and leaving (Base 6).

use nandscape_transport_reactor::{Arrival, Intake};
use nandscape_wire_nvme::fabrics::{
    CONNECT, DISCONNECT, INVALID_QUEUE_TYPE, PROPERTY_GET, PROPERTY_SET, Property, SIZE_4, SIZE_8,
};
use nandscape_wire_nvme::{Status, SubmissionEntry, register};

use crate::patience::Enabling;
use crate::session::Session;

impl Session {
    /// Carries out a Fabrics command and answers it.
    pub(crate) fn fabrics(&mut self, entry: &SubmissionEntry, intake: &mut Intake<'_>) {
        let admin = self.terms.queue == 0;
        let property = Property::from(*entry);
        let answer = match property.fctype {
            // Properties belong to the admin queue.
            PROPERTY_GET if admin => get(&property, intake),
            PROPERTY_SET if admin => self.set(&property, intake),
            // A host that asks whether the queue still answers. That is no error of the controller.
            PROPERTY_GET => return self.work.respond(entry.cid.get(), Status::INVALID_OPCODE.final_(), 0),
            DISCONNECT if admin => Err(INVALID_QUEUE_TYPE),
            DISCONNECT => {
                self.leave();
                Ok(0)
            }
            _ => Err(Status::INVALID_OPCODE),
        };
        let cid = entry.cid.get();
        match answer {
            Ok(value) => self.work.respond(cid, Status::SUCCESS, value),
            // The queue exists. A Connect that fails is not in the error log (Base 6.3).
            Err(_) if property.fctype == CONNECT => {
                self.work.respond(cid, Status::COMMAND_SEQUENCE_ERROR.final_(), 0);
            }
            Err(status) => self.work.refuse(entry, status.final_(), intake),
        }
    }

    fn set(&mut self, property: &Property, intake: &mut Intake<'_>) -> Result<u64, Status> {
        match (property.offset.get(), property.attributes & 0b111) {
            (offset @ register::CC, SIZE_4) => {
                intake.arrive(Arrival::Register { offset, value: property.value.get() as u32 });
                let enabling = Enabling::of(intake.register(register::CC), intake.register(register::CSTS));
                self.configured(enabling, intake.now());
                Ok(0)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

fn get(property: &Property, intake: &Intake<'_>) -> Result<u64, Status> {
    let offset = property.offset.get();
    match (offset, property.attributes & 0b111) {
        (register::CAP, SIZE_8) => {
            Ok(u64::from(intake.register(offset)) | u64::from(intake.register(offset + 4)) << 32)
        }
        (register::VS | register::CC | register::CSTS | register::CRTO, SIZE_4) => Ok(intake.register(offset).into()),
        _ => Err(Status::INVALID_FIELD),
    }
}
