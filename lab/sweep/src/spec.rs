//! The description of a sweep: what all points have in common, and the parameters that vary.

use std::collections::{BTreeMap, BTreeSet};

use toml::Table;

use crate::error::SweepError;
use crate::keys;
use crate::value::{Unit, Value};

/// The most points of a sweep.
pub(crate) const MAX_POINTS: usize = 100_000;

/// A sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// What it is called.
    pub name: String,
    /// One line on the question it answers.
    pub description: String,
    /// Keys that all points have in common, in the order in which they apply.
    pub set: Vec<(String, Value)>,
    /// The common workload: a name, a file or a table. `None` if keys alone describe it.
    pub workload: Option<WorkloadFrom>,
    /// The parameters. The points are all combinations of their values.
    pub axes: Vec<Axis>,
    /// Seeds; each point runs once with each.
    pub seeds: Vec<u64>,
    /// What is drawn. Empty: chosen by the parameters.
    pub figures: Vec<Figure>,
    /// Whether `policies` is a key: the caller has functions by these names, and measures the points with them.
    pub takes_policies: bool,
}

/// The source of the common workload.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkloadFrom {
    /// A built-in workload, or the path of a file.
    Named(String),
    /// The keys of a workload file.
    Inline(Table),
}

/// A parameter: choices, each with some keys and their values.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Its name in tables and figures.
    pub name: String,
    /// Its choices, in the order of the description.
    pub choices: Vec<Choice>,
}

/// A choice of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Its value or name.
    pub value: Value,
    /// The keys that it sets.
    pub set: Vec<(String, Value)>,
}

/// A figure of the page: a result against parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The result, by its path in a report: `latency_us.read.p99_9`.
    pub y: String,
    /// The parameter of the horizontal axis; left out, the first numeric one with the most values.
    pub x: Option<String>,
    /// The parameter of the lines, or of the rows of a heat map.
    pub lines: Option<String>,
    /// How it is drawn.
    pub kind: Kind,
}

/// How a figure is drawn.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Lines over the horizontal axis.
    #[default]
    Lines,
    /// A table of two parameters, coloured by the result.
    Heat,
}

impl Axis {
    /// A parameter that is one key.
    pub fn of_key(key: &str, values: Vec<Value>) -> Axis {
        let values = values.into_iter().map(|value| value.of_key(key));
        let choices = values.map(|value| Choice { set: vec![(key.to_owned(), value.clone())], value }).collect();
        Axis { name: key.to_owned(), choices }
    }

    /// The unit of its values, if all of them are numbers of one unit.
    pub fn unit(&self) -> Option<Unit> {
        let mut units = self.choices.iter().map(|choice| choice.value.number().map(|(_, unit)| unit));
        let first = units.next()??;
        units.all(|unit| unit == Some(first)).then_some(first)
    }

    /// Its values in their order: numbers by size, others as described. Gives positions in `choices`.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.choices.len()).collect();
        if self.unit().is_some() {
            let number = |at: &usize| self.choices[*at].value.number().map_or(0.0, |(number, _)| number);
            order.sort_by(|one, other| number(one).total_cmp(&number(other)));
        }
        order
    }
}

impl Sweep {
    /// A sweep without parameters: one point, one seed.
    pub fn new(name: &str) -> Sweep {
        Sweep {
            name: name.to_owned(),
            description: String::new(),
            set: Vec::new(),
            workload: None,
            axes: Vec::new(),
            seeds: vec![1],
            figures: Vec::new(),
            takes_policies: false,
        }
    }

    /// Sets a key for all points, and replaces an earlier value.
    pub fn set(&mut self, key: &str, value: Value) {
        self.set.retain(|(other, _)| !keys::rivals(other, key));
        self.set.push((key.to_owned(), value));
    }

    /// A short digest of the keys of all points and of the varied keys, whatever the values. Sweeps with different digests cannot
    /// share a folder; a sweep with more values continues in its folder.
    pub fn fingerprint(&self) -> String {
        let axes: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        let digest = xxhash_rust::xxh3::xxh3_64(format!("{:?}{:?}{axes:?}", self.set, self.workload).as_bytes());
        format!("{:08x}", digest >> 32)
    }

    /// Draws these figures instead of those of the description.
    pub fn draw(&mut self, figures: &[String]) {
        let figure = |y: &String| Figure { y: y.clone(), x: None, lines: None, kind: Kind::Lines };
        self.figures = figures.iter().map(figure).collect();
    }

    /// Adds a parameter, or replaces the one of the same name or key, or the value that was set for all points.
    pub fn vary(&mut self, axis: Axis) {
        let roles = axis.roles();
        let is_same =
            |other: &Axis| other.name == axis.name || other.keys().all(|key| roles.contains(&keys::role(key)));
        self.set.retain(|(key, _)| !roles.contains(&keys::role(key)));
        match self.axes.iter().position(is_same) {
            Some(at) => {
                let name = std::mem::take(&mut self.axes[at].name);
                self.axes[at] = Axis { name, ..axis };
            }
            None => self.axes.push(axis),
        }
    }

    /// Checks the parts that do not depend on the keys: names, numbers of points, seeds.
    pub(crate) fn check(&self) -> Result<(), SweepError> {
        let wrong = |problem: String| Err(SweepError::new(&self.name, problem));
        let mut points = self.seeds.len();
        let mut names = BTreeSet::new();
        for axis in &self.axes {
            if axis.choices.is_empty() {
                return wrong(format!("{} has no values; give one or more", axis.name));
            }
            if !names.insert(&axis.name) {
                return wrong(format!("two parameters are called {}; names must differ", axis.name));
            }
            let mut values = BTreeSet::new();
            if let Some(again) = axis.choices.iter().find(|choice| !values.insert(choice.value.text())) {
                return wrong(format!("{} has the value {} twice", axis.name, again.value.text()));
            }
            points = points.saturating_mul(axis.choices.len());
        }
        self.check_keys().or_else(wrong)?;
        let varied: BTreeMap<String, &Axis> =
            self.axes.iter().flat_map(|axis| axis.roles().into_iter().map(move |role| (role, axis))).collect();
        for (key, _) in &self.set {
            if let Some(axis) = varied.get(&keys::role(key)) {
                return wrong(format!("{key} is set for all points and varied by {}; choose one", axis.name));
            }
        }
        if self.seeds.is_empty() || self.seeds.iter().collect::<BTreeSet<_>>().len() < self.seeds.len() {
            return wrong("seeds must be one or more different numbers".to_owned());
        }
        match points {
            0..=MAX_POINTS => Ok(()),
            _ => wrong(format!("it has {points} points; up to {MAX_POINTS} are valid")),
        }
    }
}

impl Sweep {
    /// Checks that no two parts of the description set the same key.
    fn check_keys(&self) -> Result<(), String> {
        twice(&self.set).map_err(|problem| format!("the keys of all points: {problem}"))?;
        // The parameters before, by what they set.
        let mut set_by = BTreeMap::<String, usize>::new();
        for (at, axis) in self.axes.iter().enumerate() {
            for choice in &axis.choices {
                let of_choice = |problem| format!("{} {}: {problem}", axis.name, choice.value.text());
                twice(&choice.set).map_err(of_choice)?;
            }
            let both = axis.keys().filter_map(|key| Some((*set_by.get(&keys::role(key))?, key)));
            if let Some((other, key)) = both.min_by_key(|(other, _)| *other) {
                let other = &self.axes[other].name;
                return Err(format!("{other} and {} both set {key}; choose one", axis.name));
            }
            set_by.extend(axis.roles().into_iter().map(|role| (role, at)));
        }
        Ok(())
    }
}

/// Refuses keys that set the same thing twice.
fn twice(keys: &[(String, Value)]) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (key, _) in keys {
        if let Some(other) = seen.insert(keys::role(key), key) {
            return Err(match other == key {
                true => format!("{key} is set twice; choose one"),
                false => format!("{other} and {key} set the same; choose one"),
            });
        }
    }
    Ok(())
}

impl Axis {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().flat_map(|choice| &choice.set).map(|(key, _)| key.as_str())
    }

    /// What its keys set.
    fn roles(&self) -> BTreeSet<String> {
        self.keys().map(keys::role).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_as_numbers_and_words_as_given() {
        let axis = |text: &str| Axis::of_key("key", Value::list(text));
        assert_eq!(axis("12000,4000,500").order(), [2, 1, 0]);
        assert_eq!((axis("1MiB,64k").order(), axis("1MiB,64k").unit()), (vec![1, 0], Some(Unit::Bytes)));
        assert_eq!((axis("plane,channel").order(), axis("plane,1").unit()), (vec![0, 1], None));
    }

    #[test]
    fn a_parameter_replaces_its_namesake_and_keeps_its_name() {
        let mut sweep = Sweep::new("s");
        sweep.vary(Axis { name: "rate".to_owned(), ..Axis::of_key("rate_iops", Value::list("1,2")) });
        sweep.vary(Axis::of_key("iodepth", Value::list("1,2")));
        sweep.vary(Axis::of_key("rate_iops", Value::list("7")));
        assert_eq!(sweep.axes.len(), 2);
        sweep.set("bs", Value::parse("4k"));
        sweep.vary(Axis::of_key("bs", Value::list("4k,8k")));
        assert!(sweep.set.is_empty() && sweep.check().is_ok());
        assert_eq!((sweep.axes[0].name.as_str(), sweep.axes[0].choices.len()), ("rate", 1));
    }

    #[test]
    fn sweeps_of_other_keys_have_other_fingerprints() {
        let of = |set: &str, vary: &str, values: &str| {
            let mut sweep = Sweep::new("s");
            sweep.set("rw", Value::parse(set));
            sweep.vary(Axis::of_key(vary, Value::list(values)));
            sweep.fingerprint()
        };
        let one = of("read", "iodepth", "1,2");
        assert_eq!(one, of("read", "iodepth", "1,2,3"));
        assert!(one.len() == 8 && one != of("write", "iodepth", "1,2") && one != of("read", "bs", "1,2"));
    }

    #[test]
    fn descriptions_that_contradict_themselves_are_refused() {
        let refused = |change: &dyn Fn(&mut Sweep)| {
            let mut sweep = Sweep::new("s");
            sweep.axes.push(Axis::of_key("iodepth", Value::list("1,2")));
            change(&mut sweep);
            sweep.check().unwrap_err().to_string()
        };
        assert!(refused(&|sweep| sweep.seeds.push(1)).contains("seeds must be"));
        assert!(
            refused(&|sweep| sweep.axes.push(Axis::of_key("iodepth", Value::list("3")))).contains("two parameters")
        );
        assert!(refused(&|sweep| sweep.set.push(("iodepth".into(), Value::parse("3")))).contains("choose one"));
        let of = |name: &str, key: &str| Axis { name: name.to_owned(), ..Axis::of_key(key, Value::list("1,2")) };
        let both = refused(&|sweep| sweep.axes.extend([of("one", "rate_iops"), of("other", "rate-iops")]));
        assert!(both.contains("one and other both set rate-iops"), "{both}");
        let both = refused(&|sweep| sweep.axes.extend([of("n", "io_count"), of("t", "runtime")]));
        assert!(both.contains("n and t both set runtime"), "{both}");
        let keys = |sweep: &mut Sweep| {
            sweep.set = ["io_count", "runtime"].map(|key| (key.to_owned(), Value::parse("3"))).to_vec();
        };
        assert!(refused(&keys).contains("io_count and runtime set the same"));
        assert!(refused(&|sweep| sweep.axes[0] = Axis::of_key("a", Value::list("3,3"))).contains("3 twice"));
        let many = |name: &str| Axis::of_key(name, (0..1_000).map(|n| Value::parse(&n.to_string())).collect());
        assert!(refused(&|sweep| sweep.axes.extend([many("a"), many("b")])).contains("2000000 points"));
    }

    /// Twice as many values take about twice as long: a quadratic check of these would take minutes.
    #[test]
    fn many_values_and_parameters_are_checked() {
        let values = |from: u32| (from..from + 50_000).map(|value| Value::parse(&value.to_string())).collect();
        let mut sweep = Sweep::new("s");
        sweep.vary(Axis::of_key("iodepth", values(1)));
        sweep.vary(Axis::of_key("iodepth", values(2)));
        sweep.check().unwrap();
        let again = sweep.axes[0].choices[7].clone();
        sweep.axes[0].choices.push(again);
        assert!(sweep.check().unwrap_err().to_string().contains("iodepth has the value 9 twice"));
        sweep.axes.pop();
        sweep.axes.extend((0..20_000).map(|at| Axis::of_key(&format!("a{at}"), Value::list("1"))));
        sweep.check().unwrap();
        sweep.axes.push(Axis { name: "again".to_owned(), ..Axis::of_key("a3", Value::list("1,2")) });
        assert!(sweep.check().unwrap_err().to_string().contains("a3 and again both set a3; choose one"));
    }
}
