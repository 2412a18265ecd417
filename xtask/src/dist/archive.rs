//! Archives that are the same, byte for byte, for the same files: entries by name, one time, one owner, and modes of two kinds.

use crate::install::files_below;
use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tar::{EntryType, Header};

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Folder,
    File { bytes: Vec<u8>, executable: bool },
    Link(String),
}

/// An entry, by its path in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub path: String,
    pub content: Content,
}

impl Entry {
    /// A file that is not executed.
    pub(super) fn file(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), content: Content::File { bytes: bytes.into(), executable: false } }
    }

    /// The file or link at `folder/path`.
    pub(super) fn read(folder: &Path, path: &str) -> Result<Self> {
        let at = folder.join(path);
        let metadata = fs::symlink_metadata(&at).with_context(|| format!("cannot read {}", at.display()))?;
        let content = if metadata.is_symlink() {
            Content::Link(fs::read_link(&at)?.into_os_string().into_string().ok().context("a link's target is text")?)
        } else {
            let bytes = fs::read(&at).with_context(|| format!("cannot read {}", at.display()))?;
            Content::File { bytes, executable: metadata.permissions().mode() & 0o100 != 0 }
        };
        Ok(Self { path: path.to_owned(), content })
    }
}

/// Every file and link below a folder.
pub(super) fn tree(folder: &Path) -> Result<Vec<Entry>> {
    files_below(folder)?.iter().map(|path| Entry::read(folder, path)).collect()
}

/// A compressed archive of the entries, each below `top`, and of the folders in which they are.
pub(super) fn tar_gz(mut entries: Vec<Entry>, top: &str, seconds: u64) -> Result<Vec<u8>> {
    entries.iter_mut().for_each(|entry| entry.path = format!("{top}{}", entry.path));
    add_folders(&mut entries);
    let mut archive = tar::Builder::new(Vec::new());
    for Entry { path, content } in &entries {
        let mut header = Header::new_gnu();
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_size(0);
        match content {
            Content::Folder => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                archive.append_data(&mut header, path, std::io::empty())?;
            }
            Content::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                archive.append_link(&mut header, path, target)?;
            }
            Content::File { bytes, executable } => {
                header.set_entry_type(EntryType::Regular);
                header.set_mode(if *executable { 0o755 } else { 0o644 });
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, path, bytes.as_slice())?;
            }
        }
    }
    gz(&archive.into_inner()?)
}

/// Adds the folders of the entries, and sorts all: a folder comes before what is in it.
fn add_folders(entries: &mut Vec<Entry>) {
    let mut folders = Vec::new();
    for entry in entries.iter() {
        folders.extend(entry.path.match_indices('/').map(|(at, _)| entry.path[..=at].to_owned()));
    }
    // The folder itself, at the top of a Debian package.
    folders.retain(|folder| folder != "./");
    folders.sort();
    folders.dedup();
    entries.extend(folders.into_iter().map(|path| Entry { path, content: Content::Folder }));
    entries.sort_by(|a, b| a.path.cmp(&b.path));
}

/// Compressed bytes, without a time and a name.
pub(super) fn gz(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

/// The entries of a compressed archive.
#[cfg(test)]
pub(super) fn read_tar_gz(bytes: &[u8]) -> Result<Vec<Entry>> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    let mut entries = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let content = match entry.header().entry_type() {
            EntryType::Directory => Content::Folder,
            EntryType::Symlink => {
                Content::Link(entry.link_name()?.context("a link has a target")?.to_string_lossy().into_owned())
            }
            _ => {
                let executable = entry.header().mode()? & 0o100 != 0;
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut entry, &mut bytes)?;
                Content::File { bytes, executable }
            }
        };
        entries.push(Entry { path, content });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let long = format!("share/{}/page", "long".repeat(40));
        vec![
            Entry { path: "lib/libx.so".into(), content: Content::Link("libx.so.0".into()) },
            Entry { path: "bin/x".into(), content: Content::File { bytes: b"code".to_vec(), executable: true } },
            Entry::file(&long, "text"),
        ]
    }

    #[test]
    fn the_order_of_the_entries_does_not_matter_and_the_time_does() {
        let mut turned = entries();
        turned.reverse();
        let archive = tar_gz(entries(), "x-1/", 1_000_000_000).unwrap();
        assert!(tar_gz(turned, "x-1/", 1_000_000_000).unwrap() == archive);
        assert!(tar_gz(entries(), "x-1/", 1_000_000_001).unwrap() != archive);
    }

    #[test]
    fn what_is_packed_is_unpacked_with_its_folders_before_it() {
        let unpacked = read_tar_gz(&tar_gz(entries(), "x-1/", 0).unwrap()).unwrap();
        let paths: Vec<&str> = unpacked.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths[..5], ["x-1/", "x-1/bin/", "x-1/bin/x", "x-1/lib/", "x-1/lib/libx.so"]);
        for entry in entries() {
            let there = unpacked.iter().find(|other| other.path == format!("x-1/{}", entry.path));
            assert_eq!(there.map(|there| &there.content), Some(&entry.content), "{}", entry.path);
        }
    }

    #[test]
    fn nothing_tells_who_packed_it_where_and_when() {
        let bytes = tar_gz(entries(), "x-1/", 5).unwrap();
        // Flags and time of the format: no name, no time.
        assert_eq!(bytes[3..8], [0; 5]);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (5, 0, 0));
            assert_eq!((header.username(), header.groupname()), (Ok(Some("root")), Ok(Some("root"))));
        }
    }
}
