//! The document for readers, generated from reports.

use std::fs;
use std::path::{Path, PathBuf};

use crate::RunError;
use crate::report::{ClassCount, Outcome};

/// Prints the document, as Markdown, from the reports of runs.
///
/// # Errors
/// Returns an error if a report cannot be read.
pub fn print(reports: &[PathBuf]) -> Result<(), RunError> {
    for path in reports {
        print!("{}", section(&read(path)?));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Outcome, RunError> {
    let fail = |error: String| RunError::File(path.display().to_string(), error);
    let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| fail(error.to_string()))
}

fn section(outcome: &Outcome) -> String {
    let total = outcome.total();
    let controller = &outcome.controller;
    let mut text = format!("\n## {} {}\n\n", controller.name, controller.version);
    text += &format!(
        "{} random worlds (seeds from {}), {} test inputs of the project: {} comparisons, {} agreements.\n\n",
        outcome.worlds, outcome.seed, outcome.golden, total.comparisons, total.agreements
    );
    text += "| Compared | Comparisons | Agreements |\n|---|---|---|\n";
    for (what, count) in &outcome.comparisons {
        text += &format!(
            "| {what} | {} | {} |\n",
            count.comparisons, count.agreements
        );
    }
    for class in &outcome.classes {
        text += &class_text(class);
    }
    text
}

fn class_text(count: &ClassCount) -> String {
    let class = &count.class;
    let mut text = format!(
        "\n### {}: {} differences\n\n",
        class.id, count.differences.count
    );
    text += &format!("{}\n\n{}\n\n", class.description.trim(), class.why.trim());
    let setting = class.setting.as_deref().unwrap_or("none");
    text += &format!("Setting: {setting}. Verdict: **{}**. ", class.verdict);
    text + &format!("Evidence: {}.\n", class.evidence.join(", "))
}
