//! A blocking client. It sends any bytes; it parses replies and does not judge them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nandscape_wire_nbd::{
    ChunkHeader, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, Greeting, NBD_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    OptionHeader, OptionReply, REQUEST_MAGIC, Request, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, SimpleReply,
    command, option, reply,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::server::Server;

/// A connection that hangs fails its test after this time.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
}

/// A chunk of a structured reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    pub(crate) cookie: u64,
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) body: Vec<u8>,
}

/// An option as bytes.
pub(crate) fn option_bytes(kind: u32, data: &[u8]) -> Vec<u8> {
    let header = OptionHeader { magic: OPTION_MAGIC.into(), option: kind.into(), len: (data.len() as u32).into() };
    [header.as_bytes(), data].concat()
}

/// The data of NBD_OPT_GO and NBD_OPT_INFO, with wishes.
pub(crate) fn wish(name: &str, wishes: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&(wishes.len() as u16).to_be_bytes());
    wishes.iter().for_each(|wish| data.extend_from_slice(&wish.to_be_bytes()));
    data
}

/// A request.
pub(crate) fn request(kind: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Request {
    let (magic, cookie) = (REQUEST_MAGIC.into(), cookie.into());
    Request { magic, flags: flags.into(), kind: kind.into(), cookie, offset: offset.into(), len: len.into() }
}

impl Client {
    /// A connection on which nothing was sent.
    pub(crate) fn connect(server: &Server) -> Client {
        let stream = UnixStream::connect(&server.path).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.set_write_timeout(Some(HANGS)).unwrap();
        Client { stream }
    }

    /// A connection ready for options.
    pub(crate) fn greeted(server: &Server) -> Client {
        let mut client = Client::connect(server);
        assert_eq!(client.greeting(), FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        client.send(&u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
        client
    }

    /// A connection ready for requests to an export.
    pub(crate) fn ready(server: &Server, name: &str, structured: bool) -> Client {
        let mut client = Client::greeted(server);
        if structured {
            client.option(option::STRUCTURED_REPLY, &[]);
            assert_eq!(client.option_reply(), (option::STRUCTURED_REPLY, reply::ACK, Vec::new()));
        }
        client.option(option::GO, &wish(name, &[]));
        while client.option_reply().1 != reply::ACK {}
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn receive<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn receive_vec(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Everything until the server hangs up.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => {}
            // It hung up before it had read everything.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the server does not hang up: {error}"),
        }
        bytes
    }

    pub(crate) fn greeting(&mut self) -> u16 {
        let greeting = Greeting::read_from_bytes(&self.receive::<18>()).unwrap();
        assert_eq!((greeting.magic.get(), greeting.option_magic.get()), (NBD_MAGIC, OPTION_MAGIC));
        greeting.flags.get()
    }

    pub(crate) fn option(&mut self, kind: u32, data: &[u8]) {
        self.send(&option_bytes(kind, data));
    }

    /// Option, type and data of a reply.
    pub(crate) fn option_reply(&mut self) -> (u32, u32, Vec<u8>) {
        let header = OptionReply::read_from_bytes(&self.receive::<20>()).unwrap();
        assert_eq!(header.magic.get(), OPTION_REPLY_MAGIC);
        (header.option.get(), header.reply.get(), self.receive_vec(header.len.get() as usize))
    }

    pub(crate) fn request(&mut self, kind: u16, flags: u16, cookie: u64, offset: u64, len: u32) {
        self.send(request(kind, flags, cookie, offset, len).as_bytes());
    }

    /// Cookie and error of a simple reply, before the data of a read.
    pub(crate) fn simple(&mut self) -> (u64, u32) {
        let reply = SimpleReply::read_from_bytes(&self.receive::<16>()).unwrap();
        assert_eq!(reply.magic.get(), SIMPLE_REPLY_MAGIC);
        (reply.cookie.get(), reply.error.get())
    }

    pub(crate) fn chunk(&mut self) -> Chunk {
        let header = ChunkHeader::read_from_bytes(&self.receive::<20>()).unwrap();
        assert_eq!(header.magic.get(), STRUCTURED_REPLY_MAGIC);
        let body = self.receive_vec(header.len.get() as usize);
        Chunk { cookie: header.cookie.get(), flags: header.flags.get(), kind: header.kind.get(), body }
    }

    /// Reads with structured replies the data of one chunk.
    pub(crate) fn chunk_of(&mut self, offset: u64, len: u32) -> Vec<u8> {
        self.request(command::READ, 0, 9, offset, len);
        self.chunk().body.split_off(8)
    }

    /// A request without data; its error.
    pub(crate) fn ask(&mut self, kind: u16, flags: u16, offset: u64, len: u32) -> u32 {
        self.request(kind, flags, 7, offset, len);
        let (cookie, error) = self.simple();
        assert_eq!(cookie, 7);
        error
    }

    /// Writes; the error.
    pub(crate) fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> u32 {
        let header = request(command::WRITE, flags, 8, offset, data.len() as u32);
        self.send(&[header.as_bytes(), data].concat());
        let (cookie, error) = self.simple();
        assert_eq!(cookie, 8);
        error
    }

    /// Reads with simple replies.
    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Result<Vec<u8>, u32> {
        match self.ask(command::READ, 0, offset, len) {
            0 => Ok(self.receive_vec(len as usize)),
            error => Err(error),
        }
    }
}

/// Bytes that encode their place.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    let mut state = seed;
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state >> 16).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
