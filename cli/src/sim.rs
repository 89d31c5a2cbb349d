//! `nandscape sim`: a drive under a workload, in simulated time.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::FromStr;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use nandscape_device_media::fault::Strike;
use nandscape_device_media::{Rule, StoreKind};
use nandscape_device_ssd::{Age, Profile, Resolved};
use nandscape_lab_report::{ArrayDocument, Document, RequestLog};
use nandscape_lab_run::chain::{Chain, Kind, LayerSettings, LayerWords, Named, drives_below, names};
use nandscape_lab_run::search::Bound;
use nandscape_lab_run::{
    Begin, DriveFinished, Figures, Observer, Percentile, Report, RunError, Simulation, StateFile, Wanted,
};
use nandscape_lab_workload::is_workload;
use nandscape_layers_array::Shape;

use crate::failure::Failure;
use crate::files::Files;
use crate::numbers::whole;
use crate::over::{self, Over};
use crate::state_words::StateWords;
use crate::trace::TraceWords;
use crate::workload_words::{JOB_WORDS, WorkloadWords, refuse_keys_of_jobs};
use crate::{block_words, host_words, output, progress, sim_layers, table};

/// Simulate a drive under a workload, in simulated time.
///
/// The same inputs and seed give the same figures on any machine; only the part `host` differs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape sim --drive default --rw randread --iodepth 1
  nandscape sim --drive ttflash-256g --rw randrw --rwmixread 70 \\
      --precondition steady --json
  nandscape sim --drive default --set ftl.gc.scheme=channel \\
      --workload noisy-neighbour
  nandscape sim --drive mine.toml --rw randwrite --rate-iops 50000 \\
      --runtime 2s --out results/
  nandscape sim --drive default --trace server.trace --time-scale 10
  nandscape sim --drive default --rw randread --percentiles 95,99.999
  nandscape sim --drive default --rw randread --find-rate 'read.p99<1ms'
  nandscape sim --drive default server.fio
  nandscape sim --drive default --rw randwrite --random-distribution zipf:0.9 \\
      --precondition load
  nandscape sim --drive default --precondition steady --rw randread \\
      --save-state worn.state
  nandscape sim --drive default --age 18months --rw randread
  nandscape sim --array raid5:4 --drive default --set array.technique=tea2 \\
      --precondition steady --rw randrw --rate-iops 4000
        four drives as one, with reads that evade garbage collection
  nandscape sim --drive default --over block,deadline=2ms --over raid1:2 \\
      --over cache,memory=256MiB --rw randread
        a mirror of two drives, each behind a block layer, under a page cache
  nandscape sim --drive default --host server --set host.completion=poll \\
      --rw randread --iodepth 1
        the same drive below a host: its stages, and its processor time
  nandscape sim --from-state worn.state --set ftl.gc.victim=cost_benefit \\
      --rw randrw
  nandscape sim --replay run.rec --out results/
        a page of a live run
  nandscape sim --replay run.rec --set ftl.gc.scheme=channel
        the requests of a live run on another drive

Fault rules have the form KIND [read|program|erase] [WORD=VALUE]... (see docs/techniques/faults.md):
  --fault 'fail program every=500'
        every 500th program fails, and its block is retired
  --fault 'slow read by=2ms probability=0.1%'
        one read in a thousand takes 2 ms longer
  --fault 'dead channel=1 die=2 from=10ms'
        that die stops answering after 10 ms
  --fault 'uncorrectable lba=4096-4103 count=1'
        one read of that data fails
  --fault 'power_cut nth=100000' --set buffer.mode=volatile
        power fails at the 100,000th operation of the flash

Exit status: 0 when done, also if requests failed because of planned faults; 1 when other requests failed, the run was
interrupted (the first Ctrl-C ends it with the figures so far, the second at once), or output cannot be written; 2 for bad usage or input.")]
pub(crate) struct SimArgs {
    /// A job file of fio as the workload. Options that only fio needs are left out with a note, others that are not understood
    /// are errors
    #[arg(value_name = "JOBS.fio", conflicts_with_all = ["replay", "workload", "trace"], conflicts_with_all = JOB_WORDS)]
    jobs: Option<String>,
    /// A drive by name or profile file, see `nandscape drives`. With --replay, in place of the recorded drives, or of one of
    /// them: NAME=P
    #[arg(long, value_name = "P", required_unless_present_any = ["replay", "from_state"])]
    pub(crate) drive: Option<String>,
    /// Make an array of drives of the profile, each with its own seed: LEVEL:N with level raid0, raid1, raid5, raid6 or raid10,
    /// such as raid5:4. Its keys are set with --set: array.technique=base, proactive, tea1, tea2, teafa, speculative, preempt,
    /// harmonia or rails; array.chunk=4KiB; array.windows=static or dynamic; array.window=100ms; docs/techniques/array.md has them all
    #[arg(long, value_name = "LEVEL:N", conflicts_with_all = ["replay"])]
    pub(crate) array: Option<Shape>,
    #[arg(long, help = over::help(), value_name = "LAYER", conflicts_with_all = ["replay"])]
    pub(crate) over: Vec<Over>,
    /// Replay a recording of `nandscape serve --record` in simulated time: the same drives, arrivals and events, to the
    /// nanosecond. With --drive, --set, --fault, --precondition or --no-delay a what-if: its requests at their times on changed
    /// drives
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "rw", "trace", "seed", "from_state", "save_state", "save_state_after", "precondition_workload", "precondition_trace", "assign"])]
    pub(crate) replay: Option<PathBuf>,
    /// Run the jobs in threads of this host, by name or file, see `nandscape hosts`: the report gains the host's stages and its processor
    /// time. Its keys are set with --set, such as host.completion=poll: docs/techniques/host-path.md
    #[arg(long, value_name = "NAME", conflicts_with_all = ["replay"])]
    pub(crate) host: Option<String>,
    /// Change a key of the profile, such as ftl.gc.victim=cost_benefit; may be repeated. block.deadline=500us and other keys of block put
    /// the block layer of a host over the drive: docs/techniques/mittos.md
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How long the drive has been in use when the run begins: 18months, 2years, 90days. Sets wear.age; the keys of `wear` say
    /// how it was used, and how flash ages
    #[arg(long, value_name = "TIME", value_parser = age, allow_hyphen_values = true, conflicts_with_all = ["replay", "from_state"])]
    age: Option<String>,
    /// Inject a fault into the flash: corrupt, uncorrectable, slow, fail, stuck, dead or power_cut, then place and time; see
    /// the end of this help. May be repeated; adds to the profile's `faults`. With --array it is for all drives, or for one of them:
    /// drive-1=RULE
    #[arg(long, value_name = "RULE")]
    pub(crate) fault: Vec<FaultWord>,
    #[command(flatten)]
    pub(crate) state: StateWords,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Set the times of flash, link and firmware to zero
    #[arg(long)]
    pub(crate) no_delay: bool,
    /// Where the drive keeps data; `none` simulates timing only
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) store: StoreArg,
    /// Report these percentiles of latencies, too: 95,99.999
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) percentiles: Vec<Percentile>,
    /// Find the highest rate of arrivals at which a latency stays below a bound: 'read.p99.9 < 1ms'. The workload runs at several
    /// rates, from --rate-iops or 1000 a second; the rates of a file's jobs keep their proportions
    #[arg(long, value_name = "BOUND", conflicts_with_all = ["replay", "out", "chrome_trace", "trace", "percentiles"])]
    pub(crate) find_rate: Option<Bound>,
    /// Measure each of several jobs alone, too, and report slowdowns and fairness
    #[arg(long, conflicts_with_all = ["replay", "find_rate"])]
    pub(crate) fairness: bool,
    /// Check the drive's tables for consistency after the run
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report into this folder: report.html, report.json, tables as CSV, and the resolved profile. Each of several
    /// recorded drives has a separate folder in it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write every measured request to this file, a row each with its time, address, stages and causes of waits: .csv, or .parquet
    /// in programs built with it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["find_rate"])]
    pub(crate) requests: Option<PathBuf>,
    /// Write the activity of every plane, channel, command and, with --host, processor to this file, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) chrome_trace: Option<PathBuf>,
    // These come last: a help heading applies to all options that follow it.
    #[command(flatten)]
    words: WorkloadWords,
    #[command(flatten)]
    trace_words: TraceWords,
}

/// Layers over the drives of a run.
#[derive(Default)]
pub(crate) struct Layers {
    /// As text, which a saved state has.
    pub(crate) chain: Chain,
    /// Resolved.
    pub(crate) layers: Vec<Named>,
}

/// The value of `--fault`.
#[derive(Clone, Debug)]
pub(crate) struct FaultWord {
    /// The drive of the rule, out of several; without it the rule is for all.
    pub(crate) drive: Option<String>,
    pub(crate) rule: Rule,
    /// As it was given: what errors show.
    pub(crate) text: String,
}

impl FromStr for FaultWord {
    type Err = String;

    fn from_str(word: &str) -> Result<FaultWord, String> {
        // The first word of a rule has no `=` in it.
        let first = word.split_whitespace().next().and_then(|first| first.split_once('='));
        let (drive, rule) = match first {
            Some((name, _)) => (Some(name.to_owned()), &word.trim_start()[name.len() + 1..]),
            None => (None, word),
        };
        let rule = rule.parse().map_err(|error: <Rule as FromStr>::Err| error.to_string())?;
        Ok(FaultWord { drive, rule, text: word.to_owned() })
    }
}

impl SimArgs {
    /// The layers over the drives, those that are given or else those of a saved state, with their settings, and the other changes of
    /// keys. Without layers, all changes are others.
    pub(crate) fn layers(&self, set: &[String], file: Option<&StateFile>) -> Result<(Layers, Vec<String>), Failure> {
        let array = self.array.map(|shape| LayerWords {
            name: None,
            kind: shape.to_string(),
            over: Vec::new(),
            set: Vec::new(),
        });
        let mut given = over::chain(&self.over);
        // Directly over the drives, or over their FTLs.
        array.into_iter().for_each(|array| given.layers.insert(usize::from(given.has_ftl()), array));
        let of_file = file.and_then(StateFile::chain).filter(|_| given.layers.is_empty());
        let mut chain = of_file.cloned().unwrap_or(given);
        if chain.layers.is_empty() {
            return Ok((Layers::default(), set.to_vec()));
        }
        let option = match (self.array, of_file) {
            (Some(shape), _) if self.over.is_empty() => format!("--array {shape}"),
            (None, Some(_)) => "--from-state".to_owned(),
            (Some(_), _) | (None, None) => "--over".to_owned(),
        };
        if self.no_delay {
            chain.without_delay();
        }
        let resolved = chain.take_with_block(set).and_then(|others| Ok((chain.resolve()?, others)));
        let (layers, others) = resolved.map_err(|problem| Failure::Input(anyhow::anyhow!("{option}: {problem}")))?;
        match others.iter().find(|change| Kind::of_change(change).is_some()) {
            Some(change) => Err(Failure::Input(anyhow::anyhow!(
                "--set {change}: no layer has this name; there are {}",
                names(&layers).join(", ")
            ))),
            None => Ok((Layers { chain, layers }, others)),
        }
    }

    /// Checks that no rule names a drive where there is one.
    pub(crate) fn check_faults(&self) -> Result<(), Failure> {
        match self.fault.iter().find(|word| word.drive.is_some()) {
            Some(FaultWord { text, .. }) => Err(Failure::Input(anyhow::anyhow!(
                "--fault \"{text}\": there is one drive, and a RULE alone is for it; NAME=RULE is for drives of --array"
            ))),
            None => Ok(()),
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreArg {
    None,
    Ram,
}

impl From<StoreArg> for StoreKind {
    fn from(word: StoreArg) -> StoreKind {
        match word {
            StoreArg::None => StoreKind::None,
            StoreArg::Ram => StoreKind::Ram,
        }
    }
}

impl SimArgs {
    /// The files that it reads and writes.
    fn files(&self) -> Files {
        let named = self.drive.iter().map(|word| match (&self.replay, word.split_once('=')) {
            (Some(_), Some((_, profile))) => profile,
            _ => word,
        });
        let mut files = Files::default().reads_all("--drive", named.flat_map(Profile::files));
        let jobs = self.jobs.as_deref().map(Path::new);
        let inputs = [("--replay", self.replay.as_deref()), ("--trace", self.trace_words.path()), ("", jobs)];
        let inputs = inputs.into_iter().chain(self.state.reads());
        let host = self.host.as_deref().filter(|host| host.contains('/') || host.ends_with(".toml")).map(Path::new);
        for (option, path) in inputs.chain([("--workload", self.words.file()), ("--host", host)]) {
            files = path.into_iter().fold(files, |files, path| files.reads(option, path));
        }
        if let Some(requests) = &self.requests {
            files = files.writes("--requests", requests);
        }
        for (option, state) in self.state.saves() {
            files = files.writes(option, state);
        }
        if let Some(trace) = &self.chrome_trace {
            files = files.writes("--chrome-trace", trace);
        }
        match &self.out {
            Some(folder) => {
                // What is wrong with the layers or the state is reported later.
                let file = self.state.open().unwrap_or(None);
                match self.layers(&self.set, file.as_ref()) {
                    Ok((Layers { layers, .. }, _)) if !layers.is_empty() => {
                        let names = sim_layers::file_names(drives_below(&layers));
                        names.iter().fold(files, |files, name| files.writes("--out", &folder.join(name)))
                    }
                    _ => files.writes_into("--out", folder, Document::file_names()),
                }
            }
            None => files,
        }
    }
}

/// A time in the life of a drive, as it is written. The error names the option rather than the key that it sets.
fn age(text: &str) -> Result<String, String> {
    text.parse::<Age>().map(|_| text.to_owned())
}

/// Runs it and prints the report.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    args.files().check()?;
    if args.replay.is_some() {
        return crate::replay::run(args);
    }
    let file = args.state.open()?;
    if args.age.is_some()
        && args.set.iter().any(|change| change.split('=').next().is_some_and(|key| key.trim() == "wear.age"))
    {
        return Err(Failure::input(anyhow::anyhow!("--age and --set wear.age=... set the same key: give one of them")));
    }
    let set: Vec<String> =
        args.set.iter().cloned().chain(args.age.iter().map(|age| format!("wear.age={age}"))).collect();
    let (Layers { chain, layers }, others) = args.layers(&set, file.as_ref())?;
    let (block, others) = block_words::split(&others)?;
    let (host, of_drive) = host_words::split(args.host.as_deref(), &others)?;
    let own = file.as_ref().map_or(Ok(Vec::new()), StateFile::profiles).map_err(Failure::input)?;
    let resolve = |number: usize, faults: &[FaultWord]| match (&args.drive, &file, own.get(number).or(own.first())) {
        (Some(drive), _, _) => resolve_with(drive, &of_drive, faults),
        (None, Some(file), Some(own)) => resolve_saved(file, own.clone(), &of_drive, faults),
        (None, ..) => unreachable!("clap asks for one of them"),
    };
    if layers.is_empty() {
        args.check_faults()?;
    }
    let profiles = sim_layers::profiles(args, drives_below(&layers), resolve)?;
    // What a layer holds follows from its drives.
    let capacity = if layers.is_empty() { profiles[0].namespaces().first().copied() } else { None };
    let workload = args.words.workload_of(args.jobs.as_deref(), &args.trace_words, capacity)?;
    match layers.is_empty() {
        true => check_alone(&profiles[0])?,
        false => sim_layers::check(args, &layers, &profiles)?,
    }
    let begin = args.state.begin(file, &workload, (&layers, &profiles.iter().collect::<Vec<_>>()))?;
    let (begin, precondition) = (Begin { chain, ..begin }, args.state.precondition());
    let simulation = match &profiles[..] {
        [only] if layers.is_empty() => Simulation::on(only.clone(), precondition, workload, args.seed),
        _ => Simulation::under(layers, profiles, precondition, workload, args.seed),
    };
    let wanted = Wanted { trace: args.chrome_trace.is_some(), details: args.out.is_some() };
    let block = block.map(|block| block.config);
    let mut simulation = Simulation { wanted, check: args.check, block, host, ..simulation };
    simulation.drives.iter_mut().for_each(|drive| drive.store = args.store.into());
    measure(args, &simulation, &begin, &set)
}

/// Checks that a lone drive takes a workload.
fn check_alone(profile: &Resolved) -> Result<(), Failure> {
    match profile.lsm() {
        None => Ok(()),
        Some(_) => Err(Failure::Input(anyhow::anyhow!(
            "drive {}: ftl.kind = \"lsm\" has runs, which a store opens before it writes; `nandscape paper lsm` has loads for it, and a drive with \
             ftl.kind = \"page\" takes any workload",
            profile.name
        ))),
    }
}

/// Runs a simulation, and prints and writes its report. `set` are the changed keys.
fn measure(args: &SimArgs, simulation: &Simulation, begin: &Begin, set: &[String]) -> Result<(), Failure> {
    if args.fairness {
        crate::fairness::check(&simulation.workload)?;
    }
    let unseen = simulation.drives.iter().find_map(|drive| if_unseen(&drive.profile, drive.store));
    unseen.iter().for_each(|note| output::note(note));
    simulation.note_before().iter().for_each(|note| output::note(note));
    if let Some(bound) = args.find_rate {
        return crate::find_rate::run(args, (simulation, begin), bound, set);
    }
    prepare_files(args).map_err(Failure::Input)?;
    if let Some(folder) = &args.out {
        output::check_page(&folder.join("report.html"))?;
        if !simulation.is_alone() {
            sim_layers::prepare(folder, simulation.drives.len())?;
        }
    }
    let log = request_log(args, simulation)?;
    let observer = log.clone().map(|log| log as Rc<dyn Observer>);
    // A run that fails before its first rows are written leaves the file as it was.
    let mut finished = simulation.run_begun(begin, progress::interruptible(), observer).map_err(failure)?;
    log.map_or(Ok(()), |log| log.finish()).map_err(Failure::run)?;
    finished.choose_percentiles(&args.percentiles);
    if args.fairness {
        let alone = crate::fairness::alone(&simulation.workload, finished.flows(), |workload| {
            let run = Simulation { workload, wanted: Wanted::default(), ..simulation.clone() };
            Ok(run.run_begun(begin, progress::bar(), None).map_err(failure)?.mean_us())
        })?;
        finished.compare_with_alone(&alone);
    }
    for drive in finished.drives_mut() {
        drive.report.host.command = Some(output::command());
        drive.report.host.state_file = args.state.file_name();
    }
    finished.notes().iter().for_each(|note| output::note(note));
    let (failed, interrupted) = (finished.failures().1, finished.is_interrupted());
    // A file that cannot be written does not lose the figures.
    let (text, written) = shown(args, simulation, finished.figures, set);
    let traced = match (&args.chrome_trace, &finished.trace) {
        (Some(file), Some(trace)) => write(file, trace),
        _ => Ok(()),
    };
    output::result(&text)?;
    written.and(traced).map_err(Failure::Run)?;
    finished.saved.map_err(Failure::run)?;
    judged(failed, interrupted)
}

/// The text of a run's report, and whether its page was written, if it is wanted.
fn shown(args: &SimArgs, simulation: &Simulation, figures: Figures, set: &[String]) -> (String, anyhow::Result<()>) {
    let (profile, set) = (&simulation.drives[0].profile, set.to_vec());
    match figures {
        Figures::Drive(mut drive) => {
            drive.report.inputs.set = set;
            tell_of_faults(&drive.report);
            let text = if args.json { drive.report.to_json() } else { table::render(&drive.report) };
            (text, write_page(args, &drive, profile))
        }
        Figures::Chain(chain) => {
            sim_layers::tell_of_faults(&chain);
            let settings = LayerSettings::of(&simulation.layers);
            let (profile_toml, command) = (profile.to_toml(), Some(output::command()));
            let document =
                ArrayDocument { finished: &chain, profile: &profile.name, profile_toml, settings, set, command };
            let text = if args.json { document.to_json() } else { sim_layers::render(&profile.name, &chain) };
            let page = args.out.as_deref().zip(chain.details.as_ref());
            (text, page.map_or(Ok(()), |(folder, details)| Ok(document.write(folder, details)?)))
        }
    }
}

/// The profile of a drive in a saved state, with changes, resolved.
pub(crate) fn resolve_saved(
    file: &StateFile,
    profile: Profile,
    changes: &[String],
    faults: &[FaultWord],
) -> Result<Resolved, Failure> {
    let name = profile.name.clone();
    let mut resolved = resolve_profile((&name, profile), changes, faults)?;
    // Choices made for the file hold for its drive as well; many of them are made again.
    let decided: Vec<String> = file.notes().iter().filter(|note| !resolved.notes.contains(note)).cloned().collect();
    resolved.notes.splice(..0, decided);
    Ok(resolved)
}

/// The log of requests, if it is wanted, with a column for each layer.
fn request_log(args: &SimArgs, simulation: &Simulation) -> Result<Option<Rc<RequestLog>>, Failure> {
    let block = simulation.block.iter().map(|block| block.layer.to_owned());
    let host = simulation.host.iter().map(|_| nandscape_host_path::LAYER.to_owned());
    let layers: Vec<String> = names(&simulation.layers).into_iter().chain(block).chain(host).collect();
    let log = args.requests.as_deref().map(|path| RequestLog::create(path, &layers)).transpose();
    Ok(log.map_err(Failure::input)?.map(Rc::new))
}

/// Why a run failed, as the failure of a command.
pub(crate) fn failure(error: RunError) -> Failure {
    match error.is_input() {
        true => Failure::input(error),
        false => Failure::run(error),
    }
}

/// A run fails if requests failed for another reason than a planned fault, or if the user ended it.
pub(crate) fn judge<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Result<(), Failure> {
    reports.into_iter().try_for_each(|report| judged(report.failures().1, report.interrupted))
}

/// The same, by the number of those requests, and whether the user ended the run.
pub(crate) fn judged(failed: u64, interrupted: bool) -> Result<(), Failure> {
    match (failed, interrupted) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::Run(anyhow::anyhow!("interrupted; the report is of what was measured until then"))),
        _ => Err(Failure::Run(anyhow::anyhow!("some requests failed; the report counts them by status"))),
    }
}

fn tell_of_faults(report: &Report) {
    if report.failures().0 > 0 {
        let reason = match report.aging {
            None => "requests failed because of planned faults",
            Some(_) => "requests failed because of the age of the flash, or of planned faults",
        };
        let each: Vec<String> = report.failed().map(|(status, failed)| format!("{failed} with {status}")).collect();
        output::note(&format!("{reason}: {}", each.join(", ")));
    }
    if let Some(why) = report.damage.as_ref().and_then(|damage| damage.read_only_because.as_ref()) {
        output::note(&format!("the drive is read-only: {why}"));
    }
}

/// A profile by name or file, with changes, resolved.
pub(crate) fn resolve(drive: &str, changes: &[String]) -> Result<Resolved, Failure> {
    resolve_with(drive, changes, &[])
}

/// As [`resolve`], with additional faults.
pub(crate) fn resolve_with(drive: &str, changes: &[String], faults: &[FaultWord]) -> Result<Resolved, Failure> {
    if drive.contains("://") {
        let ways = "`nandscape serve --drive` and `nandscape bench --to` take it";
        return Err(Failure::Input(anyhow::anyhow!("drive {drive}: a remote drive runs at the wall clock: {ways}")));
    }
    resolve_profile((drive, load(drive)?), changes, faults)
}

/// A profile by name or file.
pub(crate) fn load(drive: &str) -> Result<Profile, Failure> {
    let told = |error| match is_workload(drive) {
        true => Failure::Input(anyhow::anyhow!(
            "drive {drive}: this is a workload, which `nandscape sim --workload {drive}` takes; a drive is a profile, see `nandscape drives`"
        )),
        false => Failure::input(error),
    };
    Profile::load(drive).map_err(told)
}

/// As [`resolve_with`], for a profile that was read, with its name in errors.
pub(crate) fn resolve_profile(
    (drive, mut profile): (&str, Profile),
    changes: &[String],
    faults: &[FaultWord],
) -> Result<Resolved, Failure> {
    refuse_keys_of_jobs(changes)?;
    profile.set_all(changes).map_err(Failure::input)?;
    if !faults.is_empty() {
        let given = profile.keys.faults.iter().flat_map(|given| &given.0).map(|rule| &rule.0);
        // A rule contains no quotation mark.
        let added = faults.iter().map(|word| &word.rule);
        let all: Vec<String> = given.chain(added).map(|rule| format!("\"{rule}\"")).collect();
        profile.set(&format!("faults=[{}]", all.join(", "))).map_err(Failure::input)?;
    }
    profile.resolve().map_err(|error| {
        let problem = as_given(format!("drive {drive}: {error}"), faults);
        Failure::Input(anyhow::anyhow!(problem))
    })
}

/// What is wrong with a profile, with rules of `--fault` as they were given: in the profile they have their defaults.
fn as_given(problem: String, faults: &[FaultWord]) -> String {
    let told = |FaultWord { rule, text, .. }: &FaultWord| {
        let of_profile = format!("faults: \"{rule}\": ");
        problem.contains(&of_profile).then(|| problem.replace(&of_profile, &format!("--fault \"{text}\": ")))
    };
    faults.iter().find_map(told).unwrap_or(problem)
}

/// A warning of faults that change data of a drive that keeps none.
pub(crate) fn if_unseen(profile: &Resolved, store: StoreKind) -> Option<&'static str> {
    let corrupts = profile.faults().any(|rule| rule.strike == Strike::Corrupt);
    (corrupts && store == StoreKind::None).then_some("a corrupt fault has no effect with --store none: no data is kept")
}

/// Checks before the run that its files can be written.
pub(crate) fn prepare_files(args: &SimArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.out {
        output::create_folder(folder)?;
    }
    match &args.chrome_trace {
        Some(file) => can_write(file).with_context(|| "--chrome-trace"),
        None => Ok(()),
    }
}

/// Checks that a file can be written; its contents stay.
pub(crate) fn can_write(path: &Path) -> anyhow::Result<()> {
    nandscape_files::output::check_can_write(path).with_context(|| format!("cannot write {}", path.display()))
}

fn write_page(args: &SimArgs, drive: &DriveFinished, profile: &Resolved) -> anyhow::Result<()> {
    if let (Some(folder), Some(details)) = (&args.out, &drive.details) {
        let profile_toml = &profile.to_toml();
        Document { report: &drive.report, details, profile_toml, part_of: None }.write(folder)?;
    }
    Ok(())
}

pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    nandscape_files::output::replace(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
