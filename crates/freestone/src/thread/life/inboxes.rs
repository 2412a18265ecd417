//! Inboxes of heaps whose threads are idle: `thread::idle` looks through each. A heap behind a gate needs no thread of its own: who finds no thread in it empties
//! its caches.

use super::{Life, Threads};
use crate::shared::Shared;
use crate::thread::idle::Look;
use crate::thread::idle_note::Waiting;
use crate::thread::life::succession::Which;
use freestone_os::Os;

/// Fewer bytes in blocks are not looked for in the background.
const BYTES_LEAST: usize = 256 << 10;

impl<O: Os + 'static> Threads<O> {
    /// Ends spare heaps, and gives back the memory of blocks that wait in inboxes, those that `which` says, and all dirty memory. If it says all, also the OS pages
    /// inside spans without an owner in which no block is out.
    pub(crate) fn purge(&self, shared: &Shared<O>, which: Which) {
        self.end_spare(shared, which);
        self.purge_inboxes(shared, which, &|| false);
        if which == Which::All {
            shared.central.release_os_pages(&shared.pages, &shared.usage, None);
        }
        shared.pages.purge();
    }

    /// Gives back the memory of blocks that wait in those inboxes that `which` says. Stops early when another thread forks, or `is_ending` says so. Returns whether
    /// some may wait.
    pub(crate) fn purge_inboxes(&self, shared: &Shared<O>, which: Which, is_ending: &dyn Fn() -> bool) -> bool {
        let (decay_ms, bytes_least) = match (which, shared.settings().decay_ms()) {
            (Which::Rested | Which::All, _) => (0, 0),
            (Which::Expired, Some(decay_ms)) => (decay_ms, BYTES_LEAST),
            (Which::Expired, None) => return false,
        };
        // Another thread does it, or a signal handler has interrupted this one there.
        let Some(_looking) = self.looking.begin() else { return true };
        let (now_ms, mut may_wait) = (shared.os().now_ms() as u32, false);
        // Watched heaps look at each block that they take back.
        let plain = self
            .threads
            .iter()
            .filter(|heap| matches!(heap.life(), Life::Alive | Life::Orphaned) && heap.watched().get().is_none());
        let look = Look { shared, bytes_least, looking: &self.looking, is_ending };
        for heap in plain {
            let mailbox = heap.mailbox();
            if look.is_to_stop() {
                return true;
            }
            let ask = || mailbox.idle().look(mailbox.inbox().newest(), now_ms, decay_ms);
            let mut waiting = ask();
            if waiting == Waiting::Long || which == Which::All {
                look.through(mailbox);
                // Others may have come meanwhile.
                waiting = ask();
            }
            may_wait |= waiting != Waiting::None;
        }
        for (gated, holdings) in self.gated() {
            if look.is_to_stop() {
                return true;
            }
            let mailbox = gated.heap().mailbox();
            let waiting = mailbox.idle().look(mailbox.inbox().newest(), now_ms, decay_ms);
            may_wait |= waiting != Waiting::None;
            if waiting == Waiting::Long || which != Which::Expired {
                if let Some(entered) = gated.try_enter_with(holdings) {
                    which.empty(entered.own());
                }
            }
        }
        may_wait
    }
}
