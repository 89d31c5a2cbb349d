//! A part of a trace's time.

use std::str::FromStr;

use nandscape_sim::Span;

/// From one time to another, counted from the first request: `60s..120s`, `60s..` or `..120s`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Its beginning.
    pub from: Span,
    /// Its end, exclusive.
    pub until: Option<Span>,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        let (from, until) = text.split_once("..").ok_or("not a window such as 60s..120s, 60s.. or ..120s")?;
        let time = |text: &str| text.parse::<Span>().map_err(|error| error.to_string());
        let from = if from.is_empty() { Span::ZERO } else { time(from)? };
        let until = if until.is_empty() { None } else { Some(time(until)?) };
        match until {
            Some(until) if until <= from => Err("a window must end after it begins".to_owned()),
            _ => Ok(Window { from, until }),
        }
    }
}
