use super::describe;
use crate::message::tests::expect_messages_for_c;

#[test]
fn messages_name_nothing_that_only_rust_programs_have() {
    expect_messages_for_c(101..=117, describe);
}
