//! What only slow paths use of a bin: the room that they grant and withhold, the frees that it counts, and how many blocks it should hold.

use super::Bins;
use crate::thread::free_block::FreeBlock;
use freestone_base::sync::Ordering;

/// The frees of a bin whose room is being set, if `room` says that it is.
pub(super) fn frees_in_change(room: i64) -> Option<u64> {
    (room < i64::MIN / 2).then(|| (room - i64::MIN) as u64)
}

impl Bins {
    /// Blocks freed into a bin, ever. For the heap's thread.
    #[inline(always)]
    pub(super) fn own_frees(&self, class: usize) -> i64 {
        self.granted[class].load(Ordering::Relaxed) - self.room(class)
    }

    /// Blocks freed into a bin, ever, as any thread may read it. It is exact but where the room is set twice between the reader's loads: then it may be off by the difference of
    /// the rooms.
    pub(crate) fn frees(&self, class: usize) -> u64 {
        loop {
            let granted = self.granted[class].load(Ordering::Acquire);
            let room = self.room[class].load(Ordering::Acquire);
            if let Some(frees) = frees_in_change(room) {
                return frees;
            }
            if self.granted[class].load(Ordering::Relaxed) == granted {
                return u64::try_from(granted - room).unwrap_or(0);
            }
        }
    }

    /// Blocks in a bin, as another thread reads it: it may be off by what the heap's thread is doing at the moment.
    pub(crate) fn len_elsewhere(&self, class: usize) -> i64 {
        self.moved[class].load(Ordering::Relaxed) + self.frees(class) as i64 - self.allocs(class) as i64
    }

    /// Blocks of a class that this thread allocated, less those that it freed, whichever heap owns them. Negative if the thread frees what others
    /// allocated; more than the program holds if others free what the thread allocated.
    #[inline]
    pub(crate) fn live(&self, class: usize) -> i64 {
        self.allocs(class) as i64 - self.own_frees(class) - self.remote_frees(class) as i64
    }

    /// As [`Bins::live`], of a class whose bin has `len` blocks: in fewer instructions.
    #[inline(always)]
    pub(crate) fn live_beside(&self, class: usize, len: i64) -> i64 {
        debug_assert!(self.len(class) == len);
        self.moved[class].load(Ordering::Relaxed) - len - self.remote_frees(class) as i64
    }

    /// Grants a bin room for `frees` more blocks before the slow path checks it again.
    #[inline(always)]
    pub(crate) fn grant(&self, class: usize, frees: i64) {
        self.set_room(class, frees);
        self.classes[class].withheld.set(0);
    }

    /// Sets a bin's room. As two counters change, the room has the frees themselves meanwhile, for who reads them.
    #[inline(always)]
    fn set_room(&self, class: usize, room: i64) {
        let frees = self.own_frees(class);
        self.room[class].store(i64::MIN + frees, Ordering::Relaxed);
        self.granted[class].store(frees + room, Ordering::Release);
        self.room[class].store(room, Ordering::Release);
    }

    /// Takes room for one block from a bin, which has some.
    pub(crate) fn withdraw_one(&self, class: usize) {
        self.set_room(class, self.room(class) - 1);
    }

    /// Withholds the room of a bin, `frees`, from the hot paths, which find none.
    pub(crate) fn withhold(&self, class: usize, frees: i64) {
        self.grant(class, 0);
        self.classes[class].withheld.set(frees);
    }

    /// Frees until the slow path checks a bin, whether or not the hot paths see them.
    pub(crate) fn room_or_withheld(&self, class: usize) -> i64 {
        self.room(class) + self.classes[class].withheld.get()
    }

    /// Puts a freed block into its bin if it has room that is withheld from the hot paths; else gives it back.
    ///
    /// # Errors
    /// The block.
    pub(crate) fn push_withheld(&self, block: FreeBlock) -> Result<(), FreeBlock> {
        let (state, granted) = (&self.classes[block.class()], &self.granted[block.class()]);
        let withheld = state.withheld.get();
        if withheld <= 0 {
            return Err(block);
        }
        state.withheld.set(withheld - 1);
        granted.store(granted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.link(block);
        Ok(())
    }

    /// The most blocks that a bin should hold; `start` gives the first value.
    #[inline]
    pub(crate) fn capacity(&self, class: usize, start: impl FnOnce() -> u32) -> u32 {
        let capacity = &self.classes[class].capacity;
        if capacity.get() == 0 {
            self.set_capacity(class, start());
        }
        capacity.get()
    }

    /// Sets the most blocks that a bin should hold; 0: what it starts with.
    pub(crate) fn set_capacity(&self, class: usize, capacity: u32) {
        let before = self.classes[class].capacity.replace(capacity);
        self.capacities.set(self.capacities.get() - before + capacity);
    }

    /// The most blocks that all bins together should hold.
    pub(crate) fn capacities(&self) -> u32 {
        self.capacities.get()
    }

    /// For how many blocks beyond its share the bin has borrowed room.
    pub(crate) fn borrowed(&self, class: usize) -> u32 {
        self.classes[class].borrowed.get()
    }

    /// Sets what [`Bins::borrowed`] returns.
    pub(crate) fn set_borrowed(&self, class: usize, blocks: u32) {
        self.classes[class].borrowed.set(blocks);
    }

    /// Blocks flushed since the bin was last empty.
    pub(crate) fn flushed(&self, class: usize) -> u32 {
        self.classes[class].flushed.get()
    }

    /// Counts blocks flushed since the bin was last empty.
    pub(crate) fn count_flushed(&self, class: usize, blocks: u32) {
        let flushed = &self.classes[class].flushed;
        flushed.set(flushed.get().saturating_add(blocks));
    }

    /// Returns how many blocks were flushed since the bin was last empty, and resets the count: it is empty now.
    pub(crate) fn restart_flushed(&self, class: usize) -> u32 {
        self.classes[class].flushed.replace(0)
    }

    /// Whether nothing was allocated from the bin since this was last asked. For the decay tick.
    pub(crate) fn is_idle_since_last_asked(&self, class: usize) -> bool {
        let allocs = self.allocs(class);
        self.classes[class].allocs_at_tick.replace(allocs) == allocs
    }

    /// Blocks handed out of a bin since [`Bins::is_idle_since_last_asked`] was called, or the heap began.
    #[inline]
    pub(crate) fn allocs_since_tick(&self, class: usize) -> u64 {
        self.allocs(class).wrapping_sub(self.classes[class].allocs_at_tick.get())
    }

    /// Resets an empty bin for the next heap of this record; the counters continue.
    pub(crate) fn reset(&self, class: usize) {
        self.withhold(class, 0);
        self.classes[class].allocs_at_tick.set(self.allocs(class));
        self.set_capacity(class, 0);
        self.restart_flushed(class);
    }
}
