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
            let store = if self.in_place { StoreKind::None } else { StoreKind::Ram };
            Ssd::new(sim, self.profile(number), store, seed).map(Rc::new)
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

#[cfg(test)]
mod tests {
    use nandscape_device_ssd::{Profile, Resolved};
    use nandscape_lab_run::MemberLayers;
    use nandscape_lab_run::chain::{Chain, Named};

    use crate::clients::tests::spec;
    use crate::{Load, Outcome, RunError, Spec, run};

    fn layers(words: &[&str]) -> Vec<Named> {
        Chain { layers: words.iter().map(|word| word.parse().unwrap()).collect() }.resolve().unwrap()
    }

    /// Readers and writers on two members with these layers.
    fn over(policy: &'static str, words: &[&str]) -> Spec {
        let load = Load { writers: 2, write_bytes: 16 << 10, ..spec(policy).load };
        let over = MemberLayers { layers: layers(words), profiles: Vec::new() };
        Spec { load, over, ..spec(policy) }
    }

    /// The profile of the drives with a fault.
    fn with_fault(spec: &Spec, rule: &str) -> Resolved {
        let mut profile = Profile::parse("faulty", &spec.drive.to_toml()).unwrap();
        profile.set(&format!("faults=[\"{rule}\"]")).unwrap();
        profile.resolve().unwrap()
    }

    /// The same run, in which the first drive has a fault.
    fn faulty(spec: Spec, rule: &str) -> Result<Outcome, RunError> {
        let count = spec.drives_below();
        let of = |number| if number == 0 { with_fault(&spec, rule) } else { spec.drive.clone() };
        let profiles = (0..count).map(of).collect();
        let over = MemberLayers { profiles, ..spec.over.clone() };
        run(&Spec { over, ..spec })
    }

    #[test]
    fn members_are_the_tops_of_layers_and_runs_repeat_themselves() {
        for words in [&["raid1:2"][..], &["cache,memory=1MiB"], &["raid0:2", "block"], &["ahci:2"]] {
            let outcome = run(&over("epochs", words)).unwrap();
            assert_eq!((outcome.reads.count(), outcome.after.reads_at_tokens), (600, 0), "{words:?}");
            assert_eq!(outcome.left.below.chain.len(), 2 * words.len(), "{words:?}");
            let again = run(&over("epochs", words)).unwrap();
            let figures = |outcome: &Outcome| (outcome.reads.sum_ns(), outcome.put_bytes, outcome.took);
            assert_eq!(figures(&again), figures(&outcome), "{words:?}");
        }
        // Twice the room of one drive.
        let [one, two] = [&[][..], &["raid0:2"]].map(|words| run(&over("mixed", words)).unwrap().after.log_bytes);
        assert!(two > one * 19 / 10, "{one} and {two}");
    }

    #[test]
    fn a_layer_that_passes_orders_leaves_the_policy_its_control() {
        let outcome = run(&over("gc_control", &["block,predictor=none", "cache,memory=1MiB"])).unwrap();
        assert_eq!((outcome.reads.count(), outcome.after.reads_at_tokens), (600, 0));
        let refused = run(&over("gc_control", &["raid1:2"])).err().unwrap().to_string();
        assert!(refused.contains("takes no orders for its garbage collection"), "{refused}");
        let refused = run(&over("mixed", &["raid1:2", "block,predictor=ssd"])).err().unwrap().to_string();
        assert!(refused.starts_with("block: block.predictor: ssd knows the flash"), "{refused}");
    }

    #[test]
    fn a_drive_that_vanishes_costs_its_twin_or_its_layer_or_ends_the_run() {
        let dead = "dead from=20ms";
        let mirrored = faulty(over("epochs", &[]), dead).unwrap();
        let events: Vec<String> = mirrored.left.events.iter().map(ToString::to_string).collect();
        assert!(events.len() == 1 && events[0].contains("drive d1 serves its items without a mirror"), "{events:?}");
        assert_eq!((mirrored.reads.count(), mirrored.after.lost_drives), (600, 1));
        assert!(mirrored.left.below.drives[0].faults[0].struck > 0);
        // A mirror below the engine has the other copy: the engine hears nothing of it.
        let below = faulty(over("epochs", &["raid1:2"]), dead).unwrap();
        assert_eq!((below.reads.count(), below.left.events.len(), below.after.lost_drives), (600, 0, 0));
        let alone = faulty(over("raid0", &[]), dead).err().unwrap().to_string();
        assert!(alone.starts_with("the engine has stopped: drive d0: "), "{alone}");
    }
}
