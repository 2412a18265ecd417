//! The inputs of the programs: texts that a seed determines, the same on every machine and in every run.

use crate::workload::random::Random;
use std::fmt::Write;

/// The seed of every input.
const SEED: u64 = 17;

/// Writes lines into `text`, one per number below `lines`, each by `line`.
fn lines(lines: usize, mut line: impl FnMut(&mut String, &mut Random, usize)) -> String {
    let (mut text, mut random) = (String::new(), Random::new(SEED));
    for number in 0..lines {
        line(&mut text, &mut random, number);
    }
    text
}

/// Appends formatted text; writing to a string does not fail.
macro_rules! put {
    ($text:expr, $($arguments:tt)*) => { let _ = write!($text, $($arguments)*); };
}

/// A word of two to four syllables.
fn word(random: &mut Random) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta", "ve", "wi",
        "xo", "yu", "za", "bre", "cli", "stro",
    ];
    (0..random.within(2, 4)).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect()
}

/// Lines of words.
pub(super) fn words() -> String {
    lines(60_000, |text, random, _| {
        let words: Vec<String> = (0..random.within(3, 14)).map(|_| word(random)).collect();
        put!(text, "{}\n", words.join(" "));
    })
}

/// A list of JSON objects.
pub(super) fn objects() -> String {
    let objects = lines(12_000, |text, random, number| {
        let values: Vec<String> = (0..random.below(24)).map(|_| format!("{}.5", random.below(100_000))).collect();
        let comma = if number == 0 { "" } else { ",\n" };
        let (name, kind) = (word(random), word(random));
        put!(text, r#"{comma}{{"id": {number}, "name": "{name}", "tags": {{"kind": "{kind}", "step": "0"}}, "#);
        put!(text, r#""values": [{}]}}"#, values.join(", "));
    });
    format!("[{objects}]\n")
}

/// A C file of functions with loops, structures and switches.
pub(super) fn c_source() -> String {
    let functions = lines(200, |text, random, number| {
        let (a, b) = (random.within(3, 99), random.within(3, 99));
        put!(text, "struct s{number} {{ int a[{a}]; double b; const char *name; }};\n");
        put!(text, "int f{number}(struct s{number} *s, int n) {{\n  int sum = {b};\n");
        put!(text, "  for (int i = 0; i < n; i++) {{\n    switch (s->a[i % {a}] & 7) {{\n");
        for case in 0..random.within(2, 6) {
            put!(text, "    case {case}: sum += (s->a[(i * {b}) % {a}] ^ i) * {case}; break;\n");
        }
        put!(
            text,
            "    default: sum -= (int)(s->b * i); s->name = \"{}\";\n    }}\n  }}\n  return sum;\n}}\n",
            word(random)
        );
    });
    format!("#include <stdio.h>\n#include <string.h>\n#include <math.h>\n{functions}")
}

/// A C++ file that instantiates containers and algorithms of the standard library over types of its own.
pub(super) fn cpp_source() -> String {
    let types = lines(5, |text, random, number| {
        let member = word(random);
        put!(
            text,
            "struct T{number} {{ int {member}; std::string s; bool operator<(const T{number} &o) const {{ return {member} < o.{member}; }} }};\n"
        );
        put!(
            text,
            "int g{number}(const std::vector<T{number}> &in) {{\n  std::map<std::string, std::vector<T{number}>> m;\n"
        );
        put!(text, "  for (auto &x : in) m[x.s].push_back(x);\n  std::set<T{number}> all(in.begin(), in.end());\n");
        put!(text, "  std::vector<T{number}> v(all.begin(), all.end());\n");
        put!(
            text,
            "  std::sort(v.begin(), v.end(), [](const T{number} &a, const T{number} &b) {{ return a.s < b.s; }});\n"
        );
        put!(text, "  std::function<int(int)> f = [&](int k) {{ return k + (int)v.size() + {number}; }};\n");
        put!(text, "  return f((int)m.size());\n}}\n");
    });
    let headers = ["algorithm", "functional", "map", "regex", "set", "string", "unordered_map", "vector"];
    let includes: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
    format!(
        "{includes}{types}bool is_word(const std::string &s) {{ return std::regex_match(s, std::regex(\"[a-z]+\")); }}\n"
    )
}

/// Java classes in one file.
pub(super) fn java_source() -> String {
    lines(120, |text, random, number| {
        let (one, other) = (word(random), word(random));
        put!(
            text,
            "class C{number} {{\n  private final java.util.Map<String, java.util.List<Integer>> {one} = new java.util.HashMap<>();\n"
        );
        put!(
            text,
            "  int add(String key, int n) {{\n    {one}.computeIfAbsent(key, k -> new java.util.ArrayList<>()).add(n);\n"
        );
        put!(
            text,
            "    return {one}.values().stream().mapToInt(l -> l.stream().mapToInt(i -> i).sum()).sum();\n  }}\n"
        );
        put!(text, "  String {other}(int n) {{ return n == 0 ? \"{one}\" : {other}(n - 1) + {number}; }}\n}}\n");
    })
}

/// SQL that fills, indexes, joins and thins out two tables.
pub(super) fn sql() -> String {
    let rows = lines(30_000, |text, random, number| {
        let (name, amount) = (word(random), random.below(10_000));
        put!(text, "insert into item values({number}, '{name}', {amount}, {});\n", random.below(500));
    });
    format!(
        "create table item(id integer primary key, name text, amount integer, owner integer);\n\
         begin;\n{rows}commit;\ncreate index by_name on item(name);\ncreate index by_owner on item(owner, amount);\n\
         create table owner as select owner as id, sum(amount) as total, group_concat(name) as names from item group by owner;\n\
         select count(*), sum(length(names)) from owner;\n\
         select count(*) from item a join item b on a.name = b.name and a.id < b.id;\n\
         delete from item where id % 3 = 0;\nselect count(*), max(name) from item;\n\
         select sum(n) from (select row_number() over (partition by owner order by amount) as n from item) as ranked;\n"
    )
}

/// Commands of a mixed load for redis, in its protocol: values of many sizes that are set, replaced, extended and deleted.
pub(super) fn redis_commands() -> String {
    lines(120_000, |text, random, number| {
        let key = random.below(20_000);
        let value = "v".repeat(random.within(8, if number % 40 == 0 { 6000 } else { 400 }));
        let (field, score) = (random.below(60).to_string(), random.below(1000).to_string());
        let command: Vec<String> = match random.below(12) {
            0..=3 => vec!["SET".into(), format!("key:{key}"), value],
            4 => vec!["APPEND".into(), format!("key:{key}"), value],
            5 => vec!["HSET".into(), format!("hash:{}", key % 800), field, value],
            6 => vec!["LPUSH".into(), format!("list:{}", key % 300), value],
            7 => vec!["RPOP".into(), format!("list:{}", key % 300)],
            8 => vec!["ZADD".into(), format!("set:{}", key % 300), score, format!("member:{key}")],
            9 => vec!["SADD".into(), format!("tags:{}", key % 500), format!("tag:{key}")],
            10 => vec!["DEL".into(), format!("key:{key}")],
            _ => vec!["GET".into(), format!("key:{key}")],
        };
        put!(text, "*{}\r\n", command.len());
        for part in command {
            put!(text, "${}\r\n{part}\r\n", part.len());
        }
    })
}

/// Commands that delete most of what [`redis_commands`] left.
pub(super) fn redis_deletions() -> String {
    lines(20_000, |text, _, number| {
        if number % 20 != 0 {
            put!(text, "*2\r\n$3\r\nDEL\r\n${}\r\nkey:{number}\r\n", format!("key:{number}").len());
        }
    })
}

/// A problem for a solver: equations and inequalities over integers and bit vectors that have a solution.
pub(super) fn formulas() -> String {
    const VARIABLES: usize = 60;
    let declared: String = (0..VARIABLES)
        .map(|number| format!("(declare-const x{number} Int)(declare-const b{number} (_ BitVec 24))\n"))
        .collect();
    let asserted = lines(260, |text, random, _| {
        let pick = |random: &mut Random| random.below(VARIABLES);
        let (a, b, c) = (pick(random), pick(random), pick(random));
        put!(text, "(assert (or (< (+ x{a} {}) x{b}) (> x{c} (+ x{a} {}))))\n", random.below(9), random.below(9));
        put!(
            text,
            "(assert (not (= (bvadd b{a} (bvmul b{b} #x00000{})) (bvxor b{c} #x0000{}))))\n",
            random.within(1, 9),
            random.within(10, 99)
        );
    });
    format!("{declared}{asserted}(check-sat)\n")
}

/// A picture in the format PPM.
pub(super) fn picture() -> String {
    const SIDE: usize = 700;
    let dots = lines(SIDE * SIDE, |text, random, number| {
        let (x, y) = (number % SIDE, number / SIDE);
        put!(text, "{} {} {}\n", x * 255 / SIDE, y * 255 / SIDE, random.below(256));
    });
    format!("P3\n{SIDE} {SIDE}\n255\n{dots}")
}

/// A history for `git fast-import`: commits that change some of many files.
pub(super) fn history() -> String {
    lines(260, |text, random, number| {
        put!(text, "commit refs/heads/main\ncommitter A <a@b.c> {} +0000\ndata 1\nc\n", 1_700_000_000 + number);
        for _ in 0..8 {
            let (file, mut contents) = (random.below(90), String::new());
            for _ in 0..random.within(20, 400) {
                put!(contents, "{} {}\n", word(random), word(random));
            }
            put!(text, "M 644 inline d{}/f{file}\ndata {}\n{contents}\n", file % 7, contents.len());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_each_time_they_are_made() {
        for input in [words, objects, c_source, cpp_source, java_source, sql, redis_commands, formulas, history] {
            let text = input();
            assert!(text == input() && text.len() > 1000);
        }
    }

    #[test]
    fn the_objects_are_json_and_each_redis_command_states_its_lengths() {
        let objects: serde_json::Value = serde_json::from_str(&objects()).unwrap();
        assert_eq!(objects.as_array().unwrap().len(), 12_000);
        let commands = redis_commands();
        let mut lines = commands.split("\r\n");
        while let Some(parts) = lines.next().and_then(|line| line.strip_prefix('*')) {
            for _ in 0..parts.parse::<usize>().unwrap() {
                let len: usize = lines.next().unwrap().strip_prefix('$').unwrap().parse().unwrap();
                assert_eq!(lines.next().unwrap().len(), len);
            }
        }
    }
}
