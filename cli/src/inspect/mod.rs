//! `nandscape inspect`: the contents of a drive image, or of the drives of a saved state. The drive is started on the unchanged
//! file, with all changes kept in memory, so that it shows the state that a start would find. Pages and the log are shown as
//! they are in the file, before a start writes to them.
//!
//! | file | what |
//! |---|---|
//! | `drive` | a drive that was started for it |
//! | `state` | saved states |
//! | `overview` | ten lines |
//! | `blocks`, `page` | all blocks, one page |
//! | `look` | the log of an OX-Block, a logical block |
//! | `age`, `ox` | the lines of flash that ages, and of an OX-Block |
//!
//! Left out: data.

mod age;
mod blocks;
mod drive;
mod look;
mod overview;
mod ox;
mod page;
mod state;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nandscape_lab_run::StateFile;
use serde_json::{Value, json};

pub(crate) use drive::Inspected;

use crate::failure::Failure;
use crate::output;
use drive::View;

/// Show the contents of a drive's file, or of the drives of a saved state.
///
/// The file stays as it is. A drive that was killed is shown as a start would find it; one that runs, as it is about now.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape inspect drive.nand                      the drive in ten lines
  nandscape inspect drive.nand --blocks
        every block: state, pages, current units, erases
  nandscape inspect drive.nand --page 0/1/0/7/3
        a page by channel, die, plane, block and page
  nandscape inspect drive.nand --lba 4096           where a logical block is
  nandscape inspect worn.state                      a saved state and its drives
  nandscape inspect array.state --drive 2 --blocks  one of its drives

Exit status: 0 when it was shown, 2 if the file is no store, or too damaged to start a drive on it, or a damaged state.")]
pub(crate) struct InspectArgs {
    /// The file that was given to `nandscape serve --store`, or a state that `nandscape sim --save-state` has written
    file: PathBuf,
    /// List all blocks
    #[arg(long)]
    blocks: bool,
    /// Show a page: its number, or CHANNEL/DIE/PLANE/BLOCK/PAGE
    #[arg(long, value_name = "ADDRESS", conflicts_with = "blocks")]
    page: Option<String>,
    /// Show where a logical block is, by its number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["blocks", "page"])]
    lba: Option<u64>,
    /// List the pages of the log of an OX-Block
    #[arg(long, conflicts_with_all = ["blocks", "page", "lba"])]
    log: bool,
    /// The drive to show, by number from 0, of a state of several drives
    #[arg(long, value_name = "NUMBER")]
    drive: Option<usize>,
    /// The part to show, by name, of a drive with several FTLs
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows it.
pub(crate) fn run(args: &InspectArgs) -> Result<(), Failure> {
    let (of_state, drives) = match StateFile::begins(&args.file) {
        true => state::open(&args.file).map(|(head, drives)| (Some(head), drives))?,
        false => (None, vec![Inspected::open(&args.file).map_err(Failure::Input)?]),
    };
    if drives.iter().filter_map(Inspected::of_file).any(|file| file.in_use) {
        output::note("the drive is in use: what it shows may be of different moments");
    }
    let drives = chosen(&drives, args.drive)?;
    let views = views(drives, args.part.as_deref())?;
    if args.log {
        return look::log(only(&views, "--log")?, args.json);
    }
    if let Some(lba) = args.lba {
        return look::lba(only(&views, &format!("--lba {lba}"))?, lba, args.json);
    }
    if let Some(address) = &args.page {
        let view = only(&views, &format!("--page {address}"))?;
        return page::show(view, page::parse(address, view.geometry())?, args.json);
    }
    if args.json {
        let mut each: Vec<Value> = drives.iter().map(|drive| as_json(drive, &views, args.blocks)).collect();
        let value = match of_state {
            Some(head) => head.as_json(each),
            None => each.remove(0),
        };
        return output::result(&serde_json::to_string_pretty(&value).expect("plain data"));
    }
    let mut text = of_state.map_or_else(String::new, |head| head.text());
    for view in &views {
        let gap = if text.is_empty() { "" } else { "\n" };
        write!(text, "{gap}{}", overview::overview(view)).expect("a string takes all");
        if args.blocks && !view.in_memory {
            write!(text, "\n{}\n", blocks::table(view).trim_fmt()).expect("a string takes all");
        }
    }
    output::result(text.trim_end_matches('\n'))
}

/// A drive as JSON, by those of its views that are shown.
fn as_json(drive: &Inspected, views: &[View<'_>], with_blocks: bool) -> Value {
    let own = views.iter().filter(|view| std::ptr::eq(view.inspected, drive));
    let mut each: Vec<Value> = own.map(|view| overview::as_json(view, with_blocks)).collect();
    if each.len() == 1 { each.remove(0) } else { json!({ "schema": 1, "parts": each }) }
}

/// The drives to show.
fn chosen(drives: &[Inspected], number: Option<usize>) -> Result<&[Inspected], Failure> {
    let Some(number) = number else { return Ok(drives) };
    drives.get(number..=number).ok_or_else(|| {
        let valid = if drives.len() == 1 { "0 is".to_owned() } else { format!("0 to {} are", drives.len() - 1) };
        Failure::Input(anyhow!("--drive {number}: there is no such drive; {valid} valid"))
    })
}

/// The part that an option is about.
fn only<'v, 'a>(views: &'v [View<'a>], option: &str) -> Result<&'v View<'a>, Failure> {
    match views {
        [view] if view.in_memory => {
            let name = view.part.name();
            Err(Failure::Input(anyhow!("{option}: part {name} is in memory; the file has nothing of it")))
        }
        [view] => Ok(view),
        [first, .., last] if !std::ptr::eq(first.inspected, last.inspected) => {
            Err(Failure::Input(anyhow!("{option}: the state has several drives; --drive selects one")))
        }
        _ => Err(Failure::Input(anyhow!("{option}: the drive has several parts; --part selects one"))),
    }
}

/// The parts to show.
fn views<'a>(drives: &'a [Inspected], name: Option<&str>) -> Result<Vec<View<'a>>, Failure> {
    let all = || drives.iter().flat_map(Inspected::views);
    let Some(name) = name else { return Ok(all().collect()) };
    let found: Vec<View<'a>> = all().filter(|view| view.part.name() == name).collect();
    if found.is_empty() {
        let names: Vec<&str> = all().map(|view| view.part.name()).collect();
        return Err(Failure::Input(anyhow!("--part {name}: there is no such part; there are {}", names.join(", "))));
    }
    Ok(found)
}
