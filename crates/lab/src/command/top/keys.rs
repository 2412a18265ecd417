//! Which key does what. The keys are those of htop, as far as it has the same.

use super::view_state::Action;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The keys for people: what the help shows.
pub(super) const HELP: [(&str, &str); 9] = [
    ("F1 ? h", "this help"),
    ("Tab F2 ← →", "size classes, threads"),
    ("↑ ↓ PgUp PgDn", "scroll; also j k"),
    ("Home End", "first and last row"),
    ("F6 > <", "sort by the next column, by the one before"),
    ("M P N", "sort by live or cached memory, by rate, by size or number"),
    ("I", "reverse the order"),
    ("Space Z", "pause, and go on"),
    ("F10 q Ctrl-C", "quit; a command that top started is ended"),
];

/// The action of a key; `None` if it has none.
pub(super) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }
    Some(match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::F(10) => Action::Quit,
        KeyCode::F(1) | KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Tab | KeyCode::BackTab | KeyCode::F(2) | KeyCode::Left | KeyCode::Right => Action::OtherTable,
        KeyCode::Up | KeyCode::Char('k') => Action::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => Action::Scroll(1),
        KeyCode::PageUp => Action::Scroll(-10),
        KeyCode::PageDown => Action::Scroll(10),
        KeyCode::Home => Action::Scroll(i32::MIN),
        KeyCode::End => Action::Scroll(i32::MAX),
        KeyCode::F(6) | KeyCode::Char('>' | '.') => Action::NextColumn,
        KeyCode::Char('<' | ',') => Action::PreviousColumn,
        KeyCode::Char('M' | 'm') => Action::SortByMemory,
        KeyCode::Char('P' | 'p') => Action::SortByRate,
        KeyCode::Char('N' | 'n') => Action::SortByName,
        KeyCode::Char('I' | 'i') => Action::Reverse,
        KeyCode::Char(' ' | 'Z' | 'z') => Action::Pause,
        KeyCode::Esc => Action::Close,
        _ => return None,
    })
}
