//! Subjects of `cg-compare` that are written in Go: neither takes the other away.
//!
//! No test asks Go's module proxy: a script takes the place of Go, or modules of this folder that of the real ones.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const BLAZEDB: &str = "BlazeDB";
const LEVELDB: &str = "dragonfly's LevelDB";
const HOW: &str = "`git clone https://github.com/cqdetdev/blazedb DIR`, then `git -C DIR checkout \
                   d6788535497238357acf062c01342f7dfc1ca4be`, then set CG_BLAZEDB=DIR";

/// Begins the condition of a subject that is left out.
const SKIPPED: &str = "!!! SKIPPED: ";

/// A folder for stores and reports, and what the programs find in their environment.
struct Place {
    dir: TempDir,
    environment: Vec<(&'static str, OsString)>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Self { dir, environment: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Puts a script in the place of Go. It fails in one folder, and builds a program that answers at once in others.
    fn with_scripted_go(self, fails_in: &str) -> Self {
        let tools = self.dir.path().join("tools");
        fs::create_dir(&tools).expect("a folder");
        let script = SCRIPT.replace("FAILS_IN", fails_in);
        let tool = tools.join("go");
        fs::write(&tool, script).expect("written");
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("a script");
        let path = std::env::var_os("PATH").expect("a path");
        let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)));
        self.with("PATH", path.expect("a path"))
    }

    /// Makes a checkout of one file, in a folder whose name has a space.
    fn with_checkout(self) -> Self {
        let checkout = self.dir.path().join("a checkout");
        fs::create_dir(&checkout).expect("a folder");
        fs::write(checkout.join("go.mod"), "module github.com/cqdetdev/blazedb\n\ngo 1.26.0\n")
            .expect("written");
        self.with("CG_BLAZEDB", checkout)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cg-compare"));
        program.args([
            "run",
            "--quick",
            "--columns",
            "121",
            "--rounds",
            "1",
            "--patience",
            "0",
            "--out",
            "out",
        ]);
        // A folder that is named from where the program runs, and hills from a seed.
        program.current_dir(self.dir.path()).env("CG_WORLDS", self.dir.path()).env_remove("CI");
        program.env_remove("CG_BLAZEDB").args(arguments).envs(self.environment.iter().cloned());
        program.output().expect("the program runs")
    }

    fn measured(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
        assert!(output.status.success(), "{said:?}");
        let report = fs::read_to_string(self.dir.path().join("out/report.json")).expect("a report");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        for condition in report["conditions"].as_array().expect("conditions") {
            let condition = condition.as_str().expect("a text");
            assert!(said[0].contains(condition), "{condition} is not printed");
            let at_once = !condition.starts_with(SKIPPED) || said[1].contains(condition);
            assert!(at_once, "{condition} is not told before all is measured");
        }
        report
    }
}

/// The tool of Go as a script: what it builds says that it is the subject of its folder, and that all took 5 ns.
const SCRIPT: &str = r#"#!/bin/sh
folder=$(basename "$PWD")
if [ "$folder" = FAILS_IN ]; then echo "no modules in $folder" >&2; exit 1; fi
if [ "$1" = mod ]; then exit 0; fi
name="dragonfly's LevelDB"
if [ "$folder" = blaze ]; then
  name=BlazeDB
  grep -q '^replace github.com/cqdetdev/blazedb => "/.*/a checkout"$' go.mod || exit 2
fi
echo "{\"name\":\"$name\",\"role\":\"Rival\",\"version\":\"1\",\"durability\":\"\",\"options\":\"\"}" > about.json
cat > subject <<'END'
#!/bin/sh
case "$*" in
about) cat "$(dirname "$0")/about.json";;
*--workload*) echo '{"Measured":{"value":5.0,"units":1,"latency":null,"written_bytes":1,"saved_bytes":1,"disk_bytes":1,"held_bytes":null,"peak_bytes":1,"compared_columns":121,"effort":null}}';;
*) echo '{"NotApplicable":"prepared"}';;
esac
END
chmod +x subject
"#;

fn subjects(report: &Value) -> Vec<&str> {
    let rows = report["workloads"][0]["rows"].as_array().expect("rows");
    rows.iter().map(|row| row["subject"].as_str().expect("a name")).collect()
}

fn skipped(report: &Value) -> Vec<&str> {
    let conditions = report["conditions"].as_array().expect("conditions").iter();
    conditions.filter_map(|text| text.as_str().filter(|text| text.starts_with(SKIPPED))).collect()
}

#[test]
fn without_a_checkout_the_other_still_runs() {
    let place = Place::new().with_scripted_go("none");
    let report = place.measured(&["disk", "--subject", BLAZEDB, "--subject", LEVELDB]);
    assert_eq!(subjects(&report), [LEVELDB]);
    let reason = format!("CG_BLAZEDB names no checkout of it, and Go's proxy does not serve it: {HOW}");
    assert_eq!(skipped(&report), [format!("!!! SKIPPED: BlazeDB: {reason}")]);
}

#[test]
fn a_checkout_that_cannot_be_built_takes_the_other_not_away() {
    let place = Place::new().with_scripted_go("blaze").with_checkout();
    let report = place.measured(&["disk", "--subject", BLAZEDB, "--subject", LEVELDB]);
    assert_eq!(subjects(&report), [LEVELDB]);
    let step = "`go mod edit -module=compare -require=github.com/cqdetdev/blazedb@v0.0.0` failed";
    assert_eq!(skipped(&report), [format!("!!! SKIPPED: BlazeDB: {step}: no modules in blaze")]);
}

#[test]
fn without_the_modules_of_dragonfly_a_checkout_still_runs() {
    let place = Place::new().with_scripted_go("level").with_checkout();
    let report = place.measured(&["disk", "--subject", BLAZEDB, "--subject", LEVELDB]);
    assert_eq!(subjects(&report), [BLAZEDB]);
    let step = "`go build -mod=readonly -o subject .` failed";
    assert_eq!(skipped(&report), [format!("!!! SKIPPED: {LEVELDB}: {step}: no modules in level")]);
}

#[test]
fn a_run_of_nothing_but_what_is_left_out_fails_with_the_reason() {
    let output = Place::new().run(&["disk", "--subject", BLAZEDB]);
    assert!(!output.status.success());
    let reason = format!("CG_BLAZEDB names no checkout of it, and Go's proxy does not serve it: {HOW}");
    let expected = format!("cg-compare: !!! SKIPPED: BlazeDB: {reason}\n");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.ends_with(&expected), "{error}");
}

#[test]
fn a_checkout_is_built_in_place_of_the_module() {
    let go = Command::new("go").arg("version").stdin(Stdio::null()).output();
    if !go.is_ok_and(|output| output.status.success()) {
        // Past the harness, which shows what a test prints only when the test fails.
        let told = writeln!(
            std::io::stderr(),
            "!!! SKIPPED a_checkout_is_built_in_place_of_the_module: Go is not installed"
        );
        return told.expect("standard error takes a line");
    }
    let place = Place::new();
    let standin = place.dir.path().join("stand in");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin"), &standin);
    let mut modules = "module github.com/cqdetdev/blazedb\n\ngo 1.24\n".to_owned();
    for module in ["dragonfly", "goleveldb"] {
        let (name, dir) = (format!("github.com/df-mc/{module}"), standin.join(module));
        fs::write(dir.join("go.mod"), format!("module {name}\n\ngo 1.24\n")).expect("written");
        writeln!(modules, "require {name} v0.0.0\nreplace {name} => {dir:?}").expect("a string takes all");
    }
    let checkout = standin.join("blazedb");
    fs::write(checkout.join("go.mod"), modules).expect("written");
    let cache = place.dir.path().join("modules");
    let place = place
        .with("CG_BLAZEDB", "stand in/blazedb")
        .with("GOPROXY", "off")
        .with("GOTOOLCHAIN", "local")
        .with("GOMODCACHE", cache);

    let report = place.measured(&["block-process", "--subject", BLAZEDB, "--subject", LEVELDB]);
    assert_eq!(subjects(&report), [BLAZEDB]);
    let version = &report["subjects"][0]["version"];
    assert_eq!(version, "github.com/cqdetdev/blazedb from a folder without a commit");
    let figures = &report["workloads"][0]["rows"][0]["outcomes"][0]["Measured"];
    assert_eq!(figures["compared_columns"], 121, "{figures}");
    let [other] = skipped(&report).try_into().expect("the modules of the other are not to be had");
    let begin = format!("!!! SKIPPED: {LEVELDB}: `go build -mod=readonly -o subject .` failed: ");
    assert!(other.starts_with(&begin) && other.contains("GOPROXY=off"), "{other}");

    fs::write(checkout.join("blazedb.go"), "package blazedb\n\nvar broken = missing\n").expect("written");
    let output = place.run(&["disk", "--subject", BLAZEDB]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("undefined: missing"), "{error}");
}

/// Copies the files of a folder and of all below it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let from: PathBuf = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("copied");
        }
    }
}
