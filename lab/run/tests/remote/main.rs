//! A remote drive, served a second time: a host reaches the second server, which reaches the first through a network that
//! breaks.
//!
//! | file | what |
//! |---|---|
//! | `served` | the second server |
//! | `breaking` | the network between the servers breaks |
//! | `busy` | reads behind background work |
//! | `identity` | the identity of the drive as hosts see it |
#![cfg(target_os = "linux")]

mod breaking;
mod busy;
#[path = "../../../../transport/nvme_tcp/tests/nvme_tcp/host.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod host;
mod identity;
#[path = "../../../../host/driver/tests/nvme_tcp/proxy.rs"]
#[allow(dead_code, reason = "the initiator's own tests use more of it")]
mod proxy;
mod served;
#[path = "../../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;
