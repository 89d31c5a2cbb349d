//! The uuid of a new array. It is derived from seed and time, the level, the host's name for the array, and the
//! serial numbers of the drives, so that arrays of other drives have other uuids.

use nandscape_drive::{HostMem, Issuer};
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::identify::{self, cns};
use zerocopy::FromBytes;

use crate::config::Config;
use crate::level::Shape;
use crate::member::Member;

pub(super) async fn uuid_of(sim: &Sim, shape: Shape, config: &Config, members: &[Member]) -> [u8; 16] {
    let own = Seed::new(config.seed ^ sim.now().ns()).child(&shape.to_string()).child(&config.identity);
    let mut seed = own;
    for (number, member) in (0..).zip(members) {
        seed = seed.nth(number).child(&name_of(&Issuer::new(sim), member).await);
    }
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&seed.child("low").value().to_le_bytes());
    uuid[8..].copy_from_slice(&seed.child("high").value().to_le_bytes());
    uuid
}

/// Serial number and subsystem of a drive; empty if the array cannot ask the drive (Base 5.1.13.2.1, Identify
/// Controller).
async fn name_of(issuer: &Issuer, member: &Member) -> String {
    let Some(admin) = &member.admin else { return String::new() };
    let mem = HostMem::zeroed(size_of::<identify::Controller>());
    let entry = SubmissionEntry::identify(cns::CONTROLLER, 0);
    let is_told = issuer.execute(&**admin, entry, mem.clone()).await.status.is_success();
    let told = identify::Controller::read_from_bytes(&mem.to_vec()).ok().filter(|_| is_told);
    told.map_or_else(String::new, |told| {
        format!("{} {}", String::from_utf8_lossy(&told.sn), String::from_utf8_lossy(&told.subnqn))
    })
}
