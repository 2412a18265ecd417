use super::*;
use crate::config::key;
use std::string::String;

const WHAT: Misuse = Misuse::DoubleFree { block_bytes: 48 };

fn text_of(finding: &Finding<'_>, at: &Site) -> String {
    let mut text = String::new();
    finding.text(at, &mut text).unwrap();
    text
}

fn site(thread: i32, addresses: &[usize]) -> Site {
    Site { thread, stack: Stack::of(addresses.iter().copied()) }
}

#[test]
fn a_finding_has_the_crime_first_then_each_stack_that_is_known() {
    let pid = process::id();
    let finding = Finding::new(WHAT, 0x1000, 3);
    let first = std::format!(
        "freestone: double free of 0x1000 (48-byte block, freed by thread 3)\n  in process {pid}, kernel thread 9:\n    0x8\n"
    );
    assert_eq!(text_of(&finding, &site(9, &[8])), first);
    let mut history = History { allocated: site(1, &[16, 17]), freed: None };
    let allocated = std::format!("{first}  allocated in kernel thread 1:\n    0x10\n    0x11\n");
    assert_eq!(text_of(&Finding::new(WHAT, 0x1000, 3).with_history(&history), &site(9, &[8])), allocated);
    history.freed = Some(site(2, &[]));
    let freed = std::format!("{allocated}  freed in kernel thread 2:\n");
    assert_eq!(text_of(&Finding::new(WHAT, 0x1000, 3).with_history(&history), &site(9, &[8])), freed);
}

#[test]
fn a_finding_is_reported_unless_it_is_to_be_ignored_and_the_policy_is_the_callers() {
    let settings = Settings::new();
    for (word, policy) in
        [("abort", MisusePolicy::Abort), ("report", MisusePolicy::Report), ("ignore", MisusePolicy::Ignore)]
    {
        settings.set(key::MISUSE, word.as_bytes()).unwrap();
        assert_eq!(Finding::new(WHAT, 0x1000, 1).report(&settings), policy);
        assert_eq!(super::super::seen::take(), [(WHAT, 0x1000)]);
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "no file is appended to there")]
#[cfg_attr(miri, ignore = "calls the kernel")]
fn a_report_gets_the_finding_as_one_line_of_json() {
    let settings = Settings::new();
    let path = std::env::temp_dir().join(std::format!("freestone-finding-{}", process::id()));
    settings.report_file().set(path.as_os_str().as_encoded_bytes()).unwrap();
    settings.set(key::MISUSE, b"report").unwrap();
    assert_eq!(Finding::new(WHAT, 0x1000, 1).at(site(5, &[8])).report(&settings), MisusePolicy::Report);
    let line = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let pid = process::id();
    assert_eq!(
        line,
        std::format!(
            r#"{{"event":"misuse","pid":{pid},"finding":"freestone: double free of 0x1000 (48-byte block, freed by thread 1)\n  in process {pid}, kernel thread 5:\n    0x8\n"}}"#
        ) + "\n"
    );
}

#[test]
fn what_json_gives_a_meaning_is_escaped() {
    assert_eq!(std::format!("{}", Escaped("a\"b\\c\nd\u{1}é")), "a\\\"b\\\\c\\nd\\u0001é");
}
