//! A server of memcached's protocols over drives of this process, in wall time.
//!
//! | file | what |
//! |---|---|
//! | `drives` | its drives |
//! | `serve` | a thread with drives, engine and server |
//! | `sockets` | clients, as one source of the thread's loop |

mod drives;
mod serve;
mod sockets;

pub use drives::{Place, ServedDrive};
pub use serve::{ServeError, ServeSpec, Serving, serve};
