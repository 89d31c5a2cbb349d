//! The admin queue as a drive: Identify, log pages, and the admin commands of a command set.
//!
//! Left out: more commands at a time than the queue has room for, which fail; replay of commands after the connection
//! broke.

use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::opcode::Transfer;

use super::initiator::NvmeTcp;
use super::queue::Request;
use super::state::REPLAYS;

/// See the file. The data of a command is as long as its memory.
pub struct AdminQueue(Rc<NvmeTcp>);

impl AdminQueue {
    /// That of a connection.
    pub fn of(drive: &Rc<NvmeTcp>) -> AdminQueue {
        AdminQueue(drive.clone())
    }
}

impl Drive for AdminQueue {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    /// Takes a command; polling the connection sends it.
    fn submit(&self, io: Io) {
        let Io { command, mem, token } = io;
        if command.flags & FLAGS_PSDT != 0 {
            return token.complete(Completion::of(Status::INVALID_FIELD.final_()));
        }
        let len = if Transfer::of(command.opcode) == Transfer::None { 0 } else { mem.len() as u32 };
        let mut state = self.0.state.borrow_mut();
        match state.association.as_mut().filter(|association| association.admin.has_room()) {
            Some(association) => {
                let mut request = Request::new(command, mem, Some(token), len);
                // Never again: on a queue for I/O its opcode would mean something else.
                request.replays = REPLAYS;
                association.admin.send(request);
            }
            None => {
                drop(state);
                token.complete(Completion::of(Status::HOST_PATHING_ERROR));
            }
        }
    }
}
