//! What the kernel says of its huge pages.
//!
//! Several system calls: asked once. Every failure means "none".

use crate::file;

/// Size in bytes of the huge pages that are given on request; 0 when none are, or all memory gets them anyway.
pub(super) fn on_request() -> usize {
    let (mut mode, mut bytes) = ([0; 64], [0; 32]);
    let on_request = file::read(c"/sys/kernel/mm/transparent_hugepage/enabled", &mut mode).is_some_and(is_on_request);
    if !on_request {
        return 0;
    }
    let size = file::read(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &mut bytes).and_then(file::number);
    size.and_then(|size| usize::try_from(size).ok()).filter(|size| size.is_power_of_two()).unwrap_or(0)
}

/// Whether the mode in brackets is the one in which asking counts.
fn is_on_request(modes: &[u8]) -> bool {
    modes.split(|byte| byte.is_ascii_whitespace()).any(|mode| mode == b"[madvise]")
}
