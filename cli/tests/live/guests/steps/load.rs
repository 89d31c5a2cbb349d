//! Load with verification: on all queues, and during disturbances.

use nandscape_lab_guest::Guest;

use super::super::{run, script, until};

/// The event of Linux for each command that its driver sends, counted by queue (Documentation/trace/histogram.rst).
const EVENT: &str = "/sys/kernel/tracing/events/nvme/nvme_setup_cmd";
/// The least commands of each queue: a part of those that fio sends from each processor.
const LEAST: u64 = 400;

/// Two jobs, each on its own processor and so on its own queue, at depth 32.
pub(in super::super) fn all_queues_verify(guest: &mut Guest) {
    // A queue pair for each processor.
    assert_eq!(run(guest, "ls -d /sys/block/nvme0*n1/mq/* | wc -l"), "2");
    script(
        guest,
        &format!(
            "mountpoint -q /sys/kernel/tracing || mount -t tracefs tracing /sys/kernel/tracing
             echo hist:keys=qid > {EVENT}/trigger"
        ),
    );
    let job = |name: &str, cpu: u32, more: &str| {
        format!(
            "--name={name} --cpus_allowed={cpu} --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --iodepth=32 \
             --offset={cpu}00m --verify=crc32c --verify_fatal=1 {more}"
        )
    };
    let one = job("one", 0, "--rw=randwrite --size=2m --bs=4k");
    let other = job("other", 1, "--rw=randwrite --size=12m --bsrange=512-64k");
    run(guest, &format!("fio {one} {other}"));
    let counted = run(guest, &format!("cat {EVENT}/hist"));
    for queue in [1, 2] {
        let commands = commands_of(&counted, queue);
        assert!(commands >= LEAST, "queue {queue} has had {commands} commands:\n{counted}");
    }
    run(guest, &format!("echo '!hist:keys=qid' > {EVENT}/trigger"));
}

/// The count in the line `{ qid: QUEUE } hitcount: COUNT`; 0 if there is none.
fn commands_of(histogram: &str, queue: u32) -> u64 {
    let words = histogram.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_queue = |words: Vec<&str>| match words[..] {
        ["{", "qid:", id, "}", "hitcount:", count] if id == queue.to_string() => count.parse().ok(),
        _ => None,
    };
    words.filter_map(of_queue).next().unwrap_or(0)
}

/// Verified load that runs until it is stopped.
pub(in super::super) struct Load(());

/// Commands are on their way. With native multipath they count at the path, not at the namespace.
const BUSY: &str = "awk \"{ n += \\$1 + \\$2 } END { exit n == 0 }\" /sys/block/nvme0*n1/inflight";

impl Load {
    /// Starts it, and waits until commands are on their way.
    pub(in super::super) fn start(guest: &mut Guest) -> Load {
        let fio = "fio --name=load --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --iodepth=32 --rw=randrw \
                   --bs=4k --size=4m --verify=crc32c --verify_backlog=64 --verify_fatal=1";
        script(
            guest,
            &format!(
                "rm -f /run/enough /run/ended
                 (until [ -e /run/enough ]; do {fio} || break; done; echo $? > /run/ended) > /run/load 2>&1 &"
            ),
        );
        Load(()).until_busy(guest)
    }

    /// Waits until commands are on their way.
    pub(in super::super) fn until_busy(self, guest: &mut Guest) -> Load {
        run(guest, &until(BUSY));
        self
    }

    /// Ends it. Everything was verified.
    pub(in super::super) fn end(self, guest: &mut Guest) {
        script(guest, &format!("touch /run/enough\n{}", until("[ -s /run/ended ]")));
        let status = run(guest, "cat /run/ended");
        assert_eq!(status, "0", "fio fails:\n{}", run(guest, "cat /run/load"));
    }
}

/// Times that the driver has made I/O queues: the line of the PCI driver, and that of NVMe/TCP.
const SET_UPS: &str = "dmesg | grep -cE 'nvme nvme0: ([0-9]+/[0-9]+/[0-9]+ default|creating [0-9]+ I/O queues)'";

/// Each of several resets finds commands on their way.
pub(in super::super) fn resets_under_load_lose_nothing(guest: &mut Guest) {
    let count = |guest: &mut Guest| run(guest, SET_UPS).parse::<u32>().unwrap();
    let before = count(guest);
    let mut load = Load::start(guest);
    for _ in 0..5 {
        load = load.until_busy(guest);
        run(guest, "echo 1 > /sys/class/nvme/nvme0/reset_controller");
    }
    load.until_busy(guest).end(guest);
    let set_ups = count(guest) - before;
    assert!(set_ups >= 5, "the driver has set up queues {set_ups} times");
    run(guest, "nvme reset /dev/nvme0 && dd if=/dev/nvme0n1 of=/dev/null bs=1M count=16");
}
