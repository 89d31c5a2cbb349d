//! The tables of docs/validation/profiles.md. Each is enclosed by two comments that name its profile.

use std::fmt::Write as _;

use crate::point::{Measured, Role, Table};

/// The page with this table replaced.
pub(crate) fn with_table(page: &str, table: &Table, points: &[Measured]) -> String {
    let (begin, end) = (format!("<!-- begin {} -->\n", table.drive), format!("<!-- end {} -->\n", table.drive));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the page has no {end}"));
    format!("{before}{begin}{}{end}{after}", text(table, points))
}

fn text(table: &Table, points: &[Measured]) -> String {
    let mut text = format!("\n    nandscape sim --drive {} {}\n\n", table.drive, table.changes);
    text += "| point | published | measured | error | role | with options |\n|---|---|---|---|---|---|\n";
    for measured in points {
        let (point, unit) = (measured.point, measured.point.figure.unit());
        let (published, value) = (figures(point.published), figures(measured.value));
        // No negative zero.
        let (error, role) = ((1e3 * measured.error()).round() / 10.0 + 0.0, role(point.role));
        let (what, words) = (point.what, point.words);
        writeln!(text, "| {what} | {published} {unit} | {value} {unit} | {error:+.1}% | {role} | `{words}` |").unwrap();
    }
    for (name, pick) in [("Misses", missed as fn(Role) -> Option<&'static str>), ("Not judged", shown)] {
        let reasons: Vec<_> =
            points.iter().filter_map(|point| Some((pick(point.point.role)?, point.point.what))).collect();
        for (i, same) in reasons.chunk_by(|one, next| one.0 == next.0).enumerate() {
            let whats: Vec<&str> = same.iter().map(|(_, what)| *what).collect();
            let heading = if i == 0 { format!("\n{name}:\n\n") } else { String::new() };
            writeln!(text, "{heading}- **{}**: {}", whats.join("**, **"), same[0].0).unwrap();
        }
    }
    text + "\n"
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Fitted => "fitted",
        Role::Judged => "judged, holds",
        Role::Sum => "sum, holds",
        Role::Missed(_) => "judged, **missed**",
        Role::Shown(_) => "shown",
    }
}

fn missed(role: Role) -> Option<&'static str> {
    if let Role::Missed(why) = role { Some(why) } else { None }
}

fn shown(role: Role) -> Option<&'static str> {
    if let Role::Shown(why) = role { Some(why) } else { None }
}

/// Four significant digits, or all digits before the decimal point.
fn figures(value: f64) -> String {
    match value {
        value if value < 100.0 => format!("{value:.2}"),
        value if value < 1_000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
