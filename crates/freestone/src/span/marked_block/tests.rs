#![allow(unsafe_code)]
use super::*;
use crate::span::family::Family;

/// Room for a block of 64 bytes.
#[repr(align(16))]
struct Room([u8; 64]);

/// The number of the family of the tests' blocks.
const FAMILY: u32 = Family::C as u32;
const LIVE: State = State::Live(Family::C);

fn secret(erases: bool) -> Secret {
    let secret = Secret::new();
    secret.draw(|| 0x0123_4567_89ab_cdef);
    if erases {
        secret.begin_erasing();
    }
    secret
}

fn block(room: &mut Room, erases: bool) -> MarkedBlock {
    // SAFETY: the block is the test's.
    unsafe { MarkedBlock::at(room.0.as_mut_ptr(), 64, &secret(erases)) }
}

/// A block that was handed out for so many bytes.
fn live(room: &mut Room, size: usize, erases: bool) -> MarkedBlock {
    let block = block(room, erases);
    block.begin((size, Fields::of(Trailer { state: LIVE, size, align_log2: 3 })), true);
    block
}

/// Sizes that a program may ask for in a block of 64 bytes.
fn sizes() -> impl Iterator<Item = usize> {
    (0..=60).step_by(if cfg!(miri) { 7 } else { 1 })
}

fn fields(block: &MarkedBlock) -> Fields {
    Fields::of(block.trailer().expect("it has one"))
}

/// Calls `then` while the byte at an offset has another value.
fn with_wrong_byte(block: &MarkedBlock, at: usize, then: impl FnOnce()) {
    let byte = block.start().wrapping_add(at);
    // SAFETY: the byte is one of the test's block.
    let before = unsafe { byte.read() };
    // SAFETY: as above.
    unsafe { byte.write(before ^ 0x55) };
    then();
    // SAFETY: as above.
    unsafe { byte.write(before) };
}

#[test]
fn a_block_is_whole_until_a_byte_behind_what_was_asked_for_is_written() {
    for (size, erases) in sizes().flat_map(|size| [(size, false), (size, true)]) {
        let mut room = Room([0; 64]);
        let block = live(&mut room, size, erases);
        assert_eq!(block.if_whole(Family::C as u32), Some(fields(&block)));
        assert_eq!(
            (block.if_whole(Family::Rust as u32), block.if_whole(0)),
            (None, None),
            "of another family, of none"
        );
        assert_eq!(block.if_unused(), None);
        assert!(block.is_tail_whole());
        let canary = canary::range(size, 60);
        let reaches = canary.end == 60 && 60 - size <= canary::MOST_BYTES;
        for at in 0..60 {
            with_wrong_byte(&block, at, || {
                let is_canary = canary.contains(&at);
                assert_eq!(block.if_whole(Family::C as u32).is_none(), is_canary, "{at} behind {size}");
                assert_eq!(block.canary_damage(size), is_canary.then_some(at));
                let is_late = is_canary && reaches && at >= 52;
                assert_eq!(block.late_damage(&block.trailer().expect("it has one")), is_late.then_some(at));
                assert_eq!(block.is_tail_whole(), !is_late, "{at} behind {size}");
            });
        }
    }
}

#[test]
fn a_freed_block_is_unused_until_a_byte_that_was_filled_is_written() {
    for size in sizes() {
        let mut room = Room([0; 64]);
        let block = live(&mut room, size, false);
        block.end((fields(&block), FAMILY), true);
        assert!(block.is_tail_whole() && block.is_untouched());
        assert_eq!((block.if_unused(), block.freed_damage(size, true, 4096)), (Some(false), None), "{size}");
        let (filled, canary) = (size.max(fill::LEAST_BYTES), canary::range(size, 60).end);
        for at in 0..60 {
            with_wrong_byte(&block, at, || {
                assert_eq!(block.if_unused().is_some(), at >= filled, "{at} of {size}");
                assert_eq!(block.freed_damage(size, true, 4096), (at < canary.max(filled)).then_some(at));
                assert_eq!(block.is_untouched(), at >= canary.max(filled));
            });
        }
    }
}

#[test]
fn all_of_a_freed_block_is_zero_at_full_and_every_byte_is_looked_at() {
    for size in sizes() {
        let mut room = Room([0x5a; 64]);
        let block = live(&mut room, size, true);
        // SAFETY: the bytes are the program's.
        unsafe { block.start().write_bytes(0x77, size) };
        block.end((fields(&block), FAMILY), true);
        assert_eq!((block.if_unused(), block.freed_damage(size, true, 4096)), (Some(false), None), "{size}");
        assert_eq!(block.late_damage(&block.trailer().expect("it has one")), None);
        assert!(block.is_tail_whole() && block.is_untouched() && block.slice(0..60).iter().all(|byte| *byte == 0));
        for at in 0..60 {
            with_wrong_byte(&block, at, || {
                assert_eq!((block.if_unused(), block.freed_damage(size, true, 4096)), (None, Some(at)));
                assert!(!block.is_untouched());
            });
        }
    }
}

/// The owner of the span may look at the canary's last bytes meanwhile.
#[test]
fn a_block_that_another_heap_frees_keeps_its_canary_until_it_comes_home() {
    for size in sizes() {
        let mut room = Room([0x5a; 64]);
        let block = live(&mut room, size, true);
        block.end((fields(&block), FAMILY), false);
        assert_eq!((block.canary_damage(size), block.freed_damage(size, false, 4096)), (None, None));
        block.fill_head(size);
        assert_eq!(block.if_unused(), Some(false), "{size}");
    }
}

#[test]
fn the_head_of_a_free_block_is_restored_to_what_it_was() {
    for (size, erases) in [0, 5, 16, 40].into_iter().flat_map(|size| [(size, false), (size, true)]) {
        let mut room = Room([0; 64]);
        let block = live(&mut room, size, erases);
        block.end((fields(&block), FAMILY), false);
        // SAFETY: the block is this test's.
        unsafe { block.start().write_bytes(1, GRANULE_BYTES) };
        block.fill_head(size);
        assert!(block.is_untouched(), "{size}");
    }
}

#[test]
fn a_resized_block_has_its_canary_behind_its_new_size_and_grows_into_zeros_at_full() {
    for (from, to) in sizes().flat_map(|from| sizes().map(move |to| (from, to))) {
        for erases in [false, true] {
            let mut room = Room([0x5a; 64]);
            let block = live(&mut room, from, erases);
            // SAFETY: the bytes are the program's.
            unsafe { block.start().write_bytes(0x77, from) };
            block.move_canary(to, from);
            assert_eq!(block.canary_damage(to), None, "{from} to {to}");
            assert!(block.slice(0..from.min(to)).iter().all(|byte| *byte == 0x77));
            let behind = canary::range(to, 60).end..60;
            let is_zero = |range: Range<usize>| block.slice(range).iter().all(|byte| *byte == 0);
            assert!(!erases || (is_zero(from.min(to)..to) || from > to) && is_zero(behind), "{from} to {to}");
        }
    }
}

#[test]
fn the_last_bytes_of_a_canary_are_the_same_whatever_its_length() {
    let (mut room, mut last) = (Room([0; 64]), None);
    for size in 60 - canary::MOST_BYTES..=60 - canary::LATE_BYTES {
        let block = live(&mut room, size, false);
        let bytes: [u8; canary::LATE_BYTES] = block.slice(52..60).try_into().expect("so many");
        assert_eq!(*last.get_or_insert(bytes), bytes);
    }
}

/// The OS page of the trailer was purged while the block was free: it is zero.
#[test]
fn a_tail_is_purged_if_it_is_zero_and_in_another_os_page_than_the_start() {
    #[repr(align(32))]
    struct Pages([u8; 128]);
    let (mut pages, secret) = (Pages([0; 128]), secret(false));
    for (start, bytes, crosses) in [(0, 32, false), (0, 48, true), (16, 16, false), (16, 32, true), (64, 32, false)] {
        let block = pages.0.as_mut_ptr().wrapping_add(start);
        // SAFETY: the block is this test's.
        let marked = unsafe { MarkedBlock::at(block, bytes, &secret) };
        assert_eq!(marked.is_tail_purged(32), crosses, "{bytes} bytes at {start}");
        marked.set_trailer(Trailer::FRESH);
        assert!(!marked.is_tail_purged(32), "its trailer is there");
        pages.0.fill(0);
    }
}

/// What a trailer is mixed with may look like a trailer itself.
#[test]
fn a_purged_trailer_is_made_whole_whatever_it_would_say() {
    const OS_PAGE_BYTES: usize = 4096;
    const BYTES: usize = 32 * 1024;
    for erases in [false, true] {
        let (mut room, secret, mut n_misleading) = (std::vec![0u128; (1 << 20) / 16], secret(erases), 0);
        for at in (0..room.len() - BYTES / 16).step_by(if cfg!(miri) { 499 } else { 1 }) {
            // SAFETY: the block is this test's.
            let block = unsafe { MarkedBlock::at(room.as_mut_ptr().wrapping_add(at).cast(), BYTES, &secret) };
            block.renew(OS_PAGE_BYTES);
            // The kernel takes the page.
            block.cell().store(0, Ordering::Relaxed);
            n_misleading += u32::from(block.trailer().is_some());
            assert!(block.is_tail_purged(OS_PAGE_BYTES) && block.restore(OS_PAGE_BYTES).is_none());
            assert_eq!(block.trailer(), Some(Trailer::FRESH));
        }
        assert!(cfg!(miri) || n_misleading > 0);
    }
}

/// The kernel may have any OS page of a free block but the first.
#[test]
fn a_write_to_a_canary_of_a_freed_block_is_seen_whatever_of_the_block_was_purged() {
    const OS_PAGE: usize = 32;
    const BYTES: usize = 96;
    #[repr(align(32))]
    struct Pages([u8; 128]);
    let secret = secret(false);
    let step = if cfg!(miri) { 40 } else { 1 };
    for (start, size, taken) in [0, 16].into_iter().flat_map(|start| {
        let sizes = (0..=BYTES - TRAILER_BYTES).step_by(step);
        sizes.flat_map(move |size| (0..8_usize).map(move |taken| (start, size, taken)))
    }) {
        let mut pages = Pages([0; 128]);
        // SAFETY: the block is this test's.
        let block = unsafe { MarkedBlock::at(pages.0.as_mut_ptr().wrapping_add(start), BYTES, &secret) };
        block.begin((size, Fields::of(Trailer { state: LIVE, size, align_log2: 3 })), true);
        block.end((fields(&block), FAMILY), true);
        let os_page = |at: usize| (start + at) / OS_PAGE;
        let is_taken = |at| os_page(at) > 0 && taken >> (os_page(at) - 1) & 1 == 1;
        let set = |at: usize, byte| {
            // SAFETY: the byte is one of the test's block, before its trailer.
            unsafe { block.start().wrapping_add(at).replace(byte) }
        };
        for at in (0..block.capacity()).filter(|&at| is_taken(at)) {
            set(at, 0);
        }
        assert_eq!(block.freed_damage(size, true, OS_PAGE), None, "{size} bytes at {start}, {taken:b}");
        let canary = canary::range(size, block.capacity());
        for at in canary.start.max(size.max(fill::LEAST_BYTES))..canary.end {
            let before = set(at, 1);
            assert_eq!(block.freed_damage(size, true, OS_PAGE), Some(at), "{size} bytes at {start}, {taken:b}");
            set(at, 0);
            let seen = (os_page(at) == 0).then_some(at);
            assert_eq!(block.freed_damage(size, true, OS_PAGE), seen, "{size} bytes at {start}, {taken:b}");
            set(at, before);
        }
    }
}
