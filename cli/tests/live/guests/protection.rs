//! Protection information between Linux and the drive: the block layer's own, in a metadata buffer (MPTR), and what the
//! drive inserts into extended blocks; and commands that break it.

use nandscape_lab_guest::Guest;

use super::transport::{Served, Transport};
use super::{run, script};

const VERIFY: &str = "fio --name=load --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --iodepth=32 --rw=randwrite \
                      --bs=4k --size=4m --verify=crc32c --verify_fatal=1";

/// A command of nvme-cli on block 8, with its data and metadata in files.
fn block_8(guest: &mut Guest, command: &str) -> (i32, String) {
    let ended =
        guest.attempt(&format!("nvme {command} /dev/nvme0n1 -s 8 -c 0 -z 512 -y 8 -d /run/data -M /run/metadata 2>&1"));
    let ended = ended.unwrap();
    (ended.status, ended.text)
}

#[test]
fn linux_and_the_drive_check_each_others_protection() {
    let server = Served::over(Transport::Pci, &[]);
    let mut guest = server.guest();
    // 512 + 8 bytes, type 1, metadata in a separate buffer.
    run(&mut guest, "nvme format /dev/nvme0n1 -l 2 -i 1 -m 0 -f");
    assert_eq!(run(&mut guest, "cat /sys/block/nvme0n1/integrity/format"), "T10-DIF-TYPE1-CRC");
    run(&mut guest, VERIFY);

    let checked = |command: &str, reference: u32| format!("{command} -p 7 -r {reference} -m 0 -a 0");
    let (status, said) = block_8(&mut guest, &checked("read", 8));
    assert_eq!(status, 0, "what Linux has written passes the drive's check: {said}");
    assert_eq!(run(&mut guest, "stat -c %s /run/metadata"), "8");
    let (status, said) = block_8(&mut guest, &checked("read", 9));
    assert!(status != 0 && said.contains("Protection Information"), "{said}");
    script(&mut guest, "printf x | dd of=/run/data bs=1 seek=100 conv=notrunc");
    let (status, said) = block_8(&mut guest, &checked("write", 8));
    assert!(status != 0 && said.contains("Guard"), "data that does not fit its guard: {said}");
    // Unchecked, the drive takes it. Then Linux does not.
    let (status, said) = block_8(&mut guest, "write -p 0");
    assert_eq!(status, 0, "{said}");
    let read = guest.attempt("dd if=/dev/nvme0n1 of=/dev/null bs=512 skip=8 count=1 iflag=direct").unwrap();
    assert_ne!(read.status, 0, "the drive checks what Linux reads");

    // 4096 + 8 bytes, type 1, extended: Linux has the drive insert and take out.
    run(&mut guest, "nvme format /dev/nvme0n1 -l 3 -i 1 -m 1 -f");
    assert_eq!(run(&mut guest, "blockdev --getss --getsize64 /dev/nvme0n1"), format!("4096\n{}", 1u64 << 30));
    run(&mut guest, VERIFY);
    guest.power_off().unwrap();
    server.figures();
}
