//! Drives with the same layers over each member of an application: it uses the node at the top of each as a drive.
//!
//! Layers have the names that they have in a simulation: those of one kind over the nodes of all members are numbered through, as `array/0`
//! and `array/1`.
//!
//! Left out: states and recordings, which an engine with one node at the top has ([`Below`](crate::Below)).

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{Node, Offers, Precondition};
use nandscape_sim::Sim;
use serde::Serialize;

use crate::chain::{self, FtlLayer, FtlNode, Instance, ModelNode, Named, Opened, Opening, Section};
use crate::damage::{Damage, Fault};
use crate::live::offers_of_model;
use crate::rig::{NamedNode, Rig, RigDrive};
use crate::simulation::RunError;
use crate::tower::DriveFigures;

/// Layers over each member, and the profiles of the drives below them.
#[derive(Clone, Debug, Default)]
pub struct MemberLayers {
    /// The layers, the lowest first.
    pub layers: Vec<Named>,
    /// The profile of each drive of all members, where they differ; empty: all have the same.
    pub profiles: Vec<Resolved>,
}

impl MemberLayers {
    /// Drives of a member.
    pub fn drives_each(&self) -> usize {
        chain::drives_below(&self.layers)
    }

    /// The profile of a drive, which is `usual` unless it has its own.
    pub fn profile<'a>(&'a self, usual: &'a Resolved, number: usize) -> &'a Resolved {
        self.profiles.get(number).unwrap_or(usual)
    }

    /// The state that drives begin in where members begin in this one: FTLs of hosts bring new flash into it.
    pub fn of_drives(&self, precondition: Precondition) -> Precondition {
        if chain::is_over_chunks(&self.layers) { Precondition::None } else { precondition }
    }

    /// Whether a member has the blocks of its drive, at their addresses.
    pub fn keeps_addresses(&self) -> bool {
        self.layers.iter().all(|one| one.layer.layout().is_none())
    }

    /// Checks that admin commands to drives pass the layers: orders for garbage collection, windows, placement.
    ///
    /// # Errors
    /// The layer that they do not pass, and what would be valid.
    pub fn check_orders(&self) -> Result<(), String> {
        // The FTL of a host takes them itself.
        let ends = |one: &Named| one.layer.layout().is_some() && one.layer.as_kind::<FtlLayer>().is_none();
        self.check_each(ends, |name| {
            format!("layer {name} passes no admin commands to drives; block and cache are valid")
        })
    }

    /// Checks that commands of zones pass the layers.
    ///
    /// # Errors
    /// As [`MemberLayers::check_orders`].
    pub fn check_zones(&self) -> Result<(), String> {
        let ends = |one: &Named| one.layer.bars_flash_commands().is_some();
        self.check_each(ends, |name| format!("layer {name} passes no commands of zones; block is valid"))
    }

    fn check_each(&self, ends: impl Fn(&Named) -> bool, problem: impl Fn(&str) -> String) -> Result<(), String> {
        let mut each = chain::names(&self.layers).into_iter().zip(&self.layers);
        each.find(|(_, one)| ends(one)).map_or(Ok(()), |(name, _)| Err(problem(&name)))
    }
}

/// A drive of members.
pub struct MemberDrive {
    /// Its name.
    pub name: String,
    /// The drive.
    pub ssd: Rc<Ssd>,
}

impl MemberDrive {
    /// Each namespace of this drive, which was made from `profile` and has no queue pairs yet, as layers connect to it. An open-channel drive
    /// is opened for the FTL of a host.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub async fn nodes(&self, sim: &Sim, profile: &Resolved, layers: &[Named]) -> Result<Vec<Rc<dyn Node>>, String> {
        let queues = Rc::<Cell<u16>>::default();
        let mut nodes: Vec<Rc<dyn Node>> = Vec::new();
        for (nsid, _) in (1..).zip(profile.namespaces()) {
            let node = ModelNode::with((sim, &self.ssd, profile), nsid, queues.clone(), None);
            if chain::is_over_chunks(layers) {
                node.open_chunks().await.map_err(|problem| format!("{}: {problem}", self.name))?;
            }
            nodes.push(Rc::new(node));
        }
        Ok(nodes)
    }
}

/// See the file.
pub struct Members {
    layers: Vec<Instance>,
    tops: Vec<Rc<dyn Node>>,
    drives: Vec<MemberDrive>,
    /// The drives, or the FTLs of hosts over them.
    ftls: Vec<Rc<Ssd>>,
    begun: Cell<DriveFigures>,
}

/// What layers and drives have done.
#[derive(Clone, Default, Debug, Serialize)]
pub struct MembersReport {
    /// The layers, the lowest first.
    pub chain: Vec<Section>,
    /// The drives that have a fault plan.
    pub drives: Vec<MemberFaults>,
}

/// The fault plan of a drive since it was built.
#[derive(Clone, Debug, Serialize)]
pub struct MemberFaults {
    /// The drive's name.
    pub drive: String,
    /// Its rules.
    pub faults: Vec<Fault>,
    /// What they have done to it.
    pub damage: Damage,
}

impl Members {
    /// Opens layers over nodes, in order as many for each member as it takes. `drives` are below the nodes.
    ///
    /// # Errors
    /// The layer that cannot lie over what is below it, why, and what would be valid.
    pub fn open(
        how: &Opening<'_>,
        layers: &[Named],
        nodes: &[NamedNode],
        drives: Vec<MemberDrive>,
    ) -> Result<Members, String> {
        let each = chain::drives_below(layers);
        let members = nodes.len() / each;
        let (mut all, mut tops) = (Vec::new(), Vec::new());
        for (member, below) in nodes.chunks(each).enumerate() {
            let how = Opening { seed: how.seed.nth(member as u64), ..*how };
            let opened = chain::open_in(&how, layers, below.to_vec(), &[])?;
            tops.extend(opened.tops.iter().cloned());
            all.extend(numbered(opened, (member, members)));
        }
        let order = chain::names(layers);
        all.sort_by_key(|one| order.iter().position(|name| name == kind_of(&one.name).0));
        let of_hosts: Vec<Rc<Ssd>> =
            all.iter().filter_map(|one| Some(one.node.as_kind::<FtlNode>()?.ssd().clone())).collect();
        let of_drives = || drives.iter().map(|drive| drive.ssd.clone()).collect();
        let ftls = if of_hosts.is_empty() { of_drives() } else { of_hosts };
        let begun = Cell::new(DriveFigures::of(&ftls));
        Ok(Members { layers: all, tops, drives, ftls, begun })
    }

    /// The node at the top of each member.
    pub fn tops(&self) -> &[Rc<dyn Node>] {
        &self.tops
    }

    /// The commands and fields that each member takes.
    pub fn offers(&self) -> Offers {
        let of_drive = self.tops.first().map_or_else(Offers::default, |top| offers_of_model(&top.info()));
        chain::offers(&self.layers, of_drive)
    }

    /// The measured phase begins.
    pub fn begin(&self) {
        self.layers.iter().for_each(|layer| layer.node.begin());
        self.begun.set(DriveFigures::of(&self.ftls));
    }

    /// What FTLs have done since then: those of hosts where layers have some, else those of the drives.
    pub fn figures(&self) -> DriveFigures {
        DriveFigures::of(&self.ftls).since(&self.begun.get())
    }

    /// What layers have counted since then, and the faults of drives.
    pub fn report(&self) -> MembersReport {
        let planned = |drive: &MemberDrive| {
            let faults = Fault::all_of(&drive.ssd);
            let of = |faults| MemberFaults { drive: drive.name.clone(), faults, damage: Damage::of(&drive.ssd) };
            (!faults.is_empty()).then(|| of(faults))
        };
        MembersReport {
            chain: self.layers.iter().map(Section::of).collect(),
            drives: self.drives.iter().filter_map(planned).collect(),
        }
    }
}

impl Rig {
    /// Opens layers over its drives, as many for each member as it takes, which begin in a state.
    ///
    /// # Errors
    /// The layer that cannot lie over what is below it, why, and what would be valid.
    pub fn members(&mut self, how: &Opening<'_>, layers: &[Named]) -> Result<Members, RunError> {
        let nodes = self.nodes(layers, |_| None)?;
        let drive =
            |(RigDrive { name, .. }, ssd): (&RigDrive, &Rc<Ssd>)| MemberDrive { name: name.clone(), ssd: ssd.clone() };
        let drives = self.drives().iter().map(|drive| &drive.given).zip(self.ssds()).map(drive).collect();
        Members::open(how, layers, &nodes, drives).map_err(RunError::Workload)
    }
}

/// The name of a layer, and the number of one of its instances.
fn kind_of(instance: &str) -> (&str, usize) {
    let parsed = instance.rsplit_once('/').and_then(|(name, number)| Some((name, number.parse().ok()?)));
    parsed.unwrap_or((instance, 0))
}

/// The layers of one of several members, numbered through.
fn numbered(opened: Opened, (member, members): (usize, usize)) -> Vec<Instance> {
    let names: Vec<String> = opened.layers.iter().map(|one| one.name.clone()).collect();
    let rename = |name: &String| match names.contains(name) {
        true => {
            let (kind, number) = kind_of(name);
            let each = names.iter().filter(|other| kind_of(other).0 == kind).count();
            chain::instance(kind, member * each + number, members * each)
        }
        false => name.clone(),
    };
    let of = |Instance { name, over, node }: Instance| Instance {
        name: rename(&name),
        over: over.iter().map(rename).collect(),
        node,
    };
    opened.layers.into_iter().map(of).collect()
}
