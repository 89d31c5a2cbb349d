//! Opens pages in a headless browser, and returns the resulting document.

use std::path::Path;

use crate::program::number;

/// The data that a page carries, and holds that it needs nothing else.
pub(crate) fn data(html: &str) -> serde_json::Value {
    for reference in ["src=\"", "href=\"", "url(", "@import", "fetch("] {
        assert!(!html.contains(reference), "the page refers to something outside: {reference}");
    }
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"report\">").expect("the page carries data");
    let (json, _) = rest.split_once("</script>").expect("the element ends");
    serde_json::from_str(json).expect("the data are JSON")
}

/// Opens the page, and checks that its code runs to the end without an error and that every chart is drawn. Returns the page
/// in its final state.
#[cfg(target_os = "linux")]
pub(crate) fn open(page: &Path) -> String {
    let profile = tempfile::tempdir().expect("a folder");
    let output = std::process::Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap_or_else(|error| panic!("chromium: {error}; run: cargo xtask tools"));
    let dom = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!dom.contains("data-error="), "{}", &dom[..dom.find("<head>").unwrap_or(0)]);
    assert!(dom.contains("data-ready=\"yes\""), "the page's code does not come to its end\n{}", errors());
    let (figures, drawn) = (dom.matches("<figure ").count(), dom.matches("data-drawn=\"yes\"").count());
    let empty = dom.matches("data-points=\"0\"").count();
    assert!(drawn + empty >= figures, "{figures} charts, {drawn} drawn, {empty} empty");
    dom
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open(page: &Path) -> String {
    std::fs::read_to_string(page).expect("a page")
}

/// Holds that two reports have the same figures; what depends on the machine may differ.
pub(crate) fn same_figures(one: &serde_json::Value, other: &serde_json::Value) {
    assert!(number(one, "/requests") > 0.0);
    for (key, value) in one.as_object().expect("an object").iter().filter(|(key, _)| *key != "host") {
        assert_eq!(value, &other[key], "{key}");
    }
}
