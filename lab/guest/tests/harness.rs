//! The harness by itself: a guest with QEMU's own NVMe drive runs commands, and its failures are reported.
#![cfg(target_os = "linux")]

use nandscape_lab_guest::{Device, ExtraFile, GuestError, Kit, Machine};

fn kit() -> Kit {
    Kit::prepare(&|_| ()).unwrap()
}

#[test]
fn a_guest_uses_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, words) = (folder.path().join("disk"), folder.path().join("words"));
    std::fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    std::fs::write(&words, "some words").unwrap();
    let files = vec![ExtraFile { from: words, to: "/root/more/it's words".to_owned() }];
    let devices = vec![Device::FileNvme(disk), Device::NullNvme(1 << 30)];
    // The kernel numbers drives in the order in which they answer.
    let first = "for drive in /dev/nvme*n1; do ln -s $drive /dev/of-$(blockdev --getsize64 $drive); done".to_owned();
    let mut guest = Machine { devices, files, first, ..Machine::default() }.start(&kit()).unwrap();
    assert_eq!(guest.run("ls /dev/of-*").unwrap(), "/dev/of-1073741824\n/dev/of-67108864");
    guest.run("ln -s /dev/of-67108864 drive; mkfs.ext4 -q drive && mount $(readlink -f drive) /mnt").unwrap();
    guest.run("cp \"more/it's words\" /mnt/words && umount /mnt && mount $(readlink -f drive) /mnt").unwrap();
    assert_eq!(guest.run("cat /mnt/words").unwrap(), "some words");
    assert!(guest.power_off().unwrap().success());
}

#[test]
fn what_fails_is_reported() {
    let mut guest = Machine::default().start(&kit()).unwrap();
    let output = guest.attempt("echo out; echo err >&2; printf end; exit 7").unwrap();
    assert_eq!((output.status, &output.text[..]), (7, "out\nerr\nend"));
    let error = guest.run("ls /no-such-file; echo 'two words'; exit 3").unwrap_err();
    assert!(matches!(&error, GuestError::Command { status: 3, .. }), "{error}");
    assert!(error.to_string().contains("no-such-file") && error.to_string().contains("two words"), "{error}");
    let mut lines = Vec::new();
    guest.attempt_with("seq 3; echo '(' ; eval '('", &mut |line| lines.push(line.to_owned())).unwrap();
    assert_eq!(lines[..4], ["1", "2", "3", "("]);
    assert_eq!(guest.run("cat /proc/sys/kernel/panic").unwrap(), "-1");
    // The kernel dies under the command, and QEMU ends.
    let error = guest.run("echo before; echo c > /proc/sysrq-trigger").unwrap_err();
    assert!(matches!(&error, GuestError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("sysrq triggered crash"), "{error}");
}
