use super::*;
use crate::command::top::keys;
use crate::command::top::testing::{busy_state, state};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

fn busy() -> ViewState {
    let mut view = ViewState::new("4711 cat".into());
    assert!(view.add(&busy_state()));
    view
}

fn press(view: &mut ViewState, keys: &[KeyCode]) {
    for &key in keys {
        if let Some(action) = keys::action(KeyEvent::new(key, KeyModifiers::NONE)) {
            view.act(action);
        }
    }
}

fn names(view: &ViewState) -> Vec<String> {
    view.rows().into_iter().map(|row| row.name).collect()
}

#[test]
fn size_classes_are_sorted_by_the_column_that_was_chosen() {
    let mut view = busy();
    assert_eq!(names(&view), ["large", "48", "96"], "by live memory");
    press(&mut view, &[KeyCode::Char('N')]);
    assert_eq!(names(&view), ["48", "96", "large"]);
    press(&mut view, &[KeyCode::Char('I')]);
    assert_eq!(names(&view), ["large", "96", "48"]);
    press(&mut view, &[KeyCode::Char('M'), KeyCode::F(6), KeyCode::F(6)]);
    assert_eq!(names(&view), ["96", "48", "large"], "by cached memory");
    press(&mut view, &[KeyCode::Char('<')]);
    assert_eq!(names(&view), ["48", "96", "large"], "by blocks");
}

#[test]
fn each_table_has_an_order_of_its_own() {
    let mut view = busy();
    press(&mut view, &[KeyCode::Tab, KeyCode::Char('N'), KeyCode::Char('I')]);
    assert_eq!(names(&view), ["2 thread 4712", "1 thread 4711"]);
    press(&mut view, &[KeyCode::Tab]);
    assert_eq!(names(&view), ["large", "48", "96"]);
}

#[test]
fn a_paused_view_takes_nothing_over_until_it_goes_on() {
    let mut view = busy();
    press(&mut view, &[KeyCode::Char(' ')]);
    assert!(!view.add(&state(2, 2000)));
    assert_eq!(view.rows().len(), 3);
    press(&mut view, &[KeyCode::Char(' ')]);
    assert!(view.add(&state(2, 2000)));
    assert_eq!(view.rows().len(), 0);
}

#[test]
fn scrolling_stays_inside_the_table() {
    let mut view = busy();
    press(&mut view, &[KeyCode::Up]);
    assert_eq!(view.first, 0);
    press(&mut view, &[KeyCode::PageDown]);
    assert_eq!(view.first, 2);
    press(&mut view, &[KeyCode::Home]);
    assert_eq!(view.first, 0);
    press(&mut view, &[KeyCode::End, KeyCode::Tab]);
    assert_eq!(view.first, 0, "the other table starts at its top");
}

#[test]
fn q_f10_and_control_c_quit_and_nothing_else_does() {
    for (key, modifiers) in [
        (KeyCode::Char('q'), KeyModifiers::NONE),
        (KeyCode::F(10), KeyModifiers::NONE),
        (KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(keys::action(KeyEvent::new(key, modifiers)), Some(Action::Quit));
    }
    let mut view = busy();
    press(&mut view, &[KeyCode::Char('c'), KeyCode::Char('?'), KeyCode::Esc, KeyCode::F(1), KeyCode::Char('x')]);
    assert!(!view.quits && view.has_help);
}
