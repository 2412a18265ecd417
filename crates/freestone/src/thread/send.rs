//! Sends a block to whoever owns its span now.
//!
//! ```text
//!  the span's owner is  none              ─▶ central list
//!                       the caller's heap ─▶ back to the caller
//!                       any other heap    ─▶ its inbox; closed: read the owner again, the span is being abandoned
//! ```
//!
//! Threads: any.

use crate::shared::Shared;
use crate::span::PageIndex;
use crate::span::blocks::Refused;
use crate::thread::free_block::FreeBlock;
use crate::thread::mailbox::Mailbox;
use crate::thread::span_owner::{free_abandoned, owner_of, owner_of_span};
use crate::thread::watched::homecoming::fill_head;
use freestone_base::sync::spin_hint;
use freestone_os::Os;

/// What became of a block that was sent to the owner of its span.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It is in its owner's inbox.
    HandedOver,
    /// It is free in its span, which no heap owns.
    Done,
    /// The span that starts at this page, which no heap owns, refused it.
    Refused(PageIndex, Refused),
    /// It is still the caller's, whose heap owns the span that starts at this page.
    Home(PageIndex, FreeBlock),
}

/// Sends a block to its span's current owner, or gives it back to the span if that has none. `home`: the caller's mailbox, if it has one. A suspect may have
/// been free before: the owner finds that out.
pub(crate) fn send<O: Os>(shared: &Shared<O>, mut block: FreeBlock, is_suspect: bool, home: Option<&Mailbox>) -> Sent {
    let (page, mut owner) = owner_of(shared, &block);
    loop {
        match owner {
            None => {
                fill_head(shared, &block);
                if is_suspect {
                    block.overwrite_link();
                }
                match free_abandoned(shared, page, block) {
                    Ok(None) => return Sent::Done,
                    Ok(Some(why)) => return Sent::Refused(page, why),
                    Err(adopted) => block = adopted,
                }
            }
            Some(owner) if home.is_some_and(|home| owner.is(home)) => return Sent::Home(page, block),
            Some(owner) => match owner.mailbox().inbox().push_one(block, owner.mailbox().key(), is_suspect) {
                Ok(()) => return Sent::HandedOver,
                Err(refused) => {
                    block = refused;
                    spin_hint();
                }
            },
        }
        owner = owner_of_span(shared, page);
    }
}
