//! A server of memcached's protocols over drives of this process, or of other servers, in wall time.
//!
//! | file | what |
//! |---|---|
//! | `drives` | its drives |
//! | `remote` | those of other servers |
//! | `replace` | another drive takes the place of a lost one |
//! | `seat` | the place of a drive, for the operator |
//! | `added` | remote drives that the loop did not have when it began |
//! | `serve` | a thread with drives, engine and server |
//! | `client` | a client at its socket |
//! | `sockets` | clients, as one source of the thread's loop |

mod added;
mod client;
mod drives;
mod remote;
mod replace;
mod seat;
mod serve;
mod sockets;

pub use drives::{NEW, Place, ServedDrive};
pub use replace::Replacer;
pub use serve::{ServeError, ServeSpec, Serving, serve};
