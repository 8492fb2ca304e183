//! The child process that contains a controller's code.
//!
//! Each request and each reply is one line of JSON. Every request has a field `op`; every reply is
//! an object, and `{"error": "..."}` is the reply to a request that failed. `{"op": "controller"}`
//! returns the name and the version of the controller.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A controller whose code a judge contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// The name of the project.
    pub name: String,
    /// The version of its module.
    pub version: String,
}

/// A running judge.
#[derive(Debug)]
pub struct Judge {
    child: Child,
    // `None` after the judge was asked to end.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    controller: Controller,
}

/// Why a judge gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The program cannot be started.
    #[error("cannot start {0}: {1}")]
    Start(String, std::io::Error),
    /// The process ended, or closed its streams.
    #[error("the process ended: {0}")]
    Ended(String),
    /// The reply is not the expected JSON.
    #[error("unreadable reply: {0}")]
    Reply(String),
    /// The judge reports an error, such as a crash of the controller's code.
    #[error("{0}")]
    Refused(String),
}

impl Judge {
    /// Starts the program and reads which controller it contains.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started or does not name its controller.
    pub fn start(program: &Path) -> Result<Self, JudgeError> {
        let start = |error| JudgeError::Start(program.display().to_string(), error);
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(start)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(JudgeError::Ended("no streams".to_owned()));
        };
        let mut judge = Self {
            child,
            stdin: Some(stdin),
            stdout: BufReader::new(stdout),
            controller: Controller {
                name: String::new(),
                version: String::new(),
            },
        };
        judge.controller = judge.ask(&json!({"op": "controller"}))?;
        Ok(judge)
    }

    /// The controller whose code the judge contains.
    pub fn controller(&self) -> Controller {
        self.controller.clone()
    }

    /// Sends a request and returns the reply. A reply with fields that `T` does not know is an
    /// error if `T` denies unknown fields.
    ///
    /// # Errors
    /// Returns an error if the process ended, if the reply is unreadable, or if it is an error.
    pub fn ask<T: serde::de::DeserializeOwned>(
        &mut self,
        request: &Value,
    ) -> Result<T, JudgeError> {
        let line = self.exchange(request)?;
        let reply: Value = serde_json::from_str(&line).map_err(|e| unreadable(&e, &line))?;
        if let Some(error) = reply.get("error").and_then(Value::as_str) {
            return Err(JudgeError::Refused(error.to_owned()));
        }
        serde_json::from_value(reply).map_err(|e| unreadable(&e, &line))
    }

    fn exchange(&mut self, request: &Value) -> Result<String, JudgeError> {
        let ended = |error: std::io::Error| JudgeError::Ended(error.to_string());
        let Some(stdin) = &mut self.stdin else {
            return Err(JudgeError::Ended("closed".to_owned()));
        };
        writeln!(stdin, "{request}").map_err(ended)?;
        stdin.flush().map_err(ended)?;
        let mut line = String::new();
        if self.stdout.read_line(&mut line).map_err(ended)? == 0 {
            return Err(JudgeError::Ended("no reply".to_owned()));
        }
        Ok(line)
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        // A judge ends when its input ends.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn unreadable(error: &serde_json::Error, line: &str) -> JudgeError {
    let begin: String = line.chars().take(200).collect();
    JudgeError::Reply(format!("{error} in {begin}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Reply {
        #[allow(dead_code, reason = "it makes `b` an unknown field")]
        a: u32,
    }

    #[test]
    fn bad_replies_are_errors_of_their_own() {
        let script = r#"#!/bin/sh
            read -r _; echo '{"name": "x", "version": "1"}'
            read -r _; echo '{"error": "panic"}'
            read -r _; echo '{"a": 1, "b": 2}'
            read -r _; echo 'no JSON'
            read -r _
        "#;
        let path = std::env::temp_dir().join(format!("entail-judge-{}", std::process::id()));
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut judge = Judge::start(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(judge.controller().name, "x");
        let mut ask = || judge.ask::<Reply>(&json!({"op": "translate"})).unwrap_err();
        assert!(matches!(ask(), JudgeError::Refused(message) if message == "panic"));
        assert!(matches!(ask(), JudgeError::Reply(_)));
        assert!(matches!(ask(), JudgeError::Reply(_)));
        assert!(matches!(ask(), JudgeError::Ended(_)));
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let missing = Judge::start(Path::new("/nonexistent/judge"));
        assert!(matches!(missing, Err(JudgeError::Start(..))));
    }
}
