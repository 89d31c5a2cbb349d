//! A page store on a drive that knows pages (OX-ELEOS): counters in distant pages, raised together. Power fails again and
//! again, and the counters never differ.
//!
//! Run it with `cargo run --release -p nandscape --example page_store`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::rc::Rc;

use nandscape::drive::{Drive, Issuer, QueueDrive, QueueId};
use nandscape::host::eleos::{Buffer, Error, Limits, Page, read};
use nandscape::sim::{Executor, Seed, Sim, Span};
use nandscape::ssd::{Profile, Ssd, StoreKind};

/// The pages of the counters.
const COUNTERS: [u64; 4] = [3, 500, 9_000, 12_345];

/// A page with a number.
fn page(count: u64) -> Page {
    let mut page = [0; 4_096];
    page[..8].copy_from_slice(&count.to_le_bytes());
    page
}

/// The numbers of all counters. A read interrupted by a power cut is repeated.
async fn counts(issuer: &Issuer, drive: &dyn Drive, limits: &Limits) -> Result<Vec<u64>, Error> {
    loop {
        match read(issuer, drive, limits, &COUNTERS).await {
            Err(Error::PowerLost) => {}
            found => {
                let count = |page: &Option<Box<Page>>| {
                    page.as_ref().map_or(0, |page| u64::from_le_bytes(*page.first_chunk().expect("4 KiB")))
                };
                return Ok(found?.iter().map(count).collect());
            }
        }
    }
}

async fn work(sim: &Sim, ssd: &Rc<Ssd>) -> Result<(), Box<dyn std::error::Error>> {
    let queue = |id| QueueDrive::new(sim, ssd.controller(), id, 64).map_err(|status| status.to_string());
    let (issuer, admin, drive) = (Issuer::new(sim), queue(QueueId::ADMIN)?, queue(QueueId(1))?);
    let limits = Limits::ask(&issuer, &*admin, &drive.info()).await?.ok_or("the drive knows no pages")?;
    println!("a buffer has up to {} pages, a batch {}", limits.buffered, limits.batched);

    let (mut buffer, mut cuts) = (Buffer::new(&drive.info(), &limits), 0);
    for count in 1..=200 {
        COUNTERS.iter().try_for_each(|lpid| buffer.put(*lpid, &page(count)))?;
        if count % 10 == 0 {
            let (clock, flash) = (sim.clone(), ssd.clone());
            sim.spawn(async move {
                clock.sleep(Span::from_us(7 * count)).await;
                flash.media().cut_power(Span::from_us(10));
            });
        }
        match buffer.flush(&issuer, &*drive).await {
            Ok(()) => assert_eq!(counts(&issuer, &*drive, &limits).await?, [count; 4], "acknowledged and lost"),
            Err(Error::PowerLost) => {
                cuts += 1;
                let found = counts(&issuer, &*drive, &limits).await?;
                assert!(found.iter().all(|each| *each == found[0]), "torn: {found:?}");
                // All or nothing: the buffer still has the pages, and is flushed again.
                buffer.flush(&issuer, &*drive).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    println!("counters: {:?} after {cuts} flushes that met a power cut", counts(&issuer, &*drive, &limits).await?);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut profile = Profile::load("default")?;
    for change in ["capacity=64MiB", "ftl.kind=ox_block", "buffer.mode=volatile"] {
        profile.set(change)?;
    }
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Rc::new(Ssd::new(&sim, &profile.resolve()?, StoreKind::Ram, Seed::new(1))?);
    executor.block_on(work(&sim, &ssd))?
}
