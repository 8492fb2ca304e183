//! NAME of a path or an object, as kubectl takes it.

use std::path::{Path, PathBuf};

use clap::Args;

use super::CliError;

/// What a query is about.
#[derive(Args, Clone, Debug, Default)]
pub struct NameArgs {
    /// An object as kubectl takes it (`httproute/bread -n baker`, `httproute bread -n baker`,
    /// `httproute/baker/bread`), with `#` before a section (`httproute/shop/shop#browse`); or a path
    /// (`gateways/...`, `mesh/...`, `gatewayclasses/...`, `namespaces/...`).
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub words: Vec<String>,
    /// Namespace of the object that NAME names.
    #[arg(short, long)]
    pub namespace: Option<String>,
}

impl NameArgs {
    /// Returns the name as one word; `None` if there is none.
    ///
    /// # Errors
    /// The words and the namespace do not form one name.
    pub(super) fn name(&self) -> Result<Option<String>, CliError> {
        let mut words = self.words.iter().map(String::as_str);
        let name = match (words.next(), words.next()) {
            (None, _) if self.namespace.is_some() => {
                return Err(CliError::Usage(
                    "`-n` is the namespace of NAME, and there is none; `--only-namespace` reads one namespace of a cluster"
                        .to_owned(),
                ));
            }
            (None, _) => return Ok(None),
            (Some(name), None) => name.to_owned(),
            (Some(one), Some(other)) => joined(one, other)?,
        };
        let name = match self.namespace.as_deref().filter(|_| !name.is_empty()) {
            Some(namespace) => with_namespace(&name, namespace)?,
            None => name,
        };
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    /// Moves words back from list options that consumed them, as in `get --manifests FOLDER NAME`.
    ///
    /// Such options take several values, so that they also match words that follow them. Their last values are NAME if
    /// they look like a name and no such file exists.
    pub(super) fn recover<'l>(&mut self, lists: impl IntoIterator<Item = &'l mut Vec<PathBuf>>) {
        for list in lists {
            if !self.words.is_empty() || list.len() < 2 {
                continue;
            }
            let Some(name) = list.pop_if(|last| is_name(last)) else {
                continue;
            };
            let is_word = |path: &mut PathBuf| is_kind(path) && !is_whole(&name);
            let kind = if list.len() < 2 {
                None
            } else {
                list.pop_if(is_word)
            };
            let words = kind.iter().chain([&name]);
            let words = words.filter_map(|word| word.to_str().map(str::to_owned));
            self.words = words.collect();
        }
    }
}

/// Whether a name is a path name: begins with the root of one.
pub(super) fn is_path(name: &str) -> bool {
    ["gateways/", "gatewayclasses/", "namespaces/", "mesh/"]
        .iter()
        .any(|root| name.starts_with(root))
}

/// The path that a Namespace is, if a name is one: `ns/baker` and `namespaces/baker` are `namespaces/baker`.
pub(super) fn namespace_path(name: &str) -> Option<String> {
    let (kind, namespace) = name.split_once('/')?;
    let kind = kind.to_ascii_lowercase();
    let is_namespace = matches!(&*kind, "namespace" | "namespaces" | "ns");
    let is_one = !namespace.is_empty() && !namespace.contains(['/', '#']);
    (is_namespace && is_one).then(|| format!("namespaces/{namespace}"))
}

/// Joins a kind and a name, in either order.
fn joined(one: &str, other: &str) -> Result<String, CliError> {
    let (kind, name) = match one.contains('/') && !other.contains('/') {
        true => (other, one),
        false => (one, other),
    };
    if kind.contains('/') || kind.is_empty() || name.is_empty() {
        return Err(CliError::Usage(format!(
            "`{one} {other}` is not one name: use `kind name`, `kind/name` with `-n`, or `kind/namespace/name`"
        )));
    }
    Ok(format!("{kind}/{name}"))
}

/// Adds a namespace to the name of an object that has none.
fn with_namespace(name: &str, namespace: &str) -> Result<String, CliError> {
    let (object, section) = match name.split_once('#') {
        Some((object, section)) => (object, format!("#{section}")),
        None => (name, String::new()),
    };
    let parts: Vec<&str> = object.split('/').collect();
    match parts.as_slice() {
        [kind, _] if is_cluster_scoped(kind) => Ok(name.to_owned()),
        [kind, of] => Ok(format!("{kind}/{namespace}/{of}{section}")),
        [_, own, _] if *own == namespace => Ok(name.to_owned()),
        [_, own, _] => Err(CliError::Usage(format!(
            "`{name}` is in the namespace `{own}`, and `-n` says `{namespace}`: omit one of them"
        ))),
        [_] => Err(CliError::Usage(format!(
            "`{name}` has no kind: use `kind/{name}`, such as `httproute/{name}`"
        ))),
        // A path has its namespaces.
        _ => Ok(name.to_owned()),
    }
}

/// Whether objects of a kind of paths have no namespace.
fn is_cluster_scoped(kind: &str) -> bool {
    let kind = kind.split('.').next().unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let kinds = [
        "namespace",
        "namespaces",
        "ns",
        "gatewayclass",
        "gatewayclasses",
        "gc",
    ];
    kinds.contains(&&*kind)
}

/// Whether a value of `--manifests` looks like a name and is not an existing file.
fn is_name(path: &Path) -> bool {
    let Some(text) = path.to_str() else {
        return false;
    };
    let parts = text.split('/').collect::<Vec<_>>();
    let is_object = matches!(parts.len(), 2 | 3) && parts.iter().all(|part| !part.is_empty());
    let is_relative = text.starts_with(['/', '.', '~']);
    let is_word = is_kind(path);
    (is_path(text) || is_object || is_word) && !is_relative && !path.exists()
}

/// Whether a value of `--manifests` looks like a kind, or a name without its kind, and is not an existing file.
fn is_kind(path: &Path) -> bool {
    let word = path.to_str().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '#');
    let is_file = [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| word.ends_with(end));
    !word.is_empty()
        && !word.starts_with('.')
        && word.chars().all(is_plain)
        && !is_file
        && !path.exists()
}

/// Whether a word is a whole name: a path, or an object with its kind and namespace.
fn is_whole(word: &Path) -> bool {
    let word = word.to_str().unwrap_or_default();
    is_path(word) || word.split('/').count() > 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        name: NameArgs,
        #[arg(long, num_args = 1..)]
        manifests: Vec<PathBuf>,
    }

    /// The name and the number of manifests of a command line.
    fn parse(line: &str) -> (Option<String>, usize) {
        let all = std::iter::once("x").chain(line.split_whitespace());
        let mut line = Line::try_parse_from(all).unwrap();
        line.name.recover([&mut line.manifests]);
        (line.name.name().unwrap(), line.manifests.len())
    }

    #[test]
    fn names_are_those_of_kubectl_in_any_order() {
        for line in [
            "httproute/baker/bread --manifests x y",
            "httproute baker/bread --manifests x y",
            "baker/bread httproute --manifests x y",
            "httproute/bread -n baker --manifests x y",
            "httproute bread -n baker --manifests x y",
            "--namespace baker --manifests x y -n baker httproute bread",
            "-n baker httproute/baker/bread --manifests x y",
            "--manifests x y httproute/baker/bread",
            "--manifests x y httproute baker/bread",
            "--manifests x y httproute bread -n baker",
        ] {
            if line.contains("--namespace") {
                assert!(Line::try_parse_from(std::iter::once("x").chain(line.split(' '))).is_err());
                continue;
            }
            assert_eq!(
                parse(line),
                (Some("httproute/baker/bread".to_owned()), 2),
                "{line}"
            );
        }
        let section = Some("httproute/shop/shop#browse".to_owned());
        assert_eq!(parse("httproute/shop#browse -n shop").0, section);
        let gateway = Some("gateways/platform/storefront".to_owned());
        assert_eq!(parse("gateways storefront -n platform").0, gateway);
        assert_eq!(parse("gateways storefront --namespace platform").0, gateway);
        assert_eq!(parse("ns baker -n shop").0, Some("ns/baker".to_owned()));
        let path = Some("gateways/a/b/listeners/c".to_owned());
        assert_eq!(parse("--manifests x gateways/a/b/listeners/c"), (path, 1));
        assert_eq!(parse("--manifests x ./a/b"), (None, 2));
        assert_eq!(parse("--manifests httproute/a/b"), (None, 1));
        assert_eq!(parse("--manifests x.yaml y.yaml"), (None, 2));
        assert_eq!(parse(""), (None, 0));
    }

    #[test]
    fn contradictory_names_are_refused() {
        let refused = |line: &str| {
            let all = std::iter::once("x").chain(line.split_whitespace());
            let line = Line::try_parse_from(all).unwrap();
            line.name.name().unwrap_err().to_string()
        };
        assert!(refused("httproute/a/b -n c").contains("omit one"));
        assert!(refused("a/b c/d").contains("not one name"));
        assert!(refused("bread -n baker").contains("has no kind"));
        assert!(refused("-n baker").contains("there is none"));
    }
}
