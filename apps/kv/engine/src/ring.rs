//! Consistent hashing: each server has a number of points on a ring of hashes; a key's replicas are those of the next points.

use nandscape_sim::rng::mix;

/// Points of a server: its share of the keys is within about a tenth of the others'.
const POINTS: u64 = 128;

/// See the module.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Hashes, rising, with the server.
    points: Vec<(u64, usize)>,
    servers: usize,
}

fn hash(bytes: &[u8]) -> u64 {
    mix(bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)))
}

impl Ring {
    /// A ring of this number of servers, which are numbered from zero.
    pub fn new(servers: usize) -> Ring {
        let point = |server: usize, number: u64| (mix(mix(server as u64 + 1) ^ number), server);
        let mut points: Vec<_> =
            (0..servers).flat_map(|server| (0..POINTS).map(move |number| point(server, number))).collect();
        points.sort_unstable();
        Ring { points, servers }
    }

    /// The servers that have a key, the first of them its primary: `count` of them, or all if there are fewer.
    pub fn replicas(&self, key: &[u8], count: usize) -> Vec<usize> {
        let count = count.min(self.servers);
        let start = self.points.partition_point(|(point, _)| *point < hash(key));
        let mut replicas = Vec::with_capacity(count);
        for (_, server) in self.points[start..].iter().chain(&self.points[..start]) {
            if replicas.len() == count {
                break;
            }
            if !replicas.contains(server) {
                replicas.push(*server);
            }
        }
        replicas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_even_replicas_differ_and_a_new_server_moves_its_share_only() {
        let (small, large) = (Ring::new(9), Ring::new(10));
        let (mut primaries, mut moved) = ([0; 9], 0);
        for number in 0..20_000u32 {
            let key = number.to_le_bytes();
            let replicas = small.replicas(&key, 3);
            let mut sorted = replicas.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 3);
            primaries[replicas[0]] += 1;
            let now = large.replicas(&key, 3);
            assert!(now[0] == replicas[0] || now[0] == 9, "a key moves to the new server only");
            moved += u32::from(now[0] == 9);
        }
        assert!(primaries.iter().all(|count| (1_600..2_900).contains(count)), "{primaries:?}");
        assert!((1_500..2_500).contains(&moved), "{moved}");
        assert_eq!((Ring::new(2).replicas(b"k", 3).len(), Ring::new(0).replicas(b"k", 3).len()), (2, 0));
    }
}
