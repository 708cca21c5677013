//! Cuts Rust source into the tokens that imports are made of: comments and the text of literals are left out.

/// A word, a `::`, or one other character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// Counted from 1.
    pub(super) line: usize,
}

impl Token {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first == '_' || first.is_alphabetic())
    }
}

/// The tokens of a source file in their order.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut reader = Reader { chars: source.chars().collect(), at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = reader.next_token() {
        tokens.push(token);
    }
    tokens
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Reader {
    fn next_token(&mut self) -> Option<Token> {
        loop {
            let line = self.line;
            let token = |text: String| Some(Token { text, line });
            match self.peek(0)? {
                '/' if self.peek(1) == Some('/') => self.skip_while(|next| next != '\n'),
                '/' if self.peek(1) == Some('*') => self.skip_block_comment(),
                '"' => self.skip_string(),
                '\'' => self.skip_char_or_lifetime(),
                ':' if self.peek(1) == Some(':') => {
                    self.advance();
                    self.advance();
                    return token("::".to_owned());
                }
                first if first == '_' || first.is_alphanumeric() => {
                    let word = self.word();
                    if !self.skip_prefixed_literal(&word) {
                        return token(word);
                    }
                }
                space if space.is_whitespace() => self.advance(),
                other => {
                    self.advance();
                    return token(other.to_string());
                }
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn advance(&mut self) {
        if self.peek(0) == Some('\n') {
            self.line += 1;
        }
        self.at += 1;
    }

    fn skip_while(&mut self, belongs: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&belongs) {
            self.advance();
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        self.skip_while(|next| next == '_' || next.is_alphanumeric());
        self.chars[start..self.at].iter().collect()
    }

    /// Block comments nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while let Some(next) = self.peek(0) {
            let pair = (next, self.peek(1));
            match pair {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.advance();
                    continue;
                }
            }
            self.advance();
            self.advance();
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_string(&mut self) {
        self.advance();
        while let Some(next) = self.peek(0) {
            self.advance();
            match next {
                '\\' => self.advance(),
                '"' => return,
                _ => {}
            }
        }
    }

    fn skip_char_or_lifetime(&mut self) {
        self.advance();
        if self.peek(0) == Some('\\') {
            self.advance();
            self.advance();
            self.skip_while(|next| next != '\'');
            self.advance();
        } else if self.peek(1) == Some('\'') {
            self.advance();
            self.advance();
        } else {
            self.word();
        }
    }

    /// Skips the rest of a literal such as `r#"…"#` or `b'x'` after its prefix; says whether it was one.
    fn skip_prefixed_literal(&mut self, prefix: &str) -> bool {
        let is_raw = matches!(prefix, "r" | "br" | "cr");
        let is_byte = matches!(prefix, "b" | "c");
        match self.peek(0) {
            Some('"') if is_byte => self.skip_string(),
            Some('\'') if is_byte => self.skip_char_or_lifetime(),
            Some('"' | '#') if is_raw => return self.skip_raw_string(),
            _ => return false,
        }
        true
    }

    /// A raw string, or nothing: `r#type` is a word.
    fn skip_raw_string(&mut self) -> bool {
        let hashes = self.chars[self.at..].iter().take_while(|next| **next == '#').count();
        if self.peek(hashes) != Some('"') {
            return false;
        }
        for _ in 0..=hashes {
            self.advance();
        }
        while let Some(next) = self.peek(0) {
            self.advance();
            let ends = (0..hashes).all(|hash| self.peek(hash) == Some('#'));
            if next == '"' && ends {
                self.at += hashes;
                break;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        let source = "a // use b\n/* c /* d */ e */ \"f \\\" g\" r#\"h \" i\"# b'j' 'k' '\\'' &'l m::n";
        assert_eq!(texts(source), ["a", "&", "m", "::", "n"]);
    }

    #[test]
    fn lines_count_through_comments_and_strings() {
        let found = tokens("/*\n*/ a \"\n\" b");
        let lines: Vec<usize> = found.iter().map(|token| token.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
