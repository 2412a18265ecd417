//! Hardware counters of the measured section, if the machine has them and the kernel permits their use.

use crate::workload::workload_record::Counters;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use std::io;

/// Three counters of this thread and the threads that it starts.
pub(crate) struct HardwareCounters {
    cycles: Counter,
    instructions: Counter,
    cache_misses: Counter,
}

impl HardwareCounters {
    /// Opens the counters.
    ///
    /// # Errors
    /// Most virtual machines have none, and the kernel may deny access; the message says which.
    pub(crate) fn open() -> Result<Self, String> {
        let open = |event| Builder::new(event).inherit(true).exclude_kernel(true).build();
        let all = || -> io::Result<Self> {
            Ok(Self {
                cycles: open(Hardware::CPU_CYCLES)?,
                instructions: open(Hardware::INSTRUCTIONS)?,
                cache_misses: open(Hardware::CACHE_MISSES)?,
            })
        };
        all().map_err(|error| format!("this machine grants no hardware counters ({error})"))
    }

    /// Starts counting.
    pub(crate) fn start(&mut self) {
        for counter in [&mut self.cycles, &mut self.instructions, &mut self.cache_misses] {
            // A counter that does not start reads 0, and `stop` then reports that the counters did not run.
            let _ = counter.enable();
        }
    }

    /// Reads the counters.
    pub(crate) fn stop(&mut self) -> Counters {
        let mut read = || -> io::Result<Counters> {
            Ok(Counters::Counted {
                cycles: self.cycles.read()?,
                instructions: self.instructions.read()?,
                cache_misses: self.cache_misses.read()?,
            })
        };
        match read() {
            Ok(Counters::Counted { cycles: 0, .. }) => Counters::Absent("the counters did not run".into()),
            Ok(counters) => counters,
            Err(error) => Counters::Absent(format!("the counters could not be read ({error})")),
        }
    }
}
