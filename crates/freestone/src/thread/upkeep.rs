//! A heap's periodic work, and emptying all its caches.

use crate::size_class::N_CLASSES;
use crate::thread::drain::{drain, drain_some};
use crate::thread::flush::empty;
use crate::thread::heap::own::Own;
use crate::thread::returns::release_waiting;
use crate::thread::route::send_all;
use crate::thread::watched::release::{empty_magazines, release_all};
use freestone_os::Os;

/// The decay tick: once in a decay time, when the heap needs a new span, empties the bins that nothing was allocated from since the last one, which are small again, and
/// hands over buffered blocks of other owners. An active bin keeps its blocks. Returns whether it was due.
#[inline(never)]
pub(crate) fn tick<O: Os>(own: Own<'_, O>, now_ms: u32) -> bool {
    let is_due = own.shared().settings().decay_ms().is_some_and(|decay_ms| own.ticks().begin_tick(now_ms, decay_ms));
    if is_due {
        run_tick(own);
    }
    is_due
}

fn run_tick<O: Os>(own: Own<'_, O>) {
    drain_some(own);
    for class in 0..N_CLASSES {
        if own.bins().is_idle_since_last_asked(class) {
            own.bins().set_capacity(class, 0);
            empty(own, class);
        }
    }
    empty_magazines(own);
    own.cache().tick();
    release_waiting(own);
    send_all(own);
}

/// Empties the bins, the quarantine and the magazines, the large-run cache, the remote-free buffer and what is taken ahead.
pub(crate) fn flush_all<O: Os>(own: Own<'_, O>) {
    drain(own);
    for class in 0..N_CLASSES {
        empty(own, class);
    }
    release_all(own);
    release_waiting(own);
    own.shared().pages.take_back(own.cache(), own.ahead().take());
    send_all(own);
}

#[cfg(test)]
mod tests;
