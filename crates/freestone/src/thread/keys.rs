//! The keys that links in free blocks are encoded with.
//!
//! One per heap, for its bins, and one for all blocks in transit. The kernel is asked for random numbers once, before the first heap; every key is
//! a keyed hash (SipHash-2-4) of a counter, so that no key says anything about another. With hardening off all keys are plain, but for the inboxes of explicit heaps that
//! are hardened all the same: blocks come there one by one, linked by who frees them with the inbox's key.
//!
//! ```text
//!  bit   63  62      55  54            3 … 0
//!         0   1       0   1     bins   0xxx, not 0
//!                               in transit   1xxx
//! ```
//!
//! - The lowest four bits are not zero. So an aligned address, or zero, that a program writes over a link decodes to a misaligned number. Those of
//!   bins and those in transit differ: so does a link that is read as one of the other kind.
//! - Bits 62 and 54 are set, 63 and 55 are not. So an address or a small number that is written over a link decodes to one that no memory is at, on
//!   x86-64 and on AArch64, which ignores the highest eight bits.

use crate::config::Harden;
use freestone_base::inbox::LinkKey;

/// The keys of a heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// Of the links in its bins.
    pub(crate) of_bins: LinkKey,
    /// Of links in the batches that the heap hands over: all heaps have the same.
    pub(crate) in_transit: LinkKey,
    /// Of links in the heap's inbox: those in transit, unless the process is not hardened and the heap is.
    pub(crate) of_inbox: LinkKey,
}

/// Where keys come from. For the holder of the registry's lock.
pub(crate) struct KeySource {
    seed: Option<[u64; 2]>,
    n_drawn: u64,
}

/// What bits of every key are fixed, and how.
const FIXED: u64 = 1 << 63 | 1 << 62 | 1 << 55 | 1 << 54 | 15;
/// See [`FIXED`].
const SET: u64 = 1 << 62 | 1 << 54;

impl KeySource {
    /// No seed yet.
    pub(crate) const fn new() -> Self {
        Self { seed: None, n_drawn: 0 }
    }

    /// The keys of a new heap with a level of its own in a process with the level `harden`; `random` is asked for a seed the first time that one is needed.
    pub(crate) fn draw(&mut self, harden: Harden, heap: Harden, random: impl Fn() -> u64) -> Keys {
        let (plain, is_off) = (LinkKey::PLAIN, harden == Harden::Off);
        if is_off && heap == Harden::Off {
            return Keys { of_bins: plain, in_transit: plain, of_inbox: plain };
        }
        let seed = self.seed(random);
        self.n_drawn += 1;
        let key = |number, is_in_transit| {
            let bits = sip_hash(seed, number);
            let lowest = if is_in_transit { 8 + bits % 8 } else { 1 + bits % 7 };
            LinkKey::new((bits & !FIXED | SET | lowest) as usize)
        };
        let of_inbox = key(0, true);
        if is_off {
            return Keys { of_bins: plain, in_transit: plain, of_inbox };
        }
        Keys { of_bins: key(self.n_drawn, false), in_transit: of_inbox, of_inbox }
    }

    /// A number made of the seed, as keys are; `random` is asked for a seed if there is none.
    pub(crate) fn number(&mut self, random: impl Fn() -> u64) -> u64 {
        let seed = self.seed(random);
        self.n_drawn += 1;
        sip_hash(seed, self.n_drawn)
    }

    /// The seed; `random` is asked for one if there is none.
    pub(crate) fn seed(&mut self, random: impl Fn() -> u64) -> [u64; 2] {
        *self.seed.get_or_insert_with(|| [random(), random()])
    }
}

/// SipHash-2-4 of one number: <https://www.aumasson.jp/siphash/siphash.pdf>.
fn sip_hash([k0, k1]: [u64; 2], number: u64) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    for word in [number, 8 << 56] {
        v[3] ^= word;
        (0..2).for_each(|_| sip_round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round(v: &mut [u64; 4]) {
    let mix = |v: &mut [u64; 4], a: usize, b: usize, turn| {
        v[a] = v[a].wrapping_add(v[b]);
        v[b] = v[b].rotate_left(turn) ^ v[a];
    };
    mix(v, 0, 1, 13);
    v[0] = v[0].rotate_left(32);
    mix(v, 2, 3, 16);
    mix(v, 0, 3, 21);
    mix(v, 2, 1, 17);
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests;
