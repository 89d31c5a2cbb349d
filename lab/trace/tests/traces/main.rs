//! Traces as files, as a user has them.
//!
//! | file | what |
//! |---|---|
//! | `files` | samples, and files made for a test |
//! | `formats` | a sample of each format, by hand, with its expected requests |
//! | `detection` | detection of formats |
//! | `malformed` | malformed files |
//! | `order` | traces slightly and far out of order |
//! | `recorded` | recordings of live drives |
//! | `compressed` | compressed files, archives, pipes |
//! | `round_trip` | written in another format and read again |
//! | `described` | `info` against known figures |
//! | `made` | the sample that comes with the documentation, and how it is made |
//! | `server` | an excerpt of a server's trace that comes with the papers, if present |

mod compressed;
mod described;
mod detection;
mod files;
mod formats;
mod made;
mod malformed;
mod order;
mod recorded;
mod round_trip;
mod server;
