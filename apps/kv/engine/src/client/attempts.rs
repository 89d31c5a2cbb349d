//! The tries of one get. A policy sends them and waits for events. Silence, lost connections and refusals are handled
//! here: when no try is left, another replica is asked, within the budget.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_sim::{Span, Time};
use nandscape_wire_kv::Request;

use super::peer::{Answer, Mail, Peer};
use super::{Client, Ended, SUSPECT};
use crate::store::Found;
use nandscape_sim::race::race;

/// How a try is sent.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct How {
    /// Microseconds that the drive has; 0 is no deadline.
    pub deadline_us: u32,
    /// The server reports when it begins.
    pub tell_begun: bool,
}

/// An event of a get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The get has ended.
    Done(Ended),
    /// A replica, by its place, rejects the try. It would have waited for this time, in microseconds.
    Busy(usize, u32),
    /// A replica, by its place, has begun.
    Begun(usize),
    /// The given time is reached.
    Due,
}

struct Try {
    place: usize,
    id: u64,
    /// When the try is given up.
    until: Time,
    is_open: bool,
}

/// See the module.
pub struct Attempts<'a> {
    client: &'a Client,
    key: &'a [u8],
    /// The replicas of the key, in the order in which they are asked.
    order: Vec<usize>,
    tries: Vec<Try>,
    mail: Rc<Mail>,
    begun: Time,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(client: &'a Client, key: &'a [u8], order: Vec<usize>) -> Attempts<'a> {
        let mail = Mail::new(&client.sim);
        Attempts { client, key, order, tries: Vec::new(), mail, begun: client.sim.now() }
    }

    /// Replicas of the key. They are named by their place, from zero.
    pub fn replicas(&self) -> usize {
        self.order.len()
    }

    /// Replicas that a policy may prefer: those that were not recently silent, which are first in order. If all were
    /// silent, all of them.
    pub fn choices(&self) -> usize {
        let is_suspect = |server: &usize| self.client.peers[*server].is_suspect();
        match self.order.iter().take_while(|server| !is_suspect(server)).count() {
            0 => self.replicas(),
            some => some,
        }
    }

    /// The client's statistics of the replica at a place, and its unanswered requests.
    pub(crate) fn peer(&self, place: usize) -> &Peer {
        &self.client.peers[self.order[place]]
    }

    /// The server that is the replica at a place.
    pub fn server(&self, place: usize) -> usize {
        self.order[place]
    }

    /// The recent average latencies of all servers, in microseconds.
    pub(crate) fn latencies(&self) -> BTreeMap<usize, f64> {
        let of = |(server, peer): (usize, &Rc<Peer>)| Some((server, peer.seen.snitch.get()?));
        self.client.peers.iter().enumerate().filter_map(of).collect()
    }

    /// Puts the replica at a place first.
    pub fn prefer(&mut self, place: usize) {
        self.order[..=place].rotate_right(1);
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.client.sim.now()
    }

    /// When the get began.
    pub fn begun(&self) -> Time {
        self.begun
    }

    /// Sends a try to the replica at a place. Returns whether that replica exists and the budget allows it.
    pub async fn send(&mut self, place: usize, how: How) -> bool {
        let Client { config, cpu, sim, .. } = self.client;
        if self.tries.len() >= config.tries || place >= self.order.len() {
            return false;
        }
        cpu.work(config.work).await;
        let request = Request::Get { deadline_us: how.deadline_us, tell_begun: how.tell_begun, key: self.key };
        let tag = self.tries.len();
        let id = self.client.peers[self.order[place]].send(&request, &self.mail, tag);
        self.tries.push(Try { place, id, until: sim.now() + config.try_timeout, is_open: true });
        let stats = &self.client.stats;
        stats.tries.set(stats.tries.get() + 1);
        true
    }

    /// Whether a try is open.
    pub fn is_waiting(&self) -> bool {
        self.tries.iter().any(|one| one.is_open)
    }

    /// Cancels the open tries at a place.
    pub fn cancel(&mut self, place: usize) {
        for one in self.tries.iter().filter(|one| one.is_open && one.place == place) {
            self.client.peers[self.order[place]].cancel(one.id);
        }
    }

    /// Waits for the first event, and until a time if one is given.
    pub async fn next(&mut self, until: Option<Time>) -> Event {
        loop {
            if let Some((tag, answer)) = self.mail.take() {
                if !self.tries[tag].is_open {
                    continue;
                }
                if let Some(event) = self.answered(tag, answer).await {
                    return event;
                }
            }
            let sim = &self.client.sim;
            if until.is_some_and(|until| until <= sim.now()) {
                return Event::Due;
            }
            if sim.now() - self.begun >= self.client.config.timeout {
                return Event::Done(Ended::Failed);
            }
            self.give_up_silent();
            if !self.is_waiting() && !self.ask_another().await {
                return Event::Done(Ended::Failed);
            }
            let first = self.tries.iter().filter(|one| one.is_open).map(|one| one.until).min();
            let end = self.begun + self.client.config.timeout;
            let wake = [first, until].into_iter().flatten().fold(end, Time::min);
            let mut came = Box::pin(self.mail.came());
            race(&mut came, sim.sleep_until(wake)).await;
        }
    }

    /// Waits until the get has ended, however often it is rejected: then the next replica is asked without a deadline.
    pub async fn finish(&mut self) -> Ended {
        loop {
            match self.next(None).await {
                Event::Done(ended) => return ended,
                Event::Busy(place, _) if !self.is_waiting() => {
                    let next = (place + 1) % self.replicas();
                    if !self.send(next, How::default()).await {
                        return Ended::Failed;
                    }
                }
                _ => {}
            }
        }
    }

    async fn answered(&mut self, tag: usize, answer: Answer) -> Option<Event> {
        let Client { config, cpu, stats, .. } = self.client;
        let place = self.tries[tag].place;
        if answer == Answer::Begun {
            return Some(Event::Begun(place));
        }
        self.tries[tag].is_open = false;
        cpu.work(config.work).await;
        match answer {
            Answer::Value { version, value } => Some(Event::Done(Ended::Found(Found { version, value }))),
            Answer::Missing => Some(Event::Done(Ended::Missing)),
            Answer::Busy { wait_us } => {
                stats.busy.set(stats.busy.get() + 1);
                Some(Event::Busy(place, wait_us))
            }
            Answer::Lost => {
                self.client.peers[self.order[place]].suspect_for(SUSPECT);
                None
            }
            // Refused, or cancelled: another replica may do.
            _ => None,
        }
    }

    /// Gives up tries that have waited for too long.
    fn give_up_silent(&mut self) {
        let now = self.client.sim.now();
        for one in self.tries.iter_mut().filter(|one| one.is_open && one.until <= now) {
            one.is_open = false;
            let peer = &self.client.peers[self.order[one.place]];
            peer.cancel(one.id);
            peer.was_silent(one.id);
            peer.suspect_for(SUSPECT);
        }
    }

    /// No try is open: asks the replica that was asked least often, without a deadline.
    async fn ask_another(&mut self) -> bool {
        let asked = |place: usize| self.tries.iter().filter(|one| one.place == place).count();
        let Some(place) = (0..self.replicas()).min_by_key(|place| asked(*place)) else { return false };
        if asked(place) > 0 {
            // All were asked: not at once again.
            self.client.sim.sleep(Span::from_ms(5)).await;
        }
        self.send(place, How::default()).await
    }
}
