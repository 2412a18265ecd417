//! Explicit heaps, for C.
#![allow(unsafe_code)]
//!
//! A `freestone_heap_t` is opaque: a [`Handle`] in a block of the process's own allocator. A call that is refused returns null or a code, and changes
//! nothing but the heap's last error and, where it returns null, `errno`.
//!
//! # Safety
//! A **live handle** is one that `freestone_heap_new` or `freestone_heap_new_with` returned and `freestone_heap_delete` has not ended.

use crate::control::text;
use crate::failure::{Failure, errno, refused};
use core::alloc::Layout;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_bounded::error::{FreestoneError, OK};
use freestone_bounded::last_error::LastError;
use freestone_bounded::sized::{self, SizedStruct};
use freestone_os::process;
use heap::Heap;
use heap::door::{self, Owner};
use heap::options::Harden;

/// What a `freestone_heap_t` points to.
pub struct Handle {
    heap: Heap,
    last_error: LastError,
}

impl Handle {
    /// The heap.
    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Stores why a call was refused. Returns the code.
    #[inline(never)]
    fn refuse(&self, why: Failure) -> c_int {
        self.last_error.refuse(why.to_c())
    }

    /// The block; or null, with the reason stored and `errno` set.
    fn block(&self, block: Option<NonNull<u8>>, why: Failure) -> *mut c_void {
        block.map_or_else(
            || {
                process::set_errno(errno(self.refuse(why)));
                ptr::null_mut()
            },
            |block| block.as_ptr().cast(),
        )
    }

    /// Whether the block is this heap's.
    fn owns(&self, block: *const c_void) -> bool {
        door::is_of(&self.heap, block.cast())
    }
}

/// `freestone_heap_shape_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreestoneHeapShape {
    size: usize,
    harden: *const c_char,
    limit: usize,
}

// SAFETY: it is `repr(C)`, starts with a `usize`, and consists of an integer and a pointer, which may be null.
unsafe impl SizedStruct for FreestoneHeapShape {
    const LEAST: usize = size_of::<Self>();
}

/// Creates a heap without a limit, hardened as the process is. Null and `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_heap_new() -> *mut Handle {
    match create(Harden::Off) {
        Ok(handle) => handle.as_ptr(),
        // SAFETY: nothing is stored through null.
        Err(why) => unsafe { refused(ptr::null_mut(), why.to_c()) },
    }
}

/// Creates a heap of that shape. Null, `errno` and the reason in `*error` if that is refused.
///
/// # Safety
/// - `shape` is null, which is refused, or points to as many readable bytes as its member `size` says; its member `harden` is null or a C string.
/// - `error` is null or points to a writable `freestone_error_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_new_with(
    shape: *const FreestoneHeapShape,
    error: *mut FreestoneError,
) -> *mut Handle {
    // SAFETY: the shape has as many bytes as it says (this function's contract).
    let made = unsafe { sized::read(shape) }.and_then(|shape| {
        let level = match shape.harden.is_null() {
            true => Some(Harden::Off),
            // SAFETY: the member is a C string (this function's contract), and outlives this call.
            false => unsafe { text(shape.harden) }.and_then(|level| level.parse().ok()),
        };
        let handle = create(level.ok_or(Failure::NoSuchLevel.to_c())?).map_err(Failure::to_c)?;
        // SAFETY: the handle was just made.
        match unsafe { freestone_heap_set_limit(handle.as_ptr(), shape.limit) } {
            OK => Ok(handle),
            _ => {
                // SAFETY: as above.
                let why = unsafe { freestone_heap_last_error(handle.as_ptr()) };
                // SAFETY: no block was allocated from the heap.
                unsafe { freestone_heap_delete(handle.as_ptr()) };
                Err(why)
            }
        }
    });
    match made {
        Ok(handle) => handle.as_ptr(),
        // SAFETY: `error` is null or writable (this function's contract).
        Err(why) => unsafe { refused(error, why) },
    }
}

fn create(level: Harden) -> Result<NonNull<Handle>, Failure> {
    let none = Failure::NoMemory { bytes: size_of::<Handle>() };
    // SAFETY: what `Heap::hardened` demands of the heap's end, the contract of `freestone_heap_delete` demands of its callers.
    let heap = unsafe { Heap::hardened(level) }.ok_or(none)?;
    let place = NonNull::new(door::allocate(size_of::<Handle>()).cast::<Handle>()).ok_or(none)?;
    door::set_handle(&heap, place.as_ptr().cast());
    // SAFETY: the block was just allocated: large enough, and aligned to 16.
    unsafe { place.write(Handle { heap, last_error: LastError::new() }) };
    Ok(place)
}

/// Limits `heap` to `bytes`, in whole pages of 64 KiB; 0 removes the limit. Returns a code.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_set_limit(heap: *mut Handle, bytes: usize) -> c_int {
    // SAFETY: the handle is live.
    let handle = unsafe { &*heap };
    match handle.heap.set_limit((bytes != 0).then_some(bytes)) {
        Ok(()) => OK,
        Err(_) => {
            let now = handle.heap.stats();
            handle.refuse(Failure::BadLimit { bytes, has: (now.spans + now.large) as usize })
        }
    }
}

/// Ends a heap and every block of it at once; null does nothing.
///
/// # Safety
/// - `heap` is null or a live handle; no code uses a block of the heap any more, and no `free` of one is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_delete(heap: *mut Handle) {
    if heap.is_null() {
        return;
    }
    // SAFETY: the handle is live, so a handle was written there; this call ends it.
    unsafe { heap.drop_in_place() };
    // SAFETY: `create` allocated the block, and what was in it has ended.
    unsafe { door::free(heap.cast()) };
}

/// Allocates `size` bytes of `heap`, aligned to 16. Null, with the error stored and `ENOMEM`, when memory runs out.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_malloc(heap: *mut Handle, size: usize) -> *mut c_void {
    // SAFETY: this function's contract is that of `freestone_heap_aligned_alloc`.
    unsafe { freestone_heap_aligned_alloc(heap, 1, size) }
}

/// Allocates `count * size` zero bytes of `heap`. Null, with the error stored and `ENOMEM`, when memory runs out or the product overflows.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_calloc(heap: *mut Handle, count: usize, size: usize) -> *mut c_void {
    // SAFETY: the handle is live.
    let handle = unsafe { &*heap };
    let bytes = count.saturating_mul(size);
    let block = Layout::from_size_align(bytes, 1).ok().and_then(|layout| handle.heap.allocate_zeroed(layout));
    handle.block(block, Failure::NoMemory { bytes })
}

/// Allocates `size` bytes of `heap`, aligned to `align`. Null, with the error stored, and `EINVAL` if that is not a power of two, `ENOMEM` when memory
/// runs out.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_aligned_alloc(heap: *mut Handle, align: usize, size: usize) -> *mut c_void {
    // SAFETY: the handle is live.
    let handle = unsafe { &*heap };
    if !align.is_power_of_two() {
        return handle.block(None, Failure::BadAlignment { align });
    }
    let block = Layout::from_size_align(size, align).ok().and_then(|layout| handle.heap.allocate(layout));
    handle.block(block, Failure::NoMemory { bytes: size })
}

/// Resizes a block of `heap` to `size` bytes, as `realloc` does. A null block allocates; size 0 frees.
///
/// # Safety
/// - `heap` is a live handle; `block` is null or a live block, and is not used again unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_realloc(heap: *mut Handle, block: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else {
        // SAFETY: the handle is live.
        return unsafe { freestone_heap_malloc(heap, size) };
    };
    if size == 0 {
        // SAFETY: the block is live, and is not used again (this function's contract).
        unsafe { door::free(old.as_ptr()) };
        return ptr::null_mut();
    }
    // SAFETY: the handle is live.
    let handle = unsafe { &*heap };
    // SAFETY: the block is live.
    let Some(usable) = (unsafe { door::try_usable_size(old.as_ptr()) }) else {
        // The pointer is invalid. That was reported, and the option `misuse` says to continue.
        return handle.block(None, Failure::Foreign { address: block.addr() });
    };
    // SAFETY: the block is live, has `usable` bytes, and is not used again if it moves (this function's contract).
    let resize = |layout| unsafe { handle.heap.reallocate(old, layout, size) };
    let moved = Layout::from_size_align(usable, 1).ok().and_then(resize);
    handle.block(moved, Failure::NoMemory { bytes: size })
}

/// Frees a block of `heap`; refuses one of another heap. Returns a code; null does nothing.
///
/// # Safety
/// - `heap` is a live handle; `block` is null or a live block that no code uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_free(heap: *mut Handle, block: *mut c_void) -> c_int {
    // SAFETY: the handle is live.
    let handle = unsafe { &*heap };
    let Some(live) = NonNull::new(block.cast()) else { return OK };
    if !handle.owns(block) {
        return handle.refuse(Failure::Foreign { address: block.addr() });
    }
    // SAFETY: a live block that no code uses any more (this function's contract).
    unsafe { handle.heap.deallocate(live) };
    OK
}

/// Bytes of a block that may be used; 0 if it is null or not a block of `heap`.
///
/// # Safety
/// - `heap` is a live handle; `block` is null or a live block of any heap, or an address that the library has not handed out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_usable_size(heap: *const Handle, block: *const c_void) -> usize {
    // SAFETY: the handle is live.
    if block.is_null() || !unsafe { &*heap }.owns(block) {
        return 0;
    }
    // SAFETY: the block is live: it is in memory that the heap handed out, and the caller says that it was not freed.
    unsafe { door::usable_size(block.cast_mut().cast()) }
}

/// The error of the last call on the heap that was refused; all members are zero if none was.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_last_error(heap: *const Handle) -> FreestoneError {
    // SAFETY: the handle is live.
    unsafe { &*heap }.last_error.get()
}

/// Stores the explicit heap of a block in `*heap`, null for a block of `malloc`. Returns a code.
///
/// # Safety
/// - `heap` points to a writable pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_owner(block: *const c_void, heap: *mut *mut Handle) -> c_int {
    let owner = match door::owner(block.cast()) {
        Owner::Nobody => return Failure::Foreign { address: block.addr() }.code(),
        Owner::Process => ptr::null_mut(),
        Owner::Heap(handle) => handle.cast(),
    };
    // SAFETY: `heap` points to a writable pointer (this function's contract).
    unsafe { heap.write(owner) };
    OK
}
