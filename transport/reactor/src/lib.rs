//! The second clock: drives served in real time, and the same run again in simulated time.
//!
//! One thread owns executors, the drives built on them and the clients connected to the drives. It turns: take the time T
//! once, run every event of the model up to T, receive arrivals from outside and stamp them T. All arrivals pass the
//! [`Port`], which can record them. [`replay`] repeats them through the same port at the recorded stamps, and the model
//! cannot detect the difference.
//!
//! | file | what |
//! |---|---|
//! | `port` | connections, commands in, completions out |
//! | `export` | a drive that clients can connect to |
//! | `outbox` | completions, notices, interrupts and questions on their way out |
//! | `asks` | requests that hosts have not answered |
//! | `arrival` | arrivals from a host that has its own queues in a controller |
//! | `doorbells` | notices to its transport, which watches its doorbells |
//! | `association`, `message_queue` | hosts whose commands pass as messages, as over TCP |
//! | `host` | its queues, as the controller sees them |
//! | `in_process` | connections of a server in the loop of its drives |
//! | `in_flight` | the commands of a queue that have not completed |
//! | `access` | what the controller finds in its memory, recorded and replayed |
//! | `inside`, `watch` | what a page shows of a drive beyond its figures: its parts, and data gathered while it is watched |
//! | `order` | orders of the operator to a drive: faults |
//! | `queue_ids` | which queue pairs of a controller are free |
//! | `recording`, `replay` | the arrivals, as a file; the same run again |
//! | `chunks` | its bytes, compressed and with checksums |
//! | `side_file` | the thread that writes it |
//! | `clock`, `timing` | the wall clock; how late completions are released, how far the model is behind |
//! | `client` | the trait that a transport implements for its clients |
//! | `buffers` | memory for the data of clients, lent within a budget |
//! | `window` | how many bytes the commands and replies of a client may hold |
//! | `effort` | what commands cost that move no data, and how much of it a turn begins |
//! | `waiter` | sleeping to the nanosecond and for sockets, in one system call (Linux) |
//! | `reactor` | the loop (Linux) |
//! | `source` | a drive that lies outside this process |
//! | `reactor::sources` | the loop looks after such drives |
//! | `reactor::clients`, `delivering` | the loop's clients, and what the model has for them |
//! | `reactor::messages` | messages from other threads |
//! | `reactor::timelines` | the executors of the drives, which advance by turns |
//! | `reactor::resting` | the loop waits |
//! | `reactor::ending` | the end of the loop |
//! | `reactor::line` | clients that wait for a queue pair |
//! | `linger` | how long it spins before it sleeps |
//! | `idle_states` | keeps the processors of clients from idle states |
//! | `handle` | a reactor's handle for other threads |
//! | `ring` | a queue pair between threads, for clients in this process |
//! | `listening` | code that servers share which accept clients |
//! | `socket`, `connecting` | addresses to listen at, unix and TCP sockets; connecting without waiting |
//!
//! Left out: wire protocols, accepting clients, and all blocking work: side threads do that and pass on the results.

pub mod access;
pub mod arrival;
mod asks;
pub mod association;
#[cfg(target_os = "linux")]
mod buffers;
mod chunks;
pub mod client;
mod clock;
#[cfg(target_os = "linux")]
pub mod connecting;
pub mod doorbells;
#[cfg(target_os = "linux")]
mod effort;
pub mod export;
#[cfg(target_os = "linux")]
pub mod handle;
mod host;
#[cfg(target_os = "linux")]
mod idle_states;
mod in_flight;
mod in_process;
pub mod inside;
#[cfg(target_os = "linux")]
mod linger;
#[cfg(target_os = "linux")]
pub mod listening;
mod message_queue;
pub mod order;
mod outbox;
pub mod port;
mod queue_ids;
#[cfg(target_os = "linux")]
pub mod reactor;
pub mod recording;
pub mod replay;
#[cfg(target_os = "linux")]
pub mod ring;
mod side_file;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod source;
pub mod timing;
#[cfg(target_os = "linux")]
mod waiter;
#[cfg(target_os = "linux")]
pub mod watch;
#[cfg(target_os = "linux")]
mod window;

pub use arrival::Arrival;
pub use association::{ConnectQueue, ConnectRefusal};
#[cfg(target_os = "linux")]
pub use buffers::{GUARANTEED, Grant, LARGEST, Loan, Share};
pub use client::{Client, Deadline, Intake, Interest};
pub use clock::WallClock;
pub use doorbells::{Doorbells, QueueKind};
pub use export::{Absence, Connect, Export, Fronted, Pairs, QueueExport};
#[cfg(target_os = "linux")]
pub use handle::Handle;
#[cfg(target_os = "linux")]
pub use idle_states::NoIdleStates;
pub use in_process::Counter;
pub use order::{FaultCount, Order};
pub use outbox::{Released, ToHost, What};
pub use port::{ConnectionId, Port};
#[cfg(target_os = "linux")]
pub use reactor::{PollMode, Reactor, Setup, pin_to_core};
#[cfg(target_os = "linux")]
pub use source::Source;
pub use timing::Timing;
#[cfg(target_os = "linux")]
pub use window::{FIRST_WINDOW, MAX_WINDOW, Window};
