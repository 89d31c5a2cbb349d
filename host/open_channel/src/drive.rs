//! An open-channel drive, as its host uses it.

use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use nandscape_drive::mem::Listed;
use nandscape_drive::{Completion, Drive, HostMem, Issuer};
use nandscape_sim::Sim;
use nandscape_wire_nvme::io::{CopyRange, DsmRange};
use nandscape_wire_nvme::open_channel::{
    self as oc, CHUNK_CLOSED, CHUNK_FREE, CHUNK_LOG, CHUNK_OFFLINE, CHUNK_OPEN, ChunkDescriptor, ChunkNotification,
    GEOMETRY, MAX_VECTOR, NOTIFICATION_LOG,
};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::geometry::Geometry;
use crate::order::{DieOrder, DieUse};
use crate::rows::{Row, rows};
use crate::turns::{Turn, Turns};

/// Bytes of a log that are read by one command.
const LOG_PART: u64 = 4_096;
/// Source ranges of one Copy: NR has 8 bits, and the drives here take this many (MSRC).
const SOURCES: usize = 128;

/// Which commands are used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Means {
    /// Vector commands.
    Vector,
    /// Commands on blocks in a row.
    Rows,
}

impl Means {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Means::Vector => "vectors",
            Means::Rows => "rows",
        }
    }
}

/// A command that failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{status}")]
pub struct Error {
    /// Why.
    pub status: Status,
    /// The addresses at fault, as reported by the drive: one bit each, from the first on.
    pub which: u64,
}

/// A chunk, as the drive reports it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChunkInfo {
    /// Its first address.
    pub address: u64,
    /// Its state: one of the constants of [`nandscape_wire_nvme::open_channel`].
    pub state: u8,
    /// Its wear, from 0 (new) to 255.
    pub wear: u8,
    /// Logical blocks that it has.
    pub blocks: u64,
    /// Logical blocks that are written.
    pub written: u64,
}

/// See the file.
pub struct OpenChannel {
    issuer: Issuer,
    admin: Rc<dyn Drive>,
    drive: Rc<dyn Drive>,
    geometry: Geometry,
    means: Means,
    /// The order of commands of a die; `None` if they are sent at once.
    turns: Option<Rc<Turns>>,
}

/// A command that moves data, its memory, and its addresses.
type OnData<'a> = (SubmissionEntry, HostMem, &'a [u64]);

/// Waits for all commands: the first failure.
async fn ended(commands: impl Iterator<Item = impl Future<Output = Completion>>) -> Result<(), Error> {
    let mut outcome = Ok(());
    for command in commands {
        let ended = Error::of(&command.await);
        outcome = outcome.and(ended);
    }
    outcome
}

/// The number of the first sources that one Copy takes: whole minimum writes of `unit` blocks.
fn copied_together(from: &[u64], unit: usize) -> usize {
    match rows(from, u16::MAX.into()).get(SOURCES) {
        None => from.len(),
        Some(beyond) => (beyond.at / unit * unit).max(unit.min(from.len())),
    }
}

/// Waits for all concurrent parts of a command; returns the first failure, in their order.
async fn all(parts: Vec<impl Future<Output = Result<(), Error>>>) -> Result<(), Error> {
    let mut parts: Vec<_> = parts.into_iter().map(|part| (Box::pin(part), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_pending = false;
        for (part, ended) in &mut parts {
            if ended.is_none() {
                match part.as_mut().poll(context) {
                    Poll::Ready(result) => *ended = Some(result),
                    Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    parts.into_iter().filter_map(|(_, ended)| ended).collect()
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error { status, which: 0 }
    }
}

impl Error {
    fn of(ended: &Completion) -> Result<(), Error> {
        let which = u64::from(ended.dw1) << 32 | u64::from(ended.dw0);
        if ended.status.is_success() { Ok(()) } else { Err(Error { status: ended.status.meaning(), which }) }
    }
}

impl OpenChannel {
    /// Opens a drive, whose admin commands go through `admin`.
    ///
    /// # Errors
    /// The drive reports no geometry: it is not an open-channel drive. Command Size Limit Exceeded when its minimum
    /// write does not fit one command of these means: it could not be written.
    pub async fn open(
        sim: &Sim,
        admin: Rc<dyn Drive>,
        drive: Rc<dyn Drive>,
        means: Means,
    ) -> Result<OpenChannel, Error> {
        let issuer = Issuer::new(sim);
        let entry = SubmissionEntry { nsid: drive.info().nsid.into(), ..SubmissionEntry::admin(GEOMETRY) };
        let mem = HostMem::zeroed(size_of::<oc::Geometry>());
        Error::of(&issuer.execute(&*admin, entry, mem.clone()).await)?;
        let data = oc::Geometry::read_from_bytes(&mem.to_vec()).expect("it has the size");
        let geometry = Geometry::of(&data).ok_or(Status::INVALID_FIELD)?;
        let host = OpenChannel { issuer, admin, drive, geometry, means, turns: None };
        if host.most() == 0 { Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED.into()) } else { Ok(host) }
    }

    /// The same for a drive whose geometry is known from [`OpenChannel::open`], without a command.
    pub fn with_geometry(
        sim: &Sim,
        (admin, drive): (Rc<dyn Drive>, Rc<dyn Drive>),
        geometry: Geometry,
        means: Means,
    ) -> OpenChannel {
        OpenChannel { issuer: Issuer::new(sim), admin, drive, geometry, means, turns: None }
    }

    /// Sets an order for the commands of each die. Commands that move data are split by dies; copies and resets count
    /// as writes of the dies that they write or reset.
    #[must_use]
    pub fn with_order(self, sim: &Sim, order: Box<dyn DieOrder>) -> OpenChannel {
        let dies = self.geometry.groups * self.geometry.pus;
        OpenChannel { turns: Some(Turns::new(sim, dies, order)), ..self }
    }

    /// Selects other commands.
    ///
    /// # Errors
    /// Command Size Limit Exceeded when the minimum write of the drive does not fit one of these commands.
    pub fn with_means(self, means: Means) -> Result<OpenChannel, Error> {
        let host = OpenChannel { means, ..self };
        if host.most() == 0 { Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED.into()) } else { Ok(host) }
    }

    /// The commands that it uses.
    pub fn means(&self) -> Means {
        self.means
    }

    /// Whether a power cut can undo writes that have ended: [`OpenChannel::flush`] makes them durable.
    pub fn has_volatile_cache(&self) -> bool {
        self.drive.info().volatile_cache
    }

    /// The issuer of its commands.
    pub(crate) fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Its queue for I/O.
    pub(crate) fn drive(&self) -> &dyn Drive {
        &*self.drive
    }

    /// Its geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Bytes of a logical block.
    pub fn block_bytes(&self) -> usize {
        self.drive.info().lba_bytes as usize
    }

    /// All chunks, in the order of [`Geometry::chunk_places`].
    ///
    /// # Errors
    /// The status of a command that failed.
    pub async fn report(&self) -> Result<Vec<ChunkInfo>, Error> {
        let chunks = self.geometry.groups * self.geometry.pus * self.geometry.chunks;
        self.report_of(0, chunks).await
    }

    /// `count` chunks from number `first` on.
    ///
    /// # Errors
    /// The status of a command that failed.
    pub async fn report_of(&self, first: u32, count: u32) -> Result<Vec<ChunkInfo>, Error> {
        let bytes = size_of::<ChunkDescriptor>() as u64;
        let log = self.log(CHUNK_LOG, u64::from(first) * bytes, u64::from(count) * bytes).await?;
        let info = |bytes: &[u8]| {
            let chunk = ChunkDescriptor::read_from_bytes(bytes).expect("a descriptor's bytes");
            ChunkInfo {
                address: chunk.slba.get(),
                state: chunk.cs & (CHUNK_FREE | CHUNK_CLOSED | CHUNK_OPEN | CHUNK_OFFLINE),
                wear: chunk.wli,
                blocks: chunk.cnlb.get(),
                written: chunk.wp.get(),
            }
        };
        Ok(log.chunks_exact(bytes as usize).map(info).collect())
    }

    /// The notifications after number `seen`, the oldest first. A drive keeps only the latest: if it had to drop
    /// some, the first number exceeds `seen` by more than one.
    ///
    /// # Errors
    /// The status of a failed command.
    pub async fn notifications(&self, seen: u64) -> Result<Vec<ChunkNotification>, Error> {
        let (mut new, mut before): (Vec<ChunkNotification>, u64) = (Vec::new(), u64::MAX);
        for at in (0..).step_by(LOG_PART as usize) {
            let part = self.log(NOTIFICATION_LOG, at, LOG_PART).await?;
            for bytes in part.chunks_exact(size_of::<ChunkNotification>()) {
                let notice = ChunkNotification::read_from_bytes(bytes).expect("a notification's bytes");
                // Entries after the last notification are zeros, and notifications count from 1.
                if notice.nc.get() <= seen {
                    new.reverse();
                    return Ok(new);
                }
                // A notification since the previous part shifts all others, so some are read again.
                if notice.nc.get() < before {
                    before = notice.nc.get();
                    new.push(notice);
                }
            }
        }
        unreachable!("the parts do not end")
    }

    /// Waits until the drive has a notification that was not read.
    ///
    /// # Errors
    /// The status of the command.
    pub async fn notified(&self) -> Result<(), Error> {
        let entry = SubmissionEntry::admin(nandscape_wire_nvme::AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
        loop {
            let ended = self.issuer.execute(&*self.admin, entry, HostMem::none()).await;
            Error::of(&ended)?;
            if (ended.dw0 >> 16) as u8 == NOTIFICATION_LOG {
                return Ok(());
            }
        }
    }

    async fn log(&self, lid: u8, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let mut log = Vec::with_capacity(bytes as usize);
        for at in (0..bytes).step_by(LOG_PART as usize) {
            let part = LOG_PART.min(bytes - at);
            let mem = HostMem::zeroed(part as usize);
            let offset = offset + at;
            let entry = SubmissionEntry {
                cdw12: (offset as u32).into(),
                cdw13: ((offset >> 32) as u32).into(),
                ..SubmissionEntry::get_log_page(lid, self.drive.info().nsid, part as u32)
            };
            Error::of(&self.issuer.execute(&*self.admin, entry, mem.clone()).await)?;
            log.extend(mem.to_vec());
        }
        Ok(log)
    }

    /// Reads logical blocks.
    ///
    /// # Errors
    /// That of the first command that failed.
    pub async fn read(&self, addresses: &[u64]) -> Result<Vec<u8>, Error> {
        let mem = HostMem::zeroed(addresses.len() * self.block_bytes());
        self.read_into(addresses, &mem).await?;
        Ok(mem.to_vec())
    }

    /// Reads logical blocks into memory; [`HostMem::none`] if the data is not needed.
    ///
    /// # Errors
    /// Those of the first command that failed.
    ///
    /// # Panics
    /// When the memory is too small.
    pub async fn read_into(&self, addresses: &[u64], mem: &HostMem) -> Result<(), Error> {
        self.on_data(IoOpcode::READ, oc::VECTOR_READ, addresses, mem).await
    }

    /// As [`OpenChannel::write`], from memory; [`HostMem::none`] if the data is irrelevant.
    ///
    /// # Errors
    /// Those of the first command that failed.
    ///
    /// # Panics
    /// When the memory is too small.
    pub async fn write_from(&self, addresses: &[u64], mem: &HostMem) -> Result<(), Error> {
        self.on_data(IoOpcode::WRITE, oc::VECTOR_WRITE, addresses, mem).await
    }

    /// Writes logical blocks: of each chunk from its write pointer on, in multiples of [`Geometry::ws_min`].
    ///
    /// # Errors
    /// That of the first command that failed.
    ///
    /// # Panics
    /// When the data is not that of so many blocks.
    pub async fn write(&self, addresses: &[u64], data: &[u8]) -> Result<(), Error> {
        assert_eq!(data.len(), addresses.len() * self.block_bytes(), "the data of {} blocks", addresses.len());
        self.on_data(IoOpcode::WRITE, oc::VECTOR_WRITE, addresses, &HostMem::from_bytes(data)).await
    }

    /// Waits until all writes that have ended are on flash, if the drive has a volatile write cache.
    ///
    /// # Errors
    /// Data of such a write is lost: the chunk's report shows how far the chunk was written.
    pub async fn flush(&self) -> Result<(), Error> {
        let entry = SubmissionEntry::io(IoOpcode::FLUSH, self.drive.info().nsid);
        Error::of(&self.issuer.execute(&*self.drive, entry, HostMem::none()).await)
    }

    /// Blocks of one command: whole minimum writes.
    fn most(&self) -> u32 {
        let limit = match self.means {
            Means::Vector => MAX_VECTOR,
            Means::Rows => u16::MAX.into(),
        };
        let most = self.drive.info().max_blocks.min(limit);
        most / self.geometry.ws_min * self.geometry.ws_min
    }

    async fn on_data(&self, row: IoOpcode, vector: IoOpcode, addresses: &[u64], mem: &HostMem) -> Result<(), Error> {
        let Some(turns) = &self.turns else { return self.at_once(row, vector, addresses, mem).await };
        let command = if row == IoOpcode::WRITE { DieUse::Write } else { DieUse::Read };
        let (mut parts, mut rest) = (Vec::new(), addresses);
        while !rest.is_empty() {
            let die = self.die_of(rest[0]);
            let blocks = rest.iter().take_while(|address| self.die_of(**address) == die).count();
            let (part, others) = rest.split_at(blocks);
            let at = (addresses.len() - rest.len()) * self.block_bytes();
            let (mem, mut turn) = (mem.part(at, blocks * self.block_bytes()), turns.take(die, command));
            parts.push(async move {
                turn.come().await;
                self.at_once(row, vector, part, &mem).await
            });
            rest = others;
        }
        all(parts).await
    }

    /// The die number of an address; 0 for an invalid address, which the drive rejects.
    fn die_of(&self, address: u64) -> u32 {
        self.geometry.place(address).map_or(0, |place| place.group * self.geometry.pus + place.pu)
    }

    /// The turns of a command that writes to these dies or resets their chunks: it queues on all of them first.
    async fn turns_of(&self, addresses: &[u64]) -> Vec<Turn> {
        let Some(turns) = &self.turns else { return Vec::new() };
        let dies: BTreeSet<u32> = addresses.iter().map(|address| self.die_of(*address)).collect();
        let mut places: Vec<Turn> = dies.into_iter().map(|die| turns.take(die, DieUse::Write)).collect();
        for turn in &mut places {
            turn.come().await;
        }
        places
    }

    /// Commands are sent at once, except writes to the same chunk: a drive may have several queues, without an order
    /// among them.
    async fn at_once(&self, row: IoOpcode, vector: IoOpcode, addresses: &[u64], mem: &HostMem) -> Result<(), Error> {
        let commands = match self.means {
            Means::Rows => self.by_rows(row, addresses, mem),
            Means::Vector => self.by_vectors(vector, addresses, mem),
        };
        let (mut under_way, mut chunks) = (Vec::new(), BTreeSet::new());
        for (entry, mem, part) in commands {
            let places = part.iter().filter_map(|address| self.geometry.place(*address));
            let of_command: BTreeSet<u32> = places.map(|place| self.geometry.chunk_number(place)).collect();
            if row == IoOpcode::WRITE && !chunks.is_disjoint(&of_command) {
                // After a failure, the rest no longer begins at the write pointer.
                ended(under_way.drain(..)).await?;
                chunks.clear();
            }
            chunks.extend(of_command);
            under_way.push(self.issuer.execute(&*self.drive, entry, mem));
        }
        ended(under_way.into_iter()).await
    }

    fn by_rows<'a>(&self, opcode: IoOpcode, addresses: &'a [u64], mem: &HostMem) -> Vec<OnData<'a>> {
        let (nsid, bytes) = (self.drive.info().nsid, self.block_bytes());
        let of_row = |Row { first, blocks, at }: Row| {
            let mem = mem.part(at * bytes, blocks as usize * bytes);
            (SubmissionEntry::blocks(opcode, nsid, first, blocks), mem, &addresses[at..at + blocks as usize])
        };
        rows(addresses, self.most()).into_iter().map(of_row).collect()
    }

    fn by_vectors<'a>(&self, opcode: IoOpcode, addresses: &'a [u64], mem: &HostMem) -> Vec<OnData<'a>> {
        let (nsid, bytes, most) = (self.drive.info().nsid, self.block_bytes(), self.most() as usize);
        let of_part = |(number, part): (usize, &'a [u64])| {
            let (list, mem) = self.listed(&[part], mem.part(number * most * bytes, part.len() * bytes));
            (SubmissionEntry::vector(opcode, nsid, list[0], part.len() as u32), mem, part)
        };
        addresses.chunks(most).enumerate().map(of_part).collect()
    }

    /// The address fields of a vector command, and the memory of the command.
    fn listed(&self, lists: &[&[u64]], data: HostMem) -> (Vec<u64>, HostMem) {
        let memory = |list: &&[u64]| {
            let bytes: Vec<u8> = list.iter().flat_map(|address| address.to_le_bytes()).collect();
            HostMem::from_bytes(&bytes)
        };
        let fields = lists.iter().zip(0..).map(|(list, number)| if list.len() == 1 { list[0] } else { number });
        (fields.collect(), HostMem::over(Rc::new(Listed::new(data, lists.iter().map(memory).collect()))))
    }

    /// Resets the chunks of addresses; with rows, addresses are those of the first blocks.
    ///
    /// # Errors
    /// Those of the first command that failed. That command reset no chunk, except chunks that are offline now.
    pub async fn reset(&self, addresses: &[u64]) -> Result<(), Error> {
        let (nsid, blocks) = (self.drive.info().nsid, self.geometry.sectors);
        for part in addresses.chunks(MAX_VECTOR as usize) {
            let (entry, mem) = match self.means {
                Means::Vector => {
                    let (list, mem) = self.listed(&[part], HostMem::none());
                    (SubmissionEntry::vector(oc::VECTOR_RESET, nsid, list[0], part.len() as u32), mem)
                }
                Means::Rows => {
                    let range =
                        |first: &u64| DsmRange { slba: (*first).into(), blocks: blocks.into(), ..DsmRange::default() };
                    let ranges: Vec<DsmRange> = part.iter().map(range).collect();
                    (SubmissionEntry::deallocate(nsid, part.len() as u32), HostMem::from_bytes(ranges.as_bytes()))
                }
            };
            let _turns = self.turns_of(part).await;
            Error::of(&self.issuer.execute(&*self.drive, entry, mem).await)?;
        }
        Ok(())
    }

    /// Frees a chunk in the reported state, unless it is free. Its data is lost. If the drive does not reset open
    /// chunks (MCCAP bit 2), an open chunk is first written to its end. Returns the number of blocks written.
    ///
    /// # Errors
    /// Those of the first command that failed.
    pub async fn empty(&self, chunk: &ChunkInfo) -> Result<u64, Error> {
        if chunk.state == CHUNK_FREE {
            return Ok(0);
        }
        let is_early = chunk.state == CHUNK_OPEN && self.geometry.capabilities & oc::MCCAP_EARLY_RESETS == 0;
        let from = if is_early { chunk.written } else { chunk.blocks };
        let addresses: Vec<u64> = (from..chunk.blocks).map(|sector| chunk.address + sector).collect();
        // A part at a time: a chunk may have many megabytes.
        for part in addresses.chunks(self.most() as usize) {
            self.write_from(part, &HostMem::zeroed(part.len() * self.block_bytes())).await?;
        }
        self.reset(&[chunk.address]).await?;
        Ok(addresses.len() as u64)
    }

    /// Copies blocks inside the drive: the first of `from` to the first of `to`, and so on. The destinations are
    /// written as by [`OpenChannel::write`]. Copies by rows have contiguous destinations.
    ///
    /// # Errors
    /// Those of the first command that failed.
    ///
    /// # Panics
    /// When the numbers of sources and destinations differ.
    pub async fn copy(&self, from: &[u64], to: &[u64]) -> Result<(), Error> {
        assert_eq!(from.len(), to.len(), "a destination for each source");
        match self.means {
            Means::Vector => {
                let most = self.most() as usize;
                for (from, to) in from.chunks(most).zip(to.chunks(most)) {
                    self.copy_vector(from, to).await?;
                }
            }
            Means::Rows => {
                for row in rows(to, self.most()) {
                    let (mut from, mut to) = (&from[row.at..row.at + row.blocks as usize], row.first);
                    while !from.is_empty() {
                        let (part, rest) = from.split_at(copied_together(from, self.geometry.ws_min as usize));
                        self.copy_row(part, to).await?;
                        (from, to) = (rest, to + part.len() as u64);
                    }
                }
            }
        }
        Ok(())
    }

    async fn copy_vector(&self, from: &[u64], to: &[u64]) -> Result<(), Error> {
        let (list, mem) = self.listed(&[from, to], HostMem::none());
        let _turns = self.turns_of(to).await;
        let entry = SubmissionEntry {
            cdw14: (list[1] as u32).into(),
            cdw15: ((list[1] >> 32) as u32).into(),
            ..SubmissionEntry::vector(oc::VECTOR_COPY, self.drive.info().nsid, list[0], from.len() as u32)
        };
        Error::of(&self.issuer.execute(&*self.drive, entry, mem).await)
    }

    /// One Copy with a contiguous destination, and at most [`SOURCES`] rows as sources.
    async fn copy_row(&self, from: &[u64], to: u64) -> Result<(), Error> {
        let range = |row: Row| CopyRange {
            slba: row.first.into(),
            nlb_z: (row.blocks as u16 - 1).into(),
            ..CopyRange::default()
        };
        let ranges: Vec<CopyRange> = rows(from, u32::from(u16::MAX)).into_iter().map(range).collect();
        let _turns = self.turns_of(&[to]).await;
        let entry = SubmissionEntry::copy(self.drive.info().nsid, to, ranges.len() as u32, 0);
        Error::of(&self.issuer.execute(&*self.drive, entry, HostMem::from_bytes(ranges.as_bytes())).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_as_many_rows_as_it_has_ranges_and_whole_minimum_writes() {
        let scattered: Vec<u64> = (0..300).map(|number| number * 2).collect();
        assert_eq!(copied_together(&scattered, 12), 120);
        assert_eq!(copied_together(&scattered[240..], 12), 60);
        let row: Vec<u64> = (0..1_000).collect();
        assert_eq!(copied_together(&row, 12), 1_000);
        assert_eq!(copied_together(&scattered, 144), 144, "the drive refuses it");
    }
}
