//! Real programs under preload: their output is the system allocator's, and the library was in the process.

use crate::run::{has, library};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program, as a shell script that prints the same under any allocator.
struct Program {
    name: &'static str,
    /// What it needs installed.
    needs: &'static [&'static str],
    /// Run in an empty folder of its own.
    script: &'static str,
    /// Whether the ordinary test command runs it.
    short: bool,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "python3 objects and threads",
        needs: &["python3"],
        script: r#"PYTHONMALLOC=malloc python3 -c '
import json, threading, subprocess, sys
def work(n, out): out.append(sum(len(json.dumps({str(i): [i] * (i % 50)})) for i in range(n)))
out = []
threads = [threading.Thread(target=work, args=(4000, out)) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(out)
print(subprocess.run([sys.executable, "-c", "print(sum(range(1000)))"], capture_output=True, text=True).stdout)
'"#,
        short: true,
    },
    Program {
        name: "gcc",
        needs: &["gcc"],
        script: r#"for i in $(seq 3000); do echo "int f$i(int a, int b) { int s = $i; for (int k = a; k < b; k++) s += k * $i ^ s; return s; }"; done > large.c
gcc -O1 -c large.c -o large.o && cksum < large.o"#,
        short: true,
    },
    Program {
        name: "git",
        needs: &["git"],
        script: r#"export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z HOME=$PWD
git init -q -b main r && cd r && git config user.email a@b && git config user.name a
for c in 1 2 3 4 5; do for f in $(seq 200); do echo "$c $f $((c * f))" > f$f; done; git add . && git commit -qm "c$c"; done
git gc -q && git fsck --full 2>&1 && cd .. && git clone -q r s && git -C s rev-parse HEAD && git -C s log --stat | cksum"#,
        short: true,
    },
    Program {
        name: "perl",
        needs: &["perl"],
        script: r#"perl -e 'my %h; for (1..300000) { $h{"k$_"} = "v" x ($_ % 90) } my $s = 0; $s += length $h{$_} for keys %h; print "$s\n"'"#,
        short: true,
    },
    Program {
        name: "python3's own tests",
        needs: &["python3"],
        script: "PYTHONMALLOC=malloc python3 -m test -q test_json test_threading test_subprocess test_fork1 test_gc >log 2>&1; echo $?; tail -1 log",
        short: false,
    },
    Program {
        name: "sqlite3",
        needs: &["sqlite3"],
        script: r#"sqlite3 db "create table t(a integer primary key, b text); with recursive c(x) as (select 1 union all select x+1 from c where x < 1000000) insert into t select x, printf('%08x', x * 7919) from c; create index i on t(b); select count(*), sum(a), max(b) from t where b like '%7%'; delete from t where a % 3 = 0; vacuum; select count(*), min(b) from t;""#,
        short: false,
    },
    Program {
        name: "node",
        needs: &["node"],
        script: r#"node -e 'const m = new Map(); for (let i = 0; i < 1e6; i++) m.set("k" + i, Buffer.alloc(i % 64)); let s = 0; for (const v of m.values()) s += v.length; console.log(s)'"#,
        short: false,
    },
    Program {
        name: "redis-server under redis-benchmark and BGSAVE",
        needs: &["redis-server", "redis-cli", "redis-benchmark"],
        script: r#"redis-server --port 0 --unixsocket $PWD/s --save "" --daemonize no >log 2>&1 & server=$!
for i in $(seq 50); do redis-cli -s $PWD/s ping >/dev/null 2>&1 && break; sleep 0.1; done
for i in 1 2 3 4 5; do redis-benchmark -s $PWD/s -q -n 20000 -r 5000 -t set,lpush,hset,sadd -d 200 >/dev/null; redis-cli -s $PWD/s bgsave; sleep 1; done
for i in $(seq 2000); do echo "set k$i v$i"; done | redis-cli -s $PWD/s >/dev/null
redis-cli -s $PWD/s get k1999; redis-cli -s $PWD/s info persistence | tr -d '\r' | grep rdb_last_bgsave_status; redis-cli -s $PWD/s shutdown nosave; wait $server; echo $?"#,
        short: false,
    },
    Program {
        name: "cargo",
        needs: &["cargo"],
        script: r#"cargo new -q --vcs none hello 2>/dev/null && cd hello && cargo build -q --offline && ./target/debug/hello"#,
        short: false,
    },
];

/// The few that the ordinary tests run.
pub(crate) fn short() -> Result<()> {
    run_those(|program| program.short)
}

/// All that are installed.
pub(crate) fn run() -> Result<()> {
    run_those(|_| true)
}

fn run_those(wanted: impl Fn(&Program) -> bool) -> Result<()> {
    let library = library()?;
    let scratch = std::env::temp_dir().join(format!("freestone-programs-{}", std::process::id()));
    let mut wrong = Vec::new();
    for program in PROGRAMS.iter().filter(|program| wanted(program)) {
        if let Some(missing) = program.needs.iter().find(|name| !has(name)) {
            eprintln!("   {}: skipped, {missing} is not installed", program.name);
            continue;
        }
        match compare(program, &library, &scratch) {
            Ok(processes) => eprintln!("   {}: same output, in {processes} processes", program.name),
            Err(error) => wrong.push(format!("{}: {error:#}", program.name)),
        }
    }
    fs::remove_dir_all(&scratch).ok();
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// Runs a program both ways; returns how many processes said that the library was in them.
fn compare(program: &Program, library: &Path, scratch: &Path) -> Result<usize> {
    let system = play(program, None, &scratch.join("run"))?;
    let report = scratch.join("report");
    fs::write(&report, "")?;
    let freestone = play(program, Some((library, &report)), &scratch.join("run"))?;
    if system != freestone {
        bail!("the output differs\nsystem:\n{system}\nfreestone:\n{freestone}");
    }
    let started = fs::read_to_string(&report)?.lines().filter(|line| line.contains(r#""event":"start""#)).count();
    if started == 0 {
        bail!("no process said that the library was in it");
    }
    Ok(started)
}

fn play(program: &Program, preload: Option<(&Path, &PathBuf)>, folder: &Path) -> Result<String> {
    fs::remove_dir_all(folder).ok();
    fs::create_dir_all(folder)?;
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(program.script).current_dir(folder).stdin(Stdio::null());
    if let Some((library, report)) = preload {
        shell.env("LD_PRELOAD", library).env("FREESTONE_REPORT", report);
    }
    let output = shell.output().context("cannot start bash")?;
    Ok(format!(
        "{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}
