//! Whole drives through their controllers: data, statuses and lives, a file for each. One program, which links and starts once.
//!
//! Separate test programs: the page of keys, two commands at once, parts, files, zones.

mod aged;
mod any_drive;
mod any_ox_block;
mod background;
mod conformance;
mod deallocate;
mod isolated;
mod ox_block;
mod processors;
mod queue_wait;
mod restart;
mod settings;
mod ttflash;
mod windows;
mod write_uncorrectable;
