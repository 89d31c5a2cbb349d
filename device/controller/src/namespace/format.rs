//! LBA formats.

/// Bytes of a logical block, by format index.
pub(crate) const LBA_FORMATS: [u32; 2] = [512, 4_096];
