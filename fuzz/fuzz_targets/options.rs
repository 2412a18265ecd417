//! Any text as the value of any option: a refused one changes nothing, an accepted one is within the option's bounds.
#![no_main]

use heap::door::{Settings, find, key};
use heap::options::{OPTIONS, PROFILES, Unit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let settings = Settings::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        let (name, value) = match line.iter().position(|&byte| byte == b'=') {
            Some(at) => (find(&line[..at]), &line[at + 1..]),
            None => match line.split_first() {
                Some((&number, value)) => (Some(usize::from(number) % OPTIONS.len()), value),
                None => (None, line),
            },
        };
        let Some(index) = name else { continue };
        let before = all(&settings);
        match settings.set(index, value) {
            Err(_) => assert_eq!(all(&settings), before),
            Ok(()) => {
                let (spec, number) = (&OPTIONS[index], settings.get(index));
                match spec.unit {
                    Unit::Words(words) => assert!(number < words.len()),
                    Unit::Path => assert_eq!(number, 0),
                    _ => assert!((spec.bounds.0..=spec.bounds.1).contains(&number)),
                }
                assert!(index != key::PROFILE || number < PROFILES.len());
            }
        }
    }
});

fn all(settings: &Settings) -> Vec<usize> {
    (0..OPTIONS.len()).map(|index| settings.get(index)).collect()
}
