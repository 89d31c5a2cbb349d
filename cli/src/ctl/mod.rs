//! `nandscape ctl`: orders to a running server over its control socket.

mod client;
mod gc;
mod memcached;
mod words;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nandscape_sim::Span;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;
use client::Client;

/// Order statistics, faults, settings and the end of a running server, over its control socket.
///
/// The socket is that of `nandscape serve --control PATH`, or of `nandscape memcached --control PATH`. An order takes effect between two turns
/// of the server's loop. A recording has the orders to drives, and a replay repeats them; it has no replacements.
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  nandscape serve --drive default --set capacity=32GiB --nbd unix:n.sock \\
      --control n.control
  nandscape ctl status n.control          while the server starts, too
  nandscape ctl drives n.control
  nandscape ctl statistics n.control --json
  nandscape ctl fault add n.control 'uncorrectable lba=0-7'
  nandscape ctl set n.control ftl.ox_block.gc_slots=4
  nandscape ctl stop n.control

Exit status: 0 when done, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or an order that the server rejects.")]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    order: CtlOrder,
}

#[derive(Subcommand)]
enum CtlOrder {
    /// Print whether the server serves, or how far its start is
    Status(AskArgs),
    /// List the drives of the server, with what each has done, and whether it is in use and takes writes
    Drives(AskArgs),
    /// Print counts and latencies by kind of command since the drives began; all figures with --json
    Statistics(AskArgs),
    /// List the settings that can be changed while the drives run
    Settings(AskArgs),
    /// Change settings of a drive, from now on until it is turned off
    Set(SetArgs),
    /// Add, list and clear fault rules
    Fault(FaultArgs),
    /// Fail a member of an array, make a drive a spare, begin a scrub
    Array(ArrayArgs),
    /// Order garbage collection: watermarks, runs, reads without internal work in their way
    Gc(gc::GcArgs),
    /// Replace lost drives of a server of memcached's protocols
    Memcached(memcached::MemcachedArgs),
    /// End the server in order: complete the commands in work, flush, and end
    Stop(StopArgs),
}

// Where the server is. A doc comment would become the help of each order.
#[derive(Args)]
struct ServerArgs {
    /// The control socket: PATH of `nandscape serve --control PATH`, or of `nandscape memcached`
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// Give up when the server has not answered for this long
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: Span,
    /// Print the server's reply as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape ctl status n.control
  nandscape ctl drives n.control
  nandscape ctl statistics n.control --json
  nandscape ctl settings n.control

Exit status: 0 when printed, 1 when the server has ended or does not answer in time, 2 for bad usage or a path at which no server
listens.")]
struct AskArgs {
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
#[command(after_help = "\
Keys of a drive are those that `nandscape ctl settings` lists. Several changes are made in the order given; after one that is rejected,
the changes before it hold.

Examples:
  nandscape ctl set n.control ftl.ox_block.gc_slots=4
  nandscape ctl set n.control --drive b ftl.ox_block.gc_target=50%

Exit status: 0 when changed, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or a change that the server rejects.")]
struct SetArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The drive by its name; not needed where the server has one drive
    #[arg(long = "drive", value_name = "NAME")]
    name: Option<String>,
    /// The settings and their new values
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = change)]
    changes: Vec<(String, String)>,
}

#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  nandscape ctl fault add n.control 'slow read by=2ms probability=0.1%'
  nandscape ctl fault list n.control
  nandscape ctl fault clear n.control

Exit status: 0 when done, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or an order that the server rejects.")]
struct FaultArgs {
    #[command(subcommand)]
    order: FaultOrder,
}

#[derive(Subcommand)]
enum FaultOrder {
    /// Add a rule to the flash of a drive, from now on
    Add(AddArgs),
    /// List the rules of all drives, the operations that each matched, and those that it struck
    List(AskArgs),
    /// Remove all rules of a drive, also those of its profile; their effects so far remain
    Clear(ClearArgs),
}

#[derive(Args)]
#[command(after_help = "\
Rules: docs/techniques/faults.md.

Examples:
  nandscape ctl fault add n.control 'uncorrectable lba=0-7'
  nandscape ctl fault add n.control --drive b 'fail program every=500'

Exit status: 0 when added, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or a rule that the server rejects.")]
struct AddArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The drive by its name; not needed where the server has one drive
    #[arg(long = "drive", value_name = "NAME")]
    name: Option<String>,
    /// The rule, as one word of the shell; of a drive in an array NAME=RULE
    #[arg(value_name = "RULE")]
    rule: String,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape ctl fault clear n.control
  nandscape ctl fault clear n.control --drive b

Exit status: 0 when removed, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server
listens, or a drive that the server does not have.")]
struct ClearArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The drive by its name; not needed where the server has one drive
    #[arg(long = "drive", value_name = "NAME")]
    name: Option<String>,
}

#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  nandscape ctl array fail n.control m1
  nandscape ctl array spare n.control m4
  nandscape ctl array scrub n.control

Exit status: 0 when done, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or an order that the server rejects.")]
struct ArrayArgs {
    #[command(subcommand)]
    order: ArrayOrder,
}

#[derive(Subcommand)]
enum ArrayOrder {
    /// Take a member out of service, if the level tolerates that
    Fail(MemberArgs),
    /// Make a drive a spare, which is rebuilt where a member is missing
    Spare(MemberArgs),
    /// Begin a scrub: compare each stripe with its parity or copies
    Scrub(ScrubArgs),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape ctl array fail n.control m1
  nandscape ctl array spare n.control m4

Exit status: 0 when done, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or an order that the server rejects.")]
struct MemberArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The drive in the array, by its name
    #[arg(value_name = "DRIVE")]
    member: String,
}

#[derive(Args)]
#[command(after_help = "\
Its progress is in the counters array_scrub_stripes and array_scrub_mismatches of `nandscape ctl statistics n.control --json`.

Examples:
  nandscape ctl array scrub n.control

Exit status: 0 when begun, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or an array that has nothing to compare.")]
struct ScrubArgs {
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape ctl stop n.control

Exit status: 0 when the server has taken the order, 1 when it has ended or does not answer in time, 2 for bad usage or a path at which
no server listens.")]
struct StopArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// `KEY=VALUE`.
fn change(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE is valid, such as ftl.ox_block.gc_slots=4".to_owned()),
    }
}

impl ServerArgs {
    fn connect(&self) -> Result<Client, Failure> {
        Client::connect(&self.socket, self.timeout)
    }

    /// Gives one order.
    fn order(&self, command: &str, fields: &[(&str, Option<&str>)]) -> Result<Value, Failure> {
        self.connect()?.order(command, fields)
    }

    /// Prints a reply.
    fn print(&self, reply: &Value, words: impl FnOnce(&Value) -> String) -> Result<(), Failure> {
        output::result(&if self.json { reply.to_string() } else { words(reply) })
    }
}

/// Gives the order, and prints the reply.
pub(crate) fn run(args: &CtlArgs) -> Result<(), Failure> {
    match &args.order {
        CtlOrder::Status(AskArgs { server }) => server.print(&server.order("status", &[])?, words::status),
        CtlOrder::Drives(AskArgs { server }) => drives(server),
        CtlOrder::Statistics(AskArgs { server }) => server.print(&server.order("statistics", &[])?, words::statistics),
        CtlOrder::Settings(AskArgs { server }) => {
            server.print(&server.order("settings", &[])?, |reply| words::settings(&each(reply)))
        }
        CtlOrder::Set(args) => set(&args.server, args.name.as_deref(), &args.changes),
        CtlOrder::Fault(args) => fault(&args.order),
        CtlOrder::Array(args) => array(&args.order),
        CtlOrder::Gc(args) => gc::run(args),
        CtlOrder::Memcached(args) => memcached::run(args),
        CtlOrder::Stop(StopArgs { server }) => {
            server.print(&server.order("stop", &[])?, |_| "the server ends\n".to_owned())
        }
    }
}

/// The drives of a reply.
fn each(reply: &Value) -> Vec<&Value> {
    reply["drives"].as_array().map(|drives| drives.iter().collect()).unwrap_or_default()
}

fn drives(server: &ServerArgs) -> Result<(), Failure> {
    let statistics = server.order("statistics", &[])?;
    let names: Vec<&Value> = each(&statistics).into_iter().map(|drive| &drive["name"]).collect();
    match server.json {
        true => output::result(&with_states(&names, &statistics).to_string()),
        false => output::result(&words::drives(&statistics)),
    }
}

/// The names of drives, and the states of those that their store does not read.
fn with_states(names: &[&Value], statistics: &Value) -> Value {
    let absent = each(statistics).into_iter().filter(|drive| !drive["state"].is_null());
    let states: serde_json::Map<_, _> =
        absent.filter_map(|drive| Some((drive["name"].as_str()?.to_owned(), drive["state"].clone()))).collect();
    match states.is_empty() {
        true => json!({ "drives": names }),
        false => json!({ "drives": names, "states": states }),
    }
}

fn set(server: &ServerArgs, name: Option<&str>, changes: &[(String, String)]) -> Result<(), Failure> {
    let mut client = server.connect()?;
    let mut last = Value::Null;
    for (key, value) in changes {
        last = client.order("set", &[("drive", name), ("key", Some(key)), ("value", Some(value))])?;
    }
    server.print(&last, |reply| words::settings(&[reply]))
}

fn fault(order: &FaultOrder) -> Result<(), Failure> {
    match order {
        FaultOrder::Add(AddArgs { server, name, rule }) => {
            let reply = server.order("fault", &[("drive", name.as_deref()), ("rule", Some(rule))])?;
            server.print(&reply, |reply| words::faults(&[reply]))
        }
        FaultOrder::List(AskArgs { server }) => {
            server.print(&server.order("faults", &[])?, |reply| words::faults(&each(reply)))
        }
        FaultOrder::Clear(ClearArgs { server, name }) => {
            let reply = server.order("clear_faults", &[("drive", name.as_deref())])?;
            server.print(&reply, |reply| words::faults(&[reply]))
        }
    }
}

fn array(order: &ArrayOrder) -> Result<(), Failure> {
    let (server, key, value, done) = match order {
        ArrayOrder::Fail(MemberArgs { server, member }) => (server, "array.fail", &**member, "is out of service"),
        ArrayOrder::Spare(MemberArgs { server, member }) => (server, "array.spare", &**member, "is a spare"),
        ArrayOrder::Scrub(ScrubArgs { server }) => (server, "array.scrub", "start", "begins"),
    };
    let subject = if key == "array.scrub" { "the scrub" } else { value };
    let reply = server.order("set", &[("key", Some(key)), ("value", Some(value))])?;
    server.print(&reply, |_| format!("{subject} {done}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_key_and_a_value() {
        assert_eq!(change("a.b=c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        for wrong in ["", "a", "=b", "a="] {
            assert!(change(wrong).unwrap_err().starts_with("KEY=VALUE is valid"), "{wrong}");
        }
    }
}
