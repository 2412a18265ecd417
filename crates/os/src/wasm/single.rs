//! One thread, which has always been there: no other starts, and none ends.

use core::ffi::c_void;
use core::ptr::NonNull;

/// There are no other threads.
pub(crate) mod threads {
    #![allow(unsafe_code)]
    use crate::Errno;
    use crate::start_function::Main;
    use core::ffi::CStr;
    use core::mem::MaybeUninit;

    /// Of no thread.
    pub(crate) struct Handle;

    /// Starts nothing.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn start(_handle: &mut MaybeUninit<Handle>, _main: Main, _stack_bytes: usize) -> Result<(), Errno> {
        Err(Errno::INVAL)
    }

    /// Waits for nothing.
    ///
    /// # Safety
    /// - None: there is no such thread.
    pub(crate) unsafe fn join(_: Handle) {}

    /// Nothing: no thread is started.
    pub fn count_thread_locals() {}

    /// Nothing: the thread has no name.
    pub fn set_name(_name: &CStr) {}

    /// Nothing: the thread is the first.
    pub fn schedule_like_the_first() {}
}

/// A function that is called in each thread that ends: the only one never does.
#[derive(Debug)]
pub struct ExitHook(());

impl ExitHook {
    /// No function.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }

    /// Nothing: no thread ends.
    pub fn set(&self, _hook: unsafe extern "C" fn(*mut c_void)) {}

    /// Whether there is a function, as far as a thread that does not end can tell.
    #[must_use]
    pub fn is_set(&self) -> bool {
        true
    }

    /// Whether the function may put off its work: it is never called.
    #[must_use]
    pub fn may_put_off(&self, _n: u32) -> bool {
        false
    }

    /// Nothing.
    pub fn set_value(&self, _value: NonNull<c_void>) -> bool {
        true
    }
}

impl Default for ExitHook {
    fn default() -> Self {
        Self::new()
    }
}
