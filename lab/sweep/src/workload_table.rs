//! The keys of workloads, changed one by one in the table of a workload file.

use nandscape_lab_workload::{BUILTIN, load, text_of};
use toml::{Table, Value as Toml};

use crate::error::SweepError;
use crate::spec::WorkloadFrom;
use crate::value::Value;

/// Keys of a job. Without a job's name they apply to all jobs.
const JOB_WORDS: [&str; 36] = [
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "rwmixread",
    "size",
    "namespace",
    "random_distribution",
    "rate_iops",
    "rate_process",
    "burst",
    "zonemode",
    "max_open_zones",
    "zone_append",
    "zone_fill",
    "zone_finish",
    "offset",
    "fdp",
    "dataplacement",
    "plids",
    "plid_select",
    "fsync",
    "fdatasync",
    "sync",
    "end_fsync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_spin",
    "class",
    "tenant",
    "deadline",
    "nice",
    "cpus_allowed",
    "cpus_allowed_policy",
    "stonewall",
];
/// Keys of the whole workload.
const RUN_WORDS: [&str; 4] = ["io_count", "runtime", "warmup_count", "ramp_time"];
/// Keys whose values are text in a workload file, also where they look like numbers.
const TEXTS: [&str; 15] = [
    "rw",
    "bs",
    "size",
    "random_distribution",
    "rate_process",
    "burst",
    "zonemode",
    "zone_fill",
    "offset",
    "dataplacement",
    "plids",
    "plid_select",
    "thinktime_blocks_type",
    "cpus_allowed",
    "cpus_allowed_policy",
];
/// Lists of a workload file, whose elements have names.
const SECTIONS: [&str; 4] = ["job", "characteristics", "filebench", "ycsb"];

/// A workload by name, path or keys: its name and its table.
pub(crate) fn of(from: &WorkloadFrom) -> Result<(String, Table), SweepError> {
    match from {
        WorkloadFrom::Named(name) => {
            let workload = load(name).map_err(|error| SweepError::new(error.origin, error.problem))?;
            let builtin = BUILTIN.iter().find(|builtin| builtin.name == name).map(|builtin| builtin.text.to_owned());
            let text = builtin.map_or_else(|| text_of(name), Ok).map_err(|error| SweepError::new(name, error))?;
            let table = text.parse().map_err(|error| SweepError::new(name, error))?;
            Ok((workload.name, table))
        }
        WorkloadFrom::Inline(table) => {
            let mut table = table.clone();
            table.entry("version").or_insert(Toml::Integer(1));
            Ok((String::new(), table))
        }
    }
}

/// The table of a workload that keys alone describe: one job.
pub(crate) fn empty() -> Table {
    let job = Toml::Array(vec![Toml::Table(Table::new())]);
    Table::from_iter([("version".to_owned(), Toml::Integer(1)), ("job".to_owned(), job)])
}

/// Whether a key is one of a workload. A key may be written as an option is: `rate-iops`.
pub(crate) fn is_key(key: &str) -> bool {
    let word = key.replace('-', "_");
    let section = key.split_once('.').map(|(section, _)| section);
    JOB_WORDS.contains(&&*word)
        || RUN_WORDS.contains(&&*word)
        || section.is_some_and(|section| SECTIONS.contains(&section))
}

/// The word of a workload that an unknown key resembles most, with how much: 1 is the same.
pub(crate) fn nearest(key: &str) -> (&'static str, f64) {
    let word = key.replace('-', "_");
    let likeness = |known: &'static str| (known, strsim::jaro_winkler(&word, known));
    let words = JOB_WORDS.into_iter().chain(RUN_WORDS).map(likeness);
    words.max_by(|(_, one), (_, other)| one.total_cmp(other)).expect("there are words")
}

/// Sets a key of a workload.
///
/// # Errors
/// When the key is not one of this workload's.
pub(crate) fn set(table: &mut Table, key: &str, value: &Value) -> Result<(), String> {
    if let Some((section, rest)) = key.split_once('.') {
        let (name, word) = rest.split_once('.').ok_or_else(|| {
            format!("{key}: a key of one {section} is {section}.NAME.KEY, for example job.reads.rate_iops")
        })?;
        let word = word.replace('-', "_");
        let element = element(table, section, name)?;
        element.insert(word.clone(), typed(&word, value));
        return Ok(());
    }
    let word = key.replace('-', "_");
    let typed = typed(&word, value);
    if RUN_WORDS.contains(&&*word) {
        // A run ends by one of them.
        match &*word {
            "io_count" => drop(table.remove("runtime")),
            "runtime" => drop(table.remove("io_count")),
            _ => {}
        }
        table.insert(word, typed);
        return Ok(());
    }
    let jobs = table.get_mut("job").and_then(Toml::as_array_mut).filter(|jobs| !jobs.is_empty());
    let jobs = jobs.ok_or_else(|| format!("{key}: the workload has no [[job]] that it could apply to"))?;
    for job in jobs.iter_mut().filter_map(Toml::as_table_mut) {
        job.insert(word.clone(), typed.clone());
    }
    Ok(())
}

fn element<'a>(table: &'a mut Table, section: &str, name: &str) -> Result<&'a mut Table, String> {
    let elements = table.get_mut(section).and_then(Toml::as_array_mut);
    let elements = elements.ok_or_else(|| format!("the workload has no [[{section}]]"))?;
    let names: Vec<String> = elements.iter().enumerate().map(|(number, one)| name_of(section, number, one)).collect();
    let at = names.iter().position(|own| own == name);
    let at = at.ok_or_else(|| format!("the workload has no {section} \"{name}\"; there are {}", names.join(", ")))?;
    elements[at].as_table_mut().ok_or_else(|| format!("{section} \"{name}\" is no table"))
}

/// The name of an element: its own, or the one that reports use.
fn name_of(section: &str, number: usize, element: &Toml) -> String {
    let own = |key: &str| element.get(key).and_then(Toml::as_str).map(str::to_owned);
    let other = match section {
        "filebench" => own("personality"),
        "ycsb" => Some(format!("ycsb-{}", own("workload").unwrap_or("own".to_owned()).to_ascii_lowercase())),
        "characteristics" => Some(format!("load{number}")),
        _ => Some(format!("job{number}")),
    };
    own("name").or(other).unwrap_or_default()
}

/// The value as a workload file has it.
fn typed(word: &str, value: &Value) -> Toml {
    if TEXTS.contains(&word) { Toml::String(value.text()) } else { value.0.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_workload::parse_table;

    #[test]
    fn words_apply_to_all_jobs_and_names_to_one() {
        let text = "version = 1\nruntime = \"1s\"\n[[job]]\nname = \"a\"\nrw = \"read\"\n[[job]]\nrw = \"write\"\n";
        let mut table: Table = text.parse().unwrap();
        for (key, value) in
            [("bs", "8192"), ("job.a.iodepth", "3"), ("job.job1.rate-iops", "500"), ("io-count", "9"), ("size", "50%")]
        {
            assert!(is_key(key));
            set(&mut table, key, &Value::parse(value)).unwrap();
        }
        let workload = parse_table("w", table).unwrap();
        assert!(workload.jobs.iter().all(|job| job.bs.reads.largest() == 8_192));
        assert_eq!((workload.jobs[0].iodepth, workload.jobs[1].rate.map(|rate| rate.iops)), (3, Some(500.0)));
        assert_eq!(workload.limit, nandscape_lab_workload::Limit::Requests(9));
    }

    #[test]
    fn keys_that_the_workload_lacks_are_named_with_those_it_has() {
        let mut table = empty();
        let mut wrong = |key: &str| set(&mut table, key, &Value::parse("1")).unwrap_err();
        assert!(wrong("job.x.bs").contains("there are job0"));
        assert!(wrong("job.x").contains("job.NAME.KEY"));
        assert!(wrong("ycsb.a.threads").contains("no [[ycsb]]"));
        assert!(!is_key("ftl.gc.victim") && !is_key("capacity"));
        let (_, mut table) = of(&WorkloadFrom::Named("varmail".to_owned())).unwrap();
        assert!(set(&mut table, "iodepth", &Value::parse("1")).unwrap_err().contains("no [[job]]"));
        set(&mut table, "filebench.varmail.threads", &Value::parse("4")).unwrap();
    }
}
