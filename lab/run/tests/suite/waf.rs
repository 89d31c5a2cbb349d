//! Write amplification of a whole drive, as reported, against figures of other simulators. The drive has the over-provisioning
//! that the user asks for, without the reserve of its collectors. And the report's figures against each other.

#![expect(clippy::print_stdout, reason = "the measured figures, for --nocapture and the Validation page")]

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Report, Simulation};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

/// Logical over physical capacity, and write amplification of greedy cleaning under uniform random overwrites of 4 KiB.
const PUBLISHED: [(f64, f64); 4] = [(0.5, 1.254), (0.7, 1.873), (0.8, 2.689), (0.88, 4.338)];
const TOLERANCE: f64 = 0.03;

fn overwrite(fill: f64, capacity: &str, page_size: &str, pages_per_block: u32, scheme: &str) -> Report {
    let mut drive = Profile::load("default").unwrap();
    for change in [
        &format!("capacity={capacity}") as &str,
        "geometry.channels=2",
        "geometry.dies_per_channel=1",
        "geometry.planes_per_die=1",
        &format!("geometry.page_size={page_size}"),
        &format!("geometry.pages_per_block={pages_per_block}"),
        &format!("ftl.over_provisioning={}", 1.0 / fill - 1.0),
        &format!("ftl.gc.scheme={scheme}"),
        "buffer.size=256KiB",
    ] {
        drive.set(change).unwrap();
    }
    let job = JobSpec { rw: "randwrite".parse().unwrap(), ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(200_000), warmup: 50_000, ..Workload::of(job) };
    let simulation =
        Simulation { check: true, ..Simulation::on(drive.resolve().unwrap(), Precondition::Steady, workload, 1) };
    simulation.run(Rc::new(())).unwrap().into_drive().report
}

#[test]
fn over_provisioning_gives_the_published_amplification() {
    // 512 blocks a plane: the drive is rounded up to whole ones. Pages of several units are filled up once a victim, which
    // adds 1.8% at the highest fill.
    for (capacity, page_size, pages) in [("1GiB", "4KiB", 256), ("2GiB", "16KiB", 128)] {
        for (fill, published) in PUBLISHED {
            let report = overwrite(fill, capacity, page_size, pages, "none");
            let waf = report.waf.expect("there are writes");
            let what = format!(
                "pages of {page_size}, fill {fill}, over-provisioning {:.4}: waf {waf:.3}, published {published}",
                report.over_provisioning
            );
            println!("{what}, {:+.1}%", (waf / published - 1.0) * 100.0);
            assert!((1.0 / (1.0 + report.over_provisioning) - fill).abs() < 0.002, "{what}");
            assert!((waf / published - 1.0).abs() <= TOLERANCE, "{what}");
        }
    }
}

/// Units programmed, moved and filled up, as the FTL counts them, are the pages that the flash programmed.
#[test]
fn figures_of_a_report_agree_with_what_the_flash_did() {
    for scheme in ["none", "plane"] {
        for (page_size, per_page) in [("4KiB", 1), ("16KiB", 4)] {
            let report = overwrite(0.8, "1GiB", page_size, 128, scheme);
            let (gc, flash) = (&report.gc, &report.flash);
            let what = format!("{scheme}, pages of {page_size}: {gc:?} {flash:?}");
            // Pages are counted when their program begins, units when it ends: programs in progress may differ.
            let on_its_way = 256 * per_page;
            let programmed = flash.page_programs * per_page;
            assert!(programmed.abs_diff(flash.units_programmed) <= on_its_way, "{what}");
            let host_and_gc = report.requests + gc.pages_moved + flash.units_padding - flash.buffer_merges;
            assert!(host_and_gc.abs_diff(flash.units_programmed) <= on_its_way, "{what}");
            assert!(gc.blocks.abs_diff(flash.block_erases) <= 2, "{what}");
            let waf = programmed as f64 / report.requests as f64;
            assert!((report.waf.unwrap_or(0.0) / waf - 1.0).abs() < 0.005, "{what}");
            assert_eq!(report.bytes, report.requests * 4_096, "{what}");
        }
    }
}
