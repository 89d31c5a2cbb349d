//! The simplest model of a namespace with metadata and of the end of each command. It computes the guard bit by bit from the
//! polynomial.

use std::collections::BTreeMap;

use nandscape_wire_nvme::Status;

/// The format of the namespace.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Index of the LBA format.
    pub(crate) index: u8,
    pub(crate) data: usize,
    pub(crate) metadata: usize,
    pub(crate) is_extended: bool,
    /// Type of protection information; 0 is none.
    pub(crate) kind: u8,
    pub(crate) is_first: bool,
}

/// The fields of a command.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Fields {
    pub(crate) prinfo: u8,
    pub(crate) reference: u32,
    pub(crate) application: u16,
    pub(crate) mask: u16,
}

/// A logical block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) data: Vec<u8>,
    pub(crate) metadata: Vec<u8>,
}

/// See the file.
pub(crate) struct Model {
    pub(crate) shape: Shape,
    blocks: BTreeMap<u64, Block>,
}

/// The CRC-16 of T10 DIF: x^16 + x^15 + x^11 + x^9 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1.
fn crc(bytes: impl Iterator<Item = u8>) -> u16 {
    bytes.fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x8bb7,
        })
    })
}

impl Shape {
    fn place(&self) -> usize {
        if self.is_first { 0 } else { self.metadata - 8 }
    }

    /// The controller inserts protection information or takes it out.
    pub(crate) fn acts(&self, fields: Fields) -> bool {
        self.kind > 0 && fields.prinfo & 8 != 0
    }

    /// No metadata is transferred.
    pub(crate) fn strips(&self, fields: Fields) -> bool {
        self.acts(fields) && self.metadata == 8
    }

    fn guard(&self, block: &Block) -> u16 {
        crc(block.data.iter().chain(&block.metadata[..self.place()]).copied())
    }

    fn reference(&self, fields: Fields, index: usize) -> u32 {
        if self.kind == 3 { fields.reference } else { fields.reference.wrapping_add(index as u32) }
    }

    /// Inserts correct protection information into the block `index` blocks after the first.
    pub(crate) fn protect(&self, fields: Fields, index: usize, block: &mut Block) {
        let mut bytes = self.guard(block).to_be_bytes().to_vec();
        bytes.extend(fields.application.to_be_bytes());
        bytes.extend(self.reference(fields, index).to_be_bytes());
        block.metadata[self.place()..self.place() + 8].copy_from_slice(&bytes);
    }

    /// An unwritten block.
    pub(crate) fn blank(&self) -> Block {
        let mut block = Block { data: vec![0; self.data], metadata: vec![0; self.metadata] };
        if self.kind > 0 {
            block.metadata[self.place()..self.place() + 8].fill(0xff);
        }
        block
    }

    fn check_block(&self, fields: Fields, index: usize, block: &Block) -> Result<(), Status> {
        let bytes = &block.metadata[self.place()..self.place() + 8];
        let guard = u16::from_be_bytes([bytes[0], bytes[1]]);
        let application = u16::from_be_bytes([bytes[2], bytes[3]]);
        let reference = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        if application == 0xffff && (self.kind < 3 || reference == 0xffff_ffff) {
            return Ok(());
        }
        if fields.prinfo & 4 != 0 && guard != self.guard(block) {
            return Err(Status::GUARD_CHECK);
        }
        if fields.prinfo & 2 != 0 && application & fields.mask != fields.application & fields.mask {
            return Err(Status::APPLICATION_TAG_CHECK);
        }
        if fields.prinfo & 1 != 0 && reference != self.reference(fields, index) {
            return Err(Status::REFERENCE_TAG_CHECK);
        }
        Ok(())
    }

    fn check(&self, fields: Fields, blocks: &[Block]) -> Result<(), Status> {
        let each = || blocks.iter().enumerate();
        if self.kind == 0 {
            Ok(())
        } else {
            each().try_for_each(|(index, block)| self.check_block(fields, index, block))
        }
    }

    fn check_fields(&self, fields: Fields, slba: u64) -> Result<(), Status> {
        let wrong = self.kind == 3 || self.kind == 1 && fields.reference != slba as u32;
        if wrong && fields.prinfo & 1 != 0 { Err(Status::INVALID_PROTECTION) } else { Ok(()) }
    }
}

impl Model {
    pub(crate) fn new(shape: Shape) -> Model {
        Model { shape, blocks: BTreeMap::new() }
    }

    fn get(&self, slba: u64, count: u64) -> Vec<Block> {
        (slba..slba + count).map(|lba| self.blocks.get(&lba).cloned().unwrap_or_else(|| self.shape.blank())).collect()
    }

    fn put(&mut self, slba: u64, blocks: Vec<Block>) {
        self.blocks.extend((slba..).zip(blocks));
    }

    pub(crate) fn read(&self, slba: u64, count: u64, fields: Fields) -> Result<Vec<Block>, Status> {
        self.shape.check_fields(fields, slba)?;
        let blocks = self.get(slba, count);
        self.shape.check(fields, &blocks)?;
        Ok(blocks)
    }

    /// The blocks as they are written.
    fn to_write(&self, fields: Fields, mut blocks: Vec<Block>) -> Result<Vec<Block>, Status> {
        match self.shape.acts(fields) {
            true => (0..).zip(&mut blocks).for_each(|(index, block)| self.shape.protect(fields, index, block)),
            false => self.shape.check(fields, &blocks)?,
        }
        Ok(blocks)
    }

    pub(crate) fn write(&mut self, slba: u64, fields: Fields, blocks: Vec<Block>) -> Result<(), Status> {
        self.shape.check_fields(fields, slba)?;
        let blocks = self.to_write(fields, blocks)?;
        self.put(slba, blocks);
        Ok(())
    }

    pub(crate) fn compare(&self, slba: u64, fields: Fields, others: &[Block]) -> Result<(), Status> {
        let own = self.read(slba, others.len() as u64, fields)?;
        if !self.shape.strips(fields) {
            self.shape.check(fields, others)?;
        }
        let visible = |block: &Block| {
            let mut block = block.clone();
            if self.shape.kind > 0 {
                block.metadata.drain(self.shape.place()..self.shape.place() + 8);
            }
            block
        };
        let is_same = own.iter().map(visible).eq(others.iter().map(visible));
        if is_same { Ok(()) } else { Err(Status::COMPARE_FAILURE) }
    }

    pub(crate) fn write_zeroes(&mut self, slba: u64, count: u64, fields: Fields) -> Result<(), Status> {
        self.shape.check_fields(fields, slba)?;
        if self.shape.kind > 0 && fields.prinfo & 7 != 0 {
            return Err(Status::INVALID_PROTECTION);
        }
        let mut blocks = vec![self.shape.blank(); count as usize];
        if self.shape.acts(fields) {
            blocks = self.to_write(fields, blocks)?;
        }
        self.put(slba, blocks);
        Ok(())
    }

    pub(crate) fn deallocate(&mut self, slba: u64, count: u64) {
        self.put(slba, vec![self.shape.blank(); count as usize]);
    }

    /// Copies ranges of (first block, blocks, fields of the read) to `to`.
    pub(crate) fn copy(&mut self, to: u64, write: Fields, ranges: &[(u64, u64, Fields)]) -> Result<(), Status> {
        if self.shape.kind > 0 && ranges.iter().any(|(.., read)| (read.prinfo ^ write.prinfo) & 8 != 0) {
            return Err(Status::INVALID_FIELD);
        }
        self.shape.check_fields(write, to)?;
        ranges.iter().try_for_each(|(slba, _, read)| self.shape.check_fields(*read, *slba))?;
        let mut all = Vec::new();
        for (slba, count, read) in ranges {
            all.extend(self.read(*slba, *count, *read)?);
        }
        let all = self.to_write(write, all)?;
        self.put(to, all);
        Ok(())
    }
}

#[test]
fn the_check_value_of_the_crc_is_right() {
    assert_eq!(crc(b"123456789".iter().copied()), 0xd0db);
}
