use super::*;
use crate::command::top::testing::busy_state;

#[test]
fn a_line_is_one_object_with_the_librarys_figures() {
    let line = json_line(&busy_state(), Some("ended by signal 9"));
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(!line.contains('\n'));
    assert_eq!(parsed["pid"], 4711);
    assert_eq!(parsed["end"], "ended by signal 9");
    assert_eq!(parsed["live_bytes"], (3 << 20) + 5760);
    assert_eq!(parsed["by_class"].as_array().unwrap().len(), 3);
    assert_eq!(parsed["by_heap"][1]["thread_id"], 4712);
    assert!(serde_json::from_str::<serde_json::Value>(&json_line(&busy_state(), None)).unwrap().get("end").is_none());
}
