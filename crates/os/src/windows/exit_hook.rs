//! A function that is called in each thread that ends: a callback of thread-local storage.
#![allow(unsafe_code)]
//!
//! The loader calls those of an executable or library in the order of their sections' names, with its lock held. The name of this one comes after that
//! of Rust's standard library, whose destructors of thread-local values may free and allocate, and after that of the C runtime.
//!
//! It also calls them when it loads the library, which is pinned then, as on Linux (`pin`): the background thread runs the library's code, and the address range
//! and blocks outlive a `FreeLibrary`. Pinning it later, from an allocation, would wait for the loader's lock, whose owner may wait for ours.
//!
//! # Safety
//! The loader calls the callback as its documentation says. The hook is a function, or null. Pinning takes an address in this library and a place for a handle.

use core::ffi::c_void;
use core::mem;
use core::ptr::{self, NonNull};
use freestone_base::sync::{AtomicPtr, Ordering};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetModuleHandleExW(flags: u32, address: *const c_void, object: *mut *mut c_void) -> i32;
}

/// A function that is called in each thread that ends.
type Hook = unsafe extern "C" fn(*mut c_void);

/// The hook of the object that contains the allocator; null before there is one.
static HOOK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// What the loader calls at the start and the end of each thread and of the process.
#[used]
#[unsafe(link_section = ".CRT$XLY")]
static CALLBACK: unsafe extern "system" fn(*mut c_void, u32, *mut c_void) = on_event;

unsafe extern "system" fn on_event(_object: *mut c_void, reason: u32, _reserved: *mut c_void) {
    const PROCESS_ATTACH: u32 = 1;
    const THREAD_DETACH: u32 = 3;
    if reason == PROCESS_ATTACH {
        pin();
    }
    let hook = HOOK.load(Ordering::Acquire);
    if reason != THREAD_DETACH || hook.is_null() {
        return;
    }
    // SAFETY: the pointer is that of the function which `ExitHook::set` stored.
    let hook = unsafe { mem::transmute::<*mut c_void, Hook>(hook) };
    // SAFETY: the hook takes any value, and this is the thread that ends.
    unsafe { hook(ptr::null_mut()) };
}

/// Keeps the executable or library that contains the allocator loaded until the process ends.
fn pin() {
    const PIN: u32 = 0x1;
    const FROM_ADDRESS: u32 = 0x4;
    let mut object = ptr::null_mut();
    // SAFETY: the address is in the object that is asked for, and there is a place for its handle, which a pinned object's user need not give back.
    unsafe { GetModuleHandleExW(PIN | FROM_ADDRESS, (&raw const HOOK).cast(), &raw mut object) };
}

/// A function that is called in each thread that ends, whether it has a value or not. There is one for the whole object.
#[derive(Debug)]
pub struct ExitHook(());

impl ExitHook {
    /// No function.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }

    /// Has `hook` called in each thread that ends, from now on.
    pub fn set(&self, hook: unsafe extern "C" fn(*mut c_void)) {
        core::hint::black_box(&CALLBACK);
        HOOK.store(hook as *mut c_void, Ordering::Release);
    }

    /// Whether there is a function.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !HOOK.load(Ordering::Relaxed).is_null()
    }

    /// Whether the function may put off its work: it is called once.
    #[must_use]
    pub fn may_put_off(&self, _n: u32) -> bool {
        false
    }

    /// Nothing: the function is called without it.
    pub fn set_value(&self, _value: NonNull<c_void>) -> bool {
        true
    }
}

impl Default for ExitHook {
    fn default() -> Self {
        Self::new()
    }
}
