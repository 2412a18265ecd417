//! Whether what a process maps is charged to it, memory behind it or not.

use crate::file::{number, read};
use crate::kernel::process_facts::has_limit_of_mappings;

/// `vm.overcommit_memory`: the kernel promises no more than it has.
const PROMISES_NO_MORE: u64 = 2;

/// Whether mappings count against a limit, also where they have no memory: `RLIMIT_AS`, `RLIMIT_DATA`, or what the kernel promises all processes if
/// `vm.overcommit_memory` is 2. `false` if the kernel does not say.
#[must_use]
pub(crate) fn mappings_are_charged() -> bool {
    has_limit_of_mappings() || {
        let mut text = [0; 8];
        read(c"/proc/sys/vm/overcommit_memory", &mut text).ok().and_then(number) == Some(PROMISES_NO_MORE)
    }
}

#[cfg(test)]
mod tests;
