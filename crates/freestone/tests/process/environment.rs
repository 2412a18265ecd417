//! Options in the environment, and the report.
use crate::{ALLOCATOR, MIB, alone, await_that};
use freestone::options::Mistake;
use std::hint::black_box;
use std::{env, fs};

#[test]
fn options_in_the_environment_override_the_profile_wherever_it_stands() {
    let options = [("DECAY_MS", "250"), ("PROFILE", "lean"), ("THP", "on")];
    let said = alone(&options, || {
        let found = ["decay_ms", "thp", "bin_max", "dirty_max"].map(|name| ALLOCATOR.option(name));
        assert_eq!(found, [Some(250), Some(1), Some(64), Some(MIB)]);
        assert_eq!(ALLOCATOR.option("colour"), None);
        assert_eq!(ALLOCATOR.set_option("decay_ms", "300"), Ok(()));
        assert_eq!(ALLOCATOR.option("decay_ms"), Some(300));
        assert_eq!(ALLOCATOR.set_option("decay_ms", "soon"), Err(Mistake::NotANumber));
        assert_eq!(ALLOCATOR.option("decay_ms"), Some(300));
    });
    assert!(
        said.is_none_or(|said| !said.contains("DECAY_MS") && !said.contains("PROFILE")),
        "a right option is reported"
    );
}

#[test]
fn a_wrong_option_is_reported_with_its_source_and_ignored() {
    let options = [("DECAY_MS", "soon"), ("COLOUR", "red")];
    let said = alone(&options, || {
        assert_eq!(ALLOCATOR.option("decay_ms"), Some(1000));
    });
    for option in
        ["option FREESTONE_DECAY_MS=soon (environment) ignored", "option FREESTONE_COLOUR=red (environment) ignored"]
    {
        assert!(said.as_ref().is_none_or(|said| said.matches(option).count() == 1), "{said:?}");
    }
}

#[test]
fn a_name_that_is_nearly_an_options_is_reported_with_that_option() {
    let said = alone(&[("DECAY_M", "5"), ("BIN_MAX", "many")], || {
        assert_eq!(ALLOCATOR.option("decay_ms"), Some(1000));
    });
    let Some(said) = said else { return };
    assert!(said.contains("FREESTONE_DECAY_M=5 (environment) ignored"), "{said}");
    assert_eq!(said.matches("did you mean").count(), 1, "{said}");
    assert!(said.contains("did you mean `FREESTONE_DECAY_MS`?"), "{said}");
}

#[test]
fn relative_paths_hold_when_the_program_changes_its_folder() {
    alone(&[("REPORT", "report"), ("LIVE", "page"), ("RECORD", "calls"), ("BACKGROUND", "off")], || {
        drop(vec![1_u8; MIB]);
        fs::create_dir("other").expect("the folder of this test");
        env::set_current_dir("other").expect("it was just made");
        assert!(fs::exists("../page").expect("a folder that can be read"), "there is no page of statistics");
        (0..100_000).for_each(|n| drop(black_box(vec![0_u8; n % 1000])));
        ALLOCATOR.report_exit();
        let calls = fs::metadata("../calls").expect("the trace was written");
        assert!(calls.len() > 100_000, "{} bytes: the trace ends where the folder was changed", calls.len());
        let text = fs::read_to_string("../report").expect("the report was written");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(["report", "calls", "../page"].map(|path| fs::exists(path).ok()), [Some(false); 3]);
    });
}

#[test]
fn the_report_has_a_line_for_the_start_for_samples_and_for_the_end() {
    let path = env::temp_dir().join(format!("freestone-process-{}", std::process::id()));
    let options = [("REPORT", path.to_str().expect("the folder has a name in ASCII")), ("REPORT_MS", "5")];
    let said = alone(&options, || {
        let path = env::var("FREESTONE_REPORT").expect("the test sets it");
        let block = vec![1_u8; MIB];
        await_that(|| fs::read_to_string(&path).unwrap().matches(r#""event":"sample""#).count() >= 2);
        ALLOCATOR.report_exit();
        drop(block);
    });
    if said.is_some() {
        let text = fs::read_to_string(&path).expect("the report was written");
        fs::remove_file(&path).expect("the report can be removed");
        let events: Vec<_> = text.lines().filter_map(|line| line.split('"').nth(3)).collect();
        assert_eq!((events.first(), events.iter().filter(|event| **event == "start").count()), (Some(&"start"), 1));
        // The background thread may write one sample more.
        assert_eq!(events.iter().filter(|event| **event == "exit").count(), 1, "{text}");
        let live = |line: &str| line.split(r#""live_bytes":"#).nth(1)?.split(',').next()?.parse().ok();
        let exit = text.lines().find(|line| line.contains(r#""event":"exit""#)).expect("one line");
        assert!(live(exit).is_some_and(|bytes: usize| bytes >= MIB), "{exit}");
    }
}
