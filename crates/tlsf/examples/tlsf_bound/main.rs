//! The bounded calls as functions of their own, whose machine code `cargo xtask tlsf-bound` reads. With a number as argument, runs that
//! many of them and counts their instructions.
#![allow(unsafe_code, reason = "symbols of their own, and the heap's own interface")]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod counting;

use freestone_tlsf::{Standard, Tlsf};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

#[inline(never)]
// SAFETY: the name is this program's alone.
#[unsafe(no_mangle)]
extern "C" fn tlsf_bound_allocate(heap: &mut Tlsf, bytes: usize, align: usize) -> Option<NonNull<u8>> {
    heap.allocate(bytes, align).ok()
}

#[inline(never)]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn tlsf_bound_deallocate(heap: &mut Tlsf, block: NonNull<u8>) -> bool {
    // SAFETY: a block of this heap, given back once.
    unsafe { heap.deallocate(block) }.is_ok()
}

/// A heap of at most one region: what most heaps are.
type OneRegion = Tlsf<'static, Standard, 35, 32, 1>;

#[inline(never)]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn tlsf_bound_deallocate_of_one_region(heap: &mut OneRegion, block: NonNull<u8>) -> bool {
    // SAFETY: a block of this heap, given back once.
    unsafe { heap.deallocate(block) }.is_ok()
}

#[inline(never)]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn tlsf_bound_deallocate_unchecked(heap: &mut Tlsf, block: NonNull<u8>) {
    // SAFETY: a block of this heap, given back once.
    unsafe { heap.deallocate_unchecked(block) };
}

/// All other calls, so that their machine code is here to be searched for panics.
#[inline(never)]
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn tlsf_bound_everything(heap: &mut Tlsf<'static>, block: NonNull<u8>, bytes: usize, align: usize) -> usize {
    // SAFETY: a block of this heap; no code uses the memory behind its region.
    let moved = unsafe { heap.reallocate(block, bytes, align) }.unwrap_or(block);
    let refused = [
        // SAFETY: as above.
        unsafe { heap.grow_region(block, bytes) },
        // SAFETY: as above.
        unsafe { heap.add_region_at(block, bytes) },
        heap.remove_region(block),
    ];
    let zeroed = heap.allocate_zeroed(bytes, align);
    // SAFETY: as above.
    unsafe { heap.usable_size(moved) }.unwrap_or_default()
        + refused.iter().filter(|result| result.is_err()).count()
        + heap.stats().used_blocks
        + heap.leaks().count()
        + usize::from(heap.check().is_ok() && zeroed.is_ok())
}

fn main() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if let Some(operations) = std::env::args().nth(1) {
        return counting::main(operations.parse().expect("a number of calls"));
    }
    let memory = vec![MaybeUninit::<u128>::uninit(); 4096].leak();
    let start = NonNull::from(&mut *memory).cast();
    let mut heap = Tlsf::new();
    // SAFETY: the memory is this heap's for ever.
    unsafe { heap.add_region_at(start, size_of_val(memory)) }.expect("a valid region");
    let block = tlsf_bound_allocate(&mut heap, black_box(100), black_box(16)).expect("a block");
    assert!(tlsf_bound_deallocate(&mut heap, black_box(block)));
    let block = tlsf_bound_allocate(&mut heap, black_box(100), black_box(16)).expect("a block");
    tlsf_bound_deallocate_unchecked(&mut heap, black_box(block));
    let block = tlsf_bound_allocate(&mut heap, black_box(100), black_box(16)).expect("a block");
    let memory = vec![MaybeUninit::<u128>::uninit(); 4096].leak();
    let mut one = OneRegion::with_policy();
    // SAFETY: as above.
    unsafe { one.add_region_at(NonNull::from(&mut *memory).cast(), size_of_val(memory)) }.expect("a valid region");
    let only = one.allocate(black_box(100), 16).expect("a block");
    assert!(tlsf_bound_deallocate_of_one_region(&mut one, black_box(only)));
    assert!(tlsf_bound_everything(&mut heap, block, black_box(100), black_box(64)) > 100);
}
