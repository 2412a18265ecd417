//! TLSF heaps for C: allocation in bounded time from memory that the caller provides.
#![allow(unsafe_code)]
//!
//! ```text
//!  memory                                          memory + bytes
//!  | Control: the heap, its last error | region ............... |
//!  ^ the handle
//! ```
//!
//! The control structure lies at the start of the caller's memory, so nothing is allocated anywhere. No region overlaps it. A call that is refused
//! returns null or a code, and changes nothing but the last error.
//!
//! # Safety
//! Every function's contract begins with that of a **live handle**: `freestone_tlsf_new` returned it, `freestone_tlsf_delete` has not
//! ended it, no other thread is in a call on it, and the memory of its regions is the heap's alone. `Control::of` turns such a handle
//! into a reference, and relies on this contract alone.

pub mod inspect;
pub mod refusal;

use crate::error::{FreestoneError, OK};
use crate::message;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_base::align;
use freestone_tlsf::{Error, GRANULE, LEAST_REGION_BYTES, Tlsf};

/// Bytes at the start of a heap's memory that its control structure takes.
const CONTROL_BYTES: usize = align::up(size_of::<Control>(), GRANULE);
const _: () = assert!(CONTROL_BYTES <= 9728, "the header's FREESTONE_TLSF_CONTROL_BYTES");

/// What a `freestone_tlsf_t` points to.
#[repr(align(16))]
pub struct Control {
    heap: Tlsf<'static>,
    last_error: FreestoneError,
}

impl Control {
    const fn new() -> Self {
        Self { heap: Tlsf::new(), last_error: FreestoneError::NONE }
    }

    /// The heap behind a handle.
    ///
    /// # Safety
    /// - `handle` is live (see the module header), for as long as the reference is used.
    unsafe fn of<'a>(handle: *mut Self) -> &'a mut Self {
        // SAFETY: `freestone_tlsf_new` wrote a `Control` where a live handle points, and no other call is using it.
        unsafe { &mut *handle }
    }

    /// Refuses the `bytes` at `start` as a region if they overlap this structure, which lies in the memory that the caller has.
    fn check_outside(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Error> {
        let (address, own) = (start.addr().get(), ptr::from_ref(self).addr());
        if address < own + CONTROL_BYTES && own < address.saturating_add(bytes) {
            return Err(Error::RegionOverlaps { address, other: own });
        }
        Ok(())
    }

    /// Stores why a call was refused. Returns the code.
    fn refuse(&mut self, error: Error) -> c_int {
        self.last_error = refusal::to_c(error);
        self.last_error.code
    }

    /// The code of a result; a refusal is stored.
    fn code(&mut self, result: Result<(), Error>) -> c_int {
        result.map_or_else(|error| self.refuse(error), |()| OK)
    }

    /// The block; or null, with the refusal stored.
    fn block(&mut self, result: Result<NonNull<u8>, Error>) -> *mut c_void {
        match result {
            Ok(block) => block.as_ptr().cast(),
            Err(error) => {
                self.refuse(error);
                ptr::null_mut()
            }
        }
    }
}

/// Creates a heap in the `bytes` at `memory`. Null, and the reason in `*error`, with nothing written, if they are misaligned, too few or too many.
///
/// # Safety
/// - The `bytes` at `memory` are the heap's alone until it is destroyed.
/// - `error` is null or points to a writable `freestone_error_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_new(
    memory: *mut c_void,
    bytes: usize,
    error: *mut FreestoneError,
) -> *mut Control {
    // SAFETY: the memory is the heap's to use (this function's contract).
    match unsafe { create(memory.cast(), bytes) } {
        Ok(handle) => handle.as_ptr(),
        Err(refused) => {
            // SAFETY: `error` is null or writable (this function's contract).
            unsafe { refusal::to_c(refused).store(error) };
            ptr::null_mut()
        }
    }
}

/// Writes the control structure at the start of the memory and makes the rest its first region.
///
/// # Safety
/// - The `bytes` at `memory` are the heap's alone until it is destroyed.
unsafe fn create(memory: *mut u8, bytes: usize) -> Result<NonNull<Control>, Error> {
    let misaligned = Error::RegionMisaligned { address: memory.addr(), bytes };
    let start = NonNull::new(memory).ok_or(misaligned)?;
    if !align::is_aligned(memory.addr(), GRANULE) || !align::is_aligned(bytes, GRANULE) {
        return Err(misaligned);
    }
    let least = CONTROL_BYTES + LEAST_REGION_BYTES;
    if bytes < least {
        return Err(Error::RegionTooSmall { bytes, least });
    }
    // As the heap itself would, once the control structure is written.
    let (bytes, most) = (bytes - CONTROL_BYTES, <Tlsf<'static>>::MOST_REGION_BYTES);
    if bytes > most || memory.addr().checked_add(CONTROL_BYTES + bytes).is_none() {
        return Err(Error::RegionTooLarge { bytes, most });
    }
    let place: NonNull<Control> = start.cast();
    // SAFETY: the memory is aligned to 16, has room for the structure (both checked above), and is ours to write.
    unsafe { place.write(Control::new()) };
    // SAFETY: a `Control` was written there, and no other code has its address yet.
    let control = unsafe { Control::of(place.as_ptr()) };
    // SAFETY: the memory has more than `CONTROL_BYTES` bytes.
    let region = unsafe { start.byte_add(CONTROL_BYTES) };
    // SAFETY: the region is what lies behind the control structure, and is the heap's alone.
    unsafe { control.heap.add_region_at(region, bytes) }?;
    Ok(place)
}

/// Ends a heap: its memory is the caller's again, that of blocks still in use included. Null does nothing.
///
/// # Safety
/// - `heap` is null or a live handle, and no block of it is used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_delete(heap: *mut Control) {
    if !heap.is_null() {
        // SAFETY: the handle is live (this function's contract). The heap that stays behind is empty, and refuses what is still asked.
        unsafe { heap.write(Control::new()) };
    }
}

/// Adds a region. Returns a code.
///
/// # Safety
/// - `heap` is a live handle; the `bytes` at `start` are the heap's alone from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_add_region(heap: *mut Control, start: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    let Some(start) = NonNull::new(start.cast()) else {
        return control.refuse(Error::RegionMisaligned { address: 0, bytes });
    };
    let result = control.check_outside(start, bytes).and_then(|()| {
        // SAFETY: the region is the heap's alone from now on (this function's contract).
        unsafe { control.heap.add_region_at(start, bytes) }
    });
    control.code(result)
}

/// The start of a region: for the handle itself, that of the region behind the control structure.
fn region_start(heap: *mut Control, start: *mut c_void) -> Option<NonNull<u8>> {
    let start = start.cast::<u8>();
    NonNull::new(if start.addr() == heap.addr() { start.wrapping_byte_add(CONTROL_BYTES) } else { start })
}

/// Lengthens a region by the `bytes` behind it. Returns a code.
///
/// # Safety
/// - `heap` is a live handle; the `bytes` behind the region are the heap's alone from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_grow_region(heap: *mut Control, start: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    let Some(start) = region_start(heap, start) else { return control.refuse(Error::NoSuchRegion { address: 0 }) };
    let longer = control.heap.bytes_of_region(start).map(|old| old.saturating_add(bytes));
    let result = longer.and_then(|longer| control.check_outside(start, longer)).and_then(|()| {
        // SAFETY: what lies behind the region is the heap's alone from now on (this function's contract).
        unsafe { control.heap.grow_region(start, bytes) }
    });
    control.code(result)
}

/// Removes a region in which no block is in use. Returns a code.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_remove_region(heap: *mut Control, start: *mut c_void) -> c_int {
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    let Some(start) = region_start(heap, start) else { return control.refuse(Error::NoSuchRegion { address: 0 }) };
    let result = control.heap.remove_region(start);
    control.code(result)
}

/// Allocates `size` bytes aligned to 16. Null, with the error stored, if there are none.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_malloc(heap: *mut Control, size: usize) -> *mut c_void {
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    match control.heap.allocate(size, GRANULE) {
        Ok(block) => block.as_ptr().cast(),
        refused => control.block(refused),
    }
}

/// Allocates `size` bytes aligned to `align`. Null, with the error stored, if there are none.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_aligned_alloc(heap: *mut Control, align: usize, size: usize) -> *mut c_void {
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    let result = control.heap.allocate(size, align);
    control.block(result)
}

/// Allocates `count * size` zero bytes aligned to 16. Null, with the error stored, if there are none or the product overflows.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_calloc(heap: *mut Control, count: usize, size: usize) -> *mut c_void {
    // A product that overflows is more than any region holds.
    let bytes = count.saturating_mul(size);
    // SAFETY: this function's contract.
    let block = unsafe { freestone_tlsf_malloc(heap, bytes) };
    if !block.is_null() {
        // SAFETY: the block was allocated with that many bytes just now, and no other code has it.
        unsafe { block.write_bytes(0, bytes) };
    }
    block
}

/// Resizes a block to `size` bytes aligned to 16. If that is refused, null, with the error stored and the block unchanged. A null block allocates.
///
/// # Safety
/// - As for [`freestone_tlsf_aligned_realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_realloc(heap: *mut Control, block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: this function's contract is that of `freestone_tlsf_aligned_realloc`.
    unsafe { freestone_tlsf_aligned_realloc(heap, block, GRANULE, size) }
}

/// As [`freestone_tlsf_realloc`], at a multiple of `align`.
///
/// # Safety
/// - `heap` is a live handle; `block` is null or an address that no other code uses if the call succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_aligned_realloc(
    heap: *mut Control,
    block: *mut c_void,
    align: usize,
    size: usize,
) -> *mut c_void {
    let Some(block) = NonNull::new(block.cast()) else {
        // SAFETY: the handle is live.
        return unsafe { freestone_tlsf_aligned_alloc(heap, align, size) };
    };
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    // SAFETY: no other code uses the block (this function's contract); the heap refuses what is no block of its own.
    let result = unsafe { control.heap.reallocate(block, size, align) };
    control.block(result)
}

/// Frees a block; null does nothing. Returns a code.
///
/// # Safety
/// - `heap` is a live handle; no code uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_free(heap: *mut Control, block: *mut c_void) -> c_int {
    let Some(block) = NonNull::new(block.cast()) else { return OK };
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    // SAFETY: no code uses the block (this function's contract); the heap refuses what is no block of its own.
    match unsafe { control.heap.deallocate(block) } {
        Ok(()) => OK,
        Err(error) => control.refuse(error),
    }
}

/// Writes the message of an error of a TLSF heap, as `freestone_error_text` does for every error.
///
/// # Safety
/// - `error` points to a `freestone_error_t`.
/// - `buffer` points to `size` writable bytes; it may be null if `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_error_text(
    error: *const FreestoneError,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    // SAFETY: this function's contract is that of `message::write`.
    unsafe { message::write(error, (buffer, size), refusal::describe) }
}
