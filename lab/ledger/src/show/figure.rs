//! A claim's figure for the HTML page: a bar for each measured figure of its criteria, with the published one below where the paper
//! gives a number. One figure has one unit: that with the most published numbers, else that with the most criteria.
//!
//! Left out: texts, negative figures, and claims with a single figure in any unit.

use std::collections::BTreeMap;

use crate::figures::short;
use crate::outcome::Outcome;
use crate::verdict::Criterion;

/// The most bars of a figure; the rest is in the table.
const MOST: usize = 24;
/// Figures further apart have a logarithmic scale.
const FAR: f64 = 20.0;
/// The width of the smallest bar on a logarithmic scale, in percent.
const SMALLEST: f64 = 4.0;

/// What the figures need in addition to the style of all pages.
pub(super) const STYLE: &str = "\
figure.claim .bar { grid-template-columns: minmax(7rem, 22rem) minmax(0, 1fr) }
figure.claim .pair span { display: block; height: 9px; margin: 1px 0; border-radius: 2px; min-width: 1px }";

/// A bar: the lowest and the highest of several runs, and of the paper.
#[derive(Clone, PartialEq, Debug)]
struct Bar {
    name: String,
    measured: (f64, f64),
    published: Option<(f64, f64)>,
}

/// The figure; empty if the claim has no two figures of one unit.
pub(super) fn of(outcome: &Outcome) -> String {
    let Some((unit, bars)) = chosen(&outcome.judgement.criteria) else { return String::new() };
    let values = || bars.iter().flat_map(|bar| [Some(bar.measured), bar.published]).flatten();
    let (least, most) =
        values().fold((f64::MAX, 0.0), |(least, most): (f64, f64), (_, high)| (least.min(high), most.max(high)));
    let is_far = least > 0.0 && most > FAR * least;
    let width = |value: f64| match is_far {
        true => SMALLEST + (100.0 - SMALLEST) * libm::log(value / least) / libm::log(most / least),
        false => 100.0 * value / most.max(f64::MIN_POSITIVE),
    };
    let line = |what: &str, color: &str, range: (f64, f64)| {
        let text = format!("{what} {}", escaped(&words(range, &unit)));
        format!("<span style=\"width: {:.2}%; background: var({color})\" title=\"{text}\"></span>", width(range.1))
    };
    let row = |bar: &Bar| {
        let published = bar.published.map(|range| line("published", "--soft", range)).unwrap_or_default();
        let beside = bar.published.map_or(String::new(), |range| format!(", published {}", words(range, &unit)));
        format!(
            "<div class=\"bar\"><div class=\"name\">{}<small>{}{}</small></div><div class=\"pair\">{}{published}</div></div>\n",
            escaped(&bar.name),
            escaped(&words(bar.measured, &unit)),
            escaped(&beside),
            line("measured", "--read", bar.measured)
        )
    };
    let has_published = bars.iter().any(|bar| bar.published.is_some());
    let left_out = bars.len().saturating_sub(MOST);
    let notes = [
        (is_far, "The scale is logarithmic.".to_owned()),
        (!has_published, "The paper gives no number for these.".to_owned()),
        (left_out > 0, format!("{left_out} more are in the table.")),
    ];
    let notes: Vec<String> = notes.into_iter().filter(|(is, _)| *is).map(|(_, note)| note).collect();
    format!(
        "<figure class=\"claim\">\n<ul class=\"key\"><li><i style=\"background: var(--read)\"></i>measured</li>{}</ul>\n\
         <div class=\"bars\">\n{}</div>\n<figcaption class=\"soft\">{}</figcaption>\n</figure>\n",
        if has_published { "<li><i style=\"background: var(--soft)\"></i>published</li>" } else { "" },
        bars.iter().take(MOST).map(row).collect::<String>(),
        notes.join(" ")
    )
}

/// The unit of the figure, and its bars.
fn chosen(criteria: &[Criterion]) -> Option<(String, Vec<Bar>)> {
    let mut units: BTreeMap<&str, Vec<Bar>> = BTreeMap::new();
    criteria.iter().for_each(|criterion| units.entry(&criterion.unit).or_default().extend(bars(criterion)));
    let rank = |bars: &[Bar]| (bars.iter().filter(|bar| bar.published.is_some()).count(), bars.len());
    let (unit, bars) = units.into_iter().filter(|(_, bars)| bars.len() > 1).max_by_key(|(_, bars)| rank(bars))?;
    Some((unit.to_owned(), bars))
}

/// The bars of a criterion: one, or one for each contestant of a ranking.
fn bars(criterion: &Criterion) -> Vec<Bar> {
    let measured = criterion.ranges();
    let published = published(&criterion.published, &criterion.unit, measured.len());
    let names = contestants(&criterion.must_be, measured.len());
    let bar = |(number, range): (usize, (f64, f64))| Bar {
        name: match (&names, measured.len()) {
            (_, 1) => criterion.what.clone(),
            (Some(names), _) => format!("{}: {}", criterion.what, names[number]),
            (None, _) => format!("{}, {}", criterion.what, number + 1),
        },
        measured: range,
        published: published.as_ref().map(|ranges| ranges[number]),
    };
    let is_drawn = |bar: &Bar| bar.measured.0 >= 0.0 && bar.measured.1.is_finite();
    measured.iter().copied().enumerate().map(bar).filter(is_drawn).collect()
}

/// The names in the order that a ranking must have.
fn contestants(must_be: &str, count: usize) -> Option<Vec<&str>> {
    let listed = must_be.rsplit_once(": ").map_or(must_be, |(_, listed)| listed);
    let splits = [" < ", " <= ", ", "].map(|between| listed.split(between).collect::<Vec<&str>>());
    splits.into_iter().find(|names| names.len() == count)
}

/// The published numbers, if there are as many as measured ones: `216`, `1.0 to 2.6`, `124, 353`.
fn published(text: &str, unit: &str, count: usize) -> Option<Vec<(f64, f64)>> {
    let number = |text: &str| {
        let plain = text.trim().strip_suffix('%').filter(|_| unit == "%").unwrap_or(text.trim());
        plain.replace(',', "").parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite())
    };
    let range = |text: &str| match text.split_once(" to ") {
        Some((low, high)) => number(low).zip(number(high)).filter(|(low, high)| low <= high),
        None => number(text).map(|number| (number, number)),
    };
    let ranges: Option<Vec<(f64, f64)>> = text.split(", ").map(range).collect();
    ranges.filter(|ranges| ranges.len() == count)
}

fn words((low, high): (f64, f64), unit: &str) -> String {
    let (low, high) = (short(low), short(high));
    let range = if low == high { low } else { format!("{low} to {high}") };
    format!("{range} {unit}").trim_end().to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{exact, order};

    fn with(mut criterion: Criterion, published: &str) -> Criterion {
        published.clone_into(&mut criterion.published);
        criterion
    }

    #[test]
    fn the_unit_with_the_most_published_numbers_is_drawn() {
        let criteria = [
            with(order::below("one", vec![90.0, 110.0], "us", 200.0), "1,000 to 1,200"),
            with(order::below("two", 5.0, "us", 200.0), "half"),
            order::below("a", 1.0, "%", 2.0),
            order::below("b", 1.0, "%", 2.0),
            order::below("c", 1.0, "%", 2.0),
        ];
        let (unit, bars) = chosen(&criteria).unwrap();
        let bar = |name: &str, measured, published| Bar { name: name.to_owned(), measured, published };
        assert_eq!(unit, "us");
        assert_eq!(bars, [bar("one", (90.0, 110.0), Some((1_000.0, 1_200.0))), bar("two", (5.0, 5.0), None)]);
        assert_eq!(chosen(&criteria[..1]), None, "one bar compares nothing");
    }

    #[test]
    fn each_contestant_of_a_ranking_has_a_bar() {
        let ranking = [("none", vec![1.0, 2.0]), ("plane", vec![30.0])];
        let names = |criterion: &Criterion| bars(criterion).into_iter().map(|bar| bar.name).collect::<Vec<_>>();
        let ranked = with(order::ranked("p99", &ranking, "us"), "2, 40");
        assert_eq!(names(&ranked), ["p99: none", "p99: plane"]);
        assert_eq!(bars(&ranked)[1].published, Some((40.0, 40.0)));
        assert_eq!(names(&order::none_worse("p99", &ranking, "us")), ["p99: none", "p99: plane"]);
        assert_eq!(bars(&with(ranked, "the order alone"))[0].published, None);
    }

    #[test]
    fn numbers_have_the_unit_of_the_criterion() {
        assert_eq!(published("9.22%", "%", 1), Some(vec![(9.22, 9.22)]));
        assert_eq!((published("9.22%", "us", 1), published("108 and 168 us", "us", 1)), (None, None));
        assert_eq!(words((1.0, 2.5), ""), "1 to 2.50");
        assert_eq!(escaped("a < \"b\""), "a &lt; &quot;b&quot;");
    }

    #[test]
    fn a_text_has_no_bar() {
        assert!(bars(&exact::table("types", "1122", "1122")).is_empty());
    }
}
