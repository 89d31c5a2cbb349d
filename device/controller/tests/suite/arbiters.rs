//! Arbiters chosen by a drive and, while it runs, by a host: the order in which commands of several queues are served by one slot.

use crate::common::{Drive, Pair, config, host, read, with};
use nandscape_device_controller::ControllerConfig;
use nandscape_device_controller::arbiter::ArbiterKind;
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::vendor::{ARBITER, Attributes, arbiter};
use nandscape_wire_nvme::{Status, SubmissionEntry, feature};

fn of(kind: ArbiterKind) -> ControllerConfig {
    ControllerConfig { command_slots: 1, arbiter: kind, weights: [2, 1, 1], ..config() }
}

async fn set(sim: &Sim, drive: &Drive, id: u8, value: u32) -> Status {
    let admin = host(sim, drive, QueueId::ADMIN);
    let ended = admin.execute(SubmissionEntry::set_features(id, value), HostMem::none()).await.unwrap();
    ended.status.meaning()
}

/// Commands of one class each in queues 1, 2 and 3, submitted `gap` after each other. Returns the queues in the order in
/// which their commands end, after two of queue 3 that find the slot and the queue empty.
async fn order(sim: &Sim, drive: &Drive, classes: [u8; 3], counts: [u16; 3], gap: Span) -> Vec<u16> {
    let pairs: Vec<Pair> = (1..=3).map(|id| Pair::new(sim, drive, id, 64)).collect();
    let entry = |class| SubmissionEntry { cdw2: Attributes::of(class, 7).0.into(), ..read(0, 1) };
    for (pair, (class, count)) in pairs.iter().zip(classes.into_iter().zip(counts)) {
        (0..count).for_each(|_| _ = pair.put(entry(class), HostMem::none()));
        sim.sleep(gap).await;
    }
    // The last queue takes the slot, and the others wait together.
    pairs.iter().rev().for_each(Pair::ring);
    let (total, mut order) = (counts.iter().sum::<u16>().into(), Vec::new());
    while order.len() < total {
        sim.sleep(Span::from_ns(500)).await;
        pairs.iter().for_each(|pair| order.extend(pair.reap_all().iter().map(|_| pair.id.0)));
    }
    for id in 1..=3 {
        drive.delete_queue_pair(QueueId(id)).unwrap();
    }
    order
}

#[test]
fn a_drive_serves_by_its_arbiter() {
    let gap = Span::ZERO;
    let served = |kind, classes, counts, gap| {
        with(of(kind), async |sim, drive| {
            // Bursts of one.
            let weights = 1 << 24;
            assert_eq!(set(sim, drive, feature::ARBITRATION, weights).await, Status::SUCCESS);
            order(sim, drive, classes, counts, gap).await
        })
    };
    assert_eq!(served(ArbiterKind::RoundRobin, [5, 1, 5], [2, 2, 2], gap), [3, 1, 2, 3, 1, 2]);
    assert_eq!(served(ArbiterKind::Class, [5, 1, 15], [2, 2, 2], gap), [3, 2, 2, 1, 1, 3]);
    assert_eq!(served(ArbiterKind::ClassWeighted, [5, 1, 15], [3, 5, 3], gap), [3, 2, 2, 1, 2, 2, 1, 3, 2, 1, 3]);
    assert_eq!(served(ArbiterKind::Longest, [0, 0, 0], [1, 4, 2], gap), [3, 2, 2, 2, 3, 1, 2]);
    // Queue 1 was filled first.
    assert_eq!(served(ArbiterKind::Oldest, [15, 5, 1], [2, 2, 2], Span::from_us(1)), [3, 1, 1, 2, 2, 3]);
}

#[test]
fn rules_give_queues_the_classes_that_their_commands_do_not_state() {
    let served = |rules: &str, classes| {
        with(ControllerConfig { assign: rules.parse().unwrap(), ..of(ArbiterKind::Class) }, async |sim, drive| {
            assert_eq!(set(sim, drive, feature::ARBITRATION, 1 << 24).await, Status::SUCCESS);
            order(sim, drive, classes, [2, 2, 2], Span::ZERO).await
        })
    };
    let rules = "queue=1,class=5 queue=2,class=1 class=15";
    assert_eq!(served(rules, [0, 0, 0]), served("", [5, 1, 15]));
    assert_eq!(served(rules, [0, 0, 0]), [3, 2, 2, 1, 1, 3]);
    // A command's own class comes before all rules.
    assert_eq!(served(rules, [0, 8, 0]), [3, 1, 1, 2, 2, 3]);
    assert_eq!(served("host=nqn.a,queue=2,class=1 via=nvme-tcp,class=2", [0, 0, 0]), served("", [0, 0, 0]));
}

/// Deadlines in microseconds from submission; 0 is none, which is due after 10 ms.
#[test]
fn the_command_that_is_due_first_is_served_first() {
    let served = |chosen: bool| {
        let kind = if chosen { ArbiterKind::RoundRobin } else { ArbiterKind::Deadline };
        with(of(kind), async |sim, drive| {
            if chosen {
                assert_eq!(set(sim, drive, ARBITER, arbiter::DEADLINE).await, Status::SUCCESS);
            }
            let pairs: Vec<Pair> = (1..=3).map(|id| Pair::new(sim, drive, id, 64)).collect();
            for (pair, deadlines) in pairs.iter().zip([[0, 0], [9_000, 11_000], [300, 1_000]]) {
                for us in deadlines {
                    pair.put(SubmissionEntry { cdw3: us.into(), ..read(0, 1) }, HostMem::none());
                }
            }
            pairs.iter().for_each(Pair::ring);
            let mut order = Vec::new();
            while order.len() < 6 {
                sim.sleep(Span::from_ns(500)).await;
                pairs.iter().for_each(|pair| order.extend(pair.reap_all().iter().map(|_| pair.id.0)));
            }
            order
        })
    };
    // The first finds the slot free.
    assert_eq!((served(false), served(true)), (vec![1, 3, 3, 2, 1, 2], vec![1, 3, 3, 2, 1, 2]));
}

#[test]
fn weights_of_a_drive_are_the_default_of_arbitration() {
    with(of(ArbiterKind::ClassWeighted), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let get = SubmissionEntry::get_features(feature::ARBITRATION);
        assert_eq!(admin.execute(get, HostMem::none()).await.unwrap().dw0, 1 << 24 | 3);
    });
}

#[test]
fn a_host_changes_the_arbiter_while_the_drive_runs() {
    with(of(ArbiterKind::RoundRobin), async |sim, drive| {
        assert_eq!(set(sim, drive, feature::ARBITRATION, 0).await, Status::SUCCESS);
        let mut served = Vec::new();
        for value in [arbiter::DEFAULT, arbiter::CLASS, arbiter::ROUND_ROBIN, arbiter::LONGEST, arbiter::DEFAULT] {
            assert_eq!(set(sim, drive, ARBITER, value).await, Status::SUCCESS);
            served.push(order(sim, drive, [5, 1, 15], [1, 2, 2], Span::ZERO).await);
        }
        let turns = [3, 1, 2, 3, 2];
        assert_eq!(served, [turns, [3, 2, 2, 1, 3], turns, [3, 2, 3, 1, 2], turns]);
        let admin = host(sim, drive, QueueId::ADMIN);
        for wrong in [7, 255, u32::MAX] {
            let ended = admin.execute(SubmissionEntry::set_features(ARBITER, wrong), HostMem::none()).await.unwrap();
            assert_eq!(ended.status.meaning(), Status::INVALID_FIELD, "{wrong}");
        }
    });
}
