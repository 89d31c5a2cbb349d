//! The identity of a remote drive as hosts see it: its type, a separate name, and no command that it lacks.

use nandscape_host_driver::nvme_tcp::Target;
use nandscape_wire_nvme::identify::{self, Controller, Namespace, cns};
use nandscape_wire_nvme::log::{COMMANDS_AND_EFFECTS, CommandsAndEffects, SANITIZE_STATUS};
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::vendor::ATOMIC_WRITE;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use zerocopy::FromBytes;

use crate::host::Host;
use crate::served::served_again;
use crate::server::Server;

fn identity(server: &Server) -> (Controller, Namespace) {
    let mut admin = Host::admin(server, Digests::default());
    let mut data = |cns: u8, nsid: u32| {
        let (status, data) = admin.read_command(SubmissionEntry::identify(cns, nsid), 4_096);
        assert_eq!(status, Status::SUCCESS);
        data
    };
    let controller = Controller::read_from_bytes(&data(cns::CONTROLLER, 0)).unwrap();
    (controller, Namespace::read_from_bytes(&data(cns::NAMESPACE, 1)).unwrap())
}

#[test]
fn it_is_the_same_drive_under_another_name() {
    let first = Server::start();
    let second = served_again(Target::new(&first.address, &first.nqn));
    let ((far, far_namespace), (here, namespace)) = (identity(&first), identity(&second));
    assert_eq!((here.sn, here.mn, here.fr), (far.sn, far.mn, far.fr));
    assert_eq!((here.mdts, here.vwc & 1), (far.mdts, far.vwc & 1));
    assert_ne!(here.subnqn, far.subnqn);
    assert!(namespace.nguid != far_namespace.nguid && namespace.nguid != [0; 16]);
    assert_eq!((namespace.nsze, namespace.dlfeat), (far_namespace.nsze, far_namespace.dlfeat));
    assert_eq!((namespace.flbas, namespace.nlbaf_z, namespace.lbaf[0].lbads), (0, 0, 9));
    // A server that is started again gives it the same name.
    let again = served_again(Target::new(&first.address, &first.nqn));
    assert_eq!((&again.nqn, identity(&again).1.nguid), (&second.nqn, namespace.nguid));
}

#[test]
fn only_commands_that_the_drive_has_are_offered() {
    let first = Server::start();
    let second = served_again(Target::new(&first.address, &first.nqn));
    let (mut admin, mut queue) = Host::with_queue(&second);
    let (here, _) = identity(&second);
    assert_eq!(here.oacs.get(), identify::OACS_SELF_TEST);
    assert_eq!((here.sanicap.get(), here.fna, here.fuses.get()), (0, 0, 0));
    for opcode in [
        AdminOpcode::FORMAT_NVM,
        AdminOpcode::SANITIZE,
        AdminOpcode::NAMESPACE_MANAGEMENT,
        AdminOpcode::NAMESPACE_ATTACHMENT,
    ] {
        let refused = admin.execute(SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(opcode) }).status();
        assert_eq!(refused.meaning(), Status::INVALID_OPCODE, "{opcode:?}");
    }
    let log = |lid: u8, bytes: u32| {
        let mut entry = SubmissionEntry::admin(AdminOpcode::GET_LOG_PAGE);
        entry.cdw10 = (u32::from(lid) | (bytes / 4 - 1) << 16).into();
        entry
    };
    assert_eq!(admin.read_command(log(SANITIZE_STATUS, 512), 512).0.meaning(), Status::INVALID_LOG_PAGE);
    let (_, effects) = admin.read_command(log(COMMANDS_AND_EFFECTS, 4_096), 4_096);
    let effects = CommandsAndEffects::read_from_bytes(&effects).unwrap();
    let (all, none) = (0..=0x7f, SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 1));
    let offered: Vec<u8> = all.filter(|opcode| effects.io[usize::from(*opcode)].get() & 1 != 0).collect();
    let right = [
        IoOpcode::FLUSH,
        IoOpcode::WRITE,
        IoOpcode::READ,
        IoOpcode::WRITE_UNCORRECTABLE,
        IoOpcode::COMPARE,
        IoOpcode::WRITE_ZEROES,
        IoOpcode::DATASET_MANAGEMENT,
        IoOpcode::VERIFY,
        IoOpcode::RESERVATION_REGISTER,
        IoOpcode::RESERVATION_REPORT,
        IoOpcode::RESERVATION_ACQUIRE,
        IoOpcode::RESERVATION_RELEASE,
        IoOpcode::COPY,
    ];
    assert_eq!(offered, right.map(|opcode| opcode.0));
    for opcode in [IoOpcode::ZONE_APPEND, ATOMIC_WRITE] {
        let entry = SubmissionEntry { opcode: opcode.0, ..none };
        assert_eq!(queue.execute(entry).status().meaning(), Status::INVALID_OPCODE, "{opcode:?}");
    }
    // A short self-test reads the drive through the network.
    let mut test = SubmissionEntry::admin(AdminOpcode::DEVICE_SELF_TEST);
    (test.nsid, test.cdw10) = (1.into(), 1.into());
    assert_eq!(admin.execute(test).status(), Status::SUCCESS);
    first.until(|figures| figures.exports[0].reads.latency.count() > 10);
}
