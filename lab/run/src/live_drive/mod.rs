//! A drive that is served in wall time: drives below the layers of a chain, opened as a simulation opens them, and what clients
//! connect to. A recording has models and their layers; its replay builds them here, too.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the plan of such a drive, and how it is built |
//! | `lowest` | what lies below the layers: a model, a remote drive, an array with records |
//! | `far_chunks` | a remote open-channel drive below the FTL of a host |
//! | `front` | what clients connect to |
//! | `tree` | the drives and the layers at work, as operators see them |
//! | `export` | the whole |
//!
//! Clients put the deadline of a read into CDW3. A block layer completes a read that would be late with `BUSY` at once, and
//! returns the wait in DW0. Reads without a deadline have that of `block.deadline`.
//!
//! Left out, below layers: drives with several namespaces, or whose blocks are written in order; commands that are not forwarded, such as those of a
//! vendor; records of arrays among layers: an array that outlasts the server is a drive below them ([`ArraySpec`]).

mod export;
mod far_chunks;
mod front;
mod lowest;
mod tree;

use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_device_ssd::{Resolved, SavedDrive};
use nandscape_drive::{Names, Node, Offers, Precondition, Progress};
use nandscape_sim::{Executor, Seed};
use nandscape_transport_reactor::Connect;

use crate::alone::User;
use crate::chain::{self, Chain, Named, Opening};
use crate::live::{BuildError, DriveSpec};
use crate::remote::RemoteSpec;
use crate::saved::History;
use crate::served_array::ArraySpec;

pub(crate) use lowest::{Place, close};
pub(crate) use tree::Tree;

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveSpec {
    /// The name that clients use.
    pub name: String,
    /// What lies below the layers, as many as these take.
    pub drives: Vec<LowestSpec>,
    /// The layers, the lowest first.
    pub chain: Chain,
    /// Whether an engine uses the layers, in a replay of its commands: without controllers in front.
    pub is_engine: bool,
}

/// What lies below the layers of a served drive.
#[derive(Clone, PartialEq, Debug)]
pub enum LowestSpec {
    /// A model of this process.
    Model(DriveSpec),
    /// A model in a file that cannot be opened, and why.
    Unreadable(DriveSpec, String),
    /// A remote drive.
    Remote(RemoteSpec),
    /// An array of served drives, which keeps records on them.
    Array(Box<ArraySpec>),
}

/// What a drive is built with.
pub(crate) struct Building<'a> {
    pub(crate) executor: &'a mut Executor,
    /// Of the run.
    pub(crate) seed: u64,
    /// The files of models, in the order of [`LiveSpec::models`]; those that are missing are in memory.
    pub(crate) files: std::vec::IntoIter<Option<StoreFile>>,
    pub(crate) progress: &'a dyn Progress,
    /// As whom remote drives are connected to, if they are members.
    pub(crate) user: Option<&'static User>,
}

/// The states in which models begin, and what each layer held.
type Begun = (Vec<(SavedDrive, History)>, Vec<Vec<u8>>);

impl LowestSpec {
    /// The name that users know it by.
    pub fn name(&self) -> &str {
        match self {
            LowestSpec::Model(spec) | LowestSpec::Unreadable(spec, _) => &spec.name,
            LowestSpec::Remote(spec) => &spec.name,
            LowestSpec::Array(spec) => &spec.name,
        }
    }

    /// Its profile, its URL, or its level.
    fn made_from(&self) -> String {
        match self {
            LowestSpec::Model(spec) | LowestSpec::Unreadable(spec, _) => spec.profile_name.clone(),
            LowestSpec::Remote(spec) => spec.target.to_string(),
            LowestSpec::Array(spec) => spec.shape.to_string(),
        }
    }

    /// The model, if it is one.
    fn model(&self) -> Option<&DriveSpec> {
        if let LowestSpec::Model(spec) = self { Some(spec) } else { None }
    }

    /// The models that it has, in the order of their stores; `None` for a store without a model.
    fn models(&self) -> Vec<Option<&DriveSpec>> {
        match self {
            LowestSpec::Model(spec) | LowestSpec::Unreadable(spec, _) => vec![Some(spec)],
            LowestSpec::Remote(_) => vec![None],
            LowestSpec::Array(spec) => spec.members.iter().flat_map(LiveSpec::models).collect(),
        }
    }
}

impl From<LowestSpec> for LiveSpec {
    /// Without layers.
    fn from(lowest: LowestSpec) -> LiveSpec {
        LiveSpec { name: lowest.name().to_owned(), drives: vec![lowest], chain: Chain::default(), is_engine: false }
    }
}

impl LiveSpec {
    /// The models that it has, in the order of their stores; `None` for a store without a model.
    pub fn models(&self) -> Vec<Option<&DriveSpec>> {
        self.drives.iter().flat_map(LowestSpec::models).collect()
    }

    /// The first of its drives, if it is a model. A recording has what is of all of them there.
    fn first(&self) -> Option<&DriveSpec> {
        self.drives.first()?.model()
    }

    /// Its only drive, if it has one that is no member of an array among the layers.
    pub fn only(&self) -> Option<&LowestSpec> {
        if let [only] = &self.drives[..] { Some(only).filter(|_| !self.chain.has_array()) } else { None }
    }

    /// The remote drive, if it is one that clients or an array reach by blocks.
    pub fn remote(&self) -> Option<&RemoteSpec> {
        self.only().filter(|_| !self.is_over_chunks()).and_then(|only| match only {
            LowestSpec::Remote(spec) => Some(spec),
            _ => None,
        })
    }

    /// Whether the lowest layer is the FTL of a host.
    pub fn is_over_chunks(&self) -> bool {
        self.chain.has_ftl()
    }

    /// Whether its report can be written: its flash is in this process, and below the layers.
    pub fn has_report(&self) -> bool {
        self.drives.iter().all(|drive| matches!(drive, LowestSpec::Model(_)))
    }

    /// Notes that hosts reach it by several controllers, one of them a PCI function, which a replay reports, too.
    pub fn set_shared(&mut self, is_shared: bool) {
        if let Some(LowestSpec::Model(spec)) = self.drives.first_mut() {
            spec.is_shared = is_shared;
        }
    }

    /// Builds the drives, and opens the layers over them. `files` are those of its models; without one a model is in memory. Blocks
    /// until remote drives have answered.
    ///
    /// # Errors
    /// A drive that cannot be built or reached, or a layer that cannot lie over what is below it, and what would be valid.
    pub fn build(
        &self,
        executor: &mut Executor,
        seed: u64,
        files: Vec<Option<StoreFile>>,
        progress: &dyn Progress,
    ) -> Result<LiveDrive, BuildError> {
        let sim = executor.sim();
        let tree = self.tree(&mut Building { executor, seed, files: files.into_iter(), progress, user: None })?;
        match front::of(&sim, self, &tree, self.names(seed)) {
            Ok((front, offers)) => {
                let is_shared = self.first().is_some_and(|spec| spec.is_shared);
                front.subsystem().iter().filter(|_| is_shared).for_each(|subsystem| subsystem.report_several());
                Ok(LiveDrive { spec: self.clone(), tree, front, offers })
            }
            Err(problem) => {
                tree.give_up(executor);
                Err(self.failed(problem))
            }
        }
    }

    /// The drives and the layers, without what clients connect to.
    pub(crate) fn tree(&self, with: &mut Building<'_>) -> Result<Tree, BuildError> {
        let layers = self.chain.resolve().map_err(|problem| self.failed(problem))?;
        let (states, held) = self.begun(&layers)?;
        let (mut states, mut drives, mut nodes) = (states.into_iter(), Vec::new(), Vec::new());
        let (sim, several) = (with.executor.sim(), self.drives.len() > 1);
        for spec in &self.drives {
            if several {
                sim.trace().set_prefix(&format!("{} ", spec.name()));
            }
            let built = lowest::build(spec, with, &layers, states.next());
            sim.trace().set_prefix("");
            let (drive, node) = match built {
                Ok(built) => built,
                Err(error) => {
                    lowest::give_up(&drives, with.executor);
                    return Err(match several {
                        true => BuildError::Lowest(format!("drive {}: {error}", spec.name())),
                        false => error,
                    });
                }
            };
            nodes.push((drive.name.clone(), node));
            drives.push(drive);
        }
        let opened = self.open(with, &layers, nodes, &held);
        match opened {
            Ok((opened, top)) => Ok(Tree::new(&sim, drives, (opened.layers, top))),
            Err(problem) => {
                lowest::give_up(&drives, with.executor);
                Err(self.failed(problem))
            }
        }
    }

    fn open(
        &self,
        with: &Building<'_>,
        layers: &[Named],
        nodes: Vec<(String, Rc<dyn Node>)>,
        held: &[Vec<u8>],
    ) -> Result<(chain::Opened, Rc<dyn Node>), String> {
        let sim = with.executor.sim();
        let how = Opening {
            seed: self.seed_of_layers(with.seed),
            precondition: self.first().map_or(Precondition::None, |spec| spec.precondition),
            progress: with.progress,
            ..Opening::new(&sim, "")
        };
        let opened = chain::open_in(&how, layers, nodes, held)?;
        let top = match &opened.tops[..] {
            [top] => top.clone(),
            tops => return Err(format!("{} layers or drives are at the top, and one is served", tops.len())),
        };
        Ok((opened, top))
    }

    /// The seed of its layers in a run with this seed: that of a simulation, but for further drives of a server and for remote
    /// drives, whose FTLs must not be the same drive.
    fn seed_of_layers(&self, seed: u64) -> Seed {
        let run = Seed::new(seed);
        let own = match self.only() {
            Some(LowestSpec::Model(spec)) if spec.own_seed.is_none() && spec.number > 0 => {
                run.child("live").nth(spec.number)
            }
            Some(LowestSpec::Remote(spec)) => run.child("live").child(&spec.name),
            _ => run,
        };
        own.child("layers")
    }

    /// What the models begin in: the state of the file that the first of them names.
    fn begun(&self, layers: &[Named]) -> Result<Begun, BuildError> {
        let models: Vec<&DriveSpec> = self.drives.iter().filter_map(LowestSpec::model).collect();
        let Some(from) = models.first().and_then(|spec| spec.from_state.as_ref()) else {
            return Ok(Begun::default());
        };
        let state = from.open()?;
        let profiles = models.iter().map(|spec| spec.resolve()).collect::<Result<Vec<Resolved>, _>>()?;
        state.check_fits_layers(layers, &profiles.iter().collect::<Vec<_>>())?;
        let saved = state.load_all()?.into_iter().map(|saved| (saved, state.history().clone()));
        Ok((saved.collect(), state.load_held(layers)?))
    }

    fn failed(&self, problem: String) -> BuildError {
        let flash = self.drives.first().filter(|_| self.is_over_chunks()).map(LowestSpec::made_from);
        let over = flash.map_or(String::new(), |flash| format!(" over {flash}"));
        BuildError::Layers(format!("drive {}{over}: {problem}", self.name))
    }

    /// The names of the subsystem in front of its layers.
    fn names(&self, seed: u64) -> Names {
        let seed = Seed::new(seed);
        let (own, kind, serial, model) = match self.only() {
            Some(only) => (seed.child("served block layer").child(only.name()), "block", "NB", "Nandscape layers"),
            None => (seed.child("served group").child(&self.chain.to_string()), "array", "NA", "Nandscape array"),
        };
        let own = own.value();
        Names {
            nqn: format!("nqn.2026-11.org.nandscape:{kind}-{own:016x}"),
            serial: format!("{serial}{own:016x}"),
            model: model.to_owned(),
            firmware: env!("CARGO_PKG_VERSION").chars().take(8).collect(),
        }
    }
}

/// A drive at work. See the file.
pub struct LiveDrive {
    spec: LiveSpec,
    tree: Tree,
    front: Rc<dyn Connect>,
    offers: Offers,
}
