use super::*;

#[test]
fn a_mailbox_tells_where_its_heap_is_in_its_life() {
    let mailbox = Mailbox::new();
    assert_eq!(mailbox.life(), Life::NotCreated);
    mailbox.open(LinkKey::PLAIN);
    assert_eq!(mailbox.life(), Life::Alive);
    mailbox.set_life(Life::Orphaned);
    assert_eq!(mailbox.life(), Life::Orphaned);
}
