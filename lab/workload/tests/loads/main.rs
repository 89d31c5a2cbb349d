//! filebench's personalities and YCSB's workloads against a drive that takes 10 us for anything and notes what it was
//! asked: what they do, how much of each, and that no request is out of place.

mod drive;
mod filebench;
mod ycsb;

/// Reports describe the workload with all its settings.
#[test]
fn loads_are_described_by_what_they_were_given() {
    use nandscape_lab_workload::load;

    let described = |name: &str| {
        let workload = load(name).expect("it comes with the program");
        let sources = workload.jobs.iter().filter_map(|job| job.source.as_ref()).map(|source| source.0.describe());
        workload.loads.iter().map(|load| load.describe()).chain(sources).collect::<String>()
    };
    for (name, parts) in [
        ("varmail", ["varmail: personality=varmail", "threads=16", "files=1000 mean_size=16KiB"]),
        ("videoserver", ["files=226", "mean_size=10GiB", "rate=96MiB"]),
        ("ycsb-d", ["ycsb-d: read=95% insert=5%", "distribution=latest", "record_size=1KiB"]),
        ("ycsb-load", ["phase=load", "threads=16", "records=all that fit"]),
        ("teafa-est", ["reads=24.0% of 15KiB in the mean, 1MiB at most", "writes of 43KiB", "interval=8445us"]),
        ("flashshare-is", ["reads=99.0%", "sequential=86.0%", "footprint=100%"]),
    ] {
        let text = described(name);
        assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
    }
}
