//! Steps of guests on their drive, /dev/nvme0n1 of /dev/nvme0, the same over either transport.
//!
//! | file | what |
//! |---|---|
//! | `tools` | the output of nvme-cli, and how a failed command is logged |
//! | `load` | fio with verification: on all queues, and during disturbances |
//! | `file_systems` | ext4 and XFS |
//! | `namespaces` | namespaces are created, attached and formatted |
//! | `upkeep` | sanitize and self-test |

mod file_systems;
mod load;
mod namespaces;
mod tools;
mod upkeep;

pub(super) use file_systems::file_systems_keep_their_files;
pub(super) use load::{Load, all_queues_verify, resets_under_load_lose_nothing};
pub(super) use namespaces::namespaces_are_created_attached_and_formatted;
pub(super) use tools::{failed_commands_are_logged, tools_identify_the_drive};
pub(super) use upkeep::{sanitize_leaves_no_data, self_tests_pass_and_are_logged};

use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
