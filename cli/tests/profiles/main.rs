//! The error tables of the profiles that stand for a real drive: published figures, measured figures, and their
//! difference.
//!
//! | file | what |
//! |---|---|
//! | `point` | a point, and the rules that judge it |
//! | `zn540`, `zn540_zones`, `samsung`, `sm843t`, `mqsim`, `ocssd` | the points of each profile |
//! | `page` | the tables of docs/validation/profiles.md |
//!
//! Each point is one run of the program, with the options that the page gives. To renew the tables, but not the text
//! around them: `NANDSCAPE_RENEW=1 cargo test -p nandscape-cli --test profiles`.

mod mqsim;
mod ocssd;
mod page;
mod point;
mod samsung;
mod sm843t;
mod zn540;
mod zn540_zones;

use point::{Measured, Table};

const TABLES: [Table; 6] =
    [zn540::TABLE, zn540_zones::TABLE, samsung::TABLE, sm843t::TABLE, mqsim::TABLE, ocssd::TABLE];

#[test]
#[expect(clippy::print_stderr, reason = "tells the developer what was done")]
fn every_point_is_where_its_table_says() {
    let measured: Vec<(&Table, Vec<Measured>)> = TABLES.iter().map(|table| (table, table.measure())).collect();
    let wrong: Vec<String> = measured
        .iter()
        .flat_map(|(table, points)| points.iter().filter_map(|point| point.wrong().map(|what| (table.drive, what))))
        .map(|(drive, what)| format!("{drive}: {what}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/validation/profiles.md");
    let on_disk = std::fs::read_to_string(path).expect("the page");
    let page = measured.iter().fold(on_disk.clone(), |page, (table, points)| page::with_table(&page, table, points));
    if std::env::var_os("NANDSCAPE_RENEW").is_some() {
        std::fs::write(path, &page).expect("written");
        eprintln!("written: {path}");
    } else {
        assert!(
            on_disk == page,
            "docs/validation/profiles.md is out of date; renew it with\n  \
             NANDSCAPE_RENEW=1 cargo test -p nandscape-cli --test profiles"
        );
    }
}
