//! Comparison of model and reference, over geometries, cells, registers and mixes.

use nandscape_device_media::{Cell, Registers};
use nandscape_sim::Executor;

use crate::script::{Mix, Network, Script, Work};
use crate::{model, reference};

/// Set by a user who wants other scripts.
pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// (channels, dies on each, planes of each, customers)
const GEOMETRIES: [(u32, u32, u32, u32); 5] =
    [(1, 1, 1, 8), (2, 4, 1, 16), (8, 8, 1, 64), (2, 2, 4, 24), (1, 4, 2, 12)];

/// Published times, so that many things end at the same instant: (cell, read, program, erase, 4 KiB on the channel).
/// SLC is ttFlash's drive, MLC FEMU's open-channel one, TLC FEMU's table; QLC's are of the ordinary size.
fn flash(cell: Cell) -> (Vec<u64>, Vec<u64>, u64, u64) {
    match cell {
        Cell::Slc => (vec![40_000], vec![800_000], 2_000_000, 100_000),
        Cell::Mlc => (vec![48_000, 64_000], vec![900_000, 2_400_000], 6_000_000, 15_000),
        Cell::Tlc => (vec![56_500, 77_500, 106_000], vec![820_500, 2_225_000, 5_734_000], 3_000_000, 52_400),
        Cell::Qlc => (vec![70_001, 80_003, 90_007, 110_009], vec![1_900_013; 4], 9_999_991, 3_413),
    }
}

/// Every network of the test: geometry by cell by registers by transfer by priority.
fn networks() -> Vec<Network> {
    let mut networks = Vec::new();
    for (channels, dies_per_channel, planes_per_die, customers) in GEOMETRIES {
        for cell in [Cell::Slc, Cell::Mlc, Cell::Tlc, Cell::Qlc] {
            for bits in 0..8 {
                let (read, program, erase, unit_transfer) = flash(cell);
                networks.push(Network {
                    channels,
                    dies_per_channel,
                    planes_per_die,
                    // The pattern of MLC is that of blocks of 512.
                    pages_per_block: if cell == Cell::Mlc { 512 } else { 128 },
                    units_per_page: if cell == Cell::Slc { 1 } else { 4 },
                    cell,
                    read,
                    program,
                    erase,
                    unit_transfer,
                    registers: if bits & 1 == 0 { Registers::Single } else { Registers::Double },
                    partial_transfer: bits & 2 != 0,
                    reads_first: bits & 4 != 0,
                    customers,
                });
            }
        }
    }
    networks
}

const READS: Mix =
    Mix { reads: 1, programs: 0, erases: 0, collections: 0, think_below: 0, impatient: 0, hold_channels: false };
const MIXED: Mix = Mix { reads: 12, programs: 6, erases: 1, ..READS };
const COLLECTED: Mix = Mix { collections: 3, hold_channels: true, ..MIXED };

fn agree(mix: Mix, length: usize) {
    for (index, network) in networks().iter().enumerate() {
        let seed = seed().wrapping_add(index as u64);
        let script = network.script(mix, length, seed);
        let (expected, withdrawn) = reference::run(network, &script);
        let (measured, _) = model::run(Executor::new(), network, &script, &withdrawn);
        let all = script.iter().map(Vec::len).sum::<usize>();
        assert_eq!(expected.ended.iter().map(Vec::len).sum::<usize>(), all, "the reference is stuck: seed {seed}");
        if let Some(difference) = first_difference(&expected.ended, &measured.ended) {
            panic!("seed {seed}: {difference}\n{network:?}");
        }
        assert_eq!(expected, measured, "seed {seed}, busy times differ: {network:?}");
    }
}

fn first_difference(expected: &[Vec<u64>], measured: &[Vec<u64>]) -> Option<String> {
    let differs = |customer: usize| {
        let (expected, measured) = (&expected[customer], &measured[customer]);
        let at = (0..expected.len()).find(|&at| measured.get(at) != Some(&expected[at]))?;
        Some((expected[at], measured.get(at).copied(), customer, at))
    };
    let (expected, measured, customer, at) = (0..expected.len()).filter_map(differs).min()?;
    Some(format!("operation {at} of customer {customer} ends at {measured:?}, should be at {expected}"))
}

#[test]
fn reads_end_when_the_reference_says() {
    agree(READS, 60);
}

#[test]
fn reads_programs_and_erases_end_when_the_reference_says() {
    agree(MIXED, 60);
}

#[test]
fn so_they_do_with_think_times() {
    agree(Mix { think_below: 400_000, ..MIXED }, 60);
}

#[test]
fn collections_end_when_the_reference_says() {
    agree(COLLECTED, 60);
    agree(Mix { think_below: 2_000_000, ..COLLECTED }, 40);
}

/// Operations that are dropped while they wait for their plane leave no trace.
#[test]
fn withdrawn_operations_change_what_the_reference_says_they_change() {
    agree(Mix { impatient: 3, collections: 0, ..COLLECTED }, 60);
    agree(Mix { impatient: 2, think_below: 100_000, ..READS }, 60);
}

/// Busy time is the sum of the operations' own times, worked out here from the script alone.
#[test]
fn busy_time_is_the_sum_of_operation_times() {
    let mix = Mix { hold_channels: false, ..COLLECTED };
    for (index, network) in networks().iter().enumerate() {
        let seed = seed().wrapping_add(index as u64);
        let script = network.script(mix, 30, seed);
        let nothing = vec![vec![false; 30]; script.len()];
        let (measured, _) = model::run(Executor::new(), network, &script, &nothing);
        assert_eq!((measured.arrays, measured.channels), sums(network, &script), "seed {seed}: {network:?}");
    }
}

/// The event trace shows the same: on each line of the picture nothing overlaps, and the sum is the busy time.
#[test]
fn the_trace_shows_what_planes_and_channels_did() {
    let mix = Mix { hold_channels: false, ..COLLECTED };
    for (index, network) in networks().iter().enumerate().step_by(7) {
        let seed = seed().wrapping_add(index as u64);
        let script = network.script(mix, 10, seed);
        let executor = Executor::new();
        let sim = executor.sim();
        sim.trace().switch_on();
        let (measured, _) = model::run(executor, network, &script, &vec![vec![false; 10]; script.len()]);
        let mut tracks = vec![Vec::new(); (network.planes() + network.channels) as usize];
        for event in sim.trace().to_chrome_json().lines().filter(|line| line.contains(r#""ph":"X""#)) {
            tracks[number(event, "tid") as usize].push((number(event, "ts"), number(event, "dur")));
        }
        let expected: Vec<u64> = measured.arrays.into_iter().chain(measured.channels).collect();
        for (track, busy) in tracks.iter_mut().zip(expected) {
            track.sort_unstable();
            assert_eq!(track.iter().map(|(_, duration)| duration).sum::<u64>(), busy, "seed {seed}: {network:?}");
            let overlap = track.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0);
            assert_eq!(overlap, None, "seed {seed}: {network:?}");
        }
    }
}

/// A number of an event, without its decimal point: times are in microseconds with three decimals.
fn number(event: &str, name: &str) -> u64 {
    let rest = event.split_once(&format!("\"{name}\":")).expect("the event has it").1;
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').filter(|c| *c != '.').collect();
    digits.parse().expect("a number")
}

fn sums(network: &Network, script: &Script) -> (Vec<u64>, Vec<u64>) {
    let read = |page| network.read[reference::page_type(network.cell, page)];
    let program = |page| network.program[reference::page_type(network.cell, page)];
    let transfer = |units: u32| u64::from(units) * network.unit_transfer;
    let whole = network.units_per_page;
    let (mut arrays, mut channels) = (vec![0; network.planes() as usize], vec![0; network.channels as usize]);
    for op in script.iter().flatten() {
        let (array, channel) = match &op.work {
            Work::Read { page, units } if network.partial_transfer => (read(*page), transfer(*units)),
            Work::Read { page, .. } => (read(*page), transfer(whole)),
            Work::Program { page } => (program(*page), transfer(whole)),
            Work::Erase => (network.erase, 0),
            Work::Collect { copies, moves, .. } => {
                let pages = copies.iter().chain(moves).map(|&(from, to)| read(from) + program(to)).sum::<u64>();
                (pages + network.erase, 2 * moves.len() as u64 * transfer(whole))
            }
        };
        arrays[op.plane as usize] += array;
        channels[network.channel_of(op.plane)] += channel;
    }
    (arrays, channels)
}
