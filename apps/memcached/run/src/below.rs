//! What lies below an engine in simulated time: its drives, layers of the host over them, and the uplink that they share.

use std::rc::Rc;

use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Ack, Config, Engine, Event, Given};
use nandscape_apps_store::Host;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{Drive, Node, Role, Use};
use nandscape_lab_run::chain::Opening;
use nandscape_lab_run::{MemberDrive, Members, MembersReport, name_of_drive};
use nandscape_sim::{Seed, Sim};

use crate::members::{Member, members};
use crate::simulated::{RunError, Spec};
use crate::turns::Tracks;
use crate::uplink::{BehindUplink, Uplink};

/// Entries of a queue, and of an admin queue.
const ENTRIES: u32 = 256;
const ADMIN_ENTRIES: u32 = 32;

/// What a run leaves besides its figures.
#[derive(Clone, Default, Debug)]
pub struct Left {
    /// The layers, and the faults of the drives.
    pub below: MembersReport,
    /// What has happened to the engine, such as the loss of a drive.
    pub events: Vec<Event>,
}

impl Left {
    pub(crate) fn of(engine: &Engine, members: &Members) -> Left {
        Left { below: members.report(), events: engine.take_events() }
    }
}

impl Spec {
    /// FTLs of each drive, each with a namespace.
    pub(crate) fn parts(&self) -> usize {
        self.drive.parts().len().max(1)
    }

    /// Drives of the engine: one for each FTL of each drive, or for what is at the top of the layers.
    pub fn members(&self) -> u64 {
        (self.drives * self.parts()) as u64
    }

    /// Drives below the layers.
    fn drives_below(&self) -> usize {
        self.drives * self.over.drives_each()
    }

    /// Bytes of each drive of the engine.
    pub(crate) fn member_bytes(&self, members: &Members) -> u64 {
        if !self.over.keeps_addresses() {
            return members.tops().iter().map(|top| top.info().bytes()).min().unwrap_or_default();
        }
        self.drive.parts().iter().map(|part| part.drive.capacity()).min().unwrap_or_else(|| self.drive.capacity())
    }

    /// The places of its drives, in the engine's order.
    fn places(&self) -> Vec<Member> {
        members(self.drives_below(), self.parts())
    }

    /// The tracks of its drives.
    pub(crate) fn tracks(&self, ssds: &[Rc<Ssd>]) -> Vec<Tracks> {
        let planes = |ssd: &Rc<Ssd>| {
            ssd.parts().iter().flat_map(|part| part.media().plane_tracks().to_vec()).collect::<Vec<_>>()
        };
        let (all, each) = (self.places(), self.over.drives_each());
        let numbers =
            |group: usize| (0..all.len() / each).filter(|member| all[member * each].ssd / each == group).collect();
        let groups = ssds.chunks(each).enumerate();
        groups
            .map(|(group, ssds)| Tracks { members: numbers(group), planes: ssds.iter().flat_map(planes).collect() })
            .collect()
    }

    /// Its drives, new.
    pub(crate) fn drives_in(&self, sim: &Sim) -> Result<Vec<Rc<Ssd>>, RunError> {
        let seed = Seed::new(self.seed);
        let drive = |number: usize| {
            let seed = seed.child("drive").nth(number as u64);
            sim.trace().set_prefix(&format!("drive {number} "));
            Ssd::new(sim, self.profile(number), StoreKind::Ram, seed).map(Rc::new)
        };
        let ssds = (0..self.drives_below()).map(drive).collect::<Result<Vec<_>, _>>()?;
        sim.trace().set_prefix("");
        Ok(ssds)
    }

    fn profile(&self, number: usize) -> &Resolved {
        self.over.profile(&self.drive, number)
    }

    /// The layers over its drives, which come into service.
    pub(crate) async fn members_on(&self, sim: &Sim, ssds: &[Rc<Ssd>]) -> Result<Members, RunError> {
        let uplink = self.machine.uplink.map(|bandwidth| Uplink::new(sim, bandwidth));
        let behind = |node: Rc<dyn Node>| -> Rc<dyn Node> {
            match &uplink {
                Some(uplink) => BehindUplink::new(uplink, node),
                None => node,
            }
        };
        let (mut drives, mut parts) = (Vec::new(), Vec::new());
        for (number, ssd) in ssds.iter().enumerate() {
            ssd.in_service().await;
            let drive = MemberDrive { name: name_of_drive(number), ssd: ssd.clone() };
            let nodes = drive.nodes(sim, self.profile(number), &self.over.layers).await.map_err(RunError::Layers)?;
            parts.push(nodes.into_iter().map(behind).collect::<Vec<_>>());
            drives.push(drive);
        }
        let node = |place: Member| (name_of_drive(place.ssd), parts[place.ssd][place.part].clone());
        let nodes: Vec<(String, Rc<dyn Node>)> = self.places().into_iter().map(node).collect();
        let how = Opening { seed: Seed::new(self.seed).child("layers"), ..Opening::new(sim, "") };
        Members::open(&how, &self.over.layers, &nodes, drives).map_err(RunError::Layers)
    }

    /// The members as the engine gets them. FTLs of a drive share its admin queue; some layers have none.
    pub(crate) fn given(&self, members: &Members) -> Result<Vec<Given>, RunError> {
        let mut admins: Vec<Option<Rc<dyn Drive>>> = vec![None; self.drives_below()];
        let (places, each) = (self.places(), self.over.drives_each());
        let of = |(top, place): (&Rc<dyn Node>, &Member)| {
            let admin = &mut admins[place.ssd];
            if place.part == 0 {
                *admin = top.connect(Use { role: Role::Admin, entries: ADMIN_ENTRIES }).ok();
            }
            let io = top.connect(Use { role: Role::Any, entries: ENTRIES })?;
            Ok(Given { io, admin: admin.clone() })
        };
        members.tops().iter().zip(places.iter().step_by(each)).map(of).collect()
    }

    /// Its engine on these members; `memory` is for the items.
    pub(crate) async fn engine_on(
        &self,
        (host, members): (&Host, &Members),
        memory: u64,
        caches: bool,
    ) -> Result<Rc<Engine>, RunError> {
        let given = self.given(members)?.into_iter().map(Some).collect();
        let policy = policy(self.policy).ok_or_else(|| RunError::Spec(format!("no policy {}", self.policy)))?;
        let memory = 2 * self.dirty + memory;
        let small = self.load.small;
        let fixed =
            Config { ack: Ack::Cache, caches, start_s: 1_767_225_600, placement: self.placement, ..Config::default() };
        Ok(Engine::open(host, given, policy, Config { memory, dirty: self.dirty, small, ..fixed }).await?)
    }
}
