//! `nandscape guest`: a Linux guest under stock QEMU with an emulated NVMe drive, from nothing, in one command.
//!
//! | file | what |
//! |---|---|
//! | `server` | the drive: `nandscape serve` as a separate process |
//! | `arrival` | how the drive comes into the guest, by transport |

mod arrival;
mod server;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use nandscape_lab_guest::{Device, ExtraFile, GuestError, Kit, Machine, Output, processes};
use nandscape_sim::units::Bytes;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::output;
use server::Server;

/// Start a Linux guest that has an emulated NVMe drive.
///
/// The drive is served by `nandscape serve`, and the guest runs under stock QEMU with Debian's kernel. On first use, QEMU,
/// the kernel and the guest's programs are fetched from Debian's archive (some 200 MB) into the user's cache folder; that
/// needs apt-get and dpkg-deb, but no root. The guest has nvme-cli, fio, and tools for ext4 and XFS. It runs from memory:
/// nothing in it but the drive's data outlives a restart of the guest, and that only while the drive is served.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape guest
        a shell in a guest with the default drive
  nandscape guest --drive wd-zn540-block --set capacity=8GiB \\
      --transport nvme-tcp
  nandscape guest --run 'nvme list'
        one command; exit status 0 if it ended with 0, else 1; the
        figures of the drive follow on standard error
  nandscape guest --file job.fio --run 'fio job.fio' --out run
        with the report of the drive, run/report.html
  nandscape guest --file job.fio --run 'fio job.fio'
  nandscape guest --null-drive 1GiB --run 'nvme list'
        next to QEMU's own NVMe drive without data
  nandscape guest -- --precondition full --control c.sock
        more options of `nandscape serve`

In the shell: Ctrl-A x ends the guest at once, Ctrl-A c is QEMU's monitor, and leaving the shell powers off.

Exit status: 0 when the guest powered off, and its command, if one was given, succeeded; 1 when the command failed, or the guest or
the server ended with an error; 2 for bad usage, or when what a guest needs is missing.")]
pub(crate) struct GuestArgs {
    /// A drive by name or profile file, see `nandscape drives`
    #[arg(long, value_name = "P", default_value = "default")]
    drive: String,
    /// Change a key of the drive's profile: capacity=8GiB; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How the guest reaches the drive: as a PCI device, or over its network
    #[arg(long, value_enum, default_value = "vfio-user")]
    transport: Transport,
    /// Run this in the guest, in sh, instead of a shell on the terminal
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Give the guest a copy of a file, by default in /root; may be repeated
    #[arg(long, value_name = "FILE[:PATH]")]
    file: Vec<FileArg>,
    /// Also give the guest QEMU's own NVMe drive, to compare with: this many bytes that read as zeros, stored nowhere
    #[arg(long, value_name = "SIZE")]
    null_drive: Option<Bytes>,
    /// The guest's memory
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    memory: Bytes,
    /// The guest's processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    processors: u32,
    /// Write the report of the drive into this folder at the end: a page, JSON and CSV, as `nandscape sim --out`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only fetch what is missing, and print the packages with their versions
    #[arg(long, conflicts_with_all = ["run", "file", "set", "null_drive", "out", "serve"])]
    prepare: bool,
    /// More options of `nandscape serve`
    #[arg(last = true, value_name = "SERVE OPTIONS")]
    serve: Vec<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A PCI NVMe controller
    VfioUser,
    /// NVMe/TCP, over QEMU's user network
    NvmeTcp,
}

/// A file for the guest.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FileArg(ExtraFile);

impl FromStr for FileArg {
    type Err = String;

    fn from_str(word: &str) -> Result<FileArg, String> {
        let (from, to) = match word.rsplit_once(":/") {
            Some((from, to)) => (PathBuf::from(from), format!("/{to}")),
            None => {
                let name = PathBuf::from(word).file_name().map(|name| name.to_string_lossy().into_owned());
                let name = name.ok_or_else(|| format!("{word:?} names no file; give FILE or FILE:/PATH"))?;
                (PathBuf::from(word), format!("/root/{name}"))
            }
        };
        match from.is_file() && !to.ends_with('/') && !to.split('/').any(|part| part == "..") {
            true => Ok(FileArg(ExtraFile { from, to })),
            false => Err(format!("{word:?}: FILE is to be a file, and :/PATH, where given, the path of one")),
        }
    }
}

/// The smallest memory that holds the guest's kernel and programs.
const LEAST_MEMORY: u64 = 512 << 20;

/// The bytes of a block of QEMU's own drive.
const BLOCK: u64 = 512;

/// Starts the guest, and ends with it.
pub(crate) fn run(args: &GuestArgs) -> Result<(), Failure> {
    if args.memory.0 < LEAST_MEMORY || args.memory.0 > u64::from(u32::MAX) << 20 {
        let problem = format!("--memory {}: a guest needs at least {}", args.memory, Bytes(LEAST_MEMORY));
        return Err(Failure::Input(anyhow::anyhow!(problem)));
    }
    if let Some(size) = args.null_drive.filter(|size| size.0 == 0 || !size.0.is_multiple_of(BLOCK)) {
        let problem = format!("--null-drive {size}: a drive has whole blocks of {BLOCK} bytes, at least one");
        return Err(Failure::Input(anyhow::anyhow!(problem)));
    }
    if args.run.is_none() && !args.prepare && !std::io::stdin().is_terminal() {
        let problem = "a shell in the guest needs a terminal; without one, give a command with --run";
        return Err(Failure::Input(anyhow::anyhow!(problem)));
    }
    let kit = Kit::prepare(&|step| output::note(step)).map_err(failure)?;
    if args.prepare {
        return output::result(&kit.versions().map_err(failure)?);
    }
    end_on_signals().map_err(Failure::Run)?;
    let mut serve = args.serve.clone();
    if let Some(folder) = &args.out {
        serve.extend(["--out".to_owned(), folder.display().to_string()]);
    }
    let server = Server::start(args.transport, &args.drive, &args.set, &serve)?;
    let arrival = arrival::of(args.transport, &server)?;
    let machine = Machine {
        memory_mib: (args.memory.0 >> 20) as u32,
        processors: args.processors,
        devices: arrival.devices.into_iter().chain(args.null_drive.map(|size| Device::NullNvme(size.0))).collect(),
        files: args.file.iter().map(|file| file.0.clone()).collect(),
        first: arrival.first,
        is_booted: false,
    };
    let result = match &args.run {
        Some(command) => run_command(&machine, &kit, command, server),
        None => run_shell(&machine, &kit, server),
    };
    match processes::are_ending() {
        true => Err(Failure::Run(anyhow::anyhow!("a signal has ended the guest"))),
        false => result,
    }
}

/// Has SIGTERM, SIGHUP and SIGINT end QEMU and the server, and with them this program. In a shell, Ctrl-C is the guest's.
fn end_on_signals() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT])?;
    let end = move || {
        for signal in signals.forever() {
            if !processes::end_all() {
                // It ends the process; there is nothing to do if it cannot.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(end)?;
    Ok(())
}

fn run_command(machine: &Machine, kit: &Kit, command: &str, server: Server) -> Result<(), Failure> {
    let mut guest = machine.start(kit).map_err(failure)?;
    let mut print = |line: &str| {
        // What a closed pipe does not take is not wanted.
        let _ = output::result(line);
    };
    let Output { status, .. } = guest.attempt_with(command, &mut print).map_err(failure)?;
    guest.power_off().map_err(failure)?;
    tell_figures(server)?;
    match status {
        0 => Ok(()),
        status => Err(Failure::Run(anyhow::anyhow!("in the guest, `{command}` failed with status {status}"))),
    }
}

fn run_shell(machine: &Machine, kit: &Kit, server: Server) -> Result<(), Failure> {
    output::note("the guest starts within some seconds; Ctrl-A x ends it, Ctrl-A c is QEMU's monitor, exit powers off");
    let status = machine.shell(kit).map_err(failure)?;
    tell_figures(server)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Run(anyhow::anyhow!("QEMU ended with {status}"))),
    }
}

/// Ends the server, and prints the figures of its drive on standard error: the output is the command's.
fn tell_figures(server: Server) -> Result<(), Failure> {
    let figures = server.stop()?;
    output::note(&format!("the drive:\n{}", figures.trim_end()));
    Ok(())
}

fn failure(error: GuestError) -> Failure {
    match error {
        GuestError::Missing(_) => Failure::input(error),
        error => Failure::run(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_a_place_in_the_guest() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("job.fio");
        std::fs::write(&from, "").unwrap();
        let parsed = |more: &str| format!("{}{more}", from.display()).parse::<FileArg>();
        let to = |more: &str| parsed(more).map(|file| file.0.to);
        assert_eq!((to(""), to(":/etc/job")), (Ok("/root/job.fio".to_owned()), Ok("/etc/job".to_owned())));
        for wrong in [":/", ":/a/", ":/../a", "x"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
