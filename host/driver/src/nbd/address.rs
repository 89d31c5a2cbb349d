//! A server and an export, as a URI of the NBD project (doc/uri.md): `nbd://HOST[:PORT]/EXPORT`,
//! `nbd+unix:///EXPORT?socket=PATH`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::nvme_tcp::check_port;

/// The port of NBD.
const PORT: u16 = 10_809;

/// The address at which a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP port: `HOST:PORT`.
    Tcp(String),
}

/// A server and an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NbdAddress {
    /// The server.
    pub place: Place,
    /// The export's name; the empty name is the default export's.
    pub export: String,
}

impl FromStr for NbdAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<NbdAddress, String> {
        let wrong =
            |why: &str| format!("{text:?}: {why}; valid are nbd://HOST:PORT/EXPORT and nbd+unix:///EXPORT?socket=PATH");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
        let decoded = |part: &str| {
            let text = percent_decode_str(part).decode_utf8();
            text.map(|text| text.into_owned()).map_err(|_| wrong("a %-code is not UTF-8"))
        };
        let place = match (scheme, query.map(|query| query.strip_prefix("socket="))) {
            ("nbd", None) if !host.is_empty() => Place::Tcp(with_port(host).map_err(|why| wrong(&why))?),
            ("nbd", None) => return Err(wrong("it names no host")),
            ("nbd", Some(_)) => return Err(wrong("nbd:// has no parameters")),
            ("nbd+unix", Some(Some(path))) if host.is_empty() && !path.is_empty() => Place::Unix(decoded(path)?.into()),
            ("nbd+unix", _) => return Err(wrong("nbd+unix needs the parameter socket, and no host")),
            _ => return Err(wrong("the scheme is neither nbd nor nbd+unix")),
        };
        Ok(NbdAddress { place, export: decoded(export)? })
    }
}

fn with_port(host: &str) -> Result<String, String> {
    let after_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    match after_address.split_once(':') {
        Some((_, port)) => check_port(port).map(|()| host.to_owned()),
        None => Ok(format!("{host}:{PORT}")),
    }
}

impl fmt::Display for NbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Unix(path) => write!(f, "nbd+unix:///{}?socket={}", self.export, path.display()),
            Place::Tcp(address) => write!(f, "nbd://{address}/{}", self.export),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> NbdAddress {
        text.parse().unwrap()
    }

    #[test]
    fn both_forms_are_understood() {
        let tcp = |address: &str, export: &str| NbdAddress {
            place: Place::Tcp(address.to_owned()),
            export: export.to_owned(),
        };
        assert_eq!(parsed("nbd://localhost:1234/a%20b"), tcp("localhost:1234", "a b"));
        assert_eq!(parsed("nbd://localhost"), tcp("localhost:10809", ""));
        assert_eq!(parsed("nbd://[::1]/x"), tcp("[::1]:10809", "x"));
        let unix = parsed("nbd+unix:///small?socket=run%2Fn.sock");
        assert_eq!(unix, NbdAddress { place: Place::Unix("run/n.sock".into()), export: "small".to_owned() });
        assert_eq!(unix.to_string(), "nbd+unix:///small?socket=run/n.sock");
    }

    #[test]
    fn others_are_refused_with_the_forms() {
        for (text, why) in [
            ("localhost:10809", "no scheme"),
            ("http://localhost/", "neither nbd nor"),
            ("nbd:///x", "names no host"),
            ("nbd://h:70000/x", "70000 is no port; a number from 1 to 65535"),
            ("nbd://h:/x", "is no port"),
            ("nbd://h/x?socket=y", "no parameters"),
            ("nbd+unix:///x", "needs the parameter socket"),
            ("nbd+unix://h/x?socket=y", "no host"),
            ("nbd://h/%ff", "not UTF-8"),
        ] {
            let error = NbdAddress::from_str(text).unwrap_err();
            assert!(error.contains(why) && error.contains("nbd+unix:///EXPORT?socket=PATH"), "{text}: {error}");
        }
    }
}
