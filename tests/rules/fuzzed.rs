//! Runs the checks of the fuzz targets on randomly changed inputs from fixed seeds, without libFuzzer.
//! `ENTAIL_TEST_TIMES` raises the number of inputs. `fuzz/run` is guided by coverage and needs a
//! separate build.

use super::corpus;
use super::oracle::{Rng, seeds};

#[path = "../../fuzz/targets/admission.rs"]
mod admission;
#[path = "../../fuzz/targets/cel.rs"]
mod cel;
#[path = "../../fuzz/targets/frames.rs"]
mod frames;
#[path = "../../fuzz/targets/http1.rs"]
mod http1;
#[path = "../../fuzz/targets/manifests.rs"]
mod manifests;
#[path = "../../fuzz/targets/merges.rs"]
mod merges;
#[path = "../../fuzz/targets/path.rs"]
mod path;
#[path = "../../fuzz/targets/profiles.rs"]
mod profiles;
#[path = "../../fuzz/targets/requests.rs"]
mod requests;
#[path = "../../fuzz/targets/server.rs"]
mod server;

/// Texts to insert into inputs: tokens with a meaning to the parsers.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "/",
    "#",
    "*",
    "&a ",
    "*a",
    "!",
    "-",
    "?",
    "\"",
    "'",
    "\\",
    "|",
    ">",
    "%",
    "\n",
    "\t",
    "  ",
    "---\n",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "18446744073709551616",
    "é",
    "\u{0}",
    "\u{feff}",
    "self",
    "has(",
    ".all(x, ",
    "rules",
    "gateways/",
    "spec: ",
    "<<: ",
];

/// Changes a text by a few deletions, copies and insertions. Sometimes the end is replaced by the end
/// of another text.
fn changed(rng: &mut Rng, text: &str, other: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..rng.within(1, 6) {
        let from = rng.below(text.len() + 1);
        let to = (from + rng.below(12)).min(text.len());
        match rng.below(5) {
            0 => drop(text.drain(from..to)),
            1 => text
                .splice(from..from, text[from..to].to_vec())
                .for_each(drop),
            2 => {
                let nested = rng.pick(PIECES).repeat(rng.within(1, 40));
                text.splice(from..from, nested.chars()).for_each(drop);
            }
            3 => {
                let other: Vec<char> = other.chars().collect();
                text.splice(from.., other[rng.below(other.len() + 1)..].iter().copied())
                    .for_each(drop);
            }
            _ => text
                .splice(from..to, rng.pick(PIECES).chars())
                .for_each(drop),
        }
    }
    text.into_iter().collect()
}

/// Checks the inputs and `count` changed inputs. A failure names the seed.
fn try_all(count: u64, inputs: &[String], check: fn(&str)) {
    assert!(inputs.len() > 20, "only {} inputs", inputs.len());
    for input in inputs {
        check(input);
    }
    try_changed(count, |rng| {
        let (one, other) = (rng.choose(inputs), rng.choose(inputs));
        let text = changed(rng, &one, &other);
        let result = std::panic::catch_unwind(|| check(&text));
        result.map_err(|_| format!("{text:?}"))
    });
}

/// Tries an input for each of `count` seeds; an error is the input that fails.
fn try_changed(count: u64, attempt: impl Fn(&mut Rng) -> Result<(), String>) {
    for seed in seeds(count) {
        let result = attempt(&mut Rng::new(seed));
        assert!(result.is_ok(), "ENTAIL_SEED={seed} fails: {result:?}");
    }
}

/// Changes bytes by a few deletions, copies, insertions and single bytes. Sometimes the end is replaced
/// by the end of others.
fn changed_bytes(rng: &mut Rng, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.within(1, 6) {
        let from = rng.below(bytes.len() + 1);
        let to = (from + rng.below(12)).min(bytes.len());
        let byte = rng.next().to_le_bytes()[0];
        match rng.below(8) {
            0 => drop(bytes.drain(from..to)),
            1 => bytes
                .splice(from..from, bytes[from..to].to_vec())
                .for_each(drop),
            2 => bytes
                .splice(from.., other[rng.below(other.len() + 1)..].to_vec())
                .for_each(drop),
            3 => bytes
                .splice(from..to, rng.pick(PIECES).bytes())
                .for_each(drop),
            4 => {
                let several = [byte].repeat(rng.within(1, 40));
                bytes.splice(from..from, several).for_each(drop);
            }
            operation => {
                if let Some(old) = bytes.get_mut(from) {
                    *old = match operation {
                        5 => *old ^ (1 << (byte % 8)),
                        // Lengths and numbers are small.
                        6 => old.wrapping_add(byte % 9).wrapping_sub(4),
                        _ => byte,
                    };
                }
            }
        }
    }
    bytes
}

/// Checks the inputs in a folder of `fuzz/seeds`, and `count` changed inputs. A failure names the seed.
fn try_bytes(count: u64, folder: &str, check: fn(&[u8])) {
    let folder = format!("{}/fuzz/seeds/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files: std::collections::BTreeSet<_> = files.collect();
    let inputs: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    for (file, input) in files.iter().zip(&inputs) {
        let result = std::panic::catch_unwind(|| check(input));
        assert!(result.is_ok(), "{} fails", file.display());
    }
    try_changed(count, |rng| {
        let (one, other) = (rng.choose(&inputs), rng.choose(&inputs));
        let bytes = changed_bytes(rng, &one, &other);
        let result = std::panic::catch_unwind(|| check(&bytes));
        result.map_err(|_| format!("{bytes:?}"))
    });
}

/// Returns the distinct texts in the case files from a marker to the next end character.
fn texts_from(markers: &[&str], is_end: fn(char) -> bool) -> Vec<String> {
    let texts = corpus::files().into_iter().map(std::fs::read_to_string);
    let mut distinct = std::collections::BTreeSet::new();
    for text in texts.map(Result::unwrap) {
        for marker in markers {
            for (at, _) in text.match_indices(marker) {
                let rest = &text[at..];
                distinct.insert(rest[..rest.find(is_end).unwrap_or(rest.len())].to_owned());
            }
        }
    }
    distinct.into_iter().collect()
}

/// Cuts a text at the brace that closes its first one.
fn balanced(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth <= 1 => return &text[..=at],
            '}' => depth -= 1,
            _ => {}
        }
    }
    text
}

#[test]
fn conditions_compile_or_are_rejected() {
    let lines = texts_from(&["when: ", "cel: "], |c| c == '\n');
    let sources = lines.iter().filter_map(|line| line.split_once(": "));
    let sources: Vec<String> = sources
        .map(|(_, source)| source.trim_matches(['\'', '"', '}', ']']).to_owned())
        .collect();
    try_all(1_000, &sources, cel::check);
}

#[test]
fn path_names_are_parsed_or_rejected() {
    let names = texts_from(&["gateways/", "mesh/", "namespaces/"], |c| {
        c.is_whitespace() || "\"',:]}".contains(c)
    });
    try_all(20_000, &names, path::check);
}

#[test]
fn invalid_manifests_do_not_affect_others() {
    let cases = corpus::cases().iter();
    let small = cases.filter(|case| case.objects.len() < 12);
    let texts: Vec<String> = small
        .map(|case| {
            let documents = case.inputs().into_iter().map(|value| value.to_string());
            documents.collect::<Vec<_>>().join("\n---\n")
        })
        .collect();
    try_all(200, &texts[..texts.len().min(40)], manifests::check);
}

#[test]
fn profiles_are_read_or_refused() {
    let built_in = entail_core::profile::built_in_sources();
    let texts: Vec<String> = built_in
        .iter()
        .flat_map(|(_, text)| text.split("\n---\n"))
        .map(str::to_owned)
        .collect();
    try_all(300, &texts, profiles::check);
}

#[test]
fn merged_blocks_are_explained_as_they_are_served() {
    let blocks = texts_from(&["defaults: {", "overrides: {", "limits: {"], |c| c == '\n');
    let pairs = blocks.iter().zip(blocks.iter().rev());
    let pairs: Vec<String> = pairs
        .map(|(upper, lower)| format!("{}\n===\n{}", balanced(upper), balanced(lower)))
        .collect();
    try_all(100, &pairs[..pairs.len().min(40)], merges::check);
}

#[test]
fn requests_of_any_bytes_are_answered_as_the_library_answers_them() {
    try_bytes(2_000, "requests", requests::check);
}

#[test]
fn frames_of_any_kind_leave_the_server_answering_and_empty() {
    try_bytes(400, "frames", frames::check);
}

#[test]
fn http1_of_any_kind_leaves_the_console_answering_and_empty() {
    try_bytes(400, "http1", http1::check);
}

#[test]
fn reviews_of_any_bytes_are_answered_or_refused() {
    try_bytes(1_000, "admission", admission::check);
}
