//! Fixed newstyle negotiation, as a client: NBD_OPT_GO with the block sizes.

use std::io::{self, Read, Write};

use nandscape_drive::DriveInfo;
use nandscape_wire_nbd::{
    BlockSizeInfo, ExportInfo, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, Greeting, NBD_MAGIC, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, OptionHeader, OptionReply, info, option, reply, transmission,
};
use zerocopy::{FromBytes, IntoBytes};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be reached, or hangs up.
    #[error("{endpoint}: {error}")]
    Io {
        /// The address.
        endpoint: String,
        /// The system's error.
        error: io::Error,
    },
    /// The server is no NBD server, or one that this client cannot use.
    #[error("{endpoint}: {problem}")]
    Protocol {
        /// The address.
        endpoint: String,
        /// The fault.
        problem: String,
    },
}

/// A server's offer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    pub(crate) info: DriveInfo,
    /// Transmission flags.
    pub(crate) flags: u16,
}

/// A failure before the address is known.
pub(crate) enum Failure {
    Io(io::Error),
    Protocol(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// The most bytes of a reply to an option; the protocol limits names and messages to 4 KiB.
const MAX_REPLY: u32 = 64 << 10;
/// The most replies to one option.
const MAX_REPLIES: u32 = 64;
/// Block sizes of servers that send none ("Block size constraints").
const DEFAULT_MINIMUM: u32 = 512;
const DEFAULT_PREFERRED: u32 = 4_096;
const DEFAULT_MAXIMUM: u32 = 32 << 20;

/// Negotiates for an export.
pub(crate) fn negotiate(stream: &mut (impl Read + Write), export: &str) -> Result<Offer, Failure> {
    let greeting: Greeting = receive(stream)?;
    if (greeting.magic.get(), greeting.option_magic.get()) != (NBD_MAGIC, OPTION_MAGIC) {
        return protocol("it is no NBD server, or one of the oldest kind, without options");
    }
    if greeting.flags.get() & FLAG_FIXED_NEWSTYLE == 0 {
        return protocol("it does not speak fixed newstyle, which choosing an export takes");
    }
    let flags = FLAG_FIXED_NEWSTYLE | greeting.flags.get() & FLAG_NO_ZEROES;
    stream.write_all(&u32::from(flags).to_be_bytes())?;
    let mut data = (export.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(export.as_bytes());
    data.extend_from_slice(&[1u16.to_be_bytes(), info::BLOCK_SIZE.to_be_bytes()].concat());
    let header =
        OptionHeader { magic: OPTION_MAGIC.into(), option: option::GO.into(), len: (data.len() as u32).into() };
    stream.write_all(&[header.as_bytes(), &data].concat())?;
    let (mut size, mut blocks) = (None, None);
    for _ in 0..MAX_REPLIES {
        let (kind, data) = option_reply(stream)?;
        match kind {
            reply::ACK => return offer(size, blocks),
            reply::INFO => {
                size = ExportInfo::read_from_bytes(&data).ok().filter(|export| export.kind == info::EXPORT).or(size);
                let sizes = BlockSizeInfo::read_from_bytes(&data).ok();
                blocks = sizes.filter(|sizes| sizes.kind == info::BLOCK_SIZE).or(blocks);
            }
            refused => return protocol(&refusal(refused, export, &data)),
        }
    }
    protocol("it does not come to an end with its replies")
}

fn receive<T: FromBytes + IntoBytes>(stream: &mut impl Read) -> io::Result<T> {
    let mut value = T::new_zeroed();
    stream.read_exact(value.as_mut_bytes())?;
    Ok(value)
}

/// Type and data of a reply to NBD_OPT_GO.
fn option_reply(stream: &mut impl Read) -> Result<(u32, Vec<u8>), Failure> {
    let header: OptionReply = receive(stream)?;
    if header.magic.get() != OPTION_REPLY_MAGIC || header.option.get() != option::GO || header.len.get() > MAX_REPLY {
        return protocol("its reply to the choice of an export is malformed");
    }
    let mut data = vec![0; header.len.get() as usize];
    stream.read_exact(&mut data)?;
    Ok((header.reply.get(), data))
}

fn refusal(kind: u32, export: &str, message: &[u8]) -> String {
    let what = match kind {
        reply::ERR_UNKNOWN => format!("it has no export {export:?}"),
        reply::ERR_UNSUP => "it is too old to be asked for an export (NBD_OPT_GO)".to_owned(),
        reply::ERR_POLICY => format!("it refuses export {export:?}"),
        kind => format!("it refuses export {export:?} (reply {kind:#x})"),
    };
    match String::from_utf8_lossy(message).trim() {
        "" => what,
        message => format!("{what}: {}", message.chars().filter(|c| !c.is_control()).take(200).collect::<String>()),
    }
}

fn offer(size: Option<ExportInfo>, blocks: Option<BlockSizeInfo>) -> Result<Offer, Failure> {
    let Some(size) = size else { return protocol("it does not tell the size of the export") };
    let told = |field: fn(&BlockSizeInfo) -> u32, default: u32| blocks.as_ref().map_or(default, field);
    let block = told(|sizes| sizes.minimum.get(), DEFAULT_MINIMUM).max(DEFAULT_MINIMUM);
    let (preferred, most) =
        (told(|sizes| sizes.preferred.get(), DEFAULT_PREFERRED), told(|sizes| sizes.maximum.get(), DEFAULT_MAXIMUM));
    if !block.is_power_of_two() || most < block || size.size.get() < u64::from(block) {
        return protocol(&format!("its block sizes ({block}, {preferred}, {most}) do not fit a drive"));
    }
    let flags = size.flags.get();
    let info = DriveInfo {
        nsid: 1,
        blocks: size.size.get() / u64::from(block),
        lba_bytes: block,
        metadata_bytes: 0,
        // The field of a command that counts blocks has 16 bits.
        max_blocks: (most / block).min(1 << 16),
        unit_bytes: preferred.max(block),
        volatile_cache: flags & transmission::SEND_FLUSH != 0,
        keeps_data: true,
    };
    Ok(Offer { info, flags })
}

fn protocol<T>(problem: &str) -> Result<T, Failure> {
    Err(Failure::Protocol(problem.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends prepared answers and ignores its input.
    struct Server(std::io::Cursor<Vec<u8>>);

    impl Read for Server {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Server {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn greeting(flags: u16) -> Vec<u8> {
        let greeting = Greeting { magic: NBD_MAGIC.into(), option_magic: OPTION_MAGIC.into(), flags: flags.into() };
        greeting.as_bytes().to_vec()
    }

    fn answer(kind: u32, data: &[u8]) -> Vec<u8> {
        let (magic, option) = (OPTION_REPLY_MAGIC.into(), option::GO.into());
        let header = OptionReply { magic, option, reply: kind.into(), len: (data.len() as u32).into() };
        [header.as_bytes(), data].concat()
    }

    fn size(bytes: u64) -> Vec<u8> {
        let flags = (transmission::HAS_FLAGS | transmission::SEND_FLUSH).into();
        answer(reply::INFO, ExportInfo { kind: info::EXPORT.into(), size: bytes.into(), flags }.as_bytes())
    }

    fn sizes(minimum: u32, preferred: u32, maximum: u32) -> Vec<u8> {
        let (minimum, preferred, maximum) = (minimum.into(), preferred.into(), maximum.into());
        answer(reply::INFO, BlockSizeInfo { kind: info::BLOCK_SIZE.into(), minimum, preferred, maximum }.as_bytes())
    }

    fn outcome(parts: &[Vec<u8>]) -> Result<Offer, String> {
        negotiate(&mut Server(std::io::Cursor::new(parts.concat())), "x").map_err(|failure| match failure {
            Failure::Io(error) => error.to_string(),
            Failure::Protocol(problem) => problem,
        })
    }

    #[test]
    fn an_export_becomes_a_drive() {
        let fixed = greeting(FLAG_FIXED_NEWSTYLE);
        let info = outcome(&[fixed.clone(), size(1 << 30), sizes(4_096, 65_536, 1 << 20), answer(reply::ACK, &[])]);
        let info = info.unwrap().info;
        assert_eq!((info.lba_bytes, info.blocks, info.max_blocks, info.unit_bytes), (4_096, 1 << 18, 256, 65_536));
        let info = outcome(&[fixed, size(1 << 30), answer(reply::ACK, &[])]).unwrap().info;
        assert_eq!((info.lba_bytes, info.max_blocks, info.volatile_cache), (512, 1 << 16, true));
    }

    #[test]
    fn servers_that_cannot_be_used_are_named() {
        let fixed = greeting(FLAG_FIXED_NEWSTYLE);
        let ack = answer(reply::ACK, &[]);
        let cases: [(&[Vec<u8>], &str); 9] = [
            (&[vec![0; 18]], "no NBD server"),
            (&[greeting(0)], "fixed newstyle"),
            (&[fixed.clone(), vec![0; 20]], "malformed"),
            (&[fixed.clone(), answer(reply::ERR_UNKNOWN, b"none such")], "no export \"x\": none such"),
            (&[fixed.clone(), answer(reply::ERR_POLICY, b"")], "refuses export"),
            (&[fixed.clone(), ack.clone()], "size of the export"),
            (&[fixed.clone(), size(1 << 20), sizes(3_000, 4_096, 1 << 20), ack.clone()], "do not fit"),
            (&[fixed.clone(), size(100), ack], "do not fit"),
            (&[fixed], "failed to fill"),
        ];
        for (parts, problem) in cases {
            let error = outcome(parts).unwrap_err();
            assert!(error.contains(problem), "{problem}: {error}");
        }
    }
}
