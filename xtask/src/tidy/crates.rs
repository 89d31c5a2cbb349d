//! Each crate must have a description in its manifest, and a map of its files at the head of its library.

use super::Problem;
use crate::files::Text;

/// Missing descriptions and maps.
pub(crate) fn check(files: &[Text]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        if file.path.ends_with("/Cargo.toml") && !described(&file.text) {
            problems.push(Problem::in_file(&file.path, "has no package.description"));
        }
        if file.path.ends_with("/src/lib.rs") {
            problems.extend(unmapped(&file.text).into_iter().map(|(line, module)| {
                Problem::at_line(&file.path, line, format!("the map in the file's header does not name `{module}`"))
            }));
        }
    }
    problems
}

fn described(manifest: &str) -> bool {
    let table: Option<toml::Table> = manifest.parse().ok();
    let description = table.as_ref().and_then(|table| table.get("package")?.get("description")?.as_str());
    description.is_some_and(|text| text.len() > 10)
}

/// Lines, from 1, and names of modules that the header leaves out.
fn unmapped(text: &str) -> Vec<(usize, &str)> {
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let mut missing = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let declared = line.strip_prefix("pub ").unwrap_or(line);
        let Some(module) = declared.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) else { continue };
        if !header.iter().any(|line| line.contains(&format!("`{module}`"))) {
            missing.push((number, module));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_needed() {
        assert!(described("[package]\ndescription = \"What it is for\"\n"));
        assert!(!described("[package]\nname = \"x\"\n"));
        assert!(!described("no manifest"));
    }

    #[test]
    fn modules_that_the_map_leaves_out_are_named() {
        let text = "//! A crate.\n//! | `one`, `two` | both |\n\nmod one;\npub mod two;\nmod three;\n";
        assert_eq!(unmapped(text), [(6, "three")]);
    }
}
