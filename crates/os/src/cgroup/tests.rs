use super::*;

#[test]
fn a_limit_file_is_a_number_or_no_limit() {
    assert_eq!(parse_limit(b"268435456\n"), Some(268_435_456));
    assert_eq!(parse_limit(b"max\n"), None);
    assert_eq!(parse_limit(b"9223372036854771712\n"), None);
    assert_eq!(parse_limit(b""), None);
    assert_eq!(parse_limit(b"-1"), None);
}

#[test]
fn asking_for_the_limit_of_this_process_answers_whatever_the_machine_has() {
    assert_ne!(memory_limit_bytes(), Some(0));
}
