//! Another drive takes the place of a lost one while clients are served.
//!
//! An order claims the place first, so that a second order is rejected at once. Connecting and making a file may block, so a thread of the operator
//! does these, and hands the result over to the loop.

use std::rc::Rc;

use nandscape_apps_memcached_engine::Engine;
use nandscape_apps_store::Host;
use nandscape_drive::Issuer;
use nandscape_host_driver::nvme_tcp::{Connected, Target};
use nandscape_lab_run::UNMARKED;
use nandscape_sim::Sim;

use super::added::Added;
use super::drives::{Drive, NEW, Place, ServedDrive};
use super::remote::{Remote, USER};
use super::serve::ServeError;
use super::sockets::Door;

/// The way to put other drives in the place of lost ones. It is for any thread.
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
        let wanted = target.clone();
        self.claim(name, Some(target), move |_, is_connected| {
            let connect = || Connected::to(USER.target(&wanted)).map_err(|error| format!("{wanted}: {error}"));
            Ok(Coming::Remote(Box::new(((!is_connected).then(connect).transpose()?, wanted))))
        })
    }

    /// The same with a new drive of this process, which `make` makes by the number of the place.
    ///
    /// # Errors
    /// Why not. Then the store is as before.
    pub fn renew(&self, name: &str, make: impl FnOnce(usize) -> Result<Place, String>) -> Result<String, String> {
        self.claim(name, None, |number, _| Ok(Coming::Here(Box::new(make(number)?))))
    }

    fn claim(
        &self,
        name: &str,
        target: Option<Target>,
        make: impl FnOnce(usize, bool) -> Result<Coming, String>,
    ) -> Result<String, String> {
        let Some(number) = self.names.iter().position(|one| one == name) else {
            return Err(format!("there is no drive {name:?}; `drive` is one of {}", self.names.join(", ")));
        };
        let door = self.door.lock().map_err(|_| "the server has failed")?.clone();
        let ended = || "the server has ended".to_owned();
        let is_connected = door.claim(Claim { number, target }).recv().map_err(|_| ended())??;
        let claimed = Claimed { door: &door, number };
        let coming = make(number, is_connected)?;
        // The loop releases it when it is done, so that orders after the answer reach the new drive.
        std::mem::forget(claimed);
        door.replace(Wanted { number, coming }).recv().map_err(|_| ended())?
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

/// A place, and the remote drive that may be about to take it; `None` is a new drive of this process.
pub(super) struct Claim {
    pub(super) number: usize,
    target: Option<Target>,
}

impl Claim {
    /// Claims the place and the drive. Whether the drive is connected to already.
    ///
    /// A drive that takes no writes has failed, although the engine may not have met that.
    pub(super) async fn make(&self, engine: &Engine, drives: &[Drive]) -> Result<bool, String> {
        self.check_fits(engine, drives)?;
        if drives[self.number].is_read_only() {
            engine.retire(self.number).await.map_err(|error| error.to_string())?;
        }
        engine.check_replaceable(self.number).map_err(|error| error.to_string())?;
        // Another order may have claimed the place meanwhile.
        self.check_fits(engine, drives)?;
        let drive = &drives[self.number];
        drive.awaits(Some(self.target.as_ref().map_or_else(|| format!("a {NEW} drive"), Target::to_string)));
        // If it is connected to, what failed was a command.
        let is_connected = drive.remote().is_some_and(|remote| remote.problem().is_none());
        Ok(is_connected && self.target.as_ref().is_some_and(|target| drive.is_at(target)))
    }

    /// Checks that no other order has the place or the drive, and that the drive is of the kind of the others.
    fn check_fits(&self, engine: &Engine, drives: &[Drive]) -> Result<(), String> {
        let Claim { number, target } = self;
        let drive = &drives[*number];
        if let Some(coming) = drive.coming() {
            return Err(format!("drive {} is being replaced with {coming} already", drive.name));
        }
        let Some(target) = target else {
            if drive.is_remote() {
                return Err(format!("drive {} is remote; nvme-tcp://HOST:PORT/NQN is valid", drive.name));
            }
            return Ok(());
        };
        if !drive.is_remote() {
            return Err(format!("drive {} is of this process; {NEW} is valid, for a new drive of it", drive.name));
        }
        let others = || drives.iter().enumerate().filter(|(place, _)| place != number).map(|(_, other)| other);
        if let Some(other) = others().find(|other| other.is_at(target)) {
            return Err(format!("{target} is drive {}; another drive is valid", other.name));
        }
        if let Some(other) = others().find(|other| other.coming() == Some(target.to_string())) {
            return Err(format!("{target} is about to be drive {}; another drive is valid", other.name));
        }
        if !drive.is_on(target)
            && let Some(other) = engine.sharers(*number).map(|place| &drives[place]).find(|other| other.is_on(target))
        {
            return Err(format!(
                "{target} is a namespace of the same drive as drive {}, whose items it is to protect; a namespace of another drive is valid",
                other.name
            ));
        }
        Ok(())
    }
}

/// The drive that is to take a place.
enum Coming {
    /// A remote one. There is no connection if the drive has been used in this place.
    Remote(Box<(Option<Connected>, Target)>),
    /// A new one of this process.
    Here(Box<Place>),
}

/// A drive that is to take the place of another one, which is claimed.
pub(super) struct Wanted {
    pub(super) number: usize,
    coming: Coming,
}

impl Wanted {
    /// Takes the drive for this server alone, and has the engine rebuild it.
    pub(super) async fn carry_out(
        self,
        (sim, seed): (&Sim, u64),
        engine: &Rc<Engine>,
        (drives, added): (&[Drive], &Added),
        note: &dyn Fn(&str),
    ) -> Result<String, String> {
        let (number, drive) = (self.number, &drives[self.number]);
        let (connected, target) = match self.coming {
            Coming::Remote(remote) => *remote,
            Coming::Here(place) => return use_here(*place, (sim, seed), engine, (drive, number), note).await,
        };
        let before = drive.remote();
        let Some(connected) = connected else {
            let remote = before.ok_or_else(|| format!("drive {} is not connected to any more", drive.name))?;
            return use_drive(&remote, (sim, number), engine, (drive, &target), note).await;
        };
        if let Some(before) = before {
            before.close();
            added.remove(&before.sources());
        }
        let remote = Rc::new(Remote::over(sim, (&drive.name, &target), (seed, &drive.own), connected)?);
        let others = drives.iter().filter_map(|other| Some((&other.name, other.remote()?)));
        if let Some((name, _)) = others.filter(|(name, _)| **name != drive.name).find(|(_, other)| other.is(&remote)) {
            remote.close();
            return Err(format!("{target} is the namespace of drive {name}; another one is valid"));
        }
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

/// Has the engine use a new drive of this process in the place of another one.
async fn use_here(
    place: Place,
    (sim, seed): (&Sim, u64),
    engine: &Engine,
    (drive, number): (&Drive, usize),
    note: &dyn Fn(&str),
) -> Result<String, String> {
    let new = Drive::build(sim, ServedDrive { name: drive.name.clone(), place }, (seed, &drive.own), note);
    let new = new.map_err(|error| error.to_string())?;
    let given = new.given(sim).map_err(|error| error.to_string())?;
    let given = given.ok_or_else(|| format!("there is no drive to take the place of drive {}", drive.name))?;
    engine.replace(number, drive.counted(given)).await.map_err(|error| error.to_string())?;
    drive.renew(new);
    // One that takes no mark is served around.
    drive.join().iter().for_each(|why| note(why));
    Ok(format!("drive {} is a {NEW} drive now, and is being rebuilt", drive.name))
}

/// Makes the server the only user of a drive.
async fn alone(sim: &Sim, (name, remote): (&str, &Remote), note: &dyn Fn(&str)) -> Result<(), String> {
    let direct = remote.export.drive();
    let unmarked = USER.check_alone(&Issuer::new(sim), &[remote.claimed(name, &*direct)]).await?;
    unmarked.iter().for_each(|name| note(&format!("drive {name}: {UNMARKED}")));
    Ok(())
}

/// Has the engine use a drive in the place of another one.
async fn use_drive(
    remote: &Rc<Remote>,
    (sim, number): (&Sim, usize),
    engine: &Rc<Engine>,
    (drive, target): (&Drive, &Target),
    note: &dyn Fn(&str),
) -> Result<String, String> {
    let is_refused = |error: ServeError| error.to_string();
    remote.prepare(&Host::free(sim), &drive.name, false, note).await.map_err(is_refused)?;
    engine.replace(number, drive.counted(remote.given(sim))).await.map_err(|error| error.to_string())?;
    drive.replace(target, remote.clone());
    remote.look_again(engine, number);
    Ok(format!("drive {} is {target} now, and is being rebuilt", drive.name))
}
