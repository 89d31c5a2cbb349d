//! Orders to an array at work: to take a member out of service, to make a drive a spare again, to scrub; and the drive that a fault
//! or a setting is for.

use std::rc::Rc;

use nandscape_layers_array::Array;

use crate::array_members::in_words;

/// The setting that takes a member out of service.
const FAIL: &str = "array.fail";
/// The setting that begins a scrub.
const SCRUB: &str = "array.scrub";
/// The setting that makes a drive a spare again.
const SPARE: &str = "array.spare";

/// The name of the drive in an order that names one.
pub(crate) fn drive_of(setting: &str) -> Option<&str> {
    setting.split_once('=').filter(|(key, _)| [FAIL, SPARE].contains(key)).map(|(_, name)| name)
}

/// Whether a setting is an order to scrub.
pub(crate) fn is_scrub(setting: &str) -> bool {
    setting.split_once('=').is_some_and(|(key, _)| key == SCRUB)
}

/// An order to an array over drives of these names, some of which may be absent. `None` of a setting that is none.
pub(crate) fn obey(
    array: &Rc<Array>,
    drives: &[&str],
    is_absent: impl Fn(usize) -> bool,
    setting: &str,
) -> Option<Result<(), String>> {
    let (key, value) = setting.split_once('=')?;
    let number = || {
        let known = drives.iter().position(|drive| *drive == value);
        known.ok_or_else(|| unknown(drives, setting, value))
    };
    match (key, value) {
        (FAIL, name) => Some(number().and_then(|number| fail(array, number, name))),
        (SPARE, name) => Some(number().and_then(|number| spare(array, number, name, is_absent(number)))),
        (SCRUB, "start") => Some(scrub(array)),
        (SCRUB, other) => Some(Err(format!("{SCRUB}={other}: start is valid"))),
        (key, _) if key.starts_with("array.") => {
            Some(Err(format!("{key} does not change at work; {FAIL}=DRIVE, {SPARE}=DRIVE and {SCRUB}=start are valid")))
        }
        _ => None,
    }
}

/// The number of the drive whose name begins a fault rule, and the rule behind its `=`; `None` of a rule for all drives.
///
/// # Errors
/// That no drive has the name.
pub(crate) fn fault_of<'a>(drives: &[&str], text: &'a str) -> Result<Option<(usize, &'a str)>, String> {
    let rule = |name: &str| text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    let named = drives.iter().enumerate().filter_map(|(number, name)| Some((number, rule(name)?)));
    // If one name begins with the other, the longer one.
    match named.min_by_key(|(_, rule)| rule.len()) {
        Some(found) => Ok(Some(found)),
        // The first word of a rule has no `=` in it.
        None => match text.split_whitespace().next().and_then(|word| word.split_once('=')) {
            Some((name, _)) => Err(unknown(drives, &format!("fault={name}"), name)),
            None => Ok(None),
        },
    }
}

/// The number of the drive whose name and a dot begin a setting, and the setting behind them: `drive-1.gc.run=1s`.
pub(crate) fn of_one<'a>(drives: &[&str], setting: &'a str) -> Option<(usize, &'a str)> {
    let own = |name: &str| setting.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    let named = drives.iter().enumerate().filter_map(|(number, name)| Some((number, own(name)?)));
    // If one name begins with the other, the longer one.
    named.min_by_key(|(_, own)| own.len())
}

/// # Errors
/// That an order for collections names a drive that is none of these: `nope.gc.run=1s`.
pub(crate) fn check_unnamed(drives: &[&str], setting: &str) -> Result<(), String> {
    setting.split_once(".gc.").map_or(Ok(()), |(name, _)| Err(unknown(drives, setting, name)))
}

/// Settings of a drive below an array, with its name.
pub(crate) fn settings_of(name: &str, settings: Vec<(String, String)>) -> impl Iterator<Item = (String, String)> {
    settings.into_iter().map(move |(key, value)| (format!("{name}.{key}"), value))
}

/// A name that is none of the drives.
pub(crate) fn unknown(drives: &[&str], order: &str, name: &str) -> String {
    format!("{order}: the array has no drive {name:?}; its drives are {}", drives.join(", "))
}

fn fail(array: &Rc<Array>, number: usize, name: &str) -> Result<(), String> {
    let Some(member) = array.member_of(number) else {
        return Err(format!("{FAIL}={name}: the drive is no member now"));
    };
    if !array.can_lose(member) {
        return Err(format!(
            "{FAIL}={name}: {} would lose data without it, as {} missing",
            array.shape(),
            in_words(&array.missing())
        ));
    }
    array.fail_member(member);
    Ok(())
}

fn spare(array: &Rc<Array>, number: usize, name: &str, is_absent: bool) -> Result<(), String> {
    if is_absent {
        return Err(format!(
            "{SPARE}={name}: the drive was missing when the array was opened; open it again when it is back"
        ));
    }
    match array.add_spare(number) {
        true => Ok(()),
        false => Err(format!("{SPARE}={name}: the drive is a member at work, or stands by already")),
    }
}

fn scrub(array: &Rc<Array>) -> Result<(), String> {
    if array.shape().level().tolerates() == 0 {
        return Err(format!("{SCRUB}=start: {} has no parity and no copies to compare", array.shape()));
    }
    if !array.missing().is_empty() {
        return Err(format!(
            "{SCRUB}=start: {} missing, and a scrub compares whole stripes; it is valid once all are rebuilt",
            in_words(&array.missing())
        ));
    }
    match array.start_scrub() {
        true => Ok(()),
        false => Err(format!("{SCRUB}=start: a scrub is under way")),
    }
}
