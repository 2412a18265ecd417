//! Tests of the counts of atomic instructions.

use super::*;

fn instruction<'a>(object: &'a str, function: &'a str, address: u64, count: u64) -> Instruction<'a> {
    Instruction { object, function, address, count }
}

#[test]
fn executed_instructions_are_read_without_what_called_functions_took() {
    let profile = "ob=/lib/a.so\nfn=x\n0x10 3 1\ncfn=y\ncalls=1 0x99 \n0x12 500\n0x14 2\nob=/lib/b.so\nfn=z\n0xff 7\n";
    let read: Vec<_> = instructions(profile).collect();
    let expected = [("/lib/a.so", "x", 16, 3), ("/lib/a.so", "x", 20, 2), ("/lib/b.so", "z", 255, 7)];
    assert_eq!(read, expected.map(|(object, function, address, count)| instruction(object, function, address, count)));
}

#[test]
fn atomic_instructions_are_those_with_a_lock_and_exchanges_with_memory() {
    assert_eq!(atomic_address("   1a2b:\tlock cmpxchg %rcx,(%rdi)"), Some(0x1a2b));
    assert_eq!(atomic_address("   1a2c:\txchg   %rax,0x8(%rdi)"), Some(0x1a2c));
    assert_eq!(atomic_address("   1a2d:\txchg   %ax,%ax"), None);
    assert_eq!(atomic_address("   1a2e:\tmov    (%rdi),%rax"), None);
    assert_eq!(atomic_address("0000000000001a2f <clock>:"), None);
}

#[test]
fn code_outside_the_text_section_is_counted_where_it_is_in_the_file() {
    let library = Path::new("/lib/a.so");
    let path = library.display().to_string();
    let mut atomics = AtomicInstructions(BTreeMap::from([
        (path.clone(), Listing::from([(0x120, None), (0x200, Some("page heap"))])),
        ("/lib/libc.so.6".into(), Listing::from([(0x30, None)])),
    ]));
    let profile =
        "ob=/lib/a.so\nfn=x\n0x120 3\n0x128 9\nob=/lib/libc.so.6\nfn=y\n0x30 5\nob=/lib/b.so\nfn=z\n0x120 7\n";
    let known = Executed { atomics: 8, locks: BTreeMap::new() };
    assert_eq!(atomics.executed(profile, Some(library)).unwrap(), known);
    assert_eq!(base_of(profile, library).unwrap(), None, "callgrind knows the object of all of it");

    // The C library has a malloc, and so an address that the process could have it at.
    let libc = crate::workload::loaded_allocator::malloc_library();
    let data = fs::read(&libc).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let malloc = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("malloc")).unwrap().address();
    let unknown =
        |base: u64| format!("ob={UNKNOWN}\nfn=malloc\n0x{:x} 1\n0x{:x} 2\n", malloc + 4 + base, malloc + base);
    assert_eq!(base_of(&unknown(0x48_3c000), Path::new(&libc)).unwrap(), Some(0x48_3c000));
    assert!(base_of(&unknown(0x48_3c008), Path::new(&libc)).is_err(), "no library starts inside a page");
    let mut atomics =
        AtomicInstructions(BTreeMap::from([(libc.clone(), Listing::from([(malloc, Some("page heap"))]))]));
    let counted = atomics.executed(&unknown(0x48_3c000), Some(Path::new(&libc))).unwrap();
    assert_eq!(counted, Executed { atomics: 2, locks: BTreeMap::from([("page heap", 2)]) });
}

#[test]
fn a_lock_has_the_name_of_the_code_that_takes_it_and_its_release_is_none() {
    let frame =
        |function: &str, file: &str| Frame { function: function.into(), file: Some(file.into()), ..Frame::default() };
    let taken = |function: &str, caller: &str| {
        lock_of(&[
            frame("core::sync::atomic::atomic_compare_exchange", "core/src/sync/atomic.rs"),
            frame(function, "/x/crates/base/src/lock.rs"),
            frame("caller", caller),
            frame("malloc", "/x/crates/capi/src/lib.rs"),
        ])
    };
    let lock = "freestone_base::lock::Lock<T,P,RANK>::lock";
    assert_eq!(taken(lock, "/x/crates/freestone/src/page/allocation.rs"), Some("page heap"));
    assert_eq!(taken(lock, "/x/crates/freestone/src/central.rs"), Some("central lists"));
    let inlined =
        "try_lock<freestone::thread::life::Registry<freestone_os::linux::Linux>, freestone_os::futex::Futex, 10>";
    assert_eq!(taken(inlined, "/x/crates/freestone/src/thread/life/succession.rs"), Some("registry of heaps"));
    assert_eq!(taken(lock, "/x/crates/freestone/src/thread/gated.rs"), Some("gates"));
    assert_eq!(taken(lock, "/x/crates/freestone/src/api/pressure.rs"), Some("others"));
    assert_eq!(taken("lock_contended", "/x/crates/freestone/src/page/allocation.rs"), None);
    assert_eq!(
        taken("release<(), freestone_os::futex::Futex, 15>", "/x/crates/freestone/src/page/allocation.rs"),
        None
    );
    assert_eq!(lock_of(&[frame("Inbox::push", "/x/crates/base/src/inbox.rs")]), None);
    assert_eq!(lock_of(&[]), None);
}
