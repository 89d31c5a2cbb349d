//! A virtual machine on a vfio-user socket: messages of all kinds, memory that comes and goes, a controller with queues in
//! it, and entries and lists of any bytes.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use nandscape_drive::mem::Mapping;
use nandscape_drive::mem::mapping::memory_file;
use nandscape_transport_vfio_user::{DoorbellMode, Function, Listener};
use nandscape_wire_nvme::{SubmissionEntry, register};
use nandscape_wire_vfio_user::access::{DmaMap, DmaUnmap, RegionAccess};
use nandscape_wire_vfio_user::device::InterruptSet;
use nandscape_wire_vfio_user::{Command, Header};
use rustix::event::{EventfdFlags, eventfd};
use zerocopy::IntoBytes as _;

use super::channel::Channel;
use super::server::{AtSocket, HANGS, PAIRS, Served, Server};
use crate::entry::{NVM, entry};
use crate::input::Input;

const PAGE: u64 = 4_096;
/// Pages of the machine's memory, and where the device sees them.
const PAGES: u64 = 64;
const BASE: u64 = 0x1000_0000;
/// Entries of a queue.
const ENTRIES: u32 = 16;
const BAR0: u32 = 0;
const CONFIG: u32 = 7;
/// Steps of an input.
const MOST_STEPS: usize = 100;

thread_local! {
    static SERVER: Server<AtSocket<Listener>> = Server::start(listen);
}

fn listen(served: &Served) -> AtSocket<Listener> {
    let function = |path: &Path| Function {
        path: path.to_owned(),
        handle: served.handle.clone(),
        drive: 0,
        number: 0,
        queue_pairs: PAIRS,
        doorbells: DoorbellMode::Buffered,
        log: Arc::new(|_| ()),
    };
    AtSocket::new(|path| Listener::start(function(path)).expect("a socket"))
}

/// One connection. The first byte selects how far the client gets before it misbehaves.
///
/// # Panics
/// When the server does not release the machine.
pub fn vfio_user(bytes: &[u8]) {
    SERVER.with(|server| {
        vfio_user_machine(&server.listener.as_ref().expect("it listens").path(), bytes);
        server.wait_until_idle();
    });
}

/// A session of a machine with the function at a socket.
///
/// # Panics
/// When there is no server, or it neither answers nor hangs up.
pub fn vfio_user_machine(path: &Path, bytes: &[u8]) {
    let stream = UnixStream::connect(path).expect("the server listens");
    stream.set_read_timeout(Some(HANGS)).expect("a timeout");
    stream.set_write_timeout(Some(HANGS)).expect("a timeout");
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let mut machine = Machine::new(Channel::new(stream));
    let mut goes_on = choice & 3 == 0 || machine.channel.agree();
    if choice & 3 > 1 {
        goes_on = goes_on && machine.map(BASE, 0, PAGES * PAGE, 3) && machine.enable();
    }
    for _ in 0..MOST_STEPS {
        goes_on = goes_on && !input.is_empty() && machine.step(&mut input);
    }
    machine.channel.end(choice & 0x80 == 0);
}

struct Machine {
    channel: Channel,
    file: File,
    memory: Mapping,
    event: OwnedFd,
    /// Tails of submission queues.
    tails: [u32; 3],
}

impl Machine {
    fn new(channel: Channel) -> Machine {
        let file = memory_file(PAGES * PAGE).expect("memory");
        let memory = Mapping::new(&file, 0, (PAGES * PAGE) as usize, true).expect("it is mapped");
        let event = eventfd(0, EventfdFlags::NONBLOCK).expect("an event");
        Machine { channel, file, memory, event, tails: [0; 3] }
    }

    /// Does a step; whether the server is still there.
    fn step(&mut self, input: &mut Input<'_>) -> bool {
        match input.below(16) {
            0 => self.any_message(input),
            1 => {
                let len = input.byte().into();
                self.channel.send_any(input.take(len), &[])
            }
            2 => {
                let (page, pages) = (u64::from(input.byte()), u64::from(input.byte()));
                let flags = u32::from(input.byte());
                self.map(BASE + page * PAGE, page % PAGES * PAGE, pages * PAGE, flags)
            }
            3 => self.map(input.number(), input.number(), input.number(), input.number32()),
            4 => {
                let (address, size, flags) = (input.number(), input.number(), input.number32());
                self.unmap(BASE.wrapping_add(address), size, flags)
            }
            5 => self.interrupts(input),
            6 => self.channel.call(Command::DEVICE_RESET, &[], &[]),
            7 => self.region(input, Command::REGION_READ),
            8 => self.region(input, Command::REGION_WRITE),
            9 => self.write(BAR0, u64::from(input.byte()) & !3, &input.number32().to_le_bytes()),
            10 => self.write(BAR0, 0x1000 + u64::from(input.byte() & 0x1f) * 4, &input.number32().to_le_bytes()),
            11 => self.poke(input),
            12 => self.enable(),
            at => self.submit(input, at - 13),
        }
    }

    /// A message with any command, whose size may lie.
    fn any_message(&mut self, input: &mut Input<'_>) -> bool {
        let command = Command(input.byte().into());
        let (len, lie, flags) = (input.byte(), input.byte(), input.byte());
        let payload = input.take(len.into());
        let mut header = Header::command(9, command, payload.len());
        if lie >= 0xf0 {
            header.size = input.number32().into();
        }
        if flags >= 0xf0 {
            header.flags = input.number32().into();
        }
        let descriptors = vec![self.file.as_fd(); usize::from(flags & 3)];
        self.channel.send_any(&[header.as_bytes(), payload].concat(), &descriptors)
    }

    fn map(&mut self, address: u64, offset: u64, size: u64, flags: u32) -> bool {
        let map = DmaMap {
            argsz: 32.into(),
            flags: flags.into(),
            offset: offset.into(),
            address: address.into(),
            size: size.into(),
        };
        let descriptors: &[BorrowedFd<'_>] = if flags & 0x80 != 0 { &[] } else { &[self.file.as_fd()] };
        self.channel.call(Command::DMA_MAP, map.as_bytes(), descriptors)
    }

    fn unmap(&mut self, address: u64, size: u64, flags: u32) -> bool {
        let (flags, address, size) = (flags.into(), address.into(), size.into());
        let unmap = DmaUnmap { argsz: 24.into(), flags, address, size };
        self.channel.call(Command::DMA_UNMAP, unmap.as_bytes(), &[])
    }

    fn interrupts(&mut self, input: &mut Input<'_>) -> bool {
        let flags = u32::from(input.byte()).into();
        let (index, start, count) =
            (u32::from(input.byte() & 7).into(), input.number32().into(), input.number32().into());
        let set = InterruptSet { argsz: 20.into(), flags, index, start, count };
        let len = input.below(9);
        let descriptors = vec![self.event.as_fd(); input.below(10)];
        self.channel.call(Command::DEVICE_SET_IRQS, &[set.as_bytes(), input.take(len)].concat(), &descriptors)
    }

    fn region(&mut self, input: &mut Input<'_>, command: Command) -> bool {
        let (region, offset) = (u32::from(input.byte() & 0xf), input.number());
        let len = input.below(65);
        let count = if command == Command::REGION_READ { input.number32() } else { len as u32 };
        let access = RegionAccess { offset: offset.into(), region: region.into(), count: count.into() };
        let data = if command == Command::REGION_READ { &[] } else { input.take(len) };
        let mut bytes = [access.as_bytes(), data].concat();
        bytes.resize(access.as_bytes().len() + if command == Command::REGION_READ { 0 } else { len }, 0);
        self.channel.call(command, &bytes, &[])
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> bool {
        let access = RegionAccess { offset: offset.into(), region: region.into(), count: (data.len() as u32).into() };
        self.channel.call(Command::REGION_WRITE, &[access.as_bytes(), data].concat(), &[])
    }

    /// Writes a few words of the machine's memory: lists, or data.
    fn poke(&mut self, input: &mut Input<'_>) -> bool {
        let at = (u64::from(input.byte()) % PAGES * PAGE + u64::from(input.byte()) * 8) as usize;
        for word in 0..input.below(32) {
            let value = match input.byte() {
                page @ 0..0x80 => BASE + u64::from(page) * PAGE,
                _ => input.number(),
            };
            if self.memory.write(at + word * 8, &value.to_le_bytes()).is_err() {
                break;
            }
        }
        true
    }

    /// Resets the controller, and enables it with an admin queue in the first two pages.
    fn enable(&mut self) -> bool {
        self.tails = [0; 3];
        let size = ENTRIES - 1;
        self.write(CONFIG, 4, &[6, 0])
            && self.write(BAR0, register::CC.into(), &[0; 4])
            && self.write(BAR0, register::AQA.into(), &(size << 16 | size).to_le_bytes())
            && self.write(BAR0, register::ASQ.into(), &BASE.to_le_bytes())
            && self.write(BAR0, register::ACQ.into(), &(BASE + PAGE).to_le_bytes())
            && self.write(BAR0, register::CC.into(), &(register::CC_EN | 6 << 16 | 4 << 20).to_le_bytes())
    }

    /// Puts an entry into a queue and rings. Queue n has its entries in page 2n and its completions in the next one.
    fn submit(&mut self, input: &mut Input<'_>, queue: usize) -> bool {
        let choice = input.byte();
        let id = 1 + u16::from(choice & 1);
        let completions = BASE + (u64::from(id) * 2 + 1) * PAGE;
        let mut entry = match choice {
            0xf0..0xf8 => SubmissionEntry::create_completion_queue(id, ENTRIES, completions, Some(id)),
            0xf8.. => SubmissionEntry::create_submission_queue(id, ENTRIES, completions - PAGE, id),
            _ => entry(input, NVM, queue == 0),
        };
        if choice < 0xf0 {
            let pages = [u64::from(input.byte()), u64::from(input.byte())].map(|page| BASE + page * PAGE);
            let offset = if choice & 2 != 0 { input.number() } else { 0 };
            (entry.prp1, entry.prp2) = ((pages[0] + (offset & 0xfff)).into(), pages[1].into());
        }
        entry.cid = u16::from(choice).into();
        let tail = &mut self.tails[queue];
        let at = queue as u64 * 2 * PAGE + u64::from(*tail) * 64;
        *tail = (*tail + 1) % ENTRIES;
        let rung = tail.to_le_bytes();
        let put = self.memory.write(at as usize, entry.as_bytes()).is_ok();
        put && self.write(BAR0, 0x1000 + queue as u64 * 8, &rung)
    }
}
