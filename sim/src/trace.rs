//! The event trace: what every resource did when, for people (Chrome-trace JSON) and for comparing two runs.
//!
//! Times are those of the run's own clock, so the trace of a recorded run replayed is the same to the byte.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;

use crate::time::Time;

/// Names a line of the picture: a die, a channel, the link.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Track(u32);

impl Track {
    /// Its number: tracks are numbered from 0 in the order of [`Trace::track`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that took time on one track.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The track of the event.
    pub track: Track,
    /// The operation, in one word.
    pub name: &'static str,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// On what: an address, a command identifier.
    pub detail: u64,
}

/// Is called with every event as it ends. It must not change the model.
pub trait Listener {
    /// Something has ended.
    fn ended(&self, event: &Event);

    /// Whether it wants more events. If not, none has to be made for it until it is given to [`Trace::listen`] again.
    fn wants_more(&self) -> bool {
        true
    }
}

/// Keeps events while it is switched on, and passes them to a listener.
#[derive(Default)]
pub struct Trace {
    /// Whether events are kept or listened to.
    wanted: Cell<bool>,
    /// Whether they are kept.
    kept: Cell<bool>,
    listener: RefCell<Option<Rc<dyn Listener>>>,
    /// Is called with every event as well, permanently.
    attendant: RefCell<Option<Rc<dyn Listener>>>,
    /// Their names. Executors that belong together share them.
    tracks: Rc<RefCell<Vec<String>>>,
    /// The prefix of the names of added tracks.
    prefix: RefCell<String>,
    events: RefCell<Vec<Event>>,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace::default()
    }

    /// So many traces, whose tracks are numbered together.
    pub(crate) fn together(count: usize) -> Vec<Trace> {
        let tracks = Rc::<RefCell<Vec<String>>>::default();
        (0..count).map(|_| Trace { tracks: tracks.clone(), ..Trace::default() }).collect()
    }

    /// Starts recording.
    pub fn switch_on(&self) {
        self.kept.set(true);
        self.wanted.set(true);
    }

    /// From now on `listener` is called with every event, whether events are kept or not.
    pub fn listen(&self, listener: Rc<dyn Listener>) {
        *self.listener.borrow_mut() = Some(listener);
        self.wanted.set(true);
    }

    /// Drops the listener.
    pub fn listen_no_more(&self) {
        *self.listener.borrow_mut() = None;
        self.update_wanted(false);
    }

    /// From now on `attendant` is called with every event, in addition to an occasional listener.
    pub fn attend(&self, attendant: Rc<dyn Listener>) {
        *self.attendant.borrow_mut() = Some(attendant);
        self.wanted.set(true);
    }

    /// Drops the attendant.
    pub fn attend_no_more(&self) {
        *self.attendant.borrow_mut() = None;
        self.update_wanted(self.listener.borrow().is_some());
    }

    fn update_wanted(&self, listens: bool) {
        self.wanted.set(listens || self.kept.get() || self.attendant.borrow().is_some());
    }

    /// Whether events are kept or listened to.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.wanted.get()
    }

    /// From now on the names of added tracks begin with `prefix`: the name of one of several drives.
    pub fn set_prefix(&self, prefix: &str) {
        prefix.clone_into(&mut self.prefix.borrow_mut());
    }

    /// Adds a line to the picture.
    pub fn track(&self, name: String) -> Track {
        let mut tracks = self.tracks.borrow_mut();
        tracks.push(format!("{}{name}", self.prefix.borrow()));
        Track(u32::try_from(tracks.len() - 1).expect("fewer than 2^32 tracks"))
    }

    /// The name of a line.
    pub fn name(&self, track: Track) -> String {
        self.tracks.borrow()[track.index()].clone()
    }

    pub(crate) fn push(&self, event: Event) {
        if let Some(listener) = &*self.listener.borrow() {
            listener.ended(&event);
            if !listener.wants_more() {
                self.update_wanted(false);
            }
        }
        if let Some(attendant) = &*self.attendant.borrow() {
            attendant.ended(&event);
        }
        if self.kept.get() {
            self.events.borrow_mut().push(event);
        }
    }

    /// Number of events recorded.
    pub fn len(&self) -> usize {
        self.events.borrow().len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The trace in the JSON form that Chrome's tracing page and Perfetto read. Times are microseconds.
    pub fn to_chrome_json(&self) -> String {
        chrome_json([self])
    }
}

/// The traces of executors that belong together ([`Executor::apart`](crate::Executor::apart)) as one, in the form of
/// [`Trace::to_chrome_json`]: the events of each after those of the one before.
pub fn chrome_json<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> String {
    let traces: Vec<&Trace> = traces.into_iter().collect();
    let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (id, name) in traces.iter().take(1).flat_map(|trace| trace.tracks.borrow().clone()).enumerate() {
        let name = escape(&name);
        writeln!(
            json,
            "{{\"ph\":\"M\",\"pid\":0,\"tid\":{id},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}},"
        )
        .expect("a string takes everything");
    }
    for trace in traces {
        for event in trace.events.borrow().iter() {
            let Event { track, name, start, end, detail } = event;
            let (ts, duration) = (micros(start.ns()), micros((*end - *start).ns()));
            writeln!(
                json,
                "{{\"ph\":\"X\",\"pid\":0,\"tid\":{},\"name\":\"{name}\",\"ts\":{ts},\"dur\":{duration},\
                 \"args\":{{\"detail\":{detail}}}}},",
                track.0
            )
            .expect("a string takes everything");
        }
    }
    json.push_str("{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"nandscape\"}}]}\n");
    json
}

/// Nanoseconds as decimal microseconds, exactly.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

fn escape(text: &str) -> String {
    text.chars().flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;

    #[test]
    fn a_listener_hears_of_events_that_are_not_kept() {
        struct Ends(RefCell<Vec<u64>>);
        impl Listener for Ends {
            fn ended(&self, event: &Event) {
                self.0.borrow_mut().push(event.end.ns());
            }
        }
        let executor = Executor::new();
        let sim = executor.sim();
        let track = sim.trace().track("die 0".to_owned());
        let ends = Rc::new(Ends(RefCell::default()));
        sim.trace().listen(ends.clone());
        let end = Time::from_ns(9);
        sim.trace_event(|start| Event { track, name: "read", start, end, detail: 0 });
        assert_eq!((&*ends.0.borrow(), sim.trace().len()), (&vec![9], 0));
    }

    #[test]
    fn an_attendant_stays_when_listeners_come_and_go() {
        struct Count(Cell<u32>);
        impl Listener for Count {
            fn ended(&self, _: &Event) {
                self.0.set(self.0.get() + 1);
            }
        }
        let executor = Executor::new();
        let sim = executor.sim();
        let track = sim.trace().track("die 0".to_owned());
        let tell = || sim.trace_event(|end| Event { track, name: "read", start: end, end, detail: 0 });
        let [one, other] = [(); 2].map(|()| Rc::new(Count(Cell::new(0))));
        sim.trace().attend(one.clone());
        sim.trace().listen(other.clone());
        tell();
        sim.trace().listen_no_more();
        tell();
        sim.trace().attend_no_more();
        tell();
        assert_eq!((one.0.get(), other.0.get(), sim.trace().is_on()), (2, 1, false));
    }

    #[test]
    fn a_listener_that_has_enough_costs_nothing_more() {
        struct One(Cell<u32>);
        impl Listener for One {
            fn ended(&self, _: &Event) {
                self.0.set(self.0.get() + 1);
            }

            fn wants_more(&self) -> bool {
                self.0.get() < 1
            }
        }
        let executor = Executor::new();
        let sim = executor.sim();
        let track = sim.trace().track("die 0".to_owned());
        let tell = || sim.trace_event(|end| Event { track, name: "read", start: end, end, detail: 0 });
        let one = Rc::new(One(Cell::new(0)));
        sim.trace().listen(one.clone());
        tell();
        assert!(!sim.trace().is_on());
        tell();
        assert_eq!(one.0.get(), 1);
        sim.trace().listen(one.clone());
        assert!(sim.trace().is_on());
        sim.trace().listen_no_more();
        assert!(!sim.trace().is_on());
    }

    #[test]
    fn the_json_names_tracks_and_keeps_nanoseconds() {
        let executor = Executor::new();
        let sim = executor.sim();
        let die = sim.trace().track("die 0".to_owned());
        sim.trace_event(|_| unreachable!("nothing is recorded before it is switched on"));
        sim.trace().switch_on();
        let start = Time::from_ns(1_500);
        sim.trace_event(|_| Event { track: die, name: "read", start, end: Time::from_ns(41_507), detail: 7 });
        let json = sim.trace().to_chrome_json();
        assert!(json.contains(r#""tid":0,"name":"thread_name","args":{"name":"die 0"}"#), "{json}");
        assert!(json.contains(r#""name":"read","ts":1.500,"dur":40.007,"args":{"detail":7}"#), "{json}");
    }

    #[test]
    fn executors_apart_number_their_tracks_together_and_keep_their_own_times() {
        let mut executors = Executor::apart(2);
        let sims: Vec<_> = executors.iter().map(Executor::sim).collect();
        let tracks = sims.iter().map(|sim| sim.trace().track("die".to_owned())).collect::<Vec<_>>();
        assert_eq!(tracks.iter().map(|track| track.index()).collect::<Vec<_>>(), [0, 1]);
        executors[1].arrive(Time::from_ns(7));
        assert_eq!(sims.iter().map(|sim| sim.now().ns()).collect::<Vec<_>>(), [0, 7]);
        for (sim, track) in sims.iter().zip(&tracks) {
            sim.trace().switch_on();
            sim.trace_event(|end| Event { track: *track, name: "read", start: end, end, detail: 0 });
        }
        let json = chrome_json(sims.iter().map(|sim| sim.trace()));
        let at = |text: &str| json.find(text).unwrap_or_else(|| panic!("{text} is missing: {json}"));
        assert!(at(r#""tid":1,"name":"thread_name""#) < at(r#""tid":0,"name":"read","ts":0.000"#));
        assert!(at(r#""tid":0,"name":"read""#) < at(r#""tid":1,"name":"read","ts":0.007"#));
    }
}
