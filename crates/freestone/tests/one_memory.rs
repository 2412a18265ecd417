//! In WebAssembly memory never shrinks: what is asked for again and again must not take more of it each time.
#![cfg(target_family = "wasm")]

use core::arch::wasm32::memory_size;

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

#[test]
fn statistics_with_details_take_no_more_memory_each_time() {
    let rows = || ALLOCATOR.with_details(|details| (details.classes.len(), details.heaps.len())).expect("memory");
    let first = rows();
    let before = memory_size::<0>();
    for _ in 0..1000 {
        assert_eq!(rows(), first);
    }
    assert_eq!(memory_size::<0>(), before, "in pages of 64 KiB");
}
