//! The loop over cut points: load, cut, restart, check.

use std::fmt;

use nandscape_sim::{Sim, Span, Time};

use crate::point::{Cut, Point};
use crate::subject::Subject;

/// The step at which a cut looks for the first acknowledgement of a life.
const LOOK: Span = Span::from_us(500);

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

struct Course {
    life: u64,
    done: Explored,
    last: Option<(Cut, Time)>,
}

impl Course {
    fn judged<T>(&self, ended: Result<T, String>) -> Result<T, Failure> {
        ended.map_err(|what| Failure { life: self.life, cuts: self.done.cuts, last: self.last, what })
    }
}

/// Builds a subject and takes it through cut points. A restart and a check follow each [`Cut::All`]; after points without
/// one, the host has outlived the points and is checked.
///
/// Points are drawn one at a time, each after the step before it; the first of a life is drawn before its load begins.
///
/// # Errors
/// The first error that the subject finds, and a life without a needed acknowledgement.
pub async fn explore<S: Subject>(
    sim: &Sim,
    subject: &S,
    points: impl IntoIterator<Item = Point>,
) -> Result<Explored, Failure> {
    let mut points = points.into_iter().peekable();
    let mut course = Course { life: 0, done: Explored::default(), last: None };
    let mut host = course.judged(subject.build().await)?;
    while points.peek().is_some() {
        let before = subject.acknowledged();
        subject.load(&host, course.life);
        let mut is_dead = false;
        while !is_dead && let Some(point) = points.next() {
            sim.sleep(point.after).await;
            let looks = point.patience.ns() / LOOK.ns();
            for _ in 0..looks {
                if subject.acknowledged() == before {
                    sim.sleep(LOOK).await;
                }
            }
            subject.cut(&host, point.cut);
            course.done.cuts += 1;
            course.last = Some((point.cut, sim.now()));
            if looks > 0 && subject.acknowledged() == before {
                return course.judged(Err("no change was acknowledged before the cut".to_owned()));
            }
            sim.sleep(point.off).await;
            is_dead = point.cut == Cut::All;
        }
        if is_dead {
            drop(host);
            course.life += 1;
            course.done.restarts += 1;
            host = course.judged(subject.restart().await)?;
        }
        course.judged(subject.check(&host).await)?;
    }
    course.done.acknowledged = subject.acknowledged();
    Ok(course.done)
}
