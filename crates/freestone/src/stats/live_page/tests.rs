use super::*;
use std::boxed::Box;
use std::thread;

fn page() -> Box<Words> {
    let words: Box<Words> = Box::new([const { AtomicU64::new(0) }; PAGE_WORDS]);
    begin(&words, 4711, 100);
    words
}

/// Figures in which each number follows from `from`, and no two are the same.
fn figures(from: u64) -> (Stats, [ClassStats; CLASS_ROWS], [HeapStats; HEAP_ROWS + 1]) {
    let mut next = (from..).step_by(1);
    let mut take = || next.next().unwrap();
    let stats = stats_of_words(core::array::from_fn(|_| take()));
    let classes = core::array::from_fn(|_| class_of_words(core::array::from_fn(|_| take())));
    let heaps = core::array::from_fn(|_| HeapStats {
        kind: HeapKind::Explicit,
        ..heap_of_words(core::array::from_fn(|_| take()))
    });
    (stats, classes, heaps)
}

#[test]
fn what_is_written_is_read() {
    let words = page();
    assert_eq!((process_of(&words), read(&words).err()), (Ok(4711), Some(Unreadable::NoState)));
    for (number, from) in [(1, 1000), (2, 5000), (3, 9000)] {
        let (stats, classes, heaps) = figures(from);
        write(&words, from, &Details { stats, classes: &classes, heaps: &heaps[..5] });
        let state = read(&words).unwrap();
        assert_eq!((state.process, state.number, state.at_ms, state.interval_ms), (4711, number, from, 100));
        assert_eq!((state.stats, state.classes, state.heaps()), (stats, classes, &heaps[..5]));
        assert_eq!(state.n_heaps, 5);
    }
}

#[test]
fn heaps_that_have_no_room_are_counted() {
    let words = page();
    let (stats, classes, heaps) = figures(1);
    write(&words, 1, &Details { stats, classes: &classes, heaps: &heaps });
    let state = read(&words).unwrap();
    assert_eq!((state.heaps(), state.n_heaps), (&heaps[..HEAP_ROWS], HEAP_ROWS as u64 + 1));
}

#[test]
fn other_files_and_other_versions_are_told_apart() {
    let words = page();
    words[VERSION_AT].store(VERSION + 1, Ordering::Relaxed);
    assert_eq!(read(&words).err(), Some(Unreadable::OtherVersion(VERSION + 1)));
    words[MAGIC_AT].store(0, Ordering::Relaxed);
    assert_eq!(read(&words).err(), Some(Unreadable::NoPage));
}

/// A process that is killed in the middle of writing leaves the state before.
#[test]
fn a_state_that_was_not_finished_is_not_read() {
    let words = page();
    let (stats, classes, heaps) = figures(1);
    write(&words, 7, &Details { stats, classes: &classes, heaps: &heaps });
    words[half_of(2)..half_of(2) + HALF].iter().for_each(|word| word.store(99, Ordering::Relaxed));
    let state = read(&words).unwrap();
    assert_eq!((state.number, state.at_ms, state.stats), (1, 7, stats));
}

/// Every state has one number in all its words, so a torn one would show.
#[test]
fn a_reader_sees_whole_states_while_they_are_written() {
    let words = page();
    let write_one = |number: u64| {
        let stats = stats_of_words([number; STATS]);
        let classes = [class_of_words([number; CLASS]); CLASS_ROWS];
        let heaps = [HeapStats { kind: HeapKind::Thread, ..heap_of_words([number; HEAP]) }; HEAP_ROWS];
        write(&words, number, &Details { stats, classes: &classes, heaps: &heaps });
    };
    write_one(1);
    thread::scope(|scope| {
        scope.spawn(|| (2..if cfg!(miri) { 20 } else { 5000 }).for_each(write_one));
        let mut last = 0;
        for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
            let Ok(state) = read(&words) else { continue };
            let number = state.number;
            assert!(number >= last, "states go forward");
            assert_eq!((state.at_ms, state.stats), (number, stats_of_words([number; STATS])));
            assert!(state.classes.iter().all(|row| *row == class_of_words([number; CLASS])));
            assert!(state.heaps().iter().all(|row| row.number == number as u32 && row.n_handovers == number));
            last = number;
        }
    });
}
