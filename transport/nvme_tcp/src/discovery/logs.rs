//! The log pages of a discovery controller: those that are mandatory (Base 3.1.3.5), and NVMe-MI Commands Supported and
//! Effects, which the same bit of Identify Controller announces (LPA bit 5).

use std::net::SocketAddr;

use nandscape_wire_nvme::discovery::{
    DISCOVERY, Entry, Header, IPV4, IPV6, NVM_SUBSYSTEM, REQUIREMENTS, TCP, THIS_DISCOVERY,
};
use nandscape_wire_nvme::fabrics::{DISCOVERY_NQN, DYNAMIC, name_field};
use nandscape_wire_nvme::identify::ascii;
use nandscape_wire_nvme::log::{self, CommandsAndEffects, Identifiers};
use zerocopy::IntoBytes;

use super::{COMMANDS, ENTRIES, FEATURES};

/// The log pages, by identifier.
const LOGS: [u8; 5] = [
    log::SUPPORTED_LOG_PAGES,
    log::COMMANDS_AND_EFFECTS,
    log::FEATURES_AND_EFFECTS,
    log::MI_COMMANDS_AND_EFFECTS,
    DISCOVERY,
];

/// The discovery log of a server whose subsystems have the names `nqns`, for a host that reached it at `address`.
pub(crate) fn log_page<'a>(address: SocketAddr, nqns: impl Iterator<Item = &'a str>) -> Vec<u8> {
    // An IPv4 host of a socket that takes both is an IPv4 host.
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    let own = entry(DISCOVERY_NQN, address, THIS_DISCOVERY);
    let entries: Vec<Entry> = nqns.map(|nqn| entry(nqn, address, NVM_SUBSYSTEM)).chain([own]).collect();
    let mut log = Header::of(entries.len() as u64).as_bytes().to_vec();
    log.extend_from_slice(entries.as_bytes());
    log
}

fn entry(nqn: &str, address: SocketAddr, kind: u8) -> Entry {
    let mut entry = Entry::zeroed();
    entry.transport = TCP;
    entry.family = if address.is_ipv4() { IPV4 } else { IPV6 };
    entry.subsystem_type = kind;
    entry.requirements = REQUIREMENTS;
    entry.port = 1.into();
    entry.controller = DYNAMIC.into();
    entry.admin_size = ENTRIES.into();
    entry.service = ascii(&address.port().to_string());
    entry.subsystem = name_field(nqn);
    entry.address = ascii(&address.ip().to_string());
    entry
}

/// A log page; `discovery` is the discovery log. `None` when there is no such page.
pub(super) fn page(id: u8, discovery: &[u8]) -> Option<Vec<u8>> {
    Some(match id {
        DISCOVERY => discovery.to_vec(),
        log::SUPPORTED_LOG_PAGES => identifiers(&LOGS, log::LOG_SUPPORTED),
        log::FEATURES_AND_EFFECTS => identifiers(&FEATURES, log::FEATURE_SUPPORTED | log::SCOPE_CONTROLLER),
        log::COMMANDS_AND_EFFECTS => {
            let mut effects = CommandsAndEffects::zeroed();
            for opcode in COMMANDS {
                effects.admin[usize::from(opcode.0)] = (log::EFFECT_SUPPORTED | log::SCOPE_CONTROLLER).into();
            }
            effects.as_bytes().to_vec()
        }
        log::MI_COMMANDS_AND_EFFECTS => vec![0; log::MI_COMMANDS_AND_EFFECTS_BYTES],
        _ => return None,
    })
}

/// A page with the same dword for each of some identifiers.
fn identifiers(which: &[u8], dword: u32) -> Vec<u8> {
    let mut page = Identifiers::zeroed();
    which.iter().for_each(|id| page.ids[usize::from(*id)] = dword.into());
    page.as_bytes().to_vec()
}
