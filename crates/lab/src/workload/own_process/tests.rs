use super::*;

#[test]
fn a_field_of_the_status_file_is_read_in_bytes() {
    let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t    12 kB\n";
    assert_eq!(field_bytes(status, "VmHWM:"), Some(12 * 1024));
    assert_eq!(field_bytes(status, "VmSwap:"), None);
}

#[test]
fn the_resident_size_is_the_second_number_of_statm() {
    assert_eq!(resident_os_pages(b"1234 567 89 1 0 2 0\n"), 567);
    assert_eq!(resident_os_pages(b""), 0);
}

#[test]
fn written_memory_is_resident() {
    let written = std::hint::black_box(vec![1_u8; 32 << 20]);
    // The kernel counts pages on each processor and adds the counts up from time to time.
    assert!(RssReader::open().unwrap().bytes() > 24 << 20);
    assert!(peak_rss_bytes().unwrap() > 24 << 20);
    drop(written);
}

#[test]
fn usage_is_added_and_subtracted_figure_by_figure() {
    let one = Usage { user_ns: 5, system_ns: 7, minor_faults: 11 };
    let two = Usage { user_ns: 1, system_ns: 2, minor_faults: 3 };
    assert_eq!(one.plus(two), Usage { user_ns: 6, system_ns: 9, minor_faults: 14 });
    assert_eq!(one.plus(two).since(two), one);
    assert_eq!(nanoseconds(libc::timeval { tv_sec: 2, tv_usec: 3 }), 2_000_003_000);
}
