//! The address of a target, and its options.

use std::fmt;
use std::str::FromStr;

use nandscape_sim::Span;
use nandscape_wire_nvme::fabrics::MAX_NQN;
use nandscape_wire_nvme::tcp::Digests;

/// The beginning of a target's address.
const SCHEME: &str = "nvme-tcp://";
/// [`Target::patience`] unless it is chosen.
const PATIENCE: Span = Span::from_s(600);

/// A target: `nvme-tcp://HOST:PORT/NQN`, perhaps with options:
/// `?namespace=2&queues=2&depth=256&digests=header,data&patience=60`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Host and port.
    pub address: String,
    /// The subsystem.
    pub nqn: String,
    /// The namespace; `None` is the first active one.
    pub namespace: Option<u32>,
    /// I/O queues, each a TCP connection.
    pub queues: u16,
    /// Commands of each queue at a time.
    pub depth: u16,
    /// The digests to ask for.
    pub digests: Digests,
    /// The name by which this host makes itself known.
    pub host_nqn: String,
    /// Its identifier, which is not zero.
    pub host_id: [u8; 16],
    /// Keep Alive Timeout.
    pub keep_alive: Span,
    /// Whether its user supplies and needs data. If not, reads discard received data, and writes send zeros.
    pub keeps_data: bool,
    /// How long a target may be out of reach, or silent while commands wait, before commands fail.
    pub patience: Span,
}

impl Target {
    /// A target with one queue, without digests.
    pub fn new(address: impl Into<String>, nqn: impl Into<String>) -> Target {
        Target {
            address: address.into(),
            nqn: nqn.into(),
            namespace: None,
            queues: 1,
            depth: 128,
            digests: Digests::default(),
            host_nqn: "nqn.2026-11.org.nandscape:host".to_owned(),
            host_id: *b"nandscape host\0\x01",
            keep_alive: Span::from_s(5),
            keeps_data: true,
            patience: PATIENCE,
        }
    }

    /// How long a connection may answer nothing, including a probe, while commands wait. This is half of the
    /// patience, which leaves the other half for another connection, but at least a second and at most six Keep Alive
    /// Timeouts.
    pub(super) fn silence(&self) -> Span {
        (self.patience / 2).max(Span::from_s(1)).min(self.patience).min(self.keep_alive * 6)
    }

    /// Whether a text means a target.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The target of a text, with this patience unless the text has another.
    ///
    /// # Errors
    /// What is wrong with the text, and what would be valid.
    pub fn parse(text: &str, patience: Span) -> Result<Target, String> {
        let bad = |problem: &str| format!("{text:?}: {problem}; a target is nvme-tcp://HOST:PORT/NQN");
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| bad("it does not begin with nvme-tcp://"))?;
        let (address, rest) = rest.split_once('/').ok_or_else(|| bad("the NQN is missing"))?;
        let (nqn, options) = rest.split_once('?').unwrap_or((rest, ""));
        match address.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && !port.is_empty() => check_port(port).map_err(|why| bad(&why))?,
            _ => return Err(bad("host and port are missing")),
        }
        if !nqn.starts_with("nqn.") || nqn.len() > MAX_NQN {
            return Err(bad(&format!("an NQN begins with nqn. and has at most {MAX_NQN} bytes")));
        }
        let mut target = Target { patience, ..Target::new(address, nqn) };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let number = |range: std::ops::RangeInclusive<u16>| {
                let number = value.parse().ok().filter(|number| range.contains(number));
                number.ok_or_else(|| bad(&format!("{key}={value}: from {} to {}", range.start(), range.end())))
            };
            match key {
                "namespace" => target.namespace = Some(number(1..=u16::MAX)?.into()),
                "queues" => target.queues = number(1..=64)?,
                "depth" => target.depth = number(1..=4_096)?,
                "digests" => target.digests = digests(value).ok_or_else(|| bad("digests are header, data, or both"))?,
                "patience" => target.patience = Span::from_s(number(1..=u16::MAX)?.into()),
                _ => {
                    return Err(bad(&format!("{key}: the options are namespace, queues, depth, digests and patience")));
                }
            }
        }
        Ok(target)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        Target::parse(text, PATIENCE)
    }
}

/// Checks the port of an address.
///
/// # Errors
/// With the valid range.
pub(crate) fn check_port(port: &str) -> Result<(), String> {
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(()),
        _ => Err(format!("{port} is no port; a number from 1 to 65535 is valid")),
    }
}

fn digests(text: &str) -> Option<Digests> {
    let mut digests = Digests::default();
    for word in text.split(',') {
        match word {
            "header" => digests.header = true,
            "data" => digests.data = true,
            _ => return None,
        }
    }
    Some(digests)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.address, self.nqn)?;
        self.namespace.map_or(Ok(()), |nsid| write!(f, "?namespace={nsid}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_with_its_options() {
        let target: Target = "nvme-tcp://[::1]:4420/nqn.a:b?queues=3&digests=data&depth=32&patience=9".parse().unwrap();
        assert_eq!((target.address.as_str(), target.nqn.as_str()), ("[::1]:4420", "nqn.a:b"));
        assert_eq!((target.queues, target.depth, target.digests), (3, 32, Digests { header: false, data: true }));
        let second: Target = "nvme-tcp://a:1/nqn.x?depth=3&namespace=2".parse().unwrap();
        assert_eq!((second.namespace, second.to_string().as_str()), (Some(2), "nvme-tcp://a:1/nqn.x?namespace=2"));
        assert_eq!((target.namespace, target.patience), (None, Span::from_s(9)));
        assert_eq!((target.patience, target.to_string().as_str()), (Span::from_s(9), "nvme-tcp://[::1]:4420/nqn.a:b"));
        let patience = |text| Target::parse(text, Span::from_s(10)).unwrap().patience;
        let of = ["nvme-tcp://a:1/nqn.x", "nvme-tcp://a:1/nqn.x?patience=9"].map(patience);
        assert_eq!(of, [Span::from_s(10), Span::from_s(9)]);
    }

    #[test]
    fn silence_is_half_of_the_patience_within_bounds() {
        let silence = |patience| Target { patience, ..Target::new("a:1", "nqn.x") }.silence();
        let patience = [Span::from_ms(300), Span::from_s(1), Span::from_s(5), Span::from_s(600)];
        let right = [Span::from_ms(300), Span::from_s(1), Span::from_ms(2_500), Span::from_s(30)];
        assert_eq!(patience.map(silence), right);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, words) in [
            ("tcp://a:1/nqn.x", "does not begin"),
            ("nvme-tcp://a:1", "NQN is missing"),
            ("nvme-tcp://a/nqn.x", "host and port"),
            ("nvme-tcp://a:/nqn.x", "host and port"),
            ("nvme-tcp://a:0/nqn.x", "0 is no port; a number from 1 to 65535 is valid"),
            ("nvme-tcp://a:70000/nqn.x", "70000 is no port"),
            ("nvme-tcp://[::1]/nqn.x", "1] is no port"),
            ("nvme-tcp://a:1/x", "begins with nqn."),
            ("nvme-tcp://a:1/nqn.x?namespace=0", "from 1 to 65535"),
            ("nvme-tcp://a:1/nqn.x?queues=0", "from 1 to 64"),
            ("nvme-tcp://a:1/nqn.x?digests=both", "header, data"),
            ("nvme-tcp://a:1/nqn.x?patience=0", "from 1 to 65535"),
            ("nvme-tcp://a:1/nqn.x?fast", "the options are"),
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains(words) && error.contains("nvme-tcp://HOST:PORT/NQN"), "{error}");
        }
    }
}
