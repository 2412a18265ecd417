//! How a workload ends when the allocator fails: a message on stderr and an exit status. It never panics, because a panic allocates.

use std::ffi::CStr;

/// Exit status of a workload whose blocks lost their contents.
pub(crate) const CORRUPT_EXIT: i32 = 3;

/// Exit status of a workload that was refused memory.
pub(crate) const EXHAUSTED_EXIT: i32 = 4;

/// Exit status of a workload that lacks a library.
const LACKING_EXIT: i32 = 5;

/// Ends the process: the allocator refused `size` bytes.
#[cold]
pub(crate) fn exhausted(size: usize) -> ! {
    eprintln!(
        "workload: the allocator refused {size} bytes; give the machine or the container more memory, or lower a parameter"
    );
    std::process::exit(EXHAUSTED_EXIT)
}

/// Ends the process: no library has the function `name`, and `library` cannot be loaded.
#[cold]
pub(crate) fn lacks(name: &CStr, library: &CStr) -> ! {
    eprintln!(
        "workload: no library of this process has the function {}: install the C++ library, {}, or leave the parameter 'operators' out",
        name.to_string_lossy(),
        library.to_string_lossy()
    );
    std::process::exit(LACKING_EXIT)
}

/// Ends the process: the heap called `name`, which has a fixed region, refused `size` bytes.
#[cold]
pub(crate) fn heap_exhausted(name: &str, size: usize) -> ! {
    eprintln!("workload: {name} refused {size} bytes; its region is full: lower a parameter");
    std::process::exit(EXHAUSTED_EXIT)
}

/// Ends the process: a block of `size` bytes at `address` did not hold `expected` at both ends.
#[cold]
pub(crate) fn corrupt(size: usize, address: usize, expected: u64, (first, last): (u64, u64)) -> ! {
    eprintln!(
        "workload: a block of {size} bytes at {address:#x} lost its contents: wrote {expected:#x}, found {first:#x} at its start and \
         {last:#x} at its end. The allocator handed out memory that was in use"
    );
    std::process::exit(CORRUPT_EXIT)
}

/// Ends the process: a check other than that of a stamp failed. `what` says which.
#[cold]
pub(crate) fn broken(what: &str) -> ! {
    eprintln!("workload: {what}. The allocator broke its contract");
    std::process::exit(CORRUPT_EXIT)
}
