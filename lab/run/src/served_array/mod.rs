//! An array of drives, served as one drive in wall time: over models of this process, over remote drives, or over
//! both. Every transport serves it, as a drive behind controllers of this process.
//!
//! | file | what |
//! |---|---|
//! | `member` | the drives under it |
//! | `absent` | one that is out of reach |
//! | `plain` | one that knows nothing of TeaFA |
//! | `records` | a remote drive still has what the array wrote |
//! | `open` | how the array comes to be |
//! | `export` | the array as clients and operators see it |
//! | `orders` | orders to an array at work |
//! | `figures` | the figures and events of members |
//!
//! An array over models in memory ends with the process, as the models do. An array over files or remote drives keeps records on
//! them, reopens, and outlasts crashes.
//!
//! Left out: Flash on Rails, which keeps writes in the host's memory for seconds; recordings, which arrays among
//! [layers](crate::LiveSpec) have.

mod absent;
pub(crate) mod export;
pub(crate) mod figures;
mod member;
mod open;
pub(crate) mod orders;
pub(crate) mod plain;
mod records;

use std::rc::Rc;
use std::sync::atomic::Ordering;

use nandscape_device_media::durable::{Owner, StoreFile};
use nandscape_drive::{Drive, Names, Progress};
use nandscape_layers_array::{Config, JournalMode, Shape};
use nandscape_sim::{Executor, Seed, Span};

pub use export::ArrayExport;
use member::{Under, build};
use open::{Known, Opening, open};
use records::look_for_records;

use crate::alone::{UNMARKED, User};
use crate::forwarded::Forwarded;
use crate::live::{BuildError, SsdExport, offers_of_model};
use crate::live_drive::LiveSpec;
use crate::remote::RemoteSpec;
use crate::wall::settle;

/// How long a drive of another server may answer nothing while the array is opened.
const PATIENCE: Span = Span::from_s(60);

/// An array that is to be served.
#[derive(Clone, PartialEq, Debug)]
pub struct ArraySpec {
    /// The name that clients use.
    pub name: String,
    /// Level and members.
    pub shape: Shape,
    /// Settings.
    pub config: Config,
    /// Its drives; those beyond the members are spares.
    pub members: Vec<LiveSpec>,
    /// Whether existing drives are emptied, and the array is created anew.
    pub creates: bool,
    /// Whether an array is opened without drives that are out of reach or cannot be read.
    pub is_degraded: bool,
    /// Whether drives of no array may take a member's place although they hold data, or may.
    pub overwrites: bool,
}

impl ArraySpec {
    /// Whether the array outlasts the process, if its models with a file are `in_files`.
    fn lasts(&self, in_files: &[bool]) -> bool {
        in_files.contains(&true) || self.members.iter().any(|member| member.remote().is_some())
    }

    /// Builds its drives, connects to remote drives, and makes or opens the array. Blocks until that is done.
    ///
    /// # Errors
    /// A drive cannot be built or reached, or the drives cannot be the array; with the drive or the array at fault.
    pub fn build(
        &self,
        executor: &mut Executor,
        seed: u64,
        files: Vec<Option<StoreFile>>,
        progress: &dyn Progress,
    ) -> Result<ArrayExport, String> {
        let failed = |problem: String| format!("{} ({}): {problem}", self.name, self.shape);
        self.check_distinct().map_err(failed)?;
        let in_files: Vec<bool> = files.iter().map(Option::is_some).collect();
        let is_new = |file: &Option<StoreFile>| file.as_ref().is_none_or(|file| file.before().starts == 0);
        let all_new = files.iter().all(is_new) && !self.members.iter().any(|one| one.remote().is_some());
        let opening = match self.lasts(&in_files) || self.config.journal == JournalMode::Data {
            false => Opening::ForNow,
            true if all_new => Opening::New,
            true if self.creates => Opening::Anew,
            true => Opening::Again,
        };
        let members = self.members.iter().zip(files);
        let built: Vec<Result<Under, BuildError>> =
            members.map(|(member, file)| build(member, executor, (seed, file), progress)).collect();
        let models: Vec<_> = built.iter().filter_map(|drive| drive.as_ref().ok()?.model().cloned()).collect();
        let made = self.over(executor, seed, built, opening).and_then(|array| {
            // Only now it is known that the drives are members.
            let mark = |(name, model): (&str, &Rc<SsdExport>)| {
                let told = |error| format!("the file of drive {name} takes no mark of a member: {error}");
                model.ssd().join(Owner::Array).map_err(told)
            };
            array.models().try_for_each(mark)?;
            Ok(array)
        });
        if made.is_err() {
            // The reason is reported. The drives' files must not look like those of a crash.
            models.iter().for_each(|model| drop(model.turn_off(executor)));
        }
        made.map_err(failed)
    }

    /// The array over these drives.
    fn over(
        &self,
        executor: &mut Executor,
        seed: u64,
        built: Vec<Result<Under, BuildError>>,
        opening: Opening,
    ) -> Result<ArrayExport, String> {
        let sim = executor.sim();
        let under = self.reached(built, opening)?;
        if opening == Opening::Anew
            && let Some(drive) = under.iter().find(|drive| !drive.can_be_zeroed())
        {
            let name = drive.name();
            let problem = "it does not promise that deallocated blocks read as zeros, so parity could not be right";
            return Err(format!("drive {name} cannot be emptied: {problem}"));
        }
        let members = under.iter().map(|drive| drive.member(&sim)).collect::<Result<Vec<_>, String>>();
        let drives: Vec<Known> = under.iter().map(Known::of).collect();
        let task = open(sim.clone(), (self.shape, self.config.clone()), (members?, drives), (opening, self.overwrites));
        let remote: Vec<_> = under.iter().filter_map(Under::connection).collect();
        let array = match remote.is_empty() {
            true => executor.block_on(task).map_err(|stalled| stalled.to_string()),
            false => settle(executor, (&self.name, PATIENCE), &remote, task),
        };
        let (array, unmarked) = array.and_then(|opened| opened).map_err(|problem| without(&under, problem))?;
        for (number, drive) in under.iter().enumerate() {
            if let Some(far) = drive.far() {
                let (info, witness) = (drive.info(), array.witness(number));
                let (look, is_unmarked) = User::ARRAY.look_again(info.nsid, || 1, look_for_records(info, witness));
                far.connection().look_again(look);
                let array = Rc::downgrade(&array);
                far.on_return(move || {
                    array.upgrade().iter().for_each(|array| array.drive_was_away(number));
                    is_unmarked.load(Ordering::Relaxed).then_some(UNMARKED)
                });
            }
        }
        let offers = offers_of_model(&array.info()).placed();
        let front = Forwarded::new(&sim, array.clone(), offers, self.names(seed))?;
        Ok(ArrayExport { array, under, front, unmarked })
    }

    /// A drive that is a member twice would be rebuilt over itself. Two ways of writing one URL are seen later, by its mark.
    fn check_distinct(&self) -> Result<(), String> {
        // An FTL marks its drive, and two of one drive are rejected.
        let remote = self.members.iter().filter_map(LiveSpec::remote);
        let mut seen: Vec<&RemoteSpec> = Vec::new();
        for spec in remote {
            if let Some(other) = seen.iter().find(|other| other.target == spec.target) {
                let problem = format!(
                    "drives {} and {} are both {}; each needs a drive of its own",
                    other.name, spec.name, spec.target
                );
                return Err(problem);
            }
            seen.push(spec);
        }
        Ok(())
    }

    /// The drives, with a stand-in for each that is out of reach or cannot be read where the array may be opened without.
    fn reached(&self, built: Vec<Result<Under, BuildError>>, opening: Opening) -> Result<Vec<Under>, String> {
        let (mut lacking, mut under) = (Vec::new(), Vec::new());
        for (number, built) in built.into_iter().enumerate() {
            match built {
                Ok(drive) => under.push(drive),
                // The drive is healthy: without it, another start would take it for outdated.
                Err(BuildError::Layers(problem)) => return Err(problem),
                Err(problem) if self.is_degraded && opening == Opening::Again => {
                    lacking.push((number, problem.to_string()))
                }
                Err(problem) if opening == Opening::Again => {
                    let member = &self.members[number];
                    let rebuilt = match member.remote().is_some() || member.is_over_chunks() {
                        true => "",
                        false => "; without its file it is new, and is rebuilt",
                    };
                    return Err(format!(
                        "{problem}; --array-degraded opens the array without it, if it tolerates that{rebuilt}"
                    ));
                }
                Err(problem) => return Err(problem.to_string()),
            }
        }
        // Its size is not known: records lie where the smallest drive has its last blocks.
        let smallest = under.iter().map(Under::info).min_by_key(|info| info.blocks);
        let Some(like) = smallest else {
            let whys = lacking.iter().map(|(number, why)| format!("{}: {why}", self.members[*number].name));
            return Err(format!("none of its drives can be used: {}", whys.collect::<Vec<_>>().join("; ")));
        };
        for (number, why) in lacking {
            under.insert(number, Under::absent(&self.members[number], like, why));
        }
        Ok(under)
    }

    fn names(&self, seed: u64) -> Names {
        let own = Seed::new(seed).child("served array").child(&self.name).child(&self.shape.to_string()).value();
        Names {
            nqn: format!("nqn.2026-11.org.nandscape:array-{own:016x}"),
            serial: format!("NA{own:016x}"),
            model: format!("Nandscape {}", self.shape),
            firmware: env!("CARGO_PKG_VERSION").chars().take(8).collect(),
        }
    }
}

/// The problem of an array that is opened without some of its drives.
fn without(under: &[Under], problem: String) -> String {
    let absent: Vec<&str> = under.iter().filter(|drive| drive.problem().is_some()).map(Under::name).collect();
    match absent.is_empty() {
        true => problem,
        false => format!(
            "{problem} (opened without {}, missing and taken to be as large as the smallest of the others: records are not found if one of them \
             is smaller)",
            absent.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live_drive::LowestSpec;

    /// The problem of an array of three drives of other servers, if two are one.
    fn problem(urls: [&str; 3]) -> Option<String> {
        let member = |(number, url): (usize, &str)| {
            let target = url.parse().expect("a valid URL");
            LowestSpec::Remote(RemoteSpec { name: format!("drive-{number}"), target, seed: 1 }).into()
        };
        let spec = ArraySpec {
            name: "array".to_owned(),
            shape: "raid5:3".parse().expect("a valid shape"),
            config: Config::default(),
            members: urls.into_iter().enumerate().map(member).collect(),
            creates: false,
            is_degraded: false,
            overwrites: false,
        };
        spec.check_distinct().err()
    }

    #[test]
    fn a_drive_is_a_member_once() {
        let url = |port: u16| format!("nvme-tcp://127.0.0.1:{port}/nqn.2026-11.org.nandscape:one");
        let (one, two, three) = (url(4_420), url(4_421), url(4_422));
        assert_eq!(problem([&one, &two, &three]), None);
        let found = problem([&one, &two, &one]).expect("two are one");
        assert!(found.contains("drive-0 and drive-2 are both nvme-tcp://127.0.0.1:4420/"), "{found}");
    }
}
