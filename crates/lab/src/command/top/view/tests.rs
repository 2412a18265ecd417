use super::*;
use crate::command::top::testing::{busy_state, state};
use crate::command::top::view_state::Action;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// The screen as lines without what is empty at their ends.
fn screen(view: &ViewState, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn busy() -> ViewState {
    let mut view = ViewState::new("4711 redis".into());
    let mut earlier = busy_state();
    earlier.stats.n_allocations -= 5000;
    earlier.stats.committed /= 2;
    earlier.classes[5].n_allocations -= 4000;
    view.add(&earlier);
    let mut later = busy_state();
    (later.number, later.at_ms) = (2, 2000);
    view.add(&later);
    view
}

#[test]
fn eighty_columns_show_figures_curves_rates_and_a_table() {
    let lines = screen(&busy(), 80, 24);
    assert_eq!(lines[0], "freestone top  4711 redis  2 heaps");
    assert_eq!(lines[1], "committed    4.17 MiB ▄█");
    assert!(lines[2].starts_with("live         3.01 MiB "), "{}", lines[2]);
    assert!(lines[5].starts_with("dirty        1.00 MiB "), "{}", lines[5]);
    assert_eq!(lines[7], "alloc 5000/s  free 0/s  remote 0 %  allocations 9 201  resident 4.17 MiB");
    assert_eq!(lines[8], "fresh 0 B/s  purged 0 B/s  peak live 4.00 MiB  live in 4 KiB 2.88 KiB");
    assert_eq!(lines[9], " Size classes   Threads and heaps");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(words(&lines[10]), "SIZE LIVE▽ BLOCKS CACHED ALLOC/s REMOTE");
    assert_eq!(words(&lines[11]), "large 3.00 MiB 1 0 B 0 0");
    assert_eq!(words(&lines[12]), "48 4.69 KiB 100 480 B 0 7");
    assert_eq!(words(&lines[13]), "96 960 B 10 9.38 KiB 4000 0");
    assert_eq!(lines[23], "F1Help TabTable F6Sort SpcPause F10Quit");
}

#[test]
fn threads_have_a_table_of_their_own() {
    let mut view = busy();
    view.act(Action::OtherTable);
    let lines = screen(&view, 80, 24);
    assert!(lines[10].starts_with("HEAP"), "{}", lines[10]);
    assert!(lines[11].starts_with("1 thread 4711") && lines[12].starts_with("2 thread 4712"), "{lines:?}");
}

#[test]
fn heaps_without_a_row_are_counted() {
    let mut view = ViewState::new("4711 redis".into());
    let mut state = busy_state();
    state.n_heaps = 1002;
    view.add(&state);
    assert_eq!(screen(&view, 80, 24)[9], " Size classes   Threads and heaps  1 000 more have no row");
}

#[test]
fn forty_columns_keep_whole_figures() {
    let lines = screen(&busy(), 40, 16);
    assert!(lines[1].starts_with("committed    4.17 MiB "), "{}", lines[1]);
    assert!(lines[11].contains("large") && lines[11].contains("3.00 MiB"), "{lines:?}");
    assert!(lines[10].contains("LIVE▽") && !lines[10].contains("REMOTE"), "{}", lines[10]);
    assert!(lines.iter().all(|line| line.chars().count() <= 40));
}

/// Nothing may panic, whatever the terminal is resized to.
#[test]
fn every_size_can_be_drawn() {
    let (empty, mut view) = (ViewState::new("1 x".into()), busy());
    for (width, height) in [(1, 1), (2, 3), (10, 5), (20, 9), (40, 12), (300, 100)] {
        screen(&empty, width, height);
        view.has_help = true;
        screen(&view, width, height);
        view.has_help = false;
        screen(&view, width, height);
    }
}

#[test]
fn what_is_paused_ended_or_not_yet_there_is_said() {
    let mut view = ViewState::new("4711 redis".into());
    assert!(screen(&view, 80, 24)[1].starts_with("Waiting"));
    view.add(&state(1, 100));
    view.is_paused = true;
    view.end = Some("ended with status 3".into());
    assert_eq!(screen(&view, 80, 24)[0], "freestone top  4711 redis  ended with status 3  PAUSED  0 heaps");
}

#[test]
fn the_help_names_every_key() {
    let mut view = busy();
    view.act(Action::Help);
    for width in [80, 40] {
        let text = screen(&view, width, 24).join("\n");
        for (keys, _) in keys::HELP {
            assert!(text.contains(keys), "{keys} at {width}: {text}");
        }
    }
}

#[test]
fn counts_are_short() {
    let texts = [0.0, 9999.0, 10_000.0, 123_456.0, 1.5e6, 2e9].map(short);
    assert_eq!(texts, ["0", "9999", "10.0 k", "123 k", "1.50 M", "2.00 G"]);
}
