#![allow(unsafe_code)]
use super::*;
use crate::linux::tests::in_a_process_of_its_own;

/// Limits this process's addresses and its data.
fn limit(addresses: libc::rlim_t, data: libc::rlim_t) -> bool {
    [(libc::RLIMIT_AS, addresses), (libc::RLIMIT_DATA, data)].into_iter().all(|(resource, most)| {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the call reads one `rlimit`.
        unsafe { libc::setrlimit(resource, &limit) == 0 }
    })
}

#[test]
fn a_limit_of_addresses_or_of_data_charges_mappings() {
    for (addresses, data) in [(1 << 40, libc::RLIM_INFINITY), (libc::RLIM_INFINITY, 1 << 40)] {
        assert!(in_a_process_of_its_own(|| limit(addresses, data) && mappings_are_charged()));
    }
}

#[test]
fn without_such_a_limit_they_are_charged_only_if_the_kernel_promises_no_more_than_it_has() {
    let mut text = [0; 8];
    let has_none =
        in_a_process_of_its_own(|| limit(libc::RLIM_INFINITY, libc::RLIM_INFINITY) && !mappings_are_charged());
    assert!(has_none || read(c"/proc/sys/vm/overcommit_memory", &mut text).is_ok_and(|text| text.starts_with(b"2")));
}
