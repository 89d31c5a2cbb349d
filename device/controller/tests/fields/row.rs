//! A command with one wrong field, and its expected end.

use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::io::CopyRange;
use nandscape_wire_nvme::log::{self, ErrorInformation};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Parameter, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::common::{Pair, config, with};

/// See the file.
pub(crate) struct Row {
    what: &'static str,
    queue: QueueId,
    entry: SubmissionEntry,
    data: Vec<u8>,
    right: Status,
    /// Parameter Error Location of the error log's entry.
    parameter: Parameter,
    /// How often the command is sent first, without waiting for it.
    outstanding: u32,
    /// CDW10 of an earlier Format NVM.
    format: Option<u32>,
}

fn row(queue: QueueId, entry: SubmissionEntry, bytes: usize) -> Row {
    let parameter = Parameter::NONE;
    let right = Status::SUCCESS;
    Row { what: "", queue, entry, data: vec![0; bytes], right, parameter, outstanding: 0, format: None }
}

/// A command over blocks of the namespace, with data for them.
pub(crate) fn io(opcode: IoOpcode, slba: u64, blocks: u32) -> Row {
    row(QueueId(1), SubmissionEntry::blocks(opcode, 1, slba, blocks), blocks as usize * 512)
}

/// Copy of ranges of (first block, blocks).
pub(crate) fn copy(to: u64, ranges: &[(u64, u16)]) -> Row {
    let range = |(slba, blocks): &(u64, u16)| CopyRange {
        slba: (*slba).into(),
        nlb_z: (blocks - 1).into(),
        ..CopyRange::default()
    };
    let list: Vec<CopyRange> = ranges.iter().map(range).collect();
    row(QueueId(1), SubmissionEntry::copy(1, to, ranges.len() as u32, 0), 0).data(list.as_bytes())
}

/// An admin command with a page of data.
pub(crate) fn admin(opcode: AdminOpcode) -> Row {
    row(QueueId::ADMIN, SubmissionEntry::admin(opcode), 4_096)
}

pub(crate) fn log_page(log: u8, bytes: u32) -> Row {
    row(QueueId::ADMIN, SubmissionEntry::get_log_page(log, 0, bytes), bytes as usize)
}

impl Row {
    /// Names the field.
    pub(crate) fn is(self, what: &'static str) -> Row {
        Row { what, ..self }
    }

    pub(crate) fn flags(mut self, flags: u8) -> Row {
        self.entry.flags = flags;
        self
    }

    pub(crate) fn nsid(mut self, nsid: u32) -> Row {
        self.entry.nsid = nsid.into();
        self
    }

    /// Sets a command dword.
    pub(crate) fn dword(mut self, number: usize, value: u32) -> Row {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(self.entry.as_bytes());
        bytes[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self.entry = SubmissionEntry::read_from_bytes(&bytes).expect("it has the size");
        self
    }

    /// The bytes of its data.
    pub(crate) fn bytes(self, bytes: usize) -> Row {
        Row { data: vec![0; bytes], ..self }
    }

    pub(crate) fn data(self, data: &[u8]) -> Row {
        Row { data: data.to_vec(), ..self }
    }

    pub(crate) fn filled(mut self, value: u8) -> Row {
        self.data.fill(value);
        self
    }

    /// Formats the namespace first.
    pub(crate) fn formatted(self, cdw10: u32) -> Row {
        Row { format: Some(cdw10), ..self }
    }

    /// Sends the command `times` times first.
    pub(crate) fn after(self, times: u32) -> Row {
        Row { outstanding: times, ..self }
    }

    /// Expects a final failure with an entry in the error log.
    pub(crate) fn fails(self, status: Status) -> Row {
        Row { right: status.final_().with_more(), ..self }
    }

    /// The error log names the field that begins at a bit of a command dword.
    pub(crate) fn at(self, dword: u16, bit: u16) -> Row {
        Row { parameter: Parameter::at(dword, bit), ..self }
    }

    /// Expects a failure that permits a retry, with an entry in the error log.
    pub(crate) fn retries(self, status: Status) -> Row {
        Row { right: status.with_more(), ..self }
    }

    /// Expects a failure that permits a retry, without an entry in the error log.
    pub(crate) fn ends(self, status: Status) -> Row {
        Row { right: status, ..self }
    }

    pub(crate) fn succeeds(self) -> Row {
        Row { right: Status::SUCCESS, ..self }
    }
}

/// Sends the command of each row to a new drive.
pub(crate) fn check(rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for row in rows {
        let (status, parameter) = with(config(), async |sim, drive| {
            let pairs = [0, 1].map(|id| Pair::new(sim, drive, id, 32));
            let pair = &pairs[usize::from(row.queue.0)];
            let mem = || if row.data.is_empty() { HostMem::none() } else { HostMem::from_bytes(&row.data) };
            if let Some(cdw10) = row.format {
                let format = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
                let format = SubmissionEntry { nsid: 1.into(), cdw10: cdw10.into(), ..format };
                pairs[0].put(format, HostMem::none());
                pairs[0].ring();
                sim.sleep(Span::from_ms(100)).await;
                assert_eq!(pairs[0].reap().map(|posted| posted.entry.status()), Some(Status::SUCCESS), "{}", row.what);
                pairs[0].release();
            }
            for _ in 0..=row.outstanding {
                pair.put(row.entry, mem());
            }
            pair.ring();
            sim.sleep(Span::from_ms(100)).await;
            let status = pair.reap().map(|posted| posted.entry.status());
            (status, newest_parameter(sim, &pairs[0]).await)
        });
        if status.is_some_and(Status::more) && parameter != row.parameter.bits() {
            let (what, right) = (row.what, row.parameter.bits());
            wrong.push(format!("{what}: the error log names the field {parameter:04x}h; right is {right:04x}h"));
        }
        if status != Some(row.right) {
            let bits = |status: Status| format!("{status}, DNR {}, More {}", status.do_not_retry(), status.more());
            let opcode = row.entry.opcode;
            let ended = status.map_or("no completion".to_owned(), bits);
            wrong.push(format!("opcode {opcode:02x}h, {}: {ended}; right is {}", row.what, bits(row.right)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parameter Error Location of the newest entry of the error log.
async fn newest_parameter(sim: &Sim, admin: &Pair) -> u16 {
    let page = HostMem::zeroed(size_of::<ErrorInformation>());
    admin.put(SubmissionEntry::get_log_page(log::ERROR_INFORMATION, 0, page.len() as u32), page.clone());
    admin.ring();
    sim.sleep(Span::from_ms(1)).await;
    let newest = ErrorInformation::read_from_bytes(&page.to_vec()).expect("it has the size");
    newest.parameter.get()
}
