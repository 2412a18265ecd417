//! TLSF heaps for C: bounded-time allocation from memory that the caller gives.
#![allow(unsafe_code)]
//!
//! ```text
//!  memory                                    memory + bytes
//!  | Control (heap, last fault) | region .......... |
//!  ^ the handle
//! ```
//!
//! The control structure lies at the start of the memory itself, so that nothing is allocated anywhere. Calls that fail change
//! nothing but the last fault. One thread at a time may use a heap.
//!
//! # Safety
//! Handles are those `freestone_tlsf_create` gave out and `freestone_tlsf_destroy` has not taken; the memory of each region is the
//! heap's alone meanwhile. C callers promise both.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_base::align;
use freestone_os::{Errno, process};
use freestone_tlsf::{Error, GRANULE, LEAST_REGION_BYTES, Tlsf};

/// Bytes at the start of a heap's memory that its control structure takes.
const CONTROL_BYTES: usize = align::up(size_of::<Control>(), GRANULE);
const _: () = assert!(CONTROL_BYTES <= 9728, "the header's FREESTONE_TLSF_CONTROL_BYTES");

/// What a `freestone_tlsf_t` points to.
#[repr(align(16))]
pub struct Control {
    heap: Tlsf<'static>,
    fault: Fault,
}

/// `freestone_tlsf_fault_t`: why a call was refused, and which block it speaks of.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Fault {
    error: c_int,
    address: usize,
    block: usize,
    bytes: usize,
}

impl Fault {
    const NONE: Self = Self { error: 0, address: 0, block: 0, bytes: 0 };

    fn of(error: Error) -> Self {
        let (error, address, block, bytes) = match error {
            Error::RegionMisaligned { address, bytes } => (1, address, 0, bytes),
            Error::RegionTooSmall { bytes, .. } => (2, 0, 0, bytes),
            Error::RegionTooLarge { bytes, .. } => (3, 0, 0, bytes),
            Error::RegionOverlaps { address, other } => (4, address, other, 0),
            Error::TooManyRegions { .. } => (5, 0, 0, 0),
            Error::NoSuchRegion { address } => (6, address, 0, 0),
            Error::RegionInUse { block, bytes } => (7, 0, block, bytes),
            Error::ZeroSize => (8, 0, 0, 0),
            Error::BadAlignment { align } => (9, 0, 0, align),
            Error::TooLarge { bytes, .. } => (10, 0, 0, bytes),
            Error::Exhausted { bytes, .. } => (11, 0, 0, bytes),
            Error::Foreign { address } => (12, address, 0, 0),
            Error::Interior { address, block, bytes } => (13, address, block, bytes),
            Error::DoubleFree { address, free_block, bytes } => (14, address, free_block, bytes),
            Error::Overrun { block, bytes } => (15, 0, block, bytes),
            Error::Damaged { block } => (16, 0, block, 0),
        };
        Self { error, address, block, bytes }
    }
}

/// The sentences, in the order of the codes.
const MESSAGES: [&core::ffi::CStr; 17] = [
    c"no error",
    c"the region does not start at a multiple of 16, or its length is not one",
    c"the region is too small: give more, in steps of 16",
    c"the region is larger than the heap's lists can name: split it",
    c"the region overlaps one that the heap already has",
    c"the heap has as many regions as it can",
    c"no region of the heap starts at this address",
    c"the region still has a block in use: free it first",
    c"a block of 0 bytes was asked for: ask for at least 1",
    c"the alignment is not a power of two",
    c"more was asked for than any block of the heap could hold",
    c"no free block is large enough: free some, or add a region",
    c"the address is in no region of the heap: it came from elsewhere",
    c"the address is inside a block: pass the block's start",
    c"the block is free already",
    c"the block was written past its end",
    c"the block's bookkeeping was overwritten: look for a write after free",
];

impl Control {
    /// Remembers a refusal; its code, 0 for none.
    fn code(&mut self, result: Result<(), Error>) -> c_int {
        match result {
            Ok(()) => 0,
            Err(error) => self.refuse(error),
        }
    }

    fn refuse(&mut self, error: Error) -> c_int {
        self.fault = Fault::of(error);
        self.fault.error
    }

    /// The block, or null after remembering the refusal and saying `ENOMEM` or `EINVAL`.
    fn block(&mut self, result: Result<NonNull<u8>, Error>) -> *mut c_void {
        result.map_or_else(
            |error| {
                self.refuse(error);
                let short = matches!(error, Error::Exhausted { .. } | Error::TooLarge { .. });
                process::set_errno(if short { Errno::NOMEM } else { Errno::INVAL });
                ptr::null_mut()
            },
            |block| block.as_ptr().cast(),
        )
    }
}

/// What `freestone_tlsf_free` and its like say of a null pointer where a block is needed.
const NO_BLOCK: Error = Error::Foreign { address: 0 };

/// Makes a heap over `memory`, and writes its handle to `heap`. Returns 0 or an error's code.
///
/// # Safety
/// - See the module header; `heap` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_create(heap: *mut *mut Control, memory: *mut c_void, bytes: usize) -> c_int {
    let refuse = |error| Fault::of(error).error;
    let (Some(start), Some(heap)) = (NonNull::new(memory.cast::<u8>()), NonNull::new(heap)) else {
        return refuse(Error::RegionMisaligned { address: 0, bytes });
    };
    let address = start.addr().get();
    if !align::is_aligned(address, GRANULE) || !align::is_aligned(bytes, GRANULE) {
        return refuse(Error::RegionMisaligned { address, bytes });
    }
    if bytes < CONTROL_BYTES + LEAST_REGION_BYTES {
        return refuse(Error::RegionTooSmall { bytes, least: CONTROL_BYTES + LEAST_REGION_BYTES });
    }
    // SAFETY: the memory is the caller's to give; the control structure and the region lie in it side by side.
    unsafe {
        let place: NonNull<Control> = start.cast();
        place.write(Control { heap: Tlsf::new(), fault: Fault::NONE });
        let control = &mut *place.as_ptr();
        if let Err(error) = control.heap.add_region_at(start.byte_add(CONTROL_BYTES), bytes - CONTROL_BYTES) {
            return refuse(error);
        }
        heap.write(place.as_ptr());
    }
    0
}

/// Ends a heap: its memory is the caller's again, live blocks included. Null is nothing.
///
/// # Safety
/// - See the module header; nobody uses a block of the heap any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_destroy(heap: *mut Control) {
    if let Some(heap) = NonNull::new(heap) {
        // SAFETY: a live handle. An empty heap stays behind, which refuses what is still asked of it.
        unsafe { heap.write(Control { heap: Tlsf::new(), fault: Fault::NONE }) };
    }
}

/// Adds a region. Returns 0 or an error's code.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_add_region(heap: *mut Control, start: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let control = &mut *heap;
        let Some(start) = NonNull::new(start.cast()) else {
            return control.refuse(Error::RegionMisaligned { address: 0, bytes });
        };
        let result = control.heap.add_region_at(start, bytes);
        control.code(result)
    }
}

/// The start of the region that `freestone_tlsf_create` made, for a `start` that is the handle; else `start` itself.
fn region_start(heap: *mut Control, start: *mut c_void) -> Option<NonNull<u8>> {
    let start = start.cast::<u8>();
    NonNull::new(if start.addr() == heap.addr() { start.wrapping_byte_add(CONTROL_BYTES) } else { start })
}

/// Lengthens a region by the bytes behind it. Returns 0 or an error's code.
///
/// # Safety
/// - See the module header; the bytes behind the region are the caller's to give.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_append(heap: *mut Control, start: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let control = &mut *heap;
        let Some(start) = region_start(heap, start) else { return control.refuse(Error::NoSuchRegion { address: 0 }) };
        let result = control.heap.append(start, bytes);
        control.code(result)
    }
}

/// Takes a region that holds no used block away. Returns 0 or an error's code.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_remove_region(heap: *mut Control, start: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let control = unsafe { &mut *heap };
    let Some(start) = region_start(heap, start) else { return control.refuse(Error::NoSuchRegion { address: 0 }) };
    let result = control.heap.remove_region(start);
    control.code(result)
}

/// A block of `size` bytes, aligned to 16; null and the fault if there is none.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_malloc(heap: *mut Control, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let control = unsafe { &mut *heap };
    match control.heap.allocate(size, GRANULE) {
        Ok(block) => block.as_ptr().cast(),
        refused => control.block(refused),
    }
}

/// A block of `size` bytes, aligned to `align`; null and the fault if there is none.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_aligned_alloc(heap: *mut Control, align: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let control = unsafe { &mut *heap };
    let result = control.heap.allocate(size, align);
    control.block(result)
}

/// Makes a block hold `size` bytes at a multiple of `align`; null and the fault if that cannot be: the block is as it was.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_realloc(
    heap: *mut Control,
    block: *mut c_void,
    align: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        let control = &mut *heap;
        let result = match NonNull::new(block.cast()) {
            Some(block) => control.heap.reallocate(block, size, align),
            None => control.heap.allocate(size, align),
        };
        control.block(result)
    }
}

/// Takes a block back; null is nothing. Returns 0 or an error's code.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_free(heap: *mut Control, block: *mut c_void) -> c_int {
    let Some(block) = NonNull::new(block.cast()) else { return 0 };
    // SAFETY: the caller's promise.
    unsafe {
        let control = &mut *heap;
        match control.heap.deallocate(block) {
            Ok(()) => 0,
            Err(error) => control.refuse(error),
        }
    }
}

/// Bytes of a block that may be used; 0 and the fault if it is none.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_usable_size(heap: *mut Control, block: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let control = &mut *heap;
        let result = NonNull::new(block.cast()).map_or(Err(NO_BLOCK), |block| control.heap.usable_size(block));
        result.unwrap_or_else(|error| {
            control.refuse(error);
            0
        })
    }
}

/// Checks every invariant. Returns 0 or the code of the first one broken.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_check(heap: *mut Control) -> c_int {
    // SAFETY: the caller's promise.
    let control = unsafe { &mut *heap };
    let result = control.heap.check();
    control.code(result)
}

/// Why the last call that was refused was.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_last_fault(heap: *const Control) -> Fault {
    // SAFETY: the caller's promise.
    unsafe { (*heap).fault }
}

/// The sentence of an error's code.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_tlsf_error_message(error: c_int) -> *const c_char {
    let message = usize::try_from(error).ok().and_then(|error| MESSAGES.get(error));
    message.map_or(c"no error of a TLSF heap".as_ptr(), |message| message.as_ptr())
}

/// `freestone_tlsf_stats_t`.
#[repr(C)]
pub struct TlsfStats {
    size: usize,
    numbers: [u64; 8],
}

/// Fills `stats` as far as its `size` goes. Returns 0, or -1 and `EINVAL` if that cannot be.
///
/// # Safety
/// - See the module header; `stats` is null or can be written for the `size` it states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_stats(heap: *const Control, stats: *mut TlsfStats) -> c_int {
    // SAFETY: the caller's promise.
    let asked = if stats.is_null() { 0 } else { unsafe { (*stats).size } };
    if asked < size_of::<usize>() {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    // SAFETY: the caller's promise.
    let now = unsafe { (*heap).heap.stats() };
    let filled = asked.min(size_of::<TlsfStats>());
    let numbers = [
        now.region_bytes,
        now.used_blocks,
        now.used_bytes,
        now.free_blocks,
        now.free_bytes,
        now.largest_free_bytes,
        now.overhead_bytes,
        now.fragmentation_permille,
    ];
    let full = TlsfStats { size: filled, numbers: numbers.map(|number| number as u64) };
    // SAFETY: as many bytes as both have.
    unsafe { stats.cast::<u8>().copy_from_nonoverlapping((&raw const full).cast(), filled) };
    0
}

/// `freestone_tlsf_block_t`.
#[repr(C)]
pub struct BlockSeen {
    address: *mut c_void,
    usable_bytes: usize,
    block_bytes: usize,
    used: c_int,
}

/// Shows every block to `visit`, in address order within a region, until that returns something other than 0; returns that.
///
/// # Safety
/// - See the module header; `visit` may be called with `context`, and leaves the heap alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_walk(
    heap: *const Control,
    visit: Option<unsafe extern "C" fn(*const BlockSeen, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    let Some(visit) = visit else { return 0 };
    // SAFETY: the caller's promise.
    for block in unsafe { (*heap).heap.blocks() } {
        let seen = BlockSeen {
            address: ptr::without_provenance_mut(block.address),
            usable_bytes: block.usable_bytes,
            block_bytes: block.block_bytes,
            used: c_int::from(block.used),
        };
        // SAFETY: the caller's promise.
        let answer = unsafe { visit(&raw const seen, context) };
        if answer != 0 {
            return answer;
        }
    }
    0
}
