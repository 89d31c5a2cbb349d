//! The commands and fields that a drive takes, or that a layer passes to the drive below it. A front derives Identify, the effects log and
//! the rejected opcodes from them.

use nandscape_wire_nvme::identify::DLFEAT_WRITE_ZEROES;
use nandscape_wire_nvme::vendor::HINT_TIME;

/// The features of a drive beyond Read, Write and Flush.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Offers {
    /// Compare.
    pub compare: bool,
    /// Dataset Management.
    pub deallocate: bool,
    /// Write Zeroes.
    pub write_zeroes: bool,
    /// Verify.
    pub verify: bool,
    /// Write Uncorrectable.
    pub write_uncorrectable: bool,
    /// Copy. Without it, the controller copies by reads and writes.
    pub copy: bool,
    /// How deallocated blocks read (DLFEAT of Identify Namespace).
    pub dlfeat: u8,
    /// Bits of CDW2 that it honours ([`Capabilities`](nandscape_wire_nvme::vendor::Capabilities)), which are passed on with reads. The
    /// class and the tenant of every command are passed on.
    pub attributes: u32,
    /// Fields of completions that it fills, as there.
    pub hints: u32,
    /// Whether it honours the deadline of CDW3, which is then passed on with reads and writes.
    pub deadlines: bool,
}

impl Offers {
    /// What both of two drives have.
    pub fn of_both(self, other: Offers) -> Offers {
        Offers {
            compare: self.compare && other.compare,
            deallocate: self.deallocate && other.deallocate,
            write_zeroes: self.write_zeroes && other.write_zeroes,
            verify: self.verify && other.verify,
            write_uncorrectable: self.write_uncorrectable && other.write_uncorrectable,
            copy: self.copy && other.copy,
            dlfeat: if self.dlfeat == other.dlfeat { self.dlfeat } else { 0 },
            attributes: self.attributes & other.attributes,
            hints: self.hints & other.hints,
            deadlines: self.deadlines && other.deadlines,
        }
    }

    /// The offers of a layer that moves data to other addresses: neither Copy nor Write Uncorrectable, which it would have to split, and no
    /// deadlines, which the commands that it issues itself lack.
    #[must_use]
    pub fn placed(self) -> Offers {
        let dlfeat = self.dlfeat & !DLFEAT_WRITE_ZEROES;
        Offers { copy: false, write_uncorrectable: false, dlfeat, attributes: 0, hints: 0, deadlines: false, ..self }
    }

    /// Of a layer that also completes reads with `BUSY` that would be late.
    #[must_use]
    pub fn answering(self) -> Offers {
        Offers { hints: self.hints | HINT_TIME, deadlines: true, ..self }
    }
}
