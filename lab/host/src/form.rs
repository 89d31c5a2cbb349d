//! The profile as text. Each key has its source: the method and the spread, or the profile that it is taken from.

use nandscape_host_path::Profile;
use toml::Value;

use crate::findings::{Finding, Measured};
use crate::processors;

/// The profile, by what was found; the other keys are those of `base`.
///
/// # Errors
/// When the machine is none that can be modelled: which key, and what would be valid.
pub fn profile(findings: &[Finding], base: &Profile, program: &str) -> Result<String, String> {
    let description = format!(
        "{}, Linux {}, measured by {program}; other costs of {}",
        processors::model(),
        processors::kernel(),
        base.name
    );
    let mut lines = [Vec::new(), Vec::new(), Vec::new()];
    let [measured, taken, sources] = &mut lines;
    for Finding { key, found } in findings {
        let (value, source) = match found {
            Ok(measured_value) => (measured_value.value.clone(), source(measured_value)),
            Err(why) => (setting(base, key), of_base(base, key, &format!("not measured: {why}"))),
        };
        let section = if found.is_ok() { &mut *measured } else { &mut *taken };
        section.push(line(key, &value));
        sources.push(line(key, &source));
    }
    // What is no cost of a machine, and what the base chooses.
    for key in base.given.keys().filter(|key| !findings.iter().any(|finding| finding.key == *key)) {
        taken.push(line(key, &setting(base, key)));
        sources.push(line(key, &of_base(base, key, "not a matter of this machine")));
    }
    let text = format!(
        "# The machine of the description. [source] has the method and the spread of each key.\nversion = 1\ndescription = {}\n\n\
         [host]\n# Measured here.\n{}\n# Taken from {}.\n{}\n\n[source]\n{}\n",
        quoted(&description),
        measured.join("\n"),
        base.name,
        taken.join("\n"),
        sources.join("\n")
    );
    Profile::parse("the measured host", &text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn line(key: &str, value: &str) -> String {
    format!("{key} = {}", quoted(value))
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn source(Measured { spread, how, .. }: &Measured) -> String {
    if spread.is_empty() { how.clone() } else { format!("{how}: {spread}") }
}

fn setting(base: &Profile, key: &str) -> String {
    let settings = base.config.settings();
    let found = settings.into_iter().find(|(of, _)| of.strip_prefix("host.") == Some(key));
    found.map_or_else(String::new, |(_, value)| value)
}

fn of_base(base: &Profile, key: &str, why: &str) -> String {
    let source = base.source_of(&format!("host.{key}")).unwrap_or_else(|| "the default".to_owned());
    format!("{why}; {}: {source}", base.name)
}
