//! A program as the only user of its remote drives. It marks itself on each as a host of its kind, and reserves the drive for
//! its own writes. It does not start if another program of its kind uses one of them, if another host has reserved one, or if one
//! drive is given twice. After a reconnect it checks a drive again before commands continue: the drive may have lost its data, and
//! another program may have started on it.
//!
//! The reservation stays when the program ends: other hosts, and the drive's own server, cannot write to the drive while the
//! program would not notice.
//!
//! A drive with several namespaces reports all controllers of the program's host for each of them. So a program with a connection for each
//! namespace counts its connections ([`Connections`]): more controllers than these belong to another program.
//!
//! Left out: drives without reservations, which keep no mark: a warning names them, at the start and after a reconnect.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nandscape_drive::{Drive, Issuer, mark};
use nandscape_host_driver::nvme_tcp::{Execute, Look, Refusal, Target};
use nandscape_wire_nvme::Status;

/// What kind of program uses drives alone.
#[derive(Debug)]
pub struct User {
    /// Its mark on a drive.
    mark: u64,
    /// Its host to the drives. It differs from those of other programs here, which may inspect the drives meanwhile.
    host_nqn: &'static str,
    host_id: [u8; 16],
    /// What it is to other programs of its kind, with an article.
    another: &'static str,
    /// What a drive belongs to.
    whole: &'static str,
}

/// How often a command is given to a drive whose connection may have broken while the others were connected to.
const TRIES: u32 = 3;

/// The check of what the program has written to a drive.
pub type Records = Box<dyn Fn(Execute<'_>) -> Result<(), Refusal> + Send + Sync>;

/// The warning of a drive that keeps no mark.
pub const UNMARKED: &str = "it has no reservations, so another array or host on it is not detected";

/// The connections of a program to each subsystem, by its address and NQN.
#[derive(Clone, Default, Debug)]
pub struct Connections(Arc<Mutex<BTreeMap<(String, String), usize>>>);

impl Connections {
    /// Counts a connection until the returned value is dropped.
    pub fn add(&self, target: &Target) -> Connection {
        let subsystem = (target.address.clone(), target.nqn.clone());
        self.change(&subsystem, |count| *count += 1);
        Connection { all: self.clone(), subsystem }
    }

    fn change(&self, subsystem: &(String, String), change: impl FnOnce(&mut usize)) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(subsystem.clone()).or_default();
        change(count);
        *count
    }
}

/// A connection to a subsystem that is counted.
#[derive(Debug)]
pub struct Connection {
    all: Connections,
    subsystem: (String, String),
}

impl Connection {
    /// Reports how many connections the program has to the subsystem, this one included.
    pub fn own(&self) -> impl Fn() -> usize + Send + Sync + use<> {
        let (all, subsystem) = (self.all.clone(), self.subsystem.clone());
        move || all.change(&subsystem, |_| ())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.change(&self.subsystem, |count| *count -= 1);
    }
}

/// A drive that a program is to use alone.
#[derive(Copy, Clone)]
pub struct Claimed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its queues.
    pub drive: &'a dyn Drive,
    /// The program's connections to its subsystem.
    pub own: usize,
}

/// What a command answers once it has met a connection.
async fn met<T>(mut command: impl AsyncFnMut() -> Result<T, Status>) -> Result<T, Status> {
    for _ in 1..TRIES {
        match command().await {
            Err(Status::HOST_PATHING_ERROR) => {}
            answer => return answer,
        }
    }
    command().await
}

impl User {
    /// A served array.
    pub const ARRAY: User = User {
        mark: u64::from_be_bytes(*b"ns array"),
        host_nqn: "nqn.2026-11.org.nandscape:array",
        host_id: *b"nandscape array\x01",
        another: "another array",
        whole: "an array",
    };
    /// A server of memcached's protocols.
    pub const MEMCACHED: User = User {
        mark: u64::from_be_bytes(*b"ns cache"),
        host_nqn: "nqn.2026-11.org.nandscape:memcached",
        host_id: *b"nandscape cache\x01",
        another: "another memcached server",
        whole: "a memcached server",
    };

    /// A drive as the program connects to it.
    pub fn target(&self, target: &Target) -> Target {
        Target { host_nqn: self.host_nqn.to_owned(), host_id: self.host_id, ..target.clone() }
    }

    /// Marks drives, and looks for other programs of the kind that have. Returns the names of those that keep no
    /// mark.
    ///
    /// # Errors
    /// The drive that cannot be used alone, and why.
    pub async fn check_alone(&self, issuer: &Issuer, drives: &[Claimed<'_>]) -> Result<Vec<String>, String> {
        let (mut marked, mut unmarked) = (Vec::new(), Vec::new());
        for claimed in drives {
            let Claimed { name, drive, .. } = *claimed;
            match met(async || mark::mark(issuer, drive, self.mark).await).await {
                Ok(()) => marked.push(*claimed),
                Err(Status::INVALID_OPCODE) => unmarked.push(name.to_owned()),
                Err(status) => return Err(format!("drive {name} rejects a registration: {status}")),
            }
        }
        for Claimed { name, drive, own } in marked {
            match met(async || mark::marked(issuer, drive, self.mark).await).await {
                Ok(found) if found <= own => met(async || mark::hold(issuer, drive, self.mark).await)
                    .await
                    .map_err(|status| format!("drive {name} cannot be reserved: {}", unreserved(status)))?,
                Ok(_) => {
                    let whole = self.whole;
                    return Err(format!(
                        "drive {name} belongs to {whole} already: stop the other server, or name the drive once"
                    ));
                }
                Err(status) => return Err(format!("drive {name} does not report its hosts: {status}")),
            }
        }
        Ok(unmarked)
    }

    /// The checks after a reconnect of a drive. A program whose drive was taken over must stop trying: while it is connected, it
    /// keeps the other one out as well. So `records` are checked first.
    /// `own` reports the program's connections to the drive's subsystem.
    /// With whether the drive keeps no mark, as the last check found.
    pub fn look_again(
        &'static self,
        nsid: u32,
        own: impl Fn() -> usize + Send + Sync + 'static,
        records: Records,
    ) -> (Look, Arc<AtomicBool>) {
        let unmarked = Arc::new(AtomicBool::new(false));
        let found = unmarked.clone();
        let look: Look = Arc::new(move |execute| {
            records(execute)?;
            self.look_for_others((nsid, own()), &found, execute)
        });
        (look, unmarked)
    }

    /// The checking connection is among the counted ones: all programs of the kind have the same host name, and marks are of a
    /// host.
    fn look_for_others(
        &self,
        (nsid, own): (u32, usize),
        unmarked: &AtomicBool,
        execute: Execute<'_>,
    ) -> Result<(), Refusal> {
        let (entry, keys) = mark::marking(nsid, self.mark);
        let status = execute(entry, &keys, 0)?.0.meaning();
        unmarked.store(status == Status::INVALID_OPCODE, Ordering::Relaxed);
        match status {
            Status::SUCCESS => {}
            Status::INVALID_OPCODE => return Ok(()),
            status => return Err(Refusal::ForNow(format!("it rejects a registration: {status}"))),
        }
        let (entry, room) = mark::asking(nsid);
        match execute(entry, &[], room)? {
            (status, told) if status.is_success() && mark::counted(&told, self.mark) <= own => {
                self.reserve(nsid, execute)
            }
            // Or the connection that broke is not over for the drive.
            (status, _) if status.is_success() => Err(Refusal::ForNow(format!("{} is on the drive", self.another))),
            (status, _) => Err(Refusal::ForNow(format!("it does not report its hosts: {status}"))),
        }
    }

    fn reserve(&self, nsid: u32, execute: Execute<'_>) -> Result<(), Refusal> {
        let [(persisting, new), (acquiring, keys)] = mark::holding(nsid, self.mark);
        match execute(persisting, &new, 0)?.0.meaning() {
            Status::SUCCESS | Status::INVALID_FIELD => {}
            status => return Err(Refusal::ForNow(format!("it cannot be reserved: {status}"))),
        }
        match execute(acquiring, &keys, 0)?.0.meaning() {
            Status::SUCCESS => Ok(()),
            status => Err(Refusal::ForNow(format!("it cannot be reserved: {}", unreserved(status)))),
        }
    }
}

/// Why a drive cannot be reserved, and what would help.
fn unreserved(status: Status) -> String {
    match status {
        Status::RESERVATION_CONFLICT => {
            format!(
                "{status}: another host has reserved the drive and must release it; `nvme resv-report` prints which"
            )
        }
        status => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::testing::INFO;
    use nandscape_drive::{Completion, DriveInfo, Io};
    use nandscape_sim::Executor;

    use super::*;

    /// A drive that rejects all commands for reservations.
    struct Plain;

    impl Drive for Plain {
        fn info(&self) -> DriveInfo {
            INFO
        }

        fn submit(&self, io: Io) {
            io.token.complete(Completion::of(Status::INVALID_OPCODE));
        }
    }

    #[test]
    fn a_drive_without_reservations_is_named() {
        let mut executor = Executor::new();
        let issuer = Issuer::new(&executor.sim());
        let unmarked = executor.block_on(async {
            User::ARRAY.check_alone(&issuer, &[Claimed { name: "far", drive: &Plain, own: 1 }]).await
        });
        assert_eq!(unmarked.unwrap(), Ok(vec!["far".to_owned()]));
    }

    #[test]
    fn connections_count_until_they_are_dropped() {
        let (all, [one, two]) = (Connections::default(), ["nqn.one", "nqn.two"].map(|nqn| Target::new("a:1", nqn)));
        let (first, second, other) = (all.add(&one), all.add(&one), all.add(&two));
        let own = first.own();
        assert_eq!((own(), other.own()()), (2, 1));
        drop(first);
        assert_eq!((own(), second.own()(), other.own()()), (1, 1, 1));
    }

    #[test]
    fn a_reconnect_notes_whether_the_drive_has_reservations() {
        let (look, unmarked) = User::ARRAY.look_again(1, || 1, Box::new(|_| Ok(())));
        let with = |status: Status| look(&mut |_, _, room| Ok((status, vec![0; room])));
        assert!(with(Status::INVALID_OPCODE).is_ok() && unmarked.load(Ordering::Relaxed));
        assert!(with(Status::SUCCESS).is_ok() && !unmarked.load(Ordering::Relaxed));
    }
}
