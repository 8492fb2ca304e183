//! `entail man`: the manual pages.

use std::process::Command;

fn entail() -> Command {
    Command::new(env!("CARGO_BIN_EXE_entail"))
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = entail().arg("man").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("entail.1").contains("entail\\-explain(1)"));
    let help = entail().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let text = page(&format!("entail-{name}.1"));
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
    }
}

#[test]
fn a_missing_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let output = entail().arg("man").arg(&gone).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("gone"), "{told}");
}
