use super::*;

#[test]
fn the_planned_call_fails_once_or_from_then_on() {
    let fake = Fake::new(4096, 1 << 20);
    let window = fake.propose_window(1 << 20, 0).unwrap();
    // SAFETY: ranges inside the proposed window, used by this test alone.
    unsafe {
        fake.plan(Some(Failure { nth_call: 1, errno: Errno::NOMEM, for_good: false }));
        assert_eq!(fake.commit(window, 4096, false), Ok(()));
        assert_eq!(fake.commit(window.add(4096), 4096, false), Err(Errno::NOMEM));
        assert_eq!(fake.commit(window.add(4096), 4096, false), Ok(()));
        fake.plan(Some(Failure { nth_call: 0, errno: Errno::AGAIN, for_good: true }));
        assert_eq!(fake.purge(window, 4096), Err(Errno::AGAIN));
        assert_eq!(fake.purge(window, 4096), Err(Errno::AGAIN));
        assert_eq!(fake.n_calls(), 2);
    }
}

#[test]
fn purged_memory_is_zero_unless_told_to_keep_it() {
    let fake = Fake::new(16384, 1 << 20);
    let window = fake.propose_window(1 << 20, 0).unwrap();
    // SAFETY: as above.
    unsafe {
        fake.commit(window, 16384, false).unwrap();
        window.write(5);
        fake.purge(window, 16384).unwrap();
        assert_eq!(window.read(), 0);
        fake.keep_contents_on_purge();
        window.write(5);
        fake.purge(window, 16384).unwrap();
        assert_eq!((window.read(), fake.purge_zeroes()), (5, false));
    }
    assert_eq!(fake.committed_bytes(), 16384);
    assert_eq!(fake.purged_bytes(), 2 * 16384);
}
