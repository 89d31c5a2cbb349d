//! Arrays of arrays, and arrays that are recorded: models in memory under the layers of a simulation, served as one drive.

use nandscape_lab_run::chain::{Chain, Named as NamedLayer, drives_below};
use nandscape_lab_run::notes_of_each;
use nandscape_lab_run::{LiveSpec, LowestSpec};

use super::args::{ServeArgs, input};
use super::plan::{Named, Part};
use super::stores::StoreArg;
use super::{assign, drives, faults, layers, memory, states};
use crate::failure::Failure;
use crate::sim_layers::check_live;

/// What else is valid.
const VALID: &str = "models in memory (--store ram or none) are valid below several arrays, and below a recorded one; one array without \
    --record lies over files and remote drives, too";

/// Layers that take several drives, with arrays among them.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The layers as words, the lowest first.
    pub(super) words: Vec<String>,
    /// The name that clients use.
    pub(super) name: String,
}

impl Group {
    /// The layers and the changes of the drives' keys.
    fn split(&self, set: &[String]) -> Result<(Chain, Vec<String>), Failure> {
        layers::split(&self.words, set)
    }

    /// The drives: the named ones; or, with a single profile, as many of it as the layers take.
    pub(super) fn members<'a>(
        &self,
        named: Vec<(String, Named<'a>)>,
        set: &[String],
    ) -> Result<Vec<(String, Named<'a>)>, Failure> {
        let layers = self.resolve(&self.split(set)?.0)?;
        let (wanted, given) = (drives_below(&layers), named.len());
        match &named[..] {
            [(name, Named::Profile(profile))] => {
                Ok((0..wanted).map(|number| (format!("{name}-{number}"), Named::Profile(profile))).collect())
            }
            _ if given == wanted => Ok(named),
            _ => input(format!(
                "--over {}: the layers take {wanted} drives, and there are {given}; give one --drive P for all, or {wanted} of them",
                self.words.join(" --over ")
            )),
        }
    }

    fn resolve(&self, chain: &Chain) -> Result<Vec<NamedLayer>, Failure> {
        chain.resolve().map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))
    }
}

impl ServeArgs {
    /// The drives of its only reactor.
    pub(super) fn plan_group(&self, group: &Group) -> Result<Vec<Part>, Failure> {
        let named = self.named()?;
        let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let (faults, stores) = (faults::of_each(&self.fault, &names)?, self.stores_of(&names)?);
        self.check_group(&names)?;
        self.check_stores(&named, &stores)?;
        let (mut chain, set) = group.split(&self.set)?;
        if self.no_delay {
            chain.without_delay();
        }
        let layers = group.resolve(&chain)?;
        let (mut lowest, mut decided) = (Vec::new(), Vec::new());
        for (number, (name, what)) in named.into_iter().enumerate() {
            let refused = |where_it_is: &str| input(format!("drive {name} is {where_it_is}: {VALID}"));
            match (&what, &stores[number]) {
                (Named::Profile(_) | Named::Stored(_), StoreArg::Ram | StoreArg::None) => {}
                (Named::Url(url), _) => return refused(url),
                (_, StoreArg::File(path)) => return refused(&format!("in {}", path.display())),
                (_, StoreArg::OpenChannel(target)) => return refused(&format!("over {target}")),
            }
            let resolved = what.resolve(&set, &faults[number])?;
            check_live(&layers, (&name, &resolved))?;
            let (spec, notes) = self.spec(name, resolved, (number as u64, &stores[number]));
            decided.push((spec.name.clone(), notes));
            lowest.push(spec);
        }
        if let Some(path) = self.state_files()?.first() {
            self.check_only_state((&group.name, path.display()))?;
            states::begin_in(&mut lowest, Some(path), &layers)?;
        }
        let of_drives: Vec<(&str, &[String])> = decided.iter().map(|(name, notes)| (&**name, &**notes)).collect();
        notes_of_each(&of_drives).iter().for_each(|note| crate::output::note(note));
        let drives = lowest.into_iter().map(LowestSpec::Model).collect();
        let mut drive = LiveSpec { name: group.name.clone(), drives, chain, is_engine: false };
        memory::tell_if_too_large(if stores.contains(&StoreArg::Ram) { drives::memory(&drive) } else { 0 });
        let shared = self.shared(1)?;
        drive.set_shared(shared[0]);
        let assign = assign::of_each(&self.assign, std::slice::from_ref(&group.name))?;
        Ok(vec![Part { seed: self.seed(), drives: vec![drive], shared, assign }])
    }

    /// Options that such drives do not have.
    fn check_group(&self, names: &[String]) -> Result<(), Failure> {
        if let Some(twice) = (1..names.len()).find(|number| names[..*number].contains(&names[*number])) {
            return input(format!("--drive: two drives are called {:?}; each needs its own name", names[twice]));
        }
        if self.reactors > 1 {
            return input(format!("--reactors {}: one drive is served, on one thread; 1 is valid", self.reactors));
        }
        let given = [
            ("--save-state", !self.save_state.is_empty(), "`nandscape sim --save-state` saves states of arrays"),
            ("--array-create", self.array_create, "the arrays are new and keep no records"),
            ("--array-degraded", self.array_degraded, "the arrays are new and keep no records"),
            ("--array-overwrite", self.array_overwrite, "the arrays are new and keep no records"),
        ];
        match given.iter().find(|(_, is_given, _)| *is_given) {
            Some((option, _, why)) => input(format!("{option}: {why}; leave it out")),
            None => Ok(()),
        }
    }
}
