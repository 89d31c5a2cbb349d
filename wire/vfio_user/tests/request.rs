//! Messages at random: none brings the parser down, and those that it accepts have the contents that their sizes
//! require.

use nandscape_wire_vfio_user::access::{DmaMap, DmaUnmap, RegionAccess};
use nandscape_wire_vfio_user::device::{DeviceInfo, InterruptSet, RegionInfo};
use nandscape_wire_vfio_user::request::{Action, SetData};
use nandscape_wire_vfio_user::{Command, Errno, Header, Rejected, Request};
use proptest::prelude::*;
use zerocopy::IntoBytes;

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(command in 0u16..20, payload in proptest::collection::vec(any::<u8>(), 0..96)) {
        match Request::parse(command, &payload) {
            Ok(Request::Write(access, data)) => prop_assert_eq!(access.count.get() as usize, data.len()),
            Ok(Request::SetInterrupts(set, SetData::Some(which), _)) => {
                prop_assert_eq!(set.count.get() as usize, which.len());
            }
            Ok(Request::DmaMap(map)) => {
                prop_assert!(map.size.get() > 0);
                prop_assert!(map.address.get().checked_add(map.size.get() - 1).is_some());
            }
            Ok(_) => {}
            Err(rejected) => prop_assert!(rejected.errno().0 > 0 && !rejected.to_string().is_empty()),
        }
    }

    /// Random bytes hardly ever have the right length.
    #[test]
    fn fields_at_random_are_parsed_or_refused(flags in any::<u32>(), narrow in 0u32..64, ends in any::<[u64; 3]>()) {
        let [offset, address, size] = ends.map(Into::into);
        for flags in [flags, narrow].map(Into::into) {
            let map = DmaMap { argsz: 32.into(), flags, offset, address, size };
            let _ = Request::parse(Command::DMA_MAP.0, map.as_bytes());
            let unmap = DmaUnmap { argsz: 24.into(), flags, address, size };
            let _ = Request::parse(Command::DMA_UNMAP.0, unmap.as_bytes());
            let set = InterruptSet { flags, count: u32::MAX.into(), ..InterruptSet::default() };
            let _ = Request::parse(Command::DEVICE_SET_IRQS.0, set.as_bytes());
        }
        let access = RegionAccess { offset, region: 0.into(), count: (address.get() as u32).into() };
        let _ = Request::parse(Command::REGION_WRITE.0, access.as_bytes());
    }
}

#[test]
fn each_command_has_its_size() {
    let exact = [
        (Command::DEVICE_GET_INFO, size_of::<DeviceInfo>()),
        (Command::DEVICE_GET_REGION_INFO, size_of::<RegionInfo>()),
        (Command::DEVICE_GET_IRQ_INFO, 16),
        (Command::REGION_READ, 16),
        (Command::DEVICE_RESET, 0),
    ];
    for (command, size) in exact {
        for bytes in 0..64 {
            let is_parsed = Request::parse(command.0, &vec![0; bytes]).is_ok();
            assert_eq!(is_parsed, bytes == size, "{command:?} of {bytes} bytes");
        }
    }
}

#[test]
fn a_map_is_not_empty_and_ends_within_the_address_space() {
    let map = |flags: u32, offset: u64, address: u64, size: u64| {
        let (flags, offset, address, size) = (flags.into(), offset.into(), address.into(), size.into());
        Request::parse(2, DmaMap { argsz: 32.into(), flags, offset, address, size }.as_bytes()).is_ok()
    };
    assert!(map(3, 0, 0, 4_096) && map(1, 0, u64::MAX - 4_095, 4_096) && map(2, u64::MAX - 1, 0, 1));
    assert!(!map(3, 0, 0, 0) && !map(3, 0, u64::MAX, 2) && !map(3, u64::MAX, 0, 1));
    assert!(!map(0, 0, 0, 1) && !map(4, 0, 0, 1) && !map(7, 0, 0, 1), "flags");
}

#[test]
fn interrupts_are_set_by_one_kind_of_data_and_one_action() {
    let parse = |flags: u32, count: u32, data: &[u8]| {
        let set = InterruptSet { flags: flags.into(), count: count.into(), ..InterruptSet::default() };
        let bytes = [set.as_bytes(), data].concat();
        match Request::parse(8, &bytes) {
            Ok(Request::SetInterrupts(_, data, action)) => Ok((matches!(data, SetData::All), action)),
            Ok(other) => panic!("{other:?}"),
            Err(rejected) => Err(rejected.errno()),
        }
    };
    let (none, bools, events) = (InterruptSet::DATA_NONE, InterruptSet::DATA_BOOL, InterruptSet::DATA_EVENTFD);
    let (mask, unmask, trigger) =
        (InterruptSet::ACTION_MASK, InterruptSet::ACTION_UNMASK, InterruptSet::ACTION_TRIGGER);
    assert_eq!(parse(none | mask, 9, &[]), Ok((true, Action::Mask)));
    assert_eq!(parse(bools | unmask, 2, &[0, 1]), Ok((false, Action::Unmask)));
    assert_eq!(parse(events | trigger, 2, &[]), Ok((false, Action::Trigger)));
    for flags in [0, none, trigger, none | bools | mask, none | mask | unmask, none | mask | 1 << 6] {
        assert_eq!(parse(flags, 0, &[]), Err(Errno::EINVAL), "{flags:#x}");
    }
    assert_eq!(parse(bools | mask, 3, &[1]), Err(Errno::EINVAL));
    assert_eq!(parse(none | mask, 0, &[1]), Err(Errno::EINVAL));
}

#[test]
fn what_is_not_supported_is_told_from_what_is_not_known() {
    let errno = |command: u16| Request::parse(command, &[0; 24]).map_err(Rejected::errno).map(drop);
    for command in [6, 11, 12, 14, 15] {
        assert_eq!(errno(command), Err(Errno::EOPNOTSUPP), "{command}");
    }
    for command in [0, 16, 17, 65_535] {
        assert_eq!(errno(command), Err(Errno::ENOSYS), "{command}");
    }
    let dirty = DmaUnmap { flags: DmaUnmap::DIRTY.into(), ..DmaUnmap::default() };
    assert_eq!(Request::parse(3, dirty.as_bytes()).map_err(Rejected::errno).map(drop), Err(Errno::EOPNOTSUPP));
}

#[test]
fn a_reply_has_the_number_of_its_command() {
    let command = Header::command(77, Command::DMA_MAP, 32);
    assert!(command.is_command() && command.wants_reply() && command.size.get() == 48);
    let reply = command.reply(4);
    assert!(!reply.is_command() && (reply.id, reply.command, reply.size.get()) == (command.id, command.command, 20));
    let failure = command.failure(Errno::EEXIST);
    assert_eq!((failure.size.get(), failure.flags.get(), failure.error.get()), (16, 0x21, 17));
}
