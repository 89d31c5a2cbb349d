//! The loop over cut points: load, cut, restart, check.

use std::fmt;
use std::iter::Peekable;
use std::pin::pin;

use nandscape_sim::race::race;
use nandscape_sim::{Sim, Span, Time};

use crate::point::{Cut, Point};
use crate::subject::Subject;

/// The step at which a cut looks for the first acknowledgement of a life.
const LOOK: Span = Span::from_us(500);
/// The longest wait for the command of a point.
const SENT_WITHIN: Span = Span::from_s(10);

/// What an exploration did.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Explored {
    /// Cuts of any kind.
    pub cuts: u64,
    /// Hosts that were started again.
    pub restarts: u64,
    /// Changes that were acknowledged.
    pub acknowledged: u64,
}

/// Where an exploration failed, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The life of the host in which it was noticed, counted from 0.
    pub life: u64,
    /// The cuts before it.
    pub cuts: u64,
    /// The last of them: what lost power, and when.
    pub last: Option<(Cut, Time)>,
    /// The subject's words.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "life {}", self.life)?;
        if let Some((cut, at)) = self.last {
            write!(f, ", after {} cuts, the last of {} at {:.3} ms", self.cuts, cut.name(), at.ns() as f64 / 1e6)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for Failure {}

struct Course<'a, S, I: Iterator<Item = Point>> {
    sim: &'a Sim,
    subject: &'a S,
    points: Peekable<I>,
    life: u64,
    /// Commands that were sent before those that the next point counts.
    from: u64,
    done: Explored,
    last: Option<(Cut, Time)>,
}

impl<S: Subject, I: Iterator<Item = Point>> Course<'_, S, I> {
    fn judged<T>(&self, ended: Result<T, String>) -> Result<T, Failure> {
        ended.map_err(|what| Failure { life: self.life, cuts: self.done.cuts, last: self.last, what })
    }

    fn sent(&self) -> u64 {
        self.subject.commands().map_or(0, |commands| commands.sent())
    }

    /// Waits until a point is due.
    async fn due(&self, point: Point) -> Result<(), String> {
        if let Some(number) = point.command {
            let commands = self.subject.commands().ok_or("the subject counts no commands")?;
            let mut sent = pin!(commands.reached(self.from + number));
            if race(&mut sent, self.sim.sleep(SENT_WITHIN)).await.is_none() {
                let sent = commands.sent() - self.from;
                return Err(format!(
                    "{sent} commands were sent within {} s, and the cut is at {number}",
                    SENT_WITHIN.as_s()
                ));
            }
        }
        self.sim.sleep(point.after).await;
        Ok(())
    }

    fn noted(&mut self, cut: Cut) {
        self.done.cuts += 1;
        self.last = Some((cut, self.sim.now()));
        self.from = self.sent();
    }

    /// Opens the next host, and checks it unless it is the first. `None`: it died before it was open.
    async fn open(&mut self) -> Result<Option<S::Host>, Failure> {
        let (subject, is_first) = (self.subject, self.life == 0);
        self.from = self.sent();
        let mut opening = Box::pin(async move {
            if is_first {
                return subject.build().await;
            }
            let host = subject.restart().await?;
            subject.check(&host).await?;
            Ok(host)
        });
        loop {
            let next = subject.commands().and_then(|_| self.points.peek().copied());
            let Some(point) = next.filter(|point| point.command.is_some()) else {
                return self.judged(opening.await).map(Some);
            };
            let mut due = Ok(());
            if let Some(opened) = race(&mut opening, async { due = self.due(point).await }).await {
                return self.judged(opened).map(Some);
            }
            self.judged(due)?;
            self.points.next();
            subject.cut_opening(point.cut);
            self.noted(point.cut);
            if point.cut.ends_host() {
                drop(opening);
                self.ended(point).await;
                return Ok(None);
            }
        }
    }

    async fn ended(&mut self, point: Point) {
        self.sim.sleep(point.off).await;
        self.life += 1;
        self.done.restarts += 1;
    }

    /// Takes a host under its load through points. Whether it has died.
    async fn live(&mut self, host: &S::Host) -> Result<bool, Failure> {
        let before = self.subject.acknowledged();
        self.subject.load(host, self.life);
        while let Some(point) = self.points.next() {
            let due = self.due(point).await;
            self.judged(due)?;
            let looks = point.patience.ns() / LOOK.ns();
            for _ in 0..looks {
                if self.subject.acknowledged() == before {
                    self.sim.sleep(LOOK).await;
                }
            }
            self.subject.until_ready(host, point.cut).await;
            self.subject.cut(host, point.cut);
            self.noted(point.cut);
            if looks > 0 && self.subject.acknowledged() == before {
                return self.judged(Err("no change was acknowledged before the cut".to_owned()));
            }
            if point.cut.ends_host() {
                self.ended(point).await;
                return Ok(true);
            }
            self.sim.sleep(point.off).await;
        }
        Ok(false)
    }
}

/// Builds a subject and takes it through cut points. A restart and a check follow each cut that ends the host; after points without
/// one, the host has outlived the points and is checked.
///
/// Points are drawn one at a time, each after the step before it; the first of a life is drawn before its load begins, and before
/// the host opens if the subject counts commands.
///
/// # Errors
/// The first error that the subject finds, a life without a needed acknowledgement, and a point at a command that is not sent.
pub async fn explore<S: Subject>(
    sim: &Sim,
    subject: &S,
    points: impl IntoIterator<Item = Point>,
) -> Result<Explored, Failure> {
    let (points, done) = (points.into_iter().peekable(), Explored::default());
    let mut course = Course { sim, subject, points, life: 0, from: 0, done, last: None };
    loop {
        let Some(host) = course.open().await? else { continue };
        if course.points.peek().is_none() {
            break;
        }
        if !course.live(&host).await? {
            let checked = subject.check(&host).await;
            course.judged(checked)?;
            break;
        }
    }
    course.done.acknowledged = subject.acknowledged();
    Ok(course.done)
}
