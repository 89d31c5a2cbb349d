//! A user's text in messages: the place of a fault, and long lines and values cut to a width that a screen shows.

/// The most characters of a line, or of a value, in a message.
const WIDTH: usize = 80;
/// Longer runs of characters without a blank are values: paths and lists of keys are shorter.
const LONGEST_WORD: usize = 200;
/// What stands for the part that is left out.
const LEFT_OUT: &str = "...";

/// The line and the column of a byte of a text; both count from 1.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.len() - before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) + 1;
    (line, column)
}

/// A line, or its beginning and its end if it is long.
pub fn line(text: &str) -> String {
    cut(text, WIDTH)
}

/// A message about a user's text, whose long values are cut: the value that a parser found, and any long word.
pub fn brief(message: &str) -> String {
    match message.rfind(", expected ") {
        Some(end) if message[..end].chars().count() > 2 * WIDTH => cut(&message[..end], 2 * WIDTH) + &message[end..],
        _ => message.split_inclusive(char::is_whitespace).map(word).collect(),
    }
}

fn word(word: &str) -> String {
    if word.chars().count() > LONGEST_WORD { cut(word, WIDTH) } else { word.to_owned() }
}

/// The first two thirds and the last third of `width` characters of a longer text.
fn cut(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept = width - LEFT_OUT.len();
    let first: String = text.chars().take(kept - kept / 3).collect();
    let last: String = text.chars().skip(count - kept / 3).collect();
    first + LEFT_OUT + &last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one() {
        assert_eq!(line_and_column("a\nbc", 3), (2, 2));
        assert_eq!((line_and_column("", 0), line_and_column("a\n", 9)), ((1, 1), (2, 1)));
        assert_eq!(line_and_column("ä = 1", 1), (1, 2), "a byte within a letter is a place, too");
    }

    #[test]
    fn long_lines_and_values_keep_their_ends() {
        assert_eq!(line("rw = \"read\""), "rw = \"read\"");
        let long = format!("rw = \"{}\"", "ö".repeat(3_000));
        assert_eq!(line(&long).chars().count(), WIDTH);
        assert!(line(&long).starts_with("rw = \"öö") && line(&long).ends_with("ö\""));
        let found = brief(&format!("unknown variant `{} x`, expected one of `a`, `b`", "a b ".repeat(1_000)));
        assert!(
            found.starts_with("unknown variant `a b ") && found.ends_with(" x`, expected one of `a`, `b`"),
            "{found}"
        );
        assert!(found.chars().count() < 200, "{found}");
        let value = brief(&format!("bs: \"{}\" is no size; 4KiB is\nvalid", "9".repeat(3_000)));
        assert!(value.starts_with("bs: \"999") && value.ends_with("9\" is no size; 4KiB is\nvalid"), "{value}");
        let usual = "p.toml:2:1: unknown field `foo`, expected one of `version`, `base`";
        assert_eq!(brief(usual), usual);
    }
}
