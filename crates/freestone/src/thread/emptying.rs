//! The last thing that a heap does: it gives back everything that it has.

use crate::size_class::N_CLASSES;
use crate::thread::drain::drain;
use crate::thread::flush::empty;
use crate::thread::heap::own::Own;
use crate::thread::watched::release::release_all;
use crate::thread::{large, route};
use freestone_os::Os;

/// Empties a heap that ends: everything that it cached goes to spans and owners, and spans with blocks still out are abandoned.
pub(crate) fn give_all_back<O: Os>(own: Own<'_, O>) {
    let shared = own.shared();
    drain(own);
    release_all(own);
    for class in 0..N_CLASSES {
        empty(own, class);
        own.publish_live(class);
        own.bins().reset(class);
    }
    shared.pages.take_back(own.cache(), own.ahead().take());
    own.cache().tick();
    large::publish(own, 0);
    route::send_all(own);
    own.accounts().publish_free(&shared.usage);
    for class in 0..N_CLASSES {
        while own.spans().leave_one(shared, class) {}
    }
    // From here on handovers are refused, and no span belongs to this heap.
    own.heap().mailbox().close(|late| route::route_all(own, late));
}
