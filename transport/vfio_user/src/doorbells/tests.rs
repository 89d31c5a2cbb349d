//! Doorbells rung in the page and in buffers.

use nandscape_drive::mem::mapping::memory_file;

use super::*;
use crate::layout::{DOORBELLS, Layout};

const SHADOW: u64 = 0x1_0000;
const EVENTS: u64 = 0x1_1000;

/// A watch of 8 pairs, its page as the guest has it, and two pages of the guest's memory.
fn watch() -> (Watch, Mapping, Rc<Memory>) {
    watch_in(DoorbellMode::Buffered, &Arc::default())
}

fn watch_in(mode: DoorbellMode, rung: &Arc<AtomicBool>) -> (Watch, Mapping, Rc<Memory>) {
    let layout = Layout::new(8);
    let file = memory_file(layout.bar0_bytes()).unwrap();
    let memory = Rc::new(Memory::default());
    memory.set_bus_master(true);
    memory.guest.map(SHADOW, Mapping::new(&memory_file(0x2000).unwrap(), 0, 0x2000, true).unwrap()).unwrap();
    let page = || Mapping::new(&file, DOORBELLS, layout.doorbell_bytes() as usize, true).unwrap();
    (Watch::new(page(), memory.clone(), mode, rung.clone()), page(), memory)
}

fn rung(watch: &Watch) -> Vec<Arrival> {
    let mut rung = Vec::new();
    let came = watch.look(|arrival| rung.push(arrival));
    assert_eq!(came, !rung.is_empty());
    rung
}

const fn tail(queue: u16, tail: u16) -> Arrival {
    Arrival::SubmissionTail { queue: QueueId(queue), tail }
}

const fn head(queue: u16, head: u16) -> Arrival {
    Arrival::CompletionHead { queue: QueueId(queue), head }
}

#[test]
fn heads_come_before_tails_and_only_of_queues_that_exist() {
    let (watch, page, _) = watch();
    page.store(8, 3).unwrap();
    assert_eq!(rung(&watch), []);
    for queue in [1, 0] {
        watch.created(QueueKind::Submission, QueueId(queue), 16);
        watch.created(QueueKind::Completion, QueueId(queue), 16);
    }
    assert_eq!(rung(&watch), [], "a new queue's doorbell is zero");
    [(8, 5), (12, 2), (0, 1)].into_iter().for_each(|(at, value)| page.store(at, value).unwrap());
    assert_eq!(rung(&watch), [head(1, 2), tail(0, 1), tail(1, 5)]);
    assert_eq!(rung(&watch), []);
    // Deleted and created again: the same value is new.
    watch.created(QueueKind::Submission, QueueId(1), 16);
    page.store(8, 5).unwrap();
    assert_eq!(rung(&watch), [tail(1, 5)]);
    watch.reset();
    assert_eq!((page.load(8).unwrap(), page.load(12).unwrap()), (0, 0));
    page.store(8, 7).unwrap();
    assert_eq!(rung(&watch), []);
    watch.created(QueueKind::Submission, QueueId(u16::MAX), 16);
    assert_eq!(rung(&watch), [], "beyond the page");
}

#[test]
fn buffers_replace_the_registers_of_io_queues() {
    let (watch, page, memory) = watch();
    for queue in [0, 1] {
        watch.created(QueueKind::Submission, QueueId(queue), 16);
        watch.created(QueueKind::Completion, QueueId(queue), 16);
    }
    watch.set_buffers(Some(DoorbellBuffers { shadow: SHADOW, event_index: EVENTS }));
    memory.store(SHADOW + 8, 4).unwrap();
    page.store(8, 2).unwrap();
    page.store(0, 1).unwrap();
    assert_eq!(rung(&watch), [tail(0, 1), tail(1, 4)]);
    let event = |offset: u64| memory.guest.load(EVENTS + offset).unwrap();
    watch.ask_for_events();
    assert_eq!((event(8), event(12), event(0)), (4, 14, 0), "the next command, and a full queue of completions");
    // The guest has changed its mind about memory.
    memory.guest.unmap(SHADOW, 0x2000).unwrap();
    assert_eq!(rung(&watch), []);
    watch.ask_for_events();
    watch.reset();
    page.store(0, 0).unwrap();
    watch.created(QueueKind::Submission, QueueId(1), 16);
    page.store(8, 9).unwrap();
    assert_eq!(rung(&watch), [tail(1, 9)], "the buffers are forgotten");
}

/// The guest's rule (Base B.5): whether the register of a doorbell has to be written.
fn need(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

/// A guest rings at random while the watch requests events at random. A doorbell rung after the last request is either
/// seen, or its register was written.
#[test]
fn no_doorbell_is_missed() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    let mut rng = nandscape_sim::Seed::new(seed).rng();
    for entries in [2u32, 3, 16, 1_024] {
        let (watch, _, memory) = watch();
        watch.created(QueueKind::Submission, QueueId(1), entries);
        watch.set_buffers(Some(DoorbellBuffers { shadow: SHADOW, event_index: EVENTS }));
        let (mut asleep, mut tail_now) = (false, 0u16);
        for _ in 0..20_000 {
            if rng.below(2) == 0 {
                let step = 1 + rng.below(u64::from(entries) - 1);
                let new = ((u64::from(tail_now) + step) % u64::from(entries)) as u16;
                memory.store(SHADOW + 8, new.into()).unwrap();
                let wakes = need(memory.guest.load(EVENTS + 8).unwrap() as u16, new, tail_now);
                assert!(wakes || !asleep, "seed {seed}: from {tail_now} to {new} of {entries} while asleep");
                tail_now = new;
                asleep &= !wakes;
            } else if !asleep {
                watch.ask_for_events();
                asleep = rung(&watch).is_empty();
            }
        }
    }
}

#[test]
fn shadow_doorbells_are_looked_at_when_told() {
    let told = Arc::<AtomicBool>::default();
    let (watch, _, memory) = watch_in(DoorbellMode::Shadow, &told);
    watch.created(QueueKind::Submission, QueueId(1), 16);
    watch.set_buffers(Some(DoorbellBuffers { shadow: SHADOW, event_index: EVENTS }));
    assert_eq!(rung(&watch), []);
    memory.store(SHADOW + 8, 3).unwrap();
    assert_eq!(rung(&watch), [], "there was no message");
    told.store(true, Ordering::Release);
    assert_eq!(rung(&watch), [tail(1, 3)]);
    memory.store(SHADOW + 8, 5).unwrap();
    assert_eq!(rung(&watch), [tail(1, 5)], "one message is enough while there is more");
    assert_eq!(memory.guest.load(EVENTS + 8).unwrap(), 0, "and no other one is asked for");
    assert_eq!(rung(&watch), []);
    assert_eq!(memory.guest.load(EVENTS + 8).unwrap(), 5);
    memory.store(SHADOW + 8, 6).unwrap();
    assert_eq!(rung(&watch), []);
}

/// As above, in shadow mode, where a register write is the only sign. Every ring is eventually seen.
#[test]
fn no_shadow_doorbell_is_missed() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    let mut rng = nandscape_sim::Seed::new(seed).rng();
    for entries in [2u32, 3, 16, 1_024] {
        let told = Arc::<AtomicBool>::default();
        let (watch, _, memory) = watch_in(DoorbellMode::Shadow, &told);
        watch.created(QueueKind::Submission, QueueId(1), entries);
        watch.set_buffers(Some(DoorbellBuffers { shadow: SHADOW, event_index: EVENTS }));
        let (mut tail_now, mut seen, mut messages) = (0u16, 0u16, 0);
        for _ in 0..20_000 {
            if rng.below(2) == 0 {
                let step = 1 + rng.below(u64::from(entries) - 1);
                let new = ((u64::from(tail_now) + step) % u64::from(entries)) as u16;
                memory.store(SHADOW + 8, new.into()).unwrap();
                if need(memory.guest.load(EVENTS + 8).unwrap() as u16, new, tail_now) {
                    told.store(true, Ordering::Release);
                    messages += 1;
                }
                tail_now = new;
                continue;
            }
            let steps = 1 + rng.below(3);
            for _ in 0..steps {
                for arrival in rung(&watch) {
                    let Arrival::SubmissionTail { tail, .. } = arrival else { panic!("{arrival:?}") };
                    seen = tail;
                }
            }
            if steps == 3 {
                // At most two checks find something: the guest rings no doorbell meanwhile.
                assert_eq!(seen, tail_now, "seed {seed}, {entries} entries");
            }
        }
        assert!(messages > 0, "seed {seed}, {entries} entries");
    }
}
