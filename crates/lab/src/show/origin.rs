//! Where figures come from, as every picture says it: the machine and the date.

use crate::results::machine::Machine;
use crate::results::timestamp;
use crate::show::quantity;

/// `AMD EPYC · 2 processors · 24.0 GiB · Linux 6.18 · 2026-11-22 17:48:00 UTC`.
pub(crate) fn of(machine: &Machine, unix_seconds: u64) -> String {
    let processors = quantity::counted(machine.processors as u64, "processor", "processors");
    let memory = quantity::bytes(machine.memory_bytes as f64);
    format!("{} · {processors} · {memory} · {} · {} UTC", machine.cpu, machine.kernel, timestamp::utc(unix_seconds))
}
