//! Selection of the requests of a trace.

use std::path::Path;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use nandscape_lab_trace::{Action, Format, Options, Selection, Window};

/// Options that `trace info`, `trace convert` and `sim --trace` share.
#[derive(Args)]
pub(crate) struct SelectWords {
    /// The format; auto detects it: msr, replay, mqsim, disksim, alibaba, tencent, fiu, spc, blkparse, fio-v2, fio-v3
    /// [default: auto]
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatArg>,
    /// The action of blkparse's text that counts as a request: Q (queued) or D (issued to the driver) [default: Q]
    #[arg(long, value_enum, ignore_case = true, value_name = "Q|D", hide_possible_values = true)]
    action: Option<ActionArg>,
    /// Only requests of this disk, as the trace names it; may be repeated
    #[arg(long, value_name = "DISK")]
    disk: Vec<String>,
    /// Only requests of this host, where the format has hosts; may be repeated
    #[arg(long, value_name = "HOST")]
    trace_host: Vec<String>,
    /// Only requests that arrive from one time to another, counted from the first: 60s..120s, 60s.. or ..120s
    #[arg(long, value_name = "FROM..TO")]
    window: Option<Window>,
    /// Only the first N of the selected requests
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Skip malformed lines with a note instead of refusing the trace
    #[arg(long)]
    skip_bad: bool,
}

/// A format, or detection.
#[derive(Copy, Clone, Debug)]
struct FormatArg(Option<Format>);

impl FromStr for FormatArg {
    type Err = String;

    fn from_str(text: &str) -> Result<FormatArg, String> {
        match text {
            "auto" => Ok(FormatArg(None)),
            _ => text.parse().map(|format| FormatArg(Some(format))).map_err(|error| format!("{error}, and auto")),
        }
    }
}

#[derive(Copy, Clone, ValueEnum)]
enum ActionArg {
    #[value(name = "Q")]
    Queued,
    #[value(name = "D")]
    Issued,
}

impl SelectWords {
    /// The options, for a file.
    pub(crate) fn of(&self, path: &Path) -> Options {
        let window = self.window.unwrap_or_default();
        Options {
            path: path.to_owned(),
            format: self.format.and_then(|format| format.0),
            action: match self.action {
                Some(ActionArg::Issued) => Action::Issued,
                _ => Action::Queued,
            },
            selection: Selection { disks: self.disk.clone(), hosts: self.trace_host.clone() },
            from: window.from,
            until: window.until,
            limit: self.limit,
            skip_bad: self.skip_bad,
        }
    }

    /// The first option that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let words = [
            ("--format", self.format.is_some()),
            ("--action", self.action.is_some()),
            ("--disk", !self.disk.is_empty()),
            ("--trace-host", !self.trace_host.is_empty()),
            ("--window", self.window.is_some()),
            ("--limit", self.limit.is_some()),
            ("--skip-bad", self.skip_bad),
        ];
        words.into_iter().find(|(_, given)| *given).map(|(word, _)| word)
    }
}
