//! The drives of an engine in this process: one for each FTL of each SSD.
//!
//! Of two SSDs with several FTLs, one has the even drives and the other their mirrors: the loss of an SSD is the loss of one copy of an item.
//! The FTLs of a single SSD are mirrors of each other.

/// A drive of an engine: an FTL of an SSD.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) ssd: usize,
    pub(crate) part: usize,
}

/// All, in the engine's order, of a number of SSDs with as many FTLs each.
pub(crate) fn members(ssds: usize, parts: usize) -> Vec<Member> {
    let together = if ssds.is_multiple_of(2) { 2 } else { 1 };
    let of_group = |group: usize| {
        let of_part = move |part| (0..together).map(move |ssd| Member { ssd: group * together + ssd, part });
        (0..parts).flat_map(of_part)
    };
    (0..ssds / together).flat_map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use nandscape_apps_memcached_engine::policy::policy;
    use nandscape_apps_memcached_engine::{Ack, Config, Engine, Expect, Given, New};
    use nandscape_apps_store::Host;
    use nandscape_device_ssd::Profile;
    use nandscape_sim::Executor;

    use super::*;
    use crate::Spec;
    use crate::clients::tests::spec;

    #[test]
    fn two_drives_have_the_copies_of_each_other() {
        let of = |ssds, parts| members(ssds, parts).iter().map(|one| (one.ssd, one.part)).collect::<Vec<_>>();
        assert_eq!(of(4, 1), [(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(of(1, 4), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        assert_eq!(of(2, 2), [(0, 0), (1, 0), (0, 1), (1, 1)]);
        assert_eq!(of(4, 2), [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1)]);
        assert_eq!(of(3, 2), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    }

    /// Two SSDs with two FTLs each.
    fn halves() -> Spec {
        let mut profile = Profile::load("default").unwrap();
        let parts = "ftl.parts=[{name=\"even\", channels=\"0\"}, {name=\"odd\", channels=\"1\"}]";
        let changes = [
            "capacity=32MiB",
            "lba_size=4KiB",
            "geometry.channels=2",
            "geometry.dies_per_channel=1",
            "buffer.size=1MiB",
        ];
        changes.iter().chain(&[parts]).for_each(|change| profile.set(change).unwrap());
        Spec { drive: profile.resolve().unwrap(), ..spec("epochs") }
    }

    #[test]
    fn the_loss_of_a_drive_with_several_ftls_loses_no_item() {
        for lost in 0..2 {
            let mut executor = Executor::new();
            let (sim, spec) = (executor.sim(), halves());
            let ssds = spec.drives_in(&sim).unwrap();
            let there = executor.block_on(async {
                let given = spec.given(&spec.members_on(&sim, &ssds).await.unwrap()).unwrap();
                let config = Config { ack: Ack::All, caches: false, ..Config::default() };
                let open = async |lost: Option<usize>| {
                    let all = members(spec.drives, spec.parts()).into_iter().zip(&given);
                    let given = all.map(|(member, Given { io, admin })| {
                        let given = Given { io: io.clone(), admin: admin.clone() };
                        Some(given).filter(|_| lost != Some(member.ssd))
                    });
                    let policy = policy(spec.policy).unwrap();
                    Engine::open(&Host::free(&sim), given.collect(), policy, config).await.unwrap()
                };
                let engine = open(None).await;
                for item in 0..100u64 {
                    let value = vec![item as u8; 3_000].into();
                    engine.put(&item.to_le_bytes(), Expect::Any, New { flags: 0, expiry: 0, value }).await.unwrap();
                }
                engine.close().await.unwrap();
                let engine = open(Some(lost)).await;
                let mut there = 0;
                for item in 0..100u64 {
                    there += usize::from(engine.get(&item.to_le_bytes()).await.is_some());
                }
                (there, engine.stats().lost_drives)
            });
            assert_eq!(there, Ok((100, 2)), "drive {lost}");
        }
    }
}
