//! Recorded commands for a drive with another capacity, other logical blocks or other limits. For the recorded drive
//! they stay unchanged.
//!
//! A command keeps its class, tenant and deadline. A command that states no class or tenant gets those of the rules for the client
//! that issued it: on the drive, all clients are in this process.
//!
//! A command covers whole logical blocks, as many as it touched. A command that ends beyond the capacity is moved into it. A
//! Compare becomes a Read, since the drive may not have the data. Left out, and counted: Copy, reservations and vendor commands,
//! and commands on namespaces that the run does not have.

use std::collections::BTreeMap;

use nandscape_drive::{Assignments, DriveInfo, HostMem};
use nandscape_transport_reactor::ConnectionId;
use nandscape_transport_reactor::recording::Request;
use nandscape_wire_nvme::io::{DEAC, DSM_DEALLOCATE, DsmRange, FUA, LIMITED_RETRY};
use nandscape_wire_nvme::vendor::Attributes;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

/// A command for the new drive.
pub(super) struct Fitted {
    pub(super) entry: SubmissionEntry,
    pub(super) mem: HostMem,
    /// Where it begins, in bytes.
    pub(super) offset: u64,
}

/// Fits commands to the namespaces of one drive, and counts what that changes.
pub(super) struct Fit {
    /// By number.
    namespaces: Vec<DriveInfo>,
    rules: Assignments,
    /// The rules that concern each client.
    of_clients: BTreeMap<ConnectionId, Assignments>,
    pub(super) moved: u64,
    pub(super) shortened: u64,
    pub(super) left_out: u64,
}

impl Fit {
    /// For a drive with these namespaces, at least one, and rules for its clients.
    pub(super) fn new(namespaces: Vec<DriveInfo>, rules: Assignments) -> Fit {
        Fit { namespaces, rules, of_clients: BTreeMap::new(), moved: 0, shortened: 0, left_out: 0 }
    }

    /// A command for the drive; `None` if it is left out.
    pub(super) fn fit(&mut self, request: &Request) -> Option<Fitted> {
        let mut fitted = self.command(request);
        self.left_out += u64::from(fitted.is_none());
        fitted.iter_mut().for_each(|fitted| self.attribute(request, &mut fitted.entry));
        fitted
    }

    fn attribute(&mut self, request: &Request, entry: &mut SubmissionEntry) {
        let own = &request.entry;
        if [IoOpcode::READ, IoOpcode::WRITE].contains(&IoOpcode(own.opcode)) {
            entry.cdw3 = own.cdw3;
        }
        let (all, issuer) = (&self.rules, &request.issuer);
        let rules = self.of_clients.entry(request.connection);
        let rules = rules.or_insert_with(|| all.of_client(&issuer.host, issuer.model));
        entry.cdw2 = rules.complete(request.queue, entry.nsid.get(), Attributes(own.cdw2.get())).0.into();
    }

    fn command(&mut self, request: &Request) -> Option<Fitted> {
        let entry = &request.entry;
        let found = self.namespaces.iter().find(|info| info.nsid == entry.nsid.get());
        let info = *found.or(self.namespaces.first())?;
        match IoOpcode(entry.opcode) {
            IoOpcode::FLUSH => {
                let entry = SubmissionEntry::io(IoOpcode::FLUSH, info.nsid);
                Some(Fitted { entry, mem: HostMem::none(), offset: 0 })
            }
            IoOpcode::DATASET_MANAGEMENT => self.deallocate(request, &info),
            IoOpcode::READ | IoOpcode::COMPARE => self.blocks(request, &info, IoOpcode::READ),
            opcode @ (IoOpcode::WRITE | IoOpcode::WRITE_ZEROES | IoOpcode::VERIFY) => {
                self.blocks(request, &info, opcode)
            }
            _ => None,
        }
    }

    fn blocks(&mut self, request: &Request, info: &DriveInfo, opcode: IoOpcode) -> Option<Fitted> {
        let entry = &request.entry;
        let count = u64::from(entry.cdw12.get() & 0xffff) + 1;
        let (slba, blocks) = self.range(request, info, entry.slba(), count)?;
        let blocks = match opcode {
            IoOpcode::READ | IoOpcode::WRITE if blocks > u64::from(info.max_blocks) => {
                self.shortened += 1;
                u64::from(info.max_blocks)
            }
            _ => blocks.min(0x1_0000),
        };
        let kept = entry.cdw12.get() & (FUA | LIMITED_RETRY | if opcode == IoOpcode::WRITE_ZEROES { DEAC } else { 0 });
        let mut fitted = SubmissionEntry::blocks(opcode, info.nsid, slba, blocks as u32);
        fitted.cdw12 = (fitted.cdw12.get() | kept).into();
        let len = blocks as usize * info.lba_bytes as usize;
        let mem = match (opcode, &request.data) {
            (IoOpcode::WRITE, Some(data)) if info.keeps_data && data.len() == len => HostMem::from_bytes(data),
            (IoOpcode::READ | IoOpcode::WRITE, _) => HostMem::zeroed(len),
            _ => HostMem::none(),
        };
        Some(Fitted { entry: fitted, mem, offset: slba * u64::from(info.lba_bytes) })
    }

    fn deallocate(&mut self, request: &Request, info: &DriveInfo) -> Option<Fitted> {
        if request.entry.cdw11.get() & DSM_DEALLOCATE == 0 {
            return None;
        }
        let wanted = 1 + (request.entry.cdw10.get() & 0xff) as usize;
        let data = request.data.as_ref()?;
        let mut ranges = Vec::new();
        for bytes in data.chunks_exact(size_of::<DsmRange>()).take(wanted) {
            let range = DsmRange::read_from_bytes(bytes).ok()?;
            let blocks = u64::from(range.blocks.get());
            let (slba, blocks) = match blocks {
                0 => (0, 0),
                _ => self.range(request, info, range.slba.get(), blocks)?,
            };
            ranges.push(DsmRange { blocks: (blocks as u32).into(), slba: slba.into(), ..range });
        }
        let entry = SubmissionEntry::deallocate(info.nsid, u32::try_from(ranges.len()).ok().filter(|some| *some > 0)?);
        let offset = ranges[0].slba.get() * u64::from(info.lba_bytes);
        Some(Fitted { entry, mem: HostMem::from_bytes(ranges.as_bytes()), offset })
    }

    /// Logical blocks of the drive in place of recorded ones.
    fn range(&mut self, request: &Request, info: &DriveInfo, slba: u64, blocks: u64) -> Option<(u64, u64)> {
        let (from, to) = (u64::from(request.block_bytes), u64::from(info.lba_bytes));
        if from == 0 {
            return None;
        }
        let (first, end) = (slba.checked_mul(from)?, slba.checked_add(blocks)?.checked_mul(from)?);
        let (mut first, mut count) = (first / to, end.div_ceil(to) - first / to);
        if count > info.blocks {
            (count, self.shortened) = (info.blocks, self.shortened + 1);
        }
        if first + count > info.blocks {
            (first, self.moved) = (first % (info.blocks - count + 1), self.moved + 1);
        }
        Some((first, count))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandscape_drive::{HostIdentity, QueueId, TransportModel};
    use nandscape_transport_reactor::recording::Issuer;

    use super::*;

    fn info(blocks: u64, lba_bytes: u32) -> DriveInfo {
        let (nsid, metadata_bytes, max_blocks, unit_bytes) = (1, 0, 64, 4_096);
        DriveInfo {
            nsid,
            blocks,
            lba_bytes,
            metadata_bytes,
            max_blocks,
            unit_bytes,
            volatile_cache: true,
            keeps_data: false,
        }
    }

    fn request(entry: SubmissionEntry, data: Option<Vec<u8>>) -> Request {
        let issuer = Issuer { host: HostIdentity::default(), model: TransportModel::InProcess };
        let (connection, queue) = (ConnectionId(0), QueueId(1));
        Request { connection, issuer: Arc::new(issuer), queue, export: 0, entry, block_bytes: 512, data }
    }

    fn fit_to(namespaces: Vec<DriveInfo>) -> Fit {
        Fit::new(namespaces, Assignments::default())
    }

    #[test]
    fn rules_are_of_the_recorded_client_and_come_after_what_a_command_states() {
        let rules = "class=15 via=nvme-tcp,class=9 host=nqn.a:x,class=3 function=2,tenant=7 queue=4,tenant=8";
        let mut fit = Fit::new(vec![info(1_000, 512)], rules.parse().unwrap());
        let mut of = |number, (nqn, function): (&str, Option<u16>), model, queue, stated: (u32, u32)| {
            let mut entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 1);
            (entry.cdw2, entry.cdw3) = (stated.0.into(), stated.1.into());
            let host = HostIdentity { hostnqn: nqn.to_owned(), function, ..HostIdentity::default() };
            let (connection, issuer) = (ConnectionId(number), Arc::new(Issuer { host, model }));
            let request = Request { connection, issuer, queue: QueueId(queue), ..request(entry, None) };
            let entry = fit.fit(&request).unwrap().entry;
            let attributes = Attributes(entry.cdw2.get());
            (attributes.class(), attributes.tenant(), entry.cdw3.get())
        };
        let (nbd, tcp, user) = (TransportModel::InProcess, TransportModel::Message, TransportModel::Memory);
        assert_eq!(of(0, ("", None), nbd, 1, (0, 0)), (15, 0, 0));
        assert_eq!(of(0, ("", None), nbd, 1, (5 | 6 << 4, 250)), (5, 6, 250), "what a command states comes first");
        assert_eq!(of(1, ("nqn.a:x", None), tcp, 4, (0, 0)), (3, 8, 0));
        assert_eq!(of(2, ("nqn.a:y", None), tcp, 1, (0, 0)), (9, 0, 0));
        assert_eq!(of(3, ("", Some(2)), user, 1, (0, 0)), (15, 7, 0));
    }

    #[test]
    fn commands_stay_or_cover_the_blocks_they_touched_and_lie_in_the_drive() {
        let read = |slba, blocks| request(SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks), None);
        let mut same = fit_to(vec![info(1_000, 512)]);
        let fitted = same.fit(&read(992, 8)).unwrap();
        assert_eq!((fitted.entry, fitted.mem.len(), fitted.offset), (read(992, 8).entry, 4_096, 992 * 512));
        assert_eq!((same.moved, same.shortened, same.left_out), (0, 0, 0));
        let mut coarse = fit_to(vec![info(100, 4_096)]);
        let fitted = coarse.fit(&read(7, 2)).unwrap();
        assert_eq!((fitted.entry.slba(), fitted.mem.len()), (0, 8_192), "it touches two blocks");
        let moved = coarse.fit(&read(8 * 150, 16)).unwrap();
        assert!(moved.entry.slba() + 2 <= 100 && coarse.moved == 1);
        let long = coarse.fit(&read(0, 8 * 70)).unwrap();
        assert_eq!((long.mem.len(), coarse.shortened), (64 * 4_096, 1));
        let far = request(SubmissionEntry::blocks(IoOpcode::READ, 1, u64::MAX, 1), None);
        assert!(coarse.fit(&far).is_none() && coarse.left_out == 1, "no drive has such an address");
    }

    #[test]
    fn ranges_are_fitted_and_commands_that_say_nothing_are_left_out() {
        let mut fit = fit_to(vec![info(100, 4_096)]);
        let range =
            |slba: u64, blocks: u32| DsmRange { slba: slba.into(), blocks: blocks.into(), ..DsmRange::default() };
        let ranges = [range(8, 16), range(0, 0)];
        let trim = SubmissionEntry::deallocate(1, 2);
        let fitted = fit.fit(&request(trim, Some(ranges.as_bytes().to_vec()))).unwrap();
        assert_eq!(fitted.mem.to_vec(), [range(1, 2), range(0, 0)].as_bytes());
        assert!(fit.fit(&request(trim, None)).is_none(), "its ranges are not recorded");
        assert!(fit.fit(&request(SubmissionEntry::io(IoOpcode::RESERVATION_ACQUIRE, 1), None)).is_none());
        let compare = SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, 8);
        assert_eq!(IoOpcode(fit.fit(&request(compare, None)).unwrap().entry.opcode), IoOpcode::READ);
        assert_eq!(fit.left_out, 2);
    }
}
