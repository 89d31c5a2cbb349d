//! `nandscape ctl memcached`: orders to a server of memcached's protocols.

use clap::{Args, Subcommand};

use super::ServerArgs;
use crate::failure::Failure;

#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  nandscape ctl memcached replace m.control d1 \\
      nvme-tcp://127.0.0.1:4422/NQN

Exit status: 0 when done, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or an order that the server rejects.")]
pub(super) struct MemcachedArgs {
    #[command(subcommand)]
    order: MemcachedOrder,
}

#[derive(Subcommand)]
enum MemcachedOrder {
    /// Put another drive in the place of a lost one, and rebuild it while clients are served
    Replace(ReplaceArgs),
}

#[derive(Args)]
#[command(after_help = "\
The server is nandscape memcached --control SOCKET. The lost drive is missing, or has failed: `stats` counts it in
engine_lost_drives, and a note of the server names it. A remote drive in its place is empty, or the lost one itself; at its next start
name the new drive in the place of the lost one. If the drives are in the server's process, `new` makes a drive: remove the file of the
lost drive first. The order returns once the rebuild has begun; engine_rebuild_bytes_left in `stats` is what remains.

Examples:
  nandscape ctl memcached replace m.control d1 \\
      nvme-tcp://127.0.0.1:4422/NQN
  nandscape ctl memcached replace m.control d1 new

Exit status: 0 when the rebuild has begun, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no
server listens, or a drive that cannot take the place.")]
struct ReplaceArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The lost drive: d0, d1 and so on, in the order of the server's --drive
    #[arg(value_name = "DRIVE")]
    drive: String,
    /// The drive in its place: the URL of a remote drive, or `new`
    #[arg(value_name = "URL|new")]
    with: String,
}

/// Gives the order, and prints the reply.
pub(super) fn run(args: &MemcachedArgs) -> Result<(), Failure> {
    let MemcachedOrder::Replace(ReplaceArgs { server, drive, with }) = &args.order;
    let reply = server.order("replace", &[("drive", Some(drive)), ("with", Some(with))])?;
    server.print(&reply, |reply| format!("{}\n", reply["replaced"].as_str().unwrap_or_default()))
}
