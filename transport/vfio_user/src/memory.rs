//! The guest's memory, as far as the function may reach it: the mapped parts, and only while it is a bus master (PCIe
//! Base 7.5.1.1.3).

use std::cell::Cell;

use nandscape_drive::mem::{Access, Dma, DmaFault, GuestMemory};

/// See the module.
#[derive(Default)]
pub(crate) struct Memory {
    /// The mapped parts.
    pub(crate) guest: GuestMemory,
    bus_master: Cell<bool>,
}

impl Memory {
    /// Allows the function to reach memory, or forbids it.
    pub(crate) fn set_bus_master(&self, allowed: bool) {
        self.bus_master.set(allowed);
    }

    fn allow(&self, address: u64) -> Result<(), DmaFault> {
        if self.bus_master.get() { Ok(()) } else { Err(DmaFault::at(address)) }
    }
}

impl Dma for Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.allow(address)?;
        self.guest.read(address, bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.allow(address)?;
        self.guest.write(address, bytes)
    }

    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault> {
        self.allow(address)?;
        self.guest.store(address, value)
    }

    fn check(&self, address: u64, len: usize, access: Access) -> Result<(), DmaFault> {
        self.allow(address)?;
        self.guest.check(address, len, access)
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::mem::Mapping;
    use nandscape_drive::mem::mapping::memory_file;

    use super::*;

    #[test]
    fn only_a_bus_master_reaches_memory() {
        let memory = Memory::default();
        memory.guest.map(0, Mapping::new(&memory_file(64).unwrap(), 0, 64, true).unwrap()).unwrap();
        for allowed in [false, true, false] {
            memory.set_bus_master(allowed);
            let outcomes = [
                memory.read(0, &mut [0; 4]).is_ok(),
                memory.write(0, &[1; 4]).is_ok(),
                memory.store(0, 1).is_ok(),
                memory.check(0, 4, Access::Read).is_ok(),
            ];
            assert_eq!(outcomes, [allowed; 4]);
        }
    }
}
