//! A chain in a TOML file: a table for each layer, the lowest first.
//!
//! ```toml
//! version = 1
//!
//! [[layer]]
//! kind = "raid1:2"
//! name = "low"
//! technique = "tea2"
//!
//! [[layer]]
//! kind = "cache"
//! memory = "64MiB"
//! ```
//!
//! `over = ["drive-0", "low"]` names the drives and layers that a layer lies over.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::{Chain, LayerWords};

/// The most bytes of such a file.
const MOST: u64 = 1 << 20;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    layer: Vec<Table>,
}

impl Chain {
    /// The layers of a file.
    ///
    /// # Errors
    /// The file with what is wrong in it, and what would be valid.
    pub fn read(path: &Path) -> Result<Chain, String> {
        let text = nandscape_files::input::text(path, MOST, "list of layers").map_err(|error| error.to_string());
        text.and_then(|text| Chain::of_toml(&text)).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// The layers of the text of a file.
    ///
    /// # Errors
    /// As [`Chain::read`], without the file.
    pub fn of_toml(text: &str) -> Result<Chain, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if file.version != 1 {
            return Err(format!("version = {}: 1 is valid", file.version));
        }
        if file.layer.is_empty() {
            return Err("it has no layer; a table [[layer]] with a kind is valid".to_owned());
        }
        let layer = |(number, table)| layer(table).map_err(|problem| format!("layer {}: {problem}", number + 1));
        let layers = (0..).zip(&file.layer).map(layer).collect::<Result<Vec<LayerWords>, String>>()?;
        let chain = Chain { layers };
        chain.resolve().map(|_| chain)
    }
}

/// A layer of its table.
fn layer(table: &Table) -> Result<LayerWords, String> {
    let kind = word_of("kind", table.get("kind").ok_or("it has no kind; kind = \"block\" is valid")?)?;
    let mut word = match table.get("name") {
        Some(name) => format!("{}={kind}", word_of("name", name)?),
        None => kind,
    };
    if let Some(over) = table.get("over") {
        word += &format!(",over={}", over_of(over)?);
    }
    for (key, value) in table.iter().filter(|(key, _)| !["kind", "name", "over"].contains(&key.as_str())) {
        add(&mut word, key, value)?;
    }
    word.parse()
}

/// The names of drives and layers: one, or a list.
fn over_of(value: &Value) -> Result<String, String> {
    match value {
        Value::Array(names) => {
            let names: Vec<String> = names.iter().map(|name| word_of("over", name)).collect::<Result<_, String>>()?;
            Ok(names.join("+"))
        }
        name => word_of("over", name),
    }
}

/// Adds a setting, or those of a table of keys with dots.
fn add(word: &mut String, key: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Table(keys) => keys.iter().try_for_each(|(rest, value)| add(word, &format!("{key}.{rest}"), value)),
        value => {
            *word += &format!(",{key}={}", word_of(key, value)?);
            Ok(())
        }
    }
}

/// A value as it is written in a word of a chain.
fn word_of(key: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => value.to_string(),
        other => return Err(format!("{key}: {} is not valid; a text, a number, true and false are", other.type_str())),
    };
    match text.contains(|letter: char| letter == ',' || letter.is_whitespace()) {
        true => Err(format!("{key} = {text:?}: a value has neither commas nor blanks")),
        false => Ok(text),
    }
}
