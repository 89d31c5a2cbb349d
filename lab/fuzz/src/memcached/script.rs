//! What a client sends. Bytes are sent as they are, but for four that stand for something else: a valid command, time that passes, a
//! repetition of the last bytes, and a byte that is none of these. Or all that is sent are valid commands, whatever the bytes.

use nandscape_apps_memcached_engine::testing::Model;

use super::session::{ITEM_LIMIT, START_S};
use crate::input::Input;

/// A command is drawn from the bytes that follow.
const COMMAND: u8 = 0xf8;
/// Seconds pass: one more than the next byte.
const PASSES: u8 = 0xf9;
/// The last bytes are sent again: how many, less one, and how often.
const AGAIN: u8 = 0xfa;
/// The next byte is sent as it is.
const VERBATIM: u8 = 0xff;

/// Keys of drawn commands.
const KEYS: u64 = 12;
/// A client that has sent as many bytes sends no more.
const MOST_SENT: usize = 160 << 10;
/// The most parts, between which seconds pass.
const MOST_PARTS: usize = 9;

/// See the file.
pub(super) struct Script {
    /// What is sent, and in which second.
    pub(super) parts: Vec<(u64, Vec<u8>)>,
    /// The answers, up to the first bytes that were not drawn.
    pub(super) answers: Vec<u8>,
    /// Whether all bytes were drawn.
    pub(super) is_known: bool,
}

impl Script {
    /// The script in these bytes; `is_valid` is whether only valid commands are sent.
    pub(super) fn of(input: &mut Input<'_>, is_valid: bool) -> Script {
        let mut script = Script { parts: vec![(1, Vec::new())], answers: Vec::new(), is_known: true };
        let mut model = Model::new(KEYS, ITEM_LIMIT, START_S + 1);
        let mut sent = 0;
        while !input.is_empty() && sent < MOST_SENT {
            let count = script.parts.len();
            let (second, part) = script.parts.last_mut().expect("there is always one");
            let before = part.len();
            match input.byte() {
                byte if byte == COMMAND || is_valid && byte < PASSES => {
                    let exchange = model.exchange(&mut |bound| draw(input, bound));
                    part.extend(exchange.command);
                    script.answers.extend(exchange.answer.into_iter().filter(|_| script.is_known));
                }
                byte if byte == PASSES || is_valid => {
                    let seconds = 1 + u64::from(input.byte());
                    if count < MOST_PARTS {
                        model.now_s += seconds;
                        let next = (*second + seconds, Vec::new());
                        script.parts.push(next);
                    }
                    continue;
                }
                AGAIN => {
                    let (len, times) = (1 + usize::from(input.byte()), input.number());
                    let last = part[before.saturating_sub(len)..].to_vec();
                    let most = (MOST_SENT - sent) / last.len().max(1);
                    part.extend(last.repeat(most.min(usize::try_from(times).unwrap_or(most))));
                    script.is_known = false;
                }
                VERBATIM => {
                    part.push(input.byte());
                    script.is_known = false;
                }
                byte => {
                    part.push(byte);
                    script.is_known = false;
                }
            }
            sent += part.len() - before;
        }
        script
    }
}

fn draw(input: &mut Input<'_>, bound: u64) -> u64 {
    if bound <= 256 { u64::from(input.byte()) % bound } else { input.number() % bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_for_themselves_for_commands_and_for_time() {
        let script = Script::of(&mut Input::new(b"ab\xfa\x01\x02\xff\xf8\xf9\x04c"), false);
        assert_eq!(script.parts, [(1, b"ababab\xf8".to_vec()), (6, b"c".to_vec())]);
        assert!(!script.is_known && script.answers.is_empty());
        // A get of one key.
        let script = Script::of(&mut Input::new(&[COMMAND]), false);
        assert_eq!((&script.parts[0].1[..], &script.answers[..]), (&b"get key0\r\n"[..], &b"END\r\n"[..]));
        assert!(script.is_known);
        let script = Script::of(&mut Input::new(b"a\xfa\x00\xdf"), false);
        assert_eq!(script.parts[0].1.len(), MOST_SENT);
        let script = Script::of(&mut Input::new(&[7; 2_000]), true);
        assert!(script.is_known && script.parts.len() == 1 && script.answers.len() > 1_000);
    }
}
