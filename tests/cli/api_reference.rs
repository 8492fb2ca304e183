//! Checks that `docs/api.md` names every field of the protobuf package `entail.v1`.

use std::fs;
use std::path::Path;

/// Returns the name of the field that a line of a proto declares, such as `repeated string kinds = 2;`.
fn field(line: &str) -> Option<&str> {
    let (declaration, number) = line.trim().strip_suffix(';')?.split_once(" = ")?;
    number.parse::<u32>().ok()?;
    let words: Vec<&str> = declaration.split(' ').collect();
    // A value of an enum has no type.
    (words.len() > 1).then(|| *words.last().unwrap())
}

/// Whether a text contains a name as a whole word.
fn names(text: &str, name: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.any(|word| word == name)
}

#[test]
fn the_api_reference_names_every_field() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = fs::read_to_string(root.join("docs/api.md")).unwrap();
    let (mut missing, mut fields) = (Vec::new(), 0);
    for entry in fs::read_dir(root.join("proto/entail/v1")).unwrap() {
        let path = entry.unwrap().path();
        let proto = fs::read_to_string(&path).unwrap();
        for name in proto.lines().filter_map(field) {
            fields += 1;
            if !names(&reference, name) {
                let file = path.file_name().unwrap().to_string_lossy();
                missing.push(format!(
                    "docs/api.md does not name field `{name}` of {file}"
                ));
            }
        }
    }
    assert!(fields > 150, "{fields} fields");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
