use super::*;
use crate::process::command_record::CommandRecord;
use crate::scratch_file::ScratchFile;

fn begin(file: &ScratchFile) -> Measurement {
    Measurement::begin("test", Some(file.path()), Some(7), &[Allocator::system()]).unwrap()
}

#[test]
fn a_run_is_in_the_file_as_soon_as_it_is_kept() {
    let file = ScratchFile::new("measurement-test").unwrap();
    let mut measurement = begin(&file);
    let outcome = Outcome::Command(CommandRecord::example(1000, 4096));
    measurement.keep("x", "system", 0, outcome).unwrap();
    let results = results_file::read(file.path()).unwrap();
    assert_eq!((results.runs.len(), results.header.seed), (1, Some(Seed(7))));
    assert_eq!(measurement.finish("system").unwrap().subjects(), ["x"]);
}

#[test]
fn a_warning_that_comes_twice_is_recorded_once() {
    let file = ScratchFile::new("measurement-test").unwrap();
    let mut measurement = begin(&file);
    let before = measurement.warnings.len();
    for _ in 0..2 {
        measurement.leave_out(["a".to_owned(), "b".to_owned()]).unwrap();
    }
    assert_eq!(measurement.warnings.len(), before + 2);
    assert_eq!(results_file::read(file.path()).unwrap().warnings, measurement.warnings);
}

#[test]
fn a_subject_given_up_under_one_allocator_continues_under_another() {
    let file = ScratchFile::new("measurement-test").unwrap();
    let mut measurement = begin(&file);
    measurement.give_up("x", "system", "failed".into()).unwrap();
    assert!(measurement.is_given_up("x", "system") && !measurement.is_given_up("x", "freestone"));
}

#[test]
fn few_rounds_are_doubted_only_where_something_is_compared() {
    let file = ScratchFile::new("measurement-test").unwrap();
    let mut measurement = begin(&file);
    let before = measurement.warnings.len();
    measurement.doubt_rounds(ENOUGH_ROUNDS - 1, 1).unwrap();
    measurement.doubt_rounds(ENOUGH_ROUNDS, 2).unwrap();
    assert_eq!(measurement.warnings.len(), before);
    measurement.doubt_rounds(ENOUGH_ROUNDS - 1, 2).unwrap();
    assert_eq!(measurement.warnings.len(), before + 1);
}

#[test]
fn without_a_run_or_an_allocator_there_is_nothing_to_show() {
    let file = ScratchFile::new("measurement-test").unwrap();
    let mut measurement = begin(&file);
    let summary = measurement.finish("system").unwrap();
    assert!(measurement.refuse_emptiness(&summary).is_err());
    assert_eq!(measurement.baseline(&[], "nothing at all").unwrap_err().to_string(), "nothing at all");
    assert_eq!(measurement.baseline(&[Allocator::system()], "").unwrap(), "system");
}

#[test]
fn a_measurement_without_a_run_leaves_no_file_of_its_own() {
    let file = ScratchFile::new("measurement-test").unwrap();
    drop(begin(&file));
    assert!(!file.path().exists());
    let mut measurement = begin(&file);
    measurement.keep("x", LOOP_ONLY, 0, Outcome::Command(CommandRecord::example(1000, 4096))).unwrap();
    drop(measurement);
    assert!(!file.path().exists(), "the loop alone is no measurement");
    let mut measurement = begin(&file);
    measurement.keep("x", "system", 0, Outcome::Command(CommandRecord::example(1000, 4096))).unwrap();
    drop(measurement);
    assert!(file.path().exists());
    let link = ScratchFile::new("measurement-link").unwrap();
    std::os::unix::fs::symlink(file.path(), link.path()).unwrap();
    drop(begin(&link));
    assert!(link.path().is_symlink() && file.path().exists(), "a link stays, as /dev/null does");
}
