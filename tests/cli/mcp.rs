//! `entail mcp`, as a client of the protocol sees it.

use std::process::{Command, Stdio};

use rmcp::model::{CallToolRequestParams, Tool};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServiceError, ServiceExt};
use serde_json::{Value, json};
use tokio::process::Child;

const BAKERY: [&str; 2] = ["--manifests", "examples/bakery"];

/// A client of the process that it started.
struct Client {
    service: RunningService<RoleClient, ()>,
    process: Child,
}

impl Client {
    async fn start(source: &[&str]) -> Self {
        let mut process = tokio::process::Command::new(env!("CARGO_BIN_EXE_entail"))
            .arg("mcp")
            .args(source)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let streams = (
            process.stdout.take().unwrap(),
            process.stdin.take().unwrap(),
        );
        let service = ().serve(streams).await.unwrap();
        Self { service, process }
    }

    /// Calls a tool. Returns its text, and whether that is an error of the tool.
    async fn call(&self, tool: &str, arguments: Value) -> Result<(String, bool), ServiceError> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are a map");
        };
        let mut request = CallToolRequestParams::new(tool.to_owned());
        request.arguments = Some(arguments);
        let result = self.service.call_tool(request).await?;
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let texts: Vec<&str> = texts.map(|text| &*text.text).collect();
        Ok((texts.concat(), result.is_error == Some(true)))
    }

    /// Ends the connection. Returns the exit code of the process.
    async fn end(mut self) -> Option<i32> {
        self.service.cancel().await.unwrap();
        self.process.wait().await.unwrap().code()
    }
}

/// What a command prints.
fn printed(args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    let output = command
        .args(args)
        .args(BAKERY)
        .args(["-o", "json"])
        .output();
    without_version(serde_json::from_slice(&output.unwrap().stdout).unwrap())
}

/// The snapshot has another epoch each time.
fn without_version(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("version");
    answer
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}

#[test]
fn the_tools_answer_as_the_commands_of_their_names() {
    run(async {
        let client = Client::start(&BAKERY).await;
        let cakes = "cakes.bakery.example";
        let patience = "retrypolicy/baker/be-patient";
        for (tool, arguments, command) in [
            (
                "explain",
                json!({"name": "httproute/baker/bread", "kinds": ["RetryPolicy"]}),
                vec!["explain", "httproute/baker/bread", "--kind", "RetryPolicy"],
            ),
            (
                "explain",
                json!({"name": "httproute/shop/shop", "why_not": "cachepolicy/platform/fresh-daily"}),
                vec![
                    "explain",
                    "httproute/shop/shop",
                    "--why-not",
                    "cachepolicy/platform/fresh-daily",
                ],
            ),
            (
                "resolve",
                json!({"host": cakes, "path": "/order", "headers": [{"name": "x-env", "value": "test"}]}),
                vec![
                    "resolve",
                    "--host",
                    cakes,
                    "--path",
                    "/order",
                    "-H",
                    "x-env: test",
                ],
            ),
            (
                "preview",
                json!({"deletes": [patience]}),
                vec!["preview", "--delete", patience],
            ),
            ("lint", json!({}), vec!["lint"]),
        ] {
            let (text, is_error) = client.call(tool, arguments).await.unwrap();
            assert!(!is_error, "{tool}: {text}");
            let answer = without_version(serde_json::from_str(&text).unwrap());
            assert_eq!(answer, printed(&command), "{tool}");
        }
        assert_eq!(client.end().await, Some(0));
    });
}

#[test]
fn each_tool_has_a_schema_and_changes_nothing() {
    run(async {
        let client = Client::start(&BAKERY).await;
        let info = client.service.peer_info().unwrap();
        assert!(info.instructions.as_ref().unwrap().contains("resolve"));
        let tools = client.service.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["explain", "resolve", "preview", "lint"]);
        for Tool {
            name,
            description,
            input_schema,
            annotations,
            ..
        } in &tools
        {
            assert!(description.as_ref().unwrap().len() > 40, "{name}");
            assert_eq!(input_schema["type"], "object", "{name}");
            assert_eq!(input_schema["additionalProperties"], false, "{name}");
            let fields = input_schema["properties"].as_object().unwrap();
            let is_described = |field: &Value| field["description"].is_string();
            assert!(fields.values().all(is_described), "{name}: {fields:?}");
            assert_eq!(annotations.as_ref().unwrap().read_only_hint, Some(true));
        }
        let required = |tool: usize| tools[tool].input_schema["required"].clone();
        assert_eq!(
            (required(0), required(1)),
            (json!(["name"]), json!(["host"]))
        );
        assert_eq!(client.end().await, Some(0));
    });
}

#[test]
fn errors_say_what_to_do_and_the_next_call_is_answered() {
    run(async {
        let client = Client::start(&BAKERY).await;
        let misspelt = json!({"name": "httproute/baker/bred"});
        let (text, is_error) = client.call("explain", misspelt).await.unwrap();
        assert!(is_error && text.contains("httproute/baker/bread"), "{text}");
        // What looks like an option is a name.
        let option = json!({"name": "--manifests=/etc/passwd"});
        let (text, is_error) = client.call("explain", option).await.unwrap();
        assert!(is_error, "{text}");
        let unknown = client.call("explain", json!({"nam": "x"})).await;
        assert!(
            unknown
                .unwrap_err()
                .to_string()
                .contains("unknown field `nam`")
        );
        let none = client.call("apply", json!({})).await.unwrap_err();
        assert!(none.to_string().contains("there is no tool `apply`"));
        let broken = json!({"manifests": "kind: ["});
        let (text, _) = client.call("preview", broken).await.unwrap();
        assert!(text.contains("problems"), "{text}");
        let (text, is_error) = client.call("lint", json!({})).await.unwrap();
        assert!(!is_error && text.contains("findings"), "{text}");
        assert_eq!(client.end().await, Some(0));
    });
}

#[test]
fn changed_manifests_are_read_anew() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("all.yaml");
        let gateway = |name: &str| {
            format!(
                "{{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {{name: {name}, namespace: ns}}, \
                 spec: {{gatewayClassName: c, listeners: [{{name: l, port: 80, protocol: HTTP}}]}}}}\n"
            )
        };
        std::fs::write(&file, gateway("one")).unwrap();
        let client = Client::start(&["--manifests", file.to_str().unwrap()]).await;
        let two = json!({"name": "gateway/ns/two"});
        assert!(client.call("explain", two.clone()).await.unwrap().1);
        std::fs::write(&file, gateway("two")).unwrap();
        let (text, is_error) = client.call("explain", two).await.unwrap();
        assert!(!is_error, "{text}");
        assert_eq!(client.end().await, Some(0));
    });
}

#[test]
fn standard_input_is_no_source() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    let output = command.args(["mcp", "--manifests", "-"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("standard input is the client's"), "{told}");
}
