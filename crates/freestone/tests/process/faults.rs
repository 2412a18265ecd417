//! Accesses to memory that the allocator has closed: who handles the fault, and what is reported.
use crate::lifetimes::in_child;
use crate::{ALLOCATOR, alone};
use freestone::door;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{hint, mem, ptr};

/// The handler of SIGSEGV.
fn handler() -> usize {
    // SAFETY: a `sigaction` is a structure of numbers and pointers; zeros are a valid one.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: there is room for the structure, and nothing is installed.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), &mut action) }, 0);
    action.sa_sigaction
}

/// Takes any handler of SIGSEGV away.
fn reset_handler() {
    // SAFETY: the default needs no function.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
}

/// What a report calls a write: not every processor tells it from a read.
const WRITE: &str = if cfg!(target_arch = "x86_64") { "write" } else { "access" };

/// The signal that ends a child which writes to an address.
fn signal_of_write(address: *mut u8) -> i32 {
    // SAFETY: the address is closed or the child's own; the access ends the child at most.
    let status = in_child(|| unsafe { address.write_volatile(1) });
    if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 }
}

/// Writes behind guarded blocks, each in a child, until one is reported. Sampling begins with some allocation of the first few.
fn write_behind_guarded_blocks() {
    let signals = (0..200).map(|_| {
        let block = door::allocate(4096);
        let signal = signal_of_write(block.wrapping_add(4096));
        // SAFETY: the block is live, and not used again.
        unsafe { door::free(block) };
        signal
    });
    assert!(signals.into_iter().any(|signal| signal == libc::SIGABRT));
}

#[test]
fn a_write_behind_the_end_of_a_guarded_block_is_reported_and_ends_the_process() {
    let said = alone(&[("BACKGROUND", "off")], || {
        assert_eq!(ALLOCATOR.set_option("guard_sample", "1"), Ok(()));
        write_behind_guarded_blocks();
    });
    if let Some(said) = said {
        assert!(said.contains(&format!("{WRITE} behind the end of a block: 0x")), "{said}");
    }
}

/// Rust's runtime looks for a handler before its first allocation, which installs the allocator's, and installs its own afterwards.
const GUARDS_FROM_THE_START: [(&str, &str); 2] = [("GUARD_SAMPLE", "1"), ("BACKGROUND", "off")];

#[test]
fn it_is_reported_with_the_option_in_the_environment_too() {
    let said = alone(&GUARDS_FROM_THE_START, || {
        write_behind_guarded_blocks();
    });
    if let Some(said) = said {
        assert!(said.contains(&format!("{WRITE} behind the end of a block: 0x")), "{said}");
    }
}

#[test]
fn an_overflow_of_the_stack_is_reported_by_rusts_runtime_as_without_guards() {
    fn deeper(n: u64) -> u64 {
        if hint::black_box(n) == u64::MAX { n } else { deeper(n + 1) ^ n }
    }
    let said = alone(&GUARDS_FROM_THE_START, || {
        let status = in_child(|| {
            hint::black_box(deeper(0));
        });
        assert_eq!(libc::WTERMSIG(status), libc::SIGABRT);
    });
    if let Some(said) = said {
        assert!(said.contains("has overflowed its stack"), "{said}");
    }
}

#[test]
fn when_all_guarded_blocks_are_in_use_that_is_said_once() {
    let said = alone(&[("BACKGROUND", "off")], || {
        assert_eq!(ALLOCATOR.set_option("guard_sample", "1"), Ok(()));
        let blocks: Vec<_> = (0..2000).map(|_| door::allocate(100)).collect();
        // SAFETY: the blocks are live, and not used again.
        blocks.into_iter().for_each(|block| unsafe { door::free(block) });
    });
    if let Some(said) = said {
        assert_eq!(said.matches("all 256 guarded blocks are in use").count(), 1, "{said}");
    }
}

#[test]
fn faults_are_left_to_the_program_unless_something_can_be_reported() {
    for (harden, sandbox) in [("default", "off"), ("checks", "off"), ("full", "on")] {
        alone(&[("HARDEN", harden), ("SANDBOX", sandbox), ("BACKGROUND", "off")], || {
            drop(vec![1_u8; 500_000]);
            reset_handler();
            assert_eq!(ALLOCATOR.set_option("decay_ms", "500"), Ok(()));
            assert_eq!(handler(), libc::SIG_DFL);
        });
    }
}

#[test]
fn an_option_that_guards_blocks_installs_the_handler() {
    alone(&[("BACKGROUND", "off")], || {
        reset_handler();
        assert_eq!(ALLOCATOR.set_option("guard_sample", "100"), Ok(()));
        assert_ne!(handler(), libc::SIG_DFL);
    });
}

#[test]
fn a_signal_that_the_program_ignores_is_ignored_if_it_was_sent_and_ends_the_process_if_it_is_a_fault() {
    alone(&[("BACKGROUND", "off")], || {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: nothing in this process needs a handler of the signal.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        assert_eq!(ALLOCATOR.set_option("guard_sample", "100"), Ok(()));
        assert_ne!(handler(), libc::SIG_IGN);
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGSEGV] {
            // SAFETY: the call sends this process a signal, which it ignores.
            let status = in_child(|| assert_eq!(unsafe { libc::kill(std::process::id() as i32, signal) }, 0));
            assert_eq!(status, 0, "signal {signal}");
        }
        assert_eq!(signal_of_write(ptr::without_provenance_mut(64)), libc::SIGSEGV);
    });
}

/// Has this thread's handlers run on a stack of this many bytes, before which is a page without access.
fn use_signal_stack_of(bytes: usize) {
    let page = 1 << 16;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses the place.
    let start = unsafe { libc::mmap(ptr::null_mut(), page + bytes, access, flags, -1, 0) };
    // SAFETY: the page is the first of the mapping that was made above.
    assert_eq!(unsafe { libc::mprotect(start, page, libc::PROT_NONE) }, 0);
    let stack = libc::stack_t { ss_sp: start.wrapping_byte_add(page), ss_flags: 0, ss_size: bytes };
    // SAFETY: the structure describes memory that is never unmapped.
    assert_eq!(unsafe { libc::sigaltstack(&stack, ptr::null_mut()) }, 0);
}

#[test]
fn a_fault_of_the_handler_ends_the_process() {
    alone(&[("BACKGROUND", "off")], || {
        assert_eq!(ALLOCATOR.set_option("guard_sample", "1"), Ok(()));
        // SAFETY: the call takes any key.
        let least = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let signal = (0..200).find_map(|_| {
            let block = door::allocate(4096);
            let status = in_child(|| {
                use_signal_stack_of(least.max(libc::MINSIGSTKSZ) + 1024);
                // SAFETY: the child ends after 10 seconds at the latest.
                unsafe { libc::alarm(10) };
                // SAFETY: the address is closed, or in memory of the heap; the access ends the child at most.
                unsafe { block.wrapping_add(4096).write_volatile(1) };
            });
            // SAFETY: the block is live, and not used again.
            unsafe { door::free(block) };
            libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
        });
        assert_eq!(signal, Some(libc::SIGSEGV));
    });
}

/// A handler that the program had before, with the flag by which it may be interrupted by itself.
#[test]
fn the_programs_handler_has_its_signals_blocked_as_it_asked_for() {
    static BLOCKED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn look(_: libc::c_int) {
        // SAFETY: a `sigset_t` is an array of integers; zeros are an empty set.
        let mut mask = unsafe { mem::zeroed() };
        // SAFETY: the call writes to the set.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask) };
        let signals = [libc::SIGSEGV, libc::SIGBUS, libc::SIGUSR1];
        // SAFETY: the set is a valid one.
        let bits = signals.iter().enumerate().map(|(at, &signal)| unsafe { libc::sigismember(&mask, signal) } << at);
        BLOCKED.store(bits.sum::<i32>() as u32, Ordering::Relaxed);
    }
    let cases = [
        (0, None, 0b001),
        (0, Some(libc::SIGUSR1), 0b101),
        (libc::SA_NODEFER, Some(libc::SIGUSR1), 0b100),
        (libc::SA_NODEFER, Some(libc::SIGSEGV), 0b001),
    ];
    let run = |flags, masked: Option<i32>| {
        // SAFETY: a `sigaction` is a structure of numbers and pointers; zeros are a valid one.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = look as *const () as usize;
        action.sa_flags = flags;
        // SAFETY: the set is a valid one.
        masked.iter().for_each(|&signal| assert_eq!(unsafe { libc::sigaddset(&mut action.sa_mask, signal) }, 0));
        // SAFETY: the handler only looks at the mask.
        assert_eq!(unsafe { libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()) }, 0);
        assert_eq!(ALLOCATOR.set_option("guard_sample", "100"), Ok(()));
        assert_ne!(handler(), look as *const () as usize);
        // SAFETY: the handler returns.
        assert_eq!(unsafe { libc::raise(libc::SIGSEGV) }, 0);
        BLOCKED.load(Ordering::Relaxed)
    };
    alone(&[("BACKGROUND", "off")], || {
        for (flags, masked, blocked) in cases {
            // The handler is installed once in a process.
            let status = in_child(|| assert_eq!(run(flags, masked), blocked));
            assert_eq!(status, 0, "{flags:#x} {masked:?}");
        }
    });
}

#[test]
fn a_handler_that_is_to_be_called_once_is_called_once_and_then_the_signals_default_happens() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn note(signal: libc::c_int) {
        if CALLED.fetch_or(1 << signal, Ordering::Relaxed) & 1 << signal != 0 {
            std::process::abort();
        }
    }
    // What a process sends, and a fault, which comes again when the handler returns.
    let send = |signal| {
        // SAFETY: the call sends this thread a signal.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    };
    let fault = || {
        // SAFETY: there is nothing at the address; the access ends the child.
        unsafe { ptr::without_provenance_mut::<u8>(64).write_volatile(1) };
    };
    alone(&[("BACKGROUND", "off")], || {
        // SAFETY: a `sigaction` is a structure of numbers and pointers; zeros are a valid one.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_RESETHAND;
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: the handler notes the call, or ends the child.
            assert_eq!(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) }, 0);
        }
        assert_eq!(ALLOCATOR.set_option("guard_sample", "100"), Ok(()));
        assert_ne!(handler(), action.sa_sigaction);
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            assert_eq!(in_child(|| send(signal)), 0, "signal {signal}");
            let status = in_child(|| (send(signal), send(signal)).0);
            assert_eq!(libc::WTERMSIG(status), signal);
        }
        // Each signal has its handler.
        assert_eq!(in_child(|| (send(libc::SIGSEGV), send(libc::SIGBUS)).0), 0);
        assert_eq!(libc::WTERMSIG(in_child(fault)), libc::SIGSEGV);
    });
}
