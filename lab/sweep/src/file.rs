//! A sweep as a TOML file.

use std::ops::Range;
use std::path::Path;

use nandscape_files::excerpt;
use serde::Deserialize;
use toml::{Spanned, Table};

use crate::error::SweepError;
use crate::spec::{Axis, Choice, Figure, Kind, Sweep, WorkloadFrom};
use crate::value::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    #[serde(default)]
    description: String,
    drive: Option<String>,
    array: Option<String>,
    over: Option<Over>,
    host: Option<String>,
    precondition: Option<String>,
    precondition_workload: Option<String>,
    from_state: Option<String>,
    seeds: Option<Spanned<Seeds>>,
    #[serde(default)]
    set: Table,
    workload: Option<Load>,
    #[serde(default)]
    vary: Vec<Spanned<Vary>>,
    #[serde(default)]
    figure: Vec<FigureKeys>,
}

/// Layers, the lowest first.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "over is a list of layers, such as [\"block\", \"raid5:4\"], or a text of them with blanks between"
)]
enum Over {
    Text(String),
    List(Vec<String>),
}

impl Over {
    fn text(self) -> String {
        match self {
            Over::Text(text) => text,
            Over::List(layers) => layers.join(" "),
        }
    }
}

/// A number of seeds, which begin with 1, or the seeds.
#[derive(Deserialize)]
#[serde(untagged, expecting = "seeds is a number of seeds such as 3, or a list such as [1, 2, 3]")]
enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "workload is a name, a path, or a table with the keys of a workload file")]
enum Load {
    Named(String),
    Inline(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vary {
    name: Option<String>,
    key: Option<String>,
    values: Option<Vec<toml::Value>>,
    #[serde(default)]
    choice: Vec<ChoiceKeys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoiceKeys {
    name: toml::Value,
    #[serde(default)]
    set: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureKeys {
    y: String,
    x: Option<String>,
    lines: Option<String>,
    kind: Option<Spanned<String>>,
}

/// The most seeds that a number asks for.
const MAX_SEEDS: u64 = 10_000;

impl Sweep {
    /// Reads a sweep from a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not a sweep: the place, the problem, and what would be valid.
    pub fn load(path: &str) -> Result<Sweep, SweepError> {
        let text = nandscape_lab_workload::text_of(path)
            .map_err(|error| SweepError::new(path, format!("cannot be read: {error}")))?;
        Sweep::parse(path, &text)
    }

    /// Reads a sweep from text. Files that it names are relative to the folder of `origin`, which also names it in errors.
    ///
    /// # Errors
    /// When it is not a sweep.
    pub fn parse(origin: &str, text: &str) -> Result<Sweep, SweepError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let message = error.message().trim().replace('\n', "; ");
            if let Some((line, problem)) = misplaced(text, &message) {
                return SweepError::new(format!("{origin}:{line}"), problem);
            }
            let line = error.span().map(|span| excerpt::line_and_column(text, span.start).0);
            let place = line.map_or(origin.to_owned(), |line| format!("{origin}:{line}"));
            SweepError::new(place, message)
        })?;
        let source = Source { origin, text };
        if *file.version.get_ref() != 1 {
            let problem = format!("version = {} is not known; this is version 1", file.version.get_ref());
            return Err(source.wrong(file.version.span(), problem));
        }
        let mut set: Vec<(String, Value)> = Vec::new();
        set.extend(file.drive.map(|drive| text_key("drive", drive)));
        set.extend(file.array.map(|array| text_key("array", array)));
        set.extend(file.over.map(|over| text_key("over", over.text())));
        set.extend(file.host.map(|host| text_key("host", host)));
        set.extend(file.precondition.map(|state| text_key("precondition", state)));
        set.extend(file.precondition_workload.map(|name| text_key("precondition_workload", name)));
        set.extend(file.from_state.map(|path| text_key("from_state", path)));
        set.extend(keys_of(&file.set));
        set.iter_mut().for_each(|(key, value)| source.locate(key, value));
        let seeds = file.seeds.map(|seeds| (seeds.span(), seeds.into_inner()));
        let stem = Path::new(origin).file_stem().map_or(origin.into(), |stem| stem.to_string_lossy());
        Ok(Sweep {
            takes_policies: false,
            name: stem.into_owned(),
            description: file.description,
            set,
            workload: file.workload.map(|load| match load {
                Load::Named(name) => WorkloadFrom::Named(beside(origin, name)),
                Load::Inline(table) => WorkloadFrom::Inline(table),
            }),
            axes: file.vary.into_iter().map(|vary| axis(vary, &source)).collect::<Result<_, _>>()?,
            seeds: match seeds {
                None => vec![1],
                Some((_, Seeds::List(seeds))) => seeds,
                Some((_, Seeds::Count(count @ 1..=MAX_SEEDS))) => (1..=count).collect(),
                Some((span, Seeds::Count(count))) => {
                    let problem = format!("seeds = {count} is out of range; from 1 to {MAX_SEEDS} is valid");
                    return Err(source.wrong(span, problem));
                }
            },
            figures: file.figure.into_iter().map(|keys| figure(keys, &source)).collect::<Result<_, _>>()?,
        })
    }
}

/// The first key of the points that precedes the first section: its line, and its error. The parser names the first key in
/// alphabetical order.
fn misplaced(text: &str, message: &str) -> Option<(usize, String)> {
    let (_, expected) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    // A field of a table below is none of its business.
    if !known.contains(&"vary") {
        return None;
    }
    let top = text.lines().zip(1..).take_while(|(line, _)| !line.trim_start().starts_with('['));
    let keys = top.filter_map(|(line, number)| {
        let (path, _) = line.trim_start().split_once('=').filter(|(path, _)| !path.starts_with('#'))?;
        let whole = path.trim().trim_matches(['"', '\'']);
        Some((whole.split('.').next().unwrap_or(whole), line, number))
    });
    let (field, line, number) = keys.into_iter().find(|(field, ..)| !known.contains(field))?;
    let line = excerpt::line(line.trim());
    let hint = format!("a key of the workload or of the drive belongs below [set]: \"[set]\", and then \"{line}\"");
    Some((number, format!("unknown field `{field}`, expected {expected}; {hint}")))
}

/// The text of a file, for the places of mistakes and of the files that it names.
struct Source<'a> {
    origin: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// A mistake, with its line.
    fn wrong(&self, span: Range<usize>, problem: impl ToString) -> SweepError {
        let (line, _) = excerpt::line_and_column(self.text, span.start);
        SweepError::new(format!("{}:{line}", self.origin), problem)
    }

    /// The value of a key that names a file is a path relative to this one.
    fn locate(&self, key: &str, value: &mut Value) {
        match (key, &mut value.0) {
            ("drive" | "workload" | "precondition_workload", toml::Value::String(name)) => {
                *name = beside(self.origin, std::mem::take(name))
            }
            // These are always files.
            ("trace" | "from_state", toml::Value::String(name)) => {
                let folder = Path::new(self.origin).parent().unwrap_or(Path::new(""));
                *name = folder.join(&*name).to_string_lossy().into_owned();
            }
            _ => {}
        }
    }
}

fn axis(vary: Spanned<Vary>, source: &Source<'_>) -> Result<Axis, SweepError> {
    let span = vary.span();
    let wrong = |problem: &str| Err(source.wrong(span, format!("[[vary]]: {problem}")));
    let Vary { name, key, values, choice } = vary.into_inner();
    match (key, values, choice.is_empty()) {
        (Some(key), Some(values), true) => {
            let mut axis = Axis::of_key(&key, values.into_iter().map(Value).collect());
            // The values of the parameter stay as given.
            axis.choices
                .iter_mut()
                .flat_map(|choice| &mut choice.set)
                .for_each(|(key, value)| source.locate(key, value));
            Ok(Axis { name: name.unwrap_or(key), ..axis })
        }
        (None, None, false) => {
            let Some(name) = name else {
                return wrong("choices need a name for the parameter: name = \"suspension\"");
            };
            let choices = choice.into_iter().map(|keys: ChoiceKeys| {
                let mut set = keys_of(&keys.set);
                set.iter_mut().for_each(|(key, value)| source.locate(key, value));
                Choice { value: Value(keys.name), set }
            });
            Ok(Axis { name, choices: choices.collect() })
        }
        _ => wrong("give key and values (one key), or name and [[vary.choice]] (several keys at a time)"),
    }
}

fn figure(keys: FigureKeys, source: &Source<'_>) -> Result<Figure, SweepError> {
    let kind = match keys.kind.as_ref().map(|kind| (kind.get_ref().as_str(), kind.span())) {
        None | Some(("lines", _)) => Kind::Lines,
        Some(("heat", _)) => Kind::Heat,
        Some((other, span)) => {
            let problem = format!("[[figure]]: kind = \"{other}\" is not known; lines and heat are valid");
            return Err(source.wrong(span, problem));
        }
    };
    Ok(Figure { y: keys.y, x: keys.x, lines: keys.lines, kind })
}

fn text_key(key: &str, text: String) -> (String, Value) {
    (key.to_owned(), Value(toml::Value::String(text)))
}

/// The keys of a table; keys of nested tables are written with dots.
fn keys_of(table: &Table) -> Vec<(String, Value)> {
    let mut keys = Vec::new();
    flatten("", table, &mut keys);
    keys
}

fn flatten(prefix: &str, table: &Table, keys: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(table) => flatten(&path, table, keys),
            value => keys.push((path, Value(value.clone()))),
        }
    }
}

/// A path that a file names is relative to it; a name without a slash or ending is built in.
fn beside(origin: &str, name: String) -> String {
    let is_path = name.contains('/') || name.ends_with(".toml");
    match Path::new(origin).parent() {
        Some(folder) if is_path && Path::new(&name).is_relative() => folder.join(name).to_string_lossy().into_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let text = r#"
version = 1
description = "d"
drive = "mine.toml"
precondition = "steady"
seeds = 3
[set]
capacity = "1GiB"
timing.cell = "qlc"
"timing.erase" = "5ms"
[workload]
[[workload.job]]
rw = "randread"
[[vary]]
key = "rate_iops"
name = "rate"
values = [100, 20]
[[vary]]
name = "suspension"
[[vary.choice]]
name = "without"
[[vary.choice]]
name = "with"
set = { timing.suspend.erase = "20us", timing.suspend.program = "20us" }
[[figure]]
y = "iops"
kind = "heat"
"#;
        let sweep = Sweep::parse("folder/s.toml", text).unwrap();
        let keys: Vec<&str> = sweep.set.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["drive", "precondition", "capacity", "timing.cell", "timing.erase"]);
        assert_eq!((sweep.set[0].1.text().as_str(), sweep.name.as_str()), ("folder/mine.toml", "s"));
        assert_eq!(sweep.seeds, [1, 2, 3]);
        assert_eq!((sweep.axes[0].name.as_str(), sweep.axes[0].choices.len()), ("rate", 2));
        assert_eq!(sweep.axes[1].choices[1].set.len(), 2);
        assert_eq!(sweep.figures[0].kind, Kind::Heat);
        assert!(matches!(sweep.workload, Some(WorkloadFrom::Inline(_))));
    }

    #[test]
    fn files_that_a_file_names_are_beside_it_wherever_it_names_them() {
        let text = "version = 1\n[set]\ntrace = \"t.gz\"\ndrive = \"a/d.toml\"\n[[vary]]\nkey = \"workload\"\nvalues = [\"mixed\", \"w.toml\"]\n\
                    [[vary]]\nname = \"n\"\n[[vary.choice]]\nname = \"x\"\nset.drive = \"x.toml\"\n";
        let sweep = Sweep::parse("folder/s.toml", text).unwrap();
        let named = |axis: usize, choice: usize| sweep.axes[axis].choices[choice].set[0].1.text();
        let set: Vec<String> = sweep.set.iter().map(|(_, value)| value.text()).collect();
        assert!(set.contains(&"folder/a/d.toml".to_owned()) && set.contains(&"folder/t.gz".to_owned()), "{set:?}");
        assert_eq!(
            (named(0, 0), named(0, 1), named(1, 0)),
            ("mixed".into(), "folder/w.toml".into(), "folder/x.toml".into())
        );
        assert_eq!(sweep.axes[0].choices[1].value.text(), "w.toml");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let error = |text: &str| Sweep::parse("s.toml", text).unwrap_err().to_string();
        assert!(error("version = 1\ndrives = 3\n").starts_with("s.toml:2: unknown field `drives`"));
        let first = error("version = 1\nrw = \"read\"\nseeds = 3\nbs = \"4k\"\n");
        assert!(first.starts_with("s.toml:2: unknown field `rw`, expected one of `version`, "), "{first}");
        for key in ["rw = \"randread\"", "ftl.gc.victim = \"greedy\"", "\"timing.erase\" = \"5ms\""] {
            let told =
                error(&format!("version = 1\n\n{key}\nseeds = 3\n[[vary]]\nkey = \"iodepth\"\nvalues = [1, 2]\n"));
            assert!(told.starts_with("s.toml:3: unknown field `"), "{told}");
            assert!(told.ends_with(&format!("belongs below [set]: \"[set]\", and then \"{key}\"")), "{told}");
        }
        let below = error("version = 1\n[[vary]]\nkey = \"a\"\nrw = \"read\"\n");
        assert!(below.starts_with("s.toml:4: unknown field `rw`, expected one of `name`"), "{below}");
        assert!(error("\nversion = 2\n").starts_with("s.toml:2: version = 2 is not known; this is version 1"));
        let long = error(&format!("version = 1\nrw = [{}]\n", "\"read\", ".repeat(1_000)));
        assert!(long.starts_with("s.toml:2: unknown field `rw`") && long.ends_with("\"read\", ]\""), "{long}");
        assert!(long.chars().count() < 600, "{long}");
        let seeds = error("version = 1\nseeds = 0\n");
        assert!(seeds.starts_with("s.toml:2: ") && seeds.contains("from 1 to 10000"), "{seeds}");
        assert!(error("version = 1\nseeds = \"x\"\n").contains("a number of seeds such as 3"));
        assert!(error("version = 1\n[[vary]]\nkey = \"a\"\n").starts_with("s.toml:2: [[vary]]: give key and values"));
        assert!(error("version = 1\n[[vary]]\n[[vary.choice]]\nname = \"a\"\n").contains("need a name"));
        assert!(
            error("version = 1\n[[figure]]\ny = \"a\"\nkind = \"pie\"\n").starts_with("s.toml:4: [[figure]]: kind")
        );
        assert!(Sweep::load("nowhere.toml").unwrap_err().to_string().contains("nowhere.toml: cannot be read"));
    }
}
