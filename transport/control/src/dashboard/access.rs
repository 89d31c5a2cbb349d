//! Which requests the dashboard answers. A page of another site that is open in the same browser may send requests here; it
//! reads no response and gives no order.
//!
//! The Host field has to be an address or localhost: another site's name, which its owner may let stand for this machine (DNS
//! rebinding), is refused. An order has to carry the token that only the dashboard's own page can read.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr};

use crate::http::{Head, Response};

/// The field that carries the token.
pub(super) const TOKEN_FIELD: &str = "x-nandscape-token";

/// Thirty-two random hexadecimal digits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Checks the Host field of a request that came over TCP.
///
/// # Errors
/// The response to a request that is refused.
pub(super) fn check_host(head: &Head) -> Result<(), Response> {
    let Some(host) = head.only("host") else {
        return Err(Response::refusal("400 Bad Request", "a request has one Host field"));
    };
    match is_own(host) {
        true => Ok(()),
        false => Err(Response::refusal(
            "421 Misdirected Request",
            "the dashboard answers to localhost and to IP addresses only: any other name could be another site's for this machine",
        )),
    }
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

/// Whether a Host field names an address, or localhost.
fn is_own(host: &str) -> bool {
    let port_is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(port_is_number);
        return has_port && address.parse::<Ipv6Addr>().is_ok();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    port_is_number(port)
        && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_own_names() {
        for own in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:9000", "[::1]", "[::1]:9000", "10.1.2.3:1"] {
            assert!(is_own(own), "{own}");
        }
        for other in
            ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::1", "[::1]x", "::1"]
        {
            assert!(!is_own(other), "{other}");
        }
        assert!(!is_own("127.0.0.1:9x") && !is_own("[1.2.3.4]"));
    }

    #[test]
    fn tokens_differ() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one.len() == 32 && one != other);
    }
}
