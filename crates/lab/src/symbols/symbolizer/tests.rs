use super::*;

fn own_mappings() -> Vec<Mapping> {
    Mapping::parse_all(&std::fs::read_to_string("/proc/self/maps").unwrap())
}

#[test]
fn a_function_of_this_program_has_its_name_file_and_line() {
    let mut symbols = Symbolizer::new(own_mappings());
    // One past the first byte of a function is a return address within it.
    let address = a_function_of_this_program_has_its_name_file_and_line as fn() as usize as u64 + 1;
    let frames = symbols.frames(address);
    let outermost = frames.last().unwrap();
    assert!(outermost.function.contains("a_function_of_this_program_has_its_name"), "{frames:?}");
    assert!(outermost.file.as_deref().is_some_and(|file| file.ends_with("symbolizer/tests.rs")), "{frames:?}");
    assert!(outermost.line > 0);
}

#[test]
fn what_has_no_symbol_is_an_offset_and_what_has_no_mapping_an_address() {
    let line = "1000-2000 r-xp 00000000 00:00 1 /no/such/library.so\n5000-6000 r-xp 00000000 00:00 0 ";
    let mut symbols = Symbolizer::new(Mapping::parse_all(line));
    assert_eq!(symbols.frames(0x1235)[0].function, "library.so+0x234");
    assert_eq!(symbols.frames(0x5011)[0].function, "anonymous memory+0x10");
    assert_eq!(symbols.frames(0x9001)[0].function, "0x9000");
    assert_eq!(symbols.unnamed_modules(), ["/no/such/library.so"]);
}
