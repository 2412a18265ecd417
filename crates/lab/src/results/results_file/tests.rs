use super::*;
use crate::results::file_header::Seed;
use crate::results::machine::Machine;
use crate::results::outcome::Outcome;

fn sample() -> (Header, Run) {
    let header = Header::new(Machine::here(), Seed(7), &[Allocator::system()]);
    let outcome = Outcome::Figure { name: "moved".into(), value: 10.0 };
    (header, Run { subject: "experiment E".into(), allocator: "system".into(), round: 0, outcome })
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("freestone-results-test-{}-{name}.jsonl", std::process::id()))
}

#[test]
fn what_is_written_is_read_back() {
    let path = scratch("whole");
    let (header, run) = sample();
    let mut writer = Writer::create(&path, &header).unwrap();
    writer.run(&run).unwrap();
    writer.warning(&Warning::HugePagesAlways).unwrap();
    let results = read(&path).unwrap();
    assert_eq!((results.runs.len(), results.warnings), (1, vec![Warning::HugePagesAlways]));
    assert_eq!(results.runs[0].allocator, "system");
    fs::remove_file(path).unwrap();
}

#[test]
fn a_truncated_file_keeps_its_whole_lines_and_says_so() {
    let path = scratch("truncated");
    let (header, run) = sample();
    let mut writer = Writer::create(&path, &header).unwrap();
    writer.run(&run).unwrap();
    writer.run(&run).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 20]).unwrap();
    let results = read(&path).unwrap();
    assert_eq!(results.runs.len(), 1);
    assert!(results.warnings[0].to_string().contains("line 3 is cut short"));
    fs::remove_file(path).unwrap();
}

#[test]
fn a_file_that_was_cut_within_a_letter_keeps_its_whole_lines() {
    let path = scratch("letter");
    let (header, run) = sample();
    let mut writer = Writer::create(&path, &header).unwrap();
    writer.run(&run).unwrap();
    writer.run(&Run { subject: "é".into(), ..run }).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.iter().position(|&byte| byte == "é".as_bytes()[0]).unwrap() + 1);
    fs::write(&path, bytes).unwrap();
    let results = read(&path).unwrap();
    assert_eq!((results.runs.len(), results.warnings.len()), (1, 1));
    assert!(results.warnings[0].to_string().contains("line 3 is cut short"));
    fs::remove_file(path).unwrap();
}

#[test]
fn another_version_and_another_file_are_refused_with_advice() {
    let path = scratch("version");
    fs::write(&path, format!("{{\"format\":\"{FORMAT}\",\"version\":99}}\n")).unwrap();
    let text = read(&path).unwrap_err().to_string();
    assert!(text.contains("version 99") && text.contains("measure again"), "{text}");
    fs::write(&path, "hello\n").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("not a results file"));
    fs::write(&path, "").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("not a results file"));
    fs::remove_file(path).unwrap();
}

#[test]
fn the_allocators_with_their_versions_replace_those_of_the_header() {
    let path = scratch("allocators");
    let (header, _) = sample();
    let mut writer = Writer::create(&path, &header).unwrap();
    writer.allocators(&[Allocator { version: Some("1".into()), ..Allocator::system() }]).unwrap();
    assert_eq!(read(&path).unwrap().header.allocators[0].version.as_deref(), Some("1"));
    fs::remove_file(path).unwrap();
}

#[test]
fn a_new_file_is_named_after_its_time_and_what_is_measured() {
    let name = new_path("bench").to_string_lossy().into_owned();
    assert!(name.starts_with("freestone-results/20") && name.ends_with("-bench.jsonl"), "{name}");
}
