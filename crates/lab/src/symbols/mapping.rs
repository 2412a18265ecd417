//! A mapping of a process: one line of `/proc/PID/maps`.

/// A stretch of a process's address space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address.
    pub(crate) start: u64,
    /// One past the last.
    pub(crate) end: u64,
    /// Access rights as the kernel prints them: `rw-p`.
    pub(crate) rights: String,
    /// Where in the file it starts.
    pub(crate) offset: u64,
    /// The file, a name in brackets, or nothing.
    pub(crate) path: String,
}

impl Mapping {
    /// Reads one line; `None` if it is none of that file.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (range, mut rest) = line.trim_start().split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        // Rights, offset, device and inode are words; the path is everything behind the spaces that follow.
        let mut word = || {
            rest = rest.trim_start();
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after;
            word
        };
        let (rights, offset, _device, inode) = (word().to_owned(), word(), word(), word());
        inode.parse::<u64>().ok()?;
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
            rights,
            path: rest.trim_start().trim_end_matches('\n').to_owned(),
        })
    }

    /// All lines of a text that are mappings.
    pub(crate) fn parse_all(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse).collect()
    }

    /// Where in the file an address of the mapping is.
    pub(crate) fn file_offset(&self, address: u64) -> u64 {
        address - self.start + self.offset
    }

    /// Whether it is of a file.
    pub(crate) fn is_file(&self) -> bool {
        self.path.starts_with('/')
    }

    /// Whether the process may write to it.
    pub(crate) fn is_writable(&self) -> bool {
        self.rights.starts_with("rw")
    }

    /// Whether what the process writes to it is in no file and no other process.
    pub(crate) fn is_private(&self) -> bool {
        self.rights.ends_with('p')
    }

    /// The file's name without its folders.
    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_range_rights_an_offset_and_perhaps_a_path_with_spaces() {
        let line = "7f0a10-7f0b20 r-xp 00001000 fe:01 1234                       /lib/a b.so (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f_0a10, 0x7f_0b20, 0x1000));
        assert_eq!((mapping.rights.as_str(), mapping.path.as_str()), ("r-xp", "/lib/a b.so (deleted)"));
        assert_eq!(mapping.file_offset(0x7f_0a18), 0x1008);
        assert!(mapping.is_file() && !mapping.is_writable() && mapping.is_private());
        assert_eq!(mapping.file_name(), "a b.so (deleted)");
        let anonymous = Mapping::parse("1000-2000 rw-p 00000000 00:00 0 ").unwrap();
        assert!(anonymous.path.is_empty() && anonymous.is_writable() && !anonymous.is_file());
        assert_eq!(Mapping::parse("1000-2000 rw-p 00000000 00:00 0 [heap]").unwrap().path, "[heap]");
    }

    #[test]
    fn other_lines_are_no_mappings() {
        assert_eq!(Mapping::parse("MAPPED_LIBRARIES:"), None);
        assert_eq!(Mapping::parse("1000-20 rw-p 0 0:0 x"), None);
        assert!(Mapping::parse_all("a\n1000-2000 rw-p 00000000 00:00 0\nb").len() == 1);
    }
}
