//! The suite of real programs: programs that others wrote, each with inputs that a seed determines.
//!
//! Layer: below `allocator`; it knows how a program is started and nothing of what is measured.
//!
//! | module | owns |
//! |---|---|
//! | [`catalogue`] | the list of all programs |
//! | [`inputs`] | the generated inputs |
//! | [`workshop`] | the folder with the inputs of one program, made ready before it is measured |

pub(crate) mod catalogue;
mod inputs;
pub(crate) mod workshop;

use crate::process::command_file;

/// A real program and the job that it does.
pub(crate) struct Program {
    /// Its name on the command line and in results.
    pub(crate) name: &'static str,
    /// The job, in a few words.
    pub(crate) does: &'static str,
    /// The commands that it needs, each with the Debian package that has it.
    needs: &'static [(&'static str, &'static str)],
    /// The files that its job reads.
    inputs: &'static [Input],
    /// A shell script that is run once in the folder with the inputs, under no allocator; may be empty.
    prepare: &'static str,
    /// What runs under the allocators.
    pub(crate) job: Job,
}

/// A file that a job reads: its name and what makes its contents.
type Input = (&'static str, fn() -> String);

/// What runs under the allocators.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// A command and its arguments.
    Command(&'static [&'static str]),
    /// A server, and the shell script of its client, which runs under no allocator.
    Server {
        /// The server and its arguments.
        server: &'static [&'static str],
        /// The client's script.
        client: &'static str,
    },
}

impl Program {
    /// The packages of the commands that are not installed.
    pub(crate) fn missing_packages(&self) -> Vec<&'static str> {
        let is_missing = |&&(command, _): &&(&str, &str)| command_file::find(command).is_err();
        self.needs.iter().filter(is_missing).map(|&(_, package)| package).collect()
    }
}

/// The command that installs what `programs` lack; `None` if they lack nothing.
pub(crate) fn installation(programs: &[&Program]) -> Option<String> {
    let mut packages: Vec<&str> = programs.iter().flat_map(|program| program.missing_packages()).collect();
    packages.sort_unstable();
    packages.dedup();
    (!packages.is_empty()).then(|| format!("apt install --no-install-recommends {}", packages.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn needing(needs: &'static [(&'static str, &'static str)]) -> Program {
        Program { name: "p", does: "nothing", needs, inputs: &[], prepare: "", job: Job::Command(&["true"]) }
    }

    #[test]
    fn the_packages_of_missing_commands_are_named_once_and_in_one_line() {
        let (whole, lacking) = (needing(&[("sh", "dash")]), needing(&[("sh", "dash"), ("no-such-command", "nothing")]));
        assert!(whole.missing_packages().is_empty() && installation(&[&whole]).is_none());
        let line = installation(&[&lacking, &whole, &lacking]).unwrap();
        assert_eq!(line, "apt install --no-install-recommends nothing");
    }
}
