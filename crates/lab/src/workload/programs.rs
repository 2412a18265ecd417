//! Real programs, if they are installed: each does a small job of its usual kind in an empty folder.
//!
//! | workload | job |
//! |---|---|
//! | `python3_json` | turns objects into JSON and back, with Python's own small-block allocator switched off |
//! | `sqlite3_index` | fills, indexes and queries a table in memory, and deletes a third of it |
//! | `gcc_compile` | optimises a C file of 300 functions |
//! | `git_history` | makes 12 commits and a clone, and runs `git gc` |
//! | `redis_benchmark` | `redis-benchmark` fills a server over a socket |
//!
//! The children inherit the preloaded library. Their time, page faults and peak are counted, including those of the shell that starts them. The
//! checksum covers what the job prints, so an allocator that breaks a program is noticed. An operation is one run of the job.
//!
//! Does not show: what a program does over hours.

use crate::scratch_file::ScratchFolder;
use crate::workload::definition::{Body, Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};

const PARAMS: &[Param] = &[Param::scaled("ops", [1, 2, 8], "runs of the job").at_least_one()];

const HIDES: &str = "what the program does over hours, and with other data";

const fn workload(name: &'static str, models: &'static str, run: Body) -> Workload {
    Workload { name, models, hides: HIDES, shows: PrimaryFigure::Time, params: PARAMS, run, run_on_null: None }
}

pub(crate) static PYTHON3: Workload =
    workload("python3_json", "python3 turning objects into JSON and back", |params, meter| {
        run(
            params,
            meter,
            "PYTHONMALLOC=malloc PYTHONHASHSEED=0 python3 -c '
import json
d = [{\"id\": i, \"name\": \"n%d\" % i, \"xs\": [x * 0.5 for x in range(i % 20)]} for i in range(15000)]
t = json.dumps(d)
print(len(t), len(json.loads(t)))'",
        )
    });

pub(crate) static SQLITE3: Workload =
    workload("sqlite3_index", "sqlite3 filling and indexing a table", |params, meter| {
        run(
            params,
            meter,
            "sqlite3 :memory: \"create table t(a integer primary key, b text, c real);
            with recursive n(i) as (select 1 union all select i+1 from n where i < 100000)
            insert into t select i, 'row ' || (i*7919 % 1000003), i/3.0 from n;
            create index b on t(b); select count(*), sum(a), max(b), total(c) from t;
            delete from t where a % 3 = 0; select count(*) from t;\"",
        )
    });

pub(crate) static GCC: Workload = workload("gcc_compile", "gcc optimising a file of 300 functions", |params, meter| {
    run(
        params,
        meter,
        "i=0; while [ $i -lt 300 ]; do
            echo \"int f$i(int a, int b) { int s = 0; for (int k = 0; k < a; k++) s += (b ^ k) * $i; return s; }\"
            i=$((i+1)); done > big.c; gcc -O2 -frandom-seed=1 -c big.c -o big.o && cksum < big.o",
    )
});

pub(crate) static GIT: Workload = workload("git_history", "git committing, cloning and packing", |params, meter| {
    run(
        params,
        meter,
        "export HOME=$PWD GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
            rm -rf a b; git init -q a; cd a; git config user.email a@b.c; git config user.name a; git config gc.auto 0
            for i in 1 2 3 4 5 6 7 8 9 10 11 12; do seq $i 3000 > f$i; git add .; git commit -qm c$i; done
            cd ..; git clone -q --no-hardlinks a b; cd b; git gc -q; git log --format=%H",
    )
});

pub(crate) static REDIS: Workload = workload("redis_benchmark", "a redis server and its benchmark", |params, meter| {
    run(
        params,
        meter,
        "redis-server --port 0 --unixsocket $PWD/s --dir $PWD --save '' > log &
            until redis-cli -s $PWD/s ping > /dev/null 2>&1; do sleep 0.02; done
            redis-benchmark -s $PWD/s -q -n 20000 -r 5000 -d 300 -t set,get,lpush > /dev/null
            redis-cli -s $PWD/s exists mylist; redis-cli -s $PWD/s shutdown nosave; wait",
    )
});

/// The program that a workload needs and the package that contains it; `None` if it needs none.
pub(crate) fn needs(workload: &str) -> Option<(&'static str, &'static str)> {
    match workload {
        "python3_json" => Some(("python3", "python3")),
        "sqlite3_index" => Some(("sqlite3", "sqlite3")),
        "gcc_compile" => Some(("gcc", "gcc")),
        "git_history" => Some(("git", "git")),
        "redis_benchmark" => Some(("redis-benchmark", "redis-server redis-tools")),
        _ => None,
    }
}

fn run(params: &Params, meter: &mut Meter, script: &str) -> Outcome {
    let ops = params.get("ops");
    let folder = match ScratchFolder::new("program") {
        Ok(folder) => folder,
        Err(error) => broken(&format!("{error:#}")),
    };
    meter.count_children();
    let digest = meter.section(|_| (0..ops).fold(0_u64, |sum, _| sum.wrapping_add(once(script, folder.path()))));
    Outcome::new(ops, digest)
}

/// Runs the job once; returns a digest of its output.
fn once(script: &str, folder: &Path) -> u64 {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null());
    match shell.output() {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let mut digest = DefaultHasher::new();
            output.stdout.hash(&mut digest);
            digest.finish()
        }
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = messages.lines().rev().take(2).collect();
            broken(&format!("the job ended with {}: {}", output.status, last.join(" | ")))
        }
        Err(error) => broken(&format!("sh could not be started: {error}")),
    }
}
