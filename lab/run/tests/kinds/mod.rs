//! The kinds of layers of which tests draw chains.

/// Every kind over drives with logical blocks, with settings that make it work: small memory, small queues, a technique that evades.
pub(crate) const KINDS: [&str; 6] = [
    "block,depth=8,scheduler=ssd",
    "cache,memory=64KiB",
    "raid0:2",
    "raid1:2,technique=tea2",
    "raid5:3,chunk=8KiB",
    "ahci:2,slots=8",
];
