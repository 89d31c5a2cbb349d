//! Several controllers of one subsystem: identifiers, resets, power cuts, and their shares of the command slots.

use std::rc::Rc;

use crate::common::{Drive, FIRMWARE, LINK_LATENCY, Pair, READ, config, faulty_drive, host, read, with, write};
use nandscape_device_controller::ControllerConfig;
use nandscape_device_controller::arbiter::ArbiterKind;
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::Host;
use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;
use nandscape_drive::{Controller, HostIdentity, HostMem, QueueDrive, QueueId, Subsystem, TransportModel};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::register::{self, CC_EN, CSTS_RDY};
use nandscape_wire_nvme::vendor::{ARBITER, Attributes, arbiter};
use nandscape_wire_nvme::{Status, SubmissionEntry, feature};

/// Entries of 64 and of 16 bytes, enabled.
const ENABLED: u32 = CC_EN | 6 << 16 | 4 << 20;
const LONG: Span = Span::from_ms(5);

fn new_controller(drive: &Drive) -> Rc<dyn Controller> {
    drive.subsystem().new_controller(HostIdentity::default(), TransportModel::Message).unwrap()
}

/// An enabled controller.
fn enabled(drive: &Drive) -> Rc<dyn Controller> {
    let controller = new_controller(drive);
    controller.set_register(register::CC, ENABLED);
    assert!(is_ready(&controller));
    controller
}

fn is_ready(controller: &Rc<dyn Controller>) -> bool {
    controller.register(register::CSTS) & CSTS_RDY != 0
}

#[test]
fn controllers_have_identifiers_of_their_own_until_they_are_dropped() {
    with(config(), async |_, drive| {
        let subsystem = drive.subsystem();
        assert_eq!((drive.id(), subsystem.controllers()), (IN_PROCESS_CONTROLLER, vec![1]));
        let (first, other) = (new_controller(drive), new_controller(drive));
        assert_eq!((first.id(), other.id()), (2, 3));
        assert!(!is_ready(&first), "its host enables it");
        drop(first);
        assert_eq!(subsystem.controllers(), [1, 3]);
        let new = || subsystem.new_controller(HostIdentity::default(), TransportModel::Memory);
        let all: Vec<_> = std::iter::from_fn(|| new().ok()).collect();
        assert_eq!((all.len(), all[0].id()), (126, 2), "two others are there");
        assert_eq!(new().err(), Some(Status::CONNECT_CONTROLLER_BUSY));
    });
}

/// A host that leaves in the middle of a command gets no completion, and its controller is dropped at the end of the command.
#[test]
fn commands_in_work_keep_a_controller() {
    with(config(), async |sim, drive| {
        let (entry, mem) = write(0, 256);
        host(sim, drive, QueueId(1)).execute(entry, mem).await.unwrap();
        sim.sleep(LONG).await;
        let controller = enabled(drive);
        let pair = Pair::over(sim, controller.clone(), 1, 8);
        pair.put(read(0, 8), HostMem::zeroed(4_096));
        pair.ring();
        sim.sleep(FIRMWARE + LINK_LATENCY + READ / 2).await;
        controller.detach();
        assert!(pair.reap_all().is_empty());
        drop((controller, pair));
        assert_eq!(drive.subsystem().controllers(), [1, 2]);
        sim.sleep(READ).await;
        assert_eq!(drive.subsystem().controllers(), [1]);
    });
}

#[test]
fn a_reset_ends_the_commands_of_its_controller_only() {
    with(config(), async |sim, drive| {
        let (one, two) = (enabled(drive), enabled(drive));
        let pairs = [Pair::new(sim, drive, 1, 8), Pair::over(sim, one.clone(), 1, 8), Pair::over(sim, two, 1, 8)];
        for pair in &pairs {
            pair.put(read(0, 8), HostMem::zeroed(4_096));
            pair.ring();
        }
        one.set_register(register::CC, ENABLED & !CC_EN);
        sim.sleep(LONG).await;
        assert!(!is_ready(&one));
        assert_eq!(pairs.each_ref().map(|pair| pair.reap_all().len()), [1, 0, 1]);
    });
}

/// Each controller gets its share of a few command slots, however many commands wait in the others.
#[test]
fn command_slots_go_round() {
    with(ControllerConfig { command_slots: 2, ..config() }, async |sim, drive| {
        let controllers = [drive.clone() as Rc<dyn Controller>, enabled(drive), enabled(drive)];
        let pairs = controllers.map(|controller| Pair::over(sim, controller, 1, 64));
        let begun = sim.now();
        for (pair, commands) in pairs.iter().zip([60, 6, 6]) {
            (0..commands).for_each(|_| _ = pair.put(read(0, 1), HostMem::zeroed(512)));
            pair.ring();
        }
        let each = FIRMWARE + LINK_LATENCY;
        // The first has both slots when the others ring.
        let mut ended = [0; 3];
        while ended[1] + ended[2] < 12 {
            sim.sleep(each / 2).await;
            pairs.iter().zip(&mut ended).for_each(|(pair, ended)| *ended += pair.reap_all().len());
        }
        assert!((6..=9).contains(&ended[0]), "{ended:?} have ended");
        assert!(sim.now() < begun + each * 13, "no slot stays empty");
    });
}

/// With an arbiter that compares commands, slots go to the most urgent command of all controllers.
#[test]
fn arbiters_compare_the_commands_of_all_controllers() {
    let order = |kind, own: Option<u32>, attributes: [(u8, u32); 3]| {
        with(ControllerConfig { command_slots: 1, arbiter: kind, ..config() }, async |sim, drive| {
            let controllers = [drive.clone() as Rc<dyn Controller>, enabled(drive), enabled(drive)];
            if let Some(own) = own {
                let set = SubmissionEntry::set_features(ARBITER, own);
                let admin = host(sim, drive, QueueId::ADMIN);
                assert!(admin.execute(set, HostMem::none()).await.unwrap().status.is_success());
            }
            let pairs = controllers.map(|controller| Pair::over(sim, controller, 1, 64));
            for (pair, (class, deadline)) in pairs.iter().zip(attributes) {
                let cdw2 = Attributes::of(class, 0).0.into();
                let entry = SubmissionEntry { cdw2, cdw3: deadline.into(), ..read(0, 1) };
                (0..3).for_each(|_| _ = pair.put(entry, HostMem::zeroed(512)));
            }
            // The first takes the slot, and the others wait with the rest of it.
            pairs.iter().for_each(Pair::ring);
            let mut order = Vec::new();
            while order.len() < 9 {
                sim.sleep(Span::from_ns(500)).await;
                for (number, pair) in pairs.iter().enumerate() {
                    order.extend(pair.reap_all().iter().map(|_| number));
                }
            }
            order
        })
    };
    let of = [(15, 9_000), (5, 200), (1, 3_000)];
    assert_eq!(order(ArbiterKind::Class, None, of), [0, 2, 2, 2, 1, 1, 1, 0, 0]);
    assert_eq!(order(ArbiterKind::Deadline, None, of), [0, 1, 1, 1, 2, 2, 2, 0, 0]);
    // The first has waited for its second slot from the time at which it took the first.
    assert_eq!(order(ArbiterKind::RoundRobin, None, of), [0, 0, 1, 2, 0, 1, 2, 1, 2]);
    // One that takes turns is not overtaken, and neither is one with another arbiter.
    for own in [arbiter::ROUND_ROBIN, arbiter::OLDEST] {
        assert_eq!(order(ArbiterKind::Class, Some(own), of), [0, 0, 2, 1, 0, 2, 2, 1, 1]);
    }
}

/// Rules give hosts, functions and namespaces their classes, also those that are connected when the rules come.
#[test]
fn rules_order_the_hosts_of_a_drive() {
    let order = |rules: &str, nsids: [u32; 3]| {
        with(ControllerConfig { command_slots: 1, arbiter: ArbiterKind::Class, ..config() }, async |sim, drive| {
            let named = HostIdentity { hostnqn: "nqn.2026-11.org.example:a".to_owned(), ..HostIdentity::default() };
            let function = HostIdentity { function: Some(1), ..HostIdentity::default() };
            let later = |identity, model| {
                let controller = drive.subsystem().new_controller(identity, model).unwrap();
                controller.set_register(register::CC, ENABLED);
                controller
            };
            let first = later(named, TransportModel::Message);
            drive.subsystem().assign(&rules.parse().unwrap());
            let second = later(function, TransportModel::Message);
            let controllers = [drive.clone() as Rc<dyn Controller>, first, second];
            let pairs = controllers.map(|controller| Pair::over(sim, controller, 1, 64));
            for (pair, nsid) in pairs.iter().zip(nsids) {
                let entry = SubmissionEntry { nsid: nsid.into(), ..read(0, 1) };
                (0..2).for_each(|_| _ = pair.put(entry, HostMem::zeroed(512)));
            }
            pairs.iter().for_each(Pair::ring);
            let mut order = Vec::new();
            while order.len() < 6 {
                sim.sleep(Span::from_ns(500)).await;
                for (number, pair) in pairs.iter().enumerate() {
                    order.extend(pair.reap_all().iter().map(|_| number));
                }
            }
            order
        })
    };
    let hosts = "host=nqn.2026-11.org.example:a,class=1 function=1,class=2";
    assert_eq!(order(hosts, [1; 3]), [0, 1, 1, 2, 2, 0]);
    assert_eq!(order("function=1,class=1 via=nbd,class=5", [1; 3]), [0, 2, 2, 0, 1, 1]);
    // Commands of a namespace that does not exist fail in their turn.
    assert_eq!(order(&format!("{hosts} namespace=2,class=3"), [1, 2, 1]), [0, 2, 2, 1, 1, 0]);
}

/// Commands of all controllers end at a power cut, and all are served again when power returns.
#[test]
fn a_power_cut_reaches_all() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = faulty_drive(&sim, config(), StoreKind::Ram, 32, &["power_cut read off=20ms nth=1 count=1"]);
    let test = async {
        let (entry, mem) = write(0, 256);
        host(&sim, &drive, QueueId(2)).execute(entry, mem).await.unwrap();
        sim.sleep(LONG).await;
        let controllers = [drive.clone() as Rc<dyn Controller>, enabled(&drive), enabled(&drive)];
        let pairs = controllers.map(|controller| Pair::over(&sim, controller, 1, 8));
        for expected in [Status::ABORTED_POWER_LOSS, Status::SUCCESS] {
            for (pair, slba) in pairs.iter().zip([0, 64, 128]) {
                pair.put(read(slba, 8), HostMem::zeroed(4_096));
                pair.ring();
            }
            sim.sleep(Span::from_ms(200)).await;
            let ended = pairs.each_ref().map(|pair| pair.reap().map(|posted| posted.entry.status()));
            assert_eq!(ended, [Some(expected); 3]);
        }
    };
    executor.block_on(test).unwrap();
}

/// A host over Fabrics requests queues before it connects the first (Base 5.1.25.2.1).
#[test]
fn the_number_of_queues_is_asked_for_before_there_is_one() {
    with(config(), async |sim, drive| {
        let controller = enabled(drive);
        let queue = |id| Host::new(sim, QueueDrive::new(sim, controller.clone(), QueueId(id), 32).unwrap());
        let admin = queue(0);
        let ask = async || {
            let entry = SubmissionEntry::set_features(feature::NUMBER_OF_QUEUES, 0);
            admin.execute(entry, HostMem::none()).await.unwrap().status.meaning()
        };
        assert_eq!(ask().await, Status::SUCCESS);
        let _io = queue(1);
        assert_eq!(ask().await, Status::COMMAND_SEQUENCE_ERROR);
    });
}
