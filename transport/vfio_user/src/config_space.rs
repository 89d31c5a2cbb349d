//! The PCI configuration space of the function (PCIe Base 7.5 to 7.7): an NVMe controller of class 010802h with two base
//! address registers of 64 bits, and the capabilities for power management, MSI-X and PCI Express.
//!
//! Left out: extended capabilities, the expansion ROM, interrupt pins and MSI. Power states are kept and change nothing.

use nandscape_wire_nvme::vendor::{PCI_DEVICE, PCI_VENDOR};

use crate::layout::Layout;

/// Bytes of the configuration space of a PCI Express function.
pub(crate) const BYTES: usize = 4_096;

/// Mass storage, non-volatile memory, NVM Express I/O controller.
const CLASS: [u8; 3] = [0x02, 0x08, 0x01];

const COMMAND: usize = 0x04;
const COMMAND_MEMORY: u16 = 1 << 1;
const COMMAND_MASTER: u16 = 1 << 2;
const COMMAND_PARITY: u16 = 1 << 6;
const COMMAND_SERR: u16 = 1 << 8;
const COMMAND_NO_PIN: u16 = 1 << 10;
const STATUS_CAPABILITIES: u16 = 1 << 4;
const BAR0: usize = 0x10;
const BAR4: usize = 0x20;
/// A memory address of 64 bits.
const BAR_WIDE: u32 = 0b100;

/// The places of the capabilities.
const POWER: usize = 0x40;
const MSIX: usize = 0x50;
const EXPRESS: usize = 0x60;

const DEVICE_CONTROL: usize = EXPRESS + 0x08;
const INITIATE_RESET: u16 = 1 << 15;

/// The effect of a write.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Effects {
    /// A function level reset (PCIe Base 6.6.2).
    pub(crate) reset: bool,
    /// The function may reach memory from now on, or may not.
    pub(crate) bus_master: Option<bool>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct ConfigSpace {
    values: Box<[u8; BYTES]>,
    /// Bits that can be written.
    writable: Box<[u8; BYTES]>,
    layout: Layout,
}

impl ConfigSpace {
    /// Its state after a reset.
    pub(crate) fn new(layout: Layout) -> ConfigSpace {
        let mut space = ConfigSpace { values: Box::new([0; BYTES]), writable: Box::new([0; BYTES]), layout };
        space.header();
        space.power();
        space.msix();
        space.express();
        space
    }

    /// The header of a function that is no bridge (PCIe Base 7.5.1).
    fn header(&mut self) {
        self.put16(0x00, PCI_VENDOR, 0);
        self.put16(0x02, PCI_DEVICE, 0);
        let command = COMMAND_MEMORY | COMMAND_MASTER | COMMAND_PARITY | COMMAND_SERR | COMMAND_NO_PIN;
        self.put16(COMMAND, 0, command);
        self.put16(0x06, STATUS_CAPABILITIES, 0);
        self.values[0x08] = 1;
        self.values[0x09..0x0c].copy_from_slice(&CLASS);
        // Cache line size.
        self.writable[0x0c] = 0xff;
        self.address(BAR0, self.layout.bar0_bytes());
        self.address(BAR4, self.layout.bar4_bytes());
        self.put16(0x2c, PCI_VENDOR, 0);
        self.put16(0x2e, PCI_DEVICE, 0);
        self.values[0x34] = POWER as u8;
        // Interrupt line; there is no pin.
        self.writable[0x3c] = 0xff;
    }

    /// A base address register pair. Software writes ones to it and reads back its size.
    fn address(&mut self, at: usize, bytes: u64) {
        let mask = !(bytes - 1);
        self.put32(at, BAR_WIDE, mask as u32);
        self.put32(at + 4, 0, (mask >> 32) as u32);
    }

    /// Power management (PCIe Base 7.5.2): D0 and D3hot, between which nothing is lost.
    fn power(&mut self) {
        self.put16(POWER, (MSIX as u16) << 8 | 0x01, 0);
        self.put16(POWER + 2, 3, 0);
        self.put16(POWER + 4, 1 << 3, 0b11);
    }

    /// MSI-X (PCIe Base 7.7.2): table and pending bits are in BAR4. Enable and function mask can be written.
    fn msix(&mut self) {
        self.put16(MSIX, (EXPRESS as u16) << 8 | 0x11, 0);
        self.put16(MSIX + 2, self.layout.vectors() - 1, 0b11 << 14);
        self.put32(MSIX + 4, 4, 0);
        self.put32(MSIX + 8, self.layout.pending_bits() as u32 | 4, 0);
    }

    /// PCI Express (PCIe Base 7.5.3): version 2, an endpoint that can be reset, with a link of four lanes at 8 GT/s.
    fn express(&mut self) {
        self.put16(EXPRESS, 0x10, 0);
        self.put16(EXPRESS + 2, 2, 0);
        // Role-based error reporting, function level reset.
        self.put32(EXPRESS + 4, 1 << 28 | 1 << 15, 0);
        // Relaxed ordering, no snoop, read requests of 512 bytes.
        self.put16(DEVICE_CONTROL, 0x2810, 0x7fff);
        self.put32(EXPRESS + 0x0c, 4 << 4 | 3, 0);
        self.put16(EXPRESS + 0x10, 0, 0x00c3);
        self.put16(EXPRESS + 0x12, 4 << 4 | 3, 0);
        // A completion timeout can be disabled.
        self.put32(EXPRESS + 0x24, 1 << 4, 0);
        self.put16(EXPRESS + 0x28, 0, 1 << 4);
        self.put32(EXPRESS + 0x2c, 0b111 << 1, 0);
        self.put16(EXPRESS + 0x30, 3, 0);
    }

    fn put16(&mut self, at: usize, value: u16, writable: u16) {
        self.values[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 2].copy_from_slice(&writable.to_le_bytes());
    }

    fn put32(&mut self, at: usize, value: u32, writable: u32) {
        self.values[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 4].copy_from_slice(&writable.to_le_bytes());
    }

    fn get16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.values[at], self.values[at + 1]])
    }

    /// The bytes of a range inside.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.values[offset..offset + bytes.len()]);
    }

    /// Writes a range inside. Bits that cannot be written stay.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) -> Effects {
        let (before, mut reset) = (self.get16(COMMAND) & COMMAND_MASTER, false);
        for (at, byte) in (offset..).zip(bytes) {
            let mask = self.writable[at];
            self.values[at] = self.values[at] & !mask | byte & mask;
            // It reads as zero.
            reset |= at == DEVICE_CONTROL + 1 && byte & (INITIATE_RESET >> 8) as u8 != 0;
        }
        if reset {
            self.reset();
        }
        let after = self.get16(COMMAND) & COMMAND_MASTER;
        Effects { reset, bus_master: (before != after).then_some(after != 0) }
    }

    /// A reset of the function.
    pub(crate) fn reset(&mut self) {
        *self = ConfigSpace::new(self.layout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read32(space: &ConfigSpace, at: usize) -> u32 {
        let mut bytes = [0; 4];
        space.read(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[test]
    fn a_driver_finds_class_sizes_and_capabilities() {
        let mut space = ConfigSpace::new(Layout::new(64));
        assert_eq!(read32(&space, 0x08) >> 8, 0x01_08_02);
        for (bar, bytes) in [(BAR0, 0x2000u64), (BAR4, 0x2000)] {
            space.write(bar, &[0xff; 8]);
            let mask = u64::from(read32(&space, bar + 4)) << 32 | u64::from(read32(&space, bar));
            assert_eq!(mask & 0xf, 0b100, "memory, 64 bits, not prefetchable");
            assert_eq!(!(mask & !0xf) + 1, bytes);
        }
        let (mut at, mut found) = (space.values[0x34], Vec::new());
        while at != 0 {
            found.push(space.values[usize::from(at)]);
            at = space.values[usize::from(at) + 1];
        }
        assert_eq!(found, [0x01, 0x11, 0x10]);
        assert_eq!(read32(&space, MSIX) >> 16, 64, "65 vectors, counted from zero");
        assert_eq!(space.values[0x3d], 0, "no pin");
        assert_eq!(read32(&space, 0x100), 0, "no extended capabilities");
    }

    #[test]
    fn only_what_may_be_written_is() {
        let mut space = ConfigSpace::new(Layout::new(64));
        let before = space.values.clone();
        // All but the bit that initiates a reset.
        let mut ones = [0xff; BYTES];
        ones[DEVICE_CONTROL + 1] = 0x7f;
        assert_eq!(space.write(0, &ones), Effects { reset: false, bus_master: Some(true) });
        for at in 0..BYTES {
            assert_eq!(space.values[at], before[at] | space.writable[at], "{at:#x}");
        }
        assert_eq!(space.write(COMMAND, &[0, 0]).bus_master, Some(false));
        assert_eq!(space.write(COMMAND, &[0, 0]).bus_master, None);
        let effects = space.write(DEVICE_CONTROL, &(1u16 << 15).to_le_bytes());
        assert_eq!(effects, Effects { reset: true, bus_master: None });
        assert_eq!(space.values, before);
    }
}
