//! Checks the table of built-in profiles in `docs/profiles-reference.md`, which is made from the profiles.
//!
//! With `UPDATE_DOCS=1` the table is rewritten instead.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const BEGIN: &str = "<!-- matrix: begin -->";
const END: &str = "<!-- matrix: end -->";

/// Returns the built-in profiles as `entail profiles -o json` lists them.
fn profiles() -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["profiles", "-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["profiles"].as_array().unwrap().clone()
}

/// Returns the text of a value as the content of a cell.
fn cell(value: &Value) -> String {
    value.as_str().unwrap().replace('|', "\\|")
}

/// Returns the table: a row for each kind, by project and API group.
fn table(profiles: &[Value]) -> String {
    let mut rows: BTreeMap<(String, String), String> = BTreeMap::new();
    for profile in profiles {
        let checked = &profile["checked"];
        let approximations: Vec<String> = checked["approximations"]
            .as_array()
            .unwrap_or_else(|| panic!("{} lacks `checked`", profile["name"]))
            .iter()
            .map(cell)
            .collect();
        let project = cell(&checked["project"]);
        let kind = cell(&profile["kind"]);
        let (name, group) = kind.split_once('.').unwrap_or((&kind, ""));
        let row = format!(
            "| {project} | {name} | {group} | {} | {} | {} | {} |\n",
            cell(&profile["class"]),
            cell(&checked["version"]),
            cell(&checked["by"]),
            if approximations.is_empty() {
                "-".to_owned()
            } else {
                approximations.join("; ")
            },
        );
        rows.insert((project.to_lowercase(), kind), row);
    }
    let head = "| Project | Kind | Group | Class | Version | Checked by | Known differences |\n\
                |---|---|---|---|---|---|---|\n";
    format!(
        "{BEGIN}\n\n{head}{}\n{END}",
        rows.into_values().collect::<String>()
    )
}

#[test]
fn the_matrix_of_built_in_profiles_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/profiles-reference.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a marker of the table");
    let (_, after) = rest.split_once(END).expect("a marker of the table's end");
    let current = format!("{before}{}{after}", table(&profiles()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
        return;
    }
    let mut lines = text.lines().zip(current.lines());
    let first = lines.find(|(shown, made)| shown != made);
    assert_eq!(
        first, None,
        "docs/profiles-reference.md differs from the profiles: run `UPDATE_DOCS=1 cargo test --test cli matrix`"
    );
    assert_eq!(
        text.len(),
        current.len(),
        "docs/profiles-reference.md differs from the profiles: run `UPDATE_DOCS=1 cargo test --test cli matrix`"
    );
}
