//! The disks that a trace names, and the hosts they belong to.

use std::collections::BTreeMap;

use crate::fields::LineError;

/// The most disks that one trace may name. A column with more values is not a disk, and would fill the memory.
const MOST: usize = 1 << 20;

/// A disk of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Device {
    /// The host, where the format has hosts.
    pub host: String,
    /// The disk's name in the trace.
    pub disk: String,
}

impl Device {
    pub(crate) fn disk(&self) -> &str {
        &self.disk
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Both names as one.
    pub fn name(&self) -> String {
        match self.host.is_empty() {
            true => self.disk.clone(),
            false => format!("{}.{}", self.host, self.disk),
        }
    }
}

/// The disks seen so far, in order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    list: Vec<Device>,
    index: BTreeMap<Vec<u8>, u32>,
    /// The disk looked up last, and its key: a cache, since consecutive requests mostly use the same disk.
    last: Option<u32>,
    last_key: Vec<u8>,
    key: Vec<u8>,
}

impl Devices {
    /// All of them.
    pub fn list(&self) -> &[Device] {
        &self.list
    }

    /// The index of a disk.
    pub(crate) fn of(&mut self, host: &[u8], disk: &[u8]) -> Result<u32, LineError> {
        if let Some(last) = self.last
            && self.last_key.len() == host.len() + disk.len() + 1
            && self.last_key.starts_with(host)
            && self.last_key.ends_with(disk)
            && self.last_key[host.len()] == 0
        {
            return Ok(last);
        }
        self.key.clear();
        self.key.extend_from_slice(host);
        self.key.push(0);
        self.key.extend_from_slice(disk);
        let found = match self.index.get(&self.key) {
            Some(found) => *found,
            None => self.add(host, disk)?,
        };
        self.last = Some(found);
        std::mem::swap(&mut self.last_key, &mut self.key);
        Ok(found)
    }

    fn add(&mut self, host: &[u8], disk: &[u8]) -> Result<u32, LineError> {
        if self.list.len() == MOST {
            return Err(LineError(format!("names more than {MOST} disks; is the format right?")));
        }
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let number = self.list.len() as u32;
        self.list.push(Device { host: text(host), disk: text(disk) });
        self.index.insert(self.key.clone(), number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_told_apart_by_both_names() {
        let mut devices = Devices::default();
        let mut of = |host: &str, disk: &str| devices.of(host.as_bytes(), disk.as_bytes()).unwrap();
        assert_eq!([of("a", "0"), of("a", "0"), of("a", "1"), of("b", "0"), of("a", "0")], [0, 0, 1, 2, 0]);
        assert_eq!([of("", "ab"), of("a", "b"), of("ab", ""), of("", "ab")], [3, 4, 5, 3]);
        assert_eq!(devices.list()[2].name(), "b.0");
        assert_eq!(devices.list()[3].name(), "ab");
    }
}
