//! A server of memcached's protocols over drives of this process, in wall time.
//!
//! | file | what |
//! |---|---|
//! | `serve` | a thread with drives, engine and server |
//! | `sockets` | clients, as one source of the thread's loop |

mod serve;
mod sockets;

pub use serve::{ServeError, ServeSpec, Serving, serve};
