//! The library and the environment that put an allocator into a child process.

use crate::workload::loaded_allocator;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// What a child gets in addition to the lab's own environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preload<'a> {
    /// The library to preload; `None` for the C library's own allocator.
    pub(crate) library: Option<&'a Path>,
    /// Environment variables: options under test, or where to write a report.
    pub(crate) environment: &'a [(String, OsString)],
}

impl<'a> Preload<'a> {
    /// Nothing: the child runs under the C library's allocator.
    pub(crate) const NONE: Preload<'static> = Preload { library: None, environment: &[] };

    /// Puts the library and the variables into the environment of a process that the lab starts directly.
    pub(crate) fn apply(self, command: &mut Command) {
        self.apply_environment(command);
        match self.library {
            Some(library) => command.env("LD_PRELOAD", library),
            None => command.env_remove("LD_PRELOAD"),
        };
    }

    /// Puts the variables alone into the environment: for the launcher, which must not run under the allocator itself. What the user preloads
    /// stays, but for allocators: the command would run under them in place of the C library's.
    pub(crate) fn apply_environment(self, command: &mut Command) {
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        let inherited = env::var_os("LD_PRELOAD").unwrap_or_default();
        match without(&inherited, |name| CString::new(name).is_ok_and(|name| loaded_allocator::brings_malloc(&name))) {
            others if others.is_empty() => command.env_remove("LD_PRELOAD"),
            others => command.env("LD_PRELOAD", others),
        };
    }

    /// The library as an argument; `-` stands for none.
    pub(crate) fn library_argument(self) -> &'a OsStr {
        self.library.map_or(OsStr::new("-"), Path::as_os_str)
    }
}

/// The value of `LD_PRELOAD` without the libraries that `is_allocator` names.
fn without(list: &OsStr, is_allocator: impl Fn(&[u8]) -> bool) -> OsString {
    let names = list.as_bytes().split(|byte| b" :".contains(byte));
    let others: Vec<&[u8]> = names.filter(|name| !name.is_empty() && !is_allocator(name)).collect();
    OsStr::from_bytes(&others.join(&b':')).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_taken_out_of_a_list_that_spaces_and_colons_separate() {
        let left = |list: &str| without(OsStr::new(list), |name| name.starts_with(b"libmalloc"));
        assert_eq!(left("liba.so libmalloc.so:/lib/b.so  libmalloc2.so"), "liba.so:/lib/b.so");
        assert_eq!([left("libmalloc.so"), left("")], ["", ""]);
    }

    fn environment_of(command: &Command) -> Vec<(OsString, Option<OsString>)> {
        command.get_envs().map(|(key, value)| (key.to_owned(), value.map(OsStr::to_owned))).collect()
    }

    #[test]
    fn the_library_and_the_variables_are_in_the_environment_of_the_child() {
        let environment = [("FREESTONE_THP".to_owned(), "on".into())];
        let preload = Preload { library: Some(Path::new("/lib/x.so")), environment: &environment };
        let mut command = Command::new("true");
        preload.apply(&mut command);
        let expected = [("FREESTONE_THP", "on"), ("LD_PRELOAD", "/lib/x.so")];
        assert_eq!(environment_of(&command), expected.map(|(key, value)| (key.into(), Some(value.into()))));
        assert_eq!(preload.library_argument(), "/lib/x.so");
    }

    #[test]
    fn without_a_library_the_child_does_not_inherit_that_of_the_lab() {
        let mut command = Command::new("true");
        Preload::NONE.apply(&mut command);
        assert_eq!(environment_of(&command), [("LD_PRELOAD".into(), None)]);
        assert_eq!(Preload::NONE.library_argument(), "-");
    }
}
