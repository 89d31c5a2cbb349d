//! The programs of stripes: each waits for its plane.

use std::rc::Rc;

use nandscape_device_media::{PageImage, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::super::PageFtl;
use super::super::background::Work;
use super::super::state::State;
use super::job::{Job, Pending, Program};

impl State {
    /// The next program whose plane is ready. Members whose plane is out of use are skipped; if that has ended a stripe, it is
    /// returned instead.
    pub(super) fn next_program(&mut self) -> Option<Result<Program, Rc<Job>>> {
        let mut from = PlaneId(0);
        loop {
            let rain = self.rain.as_deref_mut()?;
            let plane = *rain.waited_for.range(from..).next()?;
            from.0 = plane.0 + 1;
            if self.collectors.is_out_of_use(plane) {
                while let Some(pending) = self.rain().take_waiting(plane) {
                    if let Pending::Member(job, _) = pending
                        && job.one_done()
                    {
                        return Some(Err(job));
                    }
                }
            } else if self.is_ready(plane) {
                let what = self.rain().take_waiting(plane)?;
                let page = self.take_host_pages(plane, 0, 1).next().expect("one was asked for");
                self.host_program_begins(plane);
                return Some(Ok(Program { page, what }));
            }
        }
    }

    /// The image of the page of a program.
    fn program_image(&mut self, program: &Program) -> PageImage {
        let mut image = PageImage::default();
        match &program.what {
            Pending::Member(job, index) => {
                let members = job.members.borrow();
                let member = &members[*index];
                match member.slot {
                    Some(slot) => {
                        image.push(member.lpn.0, self.buffer.share_data(slot));
                        self.program_begins();
                        self.counters.host_units += 1;
                    }
                    None => {
                        image.push(member.lpn.0, member.data.clone());
                        let is_parity = self.rain().layout.parity() == member.number;
                        match is_parity {
                            true => self.counters.rain.parity_units += 1,
                            false => self.counters.wear_units += 1,
                        }
                    }
                }
            }
            Pending::Repair(repair) => {
                image.push(repair.lpn.0, repair.data.clone());
                self.counters.rain.repaired_units += 1;
            }
        }
        image
    }
}

impl PageFtl {
    /// Programs a page of a stripe.
    pub(in super::super) async fn program_stripe(&self, program: &mut Program) {
        let issued = self.free_slots.totals();
        let mut breakdown = Breakdown::new();
        let image = self.state.borrow_mut().program_image(program);
        let who = self.config.priority.who(cause::HOST_WRITE);
        let counted = match self.gate.is_closed() {
            true => Some(self.gate.pass(&self.media, who, &mut breakdown).await),
            false => None,
        };
        let page = program.page;
        let work =
            self.background.program(self.media.geometry().plane_of(self.media.geometry().block_of(page)), &[page]);
        let loaded = |_: &Breakdown| work.iter().for_each(Work::is_loaded);
        let ended = self.media.program_together(&[page], &image, who, &mut breakdown, loaded).await;
        drop(counted);
        drop(work);
        let mut state = self.state.borrow_mut();
        let plane = state.geometry.plane_of(state.geometry.block_of(page));
        state.programs.holdups.programmed(plane, &breakdown);
        state.host_program_left(plane);
        let done = match ended {
            Ok(()) => state.stripe_programmed(program),
            Err(broken) => {
                state.stripe_not_programmed(program, broken);
                None
            }
        };
        let is_awaited = state.pace.is_suspended;
        drop(state);
        if is_awaited {
            self.came_to_rest.notify();
        }
        match &done {
            Some(job) => self.commit_stripe(job, Some((&issued, &breakdown))),
            None => self.leave_early(program, (&issued, &breakdown)),
        }
        self.pump();
    }
}
