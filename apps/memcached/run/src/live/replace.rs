//! A remote drive takes the place of a lost one while clients are served.
//!
//! Connecting may block, so a thread of the operator connects first. Only when the drive has answered there, the loop connects: it does not wait for
//! a target that is silent.

use std::rc::Rc;

use nandscape_apps_memcached_engine::Engine;
use nandscape_apps_store::Host;
use nandscape_drive::Issuer;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_lab_run::UNMARKED;
use nandscape_sim::{Sim, Time};

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
        // It answers, so that the loop does not wait for it.
        let found = NvmeTcp::connect(USER.target(&target), Box::new(|| Time::ZERO));
        drop(found.map_err(|error| format!("{target}: {error}"))?);
        let told = self.door.lock().map_err(|_| "the server has failed")?.replace(Wanted { number, target });
        told.recv().unwrap_or_else(|_| Err("the server has ended".to_owned()))
    }
}

/// A drive that is to take the place of another one.
pub(super) struct Wanted {
    number: usize,
    target: Target,
}

impl Wanted {
    /// Connects to the drive, takes it for this server alone, and has the engine rebuild it.
    pub(super) async fn carry_out(
        self,
        (sim, seed): (&Sim, u64),
        engine: &Engine,
        (drives, added): (&[Drive], &Added),
        note: &dyn Fn(&str),
    ) -> Result<String, String> {
        let Wanted { number, target } = self;
        engine.check_replaceable(number).map_err(|error| error.to_string())?;
        let drive = &drives[number];
        if !drive.is_remote() {
            return Err(format!("drive {} is of this process: start again with --rebuild to make it anew", drive.name));
        }
        let other =
            |(place, other): (usize, &Drive)| (place != number && other.is_at(&target)).then(|| other.name.clone());
        if let Some(other) = drives.iter().enumerate().find_map(other) {
            return Err(format!("{target} is drive {other}; another drive is valid"));
        }
        let before = drive.remote();
        let is_same = |remote: &Rc<Remote>| drive.is_at(&target) && remote.problem().is_none();
        if let Some(remote) = before.clone().filter(is_same) {
            // It is connected: what failed was a command.
            return use_drive(&remote, (sim, number), engine, (drive, &target), note).await;
        }
        before.iter().for_each(|remote| remote.abandon());
        let connected = Remote::connect(sim, (&drive.name, &target), seed).map_err(|error| error.to_string())??;
        let (remote, sources) = (Rc::new(connected), |remote: &Remote| remote.sources());
        added.add(&drive.name, sources(&remote)).map_err(|error| error.to_string())?;
        let used = match alone(sim, (&drive.name, &remote), note).await {
            Ok(()) => use_drive(&remote, (sim, number), engine, (drive, &target), note).await,
            Err(problem) => Err(problem),
        };
        if used.is_err() {
            added.remove(&sources(&remote));
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
