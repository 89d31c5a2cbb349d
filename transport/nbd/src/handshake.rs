//! Fixed newstyle negotiation: a client chooses an export and how it wants its replies.

use std::io::{self, Read, Write};

use nandscape_drive::DriveInfo;
use nandscape_sim::units::Bytes;
use nandscape_wire_nbd::{
    BlockSizeInfo, ExportInfo, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, Greeting, NBD_MAGIC, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, OptionHeader, OptionReply, info, option, reply, transmission,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::listener::Admission;

/// A drive under its export name, which is also that of its first namespace; namespace N is NAME/N. The first of several is
/// also the empty name's.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The export's name.
    pub name: String,
    /// For people.
    pub description: String,
}

/// The outcome of a negotiation.
pub(crate) struct Agreed {
    /// The client's slot and connection.
    pub(crate) admission: Admission,
    /// Whether reads are answered in structured replies.
    pub(crate) structured: bool,
}

/// The drive and namespace of a name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    /// The place of the drive.
    pub(crate) export: usize,
    /// The namespace in the name; otherwise the first.
    pub(crate) nsid: Option<u32>,
}

/// The drives of the exports, by their places.
pub(crate) trait Drives {
    /// A connection to a namespace.
    ///
    /// # Errors
    /// Why there is none.
    fn admit(&self, choice: Choice) -> Result<Admission, Denied>;

    /// The present description of a namespace: its size and its blocks change when it is formatted.
    ///
    /// # Errors
    /// Why there is none.
    fn info(&self, choice: Choice) -> Result<DriveInfo, Denied>;

    /// The present descriptions of a drive's namespaces, by number.
    fn namespaces(&self, export: usize) -> Vec<DriveInfo>;
}

/// Why a drive takes no client now.
pub(crate) struct Denied {
    /// The type of the option reply.
    pub(crate) error: u32,
    /// For people.
    pub(crate) reason: String,
}

/// The longest option data accepted: a name and some requests for information.
const MAX_OPTION: u32 = 8_192;
/// Options after which a client should have chosen.
const MAX_OPTIONS: u32 = 128;
/// The minimum block size that a client may take for granted.
const DEFAULT_BLOCK: u32 = 512;
/// The longest request with data.
pub(crate) const MAX_REQUEST: u32 = 32 << 20;

/// Negotiates; `None` when the client left in order. A connection to the drive is reserved before the client's choice is
/// acknowledged.
pub(crate) fn negotiate(
    stream: &mut (impl Read + Write),
    exports: &[Exported],
    drives: &dyn Drives,
) -> io::Result<Option<Agreed>> {
    let flags = FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES;
    let greeting = Greeting { magic: NBD_MAGIC.into(), option_magic: OPTION_MAGIC.into(), flags: flags.into() };
    stream.write_all(greeting.as_bytes())?;
    let mut client = [0; 4];
    stream.read_exact(&mut client)?;
    let client = u32::from_be_bytes(client);
    if client & !u32::from(flags) != 0 {
        return Err(bad(format!("client flags {client:#x} are not among those offered")));
    }
    let no_zeroes = client & u32::from(FLAG_NO_ZEROES) != 0;
    let mut talk = Talk { stream, exports, drives, no_zeroes, structured: false };
    for _ in 0..MAX_OPTIONS {
        match talk.option()? {
            Next::Continue => {}
            Next::Done(agreed) => return Ok(agreed),
        }
    }
    Err(bad(format!("no export was chosen after {MAX_OPTIONS} options")))
}

enum Next {
    Continue,
    Done(Option<Agreed>),
}

struct Talk<'a, S> {
    stream: &'a mut S,
    exports: &'a [Exported],
    drives: &'a dyn Drives,
    no_zeroes: bool,
    structured: bool,
}

impl<S: Read + Write> Talk<'_, S> {
    fn option(&mut self) -> io::Result<Next> {
        let mut header = OptionHeader::default();
        self.stream.read_exact(header.as_mut_bytes())?;
        if header.magic.get() != OPTION_MAGIC {
            return Err(bad("an option does not begin with IHAVEOPT"));
        }
        let (kind, len) = (header.option.get(), header.len.get());
        if len > MAX_OPTION {
            return Err(bad(format!("option {kind} has {len} bytes of data, and at most {MAX_OPTION} are read")));
        }
        let mut data = vec![0; len as usize];
        self.stream.read_exact(&mut data)?;
        match kind {
            option::EXPORT_NAME => self.export_name(&data),
            option::GO | option::INFO => self.go(kind, &data),
            option::LIST => self.list(&data),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                self.reply(kind, reply::ACK, &[])
            }
            option::STRUCTURED_REPLY => self.reply(kind, reply::ERR_INVALID, b"this option has no data"),
            option::ABORT => {
                // The client need not wait for the answer.
                let _ = self.reply(kind, reply::ACK, &[]);
                Ok(Next::Done(None))
            }
            _ => self.reply(kind, reply::ERR_UNSUP, b"not supported"),
        }
    }

    /// The drive of this name; otherwise the part after the last slash is a namespace.
    fn find(&self, name: &[u8]) -> Option<Choice> {
        let drive = |name: &[u8]| match name {
            [] => (!self.exports.is_empty()).then_some(0),
            name => self.exports.iter().position(|export| export.name.as_bytes() == name),
        };
        if let Some(export) = drive(name) {
            return Some(Choice { export, nsid: None });
        }
        let (name, nsid) = std::str::from_utf8(name).ok()?.rsplit_once('/')?;
        let digits = nsid.bytes().all(|byte| byte.is_ascii_digit());
        let nsid: u32 = nsid.parse().ok().filter(|_| digits)?;
        let export = drive(name.as_bytes())?;
        let is_there = self.drives.namespaces(export).iter().any(|info| info.nsid == nsid);
        is_there.then_some(Choice { export, nsid: Some(nsid) })
    }

    /// The namespaces of a drive that have a separate name, because they are not its first.
    fn others(&self, export: usize) -> impl Iterator<Item = (String, DriveInfo)> {
        let name = &self.exports[export].name;
        let others = self.drives.namespaces(export).into_iter().skip(1);
        others.map(move |info| (format!("{name}/{}", info.nsid), info))
    }

    /// The names of all exports.
    fn names(&self) -> Vec<String> {
        let of = |export: usize| {
            let others = self.others(export).map(|(name, _)| name);
            std::iter::once(self.exports[export].name.clone()).chain(others).collect::<Vec<_>>()
        };
        (0..self.exports.len()).flat_map(of).collect()
    }

    fn agreed(&self, admission: Admission) -> Next {
        Next::Done(Some(Agreed { admission, structured: self.structured }))
    }

    /// The old way to choose, which can only refuse by hanging up.
    fn export_name(&mut self, name: &[u8]) -> io::Result<Next> {
        let Some(choice) = self.find(name) else {
            return Err(bad(format!("there is no export {:?}", String::from_utf8_lossy(name))));
        };
        let admission = self.drives.admit(choice).map_err(|denied| bad(denied.reason))?;
        let drive = admission.info();
        let block = drive.lba_bytes;
        if block > DEFAULT_BLOCK {
            // "Block size constraints": without information a client may use the default.
            let problem =
                format!("EXPORT_NAME cannot tell a client that the drive has blocks of {block} bytes; GO can");
            return Err(bad(problem));
        }
        let info = export_info(&drive, self.structured);
        self.stream.write_all(&info.as_bytes()[2..])?;
        if !self.no_zeroes {
            self.stream.write_all(&[0; 124])?;
        }
        Ok(self.agreed(admission))
    }

    /// Length of the name, the name, the number of wishes, the wishes.
    fn go(&mut self, kind: u32, data: &[u8]) -> io::Result<Next> {
        let Some(name) = parse_go(data) else {
            return self.reply(kind, reply::ERR_INVALID, b"the option's lengths do not fit its data");
        };
        let Some(choice) = self.find(name) else {
            let text = format!("no such export; there are: {}", self.names().join(", "));
            return self.reply(kind, reply::ERR_UNKNOWN, text.as_bytes());
        };
        let known = match kind {
            option::GO => self.drives.admit(choice).map(|admission| (admission.info(), Some(admission))),
            _ => self.drives.info(choice).map(|drive| (drive, None)),
        };
        let (drive, admission) = match known {
            Ok(known) => known,
            Err(Denied { error, reason }) => return self.reply(kind, error, reason.as_bytes()),
        };
        let Exported { name, description } = &self.exports[choice.export];
        let (name, description) = match choice.nsid {
            None => (name.clone(), description.clone()),
            Some(nsid) => (format!("{name}/{nsid}"), described(&drive)),
        };
        let sizes = BlockSizeInfo {
            kind: info::BLOCK_SIZE.into(),
            minimum: drive.lba_bytes.into(),
            preferred: drive.unit_bytes.max(4_096).into(),
            maximum: MAX_REQUEST.into(),
        };
        let text = |kind: u16, text: &str| [&kind.to_be_bytes(), text.as_bytes()].concat();
        self.reply(kind, reply::INFO, export_info(&drive, self.structured).as_bytes())?;
        self.reply(kind, reply::INFO, sizes.as_bytes())?;
        self.reply(kind, reply::INFO, &text(info::NAME, &name))?;
        self.reply(kind, reply::INFO, &text(info::DESCRIPTION, &description))?;
        self.reply(kind, reply::ACK, &[])?;
        Ok(admission.map_or(Next::Continue, |admission| self.agreed(admission)))
    }

    fn list(&mut self, data: &[u8]) -> io::Result<Next> {
        if !data.is_empty() {
            return self.reply(option::LIST, reply::ERR_INVALID, b"this option has no data");
        }
        for (index, Exported { name, description }) in self.exports.iter().enumerate() {
            let others: Vec<_> = self.others(index).map(|(name, info)| (name, described(&info))).collect();
            for (name, description) in std::iter::once((name.clone(), description.clone())).chain(others) {
                let len = name.len() as u32;
                let data = [&len.to_be_bytes(), name.as_bytes(), description.as_bytes()].concat();
                self.reply(option::LIST, reply::SERVER, &data)?;
            }
        }
        self.reply(option::LIST, reply::ACK, &[])
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<Next> {
        let header = OptionReply {
            magic: OPTION_REPLY_MAGIC.into(),
            option: option.into(),
            reply: kind.into(),
            len: (data.len() as u32).into(),
        };
        self.stream.write_all(&[header.as_bytes(), data].concat())?;
        Ok(Next::Continue)
    }
}

/// A namespace other than the first, for people.
fn described(info: &DriveInfo) -> String {
    format!("namespace {}, {}", info.nsid, Bytes(info.bytes()))
}

/// The name in the data of NBD_OPT_INFO or NBD_OPT_GO, if its lengths fit.
fn parse_go(data: &[u8]) -> Option<&[u8]> {
    let (len, rest) = data.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    let (wishes, rest) = <[u8; 2]>::read_from_prefix(rest).ok()?;
    (rest.len() == 2 * usize::from(u16::from_be_bytes(wishes))).then_some(name)
}

fn export_info(drive: &DriveInfo, structured: bool) -> ExportInfo {
    let mut flags = transmission::HAS_FLAGS
        | transmission::SEND_FLUSH
        | transmission::SEND_FUA
        | transmission::SEND_TRIM
        | transmission::SEND_WRITE_ZEROES
        | transmission::CAN_MULTI_CONN;
    if structured {
        flags |= transmission::SEND_DF;
    }
    ExportInfo { kind: info::EXPORT.into(), size: drive.bytes().into(), flags: flags.into() }
}

fn bad(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}
