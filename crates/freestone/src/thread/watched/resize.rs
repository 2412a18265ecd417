//! Resizing a small block of a watched span where it is.
//!
//! A block of another heap's span does not grow where it is: the span's owner may be looking at its canary.

use crate::span::trailer::{State, Trailer};
use crate::thread::growth::small_stays;
use crate::thread::watched::examine::Examined;

/// Makes a block hold `size` bytes if it can where it is.
pub(crate) fn stays(examined: &Examined, size: usize) -> bool {
    let Examined { block, trailer, .. } = *examined;
    if !small_stays(block.capacity(), size) || (size > trailer.size && !examined.is_own) {
        return false;
    }
    if size > trailer.size {
        block.move_canary(size, trailer.size);
    } else {
        block.lengthen_canary(size, trailer.size);
    }
    block.set_trailer(Trailer { size, ..trailer });
    debug_assert!(matches!(trailer.state, State::Live(_)), "an examined block is the program's");
    true
}
