//! What the options of `serve` ask of the drives that it plans.

use std::path::Path;

use nandscape_lab_run::{DriveSpec, LiveSpec, LowestSpec};
use nandscape_layers_array::Config;

use super::args::input;
use super::array::ArrayArg;
use super::stores::Role;
use crate::failure::Failure;
use crate::sim_layers::check_windows;

/// What the drives in files are to be.
pub(super) fn role(spec: &LiveSpec) -> Role {
    match spec.only() {
        Some(LowestSpec::Array(array)) if array.creates => Role::NewMember,
        Some(LowestSpec::Array(_)) => Role::Member,
        _ => Role::Alone,
    }
}

/// The file of a store cannot be opened, for this reason: an array may start without some members.
///
/// # Errors
/// The reason, if the drive cannot start without the file.
pub(super) fn start_without(spec: &mut LiveSpec, store: usize, problem: String) -> Result<(), String> {
    let Some(LowestSpec::Array(array)) = spec.drives.first_mut() else { return Err(problem) };
    match array.members[store].drives.first_mut() {
        Some(member @ LowestSpec::Model(_)) => {
            let LowestSpec::Model(model) = member.clone() else { return Err(problem) };
            *member = LowestSpec::Unreadable(model, problem);
            Ok(())
        }
        _ => Err(problem),
    }
}

/// What the blocks of a drive are in that must be written in order, if they are.
pub(super) fn written_in_order(spec: &LiveSpec) -> Option<&'static str> {
    match spec.only()? {
        LowestSpec::Model(model) if spec.chain.is_empty() => {
            nandscape_lab_run::written_in_order(&model.resolve().ok()?)
        }
        _ => None,
    }
}

/// Checks that layers can lie over a drive.
pub(super) fn check_below_layers(spec: &LiveSpec) -> Result<(), Failure> {
    let Some(LowestSpec::Model(model)) = spec.only().filter(|_| !spec.is_over_chunks()) else { return Ok(()) };
    let name = &spec.name;
    if let Some(has) = written_in_order(spec) {
        return input(format!("--over: drive {name} has {has}, and layers pass on reads and writes anywhere"));
    }
    let parts = model.resolve().map_err(Failure::input)?.parts().len();
    if parts > 1 {
        return input(format!(
            "--over: drive {name} has {parts} parts with a namespace each, and a layer is over one; leave out --over and the keys of block"
        ));
    }
    Ok(())
}

/// Checks that a drive can be a member of an array.
pub(super) fn check_member(spec: &LiveSpec, array: &ArrayArg, config: &Config) -> Result<(), Failure> {
    let Some(LowestSpec::Model(model)) = spec.only().filter(|_| !spec.is_over_chunks()) else { return Ok(()) };
    if let Some(has) = written_in_order(spec) {
        return Err(array.refused(format!("drive {} has {has}, and members are written anywhere", spec.name)));
    }
    check_windows(config, (&spec.name, &model.resolve().map_err(Failure::input)?))?;
    // A new array takes its drives to hold zeros, which its parity fits.
    if model.keeps_data
        && let Some(from) = &model.from_state
        && from.open().map_err(Failure::input)?.keeps_data()
    {
        return Err(array.refused(format!(
            "the state of drive {} in {} has data, which the array's parity would not fit; give --store none, which leaves it out, or \
             a state without data",
            spec.name,
            from.path.display()
        )));
    }
    Ok(())
}

/// Checks that the state of a drive, which may be in a file itself, can be saved to `path` at the end.
///
/// # Errors
/// Why not.
pub(super) fn check_save(spec: &LiveSpec, store: Option<&Path>, path: &Path) -> Result<(), String> {
    match (spec.only(), store) {
        (Some(LowestSpec::Model(_)), Some(store)) => {
            Err(format!("the drive is in {}, which has its state", store.display()))
        }
        (Some(LowestSpec::Model(model)), None) => model.check_can_be_saved(path).map_err(|error| error.to_string()),
        (Some(LowestSpec::Remote(remote)), _) if spec.is_over_chunks() => Err(format!(
            "the drive is an FTL over {}, whose state is where it is served; an FTL over a model is valid",
            remote.target
        )),
        (Some(LowestSpec::Remote(_)), _) => Err("the drive is remote; its state is where it is served".to_owned()),
        (Some(LowestSpec::Unreadable(..) | LowestSpec::Array(_)) | None, _) => {
            Err("a state is of one drive".to_owned())
        }
    }
}

/// Bytes that this process may keep for a drive.
pub(super) fn memory(spec: &LiveSpec) -> u64 {
    let of = |spec: &DriveSpec| spec.resolve().map_or(0, |resolved| resolved.capacity());
    spec.models().into_iter().flatten().map(of).sum()
}
