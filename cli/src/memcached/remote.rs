//! The drives of a server that are remote, and orders about them over its control socket.

use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{PARITY_DRIVES, PATIENCE_MS, Placement};
use nandscape_apps_memcached_run::live::{NEW, Serving};
use nandscape_lab_run::Target;
use nandscape_sim::Span;
use nandscape_transport_control::ControlServer;
use nandscape_transport_reactor::socket::Listening;

use super::MemcachedArgs;
use super::files::Anew;
use crate::failure::Failure;
use crate::output;
use crate::serve::stores::NewFiles;

impl MemcachedArgs {
    /// Checks what is said of remote drives and models.
    pub(super) fn check_remote(&self) -> Result<(), Failure> {
        let wrong = |text: String| Err(Failure::Input(anyhow::anyhow!("{text}")));
        if !self.is_remote() {
            return match (&self.drive[..], self.overwrite) {
                ([_], false) => Ok(()),
                ([_], true) => wrong("--overwrite: no drive is remote; leave it out".to_owned()),
                (drives, _) => wrong(format!(
                    "--drive {}: one profile, or the URL of each drive, is valid",
                    drives.join(" --drive ")
                )),
            };
        }
        if let Some(profile) = self.drive.iter().find(|drive| !Target::is_one(drive)) {
            return wrong(format!(
                "--drive {profile}: profiles and remote drives cannot be mixed; nvme-tcp://HOST:PORT/NQN is valid next to another"
            ));
        }
        let given = [
            ("--store", self.store.is_some(), "the server of each keeps its data"),
            ("--store-sync", self.store_sync, "it applies to files of this process"),
            ("--rebuild", self.rebuild, "a lost or empty drive is rebuilt without it"),
            ("--set", !self.set.is_empty(), "their servers set their keys"),
        ];
        if let Some((option, _, why)) = given.into_iter().find(|(_, is_given, _)| *is_given) {
            return wrong(format!("{option}: the drives are remote, and {why}; leave it out"));
        }
        if self.needs_zones() {
            return wrong(format!(
                "--policy {}: remote drives with zones are not supported; valid are other policies, and profiles in place of URLs",
                self.policy
            ));
        }
        let named = self.drive.len() as u64;
        if let Some(drives) = self.drives.filter(|drives| *drives != named) {
            return wrong(format!("--drives {drives}: {named} remote drives are named; {named} is valid"));
        }
        let replicas = policy(&self.policy).map_or(1, |policy| policy.replicas());
        if self.placement.fits(named as usize, replicas) {
            return Ok(());
        }
        let given = if named == 1 { "one --drive is given".to_owned() } else { format!("{named} --drive are given") };
        let [least, most] = PARITY_DRIVES;
        match self.placement {
            Placement::Parity if replicas > 1 => {
                wrong(format!("{given}; {least} to {most} are valid with --placement parity"))
            }
            // The policy has no parity, whatever the number.
            Placement::Parity => Ok(()),
            Placement::Copies => {
                wrong(format!("{given}; 2, 4, 6 and so on are valid: d0 and d1 are a pair, d2 and d3 the next"))
            }
        }
    }

    /// The remote drives.
    pub(super) fn targets(&self) -> Result<Vec<Target>, Failure> {
        let mut targets: Vec<Target> = Vec::new();
        for url in &self.drive {
            let target = parse(url).map_err(|problem| Failure::Input(anyhow::anyhow!("--drive {problem}")))?;
            if targets.iter().any(|other| other.to_string() == target.to_string()) {
                return Err(Failure::Input(anyhow::anyhow!(
                    "--drive {url}: it is named twice; each drive once is valid"
                )));
            }
            targets.push(target);
        }
        self.check_apart(&targets)?;
        Ok(targets)
    }

    /// Checks that the loss of one drive is not that of all copies of an item. All namespaces may be of one drive, which a note points out.
    fn check_apart(&self, targets: &[Target]) -> Result<(), Failure> {
        let has_parity = self.placement == Placement::Parity;
        let replicas = policy(&self.policy).map_or(1, |policy| policy.replicas());
        let width = if has_parity { targets.len() } else { replicas };
        let is_together = |one: &Target, other: &Target| (&one.address, &one.nqn) == (&other.address, &other.nqn);
        if targets[1..].iter().all(|target| is_together(target, &targets[0])) {
            if width > 1 {
                output::note("all namespaces are of one drive: the loss of the drive is the loss of all items");
            }
            return Ok(());
        }
        for (number, target) in targets.iter().enumerate() {
            let first = number / width * width;
            let Some(other) = (first..number).find(|other| is_together(&targets[*other], target)) else { continue };
            let (lost, valid) = match has_parity {
                true => ("parity repairs the loss of one", "one namespace of each drive"),
                false => (
                    "both copies are lost with it",
                    "an order in which d0 and d1, d2 and d3 and so on are of two drives",
                ),
            };
            return Err(Failure::Input(anyhow::anyhow!(
                "--drive {target}: d{number} is a namespace of the same drive as d{other}, and {lost}; {valid} is valid"
            )));
        }
        Ok(())
    }
}

/// The target of a URL.
fn parse(url: &str) -> Result<Target, String> {
    Target::parse(url, Span::from_ms(PATIENCE_MS)).map_err(|problem| problem.to_string())
}

/// Takes orders at a socket that listens. `on_stop` is called when the server is to end.
pub(super) fn control(
    listening: Listening,
    (serving, anew): (&Serving, Option<Anew>),
    on_stop: impl Fn() + Send + Sync + 'static,
) -> std::io::Result<ControlServer> {
    let replacer = serving.replacer();
    let replace = move |drive: &str, with: &str| match &anew {
        Some(anew) if with == NEW => {
            let mut files = NewFiles::default();
            let made = |number| anew.make(number, &mut files).map_err(|failure| failure.to_string());
            let done = replacer.renew(drive, made)?;
            files.keep();
            Ok(done)
        }
        _ if Target::is_one(with) => replacer.replace(drive, parse(with)?),
        Some(_) => Err(format!("{with:?}: {NEW} is valid, for a new drive of the server's process")),
        None if with == NEW => Err(format!(
            "{NEW} is for drives in files or in memory, and these are remote; nvme-tcp://HOST:PORT/NQN is valid"
        )),
        None => Err(format!("{with:?}: nvme-tcp://HOST:PORT/NQN is valid")),
    };
    ControlServer::start_with(listening, vec![serving.handle()], on_stop, Box::new(replace))
}
