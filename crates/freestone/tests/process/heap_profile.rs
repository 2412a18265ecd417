//! Heap profiles that the process writes by itself, and those that another process asks for.
use crate::lifetimes::in_child;
use crate::{ALLOCATOR, MIB, alone, await_that};
use freestone::door::profile_page::{MAGIC, PAGE_WORDS, Request};
use freestone::profile::{self, Snapshot};
use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

/// An empty folder for a test's profiles.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("freestone-{name}-{}", process::id()));
        if env::var_os(crate::ALONE).is_none() {
            fs::create_dir_all(&folder).expect("a folder for temporary files can be written");
        }
        Self(folder)
    }

    /// A file in it, as an option's value.
    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// The names of the files, which must all be profiles. Removes them and the folder.
    fn take(self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).expect("a folder").flatten() {
            assert_profile(&entry.path());
            names.push(entry.file_name().into_string().expect("a name in UTF-8"));
        }
        fs::remove_dir_all(&self.0).expect("a folder of this test");
        names.sort();
        names
    }
}

fn assert_profile(path: &Path) {
    let text = fs::read_to_string(path).expect("a text");
    assert!(text.starts_with("heap profile: ") && text.contains("MAPPED_LIBRARIES"), "{text}");
}

/// The folder that the option has in this process.
fn folder_of_option() -> PathBuf {
    let file = PathBuf::from(env::var("FREESTONE_HEAP_PROFILE_FILE").expect("the test sets it"));
    file.parent().expect("a folder").to_owned()
}

fn n_files() -> usize {
    fs::read_dir(folder_of_option()).expect("a folder").count()
}

/// Allocates on a slow path.
fn use_slow_path() {
    for bytes in [200_000, 300_000] {
        drop(black_box(vec![1_u8; black_box(bytes)]));
    }
}

/// Whether allocations are sampled: a large one is, if any is.
fn is_sampling() -> bool {
    let block = black_box(vec![1_u8; black_box(64 * MIB)]);
    let mut text = Vec::new();
    let mut sink = |piece: &[u8]| {
        text.extend_from_slice(piece);
        Ok(())
    };
    profile::write(Snapshot::Live, &mut sink).expect("memory takes everything");
    drop(block);
    let text = String::from_utf8(text).expect("a text");
    let live = text.split([':', '[']).nth(2).and_then(|bytes| bytes.trim().parse::<usize>().ok());
    live.is_some_and(|bytes| bytes >= 64 * MIB)
}

#[test]
fn a_profile_of_what_is_live_and_one_of_the_peak_are_written_at_exit() {
    for (name, expected) in [("%p.%n.%w", &["1.live", "2.peak"][..]), ("%p.%n", &["1"])] {
        let folder = Folder::new("profile-exit");
        let file = folder.file(name);
        let said = alone(&[("HEAP_PROFILE", "on"), ("HEAP_PROFILE_FILE", &file)], || assert!(is_sampling()));
        let Some(said) = said else { return };
        let names = folder.take();
        assert!(said.is_empty() && names.len() == expected.len(), "{said} {names:?}");
        let are_expected =
            names.iter().zip(expected).all(|(name, end)| name.split_once('.').is_some_and(|of| of.1 == *end));
        assert!(are_expected, "{names:?}");
    }
}

#[test]
fn without_profiling_nothing_is_sampled_or_written_at_exit() {
    for mode in ["off", "ready"] {
        let folder = Folder::new("profile-none");
        let file = folder.file("%n");
        let said = alone(&[("HEAP_PROFILE", mode), ("HEAP_PROFILE_FILE", &file)], || assert!(!is_sampling()));
        let Some(said) = said else { return };
        assert_eq!((said.as_str(), folder.take().len()), ("", 0));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported_once() {
    let options = [("HEAP_PROFILE", "on"), ("HEAP_PROFILE_FILE", "/nowhere/at/all/%n.%w"), ("HEAP_PROFILE_MS", "10")];
    let said = alone(&options, || {
        let until = std::time::Instant::now() + std::time::Duration::from_millis(100);
        while std::time::Instant::now() < until {
            use_slow_path();
        }
    });
    let Some(said) = said else { return };
    assert_eq!(said.matches("cannot write the heap profile to /nowhere/at/all/1.live: error 2").count(), 1, "{said}");
    // The last of the process's own, and the one of the peak, which is written at exit alone.
    assert!(said.matches("cannot write").count() <= 2, "{said}");
}

#[test]
fn profiles_are_written_at_an_interval() {
    for background in ["off", "on"] {
        let folder = Folder::new("profile-interval");
        let file = folder.file("%n");
        let options = [
            ("HEAP_PROFILE", "on"),
            ("HEAP_PROFILE_FILE", &*file),
            ("HEAP_PROFILE_MS", "50"),
            ("BACKGROUND", background),
        ];
        let said = alone(&options, || {
            let begun = std::time::Instant::now();
            let is_off = env::var("FREESTONE_BACKGROUND").is_ok_and(|value| value == "off");
            use_slow_path();
            await_that(|| {
                if is_off {
                    use_slow_path();
                }
                n_files() >= 3
            });
            // The clock is coarse: two files may be up to 10 ms closer than the interval.
            let most = 2 + begun.elapsed().as_millis() as usize / 40;
            assert!(n_files() <= most + 25, "{} files", n_files());
            // The process would end in the middle of a file.
            assert_eq!(ALLOCATOR.set_option("background", "off"), Ok(()));
        });
        let Some(said) = said else { return };
        assert_eq!(said, "");
        assert!(folder.take().len() >= 4, "one at exit");
    }
}

#[test]
fn a_profile_is_written_when_so_many_bytes_were_allocated_or_are_live() {
    for option in ["HEAP_PROFILE_ALLOCATED", "HEAP_PROFILE_GROWTH"] {
        let folder = Folder::new("profile-bytes");
        let file = folder.file("%n");
        let options = [("HEAP_PROFILE", "on"), ("HEAP_PROFILE_FILE", &*file), (option, "16m"), ("BACKGROUND", "off")];
        alone(&options, || {
            use_slow_path();
            assert_eq!(n_files(), 0);
            let kept: Vec<_> = (0..5).map(|_| black_box(vec![1_u8; black_box(8 * MIB)])).collect();
            use_slow_path();
            assert!((1..=5).contains(&n_files()), "{} files for {} MiB", n_files(), 8 * kept.len());
        });
        if env::var_os(crate::ALONE).is_some() {
            return;
        }
        assert!(!folder.take().is_empty());
    }
}

#[test]
fn a_signal_starts_profiling_and_another_one_has_a_profile_written() {
    let folder = Folder::new("profile-signal");
    for (name, signal) in [("usr1", libc::SIGUSR1), ("usr2", libc::SIGUSR2)] {
        let file = folder.file(&format!("{name}-%n"));
        let options = [
            ("HEAP_PROFILE", "ready"),
            ("HEAP_PROFILE_FILE", &*file),
            ("HEAP_PROFILE_SIGNAL", name),
            ("BACKGROUND", "off"),
        ];
        let said = alone(&options, || {
            let is_first = env::var("FREESTONE_HEAP_PROFILE_SIGNAL").is_ok_and(|name| name == "usr1");
            let signal = if is_first { libc::SIGUSR1 } else { libc::SIGUSR2 };
            assert!(!is_sampling());
            // SAFETY: the allocator handles the signal.
            assert_eq!(unsafe { libc::raise(signal) }, 0);
            use_slow_path();
            assert!(is_sampling());
            let before = n_files();
            // SAFETY: as above.
            assert_eq!(unsafe { libc::raise(signal) }, 0);
            use_slow_path();
            assert_eq!(n_files(), before + 1);
            use_slow_path();
            assert_eq!(n_files(), before + 1, "a signal is one profile");
        });
        let Some(said) = said else { return };
        assert_eq!((said.as_str(), signal > 0), ("", true));
    }
    // One that the signal asked for, and one at exit, each.
    assert_eq!(folder.take(), ["usr1-1", "usr1-2", "usr2-1", "usr2-2"]);
}

/// A file of this process in the folder for such files.
fn runtime_file(extension: &str) -> PathBuf {
    let folder = env::var("XDG_RUNTIME_DIR").ok().filter(|folder| folder.starts_with('/'));
    Path::new(folder.as_deref().unwrap_or("/tmp")).join(format!("freestone-{}.{extension}", process::id()))
}

/// The words of this process's page, if there is one that is whole.
fn page() -> Option<[u64; PAGE_WORDS]> {
    let bytes = fs::read(runtime_file("profile")).ok().filter(|bytes| bytes.len() == PAGE_WORDS * 8)?;
    let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
    Some(std::array::from_fn(|_| words.next().expect("as many words")))
}

/// Puts a request into the page, and returns the error and whether profiling is on afterwards.
fn ask(request: u64, count: u64) -> (u64, u64) {
    let asked = count * 256 + request;
    let file = fs::OpenOptions::new().write(true).open(runtime_file("profile")).expect("the page");
    file.write_all_at(&asked.to_ne_bytes(), 16).expect("the page is as long");
    await_that(|| {
        use_slow_path();
        page().is_some_and(|words| words[3] == asked)
    });
    page().map(|words| (words[4], words[5])).expect("there was one")
}

#[test]
fn another_process_starts_and_stops_profiling_and_gets_profiles_through_the_page() {
    for background in ["off", "on"] {
        let folder = Folder::new("profile-page");
        let file = folder.file("%n");
        let options = [("HEAP_PROFILE", "ready"), ("HEAP_PROFILE_FILE", &*file), ("BACKGROUND", background)];
        let said = alone(&options, || {
            use_slow_path();
            await_that(|| {
                use_slow_path();
                page().is_some_and(|words| words[0] == MAGIC && words[1] == u64::from(process::id()))
            });
            let profile = runtime_file("profile.heap");
            assert_eq!(ask(Request::Start as u64, 1), (0, 1));
            assert_eq!(ask(Request::Start as u64, 2), (0, 1), "again is no mistake");
            assert!(is_sampling());
            for (request, count) in [(Request::Live, 3), (Request::Peak, 4)] {
                assert_eq!(ask(request as u64, count), (0, 1));
                assert_profile(&profile);
                fs::remove_file(&profile).expect("a profile of this test");
            }
            assert_eq!(ask(Request::Stop as u64, 5), (0, 0));
            assert!(!is_sampling());
            assert_eq!(ask(99, 6).0, libc::EINVAL as u64);
            let status = in_child(|| {
                assert!(page().is_none(), "a child has a page of its own, and not at once");
                await_that(|| {
                    use_slow_path();
                    page().is_some_and(|words| words[1] == u64::from(process::id()))
                });
                ALLOCATOR.report_exit();
                assert!(page().is_none());
            });
            assert_eq!(status, 0);
            assert!(page().is_some(), "the parent's page is still there");
            ALLOCATOR.report_exit();
            assert!(page().is_none());
        });
        let Some(said) = said else { return };
        assert_eq!(said, "");
        folder.take();
    }
}

#[test]
fn in_a_sandbox_nothing_is_sampled() {
    alone(&[("SANDBOX", "on")], || {
        assert!(!profile::start() && !is_sampling());
        thread::spawn(|| assert!(!profile::start())).join().unwrap();
    });
}

#[test]
fn a_program_starts_and_stops_profiling_and_writes_profiles_itself() {
    let folder = Folder::new("profile-own");
    let file = folder.file("%n.%w");
    let said = alone(&[("HEAP_PROFILE_FILE", &*file), ("BACKGROUND", "off")], || {
        assert!(!is_sampling());
        assert!(profile::start() && is_sampling());
        assert!(profile::write_file(Snapshot::Live).is_ok() && profile::write_file(Snapshot::Peak).is_ok());
        let own = folder_of_option().join("own");
        let path = CString::new(own.to_str().expect("a path in UTF-8")).expect("no zero byte");
        assert!(profile::write_to(&path, Snapshot::Live).is_ok());
        let nowhere = CString::new("/nowhere/at/all").expect("no zero byte");
        assert_eq!(profile::write_to(&nowhere, Snapshot::Live).map_err(|errno| errno.0), Err(libc::ENOENT));
        profile::stop();
        assert!(!is_sampling());
    });
    let Some(said) = said else { return };
    assert_eq!((said.as_str(), folder.take()), ("", vec!["1.live".into(), "2.peak".into(), "own".into()]));
}

#[test]
fn a_page_that_another_process_of_this_number_left_is_replaced_and_any_other_file_is_not() {
    let said = alone(&[("HEAP_PROFILE", "ready"), ("BACKGROUND", "off")], || {
        use_slow_path();
        let replaced = in_child(|| {
            let mut words = [0_u64; PAGE_WORDS];
            words[0] = MAGIC;
            let bytes: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            fs::write(runtime_file("profile"), bytes).expect("the folder can be written");
            await_that(|| {
                use_slow_path();
                page().is_some_and(|words| words[1] == u64::from(process::id()))
            });
            ALLOCATOR.report_exit();
        });
        let kept = in_child(|| {
            let file = runtime_file("profile");
            fs::write(&file, "mine").expect("the folder can be written");
            let until = std::time::Instant::now() + std::time::Duration::from_millis(250);
            while std::time::Instant::now() < until {
                use_slow_path();
            }
            assert_eq!(fs::read(&file).expect("still there"), b"mine");
            fs::remove_file(&file).expect("a file of this test");
        });
        assert_eq!((replaced, kept), (0, 0));
        ALLOCATOR.report_exit();
    });
    if let Some(said) = said {
        assert_eq!(said.matches("heap_profile=ready: cannot create").count(), 1, "{said}");
    }
}
