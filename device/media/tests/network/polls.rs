//! Polls without cause, and operations dropped at any of their awaits.

use std::rc::Rc;

use nandscape_device_media::{Cell, Priority, Registers};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Executor, Span};
use proptest::prelude::*;

use crate::model::{self, Customer};
use crate::reference;
use crate::script::{Mix, Network, UNIT};

fn network() -> impl Strategy<Value = Network> {
    let registers = prop_oneof![Just(Registers::Single), Just(Registers::Double)];
    (1u32..3, 1u32..3, 1u32..3, registers, any::<bool>(), any::<bool>(), 1u32..10).prop_map(
        |(channels, dies_per_channel, planes_per_die, registers, partial_transfer, reads_first, customers)| Network {
            channels,
            dies_per_channel,
            planes_per_die,
            pages_per_block: 64,
            units_per_page: 2,
            cell: Cell::Tlc,
            read: vec![50, 60, 70],
            program: vec![300, 400, 500],
            erase: 900,
            unit_transfer: 20,
            registers,
            partial_transfer,
            reads_first,
            customers,
        },
    )
}

const MIX: Mix =
    Mix { reads: 6, programs: 4, erases: 2, collections: 2, think_below: 150, impatient: 0, hold_channels: true };

proptest! {
    #[test]
    fn a_run_cannot_tell_spurious_polls(network in network(), seed in any::<u64>(), think_below in 0u64..150) {
        let script = network.script(Mix { think_below, ..MIX }, 12, seed);
        let nothing = vec![vec![false; 12]; script.len()];
        let plain = model::run(Executor::new(), &network, &script, &nothing);
        prop_assert_eq!(&plain.0, &reference::run(&network, &script).0);
        let spurious = model::run(Executor::with_spurious_polls(), &network, &script, &nothing);
        prop_assert_eq!(spurious, plain);
    }

    /// Operations are dropped at any moment, while they work or wait. No other operation is blocked, and in the end
    /// nothing is held: an operation on any plane takes just its own time.
    #[test]
    fn a_dropped_operation_gives_back_what_it_has(
        network in network(),
        seed in any::<u64>(),
        patience in prop::collection::vec(prop::option::of(0u64..1_500), 1..40),
        spurious in any::<bool>(),
    ) {
        // A dropped collection would leave holes in the block it fills.
        let script = network.script(Mix { collections: 0, ..MIX }, 12, seed);
        let mut executor = if spurious { Executor::with_spurious_polls() } else { Executor::new() };
        let sim = executor.sim();
        let media = model::media(&sim, &network);
        let done = Rc::new(std::cell::Cell::new(0));
        let priority = if network.reads_first { Priority::ReadsFirst } else { Priority::Fifo };
        for (number, ops) in (0..).zip(script.clone()) {
            let customer = Customer { sim: sim.clone(), media: media.clone(), priority, number };
            let (patience, done) = (patience.clone(), done.clone());
            sim.spawn(async move {
                for (index, op) in ops.iter().enumerate() {
                    customer.sim.sleep(Span::from_ns(op.think)).await;
                    match patience[(index + number as usize) % patience.len()] {
                        Some(patience) => model::within(&customer.sim, Span::from_ns(patience), customer.serve(op)).await,
                        None => customer.serve(op).await,
                    }
                    done.set(done.get() + 1);
                }
            });
        }
        executor.block_on(sim.sleep_until(model::LONG)).unwrap();
        prop_assert_eq!(done.get(), script.iter().map(Vec::len).sum::<usize>(), "somebody was left behind");
        for plane in 0..network.planes() {
            let page = model::source(media.geometry(), plane, 0);
            let begun = sim.now();
            let mut breakdown = Breakdown::new();
            executor.block_on(media.read(page, 2 * UNIT, priority.who(cause::HOST_READ), &mut breakdown)).unwrap().unwrap();
            prop_assert_eq!((sim.now() - begun).ns(), 50 + 40);
        }
    }
}
