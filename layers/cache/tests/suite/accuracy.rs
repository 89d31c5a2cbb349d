//! Predictions against the cache's own times, on loads that the disk was not profiled with.

use std::rc::Rc;

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{cache, profile, read, seed, spec};

#[test]
fn predictions_are_right_beside_writes_and_while_memory_comes_and_goes() {
    let profile = profile(&spec());
    for (writes, deadline, most) in [(0.0, 1_000, 0.02), (0.1, 1_000, 0.03), (0.2, 20_000, 0.12)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let counted = executor
            .block_on(async {
                let (cache, _) = cache(&sim, &profile, &["cache.memory=8MiB", "cache.predict_only=true"]);
                let issuer = Rc::new(Issuer::new(&sim));
                let mut rng = Seed::new(seed()).child("load").rng();
                for number in 0..6_000 {
                    sim.sleep(rng.exponential(9e6)).await;
                    if number % 500 == 0 {
                        cache.set_memory(1 << 20);
                        cache.set_memory(8 << 20);
                    }
                    // Nine tenths in a twentieth of the pages.
                    let page = if rng.chance(0.9) { rng.below(200) } else { rng.below(4_000) };
                    let entry = match rng.chance(writes) {
                        true => SubmissionEntry::blocks(IoOpcode::WRITE, 1, page * 8, 8),
                        false => read(page, deadline),
                    };
                    let (cache, issuer): (Rc<dyn Drive>, _) = (cache.clone(), issuer.clone());
                    sim.spawn(async move {
                        issuer.execute(&*cache, entry, HostMem::zeroed(4_096)).await;
                    });
                }
                sim.sleep(Span::from_s(2)).await;
                cache.counted()
            })
            .unwrap();
        let case = format!(
            "seed {}, {writes} writes, {deadline} us: {} of {} wrong ({} false positives)",
            seed(),
            counted.false_positives + counted.false_negatives,
            counted.compared,
            counted.false_positives
        );
        assert!(counted.compared > 4_000 && counted.inaccuracy() < most, "{case}");
        assert!(counted.attached > 100 || deadline > 10_000, "{case}: {} late", counted.attached);
    }
}
