//! `nandscape trace convert`.

use std::ffi::OsStr;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use nandscape_lab_trace::{ConvertError, Format, Trace, convert};

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
    Files::default().reads("IN", &args.input).writes("OUT", &args.output).check()?;
    let trace = super::open(args.select.of(&args.input))?;
    let notes = match args.output == Path::new("-") {
        true => to_standard_output(&trace, args.to)?,
        false => to_file(&trace, args.to, &args.output)?,
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

/// Writes to a path. A device or a pipe is written directly.
fn to_file(trace: &Trace, to: Format, path: &Path) -> Result<Vec<String>, Failure> {
    let cannot = || format!("cannot write {}", path.display());
    // Keep a link, and replace its target.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match target.metadata() {
        Ok(found) if !found.is_file() => {
            let device = std::fs::File::options().write(true).open(&target).with_context(cannot);
            let mut packed = Packed::new(path, BufWriter::new(device.map_err(Failure::Input)?))
                .with_context(cannot)
                .map_err(Failure::Run)?;
            let notes = convert(trace, to, packed.writer()).map_err(|error| failed(error, path))?;
            let flushed = packed.finish().and_then(|mut buffer| buffer.flush());
            flushed.with_context(cannot).map_err(Failure::Run)?;
            Ok(notes)
        }
        _ => to_regular_file(trace, to, &target),
    }
}

/// Writes to a temporary file in the same folder first, so that no partial file is left.
fn to_regular_file(trace: &Trace, to: Format, path: &Path) -> Result<Vec<String>, Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let cannot = || format!("cannot write {}", path.display());
    let file = tempfile::Builder::new().prefix(".nandscape").tempfile_in(folder);
    let file = file.map_err(|error| without_name(folder, &error)).with_context(cannot).map_err(Failure::Input)?;
    let mut packed = Packed::new(path, BufWriter::new(file)).with_context(cannot).map_err(Failure::Run)?;
    let notes = convert(trace, to, packed.writer()).map_err(|error| failed(error, path))?;
    let file = packed.finish().and_then(|buffer| buffer.into_inner().map_err(io::Error::from));
    let file = file.with_context(cannot).map_err(Failure::Run)?;
    open_to_others(file.as_file()).with_context(cannot).map_err(Failure::Run)?;
    file.persist(path).map_err(|error| error.error).with_context(cannot).map_err(Failure::Run)?;
    Ok(notes)
}

/// Why there is no temporary file in a folder, without its name.
fn without_name(folder: &Path, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("there is no folder {}", folder.display()),
        kind => anyhow::Error::new(io::Error::from(kind)),
    }
}

/// Temporary files are private to their owner; give the result the usual permissions.
#[cfg(unix)]
fn open_to_others(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_to_others(_: &std::fs::File) -> io::Result<()> {
    Ok(())
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

/// A file, compressed according to its name.
enum Packed<F: Write> {
    Plain(F),
    Gzip(flate2::write::GzEncoder<F>),
    Zstd(zstd::stream::write::Encoder<'static, F>),
    Bzip2(bzip2::write::BzEncoder<F>),
}

impl<F: Write> Packed<F> {
    fn new(path: &Path, file: F) -> io::Result<Packed<F>> {
        Ok(match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Packed::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Some("zst") => {
                let mut packer = zstd::stream::write::Encoder::new(file, 0)?;
                packer.include_checksum(true)?;
                Packed::Zstd(packer)
            }
            Some("bz2") => Packed::Bzip2(bzip2::write::BzEncoder::new(file, bzip2::Compression::default())),
            _ => Packed::Plain(file),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Packed::Plain(file) => file,
            Packed::Gzip(file) => file,
            Packed::Zstd(file) => file,
            Packed::Bzip2(file) => file,
        }
    }

    fn finish(self) -> io::Result<F> {
        match self {
            Packed::Plain(file) => Ok(file),
            Packed::Gzip(file) => file.finish(),
            Packed::Zstd(file) => file.finish(),
            Packed::Bzip2(file) => file.finish(),
        }
    }
}
