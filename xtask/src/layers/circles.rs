//! Circles between the files of a crate: files that name each other, directly or by way of others.

use crate::source::Crate;
use crate::source::arrows::{Arrows, arrows};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An arrow of one crate, by the paths of its files: the first names something that the second defines.
pub(super) type Pair = (String, String);

/// What was found in a crate.
pub(super) struct Circles {
    /// A sentence for each group of files that reach each other: the shortest circle in it, with lines.
    pub complaints: Vec<String>,
    /// Allowed arrows that lie on no circle, or do not exist.
    pub idle: Vec<Pair>,
}

/// Looks for circles, the `allowed` arrows left out.
pub(super) fn circles(krate: &Crate, allowed: &[Pair]) -> Circles {
    let all = arrows(krate);
    let path = |file: usize| krate.files[file].path.clone();
    let pair = |(from, to): (usize, usize)| (path(from), path(to));
    let is_on_circle =
        |allowed: &Pair| all.keys().any(|&arrow| pair(arrow) == *allowed && reaches(&all, arrow.1, arrow.0));
    let idle = allowed.iter().filter(|allowed| !is_on_circle(allowed)).cloned().collect();
    let mut left = all;
    left.retain(|&arrow, _| !allowed.contains(&pair(arrow)));
    let mut told: BTreeSet<usize> = BTreeSet::new();
    let mut complaints = Vec::new();
    for start in 0..krate.files.len() {
        if told.contains(&start) {
            continue;
        }
        if let Some(circle) = shortest_circle(&left, start) {
            told.extend(
                (0..krate.files.len()).filter(|&other| reaches(&left, start, other) && reaches(&left, other, start)),
            );
            complaints.push(describe(krate, &left, &circle));
        }
    }
    Circles { complaints, idle }
}

/// Every arrow that lies on a circle.
pub(super) fn arrows_on_circles(krate: &Crate) -> Vec<Pair> {
    let all = arrows(krate);
    let on_circle = all.keys().filter(|&&(from, to)| reaches(&all, to, from));
    on_circle.map(|&(from, to)| (krate.files[from].path.clone(), krate.files[to].path.clone())).collect()
}

fn nexts(arrows: &Arrows, from: usize) -> impl Iterator<Item = usize> {
    arrows.range((from, 0)..=(from, usize::MAX)).map(|(&(_, to), _)| to)
}

/// Whether a path leads from `from` to `to`; a file reaches itself only through others.
fn reaches(arrows: &Arrows, from: usize, to: usize) -> bool {
    from == to || way(arrows, from, to).is_some()
}

/// The shortest path of at least one arrow from `from` to `to`, both included.
fn way(arrows: &Arrows, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for next in nexts(arrows, at) {
            if next == to {
                let mut way = vec![to, at];
                while let Some(&before) = way.last().and_then(|last| came_from.get(last)) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if next != from && !came_from.contains_key(&next) {
                came_from.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}

fn shortest_circle(arrows: &Arrows, start: usize) -> Option<Vec<usize>> {
    way(arrows, start, start)
}

fn describe(krate: &Crate, arrows: &Arrows, circle: &[usize]) -> String {
    let steps = circle.windows(2).map(|step| {
        let line = arrows.get(&(step[0], step[1])).copied().unwrap_or_default();
        format!("{}:{line} names {}", krate.files[step[0]].path, krate.files[step[1]].path)
    });
    steps.collect::<Vec<_>>().join(", ")
}
