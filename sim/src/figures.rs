//! Figures for people: in tables on the screen and in pages.

use crate::units::Bytes;

/// With thousands separators.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
    groups.join(",")
}

/// A number of things, by the word for one of them: `1 request`, `2,000 requests`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A rate or another large figure, to the nearest whole number.
pub fn rounded(figure: f64) -> String {
    count(figure.round() as u64)
}

/// Microseconds, with significant digits only.
pub fn us(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        small if small < 100.0 => format!("{small:.2}"),
        medium if medium < 10_000.0 => format!("{medium:.1}"),
        large => count(large.round() as u64),
    }
}

/// Microseconds, or a dash if there is no figure.
pub fn us_or_dash(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), us)
}

/// Bytes, in powers of 1000.
pub fn bytes(number: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(size, _)| number >= *size) {
        Some((size, unit)) => format!("{:.2} {unit}", number / size),
        None => format!("{number:.0} B"),
    }
}

/// A size in bytes: exact in powers of 1024 if that has at most four digits (`256GiB`), else in powers of 1000 (`512.00 GB`).
pub fn size(number: u64) -> String {
    let exact = Bytes(number).to_string();
    let digits = exact.chars().filter(char::is_ascii_digit).count();
    if digits <= 4 { exact } else { bytes(number as f64) }
}

/// Seconds.
pub fn seconds(number: f64) -> String {
    match number {
        long if long >= 1.0 => format!("{long:.3} s"),
        short if short >= 1e-3 => format!("{:.3} ms", short * 1e3),
        tiny => format!("{:.3} us", tiny * 1e6),
    }
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 5.604, 277.34, 12_345.6].map(us), ["0", "5.60", "277.3", "12,346"]);
        assert_eq!([12.0, 4_096.0, 928.19e6, 2.5e9].map(bytes), ["12 B", "4.10 kB", "928.19 MB", "2.50 GB"]);
        assert_eq!([0, 256 << 30, 1023 << 20, 500_000_000 << 10].map(size), ["0B", "256GiB", "1023MiB", "512GB"]);
        assert_eq!([4.413, 0.0215, 5e-6].map(seconds), ["4.413 s", "21.500 ms", "5.000 us"]);
        assert_eq!(percent(0.1251), "12.5%");
        assert_eq!([170_299.5, 0.2].map(rounded), ["170,300", "0"]);
        assert_eq!([Some(5.604), None].map(us_or_dash), ["5.60", "-"]);
    }
}
