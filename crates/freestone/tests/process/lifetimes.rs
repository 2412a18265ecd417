//! Threads, forks and the background thread: what ends, and what goes on.
use crate::{ALLOCATOR, MIB, alone, await_that};
use freestone::door;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::{fs, ptr, thread};

/// Runs `body` in a forked child, and returns its exit status.
pub(crate) fn in_child(body: impl FnOnce()) -> i32 {
    // SAFETY: the allocator's handlers make the child able to allocate; it uses nothing else of other threads.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the signal ends the child.
        unsafe { libc::alarm(60) };
        let has_panicked = panic::catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: ends the child without its parent's exit handlers.
        unsafe { libc::_exit(i32::from(has_panicked)) };
    }
    let mut status = 0;
    // SAFETY: there is room for the status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// Allocates and frees blocks of all kinds in a new thread, which takes every lock on the way.
fn use_every_lock() {
    thread::spawn(|| {
        let blocks: Vec<_> = (0..2000).map(|n| vec![1_u8; n * 37 % 100_000]).collect();
        assert!(blocks.iter().all(|block| block.iter().all(|&byte| byte == 1)));
        drop(blocks);
        ALLOCATOR.purge();
    })
    .join()
    .unwrap();
}

#[test]
fn a_threads_heap_ends_with_the_thread() {
    alone(&[("BACKGROUND", "off")], || {
        let before = ALLOCATOR.stats().n_threads;
        let (send, receive) = mpsc::channel::<()>();
        let threads: Vec<_> = (0..3).map(|_| thread::spawn(|| drop(vec![1_u8; 100]))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let waiting = thread::spawn(move || receive.recv().is_err());
        await_that(|| ALLOCATOR.stats().n_threads == before + 1);
        drop(send);
        assert!(waiting.join().unwrap());
        assert_eq!(ALLOCATOR.stats().n_threads, before);
    });
}

/// Frees the block it is given and keeps another in its place, until the C library runs no more rounds of destructors.
unsafe extern "C" fn keep_another(block: *mut c_void) {
    let round = ROUNDS.fetch_add(1, Ordering::Relaxed);
    N_HEAPS[round].store(ALLOCATOR.stats().n_threads as usize, Ordering::Relaxed);
    // SAFETY: the value is a block of 100 bytes, and this destructor's.
    assert_eq!(unsafe { block.cast::<u8>().wrapping_add(99).read() }, 7);
    // SAFETY: as above, and the block is not used again.
    unsafe { door::free(block.cast()) };
    LAST.store(block_of_sevens().expose_provenance(), Ordering::Relaxed);
    let large = door::allocate(100_000);
    assert!(!large.is_null());
    // SAFETY: the block is live, and not used again.
    unsafe { door::free(large) };
    let last = ptr::with_exposed_provenance(LAST.load(Ordering::Relaxed));
    // SAFETY: the key was created before the thread that ends here, and takes any value.
    assert_eq!(unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed) as u32, last) }, 0);
}

static KEY: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicUsize = AtomicUsize::new(0);
/// Heaps that were alive in each round of destructors.
static N_HEAPS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// Rounds of destructors so far.
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

fn block_of_sevens() -> *mut u8 {
    let block = door::allocate(100);
    assert!(!block.is_null());
    // SAFETY: the block has 100 bytes.
    unsafe { block.write_bytes(7, 100) };
    block
}

#[test]
fn a_destructor_allocates_and_frees_after_the_threads_heap_has_ended() {
    alone(&[("BACKGROUND", "off")], || {
        let mut key = 0;
        // SAFETY: there is room for the key, and the destructor takes the value.
        assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(keep_another)) }, 0);
        KEY.store(key as usize, Ordering::Relaxed);
        let before = ALLOCATOR.stats().n_threads;
        for _ in 0..3 {
            ROUNDS.store(0, Ordering::Relaxed);
            thread::spawn(move || {
                // SAFETY: the key was created above.
                assert_eq!(unsafe { libc::pthread_setspecific(key, block_of_sevens().cast()) }, 0);
            })
            .join()
            .unwrap();
            assert_eq!(ROUNDS.load(Ordering::Relaxed), 4);
            // All such threads share one heap, which stays.
            assert_eq!(ALLOCATOR.stats().n_threads, before + 1);
        }
        // The thread's own heap ends in the third round, before this destructor's turn.
        let n_heaps = N_HEAPS.each_ref().map(|n| n.load(Ordering::Relaxed) - before as usize);
        assert_eq!(n_heaps, [2, 2, 1, 1]);
        let last = ptr::with_exposed_provenance_mut::<u8>(LAST.load(Ordering::Relaxed));
        // SAFETY: the block that the last round kept is live.
        assert_eq!(unsafe { last.wrapping_add(99).read() }, 7);
        // SAFETY: as above, and the block is not used again.
        unsafe { door::free(last) };
    });
}

#[test]
fn memory_goes_back_while_the_program_makes_no_calls() {
    alone(&[("BACKGROUND", "on"), ("DECAY_MS", "20")], || {
        for _ in 0..2 {
            drop(vec![1_u8; 20 * MIB]);
            await_that(|| ALLOCATOR.stats().dirty == 0);
        }
        assert!(ALLOCATOR.stats().purged >= 40 * MIB as u64);
        // Off and on again.
        let n_with_the_thread = n_tasks();
        assert_eq!(ALLOCATOR.set_option("background", "off"), Ok(()));
        // The kernel lists a thread for a moment after it was joined.
        await_that(|| n_tasks() == n_with_the_thread - 1);
        assert_eq!(ALLOCATOR.set_option("background", "on"), Ok(()));
        drop(vec![1_u8; 20 * MIB]);
        await_that(|| ALLOCATOR.stats().dirty == 0);
    });
}

/// Threads of this process, an emulator's own included.
fn n_tasks() -> usize {
    fs::read_dir("/proc/self/task").expect("a process may read its own folder").count()
}

#[test]
fn parent_and_child_of_a_fork_use_every_lock_and_fork_again() {
    alone(&[], || {
        let kept = vec![7_u8; 100_000];
        use_every_lock();
        for _ in 0..3 {
            let status = in_child(|| {
                assert_eq!(ALLOCATOR.stats().n_threads, 1, "other threads' heaps are the child's no more");
                use_every_lock();
                assert_eq!(in_child(use_every_lock), 0);
                use_every_lock();
                assert!(kept.iter().all(|&byte| byte == 7));
            });
            assert_eq!(status, 0);
            use_every_lock();
        }
    });
}

/// Threads hold any lock at any moment; a fork waits for them, and the child finds all locks free.
#[test]
fn a_child_of_a_process_whose_threads_allocate_finds_every_lock_free() {
    alone(&[], || {
        let is_over = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while is_over.load(Ordering::Relaxed) == 0 {
                        drop((0..50).map(|n| vec![1_u8; n * 4000]).collect::<Vec<_>>());
                    }
                });
            }
            for _ in 0..6 {
                assert_eq!(in_child(use_every_lock), 0);
            }
            is_over.store(1, Ordering::Relaxed);
        });
    });
}

#[test]
fn the_background_thread_works_in_a_child_too() {
    alone(&[("BACKGROUND", "on"), ("DECAY_MS", "20")], || {
        drop(vec![1_u8; 20 * MIB]);
        await_that(|| ALLOCATOR.stats().dirty == 0);
        let status = in_child(|| {
            drop(vec![1_u8; 20 * MIB]);
            await_that(|| ALLOCATOR.stats().dirty == 0);
        });
        assert_eq!(status, 0);
    });
}

#[test]
fn with_a_live_page_the_details_name_each_threads_heap_by_its_number_and_its_threads() {
    let page = std::env::temp_dir().join("freestone-process-%p.live");
    alone(&[("BACKGROUND", "off"), ("LIVE", page.to_str().expect("a path in UTF-8"))], || {
        let details = || ALLOCATOR.with_details(|details| details.json().to_string()).expect("memory for the rows");
        // SAFETY: takes no arguments.
        let thread_id = || unsafe { libc::syscall(libc::SYS_gettid) };
        drop(vec![1_u8; 100]);
        assert!(details().contains(&format!("\"thread_id\":{}", thread_id())), "{}", details());
        let (text, id) = thread::spawn(move || (details(), thread_id())).join().unwrap();
        assert!(text.contains(&format!("\"thread_id\":{id}")), "{text}");
        // The thread of a forked child has a number of its own.
        assert_eq!(in_child(|| assert!(details().contains(&format!("\"thread_id\":{}", thread_id())))), 0);
        let numbers: Vec<_> = text.match_indices("{\"heap\":").map(|(at, _)| &text[at..at + 10]).collect();
        assert!(numbers.len() >= 2 && numbers.iter().all(|number| !number.ends_with(":0")), "{numbers:?}");
        assert!(numbers.iter().enumerate().all(|(at, number)| !numbers[..at].contains(number)), "{numbers:?}");
        let page = std::env::temp_dir().join(format!("freestone-process-{}.live", std::process::id()));
        std::fs::remove_file(page).expect("a page of this test");
    });
}

#[test]
fn a_child_has_the_listener_called_though_a_thread_of_its_parent_was_in_it() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static MAY_RETURN: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn wait_the_first_time(_in_use_bytes: usize, _argument: *mut c_void) {
        if CALLS.fetch_add(1, Ordering::Relaxed) == 0 {
            while !MAY_RETURN.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        }
    }
    alone(&[("LIMIT", "16m"), ("BACKGROUND", "off")], || {
        // SAFETY: any thread may call the function with any argument.
        unsafe { ALLOCATOR.on_pressure(Some(wait_the_first_time), ptr::null_mut()) };
        let presses = thread::spawn(|| door::allocate(20 * MIB).addr());
        await_that(|| CALLS.load(Ordering::Relaxed) == 1);
        let status = in_child(|| {
            assert!(!door::allocate(20 * MIB).is_null());
            assert_eq!(CALLS.load(Ordering::Relaxed), 2);
        });
        MAY_RETURN.store(true, Ordering::Relaxed);
        assert_eq!(status, 0);
        assert_ne!(presses.join().expect("the thread allocates"), 0);
    });
}

/// A block of so many bytes, which are written.
fn written(bytes: usize) -> *mut u8 {
    let block = door::allocate(bytes);
    assert!(!block.is_null());
    // SAFETY: the block has as many bytes.
    unsafe { block.write_bytes(7, bytes) };
    block
}

/// Runs `body` in another thread again and again, and `in_each_child` in children that are forked meanwhile.
fn fork_beside(body: impl Fn() + Sync, n_children: usize, in_each_child: impl Fn()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                body();
            }
        });
        let n_failed = (0..n_children).filter(|_| in_child(&in_each_child) != 0).count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(n_failed, 0, "of {n_children} children");
    });
}

#[test]
fn a_child_takes_over_what_a_thread_of_its_parent_was_giving_back() {
    alone(&[("BACKGROUND", "off")], || {
        let purges = || {
            // SAFETY: the block is live, and not used again.
            unsafe { door::free(written(8 * MIB)) };
            ALLOCATOR.purge();
        };
        fork_beside(purges, 60, || {
            ALLOCATOR.purge();
            assert_eq!(ALLOCATOR.stats().dirty, 0);
        });
    });
}

#[test]
fn a_child_does_not_count_what_a_thread_of_its_parent_was_about_to_leave_to_others() {
    alone(&[("BACKGROUND", "off")], || {
        // Of lengths that do not come back at once, which a thread keeps for itself. Nothing is written: what counts is how often it is done.
        let frees = || {
            for bytes in [MIB / 2, MIB / 2 + 100_000].into_iter().cycle().take(1000) {
                // SAFETY: the block is live, and not used again.
                unsafe { door::free(door::allocate(bytes)) };
            }
        };
        fork_beside(frees, 200, || {
            ALLOCATOR.purge();
            let cached = ALLOCATOR.stats().cached;
            assert!(cached < MIB as u64 / 2, "{cached} bytes, and nobody has any");
        });
    });
}

/// Blocks of 1000 bytes, written, of as many bytes as are asked for together.
fn blocks(bytes: usize) -> Vec<Vec<u8>> {
    (0..bytes / 1000).map(|_| vec![7; 1000]).collect()
}

#[test]
fn a_purge_counts_what_waits_for_idle_threads_and_takes_what_ended_ones_have_left() {
    alone(&[("BACKGROUND", "off"), ("DECAY_MS", "1000000")], || {
        // A thread that is idle.
        let ((gives, takes), (ends, awaits_end)) = (mpsc::channel(), mpsc::channel::<()>());
        let idle = thread::spawn(move || {
            gives.send(blocks(8 * MIB)).expect("the test waits");
            let _ = awaits_end.recv();
        });
        let theirs = takes.recv().expect("the thread sends");
        ALLOCATOR.purge();
        drop(theirs);
        let purged = ALLOCATOR.purge();
        assert!(purged >= 7 * MIB, "{purged} bytes of 8 MiB of an idle thread");
        drop(ends);
        idle.join().expect("the thread ends");
        // Threads that have ended, and left their heaps to the next.
        let left = thread::spawn(|| blocks(2 * MIB)).join().expect("the thread ends");
        ALLOCATOR.purge();
        let held = ALLOCATOR.stats().committed;
        drop(thread::spawn(|| blocks(MIB)).join().expect("the thread ends"));
        drop(left);
        ALLOCATOR.purge();
        let now = ALLOCATOR.stats().committed;
        assert!(now + 2 * MIB as u64 <= held, "{now} bytes are held, and were {held} with 2 MiB more");
    });
}
