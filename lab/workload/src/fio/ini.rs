//! The lines of a job file: sections, and options with or without a value. Options of `[global]` hold for the jobs after it;
//! a job's own options override them.

/// An option, and its line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Given {
    pub(super) line: usize,
    pub(super) key: String,
    /// Empty without one.
    pub(super) value: String,
}

impl Given {
    /// Whether a switch is on: it is without a value, too.
    pub(super) fn is_on(&self) -> bool {
        self.value != "0"
    }
}

/// A job.
#[derive(PartialEq, Debug)]
pub(super) struct Section {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) options: Vec<Given>,
}

/// The jobs of a file.
///
/// # Errors
/// The line, and its error.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, (usize, String)> {
    let (mut global, mut sections, mut in_global): (Vec<Given>, Vec<Section>, bool) = (Vec::new(), Vec::new(), false);
    for (raw, line) in text.lines().zip(1..) {
        let content = without_comment(raw).trim();
        if content.is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| (line, format!("\"{content}\" is no section such as [reads]")))?;
            in_global = name == "global";
            if !in_global {
                sections.push(Section { line, name: name.to_owned(), options: global.clone() });
            }
            continue;
        }
        let (key, value) = content.split_once('=').unwrap_or((content, ""));
        let given = Given { line, key: key.trim().to_ascii_lowercase(), value: value.trim().to_owned() };
        match sections.last_mut() {
            _ if in_global => global.push(given),
            Some(section) => section.options.push(given),
            None => return Err((line, format!("{} stands before the first section, such as [reads]", given.key))),
        }
    }
    Ok(sections)
}

/// A comment begins with `;` or `#` at the beginning of a line or after a space.
fn without_comment(line: &str) -> &str {
    let begins = |at: usize| at == 0 || line[..at].ends_with(char::is_whitespace);
    let comment = line.char_indices().find(|(at, c)| (*c == ';' || *c == '#') && begins(*at));
    comment.map_or(line, |(at, _)| &line[..at])
}
