extern crate std;
use super::*;
use std::string::ToString;

#[test]
fn code_of_the_program_is_in_the_programs_file() {
    let here = code_of_the_program_is_in_the_programs_file as fn() as usize;
    let text = CodeAddress(here).to_string();
    let exe = std::env::current_exe().unwrap();
    let (address, rest) = text.split_once(' ').unwrap();
    assert_eq!(address, std::format!("{here:#x}"));
    assert!(rest.starts_with(&std::format!("{}+0x", exe.display())), "{text}");
}

#[test]
fn an_address_outside_every_object_is_written_as_it_is() {
    let local = 0u64;
    let at = (&raw const local).addr();
    assert!(find(at).is_none());
    assert_eq!(CodeAddress(at).to_string(), std::format!("{at:#x}"));
}

#[test]
fn code_of_a_shared_object_is_in_its_file() {
    let at = libc::getpid as *const () as usize;
    let text = CodeAddress(at).to_string();
    // Where the C library does not tell about objects, the name is not known; without shared objects, it is the program's.
    let exe = std::env::current_exe().unwrap();
    let known = [" /", "libc.so", "+0x"].iter().all(|part| text.contains(part));
    assert!(known || text.contains(" ?+0x") || text.contains(exe.to_str().unwrap()), "{text}");
    assert!(!CodeAddress(at).is_of_this_library());
}

/// Another thread may unload the object at any moment, and then its `link_map` is freed.
#[test]
fn the_record_of_an_object_that_was_unloaded_is_not_followed() {
    let found = FoundObject {
        flags: 0,
        map_start: 0x1000,
        map_end: 0x2000,
        link_map: 1 << 62,
        frame_info: 0x1800,
        reserved: [0; 7],
    };
    let module = Module::of_loader(&found).unwrap();
    assert!(!module.is_program() && !stays(Some(module)) || !has_loader());
    assert_eq!(module.frame_info, 0x1800);
    assert_eq!(module.bias_and_name(&mut [0; 512]), None);
}

#[test]
fn of_a_name_as_much_is_read_as_there_is_room_for() {
    let (name, mut buffer) = (c"/lib/a.so", [0; 16]);
    let at = address::expose(name.as_ptr().cast_mut());
    assert_eq!(read_text(&mut Reader::new(), at, &mut buffer), 9);
    assert_eq!(&buffer[..10], b"/lib/a.so\0");
    assert_eq!(read_text(&mut Reader::new(), at, &mut buffer[..4]), 4);
    assert_eq!(read_text(&mut Reader::new(), 0, &mut buffer), 0);
}
