//! Any stream through the C functions of `malloc`: each asks and gives back in turn. The functions are the whole process's, so the
//! fuzzer itself runs on them; so this target is built without a sanitizer, which would bring its own.
//!
//! # Safety
//! Blocks are touched for the bytes that were asked for, and freed once.
#![no_main]

#[path = "../../crates/capi/src/malloc.rs"]
mod malloc;

use freestone_os::{Errno, process};
use freestone_testkit::ops::{Stream, Subject, play};
use libfuzzer_sys::fuzz_target;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// A number that is no errno of the allocator's.
const UNTOUCHED: Errno = Errno(77);

/// The alignment every function gives.
const USUAL_ALIGN: usize = 16;

struct C {
    turn: usize,
}

/// A block, or a refusal with the right errno.
fn answer(block: *mut c_void, bytes: usize, align: usize) -> Result<NonNull<u8>, Errno> {
    let Some(start) = NonNull::new(block.cast::<u8>()) else {
        assert_eq!(process::errno(), Errno::NOMEM, "{bytes} bytes aligned to {align} refused");
        return Err(Errno::NOMEM);
    };
    // SAFETY: the block was just handed out.
    assert!(unsafe { malloc::malloc_usable_size(block) } >= bytes);
    Ok(start)
}

impl Subject for C {
    type Error = Errno;

    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Errno> {
        self.turn += 1;
        process::set_errno(UNTOUCHED);
        if align > USUAL_ALIGN {
            let mut block = ptr::null_mut();
            match self.turn % 3 {
                0 => block = malloc::aligned_alloc(align, bytes),
                1 => block = malloc::memalign(align, bytes),
                _ => {
                    // SAFETY: a place for the answer.
                    let code = unsafe { malloc::posix_memalign(&mut block, align, bytes) };
                    assert_eq!(process::errno(), UNTOUCHED);
                    process::set_errno(Errno(code));
                }
            }
            return answer(block, bytes, align);
        }
        match self.turn % 4 {
            0 => {
                let block = answer(malloc::calloc(bytes.div_ceil(8), 8), bytes, align)?;
                // SAFETY: in use, and that long.
                let contents = unsafe { std::slice::from_raw_parts(block.as_ptr(), bytes) };
                assert!(contents.iter().all(|&byte| byte == 0), "calloc is zero");
                Ok(block)
            }
            // SAFETY: null is no block.
            1 if bytes > 0 => answer(unsafe { malloc::reallocarray(ptr::null_mut(), 1, bytes) }, bytes, align),
            _ => answer(malloc::malloc(bytes), bytes, align),
        }
    }

    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        _: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, Errno> {
        if bytes == 0 || align > USUAL_ALIGN {
            // The one frees, the other promises no alignment.
            return Err(Errno::INVAL);
        }
        process::set_errno(UNTOUCHED);
        // SAFETY: the same obligation.
        answer(unsafe { malloc::realloc(block.as_ptr().cast(), bytes) }, bytes, align)
    }

    unsafe fn deallocate(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<(), Errno> {
        self.turn += 1;
        process::set_errno(UNTOUCHED);
        let block = block.as_ptr().cast();
        match self.turn % 2 {
            // SAFETY: the block is live, and is not used again (this function's contract).
            0 => unsafe { malloc::free(block) },
            // SAFETY: as above, and it was allocated with this alignment and size.
            _ if align > USUAL_ALIGN => unsafe { malloc::free_aligned_sized(block, align, bytes) },
            // SAFETY: as above, and it was allocated with this size.
            _ => unsafe { malloc::free_sized(block, bytes) },
        }
        assert_eq!(process::errno(), UNTOUCHED, "free keeps errno");
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(play(&Stream::from_bytes(0, bytes), C { turn: 0 }, usize::MAX).err(), None);
});
