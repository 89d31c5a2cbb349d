//! The turns of the drives over a run: what their tokens are used for, when clients read them, and what their flash does.
//!
//! The run is divided into intervals, whose length doubles as the run becomes longer, so that memory does not grow.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_sim::trace::{Event, Listener, Track};
use nandscape_sim::{Sim, Span, Time};

/// The most intervals.
const MOST: usize = 4_096;
/// The length of an interval of a short run.
const FIRST: Span = Span::from_us(8);
/// Tokens whose times are kept for each drive.
const MOST_TOKENS: usize = 4_096;

/// Kinds of work: of a token, of clients' reads, of the flash.
pub const KINDS: [&str; 8] = ["collect", "write", "become ready", "reads of clients", "read", "program", "gc", "erase"];

/// See the file.
#[derive(Clone, Default, Debug)]
pub struct Turns {
    /// The lines: for each drive its token, its reads and its flash.
    pub lines: Vec<String>,
    /// How long an interval is, in seconds.
    pub interval_s: f64,
    /// How long the run took, in seconds.
    pub took_s: f64,
    /// By kind of [`KINDS`], by line: parts per million of each interval, at least 1 where there was any.
    pub parts_per_million: BTreeMap<&'static str, Vec<Vec<u32>>>,
    /// By line: when the drive had a token, from and to, in seconds; of the first tokens of a long run.
    pub tokens_s: Vec<Vec<[f64; 2]>>,
}

/// A line, and how many planes of it work at the same time.
struct Line {
    name: String,
    planes: u64,
    /// Work of each kind in each interval, in nanoseconds.
    busy: BTreeMap<usize, Vec<u64>>,
    tokens: Vec<(Time, Time)>,
}

impl Line {
    fn new(name: String, planes: usize) -> Line {
        Line { name, planes: planes as u64, busy: BTreeMap::new(), tokens: Vec::new() }
    }
}

/// The tracks of a drive of which lines are made.
pub(crate) struct Tracks {
    /// The engine's numbers of its FTLs.
    pub(crate) members: Vec<usize>,
    /// Those of its planes.
    pub(crate) planes: Vec<Track>,
}

struct State {
    begun: Time,
    interval: Span,
    lines: Vec<Line>,
    /// The line of each track that is shown, and of the engine's tracks by their names.
    tracks: BTreeMap<Track, Option<usize>>,
    names: BTreeMap<String, usize>,
}

/// Adds each event to its line when the event ends.
pub(crate) struct Recorder {
    sim: Sim,
    state: RefCell<State>,
}

impl Recorder {
    /// Records from now on.
    pub(crate) fn start(sim: &Sim, drives: &[Tracks]) -> Rc<Recorder> {
        let recorder = Rc::new(Recorder { sim: sim.clone(), state: RefCell::new(State::new(sim.now(), drives)) });
        sim.trace().listen(recorder.clone());
        recorder
    }

    /// Ends the recording.
    pub(crate) fn end(&self) -> Turns {
        self.sim.trace().listen_no_more();
        self.state.borrow().turns(self.sim.now())
    }
}

impl Listener for Recorder {
    fn ended(&self, event: &Event) {
        let mut state = self.state.borrow_mut();
        let known = state.tracks.get(&event.track).copied();
        let line = known.unwrap_or_else(|| {
            let line = state.names.get(&self.sim.trace().name(event.track)).copied();
            state.tracks.insert(event.track, line);
            line
        });
        if let Some(line) = line {
            state.add(line, event);
        }
    }
}

/// The kind of an event, by its place in [`KINDS`].
fn kind(event: &str) -> Option<usize> {
    let name = match event {
        "reads" => "reads of clients",
        "gc read" | "gc program" | "copyback" | "copyback read" => "gc",
        other => other,
    };
    KINDS.iter().position(|kind| *kind == name)
}

impl State {
    /// The lines of each drive: token and reads of each of its parts, then its flash.
    fn new(begun: Time, drives: &[Tracks]) -> State {
        let (mut lines, mut tracks, mut names) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (drive, of) in drives.iter().enumerate() {
            for (part, member) in of.members.iter().enumerate() {
                let part = if of.members.len() > 1 { format!(" part {part}") } else { String::new() };
                for what in ["token", "reads"] {
                    names.insert(format!("engine drive {member} {what}"), lines.len());
                    lines.push(Line::new(format!("drive {drive}{part} {what}"), 1));
                }
            }
            tracks.extend(of.planes.iter().map(|plane| (*plane, Some(lines.len()))));
            lines.push(Line::new(format!("drive {drive} flash"), of.planes.len()));
        }
        State { begun, interval: FIRST, lines, tracks, names }
    }

    fn add(&mut self, line: usize, event: &Event) {
        let (start, end) = (event.start.max(self.begun), event.end);
        if event.name == "token" && self.lines[line].tokens.len() < MOST_TOKENS {
            self.lines[line].tokens.push((start, end));
        }
        let Some(kind) = kind(event.name).filter(|_| end > start) else { return };
        while (end - self.begun).ns() > self.interval.ns() * MOST as u64 {
            self.double();
        }
        let (length, begun) = (self.interval.ns(), self.begun);
        let of_kind = self.lines[line].busy.entry(kind).or_insert_with(|| vec![0; MOST]);
        let (mut from, until) = ((start - begun).ns(), (end - begun).ns());
        while from < until {
            let interval = from / length;
            let to = until.min((interval + 1) * length);
            of_kind[interval as usize] += to - from;
            from = to;
        }
    }

    /// Doubles the length of the intervals.
    fn double(&mut self) {
        self.interval = self.interval * 2;
        for busy in self.lines.iter_mut().flat_map(|line| line.busy.values_mut()) {
            let pairs: Vec<u64> = busy.chunks(2).map(|pair| pair.iter().sum()).collect();
            *busy = pairs;
            busy.resize(MOST, 0);
        }
    }

    fn turns(&self, now: Time) -> Turns {
        let seconds = |time: Time| (time - self.begun).as_s();
        let count = ((now - self.begun).ns().div_ceil(self.interval.ns()) as usize).clamp(1, MOST);
        let share = |line: &Line, kind: usize| {
            let whole = self.interval.ns() * line.planes.max(1);
            let part = |ns: &u64| (u128::from(*ns) * 1_000_000).div_ceil(u128::from(whole)).min(1_000_000) as u32;
            line.busy.get(&kind).map_or_else(|| vec![0; count], |busy| busy[..count].iter().map(part).collect())
        };
        let of_kind = |kind| self.lines.iter().map(|line| share(line, kind)).collect();
        Turns {
            lines: self.lines.iter().map(|line| line.name.clone()).collect(),
            interval_s: self.interval.as_s(),
            took_s: seconds(now),
            parts_per_million: KINDS.iter().enumerate().map(|(kind, name)| (*name, of_kind(kind))).collect(),
            tokens_s: self
                .lines
                .iter()
                .map(|line| line.tokens.iter().map(|(from, to)| [seconds(*from), seconds(*to)]).collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Executor;

    use super::*;

    #[test]
    fn work_is_divided_among_intervals_and_parts_of_a_drive() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let names = ["engine drive 1 token", "engine drive 0 reads", "plane 0", "plane 1", "link"];
        let tracks = names.map(|name| sim.trace().track(name.to_owned()));
        let drives = [Tracks { members: vec![0, 1], planes: tracks[2..4].to_vec() }];
        let recorder = Recorder::start(&sim, &drives);
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let work = |track: usize, name, (from, to): (u64, u64)| Event {
            track: tracks[track],
            name,
            start: at(from),
            end: at(to),
            detail: 0,
        };
        let ran = executor.block_on(async {
            for event in [
                work(4, "transfer", (0, 8)),
                work(2, "gc read", (0, 8)),
                work(3, "erase", (4, 8)),
                work(1, "reads", (6, 12)),
                work(0, "write", (0, 16)),
                work(0, "token", (0, 16)),
            ] {
                sim.trace_event(|_| event);
            }
            sim.sleep(Span::from_us(16)).await;
        });
        assert_eq!(ran, Ok(()));
        let turns = recorder.end();
        let of_parts = ["drive 0 part 0 token", "drive 0 part 0 reads", "drive 0 part 1 token", "drive 0 part 1 reads"];
        assert_eq!(turns.lines, [&of_parts[..], &["drive 0 flash"]].concat());
        let of = |kind| &turns.parts_per_million[kind];
        assert_eq!(of("reads of clients")[1], [250_000, 500_000]);
        assert_eq!((&of("gc")[4][..], &of("erase")[4][..]), (&[500_000, 0][..], &[250_000, 0][..]));
        assert_eq!((&of("write")[2][..], &turns.tokens_s[2][..]), (&[1_000_000; 2][..], &[[0.0, 16e-6]][..]));
    }

    #[test]
    fn a_long_run_has_no_more_intervals_and_the_same_sums() {
        let executor = Executor::new();
        let sim = executor.sim();
        let track = sim.trace().track("engine drive 0 reads".to_owned());
        let recorder = Recorder::start(&sim, &[Tracks { members: vec![0], planes: Vec::new() }]);
        let mut all = 0;
        for turn in 0..5_000u64 {
            let start = Time::ZERO + Span::from_us(100 * turn);
            let end = start + Span::from_us(1 + turn % 60);
            all += (end - start).ns();
            sim.trace_event(|_| Event { track, name: "reads", start, end, detail: 0 });
        }
        let state = recorder.state.borrow();
        let busy = &state.lines[1].busy[&3];
        assert_eq!((busy.len(), busy.iter().sum::<u64>()), (MOST, all));
        assert!(
            state.interval.ns() * MOST as u64 >= 500_000_000 && state.interval.ns() * (MOST as u64) < 1_100_000_000
        );
    }
}
