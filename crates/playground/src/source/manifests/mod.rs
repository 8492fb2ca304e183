//! The modules of the server that read texts. Those that read and watch files are left out.

#[path = "../../../../../src/source/manifests/defaults.rs"]
mod defaults;
#[path = "../../../../../src/source/manifests/document.rs"]
mod document;
#[path = "../../../../../src/source/manifests/json.rs"]
mod json;
#[path = "../../../../../src/source/manifests/limits.rs"]
mod limits;
#[path = "../../../../../src/source/manifests/problem.rs"]
mod problem;
#[path = "../../../../../src/source/manifests/read.rs"]
mod read;
#[path = "../../../../../src/source/manifests/refusal.rs"]
mod refusal;
#[path = "../../../../../src/source/manifests/scopes.rs"]
mod scopes;
#[path = "../../../../../src/source/manifests/split.rs"]
mod split;

pub use defaults::CrdSchemas;
pub use problem::{Problem, ProblemKind};
pub use read::read_objects;
pub use scopes::KindScopes;
