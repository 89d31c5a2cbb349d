//! The FTL of a host as a layer over each open-channel drive: that of the black-box drives, over the chunks of the drive.
//!
//! | key | what |
//! |---|---|
//! | `profile` | the profile whose FTL, buffer and firmware it has, by name or file |
//! | `moves` | how collections move data: `copy` in the drive, `read-write` through the host |
//! | `commands` | `vectors` or `rows`; left out, vectors where the drive reaches the lists of addresses |
//! | `order` | the order of the commands of a die: `none`, `one-write`, `fifo` |
//! | `reset` | whether all chunks of a remote drive are reset first |
//! | `no-delay` | whether its firmware takes no time |
//! | any other | a key of the profile |
//!
//! A state has its tables next to the state of the drive. Left out: states over remote drives.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_ftl_core::Stats;
use nandscape_device_media::BlockId;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::layer::{Layer, LayerNode, LayerReport, Rest, Shown, only};
use nandscape_drive::{Drive, DriveInfo, Node, Offers, Opening, Precondition, Refused, Role, Use, node};
use nandscape_host_open_channel::{DieFifo, Means, OneWrite, OpenChannel};
use nandscape_sim::Sim;
use nandscape_sim::figures::{bytes, count};
use serde::Serialize;

use super::words::OVER;
use super::{LayerWords, ModelNode};
use crate::build::prepare;
use crate::host_ftl::{self, Chunks, HostFlash, Moving, Saved, Traffic};
use crate::saved::check_can_rest;
use crate::tap::Tap;

/// The name of such layers that have none, as `ftl.` begins the keys of the drive's own FTL.
pub(super) const NAME: &str = "host_ftl";
/// What they are.
pub(super) const WHAT: &str = "the FTL of a host over open-channel drives, the lowest layer";
/// The word of `--over`.
const WORD: &str = "ftl";

/// The order of the commands of a die in the drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Order {
    None,
    OneWrite,
    Fifo,
}

const ORDERS: [(&str, Order); 3] = [("none", Order::None), ("one-write", Order::OneWrite), ("fifo", Order::Fifo)];
const MOVES: [(&str, Moving); 2] = [("copy", Moving::Copy), ("read-write", Moving::ReadWrite)];
const COMMANDS: [(&str, Means); 2] = [("vectors", Means::Vector), ("rows", Means::Rows)];
const TRUTH: [(&str, bool); 2] = [("true", true), ("false", false)];

/// The value of a word of a key.
fn one_of<T: Copy>(key: &str, value: &str, words: &[(&str, T)]) -> Result<T, String> {
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, value)| *value);
    found.ok_or_else(|| format!("{key}={value}: valid are {}", known()))
}

/// The word of a value.
fn word_of<T: Copy + PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, other)| *other == value).map_or("", |(word, _)| word)
}

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FtlLayer {
    profile: String,
    changes: Vec<String>,
    moving: Moving,
    means: Option<Means>,
    order: Order,
    resets: bool,
    no_delay: bool,
}

impl FtlLayer {
    /// As it is given in a chain.
    ///
    /// # Errors
    /// As [`FtlLayer::with`], and that it lies over some drives only.
    pub fn read(words: &LayerWords) -> Result<FtlLayer, String> {
        if !words.over.is_empty() {
            return Err(format!("{OVER}{}: {WORD} lies over all drives; leave it out", words.over.join("+")));
        }
        FtlLayer::with(&words.set)
    }

    /// With these settings, `KEY=VALUE` each.
    ///
    /// # Errors
    /// The setting that is none, and what would be valid.
    pub fn with(settings: &[String]) -> Result<FtlLayer, String> {
        let mut layer = FtlLayer {
            profile: "default".to_owned(),
            changes: Vec::new(),
            moving: Moving::Copy,
            means: None,
            order: Order::None,
            resets: false,
            no_delay: false,
        };
        settings.iter().try_for_each(|setting| layer.set(setting))?;
        let mut profile = Profile::load(&layer.profile).map_err(|error| error.to_string())?;
        profile.set_all(&layer.changes).map_err(|error| error.to_string())?;
        Ok(layer)
    }

    fn set(&mut self, setting: &str) -> Result<(), String> {
        let (key, value) = setting.split_once('=').ok_or_else(|| format!("{setting:?} is no KEY=VALUE"))?;
        let (key, value) = (key.trim(), value.trim());
        match key.strip_prefix("host_ftl.").unwrap_or(key) {
            "profile" => value.clone_into(&mut self.profile),
            "moves" => self.moving = one_of(key, value, &MOVES)?,
            "commands" => self.means = Some(one_of(key, value, &COMMANDS)?),
            "order" => self.order = one_of(key, value, &ORDERS)?,
            "reset" => self.resets = one_of(key, value, &TRUTH)?,
            "no-delay" | "no_delay" => self.no_delay = one_of(key, value, &TRUTH)?,
            key => self.changes.push(format!("{key}={value}")),
        }
        Ok(())
    }

    /// As it is given in a chain.
    pub fn words(&self) -> LayerWords {
        let truth = |key: &str, value: bool| value.then(|| format!("{key}=true"));
        let mut set = vec![
            format!("profile={}", self.profile),
            format!("moves={}", word_of(self.moving, &MOVES)),
            format!("order={}", word_of(self.order, &ORDERS)),
        ];
        set.extend(self.means.map(|means| format!("commands={}", word_of(means, &COMMANDS))));
        set.extend([truth("reset", self.resets), truth("no-delay", self.no_delay)].into_iter().flatten());
        set.extend(self.changes.iter().cloned());
        LayerWords { name: None, kind: WORD.to_owned(), over: Vec::new(), set }
    }

    /// The profile whose FTL it has, by name or file.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// Whether all chunks of a remote drive are reset first.
    pub fn resets(&self) -> bool {
        self.resets
    }

    /// The host of the drive, with the commands and the order that are wanted.
    fn host(&self, sim: &Sim, chunks: &Chunks) -> Result<OpenChannel, String> {
        let host = chunks.take()?;
        let host = match (self.means, host.means()) {
            (Some(Means::Vector), Means::Rows) => {
                return Err(
                    "commands=vectors: the drive does not reach the memory of this host, in which lists of addresses \
                            lie; rows is valid"
                        .to_owned(),
                );
            }
            (Some(means), _) => {
                host.with_means(means).map_err(|error| format!("commands={}: {error}", means.name()))?
            }
            (None, _) => host,
        };
        Ok(match self.order {
            Order::None => host,
            Order::OneWrite => host.with_order(sim, Box::new(OneWrite)),
            Order::Fifo => host.with_order(sim, Box::new(DieFifo)),
        })
    }

    /// The profile over a drive of this geometry.
    fn resolve(&self, host: &OpenChannel) -> Result<Resolved, String> {
        let changes: Vec<&str> = self.changes.iter().map(String::as_str).collect();
        let resolved = host_ftl::profile(&self.profile, host.geometry(), &changes);
        let resolved = resolved.map_err(|error| format!("profile={}: {error}", self.profile))?;
        Ok(if self.no_delay { resolved.without_delay() } else { resolved })
    }

    /// Opens it over a node that is an open-channel drive.
    ///
    /// # Errors
    /// Why it cannot lie over this node, and what would be valid.
    pub fn open_over(&self, how: &Opening<'_>, below: &dyn Node) -> Result<Rc<FtlNode>, String> {
        let chunks = node::view::<Chunks>(below).ok_or(
            "what lies directly below is no open-channel drive; a drive with ftl.kind = \"open_channel\" is valid, such as \
             dfc-mlc with buffer.mode=through",
        )?;
        let host = self.host(how.sim, &chunks)?;
        let (means, profile) = (host.means(), self.resolve(&host)?);
        // Tracks of a trace are told apart.
        how.sim.trace().set_prefix(&format!("{} ", how.instance));
        let over = (host, chunks.report());
        let made = match how.held {
            [] => host_ftl::over(how.sim, over, &profile, self.moving, how.seed).map_err(|error| error.to_string()),
            held => Saved::decode(held).and_then(|saved| {
                let restored = saved.over(how.sim, over, &profile, (self.moving, how.seed));
                restored.map_err(|error| error.to_string())
            }),
        };
        let planted = made.and_then(|(ssd, flash)| {
            if how.held.is_empty() {
                plant(how, &chunks, (&ssd, &flash), &profile)?;
            }
            Ok((ssd, flash))
        });
        how.sim.trace().set_prefix("");
        let (ssd, flash) = planted?;
        let begun = RefCell::new((ssd.ftl_stats(), flash.traffic()));
        Ok(Rc::new(FtlNode {
            sim: how.sim.clone(),
            name: how.name,
            model: ModelNode::new(how.sim, &ssd, &profile),
            ssd,
            flash,
            profile,
            layer: self.clone(),
            means,
            precondition: how.precondition,
            begun,
        }))
    }
}

/// Brings a new FTL into its state, and the chunks below into what they hold then.
fn plant(
    how: &Opening<'_>,
    chunks: &Chunks,
    (ssd, flash): (&Ssd, &HostFlash),
    profile: &Resolved,
) -> Result<(), String> {
    if how.precondition == Precondition::None {
        return Ok(());
    }
    let state = how.precondition.name();
    let below = chunks.model().ok_or_else(|| {
        format!("precondition {state}: a remote open-channel drive is written by commands only; none is valid")
    })?;
    prepare(ssd, profile, how.precondition, how.seed, how.progress).map_err(|error| error.to_string())?;
    let pages = |block: u32| ssd.media().pages_programmed(BlockId(block));
    (0..profile.geometry().blocks()).for_each(|block| flash.plant(BlockId(block), pages(block)));
    let units = profile.geometry().units_per_page();
    below.plant_chunks(&|chunk| pages(chunk) * units);
    Ok(())
}

impl Layer for FtlLayer {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn bars_flash_commands(&self) -> Option<&'static str> {
        Some("it has the chunks to itself, and gives blocks")
    }

    fn holds(&self) -> bool {
        true
    }

    /// Its own state names the keys that have to agree.
    fn layout(&self) -> Option<String> {
        Some("ftl".to_owned())
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let words = [
            ("profile", self.profile.clone()),
            ("moves", word_of(self.moving, &MOVES).to_owned()),
            ("order", word_of(self.order, &ORDERS).to_owned()),
        ];
        let changes = (!self.changes.is_empty()).then(|| ("changes", self.changes.join(" ")));
        words.into_iter().chain(self.means.map(|means| ("commands", means.name().to_owned()))).chain(changes).collect()
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        Ok(self.open_over(how, &*only(below)?)?)
    }
}

/// What the FTL of a host has done in the measured phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FtlReport {
    /// The profile whose FTL it has.
    pub profile: String,
    /// How collections move data.
    pub moves: &'static str,
    /// The commands to the drive.
    pub commands: &'static str,
    /// The order of the commands of a die.
    pub order: &'static str,
    /// The state that it began in.
    pub precondition: &'static str,
    /// Bytes that were written to it.
    pub host_written_bytes: u64,
    /// Bytes that it had the drive program, copies included.
    pub programmed_bytes: u64,
    /// The second over the first; null without writes.
    pub waf: Option<f64>,
    /// Blocks that were collected.
    pub gc_blocks: u64,
    /// Bytes that collections moved.
    pub gc_moved_bytes: u64,
    /// Bytes of units that could not be read and were lost.
    pub lost_bytes: u64,
    /// Bytes read over the link.
    pub link_read_bytes: u64,
    /// Bytes written over the link.
    pub link_written_bytes: u64,
    /// Bytes that the drive copied.
    pub copied_bytes: u64,
    /// Chunks that were reset.
    pub chunk_resets: u64,
}

impl LayerReport for FtlReport {
    fn key(&self) -> &'static str {
        "ftl"
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    fn settings(&self) -> String {
        format!("{}, by {}", self.profile, self.commands)
    }

    fn shown(&self) -> Vec<Shown> {
        let waf = self.waf.map_or("-".to_owned(), |waf| format!("{waf:.3}"));
        let lost = match self.lost_bytes {
            0 => String::new(),
            lost => format!("; {} could not be read and are lost", bytes(lost as f64)),
        };
        let flash = format!(
            "write amplification {waf}: {} written, {} programmed; {} blocks collected{lost}",
            bytes(self.host_written_bytes as f64),
            bytes(self.programmed_bytes as f64),
            count(self.gc_blocks),
        );
        let link = format!(
            "over the link: {} read, {} written; {} copied in the drive; {} chunks reset",
            bytes(self.link_read_bytes as f64),
            bytes(self.link_written_bytes as f64),
            bytes(self.copied_bytes as f64),
            count(self.chunk_resets)
        );
        vec![Shown::Line(flash), Shown::Line(link)]
    }
}

/// Such an FTL at work.
pub struct FtlNode {
    sim: Sim,
    name: &'static str,
    model: ModelNode,
    ssd: Rc<Ssd>,
    flash: Rc<HostFlash>,
    profile: Resolved,
    layer: FtlLayer,
    means: Means,
    precondition: Precondition,
    begun: RefCell<(Stats, Traffic)>,
}

impl FtlNode {
    /// Its name in breakdowns.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The FTL as a drive.
    pub fn ssd(&self) -> &Rc<Ssd> {
        &self.ssd
    }

    /// Its profile, with the geometry of the drive below.
    pub fn profile(&self) -> &Resolved {
        &self.profile
    }

    fn figures(&self) -> FtlReport {
        let (begun, traffic_before) = &*self.begun.borrow();
        let (stats, traffic) = (self.ssd.ftl_stats().since(begun), self.flash.traffic().since(traffic_before));
        let unit = u64::from(self.model.info().unit_bytes);
        let programmed = stats.programmed_units() * unit;
        FtlReport {
            profile: self.layer.profile.clone(),
            moves: word_of(self.layer.moving, &MOVES),
            commands: self.means.name(),
            order: word_of(self.layer.order, &ORDERS),
            precondition: self.precondition.name(),
            host_written_bytes: stats.host_bytes,
            programmed_bytes: programmed,
            waf: (stats.host_bytes > 0).then(|| programmed as f64 / stats.host_bytes as f64),
            gc_blocks: stats.gc_blocks,
            gc_moved_bytes: stats.gc_units * unit,
            lost_bytes: stats.lost_units * unit,
            link_read_bytes: traffic.read,
            link_written_bytes: traffic.written,
            copied_bytes: traffic.copied,
            chunk_resets: traffic.resets,
        }
    }
}

impl Node for FtlNode {
    fn info(&self) -> DriveInfo {
        self.model.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let queue = self.model.connect(wanted)?;
        Ok(match wanted.role {
            Role::Admin => queue,
            Role::Any | Role::Reads | Role::Writes => Tap::over_ftl(&self.sim, queue, self.name),
        })
    }
}

impl LayerNode for FtlNode {
    /// Those of its own FTL, which are below it already: it is the lowest layer.
    fn offers(&self, below: Offers) -> Offers {
        below
    }

    fn begin(&self) {
        self.begun.replace((self.ssd.ftl_stats(), self.flash.traffic()));
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        Some(Arc::new(self.figures()))
    }

    /// The traffic between it and the drive below.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        let traffic = self.flash.traffic();
        vec![
            ("flash_link_read_bytes_total", traffic.read as f64),
            ("flash_link_written_bytes_total", traffic.written as f64),
            ("flash_copied_bytes_total", traffic.copied as f64),
            ("flash_chunk_resets_total", traffic.resets as f64),
        ]
    }

    fn check(&self) -> Result<(), String> {
        self.ssd.check()
    }

    fn come_to_rest(&self) -> Rest<'_> {
        Box::pin(async move {
            check_can_rest(&self.ssd)?;
            self.ssd.come_to_rest().await;
            Ok(())
        })
    }

    fn take_held(&self) -> Result<Vec<u8>, String> {
        Ok(Saved::take(&self.ssd, &self.flash, &self.profile)?.encode())
    }
}
