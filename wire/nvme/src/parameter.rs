//! Parameter Error Location (Base 5.1.12.1.2): the field of a command that is at fault, by its first byte and bit.
//!
//! Left out: fields of the data that a command brings, which have no location.

/// A place in the 64 bytes of a command: the byte in bits 7:0, the bit in it in bits 10:8.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Parameter(u16);

impl Parameter {
    /// No field of the command is at fault.
    pub const NONE: Parameter = Parameter(0xffff);
    /// Opcode (CDW0 bits 7:0).
    pub const OPCODE: Parameter = Parameter::at(0, 0);
    /// Fused Operation (CDW0 bits 9:8).
    pub const FUSE: Parameter = Parameter::at(0, 8);
    /// PRP or SGL for Data Transfer (CDW0 bits 15:14).
    pub const PSDT: Parameter = Parameter::at(0, 14);
    /// Namespace Identifier.
    pub const NSID: Parameter = Parameter::at(1, 0);
    /// Metadata Pointer.
    pub const MPTR: Parameter = Parameter::at(4, 0);
    /// Data Pointer: PRP Entry 1, or the first SGL descriptor.
    pub const DPTR: Parameter = Parameter::at(6, 0);
    /// PRP Entry 2.
    pub const PRP2: Parameter = Parameter::at(8, 0);

    /// The field that begins at a bit of a command dword.
    ///
    /// # Panics
    /// When a command has no such dword or bit.
    pub const fn at(dword: u16, bit: u16) -> Parameter {
        assert!(dword < 16 && bit < 32);
        Parameter((dword * 4 + bit / 8) | (bit % 8) << 8)
    }

    /// The value of the field.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_byte_and_a_bit_in_it() {
        assert_eq!(Parameter::NSID.bits(), 4);
        assert_eq!(Parameter::PSDT.bits(), 6 << 8 | 1);
        assert_eq!(Parameter::at(10, 31).bits(), 7 << 8 | 43);
        assert_eq!(Parameter::NONE.bits(), 0xffff);
    }
}
