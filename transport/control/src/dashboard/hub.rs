//! Samples the drives four times a second while a page is open, and passes the samples to all pages. However many
//! pages are open, a drive is sampled once. A slow page delays only its own thread, and misses events older than
//! [`HISTORY`]. A page that takes nothing for [`BEHIND`] events makes room for another one.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nandscape_transport_reactor::Handle;
use serde::Serialize;

use super::frame::Sampler;

/// Pages at a time.
pub(super) const MAX_PAGES: usize = 8;
/// Between two looks.
pub(super) const EVERY: Duration = Duration::from_millis(250);
/// Frames that a page gets when it opens while another one is open: a minute.
const HISTORY: usize = 240;
/// Untaken events after which a page counts as not receiving: those of two seconds.
const BEHIND: u64 = 8;
/// The longest time without an event for a page.
const SILENCE: Duration = Duration::from_secs(2);

/// An event of the stream as sent, and its number.
type Sent = (u64, Arc<str>);

#[derive(Default)]
struct State {
    /// Open pages by number, each with the number of the first event that it has not taken.
    pages: BTreeMap<u64, u64>,
    /// The number of the next page.
    next_page: u64,
    ended: bool,
    /// The number of the next event.
    next: u64,
    hello: Option<Sent>,
    frames: VecDeque<Sent>,
    wear: Option<Sent>,
    operations: Option<Sent>,
}

impl State {
    /// Forgets all samples.
    fn forget(&mut self) {
        (self.hello, self.wear, self.operations) = (None, None, None);
        self.frames.clear();
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// New events exist.
    news: Condvar,
    /// A page has connected or left, or the hub ends.
    stirred: Condvar,
}

/// Looks until it is dropped.
pub(super) struct Hub {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Where pages join.
pub(super) struct Pages(Arc<Shared>);

/// An open page.
pub(super) struct Page {
    number: u64,
    shared: Arc<Shared>,
    /// The number of the first event that it has not had.
    next: u64,
}

impl Hub {
    pub(super) fn start(handles: Vec<Handle>, takes_orders: bool) -> io::Result<Hub> {
        let shared = Arc::<Shared>::default();
        let looks = shared.clone();
        let thread = thread::Builder::new().name("dashboard looks".to_owned()).spawn(move || {
            while looks.wait_for_page() {
                looks.watch(&handles, takes_orders);
                handles.iter().for_each(Handle::look_away);
            }
        })?;
        Ok(Hub { shared, thread: Some(thread) })
    }

    pub(super) fn pages(&self) -> Pages {
        Pages(self.shared.clone())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // A panic of this thread must not keep the server from ending in order.
            let _ = thread.join();
        }
    }
}

impl Pages {
    /// A place for a page; `None` when all are taken by pages that receive.
    pub(super) fn join(&self) -> Option<Page> {
        let mut state = self.0.state();
        if state.pages.len() == MAX_PAGES {
            let (&number, &taken) = state.pages.iter().min_by_key(|(_, taken)| **taken)?;
            if state.next - taken < BEHIND {
                return None;
            }
            state.pages.remove(&number);
        }
        let (number, next) = (state.next_page, state.next);
        state.next_page += 1;
        state.pages.insert(number, next);
        self.0.stirred.notify_all();
        Some(Page { number, shared: self.0.clone(), next: 0 })
    }
}

impl Page {
    /// Whether it still has its place.
    pub(super) fn is_open(&self) -> bool {
        self.shared.state().pages.contains_key(&self.number)
    }

    /// Takes note that it has taken the last events. Then waits for events that it has not had, in order; none after a while
    /// without. `None` at the end, and when it has made room for another page.
    pub(super) fn news(&mut self) -> Option<Vec<Arc<str>>> {
        let (number, next) = (self.number, self.next);
        let mut state = self.shared.state();
        let (told, taken) = (state.next, state.pages.get_mut(&number)?);
        // The first events that it gets are older than it is.
        *taken = if next == 0 { told } else { next };
        drop(state);
        let idle = |state: &mut State| !state.ended && (state.hello.is_none() || state.next == next);
        let waited = self.shared.news.wait_timeout_while(self.shared.state(), SILENCE, idle);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return None;
        }
        if state.hello.is_none() {
            return Some(Vec::new());
        }
        self.next = state.next;
        let lone = [&state.hello, &state.wear, &state.operations].into_iter().flatten();
        let mut events: Vec<&Sent> = lone.chain(&state.frames).filter(|(number, _)| *number >= next).collect();
        events.sort_by_key(|(number, _)| *number);
        Some(events.into_iter().map(|(_, text)| text.clone()).collect())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.shared.state().pages.remove(&self.number);
        self.shared.stirred.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.state().ended = true;
        self.news.notify_all();
        self.stirred.notify_all();
    }

    /// Whether there is a page; `false` at the end.
    fn wait_for_page(&self) -> bool {
        let waited = self.stirred.wait_while(self.state(), |state| state.pages.is_empty() && !state.ended);
        !waited.unwrap_or_else(PoisonError::into_inner).ended
    }

    /// Waits until the next look; `false` when no page is left, or at the end.
    fn wait_for_tick(&self) -> bool {
        let is_watched = |state: &mut State| !state.pages.is_empty() && !state.ended;
        let waited = self.stirred.wait_timeout_while(self.state(), EVERY, is_watched);
        waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Looks while a page is open. The end of the drives ends all pages.
    fn watch(&self, handles: &[Handle], takes_orders: bool) {
        let Some((mut sampler, hello)) = Sampler::start(handles, takes_orders) else { return self.end() };
        self.tell("hello", &hello, |state, hello| state.hello = Some(hello));
        while self.wait_for_tick() {
            let Some(seen) = sampler.look(handles) else { return self.end() };
            if let Some(hello) = &seen.hello {
                self.tell("hello", hello, |state, hello| {
                    // A page begins anew with it.
                    state.forget();
                    state.hello = Some(hello);
                });
            }
            self.tell("frame", &seen.frame, |state, frame| {
                state.frames.push_back(frame);
                if state.frames.len() > HISTORY {
                    state.frames.pop_front();
                }
            });
            if let Some(wear) = &seen.wear {
                self.tell("wear", wear, |state, wear| state.wear = Some(wear));
            }
            if let Some(operations) = &seen.operations {
                self.tell("operations", operations, |state, operations| state.operations = Some(operations));
            }
        }
        self.state().forget();
    }

    fn tell(&self, event: &str, data: &impl Serialize, put: impl FnOnce(&mut State, Sent)) {
        let data = serde_json::to_string(data).expect("names are strings");
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        put(&mut state, (number, format!("id: {number}\nevent: {event}\ndata: {data}\n\n").into()));
        self.news.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_nothing_makes_room_and_others_keep_their_places() {
        let shared = Arc::<Shared>::default();
        let pages = Pages(shared.clone());
        let tell = || shared.tell("hello", &0, |state, hello| state.hello = Some(hello));
        tell();
        let mut open: Vec<Page> = (0..MAX_PAGES).map(|_| pages.join().unwrap()).collect();
        assert!(pages.join().is_none());
        for _ in 0..BEHIND {
            assert!(pages.join().is_none(), "none is behind");
            tell();
            // The last events count as taken when the next are requested; the first page never requests any.
            open[1..].iter_mut().for_each(|page| assert_eq!(page.news().unwrap().len(), 1));
        }
        let late = pages.join().expect("the first page takes nothing");
        assert!(!open[0].is_open() && open[0].news().is_none());
        assert!(open[1..].iter().all(Page::is_open) && late.is_open());
        assert!(pages.join().is_none());
        drop(open);
        assert!(late.is_open() && pages.join().is_some());
    }
}
