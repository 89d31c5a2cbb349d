//! `nandscape trace convert`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use nandscape_lab_trace::{ConvertError, Format, Trace, WriteError, convert, convert_to_file};

use super::select::SelectWords;
use crate::failure::Failure;
use crate::files::Files;
use crate::output;

/// Write a trace in another format.
///
/// Times count from the first request written. A request that the other format cannot express is an error; values that
/// it expresses more coarsely are noted. OUT is compressed when its name ends with .gz, .zst or .bz2, and appears only
/// when it is complete.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape trace convert server.csv.gz server.trace --to replay
  nandscape trace convert blkparse.txt - --to fio-v3 --action D | head
  nandscape trace convert volumes.csv one.csv.zst --to alibaba --disk 419 \\
      --window 1000s..2000s

Exit status: 0 when written, 1 when the output cannot be written, 2 for bad usage or input that is no trace.")]
pub(crate) struct ConvertArgs {
    /// The trace, compressed or not; - for standard input
    input: PathBuf,
    /// The output; - for standard output
    output: PathBuf,
    /// The format to write: msr, replay, mqsim, disksim, alibaba, tencent, fiu, spc, blkparse, fio-v2, fio-v3
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    #[command(flatten)]
    select: SelectWords,
}

/// Converts, and prints notes on the changes.
pub(crate) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let files = Files::default().reads("IN", &args.input);
    let is_stream = args.output == Path::new("-");
    let output = if is_stream { Path::new("/dev/stdout") } else { &args.output };
    if is_stream { files.goes_on_in("OUT", output) } else { files.writes("OUT", output) }.check()?;
    let trace = super::open(args.select.of(&args.input))?;
    let notes = match is_stream {
        true => to_standard_output(&trace, args.to)?,
        false => convert_to_file(&trace, args.to, &args.output).map_err(|error| match error {
            WriteError::Convert(error) => failed(error, &args.output),
            WriteError::NoPlace { .. } => Failure::input(error),
            WriteError::Write { .. } => Failure::run(error),
        })?,
    };
    notes.iter().for_each(|note| output::note(note));
    Ok(())
}

fn to_standard_output(trace: &Trace, to: Format) -> Result<Vec<String>, Failure> {
    match convert(trace, to, &mut output::stream()) {
        // A closed pipe (`| head`) means that the rest is not wanted.
        Err(ConvertError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Vec::new()),
        result => result.map_err(|error| failed(error, Path::new("standard output"))),
    }
}

fn failed(error: ConvertError, path: &Path) -> Failure {
    match error {
        ConvertError::Trace(error) => super::failed(error),
        ConvertError::Write(error) => {
            Failure::Run(anyhow::Error::new(error).context(format!("cannot write {}", path.display())))
        }
        error => Failure::input(error),
    }
}
