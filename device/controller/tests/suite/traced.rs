//! The names of commands in the event trace: the command set names its own, but not admin commands with the same opcodes.

use crate::common::{config, host, read, with, write};
use nandscape_drive::{HostMem, QueueId};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, SubmissionEntry};

#[test]
fn commands_are_traced_by_the_names_of_their_set() {
    assert_eq!(AdminOpcode::GET_LOG_PAGE.0, IoOpcode::READ.0);
    with(config(), async |sim, drive| {
        sim.trace().switch_on();
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let (entry, mem) = write(8, 8);
        assert!(io.execute(entry, mem).await.unwrap().status.is_success());
        assert!(io.execute(read(8, 8), HostMem::none()).await.unwrap().status.is_success());
        let flush = SubmissionEntry::io(IoOpcode::FLUSH, 1);
        assert!(io.execute(flush, HostMem::none()).await.unwrap().status.is_success());
        let smart = SubmissionEntry::get_log_page(2, NSID_ALL, 512);
        assert!(admin.execute(smart, HostMem::zeroed(512)).await.unwrap().status.is_success());
        let json = sim.trace().to_chrome_json();
        let named = |name: &str| json.matches(&format!("\"name\":\"{name}\"")).count();
        assert_eq!(["write", "read", "other", "admin"].map(named), [1, 1, 1, 1], "{json}");
    });
}
