//! Several concurrent commands to members, whose ends are awaited one by one, or until a time.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use nandscape_drive::issuer::Execute;
use nandscape_drive::{Breakdown, Completion, Drive, HostMem, Issuer};
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::SubmissionEntry;
use smallvec::SmallVec;

/// The member of a command, and its drive at the time of sending: another drive may have replaced it by the command's
/// end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) member: usize,
    pub(crate) drive: usize,
}

/// See the file. Commands still under way when it is dropped are abandoned: they continue in the members.
pub(crate) struct Flight<'a> {
    sim: &'a Sim,
    issuer: &'a Issuer,
    under_way: SmallVec<[(Sent, Execute<'a>); 8]>,
}

impl<'a> Flight<'a> {
    pub(crate) fn new(sim: &'a Sim, issuer: &'a Issuer) -> Flight<'a> {
        Flight { sim, issuer, under_way: SmallVec::new() }
    }

    pub(crate) fn send(&mut self, to: Sent, drive: &dyn Drive, command: SubmissionEntry, mem: HostMem) {
        self.under_way.push((to, self.issuer.execute(drive, command, mem)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    fn poll_any(&mut self, context: &mut std::task::Context<'_>) -> Poll<(Sent, Completion)> {
        for at in 0..self.under_way.len() {
            if let Poll::Ready(completion) = Pin::new(&mut self.under_way[at].1).poll(context) {
                return Poll::Ready((self.under_way.remove(at).0, completion));
            }
        }
        Poll::Pending
    }

    /// The next command that ends, with its member; `None` when `until` is reached first.
    pub(crate) async fn next(&mut self, until: Option<Time>) -> Option<(Sent, Completion)> {
        let Some(until) = until else {
            return Some(poll_fn(|context| self.poll_any(context)).await);
        };
        let mut timer = pin!(self.sim.sleep_until(until));
        poll_fn(|context| match self.poll_any(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await
    }
}

/// Of two breakdowns of commands that were under way at the same time, the longer.
pub(crate) fn longer(one: Breakdown, other: Breakdown) -> Breakdown {
    if other.total() > one.total() { other } else { one }
}

/// Awaits all futures, polled concurrently: their outputs.
pub(crate) async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in waiting.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
