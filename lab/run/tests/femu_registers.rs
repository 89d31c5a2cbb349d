//! Claim `femu-registers` (FEMU Fig. 3 and 3.2.3; Li 3.1.7, 5.4.2 and table 5.2), through the whole drive: NVMe commands
//! on a queue pair, mapped by the FTL, timed at their completion.
//!
//! The drive is `femu-ocssd` as it is, which adds no link and no firmware time. Writes are timed on flash
//! (`buffer.mode = "through"`), one page each, so that the n-th write takes the n-th page of the stripe.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// LBAs of a page of 16 KiB.
const PAGE: u32 = 32;

/// A host at one queue pair of a new drive.
struct Host {
    executor: Executor,
    sim: Sim,
    drive: Rc<QueueDrive>,
    issuer: Rc<Issuer>,
    ssd: Ssd,
}

impl Host {
    fn new(changes: &[&str]) -> Host {
        let mut profile = Profile::load("femu-ocssd").unwrap();
        profile.set("buffer.mode=through").unwrap();
        changes.iter().for_each(|change| profile.set(change).unwrap());
        let executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
        let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 64).unwrap();
        Host { executor, issuer: Rc::new(Issuer::new(&sim)), drive, ssd, sim }
    }

    /// One plane on one channel.
    fn one_plane(registers: &str) -> Host {
        let registers = format!("timing.registers={registers}");
        Host::new(&["geometry.channels=1", "geometry.dies_per_channel=1", "geometry.planes_per_die=1", &registers])
    }

    /// Submits commands for whole pages at one instant. When each completed, in nanoseconds after that.
    fn together(&mut self, opcode: IoOpcode, pages: &[u32]) -> Vec<u64> {
        let ended = Rc::new(RefCell::new(vec![None; pages.len()]));
        let begun = self.sim.now();
        for (index, page) in pages.iter().enumerate() {
            let (sim, drive, issuer, ended) =
                (self.sim.clone(), self.drive.clone(), self.issuer.clone(), ended.clone());
            let command = SubmissionEntry::blocks(opcode, 1, u64::from(page * PAGE), PAGE);
            self.sim.spawn(async move {
                let done = issuer.execute(&*drive, command, HostMem::none()).await;
                assert_eq!(done.status, Status::SUCCESS);
                assert_eq!(done.breakdown.total(), sim.now() - begun, "the stages sum to the latency");
                ended.borrow_mut()[index] = Some((sim.now() - begun).ns());
            });
        }
        let all = self.sim.sleep(nandscape_sim::Span::from_s(1));
        self.executor.block_on(all).unwrap();
        ended.take().into_iter().map(|at| at.expect("every command completes")).collect()
    }

    fn write(&mut self, page: u32) -> u64 {
        self.together(IoOpcode::WRITE, &[page])[0]
    }

    fn read(&mut self, page: u32) -> u64 {
        self.together(IoOpcode::READ, &[page])[0]
    }
}

const fn us(us: u64) -> u64 {
    us * 1_000
}

/// Fig. 3: the reads of two pages of one plane, both lower pages (48 us), transfers of 60 us.
#[test]
fn two_reads_of_a_plane_end_as_in_figure_3() {
    for (registers, ends) in [("single", [us(108), us(216)]), ("double", [us(108), us(168)])] {
        let mut host = Host::one_plane(registers);
        for page in 0..2 {
            host.write(page);
        }
        assert_eq!(host.together(IoOpcode::READ, &[0, 1]), ends, "{registers}");
    }
}

/// The figure carried on by hand: the third page is sensed when the second has left the data register, at 108 us.
#[test]
fn more_reads_follow_one_transfer_after_the_other() {
    for (registers, ends) in
        [("single", [us(108), us(216), us(324), us(432)]), ("double", [us(108), us(168), us(228), us(288)])]
    {
        let mut host = Host::one_plane(registers);
        for page in 0..4 {
            host.write(page);
        }
        assert_eq!(host.together(IoOpcode::READ, &[0, 1, 2, 3]), ends, "{registers}");
    }
}

/// "a NAND page read/write in a plane can overlap with a data transfer via the channel to the plane": the second page
/// is loaded while the first is programmed.
#[test]
fn two_programs_of_a_plane_overlap_likewise() {
    for (registers, ends) in [("single", [us(960), us(1_920)]), ("double", [us(960), us(1_860)])] {
        let mut host = Host::one_plane(registers);
        assert_eq!(host.together(IoOpcode::WRITE, &[0, 1]), ends, "{registers}");
    }
}

/// The page types of a block, 512 entries, those that are upper: the string of Li 3.1.7, put into words.
fn is_upper(page: u32) -> bool {
    match page {
        0..10 => matches!(page, 6 | 9),
        10..502 => (page - 10) % 4 >= 2,
        _ => matches!(page, 504 | 505 | 508 | 511),
    }
}

/// Every page of a block of each of the 16 planes, written and read one at a time: 900 or 2400 us after the transfer of
/// 60 us, 48 or 64 us before it.
#[test]
fn each_page_of_a_block_takes_the_time_of_its_type() {
    let mut host = Host::new(&[]);
    let planes = 16;
    for index in 0..512 * planes {
        let program = if is_upper(index / planes) { us(2_400) } else { us(900) };
        assert_eq!(host.write(index), us(60) + program, "page {}", index / planes);
    }
    assert_eq!(host.ssd.op_counts().programs, u64::from(512 * planes), "a page a write, and nothing besides");
    for index in 0..512 * planes {
        let read = if is_upper(index / planes) { us(64) } else { us(48) };
        assert_eq!(host.read(index), read + us(60), "page {}", index / planes);
    }
    let uppers = (0..512).filter(|page| is_upper(*page)).count();
    assert_eq!(uppers, 252, "2 of the first ten, 246 of the middle, 4 of the last ten");
}

/// The sizes of table 5.2, and the erase time, which no command of the host shows by itself.
#[test]
fn the_profile_is_table_5_2() {
    let keys = Profile::load("femu-ocssd").unwrap().resolve().unwrap().keys;
    let geometry = &keys.geometry;
    let planes_per_channel = geometry.dies_per_channel.unwrap() * geometry.planes_per_die.unwrap();
    assert_eq!((geometry.channels, planes_per_channel, geometry.planes_per_die), (Some(2), 8, Some(2)));
    assert_eq!((geometry.blocks_per_plane, geometry.pages_per_block), (Some(1_024), Some(512)));
    let text = Profile::load("femu-ocssd").unwrap().to_toml();
    for line in ["page_size = \"16KiB\"", "erase = \"6ms\"", "bus = \"16KiB/60us\"", "cell = \"mlc\""] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
