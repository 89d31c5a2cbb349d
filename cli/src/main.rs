//! The `nandscape` command. Results go to standard output, everything else to standard error. Exit status: 0 done,
//! 1 the run failed, 2 bad usage or input.

#[cfg(target_os = "linux")]
mod below_words;
mod bench;
mod block_words;
mod compare;
#[cfg(target_os = "linux")]
mod ctl;
mod demo;
#[cfg(test)]
mod documented;
mod drives;
mod engine;
mod explain;
mod failure;
mod fairness;
mod files;
mod find_rate;
mod fox;
mod fsck;
#[cfg(target_os = "linux")]
mod guest;
mod host_words;
mod hosts;
mod inspect;
mod kv;
mod lab;
mod lsm;
mod members;
#[cfg(target_os = "linux")]
mod memcached;
mod mitt;
mod numbers;
mod output;
mod over;
mod pages;
mod paper;
mod precompletion_words;
mod progress;
mod replay;
#[cfg(target_os = "linux")]
mod serve;
mod shell;
mod sim;
mod sim_layers;
mod spelling;
mod state_words;
mod store_drive;
mod store_figures;
mod store_layers;
mod sweep;
mod table;
mod trace;
mod version;
mod workload_words;
mod workloads;
mod ycsb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An SSD you can see inside, reprogram and break.
#[derive(Parser)]
#[command(name = "nandscape", version = version::version(), arg_required_else_help = true, max_term_width = 110)]
#[command(after_help = "\
Start here:
  nandscape demo                                           how garbage collection delays reads, in ten seconds
  nandscape sim --drive default --rw randread              a first simulation
  nandscape sim --drive default --rw randrw --precondition steady
                                                           the same drive in steady state, reads and writes
  nandscape sweep --set rw=randread --vary iodepth=1,8,64  the same over several values, with figures
  nandscape drives show default                            the profile of that drive
  nandscape guest                                          a Linux guest with such a drive

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A tour: how garbage collection delays reads, as a table and as a page in report.html
    Demo(demo::DemoArgs),
    /// Simulate a drive under a workload, in simulated time
    Sim(Box<sim::SimArgs>),
    /// Simulate every combination of chosen values, with tables and figures against them
    Sweep(Box<sweep::SweepArgs>),
    /// Serve drives in real time, over NBD, NVMe/TCP and vfio-user
    #[cfg(target_os = "linux")]
    Serve(Box<serve::ServeArgs>),
    /// Give a running server orders: statistics, faults, settings, stop
    #[cfg(target_os = "linux")]
    Ctl(Box<ctl::CtlArgs>),
    /// Run a workload on a drive behind a socket or a ring, at the wall clock
    #[cfg(target_os = "linux")]
    Bench(Box<bench::BenchArgs>),
    /// Inspect a drive image: blocks, wear, map, log
    Inspect(inspect::InspectArgs),
    /// Check a drive image; it stays unchanged
    Fsck(fsck::FsckArgs),
    /// Start a Linux guest that has an emulated NVMe drive
    #[cfg(target_os = "linux")]
    Guest(Box<guest::GuestArgs>),
    /// A replicated key-value store on drives, whose clients evade noisy neighbours
    Kv(Box<kv::KvArgs>),
    /// Serve memcached's protocols over a storage engine on several drives, in real time
    #[cfg(target_os = "linux")]
    Memcached(Box<memcached::MemcachedArgs>),
    /// Run what a source paper built, as it measured it
    Paper(paper::PaperArgs),
    /// Describe traces of block devices, and convert them
    Trace(trace::TraceArgs),
    /// Compare reports of runs
    Compare(compare::CompareArgs),
    /// Explain reports of runs: where the tail comes from, and what to change
    Explain(explain::ExplainArgs),
    /// List the built-in drives, or show one
    Drives(drives::DrivesArgs),
    /// List the built-in hosts, or explain one
    Hosts(hosts::HostsArgs),
    /// List the built-in workloads, or show one
    Workloads(workloads::WorkloadsArgs),
    /// Measure the claims of the source papers, and judge them
    Lab(Box<lab::LabArgs>),
    /// Print what a shell reads to complete the command line
    Completions(shell::CompletionsArgs),
    /// Print or write manual pages
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    shell::answer();
    let cli = match Cli::try_parse_from(spelling::with_hyphens(paper::in_full(std::env::args_os()))) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&workload_words::with_way_out(error)),
    };
    #[cfg(target_os = "linux")]
    survive_full_disks();
    let result = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        #[cfg(target_os = "linux")]
        Command::Serve(args) => serve::run(*args),
        #[cfg(target_os = "linux")]
        Command::Ctl(args) => ctl::run(&args),
        #[cfg(target_os = "linux")]
        Command::Bench(args) => bench::run(&args),
        #[cfg(target_os = "linux")]
        Command::Guest(args) => guest::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Fsck(args) => fsck::run(&args),
        Command::Kv(args) => kv::run(&args),
        #[cfg(target_os = "linux")]
        Command::Memcached(args) => memcached::run(&args),
        Command::Paper(args) => paper::run(&args.command),
        Command::Trace(args) => trace::run(&args),
        Command::Drives(args) => drives::run(&args),
        Command::Hosts(args) => hosts::run(&args),
        Command::Workloads(args) => workloads::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::error(&failure);
            failure.exit_code()
        }
    }
}

/// A file that reaches the limit of its size (setrlimit(2), RLIMIT_FSIZE) is like a full disk: an error of the write, not the
/// end of the process.
#[cfg(target_os = "linux")]
fn survive_full_disks() {
    // Without the handler the signal ends the process at such a file, as it does in other programs.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}
