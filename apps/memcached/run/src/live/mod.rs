//! A server of memcached's protocols over drives of this process, or of other servers, in wall time.
//!
//! | file | what |
//! |---|---|
//! | `drives` | its drives |
//! | `remote` | those of other servers |
//! | `serve` | a thread with drives, engine and server |
//! | `sockets` | clients, as one source of the thread's loop |

mod drives;
mod remote;
mod serve;
mod sockets;

pub use drives::{Place, ServedDrive};
pub use serve::{ServeError, ServeSpec, Serving, serve};
