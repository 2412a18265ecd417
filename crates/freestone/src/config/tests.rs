extern crate std;
use super::*;

#[test]
fn the_settings_start_at_the_defaults_of_the_table() {
    let settings = Settings::new();
    for (index, spec) in OPTIONS.iter().enumerate() {
        let before = settings.get(index);
        // Limits have no default: an empty value is the same as no value.
        if spec.default().is_empty() {
            continue;
        }
        settings.set(index, spec.default().as_bytes()).unwrap();
        assert_eq!(settings.get(index), before, "{}", spec.key);
    }
}

#[test]
fn values_are_read_or_refused_and_a_refused_one_changes_nothing() {
    let settings = Settings::new();
    settings.set(key::DIRTY_MAX, b"3k").unwrap();
    assert_eq!(settings.get(key::DIRTY_MAX), 3072);
    for (index, text, mistake) in [
        (key::DIRTY_MAX, &b"-1"[..], Mistake::NotANumber),
        (key::DIRTY_MAX, b"", Mistake::NotANumber),
        (key::DIRTY_MAX, b"k", Mistake::NotANumber),
        (key::DIRTY_MAX, b"1 m", Mistake::NotANumber),
        (key::DIRTY_MAX, b"99999999999999999999", Mistake::OutOfRange),
        (key::DIRTY_MAX, b"18446744073709551615k", Mistake::OutOfRange),
        (key::DECAY_MS, b"4294967296", Mistake::OutOfRange),
        (key::BIN_MAX, b"0", Mistake::OutOfRange),
        (key::MISUSE, b"explode", Mistake::NotAWord),
        (key::LIMIT, b"0", Mistake::OutOfRange),
        (key::LIMIT_HARD, b"1k", Mistake::OutOfRange),
        (key::LIMIT, b"all of it", Mistake::NotANumber),
        (key::SPAN_SIZE, b"1m", Mistake::OutOfRange),
        (key::PROFILE, b"fast", Mistake::NotAWord),
        (key::HARDEN, b"checked", Mistake::NotAWord),
        (key::GUARD_SAMPLE, b"0", Mistake::OutOfRange),
        (key::GUARD_SAMPLE, b"1073741825", Mistake::OutOfRange),
        (key::GUARD_SAMPLE, b"often", Mistake::NotANumber),
        (99, b"1", Mistake::UnknownKey),
    ] {
        assert_eq!(settings.set(index, text), Err(mistake), "{index} {text:?}");
    }
    assert_eq!(settings.get(key::DIRTY_MAX), 3072);
    assert_eq!(settings.misuse(), MisusePolicy::Abort);
}

#[test]
fn keys_are_found_whatever_their_case() {
    assert_eq!(find(b"DECAY_MS"), Some(key::DECAY_MS));
    assert_eq!(find(b"decay_ms"), Some(key::DECAY_MS));
    assert_eq!(find(b"decay"), None);
}

#[test]
fn a_bin_never_starts_beyond_its_bound() {
    let settings = Settings::new();
    settings.set(key::BIN_MAX, b"1").unwrap();
    for block in [16, 4096, 32768] {
        assert!(settings.bin_start(block) <= settings.bin_max(block));
    }
}

#[test]
fn every_profile_is_a_word_of_the_option_and_every_value_in_it_is_read() {
    let Unit::Words(words) = OPTIONS[key::PROFILE].unit else { panic!("a profile is a word") };
    assert!(words.split(", ").eq(PROFILES.iter().map(|profile| profile.name)));
    for profile in PROFILES {
        let settings = Settings::new();
        for (name, value) in pairs(profile.options.as_bytes()) {
            settings.set(find(name).unwrap(), value).unwrap();
        }
    }
}

#[test]
fn a_profile_replaces_the_one_before() {
    let settings = Settings::new();
    settings.set(key::PROFILE, b"realtime").unwrap();
    assert_eq!((settings.decay_ms(), settings.prefault()), (None, Prefault::Populate));
    settings.set(key::PROFILE, b"balanced").unwrap();
    assert_eq!((settings.decay_ms(), settings.prefault(), settings.thp()), (Some(1000), Prefault::Off, Thp::Auto));
}

#[test]
fn each_level_of_hardening_is_higher_than_the_one_before() {
    let settings = Settings::new();
    let Unit::Words(words) = OPTIONS[key::HARDEN].unit else { panic!("a level is a word") };
    let levels = words.split(", ").map(|word| {
        settings.set(key::HARDEN, word.as_bytes()).unwrap();
        settings.harden()
    });
    assert!(levels.eq([Harden::Off, Harden::Default, Harden::Checks, Harden::Full]));
    assert!(Harden::Off < Harden::Default && Harden::Default < Harden::Checks && Harden::Checks < Harden::Full);
}

#[test]
fn in_a_sandbox_there_is_no_background_thread_whatever_the_other_options() {
    let settings = Settings::new();
    settings.set(key::SANDBOX, b"on").unwrap();
    settings.set(key::BACKGROUND, b"on").unwrap();
    assert_eq!((settings.sandbox(), settings.background()), (true, Background::Off));
}

#[test]
fn nothing_is_guarded_unless_asked_for_and_nothing_in_a_sandbox() {
    let settings = Settings::new();
    assert_eq!(settings.guard_sample(), None);
    settings.set(key::GUARD_SAMPLE, b"5000").unwrap();
    assert_eq!(settings.guard_sample(), Some(5000));
    settings.set(key::SANDBOX, b"on").unwrap();
    assert_eq!(settings.guard_sample(), None);
}

#[test]
fn every_option_says_what_it_changes_and_no_other() {
    assert_eq!(TEXTS.len(), OPTIONS.len());
    let limit = &OPTIONS[key::LIMIT_HARD];
    assert!(limit.effect().starts_with("hard limit"), "{}", limit.effect());
}
