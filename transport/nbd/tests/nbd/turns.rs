//! Requests that keep an emulated SSD at work for long are spread over turns, in each of which the clients of other drives are
//! served.

use nandscape_wire_nbd::{command, flag};
use zerocopy::IntoBytes;

use crate::client::{Client, request};
use crate::long::{self, CAPACITY, COMMANDS, Long};
use crate::server::{Limits, NAMES, Server};

#[test]
fn long_requests_take_a_bounded_part_of_each_turn() {
    let server = Server::serving(Limits::default(), |sim| vec![Long::new(sim), Long::new(sim)]);
    let mut client = Client::ready(&server, NAMES[0], false);
    let kinds = [
        ("Write Zeroes", command::WRITE_ZEROES, flag::NO_HOLE, 32 << 20),
        ("Write Zeroes that deallocates", command::WRITE_ZEROES, 0, 32 << 20),
        ("Trim", command::TRIM, 0, CAPACITY as u32),
        ("Flush", command::FLUSH, 0, 0),
    ];
    for (name, kind, flags, len) in kinds {
        let requests = (0..COMMANDS).map(|cookie| request(kind, flags, cookie.into(), 0, len));
        client.send(&requests.flat_map(|request| request.as_bytes().to_vec()).collect::<Vec<u8>>());
        for _ in 0..COMMANDS {
            assert_eq!(client.simple().1, 0, "{name}");
        }
        long::check(name, &server.figures());
    }
}
