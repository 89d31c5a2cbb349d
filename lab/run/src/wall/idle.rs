//! The idle control of policies on completions: the processor time of a set-up that is connected and waits by its policy, without commands.
//!
//! The drive's part is that of all other threads of this process, or of the process of its server.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_sim::Span;

use super::ServerCpu;
use super::pacer::Pacer;
use crate::host::{process_cpu, thread_cpu};

/// How long the set-up is idle.
const LASTING: Span = Span::from_ms(200);

/// Who knows the processor time of a drive.
pub(super) enum DriveCpu {
    /// No one: it is in another process.
    Unknown,
    /// This process, which the drive is in.
    Here,
    /// Its server.
    Server(Rc<ServerCpu>),
}

impl DriveCpu {
    /// Processor time so far.
    fn spent(&self) -> Result<Option<Span>, String> {
        match self {
            DriveCpu::Unknown => Ok(None),
            DriveCpu::Here => {
                let (thread, process) = (thread_cpu(), process_cpu());
                Ok(Some(process - process.min(thread)))
            }
            DriveCpu::Server(server) => server.spent().map(Some),
        }
    }
}

/// The drive's processor time from some moment on.
pub(super) struct DriveTime {
    of: DriveCpu,
    begun: RefCell<Result<Option<Span>, String>>,
}

impl DriveTime {
    pub(super) fn new(of: DriveCpu) -> Rc<DriveTime> {
        Rc::new(DriveTime { of, begun: RefCell::new(Ok(None)) })
    }

    /// Counts from now on.
    pub(super) fn count_anew(&self) {
        *self.begun.borrow_mut() = self.of.spent();
    }

    /// Since then; `None` if nothing reports it.
    ///
    /// # Errors
    /// Why the server does not report it.
    pub(super) fn passed(&self) -> Result<Option<Span>, String> {
        let (begun, now) = (self.begun.borrow().clone()?, self.of.spent()?);
        Ok(begun.zip(now).map(|(begun, now)| now - now.min(begun)))
    }
}

/// See the file.
#[derive(Copy, Clone, Debug)]
pub(super) struct Idle {
    pub(super) lasted: Span,
    pub(super) thread: Span,
    pub(super) drive: Option<Span>,
}

impl Idle {
    /// Measures it on the calling thread, whose loop has all drives of the run.
    ///
    /// # Errors
    /// When a drive is lost, or the server does not report its time.
    pub(super) fn measure(pacer: &mut Pacer, drive: &DriveTime) -> Result<Idle, String> {
        let (sim, clock) = (pacer.sim().clone(), pacer.clock());
        drive.count_anew();
        let (begun, thread) = (clock.now(), thread_cpu());
        // The model's time lags behind the clock until the loop runs.
        pacer.run(async move { sim.sleep_until(begun + LASTING).await }).map_err(|lost| lost.to_string())?;
        let (lasted, thread) = (clock.now().since(begun), thread_cpu() - thread);
        Ok(Idle { lasted, thread, drive: drive.passed()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::patience::Patience;
    use super::*;

    #[test]
    fn a_loop_without_commands_is_idle_for_its_time() {
        let mut pacer = Pacer::new(false, Patience::new(String::new(), Span::from_s(60)));
        let mut measured = |of| Idle::measure(&mut pacer, &DriveTime::new(of)).unwrap();
        let idle = measured(DriveCpu::Unknown);
        assert!(idle.lasted >= LASTING && idle.thread <= idle.lasted && idle.drive.is_none(), "{idle:?}");
        assert!(measured(DriveCpu::Here).drive.is_some());
    }
}
