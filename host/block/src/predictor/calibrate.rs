//! The profile of a disk, measured on the disk itself: commands of known distances, one at a time (Li 3.1.6: a
//! one-time profiling).
//!
//! Writes rewrite data that was read before, so the disk's contents do not change. Meanwhile the disk must have no
//! other user.

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::{Rng, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::profile::{DiskProfile, Distances, SIZE};

/// Blocks of the commands that measure sizes, limited by the drive's maximum.
const LARGE: u32 = 1_024;

/// Measures a disk: `samples` commands for each of some 90 ranges of distances, forward and backward, of reads and of
/// writes.
///
/// # Errors
/// The status of a failed command, and [`Status::LBA_OUT_OF_RANGE`] from a drive that is too small to have distances.
pub async fn calibrate(sim: &Sim, drive: &dyn Drive, seed: Seed, samples: u32) -> Result<DiskProfile, Status> {
    let info = drive.info();
    if info.blocks < 4 * u64::from(LARGE) {
        return Err(Status::LBA_OUT_OF_RANGE);
    }
    let rng = seed.child("calibration").rng();
    let mut probe = Probe { sim, drive, issuer: Issuer::new(sim), rng, samples: samples.max(1) };
    let mut profile = DiskProfile { distances: Default::default(), block: [0.0; 2], idle: Span::ZERO };
    for (kind, opcode) in [IoOpcode::READ, IoOpcode::WRITE].into_iter().enumerate() {
        for (side, is_back) in [false, true].into_iter().enumerate() {
            profile.distances[kind][side] = probe.distances(opcode, is_back).await?;
        }
        profile.block[kind] = probe.block(opcode).await?;
    }
    let begun = sim.now();
    probe.run(SubmissionEntry::io(IoOpcode::FLUSH, info.nsid), HostMem::none()).await?;
    profile.idle = sim.now() - begun;
    Ok(profile)
}

struct Probe<'a> {
    sim: &'a Sim,
    drive: &'a dyn Drive,
    issuer: Issuer,
    rng: Rng,
    samples: u32,
}

impl Probe<'_> {
    async fn run(&self, entry: SubmissionEntry, mem: HostMem) -> Result<(), Status> {
        let status = self.issuer.execute(self.drive, entry, mem).await.status;
        if status.is_success() { Ok(()) } else { Err(status) }
    }

    fn blocks(&self) -> u64 {
        self.drive.info().blocks
    }

    async fn distances(&mut self, opcode: IoOpcode, is_back: bool) -> Result<Distances, Status> {
        let (mut measured, mut distance) = (Vec::new(), u64::from(is_back));
        let longest = self.blocks() - 2 * u64::from(SIZE);
        while distance <= longest {
            // A quarter as far again each time, and the whole disk at last.
            let next = (distance + distance.div_ceil(4).max(1)).min(longest + 1);
            measured.push(self.between(opcode, is_back, (distance, next)).await?);
            distance = next;
        }
        Ok(Distances(measured))
    }

    /// The mean distance and time of commands with distances in a range, the end excluded. A distance in blocks also
    /// determines an angle: repeating one distance would repeat one rotational delay, and not give a mean.
    async fn between(&mut self, opcode: IoOpcode, is_back: bool, (from, to): (u64, u64)) -> Result<(u64, u64), Status> {
        let (mut distances, mut times) = (0, 0);
        for _ in 0..self.samples {
            let distance = from + self.rng.below(to - from);
            distances += u128::from(distance);
            times += self.after(opcode, SIZE, distance, is_back).await?.ns();
        }
        let samples = u64::from(self.samples);
        Ok(((distances / u128::from(samples)) as u64, times / samples))
    }

    /// The time of each further block.
    async fn block(&mut self, opcode: IoOpcode) -> Result<f64, Status> {
        let large = LARGE.min(self.drive.info().max_blocks);
        let mut sums = [0; 2];
        let rounds = self.samples * 8;
        for _ in 0..rounds {
            for (sum, size) in sums.iter_mut().zip([SIZE, large]) {
                let distance = self.rng.below(self.blocks() - u64::from(SIZE + LARGE));
                *sum += self.after(opcode, size, distance, false).await?.ns();
            }
        }
        let further = sums[1].saturating_sub(sums[0]) as f64 / f64::from(rounds);
        Ok(further / f64::from((large - SIZE).max(1)))
    }

    /// The time of a command that begins at some distance from the end of a read, right after that.
    async fn after(&mut self, opcode: IoOpcode, size: u32, distance: u64, is_back: bool) -> Result<Span, Status> {
        let (nsid, lba) = (self.drive.info().nsid, self.drive.info().lba_bytes as usize);
        let places = self.blocks() - distance - u64::from(size.max(SIZE));
        let place = self.rng.below(places.max(1));
        // The end of the read before, and the first block of the command.
        let (end, slba) = if is_back {
            (place + distance, place)
        } else {
            (place.max(SIZE.into()), place.max(SIZE.into()) + distance)
        };
        let slba = slba.min(self.blocks() - u64::from(size));
        let before = SubmissionEntry::blocks(IoOpcode::READ, nsid, end.saturating_sub(SIZE.into()), SIZE);
        let mem = HostMem::zeroed(size as usize * lba);
        if opcode == IoOpcode::WRITE {
            self.run(SubmissionEntry::blocks(IoOpcode::READ, nsid, slba, size), mem.clone()).await?;
        }
        self.run(before, HostMem::zeroed(SIZE as usize * lba)).await?;
        let begun = self.sim.now();
        self.run(SubmissionEntry::blocks(opcode, nsid, slba, size), mem).await?;
        Ok(self.sim.now() - begun)
    }
}
