//! Checks orders to the dashboard. A page of another site in the same browser may send requests here, so an order
//! must carry the token that only the dashboard's own page can read.

use std::io::{self, Read as _};

use crate::http::{Head, Response};

/// The field that carries the token.
pub(super) const TOKEN_FIELD: &str = "x-nandscape-token";

/// Thirty-two random hexadecimal digits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Checks that an order comes from the dashboard's own page.
///
/// # Errors
/// The response to a request that is refused.
pub(super) fn check_order(head: &Head, token: &str) -> Result<(), Response> {
    let kind = head.only("content-type").unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let reason = "an order is one JSON object: Content-Type is application/json";
        return Err(Response::refusal("415 Unsupported Media Type", reason));
    }
    let own = head.only("host").map(|host| format!("http://{host}"));
    if head.all("origin").any(|origin| Some(origin) != own.as_deref()) {
        return Err(Response::refusal("403 Forbidden", "orders are taken from the dashboard's own page only"));
    }
    match head.only(TOKEN_FIELD) == Some(token) {
        true => Ok(()),
        false => Err(Response::refusal(
            "403 Forbidden",
            "an order carries the X-Nandscape-Token of the page that is served now: load the page again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one.len() == 32 && one != other);
    }
}
