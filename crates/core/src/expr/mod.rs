//! CEL expressions with limits. Tenants write them, and they run in the process that merges all
//! policies.
//!
//! Before parsing, length and nesting are checked, because the parser's time grows steeply with
//! nesting; the parser runs on a thread with a large stack. After parsing, the size of the syntax tree
//! is checked, and nested comprehensions are refused. Before an evaluation, what it can come to with these
//! variables is estimated, and what is too much is refused.

mod access;
mod convert;
mod cost;
mod guard;
mod order;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use access::Access;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, IdedExpr, Program};
use cost::{Extent, Part};
use serde_json::Value;

use crate::model::Str;

/// A compiled expression.
#[derive(Clone)]
pub struct Expression {
    source: Str,
    tree: Arc<IdedExpr>,
    /// What is read of each variable.
    reads: Arc<BTreeMap<Box<str>, Access>>,
}

/// The value of a variable, converted and measured once for many evaluations.
#[derive(Clone, Debug)]
pub struct Variable {
    value: Arc<dyn Val>,
    extent: Arc<Extent>,
}

/// The variables of an evaluation, by name.
struct Variables<'v>(&'v [(&'v str, &'v (dyn Val + 'v))]);

/// The functions of CEL, created once because registering all of them is slow.
static FUNCTIONS: LazyLock<Result<Context<'static, 'static>, String>> =
    LazyLock::new(order::context);

/// Stack size of the parser thread: the generated parser recurses deeply.
#[cfg(not(target_family = "wasm"))]
const PARSER_STACK: usize = 64 * 1024 * 1024;

/// Parses an expression on a thread with a large stack.
#[cfg(not(target_family = "wasm"))]
fn parse(source: &str) -> Result<Program, String> {
    let text = source.to_owned();
    let parser = std::thread::Builder::new()
        .stack_size(PARSER_STACK)
        .spawn(move || Program::compile(&text).map_err(|e| e.to_string()))
        .map_err(|e| format!("cannot be parsed: failed to start the parser thread: {e}"))?;
    // A panic of the parser counts as a parse error.
    let parsed = parser
        .join()
        .map_err(|_| "cannot be parsed: the parser failed".to_owned())?;
    parsed.map_err(|e| format!("does not parse: {}", first_line(&e)))
}

/// Parses an expression. WebAssembly has no threads; the limits of [`guard`] bound the recursion, and
/// an overflow of the stack ends the instance alone.
#[cfg(target_family = "wasm")]
fn parse(source: &str) -> Result<Program, String> {
    Program::compile(source).map_err(|e| format!("does not parse: {}", first_line(&e.to_string())))
}

impl Variable {
    /// Converts a value.
    ///
    /// # Errors
    /// The value is too large.
    pub fn of(value: &Value) -> Result<Self, String> {
        guard::check_variable(value)?;
        Ok(Self {
            value: convert::to_owned_cel(value).into(),
            extent: Arc::new(Extent::of(value)),
        })
    }
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let mut variables = self.0.iter();
        let known = variables.find(|(name, _)| *name == variable);
        known.map(|(_, value)| CowVal::Borrowed(*value))
    }
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The expression does not parse or exceeds a limit. The message continues a sentence whose
    /// subject is the expression.
    pub fn compile(source: &str) -> Result<Self, String> {
        guard::check_source(source)?;
        let program = parse(source)?;
        let mut tree = program.expression().clone();
        guard::check_tree(&tree.expr)?;
        order::sort_keys(&mut tree.expr);
        Ok(Self {
            source: source.into(),
            reads: Arc::new(Access::of(&tree.expr)),
            tree: Arc::new(tree),
        })
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// A run-time error, such as a missing field, or a variable that is too large.
    pub fn evaluate(&self, variables: &[(&str, &Value)]) -> Result<Value, String> {
        self.evaluate_counting(variables, &mut 0)
    }

    /// Evaluates the expression, and adds to `work` what the evaluation may take, in steps, with the conversion of the
    /// variables.
    ///
    /// # Errors
    /// As for [`evaluate`](Self::evaluate).
    pub fn evaluate_counting(
        &self,
        variables: &[(&str, &Value)],
        work: &mut u64,
    ) -> Result<Value, String> {
        let mut converted = Vec::with_capacity(variables.len());
        for (name, value) in variables {
            let size = guard::check_variable(value)?;
            *work = work.saturating_add(size as u64 / cost::BYTES_PER_STEP);
            if let Some(read) = self.reads.get(*name) {
                converted.push((*name, convert::to_cel(value, read)));
            }
        }
        let parts = variables
            .iter()
            .map(|(name, value)| (*name, Part::Value(value)));
        let parts: Vec<_> = parts.collect();
        *work = work.saturating_add(cost::check(&self.tree.expr, &parts, 0)?);
        let converted = converted.iter();
        let borrowed: Vec<(&str, &dyn Val)> =
            converted.map(|(name, value)| (*name, &**value)).collect();
        self.resolve(&Variables(&borrowed))
    }

    /// The names of the variables that the expression reads, sorted, each once.
    pub fn variables(&self) -> Vec<String> {
        self.reads.keys().map(ToString::to_string).collect()
    }

    /// Whether the expression reads a field of a variable, or the variable as a whole.
    pub fn reads(&self, variable: &str, field: &str) -> bool {
        match self.reads.get(variable) {
            Some(Access::Fields(fields)) => fields.contains_key(field),
            Some(Access::Whole) => true,
            None => false,
        }
    }

    /// Evaluates the expression with variables that were converted before. The cost does not depend on the size of
    /// variables that the expression does not walk. `spent` is the work for the same caller before, in steps, and grows by
    /// what the evaluation may take: together they have the bound of one evaluation.
    ///
    /// # Errors
    /// A run-time error, such as a missing field, too much work, or a panic of the interpreter.
    pub fn evaluate_variables(
        &self,
        variables: &[(&str, &Variable)],
        spent: &mut u64,
    ) -> Result<Value, String> {
        let parts = variables.iter();
        let parts = parts.map(|(name, variable)| (*name, Part::Measured(&variable.extent)));
        let parts: Vec<_> = parts.collect();
        let work = cost::check(&self.tree.expr, &parts, *spent)?;
        *spent = spent.saturating_add(work);
        let borrowed = variables.iter();
        let borrowed: Vec<(&str, &dyn Val)> = borrowed
            .map(|(name, variable)| (*name, &*variable.value))
            .collect();
        self.resolve(&Variables(&borrowed))
    }

    fn resolve(&self, variables: &Variables<'_>) -> Result<Value, String> {
        let functions = FUNCTIONS.as_ref().map_err(Clone::clone)?;
        let mut context = functions.new_inner_scope();
        context.set_variable_resolver(variables);
        self.interpret(&context)
    }

    /// Runs the interpreter. It is not ours: a panic in it costs this evaluation alone.
    fn interpret(&self, context: &Context) -> Result<Value, String> {
        // The interpreter changes nothing but its own values.
        let resolve = AssertUnwindSafe(|| cel::Value::resolve(&self.tree, context));
        let value = catch_unwind(resolve)
            .map_err(|_| "cannot be evaluated: the interpreter failed".to_owned())?;
        convert::from_cel(&value.map_err(|e| e.to_string())?)
    }

    /// Reports whether the expression evaluates to `true`. Any other value and an error count as false
    /// (specification 5.4).
    pub fn is_true(&self, variables: &[(&str, &Value)]) -> bool {
        matches!(self.evaluate(variables), Ok(Value::Bool(true)))
    }

    /// Returns the source of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn eval(source: &str, me: Value) -> Result<Value, String> {
        Expression::compile(source)?.evaluate(&[("self", &me)])
    }

    #[test]
    fn values_are_converted_both_ways() {
        let me = json!({"tier": "gold", "n": 41, "list": [1, 2], "big": 9007199254740993_i64});
        assert_eq!(eval("self.tier == \"gold\"", me.clone()), Ok(json!(true)));
        assert_eq!(eval("self.n + 1", me.clone()), Ok(json!(42)));
        assert_eq!(
            eval("self.big", me.clone()),
            Ok(json!(9007199254740993_i64))
        );
        assert_eq!(eval("self.list + [3]", me.clone()), Ok(json!([1, 2, 3])));
        assert_eq!(eval("has(self.nope)", me.clone()), Ok(json!(false)));
        assert!(eval("self.nope.deep == 1", me.clone()).is_err());
        assert!(eval("1 / 0", me).is_err());
    }

    #[test]
    fn keys_of_maps_are_sorted() {
        let me: Value = (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
        let keys: Vec<_> = (0..20).map(|n| json!(format!("k{n:02}"))).collect();
        assert_eq!(eval("self.map(k, k)", me.clone()), Ok(json!(keys)));
        let last = eval("self.filter(k, self[k] > 17)", me.clone());
        assert_eq!(last, Ok(json!(["k18", "k19"])));
        assert_eq!(
            eval("self.exists(k, k == 'k07')", me.clone()),
            Ok(json!(true))
        );
        assert_eq!(
            eval("{'a': [self.map(k, k)]}", me),
            Ok(json!({"a": [keys]}))
        );
        assert!(Expression::compile("@inOrder(self)").is_err());
    }

    #[test]
    fn durations_are_compared() {
        let me = json!({"t": "1m30s"});
        let eval = |source: &str| eval(source, me.clone());
        assert_eq!(eval("duration(self.t) > duration('30s')"), Ok(json!(true)));
        assert_eq!(eval("duration('500ms') < duration('1s')"), Ok(json!(true)));
        assert_eq!(eval("duration('1h') == duration('60m')"), Ok(json!(true)));
        assert_eq!(eval("duration('0s')"), Ok(json!(0)));
        let error = eval("duration('soon') > duration('1s')").unwrap_err();
        assert!(error.contains("`soon` is not a duration"), "{error}");
        assert!(
            eval("duration('9999999h')")
                .unwrap_err()
                .contains("too long")
        );
        assert!(eval("duration(5)").is_err());
    }

    #[test]
    fn the_variables_of_loops_are_not_read_from_outside() {
        let variables = |source: &str| Expression::compile(source).unwrap().variables();
        assert_eq!(variables("a.b == c && has(a.d)"), ["a", "c"]);
        assert_eq!(variables("l.all(x, x.y == z)"), ["l", "z"]);
        assert_eq!(variables("x.exists(x, x == 1) || {'k': y}.k"), ["x", "y"]);
        assert_eq!(variables("size([1, 2]) == 2"), Vec::<String>::new());
    }

    #[test]
    fn work_grows_with_the_variables() {
        let expression = Expression::compile("self.l.all(x, x > 0)").unwrap();
        let work = |count: usize| {
            let mut work = 0;
            let me = json!({"l": vec![1; count]});
            let value = expression.evaluate_counting(&[("self", &me)], &mut work);
            assert_eq!(value, Ok(json!(true)));
            work
        };
        let (few, many) = (work(10), work(1_000));
        assert!(few > 10 && many > 50 * few, "{few} {many}");
    }

    #[test]
    fn large_sources_are_refused_before_parsing() {
        for hostile in [
            "(".repeat(400) + &")".repeat(400),
            "[".repeat(17) + &"]".repeat(17),
            "!".repeat(100) + "true",
            "-".repeat(100) + "1",
            "a.".repeat(300) + "b",
            "x".repeat(2_000),
            "true ? ".repeat(60) + "1" + &" : 0".repeat(60),
        ] {
            assert!(Expression::compile(&hostile).is_err(), "{hostile}");
        }
    }

    #[test]
    fn large_trees_and_nested_comprehensions_are_refused() {
        let many = vec!["1"; 250].join("+");
        assert!(Expression::compile(&many).is_err());
        let nested = "self.a.all(x, self.b.all(y, x == y))";
        assert!(Expression::compile(nested).is_err());
        assert!(Expression::compile("self.a.all(x, x > 1) && self.b.exists(y, y < 2)").is_ok());
    }

    #[test]
    fn malformed_sources_are_errors() {
        for wrong in ["", "self.", "1 +", "\"open", "self.a ==", "\u{0}"] {
            assert!(Expression::compile(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn large_variables_are_refused() {
        let large = json!({"text": "x".repeat(300_000)});
        assert!(eval("size(self.text) > 0", large).is_err());
    }

    #[test]
    fn a_panic_of_the_interpreter_is_an_error() {
        fn broken() -> Result<i64, cel::ExecutionError> {
            panic!("as a defect of the interpreter")
        }
        let mut context = order::context().unwrap();
        context.add_function("broken", broken).unwrap();
        let failed = Expression::compile("broken() == 1").unwrap();
        let failed = failed.interpret(&context);
        assert!(failed.unwrap_err().contains("the interpreter failed"));
        let next = Expression::compile("1 == 1").unwrap();
        assert_eq!(next.interpret(&context), Ok(json!(true)));
    }
}
