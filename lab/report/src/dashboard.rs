//! The live page of a server's drives. Its figures come from the server, which fills in the two marks
//! each time it sends the page.

use minijinja::context;

use crate::page;

const SCRIPTS: [&str; 5] = [
    include_str!("../templates/dashboard_figures.js"),
    include_str!("../templates/dashboard_charts.js"),
    include_str!("../templates/dashboard_maps.js"),
    include_str!("../templates/dashboard_orders.js"),
    include_str!("../templates/dashboard.js"),
];

/// The page. `nonce_mark` stands where the nonce of its scripts belongs, `token_mark` where the token of its orders does.
pub fn dashboard_page(nonce_mark: &str, token_mark: &str) -> String {
    let nonce = format!(" nonce=\"{nonce_mark}\"");
    page::render("dashboard.html", &SCRIPTS.join("\n"), "{}", context! { nonce, token_mark })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_has_the_nonce_and_the_token_is_there_once() {
        let page = dashboard_page("NONCE", "TOKEN");
        let scripts = page.matches("<script").count() - page.matches("<script type=\"application/json\"").count();
        assert!(scripts > 2);
        assert_eq!(page.matches("<script nonce=\"NONCE\">").count(), scripts);
        assert_eq!(page.matches("TOKEN").count(), 1);
    }
}
