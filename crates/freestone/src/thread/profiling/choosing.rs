//! Which blocks that come into a bin are chosen: countdowns, and the room that ends with them. See the module header of `thread::profiling`.

use crate::heap_profile::recorder::HeapProfile;
use crate::size_class::block_bytes;
use crate::thread::heap::own::Own;
use crate::thread::profile_countdowns::ProfileCountdowns;
use freestone_os::Os;

/// Whether the room of a bin ends with the block that is chosen next. `false` if it ends before that.
#[inline(always)]
pub(in crate::thread) fn ends_at_chosen<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    own.heap().profile_countdowns().cut[class].get() != 0
}

/// Whether the next block of a class that is chosen comes behind the free that uses up its bin's room, and `further` more. `false` if that takes a closer look.
#[inline(always)]
pub(in crate::thread) fn is_far<O: Os>(own: Own<'_, O>, class: usize, further: u64) -> bool {
    own.bins().frees_within_reach(class) + 1 + further < own.heap().profile_countdowns().at[class].get()
        && is_in_session(own)
}

/// Whether the heap's countdowns are those of this session, and the hot paths see all room. `false` if that takes a closer look.
#[inline(always)]
fn is_in_session<O: Os>(own: Own<'_, O>) -> bool {
    let (profile, countdowns) = (&own.shared().profile, own.heap().profile_countdowns());
    countdowns.session.get() == profile.session() && !profile.notices_rust()
}

/// The profile and the heap's countdowns, those of this session; `None` if the heap's blocks are not sampled.
#[inline(always)]
pub(in crate::thread) fn countdowns<O: Os>(own: Own<'_, O>) -> Option<(&HeapProfile, &ProfileCountdowns)> {
    let (profile, countdowns) = (&own.shared().profile, own.heap().profile_countdowns());
    if !profile.is_on() || own.holdings().is_some() {
        return None;
    }
    if countdowns.session.get() != profile.session() {
        begin_session(own, profile, countdowns);
    }
    Some((profile, countdowns))
}

#[cold]
fn begin_session<O: Os>(own: Own<'_, O>, profile: &HeapProfile, countdowns: &ProfileCountdowns) {
    countdowns.session.set(profile.session());
    countdowns.at.iter().for_each(|at| at.set(0));
    countdowns.cut.iter().for_each(|cut| cut.set(0));
    countdowns.large.set(profile.bytes_until(random(own)));
}

pub(in crate::thread) fn random<O: Os>(own: Own<'_, O>) -> u64 {
    own.shared().random.draw(|| own.shared().os().random())
}

/// Blocks that come into a class's bin until one is chosen, that one included: 0 if it came just now. `None` if none is.
#[inline(never)]
pub(in crate::thread) fn left<O: Os>(own: Own<'_, O>, class: usize) -> Option<u64> {
    let (_, countdowns) = countdowns(own)?;
    match countdowns.at[class].get() {
        0 => Some(draw(own, class)),
        at => Some(at.saturating_sub(passed(own, class))),
    }
}

/// What a countdown of a class counts.
fn passed<O: Os>(own: Own<'_, O>, class: usize) -> u64 {
    if own.watch().is_some() { 0 } else { own.bins().frees(class) }
}

/// Draws the next countdown of a class, which begins now. Returns it.
fn draw<O: Os>(own: Own<'_, O>, class: usize) -> u64 {
    let left = draw_one(own, class);
    own.heap().profile_countdowns().at[class].set(passed(own, class) + left);
    left
}

#[inline(never)]
fn draw_one<O: Os>(own: Own<'_, O>, class: usize) -> u64 {
    own.shared().profile.allocations_until(block_bytes(class), random(own))
}

/// Counts a block that comes into the bin of a class other than by a free that uses up room, or an allocation that takes none from there. Returns whether it
/// is chosen.
pub(in crate::thread) fn chooses<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    let Some(left) = left(own, class) else { return false };
    let at = &own.heap().profile_countdowns().at[class];
    let left_now = if left > 1 { left - 1 } else { draw_one(own, class) };
    at.set(passed(own, class) + left_now);
    if own.watch().is_none() {
        settle_to(own, class, left_now);
    }
    left <= 1
}

/// Counts a block that came first in the bin of a class other than by a free that uses up room.
#[cold]
pub(in crate::thread) fn count_put<O: Os>(own: Own<'_, O>, class: usize) {
    let (bins, countdowns) = (own.bins(), own.heap().profile_countdowns());
    let (at, cut) = (&countdowns.at[class], &countdowns.cut[class]);
    if is_far(own, class, 1) {
        at.set(at.get() - 1);
    } else if cut.get() != 0 && bins.room(class) > 0 && is_in_session(own) {
        at.set(at.get() - 1);
        cut.set(cut.get() + 1);
        bins.withdraw_one(class);
    } else if chooses(own, class) {
        bins.choose_first(class);
    }
}

/// Counts a batch of `n` blocks that came first in the bin of a class. Its room is not settled.
#[cold]
pub(in crate::thread) fn count_batch<O: Os>(own: Own<'_, O>, class: usize, n: u32) {
    let Some(left) = left(own, class) else { return };
    let left = own.bins().choose_among(class, u64::from(n), left, || draw_one(own, class));
    own.heap().profile_countdowns().at[class].set(passed(own, class) + left);
}

/// Keeps a free that brought no block into the bin of a class out of its countdown.
pub(in crate::thread) fn count_free_beside<O: Os>(own: Own<'_, O>, class: usize) {
    let at = &own.heap().profile_countdowns().at[class];
    if own.watch().is_none() && at.get() > 0 {
        at.set(at.get() + 1);
    }
}

/// Handles the free that used up the room of a bin: chooses its block if that is due, and lets the bin have more of what was withdrawn. `false` if nothing was.
pub(in crate::thread) fn room_ended<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    let Some(mut left) = left(own, class) else { return false };
    if left == 0 {
        own.bins().choose_first(class);
        left = draw(own, class);
    }
    let whole = whole_room(own, class);
    if whole >= 0 {
        divide(own, class, whole, left);
    }
    whole >= 0
}

/// Lets the room of a class's bin end with the block that is chosen next, if there is more: withdraws the rest.
#[cold]
pub(in crate::thread) fn settle<O: Os>(own: Own<'_, O>, class: usize) {
    if own.watch().is_none() {
        if let Some(left) = left(own, class) {
            settle_to(own, class, left);
        }
    }
}

/// As [`settle`], of a bin that is not watched: that block is the `left`th that comes.
#[inline(always)]
fn settle_to<O: Os>(own: Own<'_, O>, class: usize, left: u64) {
    divide(own, class, whole_room(own, class), left);
}

/// Gives a bin as much of its `whole` room as comes before the `left`th block, and withdraws the rest.
fn divide<O: Os>(own: Own<'_, O>, class: usize, whole: i64, left: u64) {
    let cut = &own.heap().profile_countdowns().cut[class];
    let before = i64::try_from(left).unwrap_or(i64::MAX) - 1;
    let room = whole.min(before);
    let notices_rust = own.shared().profile.notices_rust();
    cut.set(if before <= whole || notices_rust { whole - room + 1 } else { 0 });
    if notices_rust {
        own.bins().withhold(class, room);
    } else {
        own.bins().grant(class, room);
    }
}

/// Grants a bin room for `frees` more blocks. What was withdrawn before counts no more. To be settled.
#[inline(always)]
pub(in crate::thread) fn grant<O: Os>(own: Own<'_, O>, class: usize, frees: i64) {
    own.heap().profile_countdowns().cut[class].set(0);
    own.bins().grant(class, frees);
}

/// Frees that a bin has room for, those included that were withdrawn, or that the hot paths do not see.
#[inline(always)]
pub(in crate::thread) fn whole_room<O: Os>(own: Own<'_, O>, class: usize) -> i64 {
    own.bins().room_or_withheld(class) + own.heap().profile_countdowns().withdrawn(class)
}
