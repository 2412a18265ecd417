//! Blocks going back to spans of this heap.
//!
//! A span of which no block is out goes to the page heap. When more is free inside spans than the dirty bound allows, a span that is mostly free
//! gives back the OS pages in which no block is out (`span_purge` says when). An invalid free of a small block is detected here: its
//! span refuses the block, and the free is reported.

use crate::central;
use crate::misuse::Misuse;
use crate::size_class::{block_at, block_bytes};
use crate::span::blocks::{Home, Refused};
use crate::span::os_pages::EmptyStretches;
use crate::span::{Layout, PageIndex};
use crate::thread::free_block::{FreeChain, Stretch};
use crate::thread::heap::own::Own;
use crate::thread::spans::{self, Stop};
use freestone_base::inbox::Node;
use freestone_os::Os;

/// Gives the first block of a chain back to its span, which is the one that was turned to. With its last block the span goes to the page heap.
pub(crate) fn give_back_first<O: Os>(own: Own<'_, O>, home: &Home<'_>, chain: &mut FreeChain) {
    let address = chain.first().addr();
    if let Err((block, why)) = own.spans().give_back_first(home, chain) {
        return refuse(own, (home.span.page(), home.class), chain, (block, why));
    }
    own.accounts().add_free(home.class, 1);
    if home.span.n_out.get() == 0 {
        free_span(own, home);
    } else if own.purge().looks() {
        own.purge().note_emptied(spans::has_emptied_os_page(own.shared(), home, address));
    }
}

/// Gives a stretch back to its span. OS pages of it have gone back already: its span lets none wait for that.
pub(crate) fn give_back_stretch<O: Os>(own: Own<'_, O>, home: &Home<'_>, stretch: &Stretch) {
    if let Err(why) = own.spans().give_back_stretch(home, stretch) {
        return report_refused(own, stretch.address(), home.class, home.span.page(), why);
    }
    own.accounts().add_free(home.class, i64::from(stretch.len()));
    if home.span.n_out.get() == 0 {
        free_span(own, home);
    }
}

/// Gives blocks of a chain, which came out of a bin, back to their spans, while no OS pages go back. Returns whether the first one was such a block: one in
/// a span of this heap and of the chain's class, or one that its span refused.
pub(crate) fn give_back<O: Os>(own: Own<'_, O>, chain: &mut FreeChain) -> bool {
    let returned = own.spans().give_back(own.layout(), own.lookup(), chain);
    own.accounts().add_free(chain.class(), i64::from(returned.n));
    match returned.stop {
        Stop::Elsewhere => return returned.n > 0,
        Stop::Emptied(home) => free_span(own, &home),
        Stop::Refused(page, block, why) => refuse(own, (page, chain.class()), chain, (block, why)),
    }
    true
}

/// Reports a block of a chain that the span at a page, of a class, refused.
#[cold]
fn refuse<O: Os>(
    own: Own<'_, O>,
    (page, class): (PageIndex, usize),
    chain: &mut FreeChain,
    (block, why): (*mut Node, Refused),
) {
    if why == Refused::Written {
        // Its link may be anything, too.
        chain.abandon();
    }
    report_refused(own, block.addr(), class, page, why);
}

/// Gives a span of which no block is out to the page heap.
#[cold]
fn free_span<O: Os>(own: Own<'_, O>, home: &Home<'_>) {
    own.purge().forget();
    own.accounts().add_free(home.class, -i64::from(home.span.n_free.get()));
    own.publish_live(home.class);
    own.spans().free_empty(&own.shared().pages, home);
}

/// Reports a block of the span of `class` at `page` that the span refused.
pub(crate) fn report_refused<O: Os>(own: Own<'_, O>, address: usize, class: usize, page: PageIndex, why: Refused) {
    own.report(misuse_of(own.layout(), address, class, page, why), address);
}

/// What the program did to a block of the span of `class` at `page` that the span refused.
pub(crate) fn misuse_of(layout: &Layout, address: usize, class: usize, page: PageIndex, why: Refused) -> Misuse {
    let block_bytes = block_bytes(class);
    match why {
        Refused::FreeAlready => Misuse::DoubleFree { block_bytes },
        Refused::Written => Misuse::link_written(block_bytes),
        Refused::NotABlock => {
            let offset = address - layout.page_start(page).addr();
            let start = block_at(class, offset).0 * block_bytes;
            Misuse::Interior { block_bytes, offset: offset - start }
        }
    }
}

/// Turns to the span at `page`, to give blocks back to it; `NONE` turns from all spans. The span turned from waits if OS pages of it were emptied.
#[inline]
pub(crate) fn turn_to<O: Os>(own: Own<'_, O>, page: PageIndex) {
    if own.purge().is_at(page) && page != PageIndex::NONE {
        return;
    }
    if let Some(before) = own.purge().turn_to(page) {
        wait(own, before);
    }
    if page == PageIndex::NONE {
        publish_free(own);
    }
}

/// Lets a span wait until the OS pages in which no block is out go back, with those of others.
fn wait<O: Os>(own: Own<'_, O>, page: PageIndex) {
    if own.purge().wait(page, own.spans().n_pages()) {
        release_waiting(own);
    }
}

/// Gives back the OS pages in which no block is out, of the spans that wait for that.
#[cold]
#[inline(never)]
pub(crate) fn release_waiting<O: Os>(own: Own<'_, O>) {
    let mut stretches = EmptyStretches::new();
    while let Some(page) = own.purge().take_waiting() {
        if let Some((class, n)) = spans::release_os_pages(own.shared(), own.lookup(), page, &mut stretches) {
            own.accounts().add_free(class, -i64::from(n));
        }
    }
    own.shared().pages.purge_inside(&mut stretches);
}

/// Publishes what became free inside this heap's spans, and checks whether it exceeds the bound.
fn publish_free<O: Os>(own: Own<'_, O>) {
    own.accounts().publish_free(&own.shared().usage);
    if own.purge().set_over_bound(own.shared().excess_in_spans(own.purge().is_on()) > 0) {
        sweep(own);
    }
}

/// Purges the OS pages of spans that were emptied while the bound was not passed; at most once in a decay time. Those of spans without an owner, too, if it is
/// passed, unless another thread has done that within a decay time.
#[cold]
pub(crate) fn sweep<O: Os>(own: Own<'_, O>) {
    let shared = own.shared();
    let Some(decay_ms) = shared.settings().decay_ms() else { return };
    let now_ms = own.now_ms();
    if own.purge().begin_sweep(now_ms, decay_ms) {
        own.spans().for_each_mostly_free(own.layout(), |page| wait(own, page));
        release_waiting(own);
        if shared.central.begin_sweep(now_ms, decay_ms) {
            shared.release_in_spans();
        }
    }
}

/// Purges all OS pages of this heap's spans in which no block is out; in a decay time again only if much has become free inside spans since.
#[cold]
pub(crate) fn release_all<O: Os>(own: Own<'_, O>) {
    let shared = own.shared();
    own.accounts().publish_free(&shared.usage);
    let decay_ms = shared.settings().decay_ms().unwrap_or(u32::MAX);
    if !own.purge().may_release_all(own.now_ms(), decay_ms, shared.usage.free_in_spans()) {
        return;
    }
    let mut stretches = EmptyStretches::new();
    own.spans().for_each_with_free_blocks(own.layout(), |span| {
        let n = central::release_os_pages(&shared.pages, &span, &mut stretches);
        own.accounts().add_free(span.class.get() as usize, -i64::from(n));
    });
    shared.pages.purge_inside(&mut stretches);
    own.accounts().publish_free(&shared.usage);
    own.purge().note_all_released(own.now_ms(), shared.usage.free_in_spans());
}

#[cfg(test)]
mod tests;
