//! The checks of Connect that need no drive (Base 6.3).
//!
//! Left out: the checks of a controller's queues, which are the port's; access lists: every host may use every
//! drive.

use nandscape_drive::{HostIdentity, QueueId};
use nandscape_transport_reactor::{ConnectQueue, ConnectRefusal};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::fabrics::{
    Connect, ConnectData, DISCOVERY_NQN, DYNAMIC, NameProblem, PRIORITY_CLASS, offset, qualified_name,
};

use crate::discovery;

/// The target of a host's Connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Aim {
    /// The discovery controller, with the entries of its queue.
    Discovery { entries: u16 },
    /// The queue of a drive, by the drive's place among the served ones.
    Drive { place: usize, ask: ConnectQueue },
}

/// The target of a host's Connect. `subsystems` are the names of the drives.
///
/// # Errors
/// The status of Connect.
pub(crate) fn aim_of<'a>(
    connect: &Connect,
    data: &ConnectData,
    subsystems: impl Iterator<Item = &'a str>,
) -> Result<Aim, ConnectRefusal> {
    let name = qualified_name(&data.subsystem).map_err(|_| ConnectRefusal::of_data(offset::SUBSYSTEM))?;
    let hostnqn = qualified_name(&data.host).map_err(|problem| match problem {
        NameProblem::NotTerminated | NameProblem::NotText | NameProblem::Format => {
            ConnectRefusal::of_data(offset::HOST)
        }
    })?;
    let (queue, controller) = (connect.queue.get(), data.controller.get());
    // For an I/O queue it may be left out.
    if queue == 0 && data.host_id == [0; 16] {
        return Err(ConnectRefusal::of_data(offset::HOST_ID));
    }
    let entries = u32::from(connect.size_z.get()) + 1;
    // A queue of one entry would always be full, and one of 65,536 has no unambiguous head pointer.
    let entries = u16::try_from(entries).ok().filter(|entries| *entries > 1);
    let entries = entries.ok_or(ConnectRefusal::of_command(offset::SIZE))?;
    let new = controller == DYNAMIC;
    if new != (queue == 0) {
        // Controllers are dynamic: an admin queue gets any, and other queues name theirs.
        return Err(ConnectRefusal::of_data(offset::CONTROLLER));
    }
    if name == DISCOVERY_NQN {
        return match (queue, entries) {
            (0, 2..=discovery::ENTRIES) => Ok(Aim::Discovery { entries }),
            (0, _) => Err(ConnectRefusal::of_command(offset::SIZE)),
            _ => Err(ConnectRefusal::of_command(offset::QUEUE)),
        };
    }
    let place = subsystems.enumerate().find(|(_, nqn)| *nqn == name).map(|(place, _)| place);
    let place = place.ok_or(ConnectRefusal::of_data(offset::SUBSYSTEM))?;
    let host = HostIdentity { hostid: data.host_id, hostnqn: hostnqn.to_owned(), ..HostIdentity::default() };
    let controller = (!new).then_some(controller);
    // Connect of an I/O queue has no separate timeout.
    let keep_alive_ms = if new { connect.keep_alive_ms.get() } else { 0 };
    let (queue, entries) = (QueueId(queue), entries.into());
    let priority = connect.attributes & PRIORITY_CLASS;
    let ask = ConnectQueue { export: 0, controller, host, queue, entries, keep_alive_ms, priority };
    Ok(Aim::Drive { place, ask })
}

/// In words, for the log.
pub(crate) fn reason(refusal: &ConnectRefusal) -> String {
    let ConnectRefusal { status, value } = refusal;
    let name = nandscape_wire_nvme::fabrics::name(*status);
    match status.meaning() {
        Status::SUCCESS => name.to_owned(),
        nandscape_wire_nvme::fabrics::INVALID_PARAMETERS => {
            let part = if value >> 16 & 1 != 0 { "data" } else { "command" };
            format!("{name}: byte {} of the {part}", value & 0xffff)
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::SubmissionEntry;
    use nandscape_wire_nvme::fabrics::name_field;

    use super::*;

    const DRIVE: &str = "nqn.2026-11.org.nandscape:drive";

    fn good(queue: u16) -> (Connect, ConnectData) {
        let (mut connect, mut data) = (Connect::from(SubmissionEntry::default()), ConnectData::zeroed());
        (connect.queue, connect.size_z) = (queue.into(), 31.into());
        data.host_id = [1; 16];
        data.controller = if queue == 0 { DYNAMIC } else { 5 }.into();
        (data.subsystem, data.host) = (name_field(DRIVE), name_field("nqn.host"));
        (connect, data)
    }

    fn aim((connect, data): &(Connect, ConnectData)) -> Result<Aim, ConnectRefusal> {
        aim_of(connect, data, ["nqn.other", DRIVE].into_iter())
    }

    #[test]
    fn a_queue_of_a_drive_is_found() {
        let Ok(Aim::Drive { place: 1, ask }) = aim(&good(0)) else { panic!("it is the second") };
        assert_eq!((ask.controller, ask.queue, ask.entries), (None, QueueId(0), 32));
        let Ok(Aim::Drive { ask, .. }) = aim(&good(7)) else { panic!("it is the second") };
        assert_eq!((ask.controller, ask.queue, ask.host.hostnqn.as_str()), (Some(5), QueueId(7), "nqn.host"));
        let (connect, mut data) = good(7);
        data.host_id = [0; 16];
        assert!(aim(&(connect, data)).is_ok(), "the Host Identifier may be left out");
    }

    #[test]
    fn a_queue_has_the_priority_class_that_the_host_asks_for() {
        for class in 0..4 {
            let (mut connect, data) = good(7);
            connect.attributes = 0b100 | class;
            let Ok(Aim::Drive { ask, .. }) = aim(&(connect, data)) else { panic!("it is the second") };
            assert_eq!(ask.priority, class);
        }
    }

    /// Changes one field of a good Connect.
    type Change = fn(&mut Connect, &mut ConnectData);

    #[test]
    fn each_field_is_checked() {
        let rows: [(u16, Change, ConnectRefusal); 11] = [
            (0, |_, data| data.subsystem = name_field("nqn.unknown"), ConnectRefusal::of_data(256)),
            (0, |_, data| data.subsystem = [b'n'; 256], ConnectRefusal::of_data(256)),
            (0, |_, data| data.host = [0; 256], ConnectRefusal::of_data(512)),
            (0, |_, data| data.host_id = [0; 16], ConnectRefusal::of_data(0)),
            (0, |_, data| data.controller = 5.into(), ConnectRefusal::of_data(16)),
            (1, |_, data| data.controller = DYNAMIC.into(), ConnectRefusal::of_data(16)),
            (0, |connect, _| connect.size_z = 0.into(), ConnectRefusal::of_command(44)),
            (0, |connect, _| connect.size_z = 0xffff.into(), ConnectRefusal::of_command(44)),
            (0, |_, data| data.controller = 0xfffe.into(), ConnectRefusal::of_data(16)),
            (1, |_, data| data.subsystem = name_field(DISCOVERY_NQN), ConnectRefusal::of_command(42)),
            (
                0,
                |connect, data| (connect.size_z, data.subsystem) = (999.into(), name_field(DISCOVERY_NQN)),
                ConnectRefusal::of_command(44),
            ),
        ];
        for (row, (queue, change, refusal)) in rows.into_iter().enumerate() {
            let (mut connect, mut data) = good(queue);
            change(&mut connect, &mut data);
            assert_eq!(aim(&(connect, data)), Err(refusal), "row {row}");
        }
    }
}
