use super::*;

const MAPS: &str = "\
55d0c0000000-55d0c0021000 r--p 00000000 fe:00 1234       /usr/bin/some program
7f1000000000-7f1000007000 rw-s 00000000 00:1c 77         /run/user/0/freestone-12.live
7f1000010000-7f1000017000 rw-s 00000000 00:1c 78         /tmp/gone.live (deleted)
7f1000020000-7f1000027000 rw-s 00000000 00:01 79         anon_inode:[perf]
7f1000030000-7f1000047000 r-xp 00000000 fe:00 4321       /opt/lib/libfreestone.so.0
7f1000050000-7f1000060000 rw-p 00000000 00:00 0
";

#[test]
fn shared_files_are_told_from_other_mappings() {
    assert_eq!(shared_files(MAPS).collect::<Vec<_>>(), [PathBuf::from("/run/user/0/freestone-12.live")]);
    assert_eq!(MAPS.lines().filter_map(path_of).count(), 3);
}

#[test]
fn a_name_may_have_spaces_and_parentheses_and_what_has_ended_is_no_process() {
    let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20";
    assert_eq!(parse_stat(&format!("12 (a (b) c) S {rest}")), Some(("a (b) c".into(), 987_654)));
    assert_eq!(parse_stat(&format!("12 (a) Z {rest}")), None);
    assert_eq!(parse_stat("12 (a"), None);
}

#[test]
fn a_process_without_a_page_and_a_number_without_a_process_are_told_apart() {
    let own = std::process::id();
    assert!(matches!(LiveProcess::attach(own), Err(Obstacle::NoLibrary(pid, _)) if pid == own));
    assert_eq!(LiveProcess::attach(u32::MAX).err(), Some(Obstacle::NoProcess(u32::MAX)));
}

#[test]
fn an_obstacle_says_what_to_do() {
    for (obstacle, part) in [
        (Obstacle::NoProcess(7), "no process 7"),
        (Obstacle::NotPermitted(7), "as root"),
        (Obstacle::NoLibrary(7, "cat".into()), "freestone top -- COMMAND"),
        (Obstacle::NoPage(7, "cat".into()), "FREESTONE_LIVE=on"),
        (Obstacle::OtherVersion(7, 9), "format 9"),
    ] {
        let text = obstacle.to_string();
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}
