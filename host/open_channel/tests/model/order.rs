//! The order of the commands of a die: data is the same as without an order, and reads that a drive serves first do
//! not starve a write.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_host_open_channel::{DieFifo, DieOrder, Means, OneWrite, Place};
use nandscape_sim::{Executor, Span};

use crate::rig::Rig;

fn orders() -> [Box<dyn DieOrder>; 2] {
    [Box::new(OneWrite), Box::new(DieFifo)]
}

#[test]
fn commands_that_are_split_by_dies_move_the_data_of_each_address() {
    for means in [Means::Vector, Means::Rows] {
        for order in orders() {
            let mut executor = Executor::new();
            let sim = executor.sim();
            executor
                .block_on(async {
                    let mut rig = Rig::new(&sim, &[], means).await;
                    rig.host = rig.host.with_order(&sim, order);
                    let geometry = *rig.host.geometry();
                    let address = |group, sector| geometry.address(Place { group, pu: 0, chunk: 0, sector });
                    // Of three dies in turn, as many as are written together.
                    let write = geometry.ws_min;
                    let addresses: Vec<u64> = (0..9)
                        .flat_map(|number| (0..write).map(move |at| (number % 3, number / 3 * write + at)))
                        .map(|(group, sector)| address(group, sector))
                        .collect();
                    let stamps: Vec<u64> = (1..).take(addresses.len()).collect();
                    rig.write(&addresses, &stamps).await.expect("a write");
                    let (mut from, mut expected): (Vec<u64>, Vec<u64>) =
                        addresses.iter().zip(&stamps).filter(|(_, stamp)| *stamp % 3 == 1).unzip();
                    assert_eq!(rig.read(&from).await.as_ref(), Ok(&expected), "{means:?}");
                    from.reverse();
                    expected.reverse();
                    assert_eq!(rig.read(&from).await, Ok(expected), "{means:?}");
                    let beyond = [addresses[0], address(0, geometry.sectors - 1) + 1];
                    rig.read(&beyond).await.expect_err("there is nothing");
                    assert_eq!(rig.read(&addresses).await, Ok(stamps), "{means:?}: turns were given back");
                    rig.host.reset(&[address(0, 0), address(1, 0)]).await.expect("a reset of chunks of two dies");
                })
                .expect("it ends");
        }
    }
}

/// Writes of each die, one after the other, that end within 200 ms during `readers` outstanding random reads.
fn writes(order: Box<dyn DieOrder>, readers: u32) -> u64 {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let changes = ["controller.priority=reads_first", "capacity=96MiB", "geometry.dies_per_channel=2"];
            let mut rig = Rig::new(&sim, &changes, Means::Vector).await;
            rig.host = rig.host.with_order(&sim, order);
            let rig = Rc::new(rig);
            let geometry = *rig.host.geometry();
            let dies: Vec<(u32, u32)> =
                (0..geometry.groups).flat_map(|group| (0..geometry.pus).map(move |pu| (group, pu))).collect();
            for (group, pu) in &dies {
                let row = |sector| geometry.address(Place { group: *group, pu: *pu, chunk: 0, sector });
                let all: Vec<u64> = (0..geometry.sectors).map(row).collect();
                rig.host.write_from(&all, &HostMem::none()).await.expect("a write");
            }
            let (ended, end) = (Rc::new(Cell::new(0)), sim.now() + Span::from_ms(200));
            for reader in 0..readers {
                let (rig, sim, dies) = (rig.clone(), sim.clone(), dies.clone());
                sim.clone().spawn(async move {
                    let mut number = reader;
                    while sim.now() < end {
                        let (group, pu) = dies[number as usize % dies.len()];
                        let sector = number / dies.len() as u32 % geometry.sectors;
                        let address = geometry.address(Place { group, pu, chunk: 0, sector });
                        rig.host.read_into(&[address], &HostMem::none()).await.expect("a read");
                        number += readers + 1;
                    }
                });
            }
            for (group, pu) in dies.iter().copied() {
                let (rig, sim, ended) = (rig.clone(), sim.clone(), ended.clone());
                sim.clone().spawn(async move {
                    let places = (1..geometry.chunks).flat_map(|chunk| {
                        (0..geometry.sectors).step_by(geometry.ws_min as usize).map(move |at| (chunk, at))
                    });
                    for (chunk, first) in places {
                        let place = |sector| geometry.address(Place { group, pu, chunk, sector });
                        let addresses: Vec<u64> = (first..first + geometry.ws_min).map(place).collect();
                        rig.host.write_from(&addresses, &HostMem::none()).await.expect("a write");
                        if sim.now() >= end {
                            return;
                        }
                        ended.set(ended.get() + 1);
                    }
                });
            }
            sim.sleep_until(end).await;
            ended.get()
        })
        .expect("it ends")
}

#[test]
fn a_fifo_of_each_die_ends_the_starvation_of_writes_by_reads() {
    let alone = writes(Box::new(OneWrite), 0);
    let starved = writes(Box::new(OneWrite), 96);
    let cured = writes(Box::new(DieFifo), 96);
    assert!(starved * 10 < alone, "{starved} writes beside reads, {alone} alone");
    assert!(cured * 3 > alone, "{cured} writes beside reads in turn, {alone} alone");
}
