//! The list of all programs of the suite: what Debian holds, one job of its usual kind each.
//!
//! Commands are named by their Debian paths where another version might come first on a PATH.

use crate::program_suite::inputs;
use crate::program_suite::{Input, Job, Program};

const WORDS: Input = ("words.txt", inputs::words);
const OBJECTS: Input = ("objects.json", inputs::objects);
const PYTHON: (&str, &str) = ("/usr/bin/python3", "python3");
const OBJECTS_PY: Input = ("objects.py", || include_str!("scripts/objects.py").into());
const GRAPH_PY: Input = ("graph.py", || include_str!("scripts/graph.py").into());
const WORDS_PY: Input = ("words.py", || include_str!("scripts/words.py").into());

/// A python script with Python's own allocator of small blocks off: every object is a block of `malloc`.
macro_rules! python_without_pymalloc {
    ($script:literal) => {
        Job::Command(&["env", "PYTHONMALLOC=malloc", "PYTHONHASHSEED=0", "/usr/bin/python3", "-SB", $script])
    };
}

/// A python script as python is by default.
macro_rules! python {
    ($script:literal) => {
        Job::Command(&["env", "PYTHONHASHSEED=0", "/usr/bin/python3", "-SB", $script])
    };
}

/// Every program, in the order of the tables.
pub(crate) static ALL: &[Program] = &[
    Program {
        name: "gcc",
        does: "optimises a C file of 200 functions",
        needs: &[("gcc", "gcc")],
        inputs: &[("big.c", inputs::c_source)],
        prepare: "",
        job: Job::Command(&["gcc", "-O2", "-S", "-frandom-seed=1", "-o", "-", "big.c"]),
    },
    Program {
        name: "g++",
        does: "compiles containers and algorithms over 5 types",
        needs: &[("g++", "g++")],
        inputs: &[("big.cpp", inputs::cpp_source)],
        prepare: "",
        job: Job::Command(&["g++", "-O1", "-S", "-frandom-seed=1", "-o", "-", "big.cpp"]),
    },
    Program {
        name: "python-json",
        does: "JSON, own allocator off",
        needs: &[PYTHON],
        inputs: &[OBJECTS, OBJECTS_PY],
        prepare: "",
        job: python_without_pymalloc!("objects.py"),
    },
    Program {
        name: "python-json-own",
        does: "JSON, own allocator on",
        needs: &[PYTHON],
        inputs: &[OBJECTS, OBJECTS_PY],
        prepare: "",
        job: python!("objects.py"),
    },
    Program {
        name: "python-graph",
        does: "a graph of objects, own allocator off",
        needs: &[PYTHON],
        inputs: &[GRAPH_PY],
        prepare: "",
        job: python_without_pymalloc!("graph.py"),
    },
    Program {
        name: "python-words",
        does: "counts words on 4 threads, own allocator off",
        needs: &[PYTHON],
        inputs: &[WORDS, WORDS_PY],
        prepare: "",
        job: python_without_pymalloc!("words.py"),
    },
    Program {
        name: "redis",
        does: "120,000 mixed commands, then deletions",
        needs: &[("redis-server", "redis-server"), ("redis-cli", "redis-tools")],
        inputs: &[("mixed", inputs::redis_commands), ("deletions", inputs::redis_deletions)],
        prepare: "",
        job: Job::Server {
            server: &["redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--dir", "."],
            client: "until redis-cli -s socket ping > ready 2>&1; do sleep 0.1; done; redis-cli -s socket flushall > flushed
                redis-cli -s socket --pipe < mixed | tail -1; redis-cli -s socket --pipe < deletions | tail -1",
        },
    },
    Program {
        name: "postgres",
        does: "fills, indexes and joins tables",
        needs: &[("pg_config", "libpq-dev"), ("psql", "postgresql"), ("setpriv", "util-linux")],
        inputs: &[("rows.sql", inputs::sql)],
        prepare: "[ \"$(id -u)\" != 0 ] || chown -R postgres .
            as() { if [ \"$(id -u)\" = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups \"$@\"; else \"$@\"; fi; }
            as $(ls -d /usr/lib/postgresql/*/bin | tail -1)/initdb --no-sync -A trust -U postgres -D data > initdb.log
            sed -i 's/group_concat(name)/string_agg(name, chr(44) order by id)/; 1i drop table if exists item, owner;' rows.sql",
        job: Job::Server {
            server: &[
                "sh",
                "-c",
                "exec $([ $(id -u) != 0 ] || echo setpriv --reuid postgres --regid postgres --clear-groups) \
                 $(ls -d /usr/lib/postgresql/*/bin | tail -1)/postgres -D data -k $PWD \
                 -c listen_addresses= -c shared_buffers=16MB -c fsync=off -c autovacuum=off -c max_parallel_workers=0",
            ],
            client: "until psql -h $PWD -U postgres -Atc 'select 1' > ready 2>&1; do sleep 0.1; done
                psql -h $PWD -U postgres -qAt -f rows.sql 2> notices",
        },
    },
    Program {
        name: "sqlite",
        does: "fills, indexes and joins tables in memory",
        needs: &[("sqlite3", "sqlite3")],
        inputs: &[("rows.sql", inputs::sql)],
        prepare: "",
        job: Job::Command(&["sqlite3", ":memory:", ".read rows.sql"]),
    },
    Program {
        name: "lua",
        does: "trees of tables and strings",
        needs: &[("lua5.4", "lua5.4")],
        inputs: &[WORDS, ("trees.lua", || include_str!("scripts/trees.lua").into())],
        prepare: "",
        job: Job::Command(&["lua5.4", "trees.lua"]),
    },
    Program {
        name: "perl",
        does: "counts and sorts the words of a text",
        needs: &[("perl", "perl-base")],
        inputs: &[WORDS, ("words.pl", || include_str!("scripts/words.pl").into())],
        prepare: "",
        job: Job::Command(&["env", "PERL_HASH_SEED=0", "perl", "words.pl"]),
    },
    Program {
        name: "node",
        does: "buffers outside its heap, and zlib",
        needs: &[("node", "nodejs")],
        inputs: &[OBJECTS, ("buffers.js", || include_str!("scripts/buffers.js").into())],
        prepare: "",
        job: Job::Command(&["node", "buffers.js"]),
    },
    Program {
        name: "javac",
        does: "compiles 120 classes",
        needs: &[("javac", "default-jdk-headless")],
        inputs: &[("Classes.java", inputs::java_source)],
        prepare: "",
        job: Job::Command(&["javac", "-J-XX:+UseSerialGC", "-J-Xmx128m", "-d", "classes", "-verbose", "Classes.java"]),
    },
    Program {
        name: "imagemagick",
        does: "blurs, scales and turns a picture",
        needs: &[("/usr/bin/convert", "imagemagick")],
        inputs: &[("picture.ppm", inputs::picture)],
        prepare: "",
        job: Job::Command(&[
            "/usr/bin/convert", "picture.ppm", "-resize", "130%", "-blur", "0x2", "-rotate", "7", "-colors", "64", "ppm:-",
        ]),
    },
    Program {
        name: "bat",
        does: "colours a C file: a parser in Rust",
        needs: &[("batcat", "bat")],
        inputs: &[("big.c", inputs::c_source)],
        prepare: "",
        job: Job::Command(&["batcat", "--no-config", "--color=always", "--paging=never", "--style=numbers", "big.c"]),
    },
    Program {
        name: "ripgrep",
        does: "searches many files on 2 threads, in Rust",
        needs: &[("rg", "ripgrep")],
        inputs: &[WORDS],
        prepare: "split -l 100 words.txt part.; rm words.txt; for i in 1 2 3 4 5 6; do mkdir d$i; cp part.* d$i; done",
        job: Job::Command(&["rg", "--no-config", "-j2", "-c", "--sort=path", "-i", "(ba|ce)[a-z]*(stro|bre)\\b.*xo", "."]),
    },
    Program {
        name: "jq",
        does: "groups and sorts JSON objects",
        needs: &[("jq", "jq")],
        inputs: &[OBJECTS],
        prepare: "",
        job: Job::Command(&[
            "jq", "-c", "group_by(.name[0:2]) | map({key: .[0].name[0:2], sum: map(.values | add // 0) | add, ids: map(.id | tostring)})",
            "objects.json",
        ]),
    },
    Program {
        name: "git",
        does: "repacks 260 commits on one thread",
        needs: &[("git", "git")],
        inputs: &[("history", inputs::history)],
        prepare: "git init -q --bare r; git -C r fast-import --quiet < history",
        job: Job::Command(&["git", "-C", "r", "-c", "pack.threads=1", "repack", "-adfq", "--depth=30", "--window=20"]),
    },
    Program {
        name: "z3",
        does: "solves formulas over integers and bit vectors",
        needs: &[("z3", "z3")],
        inputs: &[("formulas.smt2", inputs::formulas)],
        prepare: "",
        job: Job::Command(&["z3", "formulas.smt2"]),
    },
];

/// The program called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Program> {
    ALL.iter().find(|program| program.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program_suite::workshop::Workshop;
    use crate::workload;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn names_differ_from_each_other_and_from_those_of_workloads() {
        let names: BTreeSet<&str> = ALL.iter().map(|program| program.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(names.iter().all(|name| workload::catalogue::find(name).is_none()));
        assert!(find("redis").is_some() && find("rediz").is_none());
    }

    const MINUTE: Duration = Duration::from_secs(60);

    fn refusal(program: &Program, limit: Duration) -> String {
        format!("{:#}", Workshop::of(program, limit).map(|_| ()).unwrap_err())
    }

    #[test]
    fn a_programs_folder_holds_its_inputs_and_what_its_preparation_made() {
        let workshop = Workshop::of(find("ripgrep").unwrap(), MINUTE).unwrap();
        assert!(workshop.path().join("d6/part.aa").is_file() && !workshop.path().join("words.txt").exists());
        let broken = Program { prepare: "echo no tool >&2; exit 3", inputs: &[], ..*find("jq").unwrap() };
        assert_eq!(refusal(&broken, MINUTE), "its preparation: ended with exit status: 3: no tool");
        let endless = Program { prepare: "sleep 100", ..broken };
        let words = "its preparation: took longer than 1 s and was ended; raise --timeout";
        assert_eq!(refusal(&endless, Duration::from_secs(1)), words);
    }
}
