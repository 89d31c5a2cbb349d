//! A host machine in simulated time: cores that threads, interrupts and softirqs share, and an account of each nanosecond of them.
//!
//! A [`Context`] runs code: a thread, an interrupt handler or a softirq. Code is an `async fn`. It awaits work of a given
//! length, a lock, an event or a sleep; the machine decides when and where that work runs, and what interrupts it.
//!
//! ```
//! use nandscape_host_machine::{Config, Machine, Mode, ThreadSpec};
//! use nandscape_sim::{Executor, Span};
//!
//! let mut executor = Executor::new();
//! let sim = executor.sim();
//! let machine = Machine::new(&sim, Config { switch: Span::from_us(2), ..Config::free(1) }).unwrap();
//! let thread = machine.thread(ThreadSpec::default()).unwrap();
//! executor.block_on(thread.work(Span::from_us(10), Mode::User)).unwrap();
//! assert_eq!(sim.now().ns(), 12_000);
//! ```
//!
//! | file | what |
//! |---|---|
//! | `config` | settings and their keys; which machines are impossible (`config/check`) |
//! | `affinity` | the processors on which a thread may run |
//! | `times` | kinds of time and sums by kind; holders of processors, and waits by holder |
//! | `machine` | the machine, and new contexts |
//! | `context` | a thread, an interrupt or a softirq: work, sleep, yield, spin |
//! | `running` | the future that ends when a context has done its work |
//! | `event` | a queue of waiting threads |
//! | `lock` | locks on which waiters sleep or spin |
//! | `scheduler` | which thread of a run queue is next, one policy a file |
//! | `state` | the processors and what is on them |
//!
//! # Rules
//! - Between two awaits of its own futures a context has its processor, and no time passes.
//! - A thread that awaits anything else leaves its processor, and is woken by its next work. An interrupt or a softirq ends then.
//! - A future may be dropped at any await: its context leaves the processor, the queue, or the line of a lock.
//! - All lengths of work and costs are those of a core of speed 1 whose other hardware thread is idle.
//!
//! Left out: load balancing beyond idle processors, throttling of real-time threads, frequencies, caches by address, memory by
//! NUMA node, delayed dequeueing (Linux 6.12), and groups of threads.
#![forbid(unsafe_code)]

mod affinity;
mod config;
mod context;
mod event;
mod lock;
mod machine;
mod running;
pub mod scheduler;
mod state;
mod times;

pub use affinity::Affinity;
pub use config::{Config, ConfigError};
pub use context::{Context, Counts, Mode, Policy, ThreadSpec};
pub use event::{Event, Wait};
pub use lock::{Acquire, Guard, Lock, LockKind};
pub use machine::Machine;
pub use running::Work;
pub use times::{Holder, Kind, Role, Times, Waits};
