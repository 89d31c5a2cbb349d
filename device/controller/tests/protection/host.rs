//! A host with memory by address, so that its commands have metadata pointers, and a drive whose namespace it has formatted.

use std::rc::Rc;

use nandscape_drive::conformance::Host;
use nandscape_drive::mem::{DataPointer, Dma};
use nandscape_drive::testing::flat::FlatMemory;
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::Drive;
use crate::model::{Block, Fields, Shape};

/// Bytes of memory.
const MEMORY: usize = 1 << 20;
/// Where the data of a command lies, its metadata, and the descriptor of that.
const DATA: u64 = 0x1004;
const METADATA: u64 = 0xc_0008;
const DESCRIPTOR: u64 = 0xf_0000;

/// See the file.
pub(crate) struct Guest {
    pub(crate) shape: Shape,
    pub(crate) io: Host,
    flat: Rc<FlatMemory>,
    sim: Sim,
    /// The metadata pointer leads to a descriptor.
    pub(crate) describes_metadata: bool,
    /// Bytes of metadata that the command lacks.
    pub(crate) missing_metadata: u32,
    pub(crate) metadata_at: u64,
}

impl Guest {
    /// Formats the drive's namespace.
    pub(crate) async fn new(sim: &Sim, drive: &Drive, shape: Shape) -> Guest {
        let queue = |id| Host::new(sim, QueueDrive::new(sim, drive.clone(), QueueId(id), 32).unwrap());
        let cdw10 = u32::from(shape.index)
            | u32::from(shape.is_extended) << 4
            | u32::from(shape.kind) << 5
            | u32::from(shape.is_first) << 8;
        let format =
            SubmissionEntry { nsid: 1.into(), cdw10: cdw10.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
        assert_eq!(queue(0).execute(format, HostMem::none()).await.unwrap().status, Status::SUCCESS, "{shape:?}");
        let flat = FlatMemory::new(vec![0xa5; MEMORY]);
        let (describes_metadata, missing_metadata, metadata_at) = (false, 0, METADATA);
        let (io, sim) = (queue(1), sim.clone());
        Guest { shape, io, flat, sim, describes_metadata, missing_metadata, metadata_at }
    }

    /// The bytes at the data pointer, and those at the metadata pointer.
    fn bytes_of(&self, blocks: &[Block], fields: Fields) -> [Vec<u8>; 2] {
        let data = || blocks.iter().map(|block| block.data.clone()).collect::<Vec<_>>().concat();
        let metadata = || blocks.iter().map(|block| block.metadata.clone()).collect::<Vec<_>>().concat();
        match (self.shape.strips(fields), self.shape.is_extended) {
            (true, _) => [data(), Vec::new()],
            (false, false) => [data(), metadata()],
            (false, true) => {
                let both = blocks.iter().map(|block| [block.data.clone(), block.metadata.clone()].concat());
                [both.collect::<Vec<_>>().concat(), Vec::new()]
            }
        }
    }

    /// A command with its memory.
    fn with_memory(&self, mut entry: SubmissionEntry, [data, metadata]: [usize; 2]) -> (SubmissionEntry, HostMem) {
        entry = entry.with_sgl(SglDescriptor::new(SglType::DATA_BLOCK, DATA, data as u32));
        entry.metadata = self.metadata_at.into();
        if self.describes_metadata {
            entry.flags = 0b10 << 6;
            entry.metadata = DESCRIPTOR.into();
            let len = metadata as u32 - self.missing_metadata;
            let descriptor = SglDescriptor::new(SglType::DATA_BLOCK, self.metadata_at, len);
            self.flat.write(DESCRIPTOR, descriptor.as_bytes()).unwrap();
        }
        let dma: Rc<dyn Dma> = self.flat.clone();
        let mem = HostMem::over(Rc::new(DataPointer::new(&dma, &entry, 4_096).unwrap()));
        (SubmissionEntry { flags: 0, ..entry }, mem)
    }

    pub(crate) fn entry(opcode: IoOpcode, slba: u64, blocks: u32, fields: Fields) -> SubmissionEntry {
        let mut entry = SubmissionEntry::blocks(opcode, 1, slba, blocks);
        entry.cdw12 = (entry.cdw12.get() | u32::from(fields.prinfo) << 26).into();
        entry.cdw14 = fields.reference.into();
        entry.cdw15 = (u32::from(fields.application) | u32::from(fields.mask) << 16).into();
        entry
    }

    async fn execute(&self, entry: SubmissionEntry, mem: HostMem) -> Result<(), Status> {
        let ended = self.io.execute(entry, mem).await.unwrap();
        if ended.status.is_success() { Ok(()) } else { Err(ended.status.meaning()) }
    }

    /// A write or a comparison, prepared.
    pub(crate) fn to_drive(
        &self,
        entry: SubmissionEntry,
        fields: Fields,
        blocks: &[Block],
    ) -> (SubmissionEntry, HostMem) {
        let [data, metadata] = self.bytes_of(blocks, fields);
        self.flat.write(DATA, &data).unwrap();
        // Only as much as exists.
        let metadata_len = metadata.len().min(MEMORY - self.metadata_at as usize);
        self.flat.write(self.metadata_at, &metadata[..metadata_len]).unwrap();
        self.with_memory(entry, [data.len(), metadata.len()])
    }

    /// Write or Compare.
    pub(crate) async fn send(
        &self,
        opcode: IoOpcode,
        slba: u64,
        fields: Fields,
        blocks: &[Block],
    ) -> Result<(), Status> {
        let entry = Guest::entry(opcode, slba, blocks.len() as u32, fields);
        let (entry, mem) = self.to_drive(entry, fields, blocks);
        self.execute(entry, mem).await
    }

    /// Reads, and expects these blocks, byte for byte, and no other changes in memory.
    pub(crate) async fn read(&self, slba: u64, fields: Fields, expected: &[Block]) -> Result<(), Status> {
        let expected_bytes = self.bytes_of(expected, fields);
        let lens = expected_bytes.each_ref().map(Vec::len);
        self.flat.bytes.borrow_mut().fill(0x5a);
        let entry = Guest::entry(IoOpcode::READ, slba, expected.len() as u32, fields);
        let (entry, mem) = self.with_memory(entry, lens);
        self.execute(entry, mem).await?;
        let mut memory = self.flat.bytes.borrow_mut();
        for (at, expected) in [DATA, self.metadata_at].into_iter().zip(&expected_bytes) {
            let range = at as usize..at as usize + expected.len();
            assert!(memory[range.clone()] == expected[..], "block {slba} of {:?}", self.shape);
            memory[range].fill(0x5a);
        }
        memory[DESCRIPTOR as usize..DESCRIPTOR as usize + 16].fill(0x5a);
        assert!(memory.iter().all(|byte| *byte == 0x5a), "what lies beside the data has changed");
        Ok(())
    }

    /// Reads blocks. Their metadata is empty where the host gets none.
    pub(crate) async fn fetch(&self, slba: u64, count: u64, fields: Fields) -> Result<Vec<Block>, Status> {
        let Shape { data, metadata, is_extended, .. } = self.shape;
        let metadata = if self.shape.strips(fields) { 0 } else { metadata };
        let (count, beside) = (count as usize, if is_extended { 0 } else { metadata });
        let stride = data + metadata - beside;
        let entry = Guest::entry(IoOpcode::READ, slba, count as u32, fields);
        let (entry, mem) = self.with_memory(entry, [count * stride, count * beside]);
        self.execute(entry, mem).await?;
        let memory = self.flat.bytes.borrow();
        let block = |index: usize| {
            let (at, at_metadata) = (DATA as usize + index * stride, self.metadata_at as usize + index * metadata);
            let at_metadata = if is_extended { at + data } else { at_metadata };
            let part = |at: usize, len: usize| memory[at..at + len].to_vec();
            Block { data: part(at, data), metadata: part(at_metadata, metadata) }
        };
        Ok((0..count).map(block).collect())
    }

    pub(crate) async fn pause(&self, time: Span) {
        self.sim.sleep(time).await;
    }

    /// Verify, Write Zeroes.
    pub(crate) async fn command(&self, entry: SubmissionEntry) -> Result<(), Status> {
        self.execute(entry, HostMem::none()).await
    }

    /// A command with a list of ranges.
    pub(crate) async fn with_list(&self, entry: SubmissionEntry, list: &[u8]) -> Result<(), Status> {
        self.execute(entry, HostMem::from_bytes(list)).await
    }
}
