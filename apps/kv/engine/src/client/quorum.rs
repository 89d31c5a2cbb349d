//! Operations that need a majority of a key's replicas: puts, and gets of the latest value.

use std::rc::Rc;

use nandscape_sim::{Span, Time};
use nandscape_wire_kv::{MAX_VALUE, Request};

use super::peer::{Answer, Mail};
use super::{Client, ClientError, Ended, check_key};
use crate::store::Found;
use nandscape_sim::race::race;

/// How long a put or get waits before it asks a replica again that did not take it.
const AGAIN: Span = Span::from_ms(10);

/// Requests to all replicas of a key.
struct Round<'a> {
    client: &'a Client,
    replicas: Vec<usize>,
    mail: Rc<Mail>,
    ends: Time,
    /// When each one is asked again.
    again: Vec<Option<Time>>,
}

impl<'a> Round<'a> {
    fn new(client: &'a Client, replicas: Vec<usize>) -> Round<'a> {
        let ends = client.sim.now() + client.config.timeout;
        let again = vec![Some(client.sim.now()); replicas.len()];
        Round { client, replicas, mail: Mail::new(&client.sim), ends, again }
    }

    /// The next answer, with the place of its replica; `None` when time is up. Replicas that refused their request,
    /// because they are down or their drive's power is cut, are asked again.
    async fn next(&mut self, request: &Request<'_>) -> Option<(usize, Answer)> {
        loop {
            let now = self.client.sim.now();
            for place in 0..self.replicas.len() {
                if self.again[place].is_some_and(|at| at <= now) {
                    self.again[place] = None;
                    self.client.peers[self.replicas[place]].send(request, &self.mail, place);
                }
            }
            match self.mail.take() {
                Some((place, Answer::Lost)) => self.again[place] = Some(now + AGAIN),
                Some(answer) => return Some(answer),
                None if now >= self.ends => return None,
                None => {
                    let wake = self.again.iter().flatten().fold(self.ends, |first, at| first.min(*at));
                    let mut came = Box::pin(self.mail.came());
                    race(&mut came, self.client.sim.sleep_until(wake)).await;
                }
            }
        }
    }
}

impl Client {
    /// Replicas that make a majority.
    fn majority(replicas: usize) -> usize {
        replicas / 2 + 1
    }

    /// Puts a value: afterwards a majority of the key's replicas has it durably. Returns its version.
    ///
    /// # Errors
    /// When too few have it. Whether it is stored is then unknown.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<u64, ClientError> {
        check_key(key)?;
        if value.len() > MAX_VALUE {
            return Err(ClientError::Value(value.len()));
        }
        let version = self.next_version();
        self.put_version(key, version, value).await?;
        Ok(version)
    }

    /// Versions rise with time, and differ between clients.
    fn next_version(&self) -> u64 {
        let now = (self.epoch_us() << 12) | u64::from(self.config.number & 0xfff);
        let version = now.max(self.version.get() + (1 << 12));
        self.version.set(version);
        version
    }

    fn epoch_us(&self) -> u64 {
        self.config.epoch_us + self.sim.now().ns() / 1_000
    }

    async fn put_version(&self, key: &[u8], version: u64, value: &[u8]) -> Result<(), ClientError> {
        let request = Request::Put { version, key, value };
        let mut round = Round::new(self, self.ring.replicas(key, self.config.replicas));
        let (needed, count) = (Client::majority(round.replicas.len()), round.replicas.len());
        let (mut stored, mut refused) = (0, 0);
        self.cpu.work(self.config.work).await;
        while let Some((_, answer)) = round.next(&request).await {
            match answer {
                Answer::Stored => stored += 1,
                Answer::Refused { why, text } => {
                    refused += 1;
                    if count - refused < needed {
                        return Err(ClientError::Refused { why, text });
                    }
                }
                _ => {}
            }
            if stored == needed {
                return Ok(());
            }
        }
        Err(ClientError::Silent { answered: stored, needed })
    }

    /// The latest acknowledged value of a key, or one whose put was under way. Replicas that lack it are updated.
    ///
    /// # Errors
    /// When too few replicas answer.
    pub async fn get_latest(&self, key: &[u8]) -> Result<Option<Found>, ClientError> {
        check_key(key)?;
        let replicas = self.ring.replicas(key, self.config.replicas);
        let needed = Client::majority(replicas.len());
        let answers = self.answers(key, replicas, needed).await;
        if answers.len() < needed {
            return Err(ClientError::Silent { answered: answers.len(), needed });
        }
        let versions: Vec<u64> = answers.iter().map(|found| found.as_ref().map_or(0, |found| found.version)).collect();
        let Some(latest) = answers.into_iter().flatten().max_by_key(|found| found.version) else { return Ok(None) };
        if versions.iter().any(|version| *version < latest.version) {
            self.put_version(key, latest.version, &latest.value).await?;
        }
        Ok(Some(latest))
    }

    /// The values that `wanted` replicas have of a key.
    async fn answers(&self, key: &[u8], replicas: Vec<usize>, wanted: usize) -> Vec<Option<Found>> {
        let request = Request::Get { deadline_us: 0, tell_begun: false, key };
        let mut round = Round::new(self, replicas);
        let mut answers = Vec::new();
        let mut open = round.replicas.len();
        while answers.len() < wanted && open > 0 {
            match round.next(&request).await {
                None => break,
                Some((_, Answer::Value { version, value })) => answers.push(Some(Found { version, value })),
                Some((_, Answer::Missing)) => answers.push(None),
                Some(_) => {}
            }
            open -= 1;
        }
        answers
    }

    /// Asks the other replicas after one without a value, which may have been offline.
    pub(super) async fn ask_all(&self, key: &[u8]) -> Ended {
        let replicas = self.ring.replicas(key, self.config.replicas);
        let all = replicas.len();
        let answers = self.answers(key, replicas, all).await;
        let is_known = answers.len() >= Client::majority(all);
        match answers.into_iter().flatten().max_by_key(|found| found.version) {
            Some(found) => Ended::Found(found),
            None if is_known => Ended::Missing,
            None => Ended::Failed,
        }
    }
}
