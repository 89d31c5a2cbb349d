//! The names of this machine to which the HTTP servers answer. A page of another site in a browser here may send
//! requests. It can read the responses if its own name resolves to this machine (DNS rebinding), so such names are
//! rejected.

use std::net::{IpAddr, Ipv6Addr};

use crate::http::{Head, Response};

/// Checks the Host field of a request over TCP: an address, localhost, or this machine's own name.
///
/// # Errors
/// The response to a rejected request.
pub(crate) fn check_host(head: &Head) -> Result<(), Response> {
    let Some(host) = head.only("host") else {
        return Err(Response::refusal("400 Bad Request", "a request has one Host field"));
    };
    // If the system reports no name, it has none.
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = machine.trim();
    match is_own(host, name) {
        true => Ok(()),
        false => Err(Response::refusal(
            "421 Misdirected Request",
            &format!(
                "valid here: an IP address, localhost, or {name}: another name could be another site's for this machine"
            ),
        )),
    }
}

/// Whether a Host field names an address, localhost, or a machine of this name.
fn is_own(host: &str, machine: &str) -> bool {
    let port_is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(port_is_number);
        return has_port && address.parse::<Ipv6Addr>().is_ok();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_name = |own: &str| !own.is_empty() && name.eq_ignore_ascii_case(own);
    let is_address = || name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4());
    port_is_number(port) && (is_name("localhost") || is_name(machine) || is_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_localhost_and_the_machine_are_own_names() {
        for own in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.0.0.1:9000",
            "[::1]",
            "[::1]:9000",
            "10.1.2.3:1",
            "bench7",
            "Bench7:9000",
        ] {
            assert!(is_own(own, "bench7"), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "bench7.evil.example",
            "127.0.0.1.evil.example:80",
            "[::1",
            "[::1]x",
            "::1",
        ] {
            assert!(!is_own(other, "bench7"), "{other}");
        }
        assert!(!is_own("127.0.0.1:9x", "") && !is_own("[1.2.3.4]", "") && !is_own("", ""));
    }
}
