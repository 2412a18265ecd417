//! `cargo xtask install`: the files that a package of Freestone consists of. `cargo xtask dist` packs what this installs.
//!
//! | below the prefix | what |
//! |---|---|
//! | `bin` | the command |
//! | `lib` | the libraries; `freestone` has the one that only the command uses |
//! | `lib/pkgconfig`, `lib/cmake` | how compilers find the libraries |
//! | `include` | headers |
//! | `share/man` | a page for each command, and one for the C interface |
//! | `share/bash-completion`, `share/fish`, `share/zsh` | completions |
//! | `share/doc/freestone` | licences, the guide and the other documents, the C and C++ examples |

use crate::archives;
use crate::process::{cargo, output, root, run as run_command, target};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

mod notices;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The shared libraries, of which each version has a file of its own.
const SHARED: [&str; 2] = ["libfreestone.so", "libfreestone_memory.so"];

/// The shells with completions: the name that the command knows, and the file that the shell looks for.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/freestone"),
    ("fish", "share/fish/vendor_completions.d/freestone.fish"),
    ("zsh", "share/zsh/site-functions/_freestone"),
];

/// The files beside `docs` that belong to the documents.
const PAGES: [&str; 8] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "go/README.md",
    "go/CHANGELOG.md",
    "go/bench/README.md",
];

/// Where and how to install.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where the files will be used
    #[arg(long, default_value = "/usr/local")]
    pub prefix: PathBuf,
    /// For packagers: a folder to install into as if it were the root [default: the variable DESTDIR]
    #[arg(long)]
    pub destdir: Option<PathBuf>,
    /// Let pkg-config compute the prefix from the place of its files, so that the tree can be moved
    #[arg(long)]
    pub relocatable: bool,
    /// Remove debug information and the names of local symbols
    #[arg(long)]
    pub strip: bool,
}

/// The folder that is being filled.
struct Tree {
    top: PathBuf,
    /// What stands for the prefix in templates.
    prefix: String,
    strip: bool,
}

impl Tree {
    fn copy(&self, from: &Path, to: &str, mode: u32) -> Result<PathBuf> {
        let to = self.top.join(to);
        let folder = to.parent().context("a file has a folder")?;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}; choose another --prefix", folder.display()))?;
        // Processes that have the old library mapped keep its file.
        let _ = fs::remove_file(&to);
        fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        println!("{}", to.display());
        Ok(to)
    }

    /// Copies what a compiler has made. `what` says which symbols a stripped one loses.
    fn copy_built(&self, from: &Path, to: &str, mode: u32, what: &str) -> Result<()> {
        let to = self.copy(from, to, mode)?;
        if self.strip {
            run_command(Command::new("strip").args(["--enable-deterministic-archives", what]).arg(to))?;
        }
        Ok(())
    }

    fn write(&self, text: &str, to: &str) -> Result<()> {
        let to = self.top.join(to);
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
        println!("{}", to.display());
        Ok(())
    }

    fn copy_filled(&self, from: &Path, to: &str) -> Result<()> {
        let text = fs::read_to_string(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(&fill(&text, &self.prefix), to)
    }

    /// Copies a folder with everything in it.
    fn copy_folder(&self, from: &Path, to: &str) -> Result<()> {
        for file in files_below(from)? {
            self.copy(&from.join(&file), &format!("{to}/{file}"), 0o644)?;
        }
        Ok(())
    }

    fn link(&self, at: &str, to: &str) -> Result<()> {
        let at = self.top.join(at);
        let _ = fs::remove_file(&at);
        symlink(to, &at).with_context(|| format!("cannot link {}", at.display()))?;
        println!("{} -> {to}", at.display());
        Ok(())
    }
}

/// Fills the places of a template.
fn fill(template: &str, prefix: &str) -> String {
    template.replace("@PREFIX@", prefix).replace("@VERSION@", VERSION)
}

/// Builds the release and installs it under `destdir/prefix`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let prefix = std::path::absolute(&options.prefix)?;
    let destdir = options.destdir.clone().or_else(|| std::env::var_os("DESTDIR").map(PathBuf::from));
    let top = match destdir.filter(|destdir| !destdir.as_os_str().is_empty()) {
        Some(destdir) => std::path::absolute(destdir)?.join(prefix.strip_prefix("/")?),
        None => prefix.clone(),
    };
    let prefix = if options.relocatable { "${pcfiledir}/../..".into() } else { prefix.to_string_lossy().into_owned() };
    let tree = Tree { top, prefix, strip: options.strip };
    // One after the other: built together they would share features, and the library must not get those of the tools.
    for package in ["freestone-capi", "freestone-memory", "freestone-lab"] {
        run_command(&mut cargo(&["build", "--release", "--locked", "--package", package]))?;
    }
    // The clock for counting instructions is in the workspace of the peers.
    let beside = target().join("peers");
    let clock = ["build", "--release", "--manifest-path", "crates/peers/Cargo.toml", "--package", "counting-clock"];
    run_command(cargo(&clock).env("CARGO_TARGET_DIR", &beside))?;
    let built = target().join("release");
    install_libraries(&tree, &built)?;
    let clock = beside.join("release/libcounting_clock.so");
    tree.copy_built(&clock, "lib/freestone/libcounting_clock.so", 0o755, "--strip-unneeded")?;
    install_command(&tree, &built.join("freestone"))?;
    install_documents(&tree)
}

/// Installs libraries and what compilers need beside them.
fn install_libraries(tree: &Tree, built: &Path) -> Result<()> {
    let capi = root().join("crates/capi");
    for name in SHARED {
        let (file, soname) = (format!("{name}.{VERSION}"), format!("{name}.0"));
        tree.copy_built(&built.join(name), &format!("lib/{file}"), 0o755, "--strip-unneeded")?;
        tree.link(&format!("lib/{soname}"), &file)?;
        tree.link(&format!("lib/{name}"), &soname)?;
    }
    tree.copy_built(&built.join("libfreestone.a"), "lib/libfreestone.a", 0o644, "--strip-debug")?;
    for name in archives::NAMES {
        let archive = archives::build(name, None, built)?;
        tree.copy_built(&archive, &format!("lib/libfreestone_{name}.a"), 0o644, "--strip-debug")?;
    }
    for template in files_below(&capi.join("pkg"))? {
        let name = template.strip_suffix(".in").context("a template ends with .in")?;
        let folder = if name.ends_with(".pc") { "lib/pkgconfig" } else { "lib/cmake/freestone" };
        tree.copy_filled(&capi.join("pkg").join(&template), &format!("{folder}/{name}"))?;
    }
    tree.copy_folder(&capi.join("include"), "include")
}

/// Installs the command, and its manual and completions, which it prints itself.
fn install_command(tree: &Tree, built: &Path) -> Result<()> {
    // Names of functions stay: the demo is a program to be profiled.
    tree.copy_built(built, "bin/freestone", 0o755, "--strip-debug")?;
    for (shell, file) in SHELLS {
        tree.write(&output(Command::new(built).args(["completions", shell]))?, file)?;
    }
    run_command(Command::new(built).args(["man", "--out"]).arg(tree.top.join("share/man/man1")))?;
    tree.copy_folder(&root().join("crates/capi/man"), "share/man/man3")
}

fn install_documents(tree: &Tree) -> Result<()> {
    let folder = "share/doc/freestone";
    for page in PAGES {
        tree.copy(&root().join(page), &format!("{folder}/{page}"), 0o644)?;
    }
    tree.write(&notices::third_parties()?, &format!("{folder}/THIRD-PARTY-NOTICES"))?;
    tree.copy_folder(&root().join("docs"), &format!("{folder}/docs"))?;
    tree.copy_folder(&root().join("crates/capi/examples"), &format!("{folder}/examples"))
}

/// The files and links below a folder by their paths in it, sorted.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file's name is not text")?;
        if entry.file_type()?.is_dir() {
            files.extend(files_below(&entry.path())?.into_iter().map(|file| format!("{name}/{file}")));
        } else {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::links;
    use crate::samples::Sample;

    #[test]
    fn no_link_of_an_installed_document_leads_to_a_file_that_is_not_installed() {
        let sample = Sample::new(&[("a", "")]);
        let tree = Tree { top: sample.folder().to_owned(), prefix: "/usr".to_owned(), strip: false };
        install_documents(&tree).unwrap();
        let top = sample.folder().join("share/doc/freestone");
        let files = files_below(&top).unwrap();
        assert_eq!(links::complaints(&top, &files).unwrap(), Vec::<String>::new());
        assert!(files.iter().filter(|file| file.ends_with(".md")).count() > 50);
    }

    #[test]
    fn a_template_names_prefix_and_version() {
        assert_eq!(fill("@PREFIX@/lib @VERSION@", "/opt/f"), format!("/opt/f/lib {VERSION}"));
    }

    #[test]
    fn no_template_has_a_place_that_is_not_filled() {
        let pkg = root().join("crates/capi/pkg");
        for template in files_below(&pkg).unwrap() {
            let filled = fill(&fs::read_to_string(pkg.join(&template)).unwrap(), "/opt");
            assert!(!filled.contains('@'), "{template}: {filled}");
        }
    }
}
