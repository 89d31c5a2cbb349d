//! The checks that every [`Drive`] must pass, a whole SSD as well as a layer over others.
//!
//! A check builds its drives itself, each on a separate executor, runs commands on them and compares the results with
//! the NVM command set specification. It takes a seed; an error is one sentence with the check, the seed and the
//! step. [`all`] runs every check.
//!
//! | file | what |
//! |---|---|
//! | `host` | submits commands and records their results |
//! | `model` | the right contents of each logical block |
//! | `data` | random commands at depth against the model |
//! | `overlap` | writes of the same blocks at the same time |
//! | `fields` | the status of every bad field, and that nothing changed |
//! | `damage` | the possible contents of each logical block when flash fails, and after power cuts |
//! | `tokens` | exactly one completion a command: at any depth, in a power cut, with the drive dropped |
//! | `repeat` | same seed, same run; spurious polls change nothing |
//!
//! Left out: the drive's own tables, which [`Subject::check`] checks.

mod damage;
mod data;
mod fields;
mod host;
mod model;
mod overlap;
mod repeat;
mod tokens;

use std::rc::Rc;

use nandscape_sim::{Executor, Sim, Span};

use crate::drive::Drive;

pub use damage::{Ask, Damaged};
pub use data::{Load, data};
pub use fields::fields;
pub use host::{Ended, Host};
pub use model::Deallocation;
pub use overlap::overlap;
pub use repeat::{repeat, spurious_polls};
pub use tokens::{CUTS, dropped_drive, once_each, power_cut};

/// A drive to be checked. It is new: no block was ever written, and all read as zeros.
pub struct Subject {
    /// The drive.
    pub drive: Rc<dyn Drive>,
    /// The contents of deallocated blocks, as the drive promises them.
    pub deallocation: Deallocation,
    /// Checks the drive's own tables; called while no command is outstanding. The error is one sentence.
    pub check: Box<dyn Fn() -> Result<(), String>>,
}

/// Makes a new drive.
pub type Make<'a> = &'a dyn Fn(&Sim) -> Subject;

impl Subject {
    /// A drive that promises only the required minimum, and has no tables to check.
    pub fn new(drive: Rc<dyn Drive>) -> Subject {
        Subject { drive, deallocation: Deallocation::OldOrZeros, check: Box::new(|| Ok(())) }
    }
}

/// Runs every check, with a load of ordinary size.
///
/// # Errors
/// The drive's fault.
pub fn all(make: Make<'_>, seed: u64) -> Result<(), String> {
    let load = Load::default();
    fields(make, seed)?;
    data(make, &load, seed)?;
    overlap(make, seed)?;
    once_each(make, seed)?;
    power_cut(make, CUTS, seed)?;
    dropped_drive(make, seed)?;
    repeat(make, &load, seed)?;
    spurious_polls(make, &load, seed)
}

/// Longer than any background work of a drive.
const SETTLE: Span = Span::from_s(10);

/// Runs `main` on a new drive, waits until the drive is at rest, and checks its tables.
fn run<T>(
    name: &str,
    seed: u64,
    mut executor: Executor,
    make: Make<'_>,
    main: impl AsyncFnOnce(&Host, &Subject) -> Result<T, String>,
) -> Result<T, String> {
    let at = |what: String| format!("{name}, seed {seed}: {what}");
    let sim = executor.sim();
    let subject = make(&sim);
    let host = Host::new(&sim, subject.drive.clone());
    let result = executor.block_on(main(&host, &subject)).map_err(|stalled| at(stalled.to_string()))?;
    let result = result.map_err(at)?;
    (subject.check)().map_err(|what| at(format!("after the last command, {what}")))?;
    executor.block_on(sim.sleep(SETTLE)).map_err(|stalled| at(stalled.to_string()))?;
    host.verdict().map_err(at)?;
    (subject.check)().map_err(|what| at(format!("at rest, {what}")))?;
    Ok(result)
}
