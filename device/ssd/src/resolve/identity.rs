//! `[identity]`: the names of a drive. Missing names derive from the profile's name and the drive's seed, so that the same
//! command line gives the same drive, and two drives of one run differ.

use nandscape_drive::Names;
use nandscape_sim::Seed;

use super::Result;
use super::bounds::wrong;
use crate::keys::IdentityKeys;

/// The longest NVMe Qualified Name, in bytes (Base 4.7).
const LONGEST_NQN: usize = 223;

/// Checks the given names.
pub(super) fn check(keys: &IdentityKeys) -> Result<()> {
    for (key, value, most) in [("identity.serial", &keys.serial, 20), ("identity.model", &keys.model, 40)] {
        let Some(value) = value else { continue };
        if !(1..=most).contains(&value.len()) {
            let bytes = value.len();
            return wrong(
                key,
                format!("{value:?} has {bytes} bytes; from 1 to {most} printable ASCII characters are valid"),
            );
        }
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return wrong(key, format!("{value:?} is not printable ASCII"));
        }
    }
    match &keys.nqn {
        Some(nqn) if !is_nqn(nqn) => wrong(
            "identity.nqn",
            format!(
                "{nqn:?} is no NVMe Qualified Name; \"nqn.2026-11.org.nandscape:a\" is one, of up to {LONGEST_NQN} bytes"
            ),
        ),
        _ => Ok(()),
    }
}

/// `nqn.yyyy-mm.domain`, with or without a string after a colon (Base 4.7).
fn is_nqn(nqn: &str) -> bool {
    let Some(rest) = nqn.strip_prefix("nqn.") else { return false };
    let date = rest.get(..8).unwrap_or("");
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        4 => byte == b'-',
        7 => byte == b'.',
        _ => byte.is_ascii_digit(),
    });
    nqn.len() <= LONGEST_NQN && is_date && rest.len() > 8 && !nqn.chars().any(|each| each.is_control() || each == ' ')
}

/// The names of a drive of this profile, built with `seed`.
pub(super) fn names(profile: &str, keys: &IdentityKeys, seed: Seed) -> Names {
    let derived = || format!("NS{:016X}", seed.child(profile).value());
    let serial = keys.serial.clone().unwrap_or_else(derived);
    let model = keys.model.clone().unwrap_or_else(|| model(profile));
    let nqn = keys.nqn.clone().unwrap_or_else(|| format!("nqn.2026-11.org.nandscape:{}", derived()));
    Names { nqn, serial, model, firmware: env!("CARGO_PKG_VERSION").to_owned() }
}

/// A profile's name may be a path.
fn model(profile: &str) -> String {
    let printable = profile.chars().map(|each| if each.is_ascii_graphic() { each } else { '_' });
    format!("Nandscape {}", printable.take(30).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_derive_from_profile_and_seed_or_are_given() {
        let derived = |profile, seed| names(profile, &IdentityKeys::default(), Seed::new(seed));
        let one = derived("default", 1);
        assert_eq!(one, derived("default", 1));
        // Golden: drives keep their names over releases.
        assert_eq!((&*one.serial, &*one.model), ("NS0EDF35270265EC71", "Nandscape default"));
        assert_eq!(one.nqn, format!("nqn.2026-11.org.nandscape:{}", one.serial));
        assert_ne!(one.serial, derived("default", 2).serial);
        assert_ne!(one.serial, derived("mqsim-mlc", 1).serial);
        assert_eq!(derived("a profile/ä.toml", 1).model, "Nandscape a_profile/_.toml");
        let given = IdentityKeys {
            serial: Some("S1".to_owned()),
            model: Some("M".to_owned()),
            nqn: Some("nqn.2014-08.org.example:x".to_owned()),
        };
        let given = names("default", &given, Seed::new(1));
        assert_eq!((&*given.serial, &*given.model, &*given.nqn), ("S1", "M", "nqn.2014-08.org.example:x"));
    }

    #[test]
    fn names_that_hosts_would_reject_are_refused() {
        for nqn in ["nqn.2014-08.org.nvmexpress:uuid:1", "nqn.2026-11.org"] {
            assert!(is_nqn(nqn), "{nqn}");
        }
        let long = format!("nqn.2026-11.org:{}", "a".repeat(208));
        for nqn in ["", "nqn.", "nqn.2026-11.", "nqn.26-11.org", "iqn.2026-11.org", "nqn.2026-11.org:a b", &long] {
            assert!(!is_nqn(nqn), "{nqn}");
        }
        let serial = |serial: &str| IdentityKeys { serial: Some(serial.to_owned()), ..IdentityKeys::default() };
        assert!(check(&serial("S 1")).is_ok());
        assert!(check(&serial("ä")).unwrap_err().to_string().contains("is not printable ASCII"));
    }
}
