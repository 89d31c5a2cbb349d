//! The Markdown page as a self-contained HTML page, in the style of the other pages: verdicts have colours, and columns of
//! numbers have bars. A figure of each claim precedes its table.

use nandscape_lab_report::STYLE;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::outcome::Outcome;
use crate::show::figure;
use crate::show::markdown::{NO_VERDICT, verdicts};

/// What the pages of runs do not have.
const MORE: &str = "\
:root { --good: var(--program); --part: var(--gc); --bad: var(--erase); --open: var(--metadata) }
h2 { scroll-margin-top: 1rem }
table.data td, table.data th { text-align: left; vertical-align: top; white-space: normal }
table.data td.number { text-align: right; white-space: nowrap }
.verdict::before { content: \"\"; display: inline-block; width: .7em; height: .7em; margin-right: .45em; border-radius: 50%; background: var(--of) }
.share { display: flex; height: 26px; margin-top: 1rem; border-radius: 5px; overflow: hidden }
.share span { border-right: 1px solid var(--paper) }
td .amount { display: block; height: 4px; margin-top: 2px; border-radius: 2px; background: var(--read); opacity: .75 }";

/// Adds bars to columns of numbers, in proportion to the numbers of a column.
const SCRIPT: &str = "\
for (const table of document.querySelectorAll('h2 ~ .scroll table')) {
  const rows = [...table.tBodies[0].rows], columns = table.tHead.rows[0].cells.length;
  const number = (cell) => /^-?[0-9][0-9,]*(\\.[0-9]+)?%?$/.test(cell?.textContent ?? '') ? Number(cell.textContent.replace(/[,%]/g, '')) : null;
  for (let column = 1; column < columns; column++) {
    const values = rows.map((row) => number(row.cells[column])), known = values.filter((value) => value !== null);
    if (known.length < 3 || known.some((value) => value < 0) || known.every((value) => value === known[0])) continue;
    // Units of their own cannot be compared.
    const units = table.tHead.rows[0].cells[2]?.textContent === 'unit' ? new Set(rows.map((row) => row.cells[2].textContent)) : new Set();
    if (units.size > 1) continue;
    const most = Math.max(...known);
    rows.forEach((row, at) => {
      if (values[at] === null) return;
      row.cells[column].classList.add('number');
      const bar = document.createElement('span');
      bar.className = 'amount';
      bar.style.width = 100 * values[at] / most + '%';
      row.cells[column].append(bar);
    });
  }
}";

/// The colour of a verdict.
fn color(verdict: &str) -> &'static str {
    match verdict {
        "reproduced" | "holds" => "--good",
        "reproduced in part" | "holds in part" | "too short to tell" | "depends" => "--part",
        "reproduced in order, not in size" | "holds in order, not in size" => "--part",
        "missed" | "not told apart" | "failed" => "--bad",
        _ => "--open",
    }
}

/// Whether a text is a verdict with the colour of open results.
fn is_open(text: &str) -> bool {
    ["not measured", "asks for a run"].contains(&text) || text.ends_with(NO_VERDICT)
}

/// Outcomes as a page; `markdown` is their page of Markdown. Headings can be linked to by their text.
pub fn page(outcomes: &[Outcome], markdown: &str) -> String {
    let verdicts = verdicts(outcomes);
    let verdicts: Vec<&str> = verdicts.iter().map(String::as_str).collect();
    let mut body = body(markdown).replacen("</h1>\n", &format!("</h1>\n{}", shares(&verdicts)), 1);
    for outcome in outcomes {
        let section = body.find(&format!("<h2 id=\"{}\">", outcome.experiment.claim.id));
        let table = section.and_then(|section| Some(section + body[section..].find("<div class=\"scroll\"")?));
        if let Some(table) = table {
            body.insert_str(table, &figure::of(outcome));
        }
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Verdicts</title>\n\
         <style>\n{STYLE}\n{MORE}\n{}\n</style>\n</head>\n<body>\n{body}<script>\n{SCRIPT}\n</script>\n</body>\n</html>\n",
        figure::STYLE
    )
}

/// How many claims have each verdict, as a bar with its key.
fn shares(verdicts: &[&str]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for verdict in verdicts {
        match counts.iter_mut().find(|(known, _)| known == verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict, 1)),
        }
    }
    let order = ["--good", "--part", "--bad", "--open"];
    counts.sort_by_key(|(verdict, _)| order.iter().position(|color| *color == self::color(verdict)));
    let told: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let part = |(verdict, count): &(&str, usize)| {
        format!(
            "<span style=\"flex: {count} 0 0; background: var({})\" title=\"{count} {verdict}\"></span>",
            color(verdict)
        )
    };
    let key = |(verdict, count): &(&str, usize)| {
        format!("<li><i style=\"background: var({})\"></i>{count} {verdict}</li>", color(verdict))
    };
    format!(
        "<div class=\"share\" role=\"img\" aria-label=\"{}\">{}</div>\n<ul class=\"key\">{}</ul>\n",
        told.join(", "),
        counts.iter().map(part).collect::<String>(),
        counts.iter().map(key).collect::<String>()
    )
}

/// The Markdown as HTML: tables may be moved sideways, headings have names, and verdicts have their colours.
fn body(markdown: &str) -> String {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
        Event::Start(Tag::Table(_)) => Event::Html(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table class=\"data\">".into(),
        ),
        Event::End(TagEnd::Table) => Event::Html("</tbody></table></div>\n".into()),
        Event::Text(text) if color(&text) != "--open" || is_open(&text) => {
            let of = color(&text);
            Event::InlineHtml(format!("<span class=\"verdict\" style=\"--of: var({of})\">{text}</span>").into())
        }
        other => other,
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    let mut linked = String::with_capacity(html.len());
    for (place, part) in html.split("<h2>").enumerate() {
        if place > 0 {
            let heading = part.split('<').next().unwrap_or_default();
            linked.push_str(&format!("<h2 id=\"{heading}\">"));
        }
        linked.push_str(part);
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_headings_become_html() {
        let html = body("# Verdicts\n\n| a | b |\n|---|---|\n| [x](#x) | <1 & 2> |\n\n## x\n\n**missed**\n");
        for part in ["<td><a href=\"#x\">x</a></td>", "<h2 id=\"x\">x</h2>", "&amp; 2"] {
            assert!(html.contains(part), "{part} is not in {html}");
        }
        assert!(
            html.contains("<strong><span class=\"verdict\" style=\"--of: var(--bad)\">missed</span></strong>"),
            "{html}"
        );
        assert_eq!((html.matches("<table").count(), html.matches("</table></div>").count()), (1, 1));
        assert_eq!((html.matches("<thead>").count(), html.matches("<tbody>").count()), (1, 1));
    }

    #[test]
    fn verdicts_are_counted_good_ones_first() {
        let shares = shares(&["missed", "holds", "not measured", "holds"]);
        assert!(shares.contains("aria-label=\"2 holds, 1 missed, 1 not measured\""), "{shares}");
    }
}
