//! The names of workloads and programs on the command line.

/// Each of `names` once: the rounds of the same subject would take the place of each other.
pub(super) fn once(names: &[String]) -> impl Iterator<Item = &String> {
    names.iter().enumerate().filter(|(number, name)| !names[..*number].contains(name)).map(|(_, name)| name)
}
