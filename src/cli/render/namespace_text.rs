//! The policies of a Namespace, and what they reach, as text.

use std::io::Write;

use super::report::write_wrapped;
use super::session::Session;
use super::text::{Style, count, printable};
use super::{CliError, policies};

/// Maximum number of policies to name that are attached to other objects.
const MAX_OTHERS: usize = 5;

/// Writes the policies that are attached to the Namespace of a path, and what they reach.
pub(in crate::cli) fn reach(
    out: &mut dyn Write,
    session: &mut Session,
    path: &str,
    style: Style,
) -> Result<(), CliError> {
    let namespace = path.rsplit('/').next().unwrap_or_default();
    let found = policies::attached_to_namespace(session, namespace)?;
    writeln!(out, "\n{}", style.bold("attached to the Namespace"))?;
    for policy in &found.attached {
        let reaches = match policy.paths {
            0 => "reaches no path".to_owned(),
            paths => format!(
                "reaches {}",
                count(usize::try_from(paths).unwrap_or(usize::MAX), "path")
            ),
        };
        let text = format!("{}: {}, {reaches}", policy.name, policy.in_force);
        write_wrapped(out, &text, 2, str::to_owned)?;
    }
    if found.attached.is_empty() {
        writeln!(out, "  none")?;
    } else {
        writeln!(
            out,
            "  {}",
            style.dim("`entail reach NAME` lists the paths")
        )?;
    }
    if !found.others.is_empty() {
        writeln!(
            out,
            "\n{}",
            style.bold("in the namespace, attached to other objects")
        )?;
    }
    for name in found.others.iter().take(MAX_OTHERS) {
        writeln!(out, "  {}", printable(name))?;
    }
    if let Some(more @ 1..) = found.others.len().checked_sub(MAX_OTHERS) {
        writeln!(out, "  and {more} more: `entail status` lists them")?;
    }
    Ok(())
}
