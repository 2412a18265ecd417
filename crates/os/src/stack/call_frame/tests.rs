extern crate std;
use super::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;

/// The rule at `code`.
fn rule(info: usize, code: usize) -> Option<Rule> {
    find(info, code).map(|found| found.rule)
}

#[test]
fn what_is_no_call_frame_information_has_no_rule() {
    let wrong = [7u32; 16];
    assert_eq!(rule(wrong.as_ptr().expose_provenance(), 0x1000), None);
    assert_eq!(rule(0, 0x1000), None);
    assert_eq!(digest(wrong.as_ptr().expose_provenance(), 0, 0x1000), None);
    assert_eq!(rule(1 << 62, 0x1000), None);
}
