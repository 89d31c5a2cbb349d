//! `nandscape serve` as users meet it: the tests run the program, and unmodified clients use its drives: fio, nbdinfo, nbdcopy,
//! qemu-img, qemu-io. `cargo xtask tools` installs them.
//!
//! | file | what |
//! |---|---|
//! | `server` | runs the server, waits until it serves, ends it |
//! | `tools` | runs the clients |
//! | `integrity` | written data is read back, under garbage collection, by each client |
//! | `arrays` | arrays of drives, some of which are killed |
//! | `dashboard` | the live page, in a browser |
//! | `ctl` | orders of the operator |
//! | `ending` | clients that are killed, servers that are asked to end |
//! | `guests` | Linux guests as hosts |
//! | `formats` | drives that are formatted while they are served |
//! | `namespaces` | a drive with several namespaces, over each transport |
//! | `hang_ups` | clients that hang up at bad moments |
//! | `hostile` | hostile clients of every kind and transport among others |
//! | `patience` | waiting, with an end |
//! | `sockets` | where the server listens, and where it refuses to |
//! | `bench` | workloads of our own on served drives |
//! | `faults` | injected faults, as clients meet them |
//! | `fox` | uFLIP-OC on a served drive |
//! | `ycsb` | YCSB on a tree on a served drive |
//! | `lsm` | an LSM-tree on a served drive, and which clients may have a store on one |
//! | `remote` | a drive of one server, served by another |
//! | `states` | the state in which a server leaves a drive |
//! | `store` | drives in files, killed and started again |
//! | `tour` | the lines of docs/tour.md on a drive in a file |
//! | `recordings` | recorded and replayed, and invalid recordings |
//! | `refusals` | commands that are rejected, recorded and replayed |
#![cfg(target_os = "linux")]

mod arrays;
mod bench;
mod ctl;
mod dashboard;
mod deadlines;
mod ending;
mod far_arrays;
mod faults;
mod formats;
mod fox;
mod guests;
mod hang_ups;
mod hosted;
mod hostile;
mod integrity;
mod lsm;
mod namespaces;
mod patience;
mod recordings;
mod refusals;
mod remote;
mod server;
mod sockets;
mod states;
mod store;
mod tools;
mod tour;
mod ycsb;
