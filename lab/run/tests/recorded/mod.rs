//! A recorded live run, and its replay: for tests of the two clocks through different transports.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;

use nandscape_drive::DriveInfo;
use nandscape_lab_run::{LiveDrives, Replay, Replayed, Report};
use nandscape_sim::Executor;
use nandscape_sim::trace::chrome_json;
use nandscape_transport_reactor::handle::{Figures, Handle};
use nandscape_transport_reactor::recording::Recorder;
use nandscape_transport_reactor::{Export, PollMode, Port, Reactor, Setup};

/// Stops the reactor, even if a client has panicked.
struct Ends(Handle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Serves drives during `work`, which gets the information of the first drive. Returns the trace and the last figures. The
/// drives' tables are sound at the end. Clients may disconnect early.
pub(crate) fn serve(
    live: &LiveDrives,
    poll: PollMode,
    record: &Path,
    work: impl FnOnce(&Handle, DriveInfo),
) -> (String, Figures) {
    let (tell, ready) = channel();
    thread::scope(|scope| {
        let reactor = scope.spawn(move || {
            let mut timelines = live.timelines();
            let sims: Vec<_> = timelines.iter().map(Executor::sim).collect();
            let drives = live.build(&mut timelines, &()).unwrap();
            let exports: Vec<_> = drives.iter().map(|drive| drive.clone() as Rc<dyn Export>).collect();
            sims.iter().for_each(|sim| sim.trace().switch_on());
            let mut port = Port::apart(&sims, exports.clone());
            port.record(Recorder::create(record, &serde_json::to_string(live).unwrap()).unwrap());
            let names = drives.iter().map(|drive| drive.name().to_owned()).collect();
            let setup = Setup { timelines, port, names, poll, log: Box::new(|_| {}) };
            let (reactor, handle) = Reactor::new(setup).unwrap();
            tell.send((handle, exports[0].info())).unwrap();
            let (_timelines, figures) = reactor.run().unwrap();
            drives.iter().for_each(|drive| drive.check().unwrap());
            (chrome_json(sims.iter().map(|sim| sim.trace())), figures)
        });
        let (handle, info) = ready.recv().unwrap();
        let ends = Ends(handle);
        work(&ends.0, info);
        drop(ends);
        reactor.join().unwrap()
    })
}

/// Replays a whole recording, whose trace is the same to the byte; the reports of its drives.
pub(crate) fn replay(recording: PathBuf, trace: &str, what: &str) -> Vec<Report> {
    replayed(recording, trace, what).drives.into_iter().map(|drive| drive.report).collect()
}

/// The same; all of its results.
pub(crate) fn replayed(recording: PathBuf, trace: &str, what: &str) -> Replayed {
    let again = Replay { recording, trace: true, check: true, ..Replay::default() }.run(&()).unwrap();
    assert!(!again.broken_off, "{what}");
    let repeated = again.trace.as_ref().expect("it was asked for");
    let differs = trace.bytes().zip(repeated.bytes()).position(|(live, again)| live != again);
    let sizes = (trace.len(), repeated.len());
    assert!(
        differs.is_none() && sizes.0 == sizes.1,
        "{what}: first byte that differs: {differs:?}; lengths: {sizes:?}"
    );
    again
}
