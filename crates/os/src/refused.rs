//! For tests: a thread whose system calls of one number the kernel refuses.
#![allow(unsafe_code)]
//!
//! # Safety
//! A filter is data that the kernel copies and checks.

extern crate std;

use std::thread;

/// Runs `test` in a thread for which the system call `number` fails with `errno`. Where no filters can be installed, `test` is not run.
pub(crate) fn with_refused(number: libc::c_long, errno: libc::c_int, test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if refuse(number, errno) {
                test();
            } else {
                std::println!("skipped: no filters can be installed here");
            }
        });
        thread.join().expect("the test passes");
    });
}

/// Whether the kernel refuses the call from now on, to this thread.
fn refuse(number: libc::c_long, errno: libc::c_int) -> bool {
    let load_number = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let is_the_call = libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: number as u32 };
    let answer = |k| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k };
    let refusal = answer(libc::SECCOMP_RET_ERRNO | errno as u32);
    let mut filter = [load_number, is_the_call, refusal, answer(libc::SECCOMP_RET_ALLOW)];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the call takes numbers only.
    let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
    // SAFETY: the program and its filter are locals, which the kernel copies.
    is_bound && unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) } == 0
}
