//! Faults: what happens when the program accesses memory of the heap that cannot be accessed.
//!
//! ```text
//!  a slot of a guarded block, or beside it      reported; under `misuse=report` the page is opened, and the access made again
//!  a block of no bytes, a freed large block,    reported; the memory stays closed, so the fault goes on to the program
//!  a guard behind a large block or a span
//!  elsewhere                                    the program's
//! ```
//!
//! Called in a signal handler: waits for no lock, allocates nothing.

use crate::config::MisusePolicy;
use crate::misuse::Misuse;
use crate::misuse::crime::Touch;
use crate::misuse::finding::{Finding, Site};
use crate::page::closed::Closed;
use crate::page::runs::Extent;
use crate::shared::Shared;
use crate::size_class::block_bytes;
use crate::thread::watched::large_marks;
use freestone_os::fault::{Fault, Outcome};
use freestone_os::stack::Stack;
use freestone_os::{Os, process};

/// Reports a fault in memory of the heap, by the thread whose heap has the number `thread`.
pub(super) fn judge<O: Os>(shared: &Shared<O>, thread: u32, fault: &Fault) -> Outcome {
    let touch = Touch::new(fault.is_write);
    if let Some(crime) = shared.guarded.judge(fault.address, touch) {
        let finding = Finding::new(crime.what, crime.block, thread).at(site(fault)).with_history(&crime.history);
        return match finding.report(shared.settings()) {
            MisusePolicy::Report | MisusePolicy::Ignore if shared.guarded.give_up(fault.address) => Outcome::Resume,
            _ => Outcome::Fatal,
        };
    }
    let Some((what, block)) = judge_closed(shared, fault.address, touch) else { return Outcome::Foreign };
    match Finding::new(what, block, thread).at(site(fault)).report(shared.settings()) {
        MisusePolicy::Abort => Outcome::Fatal,
        // The memory stays closed: the program's own handler decides, or the fault ends the process.
        MisusePolicy::Report | MisusePolicy::Ignore => Outcome::Foreign,
    }
}

/// What an access to memory that is never opened for it was, and the block's address.
fn judge_closed<O: Os>(shared: &Shared<O>, address: usize, touch: Touch) -> Option<(Misuse, usize)> {
    shared.empty.judge(address, touch).or_else(|| judge_page(shared, address, touch))
}

/// What an access to a page that cannot be accessed was, and the block's address.
fn judge_page<O: Os>(shared: &Shared<O>, address: usize, touch: Touch) -> Option<(Misuse, usize)> {
    let start = |run: Extent| shared.pages.layout().page_start(run.first).addr();
    let large = |run: Extent| {
        let (block_bytes, size) = large_marks::extent(shared, run.first);
        (block_bytes, (size < block_bytes).then_some(size))
    };
    let (block, (block_bytes, size), is_freed) = match shared.pages.closed_at(address)? {
        Closed::BehindLarge(run) => (start(run), large(run), false),
        Closed::Freed(run) => (start(run), large(run), true),
        Closed::BehindSpan(run, class) => {
            let block_bytes = block_bytes(class);
            // The last block of the span is the nearest.
            let last = (run.bytes() / block_bytes).max(1) - 1;
            (start(run) + last * block_bytes, (block_bytes, None), false)
        }
    };
    let offset = (address as isize).wrapping_sub(block as isize);
    let what = if is_freed {
        Misuse::FreedBlock { block_bytes, size, offset, touch }
    } else {
        Misuse::BesideBlock { block_bytes, size, offset, touch }
    };
    Some((what, block))
}

/// Where the thread was that faulted.
fn site(fault: &Fault) -> Site {
    Site { thread: process::thread_id(), stack: fault.registers.map_or(Stack::EMPTY, Stack::at) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
