//! The packages of a kit, and their archives.
//!
//! QEMU supports vfio-user from 10.1 on; trixie has that version only among its backports. All else is from trixie itself.

/// The suites, as apt's sources. Their signatures are checked with [`KEYRING`].
const SOURCES: [(&str, &str); 4] = [
    ("http://deb.debian.org/debian", "trixie"),
    ("http://deb.debian.org/debian", "trixie-updates"),
    ("http://security.debian.org/debian-security", "trixie-security"),
    ("http://deb.debian.org/debian", "trixie-backports"),
];

/// The keys of Debian's archive; in the package debian-archive-keyring of Debian and Ubuntu.
pub(super) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Packages by name. Their dependencies come with them.
pub(super) const PACKAGES: [&str; 9] = [
    "qemu-system-x86",
    "linux-image-amd64",
    "busybox-static",
    "nvme-cli",
    "fio",
    "e2fsprogs",
    "xfsprogs",
    "util-linux",
    "bash",
];

/// QEMU and the firmware that it needs, from the backports.
pub(super) const PREFERENCES: &str =
    "Package: src:qemu src:seabios\nPin: release n=trixie-backports\nPin-Priority: 900\n";

/// apt's list of sources.
pub(super) fn sources() -> String {
    SOURCES.iter().map(|(from, suite)| format!("deb [signed-by={KEYRING}] {from} {suite} main\n")).collect()
}

/// The whole recipe. Another recipe has another folder in the cache.
pub(super) fn text() -> String {
    format!("{}{PREFERENCES}{}", sources(), PACKAGES.join(" "))
}
