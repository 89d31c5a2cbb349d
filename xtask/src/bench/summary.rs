//! Output for people: a line for each run, and a final table of medians, with ratios if two programs ran.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::record::Line;
use super::subject::Subject;
use super::suite::Benchmark;

/// One run in a line, with its calibration.
pub(crate) fn of_run(line: &Line) -> String {
    let figures: Vec<String> =
        line.figures.iter().map(|figure| format!("{} {}", short(figure.value), figure.name)).collect();
    format!(
        "run {} of {} at {}: {}  [calibration: {:.3} s integer, {:.3} s memory]",
        line.run,
        line.benchmark,
        line.revision,
        figures.join(", "),
        line.calibration.integer_s,
        line.calibration.memory_s
    )
}

/// The medians.
pub(crate) fn of_all(benchmarks: &[&Benchmark], subjects: &[Subject], lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let mut header = vec!["benchmark".to_owned(), "figure".to_owned()];
    header.extend(subjects.iter().map(|subject| subject.revision.clone()));
    header.extend((subjects.len() > 1).then(|| "ratio (runs from..to)".to_owned()));
    header.extend(["aim".to_owned(), "calibration".to_owned()]);
    table.set_header(header);
    for benchmark in benchmarks {
        let runs =
            |number: usize| lines.iter().filter(move |line| (line.benchmark, line.subject) == (benchmark.name, number));
        let Some(first) = runs(0).next() else { continue };
        for (at, figure) in first.figures.iter().enumerate() {
            let values = |number: usize| runs(number).map(|line| line.figures[at].value).collect::<Vec<f64>>();
            let mut row = vec![benchmark.name.to_owned(), figure.name.to_owned()];
            row.extend((0..subjects.len()).map(|number| short(median(&values(number)))));
            row.extend((subjects.len() > 1).then(|| ratio(&values(0), &values(1), figure.more_is_better)));
            let calibration: Vec<f64> =
                runs(0).map(|line| line.calibration.integer_s + line.calibration.memory_s).collect();
            row.extend([figure.aim.to_owned(), format!("{:.3} s", median(&calibration))]);
            table.add_row(row);
        }
    }
    for column in table.column_iter_mut().skip(2).take(subjects.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// The median of the ratios of consecutive runs, and their spread.
fn ratio(new: &[f64], old: &[f64], more_is_better: bool) -> String {
    let ratios: Vec<f64> = new.iter().zip(old).map(|(new, old)| new / old).filter(|ratio| ratio.is_finite()).collect();
    if ratios.is_empty() {
        return "-".to_owned();
    }
    let (least, most) = (ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    let median = median(&ratios);
    // Ratios on both sides of 1 show no difference.
    let verdict = match (least > 1.0, most < 1.0) {
        (true, _) => {
            if more_is_better {
                "better"
            } else {
                "worse"
            }
        }
        (_, true) => {
            if more_is_better {
                "worse"
            } else {
                "better"
            }
        }
        _ => "no difference",
    };
    format!("{median:.3} ({least:.3}..{most:.3}) {verdict}")
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Three digits and a letter.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.3} G", value / 1e9),
        value if value >= 1e6 => format!("{:.3} M", value / 1e6),
        value if value >= 1e3 => format!("{:.1} k", value / 1e3),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::calibration::Calibration;
    use crate::bench::record::Machine;
    use crate::bench::suite::{Figure, SUITE};

    #[test]
    fn medians_of_odd_and_even_numbers_of_runs() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_ratio_says_whether_it_tells_anything() {
        assert_eq!(ratio(&[2.0, 4.0], &[1.0, 1.0], true), "3.000 (2.000..4.000) better");
        assert_eq!(ratio(&[2.0, 4.0], &[1.0, 1.0], false), "3.000 (2.000..4.000) worse");
        assert_eq!(ratio(&[1.0, 0.5], &[2.0, 1.0], false), "0.500 (0.500..0.500) better");
        assert_eq!(ratio(&[1.0, 2.0], &[2.0, 1.0], true), "1.250 (0.500..2.000) no difference");
        assert_eq!(ratio(&[1.0], &[f64::NAN], true), "-", "the other program has no such figure");
    }

    #[test]
    fn the_table_keeps_programs_of_the_same_revision_apart() {
        let line = |subject, run, value| Line {
            date: String::new(),
            subject,
            revision: "abc".to_owned(),
            machine: Machine { cpu: String::new(), cores: 1 },
            benchmark: "reads",
            run,
            calibration: Calibration { integer_s: 0.25, memory_s: 0.5 },
            figures: vec![Figure { name: "requests", value, aim: "many", more_is_better: true }],
            report: serde_json::Value::Null,
        };
        let lines = [line(0, 1, 4.0), line(1, 1, 2.0), line(1, 2, 2.0), line(0, 2, 4.0)];
        let table = of_all(&[&SUITE[0]], &["abc", "abc"].map(Subject::named), &lines);
        let row: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row.join(" "), "reads requests 4.000 2.000 2.000 (2.000..2.000) better many 0.750 s");
        assert!(of_run(&lines[0]).contains("4.000 requests  [calibration: 0.250 s integer, 0.500 s memory]"));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([2_345_678.0, 0.25, 12_345.0, 2.5e9].map(short), ["2.346 M", "0.250", "12.3 k", "2.500 G"]);
    }
}
