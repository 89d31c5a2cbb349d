//! Power cuts at any point of a run: cut, restart, check. One explorer for stores, arrays and engines.
//!
//! | file | what |
//! |---|---|
//! | `subject` | the system under test: build, load, acknowledged, cut, restart, check |
//! | `point` | cut points: when, what loses power, for how long; at random times, or at a command |
//! | `explore` | the loop over the cut points, and how a failure reads |
//! | `gate` | the path of a host to its drive, which ends when the host dies, and the count of its commands |
//! | `possible` | the possible versions of items: for arrays, caches, and stores that change one item at a time |
//! | `history` | whole states by number: for stores that change several keys as one |
//! | `writers` | a load of several writers on such a store, its check, and the subject of both |
//! | `liar` | a drive with a deliberate mistake, which a campaign must notice |
//! | `seeds` | the seeds of a campaign, and the command that repeats one |
//!
//! A new subject implements [`Subject`] over its drives, hands commands through a [`Gate`], and calls [`explore`] for each seed:
//!
//! ```
//! use std::cell::Cell;
//!
//! use nandscape_lab_crash::{Cut, Lives, Subject, explore};
//! use nandscape_sim::{Executor, Seed, Sim, Span};
//!
//! /// A counter on a medium that keeps everything.
//! struct Counter {
//!     sim: Sim,
//!     medium: std::rc::Rc<Cell<u64>>,
//!     life: std::rc::Rc<Cell<u64>>,
//! }
//!
//! impl Subject for Counter {
//!     type Host = ();
//!
//!     async fn build(&self) -> Result<(), String> {
//!         Ok(())
//!     }
//!
//!     fn load(&self, (): &(), life: u64) {
//!         let (sim, medium, now) = (self.sim.clone(), self.medium.clone(), self.life.clone());
//!         self.sim.spawn(async move {
//!             while now.get() == life {
//!                 medium.set(medium.get() + 1);
//!                 sim.sleep(Span::from_us(10)).await;
//!             }
//!         });
//!     }
//!
//!     fn acknowledged(&self) -> u64 {
//!         self.medium.get()
//!     }
//!
//!     fn cut(&self, (): &(), what: Cut) {
//!         if what == Cut::All {
//!             self.life.set(self.life.get() + 1);
//!         }
//!     }
//!
//!     async fn restart(&self) -> Result<(), String> {
//!         Ok(())
//!     }
//!
//!     async fn check(&self, (): &()) -> Result<(), String> {
//!         Ok(())
//!     }
//! }
//!
//! let mut executor = Executor::new();
//! let sim = executor.sim();
//! let counter = Counter { sim: sim.clone(), medium: Default::default(), life: Default::default() };
//! let lives = Lives { lives: 3, blinks: 2, blink_within: Span::from_ms(1), within: Span::from_ms(5), off: Span::from_ms(1) };
//! let explored = executor.block_on(explore(&sim, &counter, lives.points(Seed::new(1).rng()))).unwrap().unwrap();
//! assert_eq!(explored.restarts, 3);
//! ```
//!
//! Left out: failures of flash below the subject, which a profile's faults cause, and processes that are killed in wall time.

mod explore;
mod gate;
mod history;
mod liar;
mod point;
mod possible;
mod seeds;
mod subject;
mod writers;

pub use explore::{Explored, Failure, explore};
pub use gate::{Commands, Gate};
pub use history::{Change, History, Map};
pub use liar::{Liar, Lie};
pub use point::{Cut, Lives, Point};
pub use possible::{Mark, Possible};
pub use seeds::each;
pub use subject::{Subject, ensure};
pub use writers::{Draw, Keyed, Store, Writers};
