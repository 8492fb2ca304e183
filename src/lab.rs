//! temporary
#[path = "cli/test/case.rs"] pub mod case;
#[path = "cli/test/check.rs"] pub mod check;
