//! Pages in memory are served; a read of missing pages is rejected at once, and its pages are still loaded.

use nandscape_drive::{HostMem, Issuer};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{cache, profile, read, seed, spec, warm};

#[test]
fn a_page_that_was_taken_is_rejected_at_once_and_returns() {
    let profile = profile(&spec());
    for (settings, returns) in [(&[][..], true), (&["cache.load_rejected=false"], false)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let (cache, _) = cache(&sim, &profile, settings);
                let issuer = Issuer::new(&sim);
                warm(&sim, &*cache, 0..100).await;
                assert_eq!(cache.pages(), 100);
                let begun = sim.now();
                assert!(issuer.execute(&*cache, read(30, 100), HostMem::zeroed(4_096)).await.status.is_success());
                assert_eq!(sim.now() - begun, Span::from_us(2), "from memory");
                assert!(cache.addrcheck(400, 16, Span::from_us(100)).is_ok());
                // Another tenant takes all memory, and gives it back.
                cache.set_memory(4_096);
                cache.set_memory(64 << 20);
                assert_eq!((cache.pages(), cache.counters().evicted), (1, 99));
                let begun = sim.now();
                let ended = issuer.execute(&*cache, read(40, 100), HostMem::zeroed(4_096)).await;
                assert_eq!((ended.status.meaning(), sim.now() - begun), (BUSY, Span::from_us(5)));
                sim.sleep(Span::from_ms(50)).await;
                let again = issuer.execute(&*cache, read(40, 100), HostMem::zeroed(4_096)).await;
                assert_eq!(again.status.is_success(), returns, "{settings:?}");
                // A longer deadline waits for the disk.
                let begun = sim.now();
                assert!(issuer.execute(&*cache, read(60, 50_000), HostMem::zeroed(4_096)).await.status.is_success());
                assert!(sim.now() - begun > Span::from_us(300));
                let busy = cache.addrcheck(70 * 8, 8, Span::from_us(100)).unwrap_err();
                assert!(busy.latency > Span::from_us(200), "{busy}");
                sim.sleep(Span::from_ms(50)).await;
                assert_eq!(cache.addrcheck(70 * 8, 8, Span::from_us(100)).is_ok(), returns);
            })
            .unwrap();
    }
}

#[test]
fn those_who_want_the_same_page_wait_for_one_read() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let profile = profile(&spec());
    executor
        .block_on(async {
            let (cache, _) = cache(&sim, &profile, &[]);
            let issuer = Issuer::new(&sim);
            let reads: Vec<_> = (0..8).map(|_| issuer.execute(&*cache, read(9, 0), HostMem::zeroed(4_096))).collect();
            for read in reads {
                assert!(read.await.status.is_success());
            }
            assert_eq!(cache.counters().loaded, 1);
            // The first read meets its deadline through a load under way, the second does not.
            let first = issuer.execute(&*cache, read(2_000, 0), HostMem::zeroed(4_096));
            let late = issuer.execute(&*cache, read(2_000, 200), HostMem::zeroed(4_096));
            let begun = sim.now();
            assert_eq!(late.await.status.meaning(), BUSY);
            assert_eq!(sim.now() - begun, Span::from_us(5));
            let joined = issuer.execute(&*cache, read(2_000, 100_000), HostMem::zeroed(4_096));
            assert!(first.await.status.is_success() && joined.await.status.is_success());
            assert_eq!(cache.counters().loaded, 2);
        })
        .unwrap();
}

/// Memory, disk and a map agree under any mix of concurrent reads, writes and rejections, and any amount of memory.
#[test]
fn contents_are_right_while_memory_comes_and_goes() {
    let profile = profile(&spec());
    for seed in seed()..seed() + 5 {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let (cache, below) = cache(&sim, &profile, &["cache.memory=64KiB", "cache.replacement=clock"]);
                let (issuer, mut rng) = (Issuer::new(&sim), Seed::new(seed).rng());
                let mut holds = vec![0u8; 64 * 8];
                for step in 0..800 {
                    let (slba, blocks) = (rng.below(480), 1 + rng.below(32) as u32);
                    let mem = HostMem::zeroed(blocks as usize * 512);
                    match rng.below(5) {
                        0 => cache.set_memory(4_096 << rng.below(6)),
                        1 => {
                            let fill = 1 + rng.below(255) as u8;
                            let bytes = vec![fill; blocks as usize * 512];
                            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks);
                            let mem = HostMem::from_bytes(&bytes);
                            let other = issuer.execute(&*cache, read(slba / 8, 3_000), HostMem::zeroed(4_096));
                            assert!(issuer.execute(&*cache, write, mem).await.status.is_success());
                            other.await;
                            holds[slba as usize..][..blocks as usize].fill(fill);
                        }
                        _ => {
                            let mut one = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, blocks);
                            one.cdw3 = if rng.chance(0.3) { 2_000.into() } else { 0.into() };
                            let drive: &dyn nandscape_drive::Drive = if rng.chance(0.1) { &*below } else { &*cache };
                            let ended = issuer.execute(drive, one, mem.clone()).await;
                            if ended.status.meaning() == BUSY {
                                continue;
                            }
                            assert!(ended.status.is_success());
                            let bytes = mem.to_vec();
                            for (at, block) in bytes.chunks(512).enumerate() {
                                let right = holds[slba as usize + at];
                                assert!(block.iter().all(|byte| *byte == right), "seed {seed}, step {step}");
                            }
                        }
                    }
                }
                let counters = cache.counters();
                assert!(counters.hits > 20 && counters.evicted > 50, "seed {seed}: {counters:?}");
            })
            .unwrap();
    }
}
