//! Stripes on small drives: lost data is reconstructed, reads avoid collections in the time of a read, collections take
//! turns, and the planted state equals the state reached by running.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Location, Lpn};
use nandscape_device_ftl_core::ftl::{Ftl, Inside, Reader};
use nandscape_device_ftl_core::offers::{Sanitization, Sanitize};
use nandscape_device_ftl_core::policy::{
    All, GcScheme, GcTolerant, Greedy, InOrder, OwnerSource, Reconstruct, Rotating, StripeOrder, StripeWearPolicy,
    Striped, Thresholds,
};
use nandscape_device_ftl_core::{FirmwareTimes, Plant, RandomWrites};
use nandscape_device_media::{PlaneId, Priority, StoreKind};
use nandscape_device_rig::TestFlash;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Wait};

use super::super::{GcConfig, PageFtl, PageFtlConfig, Policies, WearConfig};
use super::{RainConfig, StripePolicies};

const SECTORS: u32 = 8;

/// The ttFlash techniques of a drive.
#[derive(Copy, Clone)]
struct With {
    reconstruct: bool,
    rotating: bool,
    tolerant: bool,
    scrub: bool,
}

const ALL: With = With { reconstruct: true, rotating: true, tolerant: true, scrub: false };

/// Four channels with two dies each, in stripes of four.
fn drive(sim: &Sim, with: With, store: StoreKind, faults: &[&str], blocks: u32) -> Rc<PageFtl> {
    drive_of(sim, with, store, faults, blocks, None)
}

/// The same, whose stripes may be moved.
fn drive_of(
    sim: &Sim,
    with: With,
    store: StoreKind,
    faults: &[&str],
    blocks: u32,
    wear: Option<Box<dyn StripeWearPolicy>>,
) -> Rc<PageFtl> {
    let flash = TestFlash {
        channels: 4,
        dies: 2,
        blocks,
        pages: 16,
        read: vec![Span::from_us(40)],
        program: vec![Span::from_us(800)],
        store,
        faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
        ..TestFlash::default()
    };
    let media = flash.media(sim);
    let mapped = 8 * (blocks - 6) * 16 * 3 / 4;
    let config = PageFtlConfig {
        logical_units: mapped * 3 / 4,
        buffer_units: 64,
        priority: Priority::Fifo,
        gc: GcConfig {
            scheme: GcScheme::Plane,
            owner: OwnerSource::Table,
            copyback: true,
            copyback_ecc: false,
            batch: None,
            free_blocks: 3,
            preempt_above: None,
            free_in_window: 0,
            free_in_long_window: 0,
        },
        wear: WearConfig { dynamic: true, static_threshold: 0 },
        firmware: FirmwareTimes::default(),
        placement: Default::default(),
        writes_end_in_buffer: true,
        rain: Some(RainConfig {
            width: 4,
            flush_above: 48,
            scrub_interval: if with.scrub { Span::from_ms(2) } else { Span::ZERO },
        }),
    };
    let width = std::num::NonZeroU32::new(4).expect("not zero");
    let policies = Policies {
        patrol: None,
        allocation: Box::new(Striped::new(media.geometry(), StripeOrder::ChannelDiePlane)),
        victim: Box::new(Greedy),
        admission: if with.rotating { Box::new(Rotating::new(media.geometry(), width)) } else { Box::new(All) },
        buffer: None,
        read: with.reconstruct.then(|| Box::new(Reconstruct) as _),
        stripes: StripePolicies {
            flush: Some(if with.tolerant { Box::new(GcTolerant) } else { Box::new(InOrder) }),
            wear,
            scrub: None,
        },
    };
    PageFtl::new(sim, media, config, policies).expect("memory for a small drive")
}

fn extent(lpn: u32, units: u32) -> Extent {
    Extent { start: u64::from(lpn) * u64::from(SECTORS), sectors: units * SECTORS }
}

/// The content of a unit in a version.
fn bytes(lpn: u32, version: u32) -> Vec<u8> {
    [lpn.to_le_bytes(), version.to_le_bytes()].concat().repeat(4_096 / 8)
}

async fn write(ftl: &PageFtl, lpn: u32, version: u32) {
    let reservation = ftl.reserve(extent(lpn, 1), &mut Wait::default()).await;
    ftl.accept(extent(lpn, 1), Some(&HostMem::from_bytes(&bytes(lpn, version))), reservation, None);
}

async fn read(ftl: &Rc<PageFtl>, lpn: u32, units: u32) -> Result<Vec<u8>, nandscape_device_ftl_core::ftl::ReadError> {
    let mem = HostMem::from_bytes(&vec![0xaa; units as usize * 4_096]);
    ftl.reader().read::<()>(extent(lpn, units), &Inside(mem.clone()), &mut Breakdown::new()).await?;
    Ok(mem.to_vec())
}

async fn flush(ftl: &PageFtl) {
    if let Some(settling) = ftl.flush() {
        settling.settled().await.expect("what was written comes to flash");
    }
}

/// Writes all units and overwrites some at random. Returns the version of each.
async fn fill(ftl: &PageFtl, overwrites: u64, rng: &mut Rng) -> Vec<u32> {
    let units = ftl.config.logical_units;
    let mut versions = vec![1; units as usize];
    for lpn in 0..units {
        write(ftl, lpn, 1).await;
    }
    for _ in 0..overwrites {
        let lpn = rng.below(u64::from(units)) as u32;
        versions[lpn as usize] += 1;
        write(ftl, lpn, versions[lpn as usize]).await;
    }
    flush(ftl).await;
    versions
}

async fn expect_all(ftl: &Rc<PageFtl>, versions: &[u32]) {
    for (lpn, version) in (0u32..).zip(versions) {
        let found = read(ftl, lpn, 1).await.unwrap_or_else(|error| panic!("unit {lpn}: {error:?}"));
        assert!(found == bytes(lpn, *version), "unit {lpn} is another than version {version}");
    }
}

#[test]
fn lost_pages_come_back_byte_by_byte_and_are_written_again() {
    for seed in 1..4 {
        let mut executor = Executor::new();
        // Where faults may strike, copies mark unreadable data as unreadable.
        let faults = ["slow program by=1us nth=1"];
        let ftl = drive(&executor.sim(), With { reconstruct: false, ..ALL }, StoreKind::Ram, &faults, 20);
        let mut rng = Seed::new(seed).rng();
        let work = async {
            let versions = fill(&ftl, 3_000, &mut rng).await;
            // Collections end. Then one member of each of many stripes is lost.
            ftl.sim.sleep(Span::from_s(1)).await;
            let mut lost = Vec::new();
            for stripe in (0..ftl.state.borrow().stripes() - 1).step_by(3) {
                let lpn = stripe * 3 + rng.below(3) as u32;
                let unit = ftl.flash_unit(Lpn(lpn)).expect("it is on flash");
                ftl.media.plant_unreadable(ftl.media.geometry().page_of(unit));
                lost.push((lpn, unit));
            }
            // A collection may take a lost page along before it has been written again.
            for _ in 0..3 {
                expect_all(&ftl, &versions).await;
                ftl.sim.sleep(Span::from_ms(100)).await;
            }
            let stats = ftl.stats();
            assert!(stats.rain.reconstructed_reads >= lost.len() as u64 && stats.lost_units == 0, "{stats:?}");
            assert!(stats.rain.repaired_units >= lost.len() as u64, "{stats:?}");
            assert!(lost.iter().all(|(lpn, unit)| ftl.flash_unit(Lpn(*lpn)).is_some_and(|now| now != *unit)));
            // No page needs reconstruction any more.
            expect_all(&ftl, &versions).await;
            assert_eq!(ftl.stats().rain.reconstructed_reads, stats.rain.reconstructed_reads);
            ftl.check().unwrap();
        };
        executor.block_on(work).unwrap();
    }
}

/// Stripes of which one page is held in the buffer.
fn held_stripes(ftl: &PageFtl) -> Vec<(u32, u32)> {
    let state = ftl.state.borrow();
    let stripes = 0..state.stripes();
    stripes.filter_map(|stripe| Some((stripe, state.held_member(stripe)?.0))).collect()
}

#[test]
fn pages_leave_the_buffer_before_one_that_a_collection_holds_up_and_are_found_from_it() {
    for seed in 1..4 {
        let mut executor = Executor::new();
        let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &["slow program by=1us nth=1"], 20);
        let mut rng = Seed::new(seed).rng();
        let work = async {
            let mut versions = fill(&ftl, 3_000, &mut rng).await;
            let (mut seen, mut lost) = (0, std::collections::BTreeSet::new());
            for number in 0..4_000 {
                let lpn = rng.below(versions.len() as u64) as u32;
                versions[lpn as usize] += 1;
                write(&ftl, lpn, versions[lpn as usize]).await;
                if number % 8 != 0 {
                    continue;
                }
                let held = held_stripes(&ftl);
                seen += held.len();
                // One parity determines one page of a stripe.
                if let Some((stripe, member)) = held.into_iter().find(|(stripe, _)| !lost.contains(stripe)) {
                    ftl.check().unwrap();
                    // A member other than the held one is lost: it is the sum of all others and the held one.
                    let other = (0..3).map(|step| (member + 1 + step) % 3).find(|other| *other != member);
                    let lpn = stripe * 3 + other.expect("there are three");
                    if let Some(unit) = ftl.flash_unit(Lpn(lpn)).filter(|_| lpn < ftl.config.logical_units) {
                        ftl.media.plant_unreadable(ftl.media.geometry().page_of(unit));
                        lost.insert(stripe);
                    }
                    assert!(read(&ftl, lpn, 1).await.unwrap() == bytes(lpn, versions[lpn as usize]), "unit {lpn}");
                }
            }
            assert!(seen > 20 && lost.len() > 10, "seed {seed}: {seen} held, {lost:?} lost: {:?}", ftl.stats().rain);
            flush(&ftl).await;
            expect_all(&ftl, &versions).await;
            assert!(held_stripes(&ftl).is_empty() && ftl.stats().lost_units == 0, "{:?}", ftl.stats());
            ftl.check().unwrap();
        };
        executor.block_on(work).unwrap();
    }
}

#[test]
fn a_stripe_with_a_held_page_outlasts_power_cuts() {
    let mut with_held = 0;
    for seed in 1..9 {
        let mut executor = Executor::new();
        let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &[], 40);
        let mut rng = Seed::new(seed).rng();
        let work = async {
            let mut versions = fill(&ftl, 6_000, &mut rng).await;
            let mut cuts = 0;
            for _ in 0..6_000 {
                let lpn = rng.below(versions.len() as u64) as u32;
                versions[lpn as usize] += 1;
                write(&ftl, lpn, versions[lpn as usize]).await;
                // Each cut leaves blocks that are not full, and this drive has few.
                if held_stripes(&ftl).is_empty() || !rng.chance(0.1) || cuts == 3 {
                    continue;
                }
                // Some cuts strike while the held page is programmed.
                ftl.sim.sleep(Span::from_us(rng.below(4_000))).await;
                let is_held = !held_stripes(&ftl).is_empty();
                ftl.media.cut_power(Span::from_us(50));
                cuts += 1;
                with_held += u32::from(is_held);
                ftl.media.power_returns().await;
                ftl.restart(true).await;
                assert_eq!(ftl.read_only(), None, "after {cuts} cuts");
                ftl.check().unwrap();
                let lpn = rng.below(versions.len() as u64) as u32;
                assert!(read(&ftl, lpn, 1).await.unwrap() == bytes(lpn, versions[lpn as usize]), "unit {lpn}");
            }
            flush(&ftl).await;
            expect_all(&ftl, &versions).await;
            assert!(held_stripes(&ftl).is_empty() && ftl.stats().lost_units == 0, "{:?}", ftl.stats());
            ftl.check().unwrap();
        };
        executor.block_on(work).unwrap();
    }
    assert!(with_held > 8, "{with_held} of 24 cuts with a held page");
}

#[test]
fn a_drive_with_a_held_page_comes_to_rest_and_can_be_sanitized() {
    for is_rest in [true, false] {
        let mut executor = Executor::new();
        let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &[], 40);
        let mut rng = Seed::new(7).rng();
        let work = async {
            let mut versions = fill(&ftl, 6_000, &mut rng).await;
            while held_stripes(&ftl).is_empty() {
                let lpn = rng.below(versions.len() as u64) as u32;
                versions[lpn as usize] += 1;
                write(&ftl, lpn, versions[lpn as usize]).await;
            }
            if is_rest {
                ftl.come_to_rest().await;
                assert!(held_stripes(&ftl).is_empty());
                ftl.check().unwrap();
                expect_all(&ftl, &versions).await;
                ftl.take_saved().unwrap();
                return;
            }
            ftl.media.cut_power(Span::from_us(50));
            ftl.media.power_returns().await;
            ftl.restart(true).await;
            ftl.sanitize(Sanitization::Erase, &|_, _| ()).await.unwrap();
            ftl.check().unwrap();
            assert!(read(&ftl, 0, 1).await.unwrap() == vec![0; 4_096]);
        };
        executor.block_on(work).unwrap();
    }
}

/// Writes at random until a page is held: its unit, and another one of its stripe.
async fn until_held(ftl: &PageFtl, versions: &mut [u32], rng: &mut Rng) -> (u32, u32) {
    loop {
        let lpn = rng.below(versions.len() as u64) as u32;
        versions[lpn as usize] += 1;
        write(ftl, lpn, versions[lpn as usize]).await;
        if let Some((stripe, member)) =
            held_stripes(ftl).into_iter().find(|(stripe, _)| stripe * 3 + 2 < versions.len() as u32)
        {
            return (stripe * 3 + member, stripe * 3 + (member + 1) % 3);
        }
    }
}

/// The held member, and the members of its stripe on flash, are deallocated or written again before the stripe is
/// whole.
#[test]
fn units_of_a_stripe_with_a_held_page_are_deallocated_and_written_again() {
    for seed in 1..4 {
        let mut executor = Executor::new();
        let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &[], 20);
        let mut rng = Seed::new(seed).rng();
        let work = async {
            let mut versions = fill(&ftl, 3_000, &mut rng).await;
            for round in 0..60 {
                let (held, other) = until_held(&ftl, &mut versions, &mut rng).await;
                let (first, second) = if round % 2 == 0 { (held, other) } else { (other, held) };
                ftl.deallocate(extent(first, 1), &mut Breakdown::new()).await.unwrap();
                versions[second as usize] += 1;
                write(&ftl, second, versions[second as usize]).await;
                ftl.check().unwrap();
                assert!(read(&ftl, first, 1).await.unwrap() == vec![0; 4_096], "round {round}: unit {first}");
                assert!(
                    read(&ftl, second, 1).await.unwrap() == bytes(second, versions[second as usize]),
                    "unit {second}"
                );
                versions[first as usize] += 1;
                write(&ftl, first, versions[first as usize]).await;
            }
            flush(&ftl).await;
            expect_all(&ftl, &versions).await;
            assert!(held_stripes(&ftl).is_empty() && ftl.stats().lost_units == 0, "{:?}", ftl.stats());
            ftl.check().unwrap();
        };
        executor.block_on(work).unwrap();
    }
}

/// The planes that pages are held for.
fn planes_of_held(ftl: &PageFtl) -> Vec<PlaneId> {
    let held = held_stripes(ftl);
    let state = ftl.state.borrow();
    let rain = state.rain.as_deref().expect("it has stripes");
    held.into_iter().map(|(stripe, member)| rain.layout.plane_at(rain.jobs[&stripe].to, member)).collect()
}

/// A die dies while a page is held for one of its planes: the page is then only in the parity, and nothing is lost.
#[test]
fn a_plane_goes_out_of_use_while_a_page_is_held_for_it() {
    let mut with_held = 0;
    for nth in 0..40 {
        let mut executor = Executor::new();
        let fault = format!("dead channel=1 die=0 nth={}", 2_600 + 13 * nth);
        let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &[&fault], 24);
        let mut rng = Seed::new(nth).rng();
        let work = async {
            let mut versions = fill(&ftl, 3_000, &mut rng).await;
            let mut held = planes_of_held(&ftl);
            for _ in 0..4_000 {
                let lpn = rng.below(versions.len() as u64) as u32;
                versions[lpn as usize] += 1;
                write(&ftl, lpn, versions[lpn as usize]).await;
                if ftl.stats().planes_out_of_use > 0 {
                    break;
                }
                held = planes_of_held(&ftl);
            }
            let dead = (0..8).map(PlaneId).find(|plane| ftl.state.borrow().collectors.is_out_of_use(*plane));
            with_held += u32::from(dead.is_some_and(|dead| held.contains(&dead)));
            ftl.check().unwrap();
            flush(&ftl).await;
            expect_all(&ftl, &versions).await;
            assert_eq!((ftl.stats().lost_units, ftl.read_only()), (0, None), "{fault}");
            assert!(held_stripes(&ftl).is_empty(), "{fault}");
            ftl.check().unwrap();
        };
        executor.block_on(work).unwrap();
    }
    assert!(with_held > 3, "{with_held} of 40 dies died with a page held for them");
}

#[test]
fn a_dead_die_comes_back_byte_by_byte_and_writing_and_collecting_go_on() {
    for seed in 1..4 {
        let mut executor = Executor::new();
        let faults = ["dead channel=1 die=0 nth=1500"];
        let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &faults, 24);
        let mut rng = Seed::new(seed).rng();
        let work = async {
            let mut versions = fill(&ftl, 6_000, &mut rng).await;
            expect_all(&ftl, &versions).await;
            assert_eq!(ftl.stats().planes_out_of_use, 1, "seed {seed}: {:?}", ftl.stats());
            let before = ftl.stats();
            for _ in 0..4_000 {
                let lpn = rng.below(versions.len() as u64) as u32;
                versions[lpn as usize] += 1;
                write(&ftl, lpn, versions[lpn as usize]).await;
            }
            flush(&ftl).await;
            expect_all(&ftl, &versions).await;
            let stats = ftl.stats().since(&before);
            assert!(stats.gc_blocks > 100 && stats.rain.reconstructed_reads > versions.len() as u64 / 10, "{stats:?}");
            assert_eq!((ftl.stats().lost_units, ftl.read_only()), (0, None));
            ftl.check().unwrap();
        };
        executor.block_on(work).unwrap();
    }
}

/// Reads of single units and of full stripes while collectors are at work and nothing else is: (latencies, counters).
fn reads_beside_collections(with: With, units: u32) -> (Vec<Span>, nandscape_device_ftl_core::RainStats) {
    let mut executor = Executor::new();
    let ftl = drive(&executor.sim(), with, StoreKind::None, &[], 40);
    ftl.plant(Plant::Steady, Seed::new(3), &mut |_| ());
    let mut rng = Seed::new(4).rng();
    let mut latencies = Vec::new();
    let work = async {
        for _ in 0..60 {
            for _ in 0..40 {
                write(&ftl, rng.below(ftl.config.logical_units.into()) as u32, 1).await;
            }
            // Programs end; collections take longer.
            ftl.sim.sleep(Span::from_ms(6)).await;
            let is_collecting = |ftl: &PageFtl| {
                let state = ftl.state.borrow();
                let busy = (0..8).any(|plane| state.programs.is_busy(PlaneId(plane)));
                !busy && (0..8).any(|plane| state.collectors.is_running(PlaneId(plane)))
            };
            while is_collecting(&ftl) {
                let stripe = rng.below(u64::from(ftl.state.borrow().stripes() - 1)) as u32;
                let lpn = stripe * 3 + if units == 1 { rng.below(3) as u32 } else { 0 };
                let is_on_flash = (lpn..lpn + units)
                    .all(|lpn| matches!(ftl.state.borrow().tables.location(Lpn(lpn)), Location::Flash(_)));
                if !is_on_flash {
                    ftl.sim.sleep(Span::from_us(10)).await;
                    continue;
                }
                let began = ftl.sim.now();
                read(&ftl, lpn, units).await.unwrap();
                latencies.push(ftl.sim.now() - began);
            }
        }
    };
    executor.block_on(work).unwrap();
    (latencies, ftl.stats().rain)
}

/// A read of a unit takes 40 us and its transfer 10 us. A read that avoids a collection takes the other three members
/// of the stripe, concurrently over idle channels, in the same time.
#[test]
fn a_read_round_a_collection_takes_as_long_as_a_read() {
    let (latencies, stats) = reads_beside_collections(ALL, 1);
    let alone = Span::from_us(50);
    assert!(latencies.len() > 1_000 && stats.reconstructed_reads > 50, "{} reads, {stats:?}", latencies.len());
    assert_eq!(stats.extra_reads, 3 * stats.reconstructed_reads);
    let late = latencies.iter().filter(|latency| **latency > alone).count();
    // A collector that has released the plane, or is just about to, is not avoided.
    assert!(late * 200 < latencies.len(), "{late} of {} reads were late", latencies.len());
    let (waiting, stats) = reads_beside_collections(With { reconstruct: false, ..ALL }, 1);
    assert_eq!(stats.reconstructed_reads, 0);
    let late = waiting.iter().filter(|latency| **latency > Span::from_ms(1)).count();
    assert!(late * 20 > waiting.len(), "without it {late} of {} reads wait", waiting.len());
}

/// A read of a full stripe takes the parity in addition, and nothing else.
#[test]
fn a_read_of_a_full_stripe_takes_the_parity_besides() {
    let (latencies, stats) = reads_beside_collections(ALL, 3);
    assert!(latencies.len() > 500 && stats.reconstructed_reads > 50, "{} reads, {stats:?}", latencies.len());
    assert_eq!(stats.extra_reads, stats.reconstructed_reads);
    let late = latencies.iter().filter(|latency| **latency > Span::from_us(50)).count();
    assert!(late * 100 < latencies.len(), "{late} of {} reads were late", latencies.len());
}

/// At most one plane of a group collects, except for overloads, which are counted.
#[test]
fn collections_of_a_group_take_turns_but_in_overloads() {
    let mut seen = [0u64; 2];
    for (rotating, beside) in [true, false].into_iter().zip(&mut seen) {
        let mut executor = Executor::new();
        let ftl = drive(&executor.sim(), With { rotating, ..ALL }, StoreKind::None, &[], 40);
        ftl.plant(Plant::Steady, Seed::new(3), &mut |_| ());
        let mut rng = Seed::new(5).rng();
        let work = async {
            for _ in 0..4_000 {
                write(&ftl, rng.below(ftl.config.logical_units.into()) as u32, 1).await;
                ftl.sim.sleep(Span::from_us(1_500)).await;
                let state = ftl.state.borrow();
                let layout = &state.rain.as_deref().expect("a drive with stripes").layout;
                let running = |group| layout.planes(group).filter(|plane| state.collectors.is_running(*plane)).count();
                *beside += (0..layout.groups()).filter(|group| running(*group) > 1).count() as u64;
            }
        };
        executor.block_on(work).unwrap();
        let stats = ftl.stats();
        assert!(stats.gc_blocks > 300, "{stats:?}");
        assert!(!rotating || *beside == 0 || stats.rain.overloads > 0, "{beside} seen, {stats:?}");
        assert!(rotating || stats.rain.overloads == 0);
    }
    let [turns, at_will] = seen;
    assert!(turns * 20 < at_will, "{turns} times two of a group collect in turn, {at_will} times at will");
}

/// Write amplification over a drive-fill of random overwrites: planted, and run.
fn steady_waf(planted: bool, seed: u64) -> f64 {
    let mut executor = Executor::new();
    let with = With { rotating: false, reconstruct: false, tolerant: false, scrub: false };
    let ftl = drive(&executor.sim(), with, StoreKind::None, &[], 40);
    let mut rng = Seed::new(seed).child("overwrites").rng();
    let units = u64::from(ftl.config.logical_units);
    let work = async {
        if planted {
            ftl.plant(Plant::Steady, Seed::new(seed), &mut |_| ());
        } else {
            fill(&ftl, 4 * units, &mut rng).await;
        }
        let before = ftl.stats();
        for _ in 0..units {
            write(&ftl, rng.below(units) as u32, 1).await;
        }
        let stats = ftl.stats().since(&before);
        stats.programmed_units() as f64 * 4_096.0 / stats.host_bytes as f64
    };
    let waf = executor.block_on(work).unwrap();
    ftl.check().unwrap();
    waf
}

#[test]
fn what_is_planted_is_what_running_leads_to() {
    let mean = |planted: bool| (1..4).map(|seed| steady_waf(planted, seed)).sum::<f64>() / 3.0;
    let (planted, run) = (mean(true), mean(false));
    assert!((planted / run - 1.0).abs() < 0.03, "planted {planted}, run {run}");
}

/// All programs fail: the stripes in progress find no page, and the drive becomes read-only. A deallocation that waits for
/// one of them is notified.
#[test]
fn a_deallocation_does_not_wait_for_a_stripe_that_never_ends() {
    let mut executor = Executor::new();
    let ftl = drive(&executor.sim(), ALL, StoreKind::None, &["fail program every=1"], 12);
    let work = async {
        for lpn in 0..60 {
            write(&ftl, lpn, 1).await;
        }
        let deallocated = ftl.deallocate(extent(0, 60), &mut Breakdown::new()).await;
        assert!(
            deallocated.is_err() && nandscape_device_ftl_core::ftl::Ftl::read_only(&*ftl).is_some(),
            "{:?}",
            ftl.stats()
        );
    };
    executor.block_on(work).unwrap();
}

/// Erases of each plane after overwrites that are all of units of a few stripes of one group.
fn wear_by_hot_stripes(shift: f64, migrate: f64) -> (Vec<u64>, nandscape_device_ftl_core::RainStats) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ftl = drive_of(&sim, ALL, StoreKind::None, &[], 40, Some(Box::new(Thresholds { shift, migrate })));
    ftl.plant(Plant::Full, Seed::new(1), &mut |_| ());
    let mut rng = Seed::new(7).rng();
    let work = async {
        for _ in 0..60_000 {
            // The second unit of stripes that lie in the same planes, most of the time.
            let stripe = 8 * rng.below(100) as u32;
            let lpn = if rng.chance(0.95) { 3 * stripe + 1 } else { rng.below(ftl.config.logical_units.into()) as u32 };
            write(&ftl, lpn, 1).await;
        }
        flush(&ftl).await;
    };
    executor.block_on(work).unwrap();
    ftl.check().unwrap();
    let state = ftl.state.borrow();
    let layout = &state.rain.as_deref().expect("a drive with stripes").layout;
    let of = |plane: PlaneId| {
        let blocks = state.geometry.blocks_of(plane);
        blocks
            .map(|block| {
                u64::from(nandscape_device_ftl_core::component::BlockMetadata::get(&state.tables.blocks, block).erases)
            })
            .sum()
    };
    let erases = (0..2).flat_map(|group| layout.planes(group)).map(of).collect();
    (erases, state.stats().rain)
}

/// Li 6.3.1: hot stripes wear out their group, and hot members their planes; moved, they do not.
#[test]
fn hot_stripes_are_moved_and_planes_wear_evenly() {
    let spread =
        |erases: &[u64]| *erases.iter().max().unwrap() as f64 / erases.iter().sum::<u64>() as f64 * erases.len() as f64;
    let (fixed, stats) = wear_by_hot_stripes(0.0, 0.0);
    assert_eq!(stats.moved_stripes, 0);
    let (shifted, of_shift) = wear_by_hot_stripes(1.0, 0.0);
    let (moved, of_both) = wear_by_hot_stripes(1.0, 1.0);
    assert!(of_shift.moved_stripes > 0 && of_both.moved_stripes > 0, "{of_shift:?} {of_both:?}");
    let [fixed, shifted, moved] = [&fixed, &shifted, &moved].map(|erases| spread(erases));
    assert!(
        fixed > 2.5 && shifted < 0.7 * fixed && moved < 0.5 * fixed,
        "the most worn plane has {fixed}, {shifted}, {moved} times the mean"
    );
}

/// A page that collections have copied unseen is lost; scrubbing finds it before a host does.
#[test]
fn scrubbing_finds_what_collections_have_copied() {
    let mut executor = Executor::new();
    let ftl = drive(
        &executor.sim(),
        With { reconstruct: false, scrub: true, ..ALL },
        StoreKind::Ram,
        &["slow program by=1us nth=1"],
        20,
    );
    let mut rng = Seed::new(2).rng();
    let work = async {
        let versions = fill(&ftl, 4_000, &mut rng).await;
        ftl.sim.sleep(Span::from_s(2)).await;
        let before = ftl.stats().rain;
        assert!(before.scrubbed_pages > 1_000, "{before:?}");
        let mut lost = 0;
        for stripe in (0..ftl.state.borrow().stripes() - 1).step_by(2) {
            let unit = ftl.flash_unit(Lpn(stripe * 3)).expect("it is on flash");
            ftl.media.plant_unreadable(ftl.media.geometry().page_of(unit));
            lost += 1;
        }
        // Collections copy some of them.
        for _ in 0..1_500 {
            let lpn = rng.below(versions.len() as u64 / 3) as u32 * 3 + 1;
            write(&ftl, lpn, versions[lpn as usize]).await;
        }
        flush(&ftl).await;
        ftl.sim.sleep(Span::from_s(2)).await;
        let after = ftl.stats().rain;
        assert!(after.repaired_units * 4 > lost, "{} of {lost} were found", after.repaired_units);
        assert!(ftl.state.borrow_mut().rain().scrub.as_ref().is_some_and(|scrub| scrub.seen_flips() > 0));
        expect_all(&ftl, &versions).await;
        ftl.check().unwrap();
    };
    executor.block_on(work).unwrap();
}

#[test]
fn a_full_drive_is_planted_with_its_parity() {
    let executor = Executor::new();
    let ftl = drive(&executor.sim(), ALL, StoreKind::Ram, &[], 20);
    ftl.plant(Plant::Full, Seed::new(1), &mut |_| ());
    ftl.check().unwrap();
    let state = ftl.state.borrow();
    let units = nandscape_device_ftl_core::component::Mapping::units(&state.tables.map);
    let mapped = (0..units).filter(|lpn| state.tables.location(Lpn(*lpn)) != Location::Unmapped);
    assert_eq!(mapped.count() as u32, ftl.config.logical_units.div_ceil(3) + ftl.config.logical_units);
}
