//! Messages of a correct client, and the answers to incorrect ones, one by one.

use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::vendor::PCI_DEVICE;
use nandscape_wire_vfio_user::access::{DmaUnmap, RegionAccess};
use nandscape_wire_vfio_user::device::{DeviceInfo, InterruptInfo, InterruptSet, RegionInfo};
use nandscape_wire_vfio_user::{Command, Errno, Header};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::client::Client;
use crate::host::{BAR0, CONFIG, Host, Pointer};
use crate::server::{PAIRS, Server};

const EINVAL: u32 = Errno::EINVAL.0;

#[test]
fn a_client_learns_what_the_device_is() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut client = Client::agree(&server.path(0));
    let asked = DeviceInfo { argsz: 16.into(), ..DeviceInfo::default() };
    let info = client.call(Command::DEVICE_GET_INFO, asked.as_bytes()).unwrap();
    let info = DeviceInfo::read_from_bytes(&info).unwrap();
    assert_eq!((info.flags.get(), info.regions.get(), info.interrupts.get()), (3, 9, 5));
    let sizes: Vec<u64> = (0..9).map(|index| region(&mut client, index, 32).unwrap().size.get()).collect();
    assert_eq!(sizes, [0x2000, 0, 0, 0, 0x2000, 0, 0, 4_096, 0]);
    let counts: Vec<u32> = (0..5).map(|index| interrupts(&mut client, index).unwrap()).collect();
    assert_eq!(counts, [0, 0, u32::from(PAIRS) + 1, 0, 0]);
    assert_eq!((region(&mut client, 9, 32), interrupts(&mut client, 5)), (Err(EINVAL), Err(EINVAL)));
    assert_eq!(region(&mut client, 0, 31), Err(EINVAL));
    assert_eq!(client.read32(CONFIG, 8) >> 8, 0x01_08_02, "an NVMe controller");
    assert_eq!(client.read(BAR0, 0x08, 4).unwrap(), 0x0002_0100u32.to_le_bytes(), "version 2.1");
    // Some bytes across dwords, all of a page.
    assert_eq!(client.read(BAR0, 0x09, 6).unwrap(), client.read(BAR0, 0, 4_096).unwrap()[9..15]);
    server.stop();
}

fn region(client: &mut Client, index: u32, argsz: u32) -> Result<RegionInfo, u32> {
    let asked = RegionInfo { argsz: argsz.into(), index: index.into(), ..RegionInfo::default() };
    let info = client.call(Command::DEVICE_GET_REGION_INFO, asked.as_bytes())?;
    Ok(RegionInfo::read_from_prefix(&info).unwrap().0)
}

fn interrupts(client: &mut Client, index: u32) -> Result<u32, u32> {
    let asked = InterruptInfo { argsz: 16.into(), index: index.into(), ..InterruptInfo::default() };
    let info = client.call(Command::DEVICE_GET_IRQ_INFO, asked.as_bytes())?;
    Ok(InterruptInfo::read_from_bytes(&info).unwrap().count.get())
}

#[test]
fn what_cannot_be_is_answered_and_the_connection_goes_on() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut client = Client::agree(&server.path(0));
    let access = |region: u32, offset: u64, count: u32| RegionAccess {
        offset: offset.into(),
        region: region.into(),
        count: count.into(),
    };
    let unmap = DmaUnmap { argsz: 24.into(), flags: 0.into(), address: 0.into(), size: 4_096.into() };
    let rows: [(&str, Command, Vec<u8>, Errno); 14] = [
        ("version again", Command::VERSION, vec![0; 4], Errno::EINVAL),
        ("no such command", Command(99), vec![1, 2, 3], Errno::ENOSYS),
        ("many writes", Command::REGION_WRITE_MULTI, vec![0; 8], Errno::EOPNOTSUPP),
        ("dirty pages", Command::DIRTY_PAGES, vec![0; 16], Errno::EOPNOTSUPP),
        ("descriptors for regions", Command::DEVICE_GET_REGION_IO_FDS, vec![0; 16], Errno::EOPNOTSUPP),
        ("of the server", Command::DMA_READ, vec![0; 16], Errno::EOPNOTSUPP),
        ("too short", Command::DMA_MAP, vec![0; 31], Errno::EINVAL),
        ("too long", Command::DEVICE_RESET, vec![0; 1], Errno::EINVAL),
        ("beyond the message", Command::REGION_WRITE, access(CONFIG, 0, 9).as_bytes().to_vec(), Errno::EINVAL),
        ("beyond the region", Command::REGION_READ, access(CONFIG, 4_090, 8).as_bytes().to_vec(), Errno::EINVAL),
        ("beyond all", Command::REGION_READ, access(CONFIG, u64::MAX, 8).as_bytes().to_vec(), Errno::EINVAL),
        ("no such region", Command::REGION_READ, access(77, 0, 0x10).as_bytes().to_vec(), Errno::EINVAL),
        ("of no memory", Command::REGION_READ, access(4, 0, u32::MAX).as_bytes().to_vec(), Errno::EINVAL),
        ("not mapped", Command::DMA_UNMAP, unmap.as_bytes().to_vec(), Errno::ENOENT),
    ];
    for (what, command, payload, errno) in rows {
        assert_eq!(client.call(command, &payload), Err(errno.0), "{what}");
    }
    // Longer than agreed, and one that was not requested.
    assert_eq!(client.call(Command::REGION_WRITE, &vec![0; 3 << 20]), Err(Errno::E2BIG.0));
    let silent = Header { flags: Header::NO_REPLY.into(), ..Header::command(9, Command(99), 0) };
    client.send_bytes(silent.as_bytes(), &[]);
    // A reply without a request.
    client.send_bytes(Header::command(9, Command::DMA_READ, 0).reply(0).as_bytes(), &[]);
    assert_eq!(client.read32(CONFIG, 8) >> 8, 0x01_08_02);
    server.stop();
}

#[test]
fn nothing_is_answered_before_a_version_is_agreed_on() {
    let server = Server::start(1, DoorbellMode::Buffered);
    for command in (0..20).filter(|command| *command != 1).map(Command) {
        let mut client = Client::connect(&server.path(0));
        client.send(command, &[], &[]);
        let (header, _) = client.receive().expect("it is answered");
        assert!(header.flags.get() & Header::ERROR != 0, "{command:?}");
        assert!(client.receive().is_none(), "and then the server hangs up");
    }
    for version in [&[1, 0, 0, 0][..], &[0, 0, 0, 0, b'{', b'}', b'x'], &[0], &[0, 0, 0, 0, 0xff, 0xff]] {
        let mut client = Client::connect(&server.path(0));
        assert_eq!(client.call(Command::VERSION, version), Err(EINVAL), "{version:?}");
        assert!(client.receive().is_none());
    }
    // A later minor version, and no capabilities at all.
    let mut client = Client::connect(&server.path(0));
    assert_eq!(client.call(Command::VERSION, &[0, 0, 9, 0]).unwrap()[..4], [0, 0, 0, 0]);
    server.stop();
}

#[test]
fn configuration_space_and_identify_name_the_same_vendor() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let [function, subsystem] = [0, 0x2c].map(|offset| host.client.read32(CONFIG, offset));
    let identify = host.identify();
    assert_eq!((identify.vid.get(), identify.ssvid.get()), (function as u16, subsystem as u16));
    assert_eq!((function >> 16, subsystem), (u32::from(PCI_DEVICE), function));
    server.stop();
}

#[test]
fn interrupts_are_masked_triggered_and_disconnected() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let (none, mask, unmask) = (InterruptSet::DATA_NONE, InterruptSet::ACTION_MASK, InterruptSet::ACTION_UNMASK);
    let trigger = InterruptSet::ACTION_TRIGGER;
    host.client.interrupts(none | trigger, 2, 1, &[]).unwrap();
    host.wait_interrupt(2);
    host.client.interrupts(none | mask, 1, 1, &[]).unwrap();
    assert_eq!(host.client.read(4, 0x1000, 8).unwrap(), [0; 8]);
    let entry = nandscape_wire_nvme::SubmissionEntry::io(nandscape_wire_nvme::IoOpcode::FLUSH, 1);
    host.put(1, 5, entry);
    host.ring(1);
    // Its completion is posted without an interrupt, which is pending.
    let completion = std::iter::repeat_with(|| host.reap(1)).flatten().next();
    assert_eq!(completion.map(|entry| entry.cid.get()), Some(5));
    while host.client.read(4, 0x1000, 8).unwrap() != [2, 0, 0, 0, 0, 0, 0, 0] {}
    assert_eq!(host.take_interrupts(1), 0);
    host.client.interrupts(none | unmask, 1, 1, &[]).unwrap();
    assert_eq!(host.take_interrupts(1), 1);
    host.work(1, 0, 4, 8, Pointer::Prp);
    host.client.interrupts(none | trigger, 0, 0, &[]).unwrap();
    host.forget_interrupts();
    host.client.interrupts(none | trigger, 1, 1, &[]).unwrap();
    assert_eq!(host.take_interrupts(1), 0, "disconnected");
    for (flags, start, count) in [(none | mask, 9, 1), (none | mask, u32::MAX, 2), (none | trigger, 0, 10)] {
        assert_eq!(host.client.interrupts(flags, start, count, &[]), Err(EINVAL));
    }
    server.stop();
}
