//! Everything on at once, with operations drawn at random. A task that is polled without cause changes nothing, and
//! operations dropped while they wait or work block no other operation.

use nandscape_device_media::{Cell, Ecc, Features, Interleaving, PlaneMode, ReadRetry, Registers, Suspend};
use nandscape_drive::breakdown::cause::GC;
use nandscape_sim::{Executor, Rng, Seed, Span};

use crate::rig::{Flash, Op, READ, Step, WRITE, us};

const CASES: u64 = 150;

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

fn features(rng: &mut Rng) -> Features {
    let mut flip = || rng.below(2) == 1;
    Features {
        command: us(u64::from(flip())),
        planes: match (flip(), flip()) {
            (true, true) => PlaneMode::MultiPlane,
            (true, false) => PlaneMode::Die,
            (false, _) => PlaneMode::Independent,
        },
        interleaving: if flip() { Interleaving::Rows } else { Interleaving::Free },
        cache_read: flip(),
        cache_program: flip(),
        ecc: Ecc { time: us(3), codeword: 2_048, engines: u32::from(flip()), pipelined: flip() },
        read_retry: ReadRetry { probability: vec![0.2, 0.1], time: us(4) },
        suspend: Suspend {
            program: flip().then_some(us(5)),
            erase: flip().then_some(us(6)),
            resume: us(if flip() { 3 } else { 0 }),
            min_run: us(if flip() { 50 } else { 0 }),
            limit: flip().then_some(2),
        },
        ..Features::default()
    }
}

/// Ten reads a plane, some programs in order, erases and a collection.
fn play(flash: &Flash, rng: &mut Rng) {
    for plane in 0..4 {
        let mut moments: Vec<u64> = (0..4).map(|_| rng.below(4_000)).collect();
        moments.sort_unstable();
        for (number, at) in (0..).zip(moments) {
            // In their order, however they are held up: each long after the previous one.
            flash.at(at + 10_000 * u64::from(number), "program", plane, Op::Program(number), WRITE);
        }
        for _ in 0..10 {
            let op = if rng.below(2) == 0 { Op::Read } else { Op::ReadHalf };
            flash.at(rng.below(40_000), "read", plane, op, READ);
        }
        flash.at(rng.below(40_000), "erase", plane, Op::Erase, GC);
        let steps = vec![Step::Move, Step::Copy { check: rng.below(2) == 0 }, Step::Erase];
        flash.collect_at(rng.below(40_000), "collection", plane, rng.below(2) == 0, steps);
    }
}

fn run(mut executor: Executor, case: u64, drops: bool) -> (Vec<(u64, &'static str)>, Vec<u64>) {
    let mut rng = Seed::new(seed()).nth(case).rng();
    let registers = if rng.below(2) == 0 { Registers::Single } else { Registers::Double };
    let flash = Flash::new(&executor, Cell::Slc, registers, features(&mut rng));
    play(&flash, &mut rng);
    if drops {
        drop_some(&flash, &mut rng);
    }
    (flash.run(&mut executor), flash.busy())
}

/// Reads that are dropped after a while, wherever they are.
fn drop_some(flash: &Flash, rng: &mut Rng) {
    for _ in 0..20 {
        let (begin, patience, plane) = (rng.below(40_000), rng.below(200), rng.below(4) as u32);
        flash.give_up_at(begin, patience, plane);
    }
}

/// Per plane 4 programs, 10 reads, an erase, a collection.
const OPERATIONS: usize = 4 * 16;

#[test]
fn a_run_cannot_tell_spurious_polls() {
    for case in 0..CASES {
        let plain = run(Executor::new(), case, false);
        assert_eq!(plain.0.len(), OPERATIONS, "seed {}, case {case}: somebody was left behind", seed());
        let polled = run(Executor::with_spurious_polls(), case, false);
        assert_eq!(plain, polled, "seed {}, case {case}", seed());
    }
}

#[test]
fn whoever_is_dropped_leaves_nobody_behind() {
    for case in 0..CASES {
        let (ended, _) = run(Executor::new(), case, true);
        assert_eq!(ended.len(), OPERATIONS, "seed {}, case {case}: somebody was left behind", seed());
        assert!(ended.iter().all(|(at, _)| Span::from_us(*at) < Span::from_ms(200)), "seed {}, case {case}", seed());
    }
}
