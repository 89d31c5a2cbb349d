//! What each command of the NVM command set does, one file a command or a family.

mod flush;
mod read;
mod trim;
mod write;

pub(crate) use read::ReadTo;
