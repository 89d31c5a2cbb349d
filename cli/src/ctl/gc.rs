//! `nandscape ctl gc`: garbage collection at the operator's command. The orders are settings of the control socket; the drive's
//! counters show their effect.

use clap::{Args, Subcommand};
use nandscape_lab_report::format::{count, size};
use nandscape_sim::Span;
use serde_json::{Value, json};

use super::ServerArgs;
use super::client::Client;
use crate::failure::Failure;
use crate::numbers::whole_32;

const WATERMARKS: &str = "gc.watermarks";
const RUN: &str = "gc.run";

/// Order garbage collection: watermarks, runs, reads without internal work in their way.
///
/// For FTLs of ftl.kind = "page", without parity stripes: of a drive with several, --member names one. Hosts give the same orders by vendor
/// commands: docs/nvme.md.
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  nandscape ctl gc status n.control
  nandscape ctl gc watermarks n.control --low 200 --high 400
  nandscape ctl gc run n.control 500ms
  nandscape ctl gc ready n.control

Exit status: 0 when done, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or a drive that takes no such orders.")]
pub(super) struct GcArgs {
    #[command(subcommand)]
    order: GcOrder,
}

#[derive(Subcommand)]
enum GcOrder {
    /// Print capacities, block size, free blocks, watermarks, and whether the drive collects
    Status(StatusArgs),
    /// Set both watermarks, until the drive loses power
    Watermarks(WatermarksArgs),
    /// Collect for a time, or until the high watermark is reached
    Run(RunArgs),
    /// Ask for reads without internal work in their way
    Ready(ReadyArgs),
}

// A drive of a server.
#[derive(Args)]
struct DriveArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The drive by its name; not needed where the server has one drive
    #[arg(long = "drive", value_name = "NAME")]
    name: Option<String>,
    /// A drive below its arrays, or one FTL of several, by its name; without it the order is for all of them
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape ctl gc status n.control
  nandscape ctl gc status n.control --drive b --json
  nandscape ctl gc status n.control --member drive-1
  nandscape ctl gc status n.control --member even

Exit status: 0 when printed, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or a drive that takes no such orders.")]
struct StatusArgs {
    #[command(flatten)]
    drive: DriveArgs,
}

#[derive(Args)]
#[command(after_help = "\
Below the low watermark the drive collects by itself until it is reached again; 0 leaves that to the policy of the drive. The high
watermark ends runs. Both count erased blocks of the whole drive.

Examples:
  nandscape ctl gc watermarks n.control --low 200 --high 400

Exit status: 0 when set, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or watermarks that the drive rejects.")]
struct WatermarksArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// The low watermark, in blocks
    #[arg(long, value_name = "BLOCKS", value_parser = whole_32)]
    low: u32,
    /// The high watermark, in blocks
    #[arg(long, value_name = "BLOCKS", value_parser = whole_32)]
    high: u32,
}

#[derive(Args)]
#[command(after_help = "\
With --member, one drive below an array or one FTL of several collects, and the others keep serving. The order returns at once. The drive ignores the
order if the free blocks have reached the high watermark. A second run replaces the first; 0s ends it.

Examples:
  nandscape ctl gc run n.control 500ms
  nandscape ctl gc run n.control 500ms --member drive-1

Exit status: 0 when ordered, 1 when the server has ended or does not answer in time, 2 for bad usage, a path at which no server listens,
or a drive that takes no such orders.")]
struct RunArgs {
    #[command(flatten)]
    drive: DriveArgs,
    /// For how long, in drive time
    #[arg(value_name = "TIME")]
    time: Span,
}

#[derive(Args)]
#[command(after_help = "\
The first order stops collections and holds buffered data back; the drive is ready once the steps under way have ended. From then on
nothing internal runs until a write, a flush of buffered data, a run, or fewer free blocks than the low watermark.

Examples:
  nandscape ctl gc ready n.control

Exit status: 0 when answered, ready or not; 1 when the server has ended or does not answer in time; 2 for bad usage, a path at which no
server listens, or a drive that takes no such orders.")]
struct ReadyArgs {
    #[command(flatten)]
    drive: DriveArgs,
}

/// The space of a drive, and its state.
struct Status {
    user_bytes: u64,
    device_bytes: u64,
    block_bytes: u64,
    free: u64,
    low: u64,
    high: u64,
    is_collecting: bool,
    is_ready: bool,
    /// Whether the drive accepted the last run; `None` before the first.
    has_run: Option<bool>,
}

/// An FTL that takes orders.
struct Found {
    name: String,
    /// What stands before its settings.
    prefix: String,
    status: Status,
}

pub(super) fn run(args: &GcArgs) -> Result<(), Failure> {
    match &args.order {
        GcOrder::Status(StatusArgs { drive }) => drive.ask(None, Status::text),
        GcOrder::Watermarks(WatermarksArgs { drive, low, high }) => {
            drive.ask(Some((WATERMARKS, &format!("{low}-{high}"))), Status::text)
        }
        GcOrder::Run(RunArgs { drive, time }) => {
            drive.ask(Some((RUN, &format!("{}ns", time.ns()))), |status| match status.has_run {
                Some(false) => {
                    format!("no run: the free blocks had reached the high watermark, which is {}\n", count(status.high))
                }
                _ => status.text(),
            })
        }
        GcOrder::Ready(ReadyArgs { drive }) => {
            drive.ask(Some(("gc.ready_for_read", "ask")), |status| match status.is_ready {
                true => "ready: nothing internal runs\n".to_owned(),
                false => "not ready yet: ask again\n".to_owned(),
            })
        }
    }
}

impl DriveArgs {
    /// Sends an order, if there is one, and prints the drive's state afterwards.
    fn ask(&self, order: Option<(&str, &str)>, words: impl Fn(&Status) -> String) -> Result<(), Failure> {
        let mut client = self.server.connect()?;
        let mut all = self.find(&mut client)?;
        if let Some((key, value)) = order {
            let prefix = self.member.as_ref().and(all.first()).map_or("", |only| &only.prefix);
            let key = format!("{prefix}{key}");
            client.order("set", &[("drive", self.name.as_deref()), ("key", Some(&key)), ("value", Some(value))])?;
            all = self.find(&mut client)?;
        }
        match &all[..] {
            [only] => self.server.print(&only.status.json(), |_| words(&only.status)),
            all => {
                let json: Value = all.iter().map(|one| (one.name.clone(), one.status.json())).collect();
                let text = |one: &Found| format!("{}:\n{}", one.name, words(&one.status));
                self.server.print(&json, |_| all.iter().map(text).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// The FTLs that an order is for: that of the drive, or those below an array or of a drive with several unless one is chosen.
    fn find(&self, client: &mut Client) -> Result<Vec<Found>, Failure> {
        let socket = self.server.socket.display();
        let (settings, statistics) = (client.order("settings", &[])?, client.order("statistics", &[])?);
        let names: Vec<&str> = super::each(&settings).into_iter().filter_map(|drive| drive["name"].as_str()).collect();
        let name = match (&self.name, &names[..]) {
            (Some(name), _) => name.clone(),
            (None, [name]) => (*name).to_owned(),
            (None, _) => {
                let problem = format!("{socket}: there are several drives; --drive is one of {}", names.join(", "));
                return Err(Failure::Input(anyhow::anyhow!(problem)));
            }
        };
        let of = |reply: &Value| super::each(reply).into_iter().find(|drive| drive["name"] == *name).cloned();
        let (Some(settings), Some(figures)) = (of(&settings), of(&statistics)) else {
            let problem = format!("{socket}: there is no drive {name:?}; --drive is one of {}", names.join(", "));
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        };
        let settings = &settings["settings"];
        let below = members(settings);
        let of = |&(member, prefix): &(&str, &str)| {
            let status = Status::of(settings, prefix, &figures["parts"][member])?;
            Some(Found { name: member.to_owned(), prefix: prefix.to_owned(), status })
        };
        let alone = Status::of(settings, "", &figures["counters"]);
        let found = match (&self.member, alone) {
            (Some(member), _) => below.iter().filter(|(name, _)| name == member).filter_map(of).collect(),
            (None, Some(status)) => vec![Found { name: name.clone(), prefix: String::new(), status }],
            (None, None) => below.iter().filter_map(of).collect::<Vec<_>>(),
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let problem = match (&self.member, below.is_empty()) {
            (Some(member), false) => format!(
                "{name} has no drive or FTL {member:?} that takes orders for its garbage collection; --member is one of {}",
                below.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
            ),
            _ if figures["counters"]["remote_connected"].is_number() => format!(
                "{name} is a remote drive; give the order where it is served. A memcached server with --policy gc_control orders its \
                 drives' collections itself"
            ),
            (Some(member), true) => format!(
                "{name} has no parts, and --member is {member:?}; an array of drives with ftl.kind = \"page\", or a drive with several \
                 such FTLs, has parts"
            ),
            (None, _) => format!(
                "{name} takes no orders for its garbage collection; FTLs of ftl.kind = \"page\", without parity stripes, do"
            ),
        };
        Err(Failure::Input(anyhow::anyhow!("{socket}: {problem}")))
    }
}

/// The drives below an array, or FTLs of a drive, that take orders, by its settings: each with what stands before its settings.
fn members(settings: &Value) -> Vec<(&str, &str)> {
    let keys = settings.as_object().into_iter().flat_map(|settings| settings.keys());
    let prefixes = keys.filter_map(|key| key.strip_suffix(WATERMARKS));
    prefixes.filter_map(|prefix| Some((prefix.strip_suffix(['.', ':'])?, prefix))).collect()
}

impl Status {
    /// As settings behind a prefix and counters have it; `None` where there are none.
    fn of(settings: &Value, prefix: &str, counters: &Value) -> Option<Status> {
        let setting = |key: &str| settings[format!("{prefix}{key}")].as_str();
        let (low, high) = setting(WATERMARKS)?.split_once('-')?;
        let figure = |name: &str| counters[name].as_f64().map(|figure| figure as u64);
        Some(Status {
            user_bytes: figure("user_bytes")?,
            device_bytes: figure("flash_bytes")?,
            block_bytes: figure("erase_block_bytes")?,
            free: figure("free_blocks")?,
            low: low.parse().ok()?,
            high: high.parse().ok()?,
            is_collecting: figure("gc_running")? > 0,
            is_ready: figure("ready_for_read")? > 0,
            has_run: setting(RUN).map(|answer| answer == "accepted"),
        })
    }

    fn json(&self) -> Value {
        json!({
            "user_bytes": self.user_bytes, "device_bytes": self.device_bytes, "block_bytes": self.block_bytes,
            "blocks": self.device_bytes / self.block_bytes.max(1), "free_blocks": self.free,
            "low_watermark": self.low, "high_watermark": self.high,
            "gc_running": self.is_collecting, "ready_for_read": self.is_ready, "last_run_accepted": self.has_run,
        })
    }

    fn text(&self) -> String {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let low = if self.low == 0 { "0: the drive's own policy".to_owned() } else { count(self.low) };
        format!(
            "capacity        {} of {} of flash\nerase block     {}, {} of them\nfree blocks     {}\nlow watermark   {low}\n\
             high watermark  {}\ncollecting      {}\nready for read  {}\n",
            size(self.user_bytes),
            size(self.device_bytes),
            size(self.block_bytes),
            count(self.device_bytes / self.block_bytes.max(1)),
            count(self.free),
            count(self.high),
            yes(self.is_collecting),
            yes(self.is_ready)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_settings_and_counters_say() {
        let settings = json!({ "even:gc.watermarks": "3-7", "even:gc.run": "ignored" });
        let counters = json!({
            "user_bytes": 4_194_304.0, "flash_bytes": 8_388_608.0, "erase_block_bytes": 1_048_576.0, "free_blocks": 5.0, "gc_running": 1.0,
            "ready_for_read": 0.0,
        });
        let status = Status::of(&settings, "even:", &counters).unwrap();
        let shown = status.json();
        assert_eq!(
            (&shown["blocks"], &shown["low_watermark"], &shown["gc_running"]),
            (&json!(8), &json!(3), &json!(true))
        );
        assert!(status.text().contains("collecting      yes") && status.text().contains("free blocks     5\n"));
        assert_eq!(shown["last_run_accepted"], json!(false));
        assert!(Status::of(&settings, "", &counters).is_none());
        assert!(Status::of(&settings, "even:", &json!({})).is_none());
        let settings = json!({ "a.b.gc.watermarks": "1-2", "gc.watermarks": "1-2", "even:gc.watermarks": "1-2" });
        assert_eq!(members(&settings), [("a.b", "a.b."), ("even", "even:")]);
    }
}
