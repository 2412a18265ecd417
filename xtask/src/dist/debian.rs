//! Debian packages of the installed files, each of which is in exactly one.
//!
//! ```text
//!  NAME_VERSION_ARCHITECTURE.deb: an `ar` archive of  debian-binary · control.tar.gz · data.tar.gz
//! ```

use super::archive::{Content, Entry, gz, tar_gz};
use crate::install::VERSION;
use crate::process::output;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A package.
struct Package {
    name: &'static str,
    section: &'static str,
    /// Beside what its binaries need.
    depends: &'static [&'static str],
    summary: &'static str,
    more: &'static str,
    /// How the paths of its files begin and end, below the prefix.
    files: &'static [(&'static str, &'static str)],
}

/// All of them. A file belongs to the first that names it.
const PACKAGES: [Package; 4] = [
    Package {
        name: "libfreestone0",
        section: "libs",
        depends: &[],
        summary: "memory allocator that gives memory back by itself",
        more: "A malloc for C and C++ programs, linked or preloaded, and the checked memory functions.",
        files: &[("lib/libfreestone.so.0", ""), ("lib/libfreestone_memory.so.0", "")],
    },
    Package {
        name: "libfreestone-dev",
        section: "libdevel",
        depends: &["libfreestone0 (= VERSION)"],
        summary: "memory allocator that gives memory back by itself (development files)",
        more: "Headers for C and C++, static libraries, TLSF heaps and pools as libraries of their own, and files for\n pkg-config and CMake.",
        files: &[
            ("include/", ""),
            ("lib/pkgconfig/", ""),
            ("lib/cmake/", ""),
            ("lib/lib", ".a"),
            ("lib/lib", ".so"),
            ("share/man/man3/", ""),
        ],
    },
    Package {
        name: "freestone",
        section: "devel",
        depends: &["libfreestone0 (= VERSION)"],
        summary: "runs and compares programs under memory allocators",
        more: "The command runs a program under Freestone or under several allocators, and shows its time and memory, which\n functions hold memory, and which blocks are lost.",
        files: &[
            ("bin/", ""),
            ("lib/freestone/", ""),
            ("share/man/man1/", ""),
            ("share/bash-completion/", ""),
            ("share/fish/", ""),
            ("share/zsh/", ""),
        ],
    },
    Package {
        name: "freestone-doc",
        section: "doc",
        depends: &[],
        summary: "memory allocator that gives memory back by itself (documentation)",
        more: "The guide, the other documents, and examples in C and C++.",
        files: &[("share/doc/", "")],
    },
];

/// The libraries of the system that binaries may need, and the packages that have them.
const SYSTEM: [(&str, &str); 5] = [
    ("libc.so.", "libc6"),
    ("libm.so.", "libc6"),
    ("libdl.so.", "libc6"),
    ("ld-linux", "libc6"),
    ("libgcc_s.so.", "libgcc-s1"),
];

/// Each package's file name and bytes, made of the files that are installed below `stage`/usr.
pub(super) fn packages(stage: &Path, entries: &[Entry], seconds: u64) -> Result<Vec<(String, Vec<u8>)>> {
    let architecture = architecture()?;
    let mut parts: Vec<Vec<&Entry>> = PACKAGES.iter().map(|_| Vec::new()).collect();
    for entry in entries {
        parts[package_of(&entry.path)?].push(entry);
    }
    let licences = licences(entries)?;
    let build = |(package, files): (&Package, &Vec<&Entry>)| {
        let all = package.section == "doc";
        let architecture = if all { "all" } else { &architecture };
        let data: Vec<Entry> = files.iter().map(|file| placed(file)).collect::<Result<_>>()?;
        let data =
            [data, vec![Entry::file(&format!("usr/share/doc/{}/copyright", package.name), licences.as_str())]].concat();
        let needs = if all { BTreeSet::new() } else { needs(stage, files)? };
        let control = control(package, architecture, &needs, &data);
        let deb = deb(package, &control, data, seconds)?;
        Ok((format!("{}_{VERSION}_{architecture}.deb", package.name), deb))
    };
    PACKAGES.iter().zip(&parts).map(build).collect()
}

/// The package that contains a file, by its number.
fn package_of(path: &str) -> Result<usize> {
    let is_there = |(start, end): &(&str, &str)| path.starts_with(start) && path.ends_with(end);
    let found = PACKAGES.iter().position(|package| package.files.iter().any(is_there));
    found.with_context(|| {
        format!("{path} is installed and in no Debian package: add it to one in xtask/src/dist/debian.rs")
    })
}

/// The file where Debian has it: manual pages are compressed, and zsh looks elsewhere.
fn placed(entry: &Entry) -> Result<Entry> {
    let path = entry.path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/");
    let path = path.replace("share/doc/freestone/", "share/doc/freestone-doc/");
    match &entry.content {
        Content::File { bytes, .. } if path.starts_with("share/man/") => {
            Ok(Entry::file(&format!("usr/{path}.gz"), gz(bytes)?))
        }
        content => Ok(Entry { path: format!("usr/{path}"), content: content.clone() }),
    }
}

/// What Debian asks each package to say about licences.
fn licences(entries: &[Entry]) -> Result<String> {
    let text = |name: &str| {
        let file = entries.iter().find(|entry| entry.path == format!("share/doc/freestone/{name}"));
        match file.map(|file| &file.content) {
            Some(Content::File { bytes, .. }) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            _ => bail!("{name} is not installed"),
        }
    };
    Ok(format!(
        "Freestone is licensed under MIT or Apache-2.0, at your choice. On Debian systems the text of the latter is in\n\
         /usr/share/common-licenses/Apache-2.0.\n\n{}\n{}",
        text("LICENSE-MIT")?,
        text("THIRD-PARTY-NOTICES")?
    ))
}

/// The packages that a package's binaries need.
fn needs(stage: &Path, files: &[&Entry]) -> Result<BTreeSet<String>> {
    let is_binary =
        |entry: &&&Entry| matches!(&entry.content, Content::File { bytes, .. } if bytes.starts_with(b"\x7fELF"));
    let mut needs = BTreeSet::new();
    for binary in files.iter().filter(is_binary) {
        let listing = output(Command::new("objdump").arg("-p").arg(stage.join("usr").join(&binary.path)))?;
        needs.extend(needed(&listing).with_context(|| format!("of {}", binary.path))?);
    }
    Ok(needs)
}

/// The packages in what `objdump -p` prints of a binary.
fn needed(listing: &str) -> Result<BTreeSet<String>> {
    let words = || listing.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut needed = BTreeSet::new();
    for line in words().filter(|line| line.first() == Some(&"NEEDED")) {
        let package = SYSTEM.iter().find(|(start, _)| line[1].starts_with(start));
        needed
            .insert(package.with_context(|| format!("which package has {}? add it to SYSTEM", line[1]))?.1.to_owned());
    }
    let versions = words().filter_map(|line| {
        let (major, minor) = line.last()?.strip_prefix("GLIBC_")?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.split('.').next()?.parse::<u32>().ok()?))
    });
    if let (Some((major, minor)), true) = (versions.max(), needed.remove("libc6")) {
        needed.insert(format!("libc6 (>= {major}.{minor})"));
    }
    Ok(needed)
}

/// The file `control`.
fn control(package: &Package, architecture: &str, needs: &BTreeSet<String>, data: &[Entry]) -> String {
    let bytes: usize =
        data.iter().map(|entry| if let Content::File { bytes, .. } = &entry.content { bytes.len() } else { 0 }).sum();
    let own = package.depends.iter().map(|depends| depends.replace("VERSION", VERSION));
    let depends: Vec<String> = own.chain(highest(needs)).collect();
    let depends = if depends.is_empty() { String::new() } else { format!("Depends: {}\n", depends.join(", ")) };
    format!(
        "Package: {}\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: {}\nInstalled-Size: {}\n{depends}Section: {}\nPriority: optional\n\
         Description: {}\n {}\n",
        package.name,
        env!("CARGO_PKG_AUTHORS"),
        bytes.div_ceil(1024),
        package.section,
        package.summary,
        package.more
    )
}

/// The needs, of which each names its package once, with the highest version.
fn highest(needs: &BTreeSet<String>) -> Vec<String> {
    let version = |need: &str| {
        let digits = need.split(">= ").nth(1).unwrap_or_default().trim_end_matches(')');
        digits.split('.').filter_map(|part| part.parse().ok()).collect::<Vec<u32>>()
    };
    let name = |need: &str| need.split(' ').next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = needs.iter().map(|need| name(need)).collect();
    let highest =
        |package: &String| needs.iter().filter(|need| name(need) == *package).max_by_key(|need| version(need)).cloned();
    names.iter().filter_map(highest).collect()
}

fn deb(package: &Package, control: &str, data: Vec<Entry>, seconds: u64) -> Result<Vec<u8>> {
    let mut about = vec![Entry::file("control", control)];
    if package.section == "libs" {
        about.push(Entry::file("triggers", "activate-noawait ldconfig\n"));
    }
    let mut archive = ar::Builder::new(Vec::new());
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(about, "./", seconds)?),
        ("data.tar.gz", tar_gz(data, "./", seconds)?),
    ];
    for (name, bytes) in members {
        let mut header = ar::Header::new(name.into(), bytes.len() as u64);
        header.set_mtime(seconds);
        header.set_mode(0o100_644);
        archive.append(&header, bytes.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

/// Debian's name of the architecture.
fn architecture() -> Result<String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64".into()),
        "aarch64" => Ok("arm64".into()),
        "riscv64" => Ok("riscv64".into()),
        other => bail!("Freestone has no packages for {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_each_kind_is_in_its_package_and_an_unknown_one_is_refused() {
        let name = |path: &str| PACKAGES[package_of(path).unwrap()].name;
        assert_eq!(name("lib/libfreestone.so.0.1.0"), "libfreestone0");
        assert_eq!(
            (name("lib/libfreestone.so"), name("lib/libfreestone_tlsf.a")),
            ("libfreestone-dev", "libfreestone-dev")
        );
        assert_eq!((name("bin/freestone"), name("share/man/man1/freestone-run.1")), ("freestone", "freestone"));
        assert_eq!(name("share/doc/freestone/docs/tuning.md"), "freestone-doc");
        assert!(package_of("etc/freestone.conf").unwrap_err().to_string().contains("no Debian package"));
    }

    #[test]
    fn binaries_need_the_highest_version_that_one_of_them_names() {
        let listing = "  NEEDED  libc.so.6\n  NEEDED  libgcc_s.so.1\n  0x09691a75 0x00 04 GLIBC_2.2.5\n 0x069691b4 0x00 02 GLIBC_2.34\n GCC_3.0\n";
        let mut needs = needed(listing).unwrap();
        assert_eq!(needs, BTreeSet::from(["libc6 (>= 2.34)".to_owned(), "libgcc-s1".to_owned()]));
        needs.insert("libc6 (>= 2.4)".into());
        assert_eq!(highest(&needs), ["libc6 (>= 2.34)", "libgcc-s1"]);
        assert!(needed("NEEDED libother.so.1\n").is_err());
    }

    #[test]
    fn a_package_is_the_three_members_that_dpkg_expects() {
        let licence = |name: &str| Entry::file(&format!("share/doc/freestone/{name}"), "text");
        let entries =
            [licence("LICENSE-MIT"), licence("THIRD-PARTY-NOTICES"), Entry::file("share/man/man1/freestone.1", "page")];
        let built = packages(Path::new("/none"), &entries, 7).unwrap();
        assert!(built == packages(Path::new("/none"), &entries, 7).unwrap());
        let (name, bytes) = &built[2];
        assert!(name.starts_with("freestone_0."), "{name}");
        let mut archive = ar::Archive::new(bytes.as_slice());
        let mut members = Vec::new();
        while let Some(member) = archive.next_entry() {
            let mut member = member.unwrap();
            let name = String::from_utf8(member.header().identifier().to_vec()).unwrap();
            assert_eq!(member.header().mtime(), 7);
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut member, &mut bytes).unwrap();
            members.push((name, bytes));
        }
        assert_eq!(
            members.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["debian-binary", "control.tar.gz", "data.tar.gz"]
        );
        let data = super::super::archive::read_tar_gz(&members[2].1).unwrap();
        assert!(data.iter().any(|entry| entry.path.ends_with("usr/share/man/man1/freestone.1.gz")), "{data:?}");
    }
}
