//! The file of a point: its inputs, the program, its report without the machine-dependent part, and a digest of all
//! three. The same point gives the same bytes on any machine.

use std::path::Path;

use nandscape_lab_run::Program;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::point::Inputs;

/// The version of this form.
const SCHEMA: u32 = 1;
/// The most bytes of a file of results.
const MOST_BYTES: u64 = 1 << 30;

/// The program that this is a part of.
pub fn this_program() -> Program {
    Program::of(env!("NANDSCAPE_SOURCES"))
}

/// The content of a point's file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stored {
    schema: u32,
    program: Program,
    /// What it was measured with.
    pub inputs: Inputs,
    /// Why the run counts as failed although it has figures: requests failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The report, as of `nandscape sim --json`, without `host`.
    pub report: Value,
    digest: String,
}

impl Stored {
    pub(crate) fn new(inputs: Inputs, problem: Option<String>, report: Value) -> Stored {
        let mut stored =
            Stored { schema: SCHEMA, program: this_program(), inputs, problem, report, digest: String::new() };
        stored.digest = stored.digest();
        stored
    }

    fn digest(&self) -> String {
        let plain = Stored { digest: String::new(), ..self.clone() };
        format!("{:032x}", xxh3_128(plain.to_json().as_bytes()))
    }

    /// The bytes of the file.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data");
        text.push('\n');
        text
    }

    /// Reads the file of a point that this program measured with these inputs.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8], inputs: &Inputs) -> Result<Stored, String> {
        let stored: Stored = serde_json::from_slice(text).map_err(|error| match error.is_eof() {
            true => "breaks off".to_owned(),
            false => format!("is not the file of a point ({error})"),
        })?;
        if stored.schema != SCHEMA {
            return Err(format!("has form {} where this program writes {SCHEMA}", stored.schema));
        }
        if stored.digest != stored.digest() {
            return Err("was changed after it was written".to_owned());
        }
        if stored.inputs != *inputs || stored.program != this_program() {
            return Err("is of another point or program".to_owned());
        }
        Ok(stored)
    }

    /// What was measured in another process, or why that failed.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn received(result: Result<&str, String>, inputs: &Inputs) -> Result<Stored, String> {
        let stored = Stored::parse(result?.as_bytes(), inputs);
        stored.map_err(|wrong| format!("the result {wrong}; the process that measures must be of the same version"))
    }

    /// What a file holds: nothing if there is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn find(file: &Path, inputs: &Inputs) -> Result<Option<Stored>, String> {
        match nandscape_files::input::bytes(file, MOST_BYTES, "result") {
            Ok(text) => Stored::parse(&text, inputs).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot be read ({error})")),
        }
    }
}
