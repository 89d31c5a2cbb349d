//! A drive as a PCI device of a guest.

use serde_json::Value;

use super::{guest, run, script, serve, until};
use crate::server::number;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn nvme_cli_lists_and_identifies_the_drive() {
    let server = serve(&[]);
    let mut guest = guest(&server);
    let controller = json(&run(&mut guest, "nvme id-ctrl /dev/nvme0 -o json"));
    let text = |field: &str| controller[field].as_str().unwrap_or_default().trim().to_owned();
    assert!(text("mn").contains("Nandscape") && !text("sn").is_empty(), "{controller:#}");
    let listed = run(&mut guest, "nvme list");
    assert!(listed.contains("/dev/nvme0n1") && listed.contains(&text("sn")), "{listed}");
    let namespace = json(&run(&mut guest, "nvme id-ns /dev/nvme0n1 -o json"));
    assert_eq!(namespace["nsze"].as_u64(), Some((1 << 30) / 512), "{namespace:#}");
    assert_eq!(run(&mut guest, "blockdev --getsize64 /dev/nvme0n1"), (1u64 << 30).to_string());
    let smart = json(&run(&mut guest, "nvme smart-log /dev/nvme0 -o json"));
    assert_eq!(smart["critical_warning"].as_u64(), Some(0), "{smart:#}");
    script(
        &mut guest,
        "nvme error-log /dev/nvme0
         nvme fw-log /dev/nvme0
         nvme list-ns /dev/nvme0
         nvme ns-descs /dev/nvme0n1
         nvme supported-log-pages /dev/nvme0
         nvme effects-log /dev/nvme0 | grep 'Device Self-test'
         nvme show-regs /dev/nvme0
         nvme get-feature /dev/nvme0 -f 7",
    );
    guest.power_off().unwrap();
    server.figures();
}

/// With shadow doorbells that are looked at when told; the other tests have the default.
#[test]
fn fio_verifies_at_depth_32_on_all_queues() {
    let server = serve(&["--doorbells", "shadow"]);
    let mut guest = guest(&server);
    // A queue pair for each processor.
    assert_eq!(run(&mut guest, "ls -d /sys/block/nvme0*n1/mq/* | wc -l"), "2");
    let job = |name: &str, cpu: u32, more: &str| {
        format!(
            "--name={name} --cpus_allowed={cpu} --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --iodepth=32 \
             --offset={cpu}00m --size=32m --verify=crc32c --verify_fatal=1 {more}"
        )
    };
    let (one, other) = (job("one", 0, "--rw=randwrite --bs=4k"), job("other", 1, "--rw=randwrite --bsrange=512-64k"));
    run(&mut guest, &format!("fio {one} {other}"));
    guest.power_off().unwrap();
    let figures = server.figures();
    assert!(number(&figures, "/drives/0/writes/bytes") >= 64e6 && number(&figures, "/drives/0/reads/bytes") >= 64e6);
    assert_eq!(number(&figures, "/drives/0/writes/errors") + number(&figures, "/drives/0/reads/errors"), 0.0);
}

#[test]
fn file_systems_keep_their_files() {
    let server = serve(&[]);
    let mut guest = guest(&server);
    for (make, check) in [("mkfs.ext4 -q -F", "e2fsck -fn"), ("mkfs.xfs -q -f", "xfs_repair -n")] {
        script(
            &mut guest,
            &format!(
                "{make} /dev/nvme0n1
                 mount /dev/nvme0n1 /mnt
                 mkdir /mnt/d
                 for n in $(seq 20); do head -c ${{n}}00000 /dev/urandom > /mnt/d/$n || exit 1; done
                 cd /mnt/d && sha256sum * > /run/sums
                 rm /mnt/d/1* && grep -v ' 1' /run/sums > /run/left
                 umount /mnt && mount /dev/nvme0n1 /mnt
                 cd /mnt/d && sha256sum -c /run/left
                 fstrim -v /mnt
                 umount /mnt && mount /dev/nvme0n1 /mnt
                 cd /mnt/d && sha256sum -c /run/left
                 umount /mnt
                 {check} /dev/nvme0n1"
            ),
        );
    }
    guest.power_off().unwrap();
    assert!(number(&server.figures(), "/drives/0/others/count") > 10.0);
}

#[test]
fn a_reset_under_load_loses_nothing() {
    let server = serve(&[]);
    let mut guest = guest(&server);
    let reset = "for n in 1 2 3 4 5; do sleep 0.3; echo 1 > /sys/class/nvme/nvme0/reset_controller; done";
    let fio = "fio --name=load --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --iodepth=32 --rw=randrw --bs=4k \
               --size=64m --verify=crc32c --verify_backlog=64 --verify_fatal=1 --time_based --runtime=4";
    run(&mut guest, &format!("{reset} & {fio} && wait"));
    let resets = run(&mut guest, "dmesg | grep -c 'nvme nvme0: .*queues'");
    assert!(resets.parse::<u32>().unwrap() >= 6, "the driver has set up queues {resets} times");
    run(&mut guest, "nvme reset /dev/nvme0 && dd if=/dev/nvme0n1 of=/dev/null bs=1M count=16");
    guest.power_off().unwrap();
    server.figures();
}

#[test]
fn namespaces_are_created_attached_and_formatted() {
    let server = serve(&[]);
    let mut guest = guest(&server);
    let controller = json(&run(&mut guest, "nvme id-ctrl /dev/nvme0 -o json"))["cntlid"].to_string();
    // The driver learns of each change by an event.
    script(
        &mut guest,
        &format!(
            "nvme delete-ns /dev/nvme0 -n 1
             {}
             nvme create-ns /dev/nvme0 -s 0x40000 -c 0x40000 -f 0
             nvme create-ns /dev/nvme0 -s 0x8000 -c 0x8000 -f 1
             nvme attach-ns /dev/nvme0 -n 1 -c {controller}
             nvme attach-ns /dev/nvme0 -n 2 -c {controller}
             {}",
            until("[ ! -e /dev/nvme0n1 ]"),
            until("[ -e /dev/nvme0n1 -a -e /dev/nvme0n2 ]")
        ),
    );
    let size = |guest: &mut _, name: &str| run(guest, &format!("blockdev --getss --getsize64 /dev/{name}"));
    assert_eq!(size(&mut guest, "nvme0n1"), format!("512\n{}", 128 << 20));
    assert_eq!(size(&mut guest, "nvme0n2"), format!("4096\n{}", 128 << 20));
    script(
        &mut guest,
        &format!(
            "dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=16 oflag=direct
             dd if=/dev/urandom of=/dev/nvme0n2 bs=1M count=16 oflag=direct
             sha256sum /dev/nvme0n2 > /run/sum
             nvme format /dev/nvme0n1 -l 1 -f
             cmp -n 16777216 /dev/nvme0n1 /dev/zero
             sha256sum -c /run/sum
             nvme detach-ns /dev/nvme0 -n 2 -c {controller}
             {}",
            until("[ ! -e /dev/nvme0n2 ]")
        ),
    );
    assert_eq!(size(&mut guest, "nvme0n1"), format!("4096\n{}", 128 << 20));
    guest.power_off().unwrap();
    server.figures();
}
