//! The tokens of Rust source that imports consist of, without comments and literals.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A word, a `::`, or one other character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// The line, from 1.
    pub(super) line: usize,
}

impl Token {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first == '_' || first.is_alphabetic())
    }
}

/// Returns the tokens of a source file in order, including brackets.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>> {
    let stream: TokenStream = source.parse().map_err(|error| anyhow!("it is not Rust: {error}"))?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let text = match tree {
            TokenTree::Ident(word) => word.to_string(),
            TokenTree::Literal(_) => continue,
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace | Delimiter::None => ("{", "}"),
                };
                tokens.push(Token { text: open.to_owned(), line });
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { text: close.to_owned(), line });
                continue;
            }
            // A lifetime; its name follows.
            TokenTree::Punct(mark) if mark.as_char() == '\'' => {
                trees.next();
                continue;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' && mark.spacing() == Spacing::Joint => {
                trees.next();
                "::".to_owned()
            }
            TokenTree::Punct(mark) => mark.as_char().to_string(),
        };
        tokens.push(Token { text, line });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_left_out() {
        let source = "a // use b\n/* c /* d */ e */ \"f \\\" g\n\" r#\"h \" i\"# b'j' 'k' '\\'' &'l m::n";
        let found = tokens(source).expect("it is Rust");
        let found: Vec<_> = found.iter().map(|token| (token.text.as_str(), token.line)).collect();
        assert_eq!(found, [("a", 1), ("&", 3), ("m", 3), ("::", 3), ("n", 3)]);
    }
}
