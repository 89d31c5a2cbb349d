//! A guest that has its drive sanitized and tested by nvme-cli.

use nandscape_lab_guest::Guest;

use super::super::{run, script, until};
use super::json;

/// The log shows that no operation is in progress.
const SANITIZED: &str = "nvme sanitize-log /dev/nvme0 | grep -q \"SPROG) :  65535\"";

/// The same for self-tests.
const TESTED: &str = "nvme self-test-log /dev/nvme0 | grep -q \"Current operation  : 0\"";

/// Three ways to sanitize.
pub(in super::super) fn sanitize_leaves_no_data(guest: &mut Guest) {
    // Block erase, overwrite in two passes, cryptographic erase; the status that nvme-cli then shows: all data erased,
    // completed passes, success.
    let until_sanitized = until(SANITIZED);
    for (action, status) in [
        ("--sanact=start-block-erase", "0x101"),
        ("--sanact=start-overwrite --owpass=2 --ovrpat=0x5a5a5a5a", "0x111"),
        ("--sanact=start-crypto-erase", "0x101"),
    ] {
        script(
            guest,
            &format!(
                "dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=4 oflag=direct
                 nvme sanitize /dev/nvme0 {action}
                 {until_sanitized}
                 nvme sanitize-log /dev/nvme0 | grep 'SSTAT) :  {status}$'
                 blockdev --flushbufs /dev/nvme0n1
                 cmp -n 4194304 /dev/nvme0n1 /dev/zero"
            ),
        );
    }
    script(
        guest,
        "dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=1 oflag=direct
         nvme sanitize-log /dev/nvme0 | grep 'SSTAT) :  0x1$'",
    );
}

/// A short self-test and an extended one.
pub(in super::super) fn self_tests_pass_and_are_logged(guest: &mut Guest) {
    run(guest, "dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=4 oflag=direct");
    // A short one, and an extended one. nvme-cli itself would wait for progress that a short one has made before it looks.
    for code in [1, 2] {
        script(guest, &format!("nvme device-self-test /dev/nvme0 -n 1 -s {code}\n{}", until(TESTED)));
    }
    let log = json(&run(guest, "nvme self-test-log /dev/nvme0 -o json"));
    assert_eq!(log["Current Device Self-Test Operation"], 0, "{log:#}");
    // The last one first.
    let results = log["List of Valid Reports"].as_array().unwrap();
    for (result, code) in results.iter().zip([2, 1]) {
        assert_eq!((&result["Self test code"], &result["Self test result"]), (&code.into(), &0.into()), "{log:#}");
    }
    assert!(results.len() >= 2, "{log:#}");
}
