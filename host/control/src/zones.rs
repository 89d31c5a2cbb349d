//! Zones (ZNS): a host writes each of them in order and decides when it is erased, so that the drive collects nothing.
//!
//! Left out: Zone Append, random write areas, descriptor extensions, conventional zones.

use std::rc::Rc;

use nandscape_drive::{Drive, HostMem};
use nandscape_sim::Sim;
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::identify::cns;
use nandscape_wire_nvme::zns::{
    CSI, IdentifyNamespace, REPORT_HEAD, ZoneDescriptor, manage_zone, report_zones, send, zones_of,
};
use zerocopy::FromBytes;

use crate::Error;
use crate::admin::Admin;

/// Zones of one report.
const OF_REPORT: u64 = 256;

/// A zone, in bytes of the namespace.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Where it begins.
    pub start: u64,
    /// How many bytes it takes.
    pub capacity: u64,
    /// How many of them are written, or cannot be written any more because the zone is full.
    pub written: u64,
}

/// A drive with zones.
pub struct Zones {
    io: Admin,
    nsid: u32,
    lba_bytes: u64,
    blocks: u64,
    most_blocks: u64,
    /// Bytes from the start of a zone to the start of the next.
    pub size: u64,
    /// Zones that may be active at a time; `None` is no limit.
    pub most_active: Option<u64>,
}

impl Zones {
    /// A drive whose commands go through `io`, and its admin commands through `admin`.
    ///
    /// # Errors
    /// When the drive has no zones, by Identify Namespace of its command set.
    pub async fn open(sim: &Sim, (io, admin): (Rc<dyn Drive>, Rc<dyn Drive>)) -> Result<Zones, Error> {
        let info = io.info();
        let mem = HostMem::zeroed(size_of::<IdentifyNamespace>());
        let entry = SubmissionEntry::identify(cns::COMMAND_SET_NAMESPACE, info.nsid);
        let entry = SubmissionEntry { cdw11: (u32::from(CSI) << 24).into(), ..entry };
        let identified = Admin::new(sim, admin).execute(entry, &mem).await.is_ok();
        let data = IdentifyNamespace::read_from_bytes(&mem.to_vec()).ok().filter(|_| identified);
        let data = data.ok_or(Error::NoZones)?;
        // A drive has the size of zones with the one format that it is in.
        let zone_blocks = data.lbafe.iter().map(|format| format.zsze.get()).find(|blocks| *blocks > 0);
        let zone_blocks = zone_blocks.ok_or(Error::NoZones)?;
        let lba_bytes = u64::from(info.lba_bytes);
        Ok(Zones {
            io: Admin::new(sim, io),
            nsid: info.nsid,
            lba_bytes,
            blocks: info.blocks,
            most_blocks: info.max_blocks.into(),
            size: zone_blocks * lba_bytes,
            most_active: data.mar_z.get().checked_add(1).map(u64::from),
        })
    }

    /// All zones.
    ///
    /// # Errors
    /// When the drive rejects the command, or reports no zone where one begins.
    pub async fn all(&self) -> Result<Vec<Zone>, Error> {
        let (mut zones, count) = (Vec::new(), self.blocks * self.lba_bytes / self.size);
        while (zones.len() as u64) < count {
            let found = self.report(zones.len() as u64, OF_REPORT).await?;
            if found.is_empty() {
                return Err(Error::NoZones);
            }
            zones.extend(found);
        }
        Ok(zones)
    }

    /// A zone by its number.
    ///
    /// # Errors
    /// As [`Zones::all`].
    pub async fn zone(&self, number: u64) -> Result<Zone, Error> {
        self.report(number, 1).await?.pop().ok_or(Error::NoZones)
    }

    /// Zones from one on, as many as a report has.
    async fn report(&self, first: u64, most: u64) -> Result<Vec<Zone>, Error> {
        let descriptor = size_of::<ZoneDescriptor>() as u64;
        let fit = (self.most_blocks * self.lba_bytes - REPORT_HEAD as u64) / descriptor;
        let mem = HostMem::zeroed(REPORT_HEAD + (fit.min(most) * descriptor) as usize);
        let slba = first * self.size / self.lba_bytes;
        self.io.execute(report_zones(self.nsid, slba, mem.len() as u32), &mem).await?;
        Ok(zones_of(&mem.to_vec()).map(|zone| self.of(&zone)).collect())
    }

    fn of(&self, zone: &ZoneDescriptor) -> Zone {
        let blocks = [zone.zslba.get(), zone.zcap.get(), zone.written()];
        let [start, capacity, written] = blocks.map(|blocks| blocks * self.lba_bytes);
        Zone { start, capacity, written }
    }

    /// Empties a zone, and waits until it is erased.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn reset(&self, number: u64) -> Result<(), Error> {
        self.send(number, send::RESET).await
    }

    /// Makes a zone full, so that it is not active any more, and waits until it is programmed.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn finish(&self, number: u64) -> Result<(), Error> {
        self.send(number, send::FINISH).await
    }

    async fn send(&self, number: u64, action: u8) -> Result<(), Error> {
        let entry = manage_zone(self.nsid, number * self.size / self.lba_bytes, action);
        self.io.execute(entry, &HostMem::none()).await.map(drop)
    }
}
