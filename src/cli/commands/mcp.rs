//! `entail mcp`: the tools of a Model Context Protocol client, over standard input and output.
//!
//! A tool reads its source anew, as the command of its name does, and answers with the document that the command prints
//! with `-o json`. None of them writes.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, transport};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::args::CommonArgs;
use super::document::Document;
use super::resolve::ResolveArgs;
use super::{
    CliError, ExitStatus, Format, QueryArgs, SourceArgs, explain, json, lint, preview, resolve,
};
use crate::api::v1;

/// Arguments of `entail mcp`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The client starts this command and talks to it. The tools are explain, resolve, preview and lint: each
answers as the command of its name with `-o json`, and none of them changes anything.

Examples:
  entail mcp --manifests examples/bakery
  entail mcp --kube
  entail mcp --server unix:/run/entail/entail.sock")]
pub struct McpArgs {
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// Instructions for clients about all tools.
const INSTRUCTIONS: &str = "\
entail knows which policies are in effect on every Gateway > Route > Backend path of a Kubernetes cluster, and which \
object set each value. Begin with `resolve` for a request (host and path), with `explain` for an object, with `lint` \
for what is wrong, and use `preview` before a change is applied. Objects are named `kind/namespace/name`, as in \
`httproute/shop/checkout`. If `kinds` of an answer is not empty, these policy kinds are not completely known, and an \
answer without a policy does not mean that there is none.";

/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// The server of the tools.
struct Tools {
    source: SourceArgs,
    /// A tool reads all of its source: one at a time.
    turn: Arc<Semaphore>,
}

/// Explain each value of the effective policies of an object or a path: the policy that sets it, and the policies that it
/// overrides; or say why a policy is not in effect there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExplainTool {
    /// An object, `kind/namespace/name`, with `#` before a section (`httproute/shop/shop#browse`); or a path
    /// (`gateways/NAMESPACE/NAME/...`).
    name: String,
    /// Only these policy kinds, as `Kind` or `Kind.group`.
    #[serde(default)]
    kinds: Vec<String>,
    /// Say why this policy, `kind/namespace/name`, is not in effect there: the first condition that fails, and what would
    /// have to change.
    #[serde(default)]
    why_not: Option<String>,
}

/// Show the rule that matches a request on each Gateway, its backends, and their effective policies; or say why a rule does
/// not match.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResolveTool {
    /// Host header of the request, with or without a port.
    host: String,
    /// Path of the request, with the query; `/` if it is not given.
    #[serde(default)]
    path: Option<String>,
    /// Method of the request; `GET` if it is not given.
    #[serde(default)]
    method: Option<String>,
    /// Headers of the request.
    #[serde(default)]
    headers: Vec<HeaderArgument>,
    /// Where the request enters: path name of a Gateway or a listener (`gateways/NAMESPACE/NAME/listeners/NAME`), or of a
    /// Service of the mesh. All Gateways if it is not given.
    #[serde(default)]
    at: Option<String>,
    /// Port of the listener.
    #[serde(default)]
    port: Option<u16>,
    /// Only these policy kinds, as `Kind` or `Kind.group`.
    #[serde(default)]
    kinds: Vec<String>,
    /// Say why this rule does not take the request: `rule/NAME`, or `kind/namespace/name#rule`.
    #[serde(default)]
    why_not: Option<String>,
}

/// A header of a request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HeaderArgument {
    /// Its name.
    name: String,
    /// Its value.
    value: String,
}

/// Show the effect of a change on effective policies before it is applied: values and paths that it changes, adds and takes
/// away. Nothing is applied.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewTool {
    /// Manifests to apply: YAML or JSON documents, separated by `---`.
    #[serde(default)]
    manifests: String,
    /// Objects to delete, `kind/namespace/name`.
    #[serde(default)]
    deletes: Vec<String>,
    /// Only these policy kinds, as `Kind` or `Kind.group`.
    #[serde(default)]
    kinds: Vec<String>,
}

/// Check policies and manifests for problems: invalid specs, missing targets, lost values, ambiguous settings. Each finding
/// has a code with a page, `entail explain-code CODE`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LintTool {
    /// Only these policy kinds, as `Kind` or `Kind.group`.
    #[serde(default)]
    kinds: Vec<String>,
}

/// A tool: its arguments, and how it answers.
trait Answers: DeserializeOwned + JsonSchema {
    /// Its name, which is that of the command.
    const NAME: &'static str;

    /// Answers from a source.
    ///
    /// # Errors
    /// The source or the arguments cannot be read, or nothing has the name.
    fn answer(self, source: SourceArgs) -> Result<Document, CliError>;
}

/// Runs the command.
pub(in crate::cli) fn run(args: McpArgs) -> Result<ExitStatus, CliError> {
    args.source.check()?;
    let mut files = args.source.manifests.iter().chain(&args.source.profiles);
    if files.any(|file| file == Path::new("-")) {
        return Err(CliError::Usage(
            "standard input is the client's: `-` cannot be read".to_owned(),
        ));
    }
    let failed = |error: &dyn std::fmt::Display| {
        CliError::Unreadable(format!("the connection to the client failed: {error}"))
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let tools = Tools {
            source: args.source,
            turn: Arc::new(Semaphore::new(1)),
        };
        let serving = tools.serve(transport::stdio()).await;
        let serving = serving.map_err(|error| failed(&error))?;
        serving.waiting().await.map_err(|error| failed(&error))
    })?;
    Ok(ExitStatus::Success)
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("entail", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            tool::<ExplainTool>(),
            tool::<ResolveTool>(),
            tool::<PreviewTool>(),
            tool::<LintTool>(),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let answered = match &*request.name {
            ExplainTool::NAME => self.call::<ExplainTool>(arguments).await?,
            ResolveTool::NAME => self.call::<ResolveTool>(arguments).await?,
            PreviewTool::NAME => self.call::<PreviewTool>(arguments).await?,
            LintTool::NAME => self.call::<LintTool>(arguments).await?,
            other => {
                let message = format!("there is no tool `{other}`");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        let result = match answered {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        };
        Ok(result.into())
    }
}

impl Tools {
    /// Calls a tool on a thread that may block.
    async fn call<T: Answers + Send + 'static>(
        &self,
        arguments: Value,
    ) -> Result<Result<String, CliError>, ErrorData> {
        let arguments: T = serde_json::from_value(arguments)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let internal =
            |error: &dyn std::fmt::Display| ErrorData::internal_error(error.to_string(), None);
        let turn = self
            .turn
            .acquire()
            .await
            .map_err(|error| internal(&error))?;
        let source = self.source.clone();
        let answered = tokio::task::spawn_blocking(move || text(&arguments.answer(source)?));
        let answered = answered.await.map_err(|error| internal(&error))?;
        drop(turn);
        Ok(answered)
    }
}

/// A document as text.
fn text(document: &Document) -> Result<String, CliError> {
    let mut written = Vec::new();
    json::write(&mut written, document, 0)?;
    if written.len() > MAX_ANSWER {
        return Err(CliError::Usage(format!(
            "the answer has {} bytes; the maximum is {MAX_ANSWER}: name an object further down, or `kinds`",
            written.len()
        )));
    }
    Ok(String::from_utf8_lossy(&written).into_owned())
}

/// The description of a tool, from its arguments.
fn tool<T: Answers>() -> Tool {
    let schema = schemars::schema_for!(T).to_value();
    let mut schema: JsonObject = match schema {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    };
    let description = match schema.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    schema.remove("title");
    let annotations = ToolAnnotations::new().read_only(true).idempotent(true);
    Tool::new(T::NAME, description, schema).with_annotations(annotations)
}

/// A query without a name.
fn query(source: SourceArgs, kinds: Vec<String>) -> QueryArgs {
    QueryArgs {
        source,
        kinds,
        output: Format::Json,
        ..QueryArgs::default()
    }
}

impl Answers for ExplainTool {
    const NAME: &'static str = "explain";

    fn answer(self, source: SourceArgs) -> Result<Document, CliError> {
        let query = query(source, self.kinds);
        explain::document(&query, &self.name, self.why_not.as_deref())
    }
}

impl Answers for ResolveTool {
    const NAME: &'static str = "resolve";

    fn answer(self, source: SourceArgs) -> Result<Document, CliError> {
        let headers = self.headers.into_iter();
        resolve::document(ResolveArgs {
            host: self.host,
            path: self.path.unwrap_or_else(|| "/".to_owned()),
            method: self.method.unwrap_or_else(|| "GET".to_owned()),
            headers: headers.map(|header| (header.name, header.value)).collect(),
            grpc: None,
            sni: None,
            tcp: false,
            udp: false,
            at: self.at,
            port: self.port,
            dialect: String::new(),
            why_not: self.why_not.unwrap_or_default(),
            normalized_path: false,
            by_intersection: false,
            disable_listener_isolation: false,
            common: CommonArgs {
                source,
                kinds: self.kinds,
                output: Format::Json,
            },
        })
    }
}

impl Answers for PreviewTool {
    const NAME: &'static str = "preview";

    fn answer(self, source: SourceArgs) -> Result<Document, CliError> {
        let change = v1::PreviewChangeRequest {
            manifests: self.manifests,
            deletes: self.deletes,
        };
        preview::document(&query(source, self.kinds), change)
    }
}

impl Answers for LintTool {
    const NAME: &'static str = "lint";

    fn answer(self, source: SourceArgs) -> Result<Document, CliError> {
        lint::document(&query(source, self.kinds))
    }
}
