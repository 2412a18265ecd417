extern crate std;
use super::*;

/// No program under test defines options, and every glibc exports the functions or none of them.
#[test]
#[cfg_attr(miri, ignore = "links by assembler")]
fn what_is_not_defined_is_empty_and_the_c_library_has_all_or_nothing() {
    assert_eq!(linked_options(), b"");
    let table = addresses();
    let has = [table.lock.is_some(), table.unlock.is_some(), table.reset.is_some()];
    assert_eq!(has, [cfg!(target_env = "gnu"); 3]);
    assert!(!has_other_malloc(), "this program has no `malloc` of ours");
}

#[test]
#[cfg_attr(miri, ignore = "links by assembler")]
fn the_list_of_streams_is_locked_and_unlocked_in_pairs() {
    lock_streams();
    lock_streams();
    unlock_streams();
    unlock_streams();
    // Another thread would wait for ever if one of the two were left.
    std::thread::spawn(|| {
        lock_streams();
        unlock_streams();
    })
    .join()
    .unwrap();
}
