//! A client of memcached's protocols: any bytes, in pieces of any sizes, to a session of the server over an engine on two small drives.
//!
//! The same bytes in one piece and in many have the same answers, and a client holds no more memory than the guide allows. Commands that the
//! script draws have the answers of a plain map, up to the first bytes that it does not draw. Afterwards the server serves another client.
//!
//! | file | what |
//! |---|---|
//! | `script` | what the client sends, and the answers that are known |
//! | `session` | a server, a client and how it sends and receives |
//!
//! Left out: sockets, and the limits of all clients together.

mod script;
mod session;

use crate::input::Input;
use script::Script;
use session::{Feed, Setting};

/// A session of a client.
///
/// # Panics
/// When an answer depends on how the bytes were cut or differs from that of the map, a client holds too much memory, or the server does not
/// answer.
pub fn memcached(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let setting = Setting::of(choice);
    let feed = Feed::cut(input.byte(), input.byte());
    let script = Script::of(&mut input, choice & 0x80 != 0);
    let (whole, cut) = (setting.session(&script, Feed::whole()), setting.session(&script, feed));
    let is_complete = whole.is_complete && cut.is_complete;
    check(&without_figures(&whole.received), &without_figures(&cut.received), is_complete);
    check(&whole.received[..whole.received.len().min(script.answers.len())], &script.answers, is_complete);
    if script.is_known && is_complete {
        check(&whole.received, &script.answers, true);
    }
}

/// Checks that two answers are the same, or one is the beginning of the other.
///
/// # Panics
/// When they are not.
fn check(one: &[u8], other: &[u8], is_complete: bool) {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let is_same = same == one.len().max(other.len()) || !is_complete && same == one.len().min(other.len());
    let near = |answer: &[u8]| answer[same.saturating_sub(80)..answer.len().min(same + 80)].escape_ascii().to_string();
    assert!(is_same, "after {same} bytes:\n{}\nand\n{}", near(one), near(other));
}

/// Answers without the values of statistics, which depend on the time and on the drives.
fn without_figures(answers: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| match line.strip_prefix(b"STAT ") {
        Some(rest) => rest.split(|byte| *byte == b' ').next().unwrap_or_default().to_vec(),
        None => line.to_vec(),
    };
    answers.split_inclusive(|byte| *byte == b'\n').flat_map(line).collect()
}
