//! A line of the control socket: a command and its fields.

use serde::Deserialize;
use serde_json::{Value, json};

/// A command with its fields.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Help,
    /// Report whether the drives serve, or the progress of the start.
    Status,
    Statistics,
    Stop,
    /// Add a fault rule.
    Fault {
        drive: Option<String>,
        rule: String,
    },
    /// List the fault rules and their counts.
    Faults,
    /// Remove all fault rules.
    ClearFaults {
        drive: Option<String>,
    },
    /// Change a setting.
    Set {
        drive: Option<String>,
        key: String,
        value: String,
    },
    /// List the settings that can be changed.
    Settings,
    /// Put another drive in the place of a lost one.
    Replace {
        drive: String,
        with: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    command: Name,
    drive: Option<String>,
    rule: Option<String>,
    key: Option<String>,
    value: Option<Value>,
    with: Option<String>,
}

#[derive(Copy, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Help,
    Status,
    Statistics,
    Stop,
    Fault,
    Faults,
    ClearFaults,
    Set,
    Settings,
    Replace,
}

impl Command {
    /// # Errors
    /// The problem with the line.
    pub(crate) fn parse(text: &[u8]) -> Result<Command, String> {
        let Line { command, drive, rule, key, value, with } =
            serde_json::from_slice(text).map_err(|problem| match problem.is_data() {
                true => problem.to_string(),
                false => format!("a command is one JSON object a line, as {{\"command\":\"help\"}}: {problem}"),
            })?;
        if !matches!(command, Name::Set) && (key.is_some() || value.is_some()) {
            return Err("only `set` takes a `key` and a `value`".to_owned());
        }
        if !matches!(command, Name::Replace) && with.is_some() {
            return Err("only `replace` takes a drive to use in another's place, `with`".to_owned());
        }
        let alone = |command| match (&drive, &rule) {
            (None, None) => Ok(command),
            (Some(_), _) => Err("this command is about all drives, and takes no `drive`".to_owned()),
            (None, Some(_)) => Err("this command takes no `rule`".to_owned()),
        };
        match (command, &rule) {
            (Name::Help, _) => alone(Command::Help),
            (Name::Status, _) => alone(Command::Status),
            (Name::Statistics, _) => alone(Command::Statistics),
            (Name::Stop, _) => alone(Command::Stop),
            (Name::Faults, _) => alone(Command::Faults),
            (Name::Settings, _) => alone(Command::Settings),
            (Name::Replace, Some(_)) => Err("this command takes no `rule`".to_owned()),
            (Name::Replace, None) => match (drive, with) {
                (Some(drive), Some(with)) => Ok(Command::Replace { drive, with }),
                (None, _) => Err("missing field `drive`: the drive that is lost".to_owned()),
                (_, None) => Err("missing field `with`: the URL of the drive in its place".to_owned()),
            },
            (Name::Set, Some(_)) => Err("a setting has a `key` and a `value`, and takes no `rule`".to_owned()),
            (Name::Set, None) => match (key, value) {
                (Some(key), Some(Value::String(value))) => Ok(Command::Set { drive, key, value }),
                (Some(key), Some(value @ (Value::Number(_) | Value::Bool(_)))) => {
                    Ok(Command::Set { drive, key, value: value.to_string() })
                }
                (Some(_), Some(_)) => Err("`value` is a number, true, false or a text".to_owned()),
                (None, _) => Err("missing field `key`: the setting, as in \"ftl.ox_block.gc_slots\"".to_owned()),
                (_, None) => Err("missing field `value`: what the setting becomes".to_owned()),
            },
            (Name::Fault, Some(_)) => Ok(Command::Fault { drive, rule: rule.unwrap_or_default() }),
            (Name::Fault, None) => Err("missing field `rule`: the fault, as in \"uncorrectable lba=0-7\"".to_owned()),
            (Name::ClearFaults, None) => Ok(Command::ClearFaults { drive }),
            (Name::ClearFaults, Some(_)) => Err("all rules are cleared, and there is no `rule` to give".to_owned()),
        }
    }
}

/// The meaning of each command.
pub(crate) fn help() -> Value {
    json!({
        "help": "this",
        "status": "whether the drives serve; until then the phase of the start, the drive, and the share that is done, from 0 to 1",
        "statistics": "figures of all drives since they began, schema 1",
        "stop": "receive no more requests, complete those in work, flush, and end",
        "fault": "add a fault rule for a drive's flash, from now on. `drive`: its name, may be left out if there is only one; `rule`: the \
            rule, a text such as \"uncorrectable lba=0-7\"",
        "faults": "the rules of all drives, with the operations that each matched and struck",
        "clear_faults": "remove all rules of a drive; their effects so far remain. `drive`: as for `fault`",
        "set": "change a setting of a drive, from now on until it is turned off. `drive`: as for `fault`; `key`: a key that `settings` \
            has, or of an array `array.fail` and `array.spare` with a drive's name, and `array.scrub` with \"start\", or for collections `gc.watermarks`, `gc.run` and `gc.ready_for_read`; `value`: a number, true, false \
            or a text",
        "settings": "the settings of all drives that can be changed, as they are now",
        "replace": "put another drive in the place of a lost one, and rebuild it (nandscape memcached). `drive`: the lost drive; `with`: the URL of \
            the other one, or \"new\" for a new drive of the process",
    })
}

/// Valid lines.
pub(crate) fn valid() -> Value {
    json!([
        { "command": "help" },
        { "command": "statistics" },
        { "command": "status" },
        { "command": "stop" },
        { "command": "fault", "drive": "NAME", "rule": "uncorrectable lba=0-7" },
        { "command": "faults" },
        { "command": "clear_faults", "drive": "NAME" },
        { "command": "set", "drive": "NAME", "key": "ftl.ox_block.gc_slots", "value": 4 },
        { "command": "settings" },
        { "command": "replace", "drive": "NAME", "with": "nvme-tcp://HOST:PORT/NQN" },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_what_it_needs_and_nothing_else() {
        let parse = |text: &str| Command::parse(text.as_bytes());
        let (drive, rule) = (Some("a".to_owned()), "fail".to_owned());
        let whole = r#"{"command":"fault","drive":"a","rule":"fail"}"#;
        assert_eq!(parse(whole), Ok(Command::Fault { drive: drive.clone(), rule: rule.clone() }));
        assert_eq!(parse(r#"{"rule":"fail","command":"fault"}"#), Ok(Command::Fault { drive: None, rule }));
        assert_eq!(parse(r#"{"command":"clear_faults","drive":"a"}"#), Ok(Command::ClearFaults { drive }));
        assert_eq!(parse(r#"{"command":"faults"}"#), Ok(Command::Faults));
        let set = |value: &str| Ok(Command::Set { drive: None, key: "k".to_owned(), value: value.to_owned() });
        assert_eq!(parse(r#"{"command":"set","key":"k","value":"10s"}"#), set("10s"));
        assert_eq!(parse(r#"{"command":"set","key":"k","value":4}"#), set("4"));
        for (text, problem) in [
            (r#"{"command":"fault","drive":"a"}"#, "missing field `rule`"),
            (r#"{"command":"fault","rule":7}"#, "expected a string"),
            (r#"{"command":"faults","drive":"a"}"#, "takes no `drive`"),
            (r#"{"command":"stop","rule":"fail"}"#, "takes no `rule`"),
            (r#"{"command":"clear_faults","rule":"fail"}"#, "no `rule` to give"),
            (r#"{"command":"set","value":1}"#, "missing field `key`"),
            (r#"{"command":"set","key":"a"}"#, "missing field `value`"),
            (r#"{"command":"set","key":"a","value":[1]}"#, "a number, true, false or a text"),
            (r#"{"command":"settings","drive":"a"}"#, "takes no `drive`"),
            (r#"{"command":"faults","key":"a"}"#, "only `set` takes"),
            (r#"{"command":"faults","with":"a"}"#, "only `replace` takes"),
            (r#"{"command":"replace","with":"a"}"#, "missing field `drive`"),
            (r#"{"command":"replace","drive":"a"}"#, "missing field `with`"),
            (r#"{"command":"replace","drive":"a","with":"b","rule":"fail"}"#, "takes no `rule`"),
        ] {
            assert!(parse(text).unwrap_err().contains(problem), "{text}");
        }
    }

    #[test]
    fn lines_said_to_be_right_are_and_help_tells_of_each() {
        for line in valid().as_array().unwrap() {
            assert!(Command::parse(line.to_string().as_bytes()).is_ok(), "{line}");
            let told = help()[line["command"].as_str().unwrap()].as_str().unwrap().to_owned();
            let fields = line.as_object().unwrap().keys().filter(|key| *key != "command");
            fields.for_each(|field| assert!(told.contains(&format!("`{field}`")), "{line}: {told}"));
        }
        assert_eq!(help().as_object().unwrap().len(), valid().as_array().unwrap().len());
    }
}
