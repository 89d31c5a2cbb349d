//! Traces as a user has them: files.
//!
//! | file | what |
//! |---|---|
//! | `files` | samples, and files made for a test |
//! | `formats` | a sample of each format, by hand, with what must be read from it |
//! | `detection` | which format a file is in |
//! | `malformed` | files that are not what they should be |
//! | `order` | out of order by little and by much |
//! | `compressed` | compressed files, archives, pipes |
//! | `round_trip` | written in another format and read again |
//! | `described` | what `info` says of traces whose figures are known |
//! | `server` | the cut of a server's trace that comes with the papers, where it is at hand |

mod compressed;
mod described;
mod detection;
mod files;
mod formats;
mod malformed;
mod order;
mod round_trip;
mod server;
