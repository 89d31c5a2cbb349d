//! Chunks according to the specification, written without reference to the drive's own table (OC
//! 2.2).

use nandscape_host_open_channel::{Geometry, Place};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::{CHUNK_CLOSED, CHUNK_FREE, CHUNK_OFFLINE, CHUNK_OPEN};

#[derive(Clone)]
pub(crate) struct Chunk {
    pub(crate) state: u8,
    /// The stamps of the blocks that are written.
    pub(crate) data: Vec<u64>,
}

pub(crate) struct Model {
    pub(crate) geometry: Geometry,
    pub(crate) chunks: Vec<Chunk>,
}

impl Model {
    pub(crate) fn new(geometry: Geometry) -> Model {
        let chunks = vec![Chunk { state: CHUNK_FREE, data: Vec::new() }; geometry.chunk_places().count()];
        Model { geometry, chunks }
    }

    pub(crate) fn at(&self, address: u64) -> Result<(usize, usize), Status> {
        let place = self.geometry.place(address).ok_or(Status::LBA_OUT_OF_RANGE)?;
        Ok((self.geometry.chunk_number(place) as usize, place.sector as usize))
    }

    /// The stamps of addresses; 0 for an unreadable one.
    pub(crate) fn read(&self, addresses: &[u64]) -> Result<Vec<u64>, Status> {
        addresses.iter().map(|address| Ok(self.stamp(self.at(*address)?))).collect()
    }

    fn stamp(&self, (chunk, sector): (usize, usize)) -> u64 {
        let Chunk { state, data } = &self.chunks[chunk];
        let cached = if *state == CHUNK_OPEN { self.geometry.mw_cunits as usize } else { 0 };
        if sector + cached < data.len() { data[sector] } else { 0 }
    }

    /// The checks of a write, in order.
    pub(crate) fn check_write(&self, addresses: &[u64]) -> Result<(), Status> {
        let places: Vec<_> = addresses.iter().map(|address| self.at(*address)).collect::<Result<_, _>>()?;
        let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
        for (chunk, sector) in places {
            match parts.last_mut() {
                Some((of, sectors)) if *of == chunk && sectors.last() == sector.checked_sub(1).as_ref() => {
                    sectors.push(sector);
                }
                _ => parts.push((chunk, vec![sector])),
            }
        }
        for (number, (chunk, sectors)) in parts.iter().enumerate() {
            let unit = self.geometry.ws_min as usize;
            if !sectors[0].is_multiple_of(unit) || !sectors.len().is_multiple_of(unit) {
                return Err(Status::INVALID_FIELD);
            }
            let Chunk { state, data } = &self.chunks[*chunk];
            // A chunk may be repeated, continuing at its last address.
            let before = parts[..number].iter().filter(|part| part.0 == *chunk).map(|part| part.1.len());
            if ![CHUNK_FREE, CHUNK_OPEN].contains(state) || data.len() + before.sum::<usize>() != sectors[0] {
                return Err(Status::OUT_OF_ORDER_WRITE);
            }
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, addresses: &[u64], stamps: &[u64]) -> Result<(), Status> {
        self.check_write(addresses)?;
        for (address, stamp) in addresses.iter().zip(stamps) {
            let (chunk, _) = self.at(*address)?;
            let full = self.geometry.sectors as usize;
            let of = &mut self.chunks[chunk];
            of.data.push(*stamp);
            of.state = if of.data.len() == full { CHUNK_CLOSED } else { CHUNK_OPEN };
        }
        Ok(())
    }

    pub(crate) fn reset(&mut self, addresses: &[u64]) -> Result<(), Status> {
        let chunks: Vec<usize> =
            addresses.iter().map(|address| self.at(*address).map(|(chunk, _)| chunk)).collect::<Result<_, _>>()?;
        for (number, chunk) in chunks.iter().enumerate() {
            match self.chunks[*chunk].state {
                CHUNK_OFFLINE => return Err(Status::OFFLINE_CHUNK),
                CHUNK_FREE => return Err(Status::INVALID_RESET),
                _ if chunks[..number].contains(chunk) => return Err(Status::INVALID_RESET),
                _ => {}
            }
        }
        for chunk in chunks {
            self.chunks[chunk] = Chunk { state: CHUNK_FREE, data: Vec::new() };
        }
        Ok(())
    }

    /// The address of a block of a chunk by its number.
    pub(crate) fn address(&self, chunk: usize, sector: u32) -> u64 {
        let place = self.geometry.chunk_places().nth(chunk).expect("a chunk");
        self.geometry.address(Place { sector, ..place })
    }
}
