#![allow(unsafe_code)]
use super::*;
use crate::linux::tests::in_a_process_of_its_own;

#[test]
fn a_limit_of_addresses_or_of_data_charges_mappings() {
    for resource in [libc::RLIMIT_AS, libc::RLIMIT_DATA] {
        assert!(in_a_process_of_its_own(|| {
            let limit = libc::rlimit { rlim_cur: 1 << 40, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the call reads one `rlimit`.
            let is_set = unsafe { libc::setrlimit(resource, &limit) == 0 };
            is_set && mappings_are_charged()
        }));
    }
}

#[test]
fn without_such_a_limit_they_are_charged_only_if_the_kernel_promises_no_more_than_it_has() {
    let mut text = [0; 8];
    let has_none = in_a_process_of_its_own(|| {
        let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: each call reads one `rlimit`.
        [libc::RLIMIT_AS, libc::RLIMIT_DATA]
            .into_iter()
            .all(|resource| unsafe { libc::setrlimit(resource, &none) == 0 })
            && !mappings_are_charged()
    });
    assert!(has_none || read(c"/proc/sys/vm/overcommit_memory", &mut text).is_ok_and(|text| text.starts_with(b"2")));
}
