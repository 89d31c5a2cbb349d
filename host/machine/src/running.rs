//! The future that ends when a context has its processor and has done its work.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use nandscape_sim::Time;
use nandscape_sim::timer::Sleep;

use crate::context::Context;
use crate::state::{Progress, Request, Waker};

/// See [`Context::work`]. Dropped before its end, it leaves the rest undone.
#[must_use = "a future does nothing until it is awaited"]
pub struct Work<'a> {
    context: &'a Context,
    request: Request,
    waker: Waker,
    /// Whether the context gives its turn away first.
    yields: bool,
    stage: Stage,
    /// The timer at which the context looks again.
    timer: Option<(Time, Sleep<'a>)>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stage {
    New,
    Asked,
    Ended,
}

impl<'a> Work<'a> {
    pub(crate) fn new(context: &'a Context, request: Request) -> Work<'a> {
        Work { context, request, waker: Waker::Outside, yields: false, stage: Stage::New, timer: None }
    }

    /// The processor, for a thread that was away.
    pub(crate) fn resumed(context: &'a Context, waker: Waker) -> Work<'a> {
        let mut work = Work::new(context, Request::NOTHING);
        work.waker = waker;
        work
    }

    /// The processor, after those that wait for it.
    pub(crate) fn yielded(context: &'a Context) -> Work<'a> {
        let mut work = Work::new(context, Request::NOTHING);
        work.yields = true;
        work
    }

    /// The work needs data that is warm on this core: on another one, loading the data takes time first.
    pub fn warm_on(mut self, core: usize) -> Work<'a> {
        self.request.home = Some(core);
        self
    }

    /// Another has asked for the context: this future waits for the end.
    pub(crate) fn was_asked(&mut self) {
        self.stage = Stage::Asked;
    }

    /// From now on the work is another one.
    pub(crate) fn revise(&mut self, request: Request) {
        self.request = request;
        if self.stage == Stage::Asked {
            let Context { shared, key } = self.context;
            shared.state.borrow_mut().revise(*key, request, Some(*key));
        }
    }

    fn ask(&mut self) {
        let Context { shared, key } = self.context;
        let mut state = shared.state.borrow_mut();
        state.entity_mut(*key).task = shared.sim.current_task();
        state.ask(*key, self.request, self.waker, Some(*key));
        if self.yields {
            state.give_way(*key);
        }
        self.stage = Stage::Asked;
    }

    /// The end of the work.
    fn end(&mut self) -> Poll<()> {
        let Context { shared, key } = self.context;
        let mut state = shared.state.borrow_mut();
        state.entity_mut(*key).asks = false;
        state.ended.push(*key);
        (self.stage, self.timer) = (Stage::Ended, None);
        shared.wake_sweeper();
        Poll::Ready(())
    }
}

impl Future for Work<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Context { shared, key } = this.context;
        match this.stage {
            Stage::New => this.ask(),
            Stage::Asked => shared.state.borrow_mut().entity_mut(*key).task = shared.sim.current_task(),
            Stage::Ended => return Poll::Ready(()),
        }
        loop {
            if let Some((_, timer)) = &mut this.timer
                && Pin::new(timer).poll(context).is_ready()
            {
                this.timer = None;
                shared.state.borrow_mut().alarm(*key);
            }
            let progress = shared.state.borrow().progress(*key);
            match (progress, &this.timer) {
                (Progress::Done, _) => return this.end(),
                (Progress::Waits, _) => {
                    this.timer = None;
                    return Poll::Pending;
                }
                (Progress::Until(time), Some((set, _))) if *set == time => return Poll::Pending,
                (Progress::Until(time), _) => this.timer = Some((time, shared.sim.sleep_until(time))),
            }
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let Context { shared, key } = self.context;
        if self.stage == Stage::Asked && !shared.sim.is_stopped() {
            shared.state.borrow_mut().withdraw(*key);
            shared.wake_sweeper();
        }
    }
}
