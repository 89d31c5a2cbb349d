//! A remote drive takes the place of a lost one while clients are served.
//!
//! An order claims the place first, so that a second order is rejected at once. Connecting may block, so a thread of the operator connects, and hands the
//! connection over to the loop.

use std::rc::Rc;

use nandscape_apps_memcached_engine::Engine;
use nandscape_apps_store::Host;
use nandscape_drive::Issuer;
use nandscape_host_driver::nvme_tcp::{Connected, Target};
use nandscape_lab_run::UNMARKED;
use nandscape_sim::Sim;

use super::added::Added;
use super::drives::Drive;
use super::remote::{Remote, USER};
use super::serve::ServeError;
use super::sockets::Door;

/// The way to put remote drives in the place of lost ones. It is for any thread.
pub struct Replacer {
    names: Vec<String>,
    door: std::sync::Mutex<Door>,
}

impl Replacer {
    pub(super) fn new(names: Vec<String>, door: Door) -> Replacer {
        Replacer { names, door: std::sync::Mutex::new(door) }
    }

    /// Has a remote drive take the place of a lost one, by the name of that. Returns once its rebuild has begun, with a line for the operator.
    ///
    /// # Errors
    /// Why not. Then the store is as before.
    pub fn replace(&self, name: &str, target: Target) -> Result<String, String> {
        let Some(number) = self.names.iter().position(|one| one == name) else {
            return Err(format!("there is no drive {name:?}; `drive` is one of {}", self.names.join(", ")));
        };
        let door = self.door.lock().map_err(|_| "the server has failed")?.clone();
        let ended = || "the server has ended".to_owned();
        let claim = Claim { number, target: target.clone() };
        let is_connected = door.claim(claim).recv().map_err(|_| ended())??;
        let _claimed = Claimed { door: &door, number };
        let connect = || Connected::to(USER.target(&target)).map_err(|error| format!("{target}: {error}"));
        let connected = (!is_connected).then(connect).transpose()?;
        door.replace(Wanted { number, target, connected }).recv().map_err(|_| ended())?
    }
}

/// A place is claimed until this is dropped.
struct Claimed<'a> {
    door: &'a Door,
    number: usize,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.door.release(self.number);
    }
}

/// A place, and the drive that may be about to take it.
pub(super) struct Claim {
    pub(super) number: usize,
    target: Target,
}

impl Claim {
    /// Claims the place and the drive. Whether the drive is connected to already.
    pub(super) fn make(&self, engine: &Engine, drives: &[Drive]) -> Result<bool, String> {
        let Claim { number, target } = self;
        let drive = &drives[*number];
        if let Some(coming) = drive.coming() {
            return Err(format!("drive {} is being replaced with {coming} already", drive.name));
        }
        engine.check_replaceable(*number).map_err(|error| error.to_string())?;
        if !drive.is_remote() {
            return Err(format!("drive {} is of this process: start again with --rebuild to make it anew", drive.name));
        }
        let others = || drives.iter().enumerate().filter(|(place, _)| place != number).map(|(_, other)| other);
        if let Some(other) = others().find(|other| other.is_at(target)) {
            return Err(format!("{target} is drive {}; another drive is valid", other.name));
        }
        if let Some(other) = others().find(|other| other.coming() == Some(target.to_string())) {
            return Err(format!("{target} is about to be drive {}; another drive is valid", other.name));
        }
        drive.awaits(Some(target));
        // If it is connected to, what failed was a command.
        Ok(drive.is_at(target) && drive.remote().is_some_and(|remote| remote.problem().is_none()))
    }
}

/// A drive that is to take the place of another one, which is claimed.
pub(super) struct Wanted {
    number: usize,
    target: Target,
    /// `None` if the drive has been used in this place.
    connected: Option<Connected>,
}

impl Wanted {
    /// Takes the drive for this server alone, and has the engine rebuild it.
    pub(super) async fn carry_out(
        self,
        (sim, seed): (&Sim, u64),
        engine: &Engine,
        (drives, added): (&[Drive], &Added),
        note: &dyn Fn(&str),
    ) -> Result<String, String> {
        let Wanted { number, target, connected } = self;
        let (drive, before) = (&drives[number], drives[number].remote());
        let Some(connected) = connected else {
            let remote = before.ok_or_else(|| format!("drive {} is not connected to any more", drive.name))?;
            return use_drive(&remote, (sim, number), engine, (drive, &target), note).await;
        };
        if let Some(before) = before {
            before.close();
            added.remove(&before.sources());
        }
        let remote = Rc::new(Remote::over(sim, (&drive.name, &target), seed, connected)?);
        added.add(&drive.name, remote.sources()).map_err(|error| error.to_string())?;
        let used = match alone(sim, (&drive.name, &remote), note).await {
            Ok(()) => use_drive(&remote, (sim, number), engine, (drive, &target), note).await,
            Err(problem) => Err(problem),
        };
        if used.is_err() {
            remote.close();
            added.remove(&remote.sources());
        }
        used
    }
}

/// Makes the server the only user of a drive.
async fn alone(sim: &Sim, (name, remote): (&str, &Remote), note: &dyn Fn(&str)) -> Result<(), String> {
    let direct = remote.export.drive();
    let unmarked = USER.check_alone(&Issuer::new(sim), &[(name, &*direct)]).await?;
    unmarked.iter().for_each(|name| note(&format!("drive {name}: {UNMARKED}")));
    Ok(())
}

/// Has the engine use a drive in the place of another one.
async fn use_drive(
    remote: &Rc<Remote>,
    (sim, number): (&Sim, usize),
    engine: &Engine,
    (drive, target): (&Drive, &Target),
    note: &dyn Fn(&str),
) -> Result<String, String> {
    let is_refused = |error: ServeError| error.to_string();
    remote.prepare(&Host::free(sim), &drive.name, false, note).await.map_err(is_refused)?;
    engine.replace(number, remote.given(sim)).await.map_err(|error| error.to_string())?;
    drive.replace(target, remote.clone());
    remote.look_again(engine, number);
    Ok(format!("drive {} is {target} now, and is being rebuilt", drive.name))
}
