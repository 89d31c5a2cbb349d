//! A page of man(1) in roff. The ends of help texts keep their lines: they are examples and tables.

use clap::Command;
use clap_mangen::Man;

/// The file of a command's page: nandscape-lab-run.1.
pub(super) fn file_name(command: &Command) -> String {
    format!("{}.1", full_name(command))
}

fn full_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// The page.
pub(super) fn page(command: &Command) -> String {
    // The library's own section of what follows the options joins its lines.
    let plain = command.clone().version(env!("CARGO_PKG_VERSION")).after_help("").after_long_help("");
    let mut text = Vec::new();
    let man = Man::new(plain)
        .title(full_name(command))
        .source(concat!("nandscape ", env!("CARGO_PKG_VERSION")))
        .manual("Nandscape");
    man.render(&mut text).expect("memory takes everything");
    let mut page = String::from_utf8(text).expect("help is UTF-8");
    if let Some(more) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        page.push_str(&format!(".SH MORE\n.nf\n{}.fi\n", escaped(&more.to_string())));
    }
    page
}

/// Escapes lines: neither backslashes nor a period at the start of a line are instructions, and hyphens can be copied.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        format!("{guard}{line}\n")
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_help_keeps_its_lines() {
        let command = Command::new("a").after_help(".5 is a\\b\n  a --c");
        assert!(page(&command).ends_with(".SH MORE\n.nf\n\\&.5 is a\\eb\n  a \\-\\-c\n.fi\n"), "{}", page(&command));
    }
}
