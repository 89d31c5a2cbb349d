//! Zone Management Receive: Report Zones, and Extended Report Zones where zones have descriptor extensions (ZNS 3.4.2).

use nandscape_device_ftl_zoned::zone::table::{Zone, ZoneState};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::zns::{
    EXTENSION_VALID, REPORT_HEAD, ReceiveCdw13, SEQUENTIAL_WRITE_REQUIRED, ZRWA_VALID, ZoneDescriptor, receive,
};
use zerocopy::IntoBytes;

use super::Zns;
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

/// The states that reports can be limited to, by Zone Receive Action Specific from 1 on.
const STATES: [ZoneState; 7] = [
    ZoneState::Empty,
    ZoneState::ImplicitlyOpened,
    ZoneState::ExplicitlyOpened,
    ZoneState::Closed,
    ZoneState::Full,
    ZoneState::ReadOnly,
    ZoneState::Offline,
];

impl Zns {
    /// Serves the command.
    pub(super) async fn report(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let (entry, fields) = (command.entry, ReceiveCdw13::of(command.entry));
        command.namespace.check_flags(entry)?;
        let extension = self.ftl().config().extension as usize;
        let extension = match fields.action() {
            receive::REPORT => 0,
            receive::EXTENDED_REPORT if extension > 0 => extension,
            _ => return Err(Refusal::field(13, 0).final_().into()),
        };
        let states = match fields.which() {
            0 => &STATES[..],
            which => STATES.get(which as usize - 1..which as usize).ok_or(Refusal::field(13, 8).final_())?,
        };
        let slba = entry.slba();
        if slba >= command.namespace.blocks {
            return Err(Refusal::of(Status::LBA_OUT_OF_RANGE, Refusal::field(10, 0).parameter).final_().into());
        }
        // Number of Dwords, counted from zero.
        let bytes = (u64::from(entry.cdw12.get()) + 1) * 4;
        let most = u64::from(command.namespace.max_blocks) * u64::from(command.namespace.lba_bytes);
        if bytes < REPORT_HEAD as u64 || bytes > most {
            return Err(Refusal::field(12, 0).final_().into());
        }
        command.mem.must_cover(bytes as usize)?;
        let page = self.page(self.zone_of(slba).0, states, (bytes as usize, extension), fields.partial());
        command.mem.write(0, &page);
        command.link.send(bytes, breakdown).await;
        Ok(())
    }

    /// A report of `bytes` bytes, in which each descriptor is followed by `extension` bytes.
    fn page(&self, from: u32, states: &[ZoneState], (bytes, extension): (usize, usize), partial: bool) -> Vec<u8> {
        let mut page = vec![0; REPORT_HEAD];
        let (mut fits, mut matches) = (0u64, 0u64);
        for number in from..self.ftl().config().zones {
            let zone = self.ftl().zone(number);
            if !states.contains(&zone.state) {
                continue;
            }
            matches += 1;
            if page.len() + size_of::<ZoneDescriptor>() + extension <= bytes {
                fits += 1;
                page.extend_from_slice(self.descriptor(number, &zone).as_bytes());
                let end = page.len() + extension;
                let of_zone = self.ftl().extension(number).filter(|_| extension > 0);
                page.extend_from_slice(of_zone.as_deref().unwrap_or_default());
                page.resize(end, 0);
            } else if partial {
                break;
            }
        }
        let count = if partial { fits } else { matches };
        page[..8].copy_from_slice(&count.to_le_bytes());
        page.resize(bytes, 0);
        page
    }

    fn descriptor(&self, number: u32, zone: &Zone) -> ZoneDescriptor {
        let start = u64::from(number) * u64::from(self.ftl().config().size);
        let valid = |is_there: bool, attribute: u8| if is_there { attribute } else { 0 };
        let has_pointer = zone.state.is_active() || zone.state == ZoneState::Empty;
        ZoneDescriptor {
            zt: SEQUENTIAL_WRITE_REQUIRED,
            zs: (zone.state as u8) << 4,
            za: valid(zone.has_zrwa, ZRWA_VALID) | valid(self.ftl().extension(number).is_some(), EXTENSION_VALID),
            zcap: u64::from(self.ftl().capacity()).into(),
            zslba: start.into(),
            wp: if has_pointer { start + u64::from(zone.written) } else { u64::MAX }.into(),
            ..ZoneDescriptor::default()
        }
    }
}
