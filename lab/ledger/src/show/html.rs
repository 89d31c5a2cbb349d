//! The Markdown page as a self-contained HTML page.

use pulldown_cmark::{Options, Parser};

/// How it looks.
const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border-bottom: 1px solid #d5dae0; padding: .25rem .7rem; text-align: left; vertical-align: top }
th { background: #f3f5f8 }
td { font-variant-numeric: tabular-nums }
h2 { margin-top: 2.5rem }";

/// A page of Markdown as HTML. Headings can be linked to by their text.
pub fn page(markdown: &str) -> String {
    let mut body = String::new();
    pulldown_cmark::html::push_html(&mut body, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    let mut linked = String::with_capacity(body.len());
    for (place, part) in body.split("<h2>").enumerate() {
        if place > 0 {
            let heading = part.split('<').next().unwrap_or_default();
            linked.push_str(&format!("<h2 id=\"{heading}\">"));
        }
        linked.push_str(part);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Verdicts</title>\n\
         <style>\n{STYLE}\n</style>\n</head>\n<body>\n{linked}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_headings_become_html() {
        let html = page("# Verdicts\n\n| a | b |\n|---|---|\n| [x](#x) | <1 & 2> |\n\n## x\n\ntext\n");
        for part in ["<!doctype html>", "<td><a href=\"#x\">x</a></td>", "<h2 id=\"x\">x</h2>", "&amp; 2"] {
            assert!(html.contains(part), "{part} is not in {html}");
        }
    }
}
