//! `serve --array`: the drives of a command line as members of one array.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{ArraySpec, LiveSpec};
use nandscape_layers_array::{Config, JournalMode, Shape, Technique};

use super::args::input;
use super::drives::check_member;
use super::plan::Named;
use super::stores::StoreArg;
use crate::failure::Failure;
use crate::output;

/// The name of an array that has none.
const NAME: &str = "array";

/// The value of `--array`.
#[derive(Clone, Debug)]
pub(super) struct ArrayArg {
    /// The name that clients use.
    pub(super) name: String,
    /// Level and members.
    pub(super) shape: Shape,
}

impl FromStr for ArrayArg {
    type Err = String;

    fn from_str(word: &str) -> Result<ArrayArg, String> {
        let (name, shape) = word.split_once('=').unwrap_or((NAME, word));
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err("its name is empty, or has control characters; NAME=LEVEL:N is valid".to_owned());
        }
        Ok(ArrayArg { name: name.to_owned(), shape: shape.parse().map_err(|error| format!("{error}"))? })
    }
}

impl ArrayArg {
    /// The drives of the array: the named ones; or, with a single profile, one drive of it for each member and spare.
    pub(super) fn members<'a>(
        &self,
        named: Vec<(String, Named<'a>)>,
        spares: usize,
    ) -> Result<Vec<(String, Named<'a>)>, Failure> {
        let (wanted, given) = (self.shape.members, named.len());
        match named.into_iter().collect::<Vec<_>>() {
            one if given == 1 => match &one[0] {
                (name, Named::Profile(profile)) => Ok((0..wanted + spares)
                    .map(|number| (format!("{name}-{number}"), Named::Profile(profile)))
                    .collect()),
                (name, _) => input(format!(
                    "array {}: drive {name:?} is one drive; give {wanted} of them, each with its own --drive",
                    self.shape
                )),
            },
            few if given < wanted => input(format!(
                "array {}: it needs {wanted} drives, and there are {}; give one --drive P for all, or {wanted} of them, and more \
                 as spares",
                self.shape,
                few.len()
            )),
            _ if spares > 0 => input(format!(
                "array.spares={spares}: the drives are named one by one, and those beyond the {wanted} members are spares: leave it out, \
                 or give one --drive P for all"
            )),
            all => Ok(all),
        }
    }

    /// Stores of the members: a path that names no drive is for all of them, with a separate file for each.
    pub(super) fn spread(words: &[String], names: &[String]) -> Vec<String> {
        let is_path = |word: &String| {
            let is_kind = word == "ram" || word == "none";
            let names_one =
                names.iter().any(|name| word.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('=')));
            !is_kind && !names_one && !word.contains("://")
        };
        let of = |word: &String| match is_path(word) {
            false => vec![word.clone()],
            true => {
                let path = word.strip_prefix("file:").unwrap_or(word);
                names.iter().enumerate().map(|(number, name)| format!("{name}=file:{path}.{number}")).collect()
            }
        };
        words.iter().flat_map(of).collect()
    }

    /// The failure of an array that cannot be planned.
    pub(super) fn refused(&self, problem: impl Display) -> Failure {
        Failure::Input(anyhow::anyhow!("{} ({}): {problem}", self.name, self.shape))
    }

    /// Members in memory together with members that outlast the server: each start finds those in memory empty. The array is then
    /// degraded until they are rebuilt, which is reported. If that would lose the array, or pass unnoticed, it is rejected.
    fn check_lasting(&self, drives: &[LiveSpec], stores: &[StoreArg], config: &Config) -> Result<(), Failure> {
        let members = drives.iter().zip(stores).take(self.shape.members);
        let ending = members.filter(|(drive, store)| drive.remote().is_none() && store.path().is_none());
        let ending: Vec<&str> = ending.map(|(drive, _)| &*drive.name).collect();
        if ending.is_empty() || ending.len() == self.shape.members {
            return Ok(());
        }
        let (names, tolerates) = (ending.join(", "), self.shape.level().tolerates());
        let valid = format!("give each a file, such as --store {}=file:PATH", ending[0]);
        let array = format!("{} ({})", self.name, self.shape);
        if config.journal == JournalMode::None {
            return input(format!(
                "{array}: members in memory ({names}) are empty after a restart, and with array.journal=none the array would not \
                 notice; {valid}, or give array.journal=intent"
            ));
        }
        if ending.len() > tolerates {
            return input(format!(
                "{array}: members in memory ({names}) are empty after a restart, and it tolerates the loss of {tolerates}; {valid}"
            ));
        }
        let crash = match config.journal {
            JournalMode::Intent if self.shape.level().checks() > 0 => {
                "; after a crash amid writes it opens by array.force only, unless array.journal=data"
            }
            _ => "",
        };
        output::note(&format!(
            "{array}: members in memory ({names}) are empty after a restart: the array is degraded then, until they are rebuilt\
             {crash}; {valid}"
        ));
        Ok(())
    }

    /// The array over its drives.
    pub(super) fn over(
        &self,
        drives: &[LiveSpec],
        stores: &[StoreArg],
        (mut config, below): (Config, &Chain),
        [creates, is_degraded, overwrites]: [bool; 3],
    ) -> Result<ArraySpec, Failure> {
        let refused = |problem: &str| Err(self.refused(problem));
        if config.technique == Technique::Rails {
            return refused(
                "array.technique=rails keeps writes of seconds in the host's memory, and is for nandscape sim",
            );
        }
        let keeps_nothing = stores.contains(&StoreArg::None);
        if keeps_nothing && config.journal == JournalMode::Data {
            return refused("drives with --store none keep no journal; array.journal=data needs data");
        }
        if is_degraded && config.journal == JournalMode::None {
            return refused(
                "--array-degraded needs records of the drive that was out of reach, and array.journal=none has none: the drive would be taken \
                 for a current one when it is back",
            );
        }
        self.check_lasting(drives, stores, &config)?;
        drives.iter().try_for_each(|drive| check_member(drive, self, &config))?;
        let mut members = drives.to_vec();
        members.iter_mut().for_each(|member| member.chain.layers.extend(below.layers.iter().cloned()));
        let (name, shape) = (self.name.clone(), self.shape);
        // The keys of a hasher are the system's randomness: two arrays of one command line differ in more than their time.
        #[expect(clippy::disallowed_methods, reason = "it has to differ from run to run")]
        let random = RandomState::new().build_hasher().finish();
        config.identity = format!("{name} {random:016x}");
        Ok(ArraySpec { name, shape, config, members, creates, is_degraded, overwrites })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_alone_is_that_of_all_members() {
        let array: ArrayArg = "raid5:4".parse().unwrap();
        let members = array.members(vec![("fast".to_owned(), Named::Profile("default"))], 0).unwrap();
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["fast-0", "fast-1", "fast-2", "fast-3"]);
        let spare = array.members(vec![("fast".to_owned(), Named::Profile("default"))], 1).unwrap();
        assert_eq!((spare.len(), &*spare[4].0), (5, "fast-4"));
        let three = (0..3).map(|number| (number.to_string(), Named::Profile("default"))).collect();
        assert!(array.members(three, 0).err().unwrap().to_string().contains("it needs 4 drives, and there are 3"));
        let five: Vec<_> = (0..5).map(|number| (number.to_string(), Named::Url("nvme-tcp://h:1/nqn.x"))).collect();
        assert_eq!(array.members(five, 0).unwrap().len(), 5);
        let five: Vec<_> = (0..5).map(|number| (number.to_string(), Named::Url("nvme-tcp://h:1/nqn.x"))).collect();
        assert!(array.members(five, 1).err().unwrap().to_string().contains("named one by one"));
        let url = vec![("a".to_owned(), Named::Url("nvme-tcp://h:1/nqn.x"))];
        assert!(array.members(url, 0).err().unwrap().to_string().contains("each with its own --drive"));
    }

    #[test]
    fn an_array_has_a_level_and_perhaps_a_name() {
        let named: ArrayArg = "mine=raid6:5".parse().unwrap();
        assert_eq!((named.name.as_str(), named.shape.members), ("mine", 5));
        assert_eq!("raid0:2".parse::<ArrayArg>().unwrap().name, "array");
        for word in ["raid5", "raid5:2", "raid7:3", "=raid5:3", "raid5:x", ""] {
            assert!(word.parse::<ArrayArg>().is_err(), "{word:?}");
        }
    }

    #[test]
    fn a_path_is_for_all_members() {
        let names = ["a", "b"].map(str::to_owned);
        let of = |word: &str| ArrayArg::spread(&[word.to_owned()], &names);
        assert_eq!(of("file:x"), ["a=file:x.0", "b=file:x.1"]);
        assert_eq!(of("x"), ["a=file:x.0", "b=file:x.1"]);
        for word in ["ram", "none", "a=file:y", "nvme-tcp://h:1/nqn.x"] {
            assert_eq!(of(word), [word]);
        }
    }
}
