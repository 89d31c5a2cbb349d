//! Sessions with a live drive: clients send anything and leave. The server continues, releases the client, and serves the
//! next. The server of a fuzz target runs in this process; `nbd_client` and its like run their sessions against any server.
//!
//! | file | what |
//! |---|---|
//! | `server` | a reactor with its drive and listeners, on threads |
//! | `nbd` | an NBD client |
//! | `nvme_tcp` | a host of NVMe/TCP |
//! | `vfio_user`, `channel` | a virtual machine: its messages, with descriptors |

mod channel;
mod nbd;
mod nvme_tcp;
mod server;
mod vfio_user;

use std::io::{Read, Write};

pub use nbd::{nbd, nbd_client};
pub use nvme_tcp::{NvmeTcpHost, NvmeTcpTarget, nvme_tcp, nvme_tcp_host};
pub(crate) use server::export;
pub use vfio_user::{vfio_user, vfio_user_machine};

/// The most bytes that a client sends: fewer than sockets hold, so that a server that waits for its client to read cannot
/// keep the client waiting.
const MOST_SENT: usize = 100 << 10;
/// The most bytes that a client takes before it hangs up.
const MOST_TAKEN: u64 = 1 << 20;

/// Takes what comes until the server hangs up, or that is much.
///
/// # Panics
/// When the server neither sends nor hangs up.
fn take_rest(stream: impl Read) {
    match std::io::copy(&mut stream.take(MOST_TAKEN), &mut std::io::sink()) {
        Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            panic!("the server neither answers nor hangs up")
        }
        // It has hung up before it had read everything.
        _ => {}
    }
}

/// Sends a part of `bytes`; whether the server still takes bytes.
fn send(mut stream: impl Write, bytes: &[u8], sent: &mut usize) -> bool {
    let bytes = &bytes[..bytes.len().min(MOST_SENT - *sent)];
    *sent += bytes.len();
    stream.write_all(bytes).is_ok() && *sent < MOST_SENT
}
