//! Which heap a block belongs to.

use crate::api::explicit_heap::Heap;
use crate::api::process::PROCESS;
use crate::thread::large;
use crate::thread::locate::{Place, locate};

/// Whose block an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The address is in no memory that this allocator handed out.
    Nobody,
    /// The process's: a block of `malloc`, or of Rust's global allocator.
    Process,
    /// An explicit heap's, with the handle that [`set_handle`] gave the heap.
    Heap(*mut ()),
}

/// Gives a heap a handle, which [`owner`] returns for its blocks.
pub fn set_handle(heap: &Heap, handle: *mut ()) {
    heap.record().holdings().set_handle(handle);
}

/// Whether the block at `address` is one of `heap`: whether [`owner`] says so, in a time that does not depend on how many heaps there are.
#[must_use]
pub fn is_of(heap: &Heap, address: *const u8) -> bool {
    let (shared, record) = (&PROCESS.shared, heap.record());
    match locate(shared, address.cast_mut()) {
        Place::Small { entry, .. } => entry.generation() == record.gated().heap().generation(),
        Place::Large { page } => large::is_of(shared, page, record.holdings()),
        // Guarded blocks and blocks of no bytes are the process's.
        Place::Guarded | Place::Empty | Place::Wrong(_) => false,
    }
}

/// Whose block the one at `address` is.
///
/// # Complexity
/// Linear in the number of heaps that ever existed at once, if it is a large block or one of an explicit heap.
#[must_use]
pub fn owner(address: *const u8) -> Owner {
    let shared = &PROCESS.shared;
    if !shared.usage.has_had_heaps() {
        return Owner::Nobody;
    }
    let mut heaps = PROCESS.threads.iter_kinds().filter_map(|(_, heap, holdings)| Some((heap, holdings?)));
    let found = match locate(shared, address.cast_mut()) {
        Place::Wrong(_) => return Owner::Nobody,
        Place::Small { entry, .. } if entry.generation().is_explicit() => {
            heaps.find(|(heap, _)| heap.generation() == entry.generation())
        }
        Place::Large { page } => heaps.find(|(_, holdings)| large::is_of(shared, page, holdings)),
        Place::Small { .. } | Place::Guarded | Place::Empty => None,
    };
    // The heap that sampled blocks of the process come from has no handle.
    let handle = found.map(|(_, holdings)| holdings.handle()).filter(|handle| !handle.is_null());
    handle.map_or(Owner::Process, Owner::Heap)
}
