//! Drives that fall silent: reads go to the others long before the connection of the silent one would count as broken.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Placement};
use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_sim::{Executor, Span};

use crate::client::{SMALL, disks, drives, open_all};
use crate::degraded::{check, fill};

/// A drive that holds commands back while it is silent.
struct Silent {
    drive: Rc<dyn Drive>,
    is_silent: Cell<bool>,
    held: RefCell<Vec<Io>>,
    commands: Cell<u64>,
}

impl Silent {
    fn speak(&self) {
        self.is_silent.set(false);
        self.held.take().into_iter().for_each(|io| self.drive.submit(io));
    }
}

impl Drive for Silent {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        self.commands.set(self.commands.get() + 1);
        match self.is_silent.get() {
            true => self.held.borrow_mut().push(io),
            false => self.drive.submit(io),
        }
    }
}

#[test]
fn a_silent_drive_is_asked_once_and_again_when_it_answers() {
    const ITEMS: u32 = 60;
    for (placement, count) in [(Placement::Copies, 2), (Placement::Parity, 3)] {
        for policy in ["mixed", "epochs"] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let silent: Vec<Rc<Silent>> = drives(&sim, &disks(count))
                .into_iter()
                .map(|drive| {
                    let (is_silent, held, commands) = (Cell::new(false), RefCell::default(), Cell::new(0));
                    Rc::new(Silent { drive, is_silent, held, commands })
                })
                .collect();
            let ran = executor.block_on(async {
                let config = Config { placement, ack: Ack::All, caches: false, hedges_reads: true, ..SMALL };
                let given = silent.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
                let engine = open_all(&sim, given, policy, config).await.unwrap();
                fill(&engine, 0..ITEMS, 1).await;
                sim.sleep(Span::from_ms(100)).await;
                check(&engine, 0..ITEMS, 1).await;
                assert_eq!(engine.stats().hedged, 0, "no drive was silent");
                silent[1].is_silent.set(true);
                let (begun, before) = (sim.now(), silent[1].commands.get());
                check(&engine, 0..ITEMS, 1).await;
                // Half of the patience would be 5 s.
                assert!(sim.now() - begun < Span::from_ms(200), "{placement:?} {policy}: {:?}", sim.now() - begun);
                assert_eq!(
                    (silent[1].commands.get() - before, engine.stats().hedged),
                    (1, 1),
                    "{placement:?} {policy}"
                );
                silent[1].speak();
                sim.sleep(Span::from_ms(1)).await;
                check(&engine, 0..ITEMS, 1).await;
                assert!(silent[1].commands.get() > before + 10, "it is not asked although it answers");
                let stats = engine.stats();
                assert_eq!((stats.hedged, stats.lost_drives, stats.unreadable), (1, 0, 0));
                engine.close().await.unwrap();
            });
            ran.unwrap();
        }
    }
}
