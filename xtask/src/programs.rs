//! Real programs under preload: the same output as under the system allocator, and proof that the library was in the process.
//!
//! Each program is a shell script that runs in an empty folder and prints what is to be compared. The proof is the library's own
//! report: one line at each process's start.

use crate::process::{build_library, cargo, is_installed, run as run_command, target};
use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// One program.
struct Program {
    name: &'static str,
    /// What has to be installed, and the Debian package that has it.
    needs: (&'static str, &'static str),
    script: &'static str,
    /// Whether `cargo xtask test` runs it.
    short: bool,
}

/// `$WORK` is an empty folder; stdout is compared.
const PROGRAMS: [Program; 11] = [
    Program {
        name: "python3",
        needs: ("python3", "python3"),
        script: "export PYTHONMALLOC=malloc PYTHONHASHSEED=0; python3 -c '
import json, random
random.seed(7)
d = [{\"id\": i, \"name\": \"n%d\" % i, \"xs\": [random.random() for _ in range(i % 20)]} for i in range(30000)]
t = json.dumps(d); e = json.loads(t); assert e == d
print(len(t), sum(len(x[\"xs\"]) for x in e))
import threading
out = []
ts = [threading.Thread(target=lambda k=k: out.append(sum(len(str(i)*k) for i in range(20000)))) for k in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]; print(sorted(out))'",
        short: true,
    },
    Program {
        name: "python3-tests",
        needs: ("python3", "python3 libpython3-testsuite"),
        script: "export PYTHONMALLOC=malloc
            for t in test_json test_threading test_subprocess test_fork1 test_gc; do
                python3 -m test -q $t > $WORK/log 2>&1 && echo $t ok || { echo $t failed; tail -30 $WORK/log >&2; }
            done",
        short: false,
    },
    Program {
        name: "git",
        needs: ("git", "git"),
        script: "export HOME=$WORK GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
            git init -q a; cd a; git config user.email a@b.c; git config user.name a; git config gc.auto 0
            for i in $(seq 1 25); do seq $i 3000 > f$i; seq 1 $i > g; git add .; git commit -qm c$i; done
            cd ..; git clone -q --no-hardlinks a b; cd b; git gc -q; git fsck --strict 2>/dev/null; git log --format=%H",
        short: true,
    },
    Program {
        name: "sqlite3",
        needs: ("sqlite3", "sqlite3"),
        script: "sqlite3 $WORK/db \"create table t(a integer primary key, b text, c real);
            with recursive n(i) as (select 1 union all select i+1 from n where i < 1000000)
            insert into t select i, 'row ' || (i*7919 % 1000003), i/3.0 from n;
            create index b on t(b); select count(*), sum(a), max(b), total(c) from t;
            select b from t order by b desc limit 5; delete from t where a % 3 = 0; vacuum; select count(*) from t;\"",
        short: true,
    },
    Program {
        name: "gcc",
        needs: ("gcc", "gcc"),
        script: "i=0; while [ $i -lt 1500 ]; do
                echo \"int f$i(int a, int b) { int s = 0; for (int k = 0; k < a; k++) s += (b ^ k) * $i; return s; }\"
                i=$((i+1)); done > big.c
            gcc -O2 -frandom-seed=1 -c big.c -o big.o && cksum < big.o",
        short: true,
    },
    Program {
        name: "perl",
        needs: ("perl", "perl"),
        script: "perl -e 'my %h; for my $i (1..300000) { $h{$i*7 % 65537} .= \"x\" x ($i % 13) } my $n = 0;
            $n += length $h{$_} for keys %h; print \"$n \", scalar(keys %h), \"\\n\";'",
        short: true,
    },
    Program {
        name: "node",
        needs: ("node", "nodejs"),
        script: "node -e 'const a = []; for (let i = 0; i < 300000; i++) a.push({i, s: \"v\" + i % 97, b: Buffer.alloc(i % 300)});
            const t = JSON.stringify(a.map(x => [x.i, x.s])); console.log(t.length, JSON.parse(t).length,
            require(\"zlib\").deflateSync(t).length)'",
        short: false,
    },
    Program {
        name: "redis",
        needs: ("redis-server", "redis-server"),
        script: "redis-server --port 0 --unixsocket $WORK/s --dir $WORK --save '' > $WORK/redis.log &
            until redis-cli -s $WORK/s ping > /dev/null 2>&1; do sleep 0.1; done
            redis-benchmark -s $WORK/s -q -n 30000 -r 5000 -d 300 -t set,get,lpush,hset > /dev/null
            for i in 1 2 3; do redis-cli -s $WORK/s bgsave > /dev/null; redis-benchmark -s $WORK/s -q -n 10000 -r 5000 -t set > /dev/null
                while redis-cli -s $WORK/s info persistence | grep -q bgsave_in_progress:1; do sleep 0.1; done
                redis-cli -s $WORK/s info persistence | grep -o 'rdb_last_bgsave_status:ok'; done
            redis-cli -s $WORK/s shutdown nosave; wait",
        short: false,
    },
    Program {
        name: "postgres",
        needs: ("pgbench", "postgresql"),
        script: "B=$(dirname $(ls /usr/lib/postgresql/*/bin/postgres $(command -v postgres) 2>/dev/null | head -1))
            as() { if [ $(id -u) = 0 ]; then runuser -u postgres -- \"$@\"; else \"$@\"; fi; }
            [ $(id -u) = 0 ] && chown postgres $WORK; cd $WORK; [ -e $FREESTONE_REPORT ] && chmod 666 $FREESTONE_REPORT
            as $B/initdb -D d > init.log 2>&1
            as $B/pg_ctl -D d -w -o \"-k $WORK -c listen_addresses=''\" -l $WORK/pg.log start > /dev/null
            as $B/createdb -h $WORK bench; as $B/pgbench -h $WORK -q -i -s 2 bench > /dev/null 2>&1
            as $B/pgbench -h $WORK -n -c 4 -j 2 -t 300 bench 2>/dev/null | grep -o 'processed: .*'
            as $B/psql -h $WORK -At -c 'select count(*), min(aid), max(aid) from pgbench_accounts' bench
            as $B/pg_ctl -D d -w stop > /dev/null",
        short: false,
    },
    Program {
        // It loads its extensions with RTLD_DEEPBIND.
        name: "php",
        needs: ("php", "php-cli php-xml php-mbstring php-sqlite3 php-intl"),
        script: r#"php -r 'for ($i = 0; $i < 100; $i++) {
                $text = ""; for ($j = 0; $j < 50; $j++) $text .= "<a n=\"$j\">" . str_repeat(chr(97 + $j % 26), ($i * 37 + $j) % 300) . "</a>";
                $page = new DOMDocument; $page->loadXML("<r>$text</r>"); echo (new DOMXPath($page))->query("//a[@n>10]")->length, " ";
                $db = new SQLite3(":memory:"); $db->exec("create table t(a, b)");
                for ($j = 0; $j < 100; $j++) $db->exec("insert into t values($j, \"" . md5("$i $j") . "\")");
                echo $db->querySingle("select count(*) from t where b > \"8\""), " ";
                $names = ["z$i", "\u{e4}", "a", "Z"]; collator_sort(collator_create("de"), $names);
                echo implode($names), " ", md5(mb_convert_encoding(str_repeat("\u{fc}$i", 50), "UTF-16", "UTF-8")), "\n"; }'"#,
        short: false,
    },
    Program {
        name: "cargo",
        needs: ("cargo", "cargo"),
        script: "cargo new -q --vcs none --lib a; cd a
            i=0; while [ $i -lt 300 ]; do echo \"pub fn f$i(x: &[u64]) -> String { format!(\\\"{:?} {}\\\", x, $i) }\"; i=$((i+1)); done > src/lib.rs
            CARGO_TARGET_DIR=$WORK/t cargo build -q --offline 2>&1 && ls $WORK/t/debug/*.rlib | wc -l",
        short: false,
    },
];

/// The output of one run, and how many processes reported that the library started.
struct Outcome {
    stdout: String,
    n_starts: usize,
}

/// The libraries that a program can be given.
struct Libraries {
    allocator: PathBuf,
    /// The checked memory functions, which programs get at the level `full`.
    memory: PathBuf,
}

/// The libraries, and the level of the option `harden` that a program is given; without one it has the default.
#[derive(Clone, Copy)]
struct Preload<'a> {
    libraries: &'a Libraries,
    harden: Option<&'a str>,
}

impl Preload<'_> {
    /// The value of `LD_PRELOAD`.
    fn value(self) -> String {
        let allocator = self.libraries.allocator.display();
        match self.harden {
            Some("full") => format!("{allocator} {}", self.libraries.memory.display()),
            _ => allocator.to_string(),
        }
    }
}

fn run_once(program: &Program, preload: Option<Preload<'_>>) -> Result<Outcome> {
    let work = std::env::temp_dir().join(format!("freestone-{}-{}", program.name, std::process::id()));
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;
    let report = work.with_extension("report");
    fs::write(&report, "")?;
    let mut command = Command::new("bash");
    // The script sets the preload, so the shell that runs it is the only process without the library.
    let export = preload.map_or(String::new(), |preload| format!("export LD_PRELOAD='{}'\n", preload.value()));
    command.arg("-c").arg(format!("{export}{}", program.script)).current_dir(&work);
    command.envs(preload.and_then(|preload| preload.harden).map(|level| ("FREESTONE_HARDEN", level)));
    command.env("WORK", &work).env("FREESTONE_REPORT", &report).env("LC_ALL", "C");
    let output = command.output().context("cannot start bash: is it installed?")?;
    let lines = fs::read_to_string(&report).unwrap_or_default();
    let (_, _) = (fs::remove_dir_all(&work), fs::remove_file(&report));
    if !output.status.success() {
        bail!("{} ended with {}\n{}", program.name, output.status, String::from_utf8_lossy(&output.stderr));
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if preload.is_some() && stderr.contains("freestone:") {
        bail!("{}: the library reported:\n{stderr}", program.name);
    }
    let n_starts = lines.lines().filter(|line| line.contains(r#""event":"start""#)).count();
    Ok(Outcome { stdout: String::from_utf8_lossy(&output.stdout).into_owned(), n_starts })
}

fn compare(program: &Program, system: &Outcome, preload: Preload<'_>) -> Result<()> {
    let begun = Instant::now();
    let ours = run_once(program, Some(preload))?;
    if ours.n_starts == 0 {
        bail!("{}: the library was not in the process (static, setuid, or preloading refused?)", program.name);
    }
    if system.stdout != ours.stdout || ours.stdout.trim().is_empty() {
        bail!("{}: output differs\n--- system\n{}\n--- freestone\n{}", program.name, system.stdout, ours.stdout);
    }
    let level = preload.harden.map_or(String::new(), |level| format!(" with harden={level}"));
    println!("ok {}{level} ({} processes, {:.1} s)", program.name, ours.n_starts, begun.elapsed().as_secs_f64());
    Ok(())
}

/// Builds the libraries and copies them to a place that other users can read.
fn libraries() -> Result<Libraries> {
    build_library()?;
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-memory"]))?;
    let copied = |name: &str| -> Result<PathBuf> {
        let copy = std::env::temp_dir().join(format!("{name}-{}.so", std::process::id()));
        fs::copy(target().join(format!("release/{name}.so")), &copy)
            .with_context(|| format!("cannot copy {name}.so"))?;
        Ok(copy)
    };
    Ok(Libraries { allocator: copied("libfreestone")?, memory: copied("libfreestone_memory")? })
}

/// Runs each program without the library, and with it at each level.
fn run_all<'a>(programs: impl Iterator<Item = &'a Program>, levels: &[Option<&str>], install: bool) -> Result<()> {
    let libraries = libraries()?;
    let mut wrong = Vec::new();
    for program in programs {
        let (binary, package) = program.needs;
        if !is_installed(binary) && install {
            let packages = package.split(' ');
            run_command(Command::new("apt-get").args(["install", "-y", "--no-install-recommends"]).args(packages))?;
        }
        if !is_installed(binary) {
            println!("skipped {}: {binary} is not installed (package {package})", program.name);
            continue;
        }
        let system = run_once(program, None);
        for &harden in levels {
            let preload = Preload { libraries: &libraries, harden };
            let result = system.as_ref().map_err(|error| anyhow!("{error:#}"));
            if let Err(error) = result.and_then(|system| compare(program, system, preload)) {
                println!("FAILED {}: {error:#}", harden.unwrap_or("at the default level"));
                wrong.push(program.name);
            }
        }
    }
    for library in [&libraries.allocator, &libraries.memory] {
        let _ = fs::remove_file(library);
    }
    wrong.dedup();
    if !wrong.is_empty() {
        bail!(
            "these failed under preload: {}; to run them again: cargo xtask programs {}",
            wrong.join(", "),
            wrong.join(" ")
        );
    }
    Ok(())
}

/// Runs those that take seconds and are installed, as they are and with every free checked.
pub(crate) fn run_short() -> Result<()> {
    run_all(PROGRAMS.iter().filter(|program| program.short), &[Some("default"), Some("checks")], false)
}

/// Runs the named programs, or all, at the named levels of the option `harden`, or at its default; with `install`, installs missing programs.
pub(crate) fn run(names: &[String], levels: &[String], install: bool) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| PROGRAMS.iter().all(|program| program.name != name.as_str())) {
        let known: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!("no program is called {unknown}; known are {}", known.join(", "));
    }
    let is_chosen = |program: &&Program| names.is_empty() || names.iter().any(|name| name == program.name);
    let levels: Vec<_> =
        if levels.is_empty() { vec![None] } else { levels.iter().map(|level| Some(level.as_str())).collect() };
    run_all(PROGRAMS.iter().filter(is_chosen), &levels, install)
}
