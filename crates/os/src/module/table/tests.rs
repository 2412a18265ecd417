extern crate std;
use super::*;
use core::hint::black_box;

#[test]
fn a_line_has_a_range_rights_an_offset_and_a_file() {
    let line = b"55d3c0de1000-55d3c0de2000 r-xp 00001000 fe:00 1234                       /usr/bin/a program";
    let mapping =
        Mapping { start: 0x55d3_c0de_1000, end: 0x55d3_c0de_2000, is_executable: true, offset: 0x1000, file: 1234 };
    assert_eq!(parse(line), Some(mapping));
    let anonymous = parse(b"1000-2000 rw-p 00000000 00:00 0").expect("a line");
    assert!(!anonymous.is_executable && anonymous.file == 0);
    assert!(
        [&b""[..], b"1000 r-xp", b"x-y r-xp 0 0 0", b"1000-2000 r-xp 0 0"]
            .into_iter()
            .all(|line| parse(line).is_none())
    );
}

#[test]
fn memory_between_the_parts_of_a_file_is_no_beginning_of_another() {
    let begins = |line: &[u8]| parse(line).expect("a line").begins_a_file();
    assert!(begins(b"200000-215000 r--p 00000000 fe:00 1234 /program"));
    assert!(!begins(b"215000-224000 ---p 00000000 00:00 0"));
    assert!(!begins(b"224000-272000 r-xp 00014000 fe:00 1234 /program"));
    assert!(begins(b"7ff000-7ff200 r-xp 00000000 00:00 0 [vdso]"));
}

#[test]
fn code_of_the_program_and_of_the_c_library_is_found_as_the_c_library_finds_it() {
    let table = std::boxed::Box::new(Table::new());
    for code in [
        code_of_the_program_and_of_the_c_library_is_found_as_the_c_library_finds_it as fn() as usize,
        libc::getpid as *const () as usize,
        libc::dlsym as *const () as usize,
    ] {
        let found = table.find(code).expect("it is in an object");
        assert!((found.start..found.end).contains(&code) && found.frame_info != 0);
        let [magic] = Reader::new().bytes::<1>(found.frame_info).expect("it can be read");
        assert_eq!(magic, 1, "the version of the header");
        if let Some(known) = super::super::find_by_loader(code) {
            let (bias, _) = known.bias_and_name(&mut [0; 512]).expect("it stays loaded");
            assert_eq!((found.bias, found.frame_info), (bias, known.frame_info));
        }
    }
    assert!(table.find(black_box(&table).as_ref() as *const Table as usize).is_none(), "memory without code");
    assert!(table.find(0).is_none() && table.find(usize::MAX).is_none());
}

#[test]
fn the_table_is_made_once_for_addresses_that_are_in_no_object() {
    let table = std::boxed::Box::new(Table::new());
    assert!(table.find(16).is_none());
    let made = table.version.load(Ordering::Relaxed);
    assert_eq!(made, 2);
    // In the future, so that none of these is due however long this takes.
    table.made_ms.store(u64::MAX / 2, Ordering::Relaxed);
    (0..1000).for_each(|at| assert!(table.find(at).is_none()));
    assert_eq!(table.version.load(Ordering::Relaxed), made);
    // While a thread writes, nothing is found.
    let here = parse as fn(&[u8]) -> Option<Mapping> as usize;
    assert!(table.find(here).is_some());
    table.version.fetch_add(1, Ordering::Relaxed);
    assert!(table.find(here).is_none());
    // A parent's thread was writing at the fork.
    table.maker.store(i32::MAX, Ordering::Relaxed);
    table.made_ms.store(0, Ordering::Relaxed);
    assert!(table.find(here).is_some());
}
