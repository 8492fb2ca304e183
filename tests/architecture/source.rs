//! Reading Rust as text: tokens, what a test may ignore, and the paths that a file names.

#[derive(Debug, Clone)]
pub struct Token {
    /// An identifier, `::`, one character of punctuation, or a string literal behind a leading `"`.
    pub text: String,
    pub line: usize,
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

/// Tokens without comments, with strings marked as such. Good enough for source that rustfmt has seen.
pub fn lex(source: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        chars: source.chars().collect(),
        at: 0,
        line: 1,
        tokens: Vec::new(),
    };
    while lexer.peek(0) != '\0' {
        lexer.step();
    }
    lexer.tokens
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn bump(&mut self) -> char {
        let c = self.peek(0);
        self.line += usize::from(c == '\n');
        self.at += 1;
        c
    }

    fn push(&mut self, text: String, line: usize) {
        self.tokens.push(Token { text, line });
    }

    fn step(&mut self) {
        let line = self.line;
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => {
                while !matches!(self.peek(0), '\n' | '\0') {
                    self.bump();
                }
            }
            ('/', '*') => self.block_comment(),
            ('"', _) => {
                self.bump();
                self.string(0, true);
            }
            ('\'', _) => self.quote(),
            (':', ':') => {
                self.at += 2;
                self.push("::".to_owned(), line);
            }
            (c, _) if is_word(c) => self.word(),
            (c, _) => {
                self.bump();
                if !c.is_whitespace() {
                    self.push(c.to_string(), line);
                }
            }
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.peek(0) != '\0' {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.bump();
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
    }

    /// After the opening quote: up to a quote that `hashes` times `#` follow.
    fn string(&mut self, hashes: usize, escapes: bool) {
        let (line, mut text) = (self.line, String::from('"'));
        while self.peek(0) != '\0' {
            let c = self.bump();
            if c == '\\' && escapes {
                self.bump();
            } else if c == '"' && (0..hashes).all(|i| self.peek(i) == '#') {
                self.at += hashes;
                break;
            } else {
                text.push(c);
            }
        }
        self.push(text, line);
    }

    /// A character literal, or the tick of a lifetime or label.
    fn quote(&mut self) {
        self.bump();
        if self.peek(0) == '\\' {
            self.at += 2;
            while !matches!(self.bump(), '\'' | '\0') {}
        } else if self.peek(1) == '\'' {
            self.bump();
            self.bump();
        } else {
            while is_word(self.peek(0)) {
                self.bump();
            }
        }
    }

    fn word(&mut self) {
        let (line, mut text) = (self.line, String::new());
        while is_word(self.peek(0)) {
            text.push(self.bump());
        }
        let hashes = (0..).take_while(|i| self.peek(*i) == '#').count();
        let raw = matches!(text.as_str(), "r" | "br" | "cr");
        if raw && self.peek(hashes) == '"' {
            self.at += hashes + 1;
            self.string(hashes, false);
        } else if matches!(text.as_str(), "b" | "c") && self.peek(0) == '"' {
            self.at += 1;
            self.string(0, true);
        } else if text == "b" && self.peek(0) == '\'' {
            self.quote();
        } else if text == "r" && hashes == 1 {
            self.at += 1;
            self.word();
        } else {
            self.push(text, line);
        }
    }
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

pub fn matches_at(tokens: &[Token], at: usize, pattern: &[&str]) -> bool {
    pattern
        .iter()
        .enumerate()
        .all(|(i, want)| text(tokens, at + i) == *want)
}

/// The index behind an item or attribute that starts at `at`: past its last bracket, or its `;` if that is first.
fn past_item(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < tokens.len() {
        let here = text(tokens, at);
        at += 1;
        match here {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(here, "}" | ";") {
            break;
        }
    }
    at
}

/// The tokens without items under `#[cfg(test)]`: tests may reach for anything.
pub fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let plain = matches_at(tokens, at, &["#", "[", "cfg", "(", "test", ")"]);
        if plain || matches_at(tokens, at, &["#", "[", "cfg", "(", "all", "(", "test"]) {
            at = past_item(tokens, at);
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    kept
}

/// Every path of two segments or more, and every name that a `use` takes whole, with groups written out.
pub fn paths(tokens: &[Token]) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let continues = at > 0 && text(tokens, at - 1) == "::" && at > 1 && {
            let before = text(tokens, at - 2);
            is_name(before) && before != "use" || before == ">"
        };
        let method =
            at > 0 && text(tokens, at - 1) == "." && !(at > 1 && text(tokens, at - 2) == ".");
        if is_name(text(tokens, at)) && !continues && !method {
            let start = found.len();
            let whole = matches!(
                text(tokens, at.wrapping_sub(1)),
                "use" | "crate" | "{" | ","
            );
            at = path(tokens, at, &[], &mut found);
            let used = at > 1 && whole && matches!(text(tokens, at), ";" | "as" | "," | "}");
            if !used && found.get(start).is_some_and(|(path, _)| path.len() == 1) {
                found.truncate(start);
            }
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path or group of a use tree behind `prefix`; returns the index behind it.
fn path(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let line = tokens.get(at).map_or(0, |token| token.line);
    let mut segments = prefix.to_vec();
    loop {
        match text(tokens, at) {
            "{" => {
                at += 1;
                while !matches!(text(tokens, at), "}" | "") {
                    let part = text(tokens, at);
                    let deeper = part == "{" || part == "*" || is_name(part);
                    at = if deeper {
                        path(tokens, at, &segments, found)
                    } else {
                        at + 1
                    };
                    if text(tokens, at) == "as" {
                        at += 2;
                    }
                }
                return at + 1;
            }
            "self" if !segments.is_empty() => at += 1,
            segment => {
                segments.push(segment.to_owned());
                at += 1;
            }
        }
        let next = text(tokens, at + 1);
        if text(tokens, at) != "::" || !(is_name(next) || next == "{" || next == "*") {
            found.push((segments, line));
            return at;
        }
        at += 1;
    }
}
