//! The commands of a page in Markdown, and the output that the page shows of them.
//!
//! A command is a line of a code block, or a piece of code in a line, that begins with `nandscape` or with `cargo run
//! --release --`. A fence with the word `output` holds what the command before it prints to standard output; a line `...`
//! in it stands for any number of lines. A fence with any other word holds no commands of a shell.
//!
//! Left out: variables and substitutions of shells. A command ends where a pipe, a redirection or the next command begins.

/// A command on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// Its words after the program's name.
    pub(crate) words: Vec<String>,
    /// The output that the page shows, line by line.
    pub(crate) output: Option<Vec<String>>,
}

/// What the lines around are.
enum Block {
    Text,
    Commands,
    Output(Vec<String>),
    Other,
}

/// The commands of a page, in its order.
pub(crate) fn commands(page: &str) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut block = Block::Text;
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(word) = line.trim_start().strip_prefix("```") {
            block = turned(block, word, &mut found);
            continue;
        }
        match &mut block {
            Block::Output(output) => output.push(line.trim_end().to_owned()),
            Block::Other => {}
            Block::Text if !line.starts_with("    ") => {
                found.extend(line.split('`').skip(1).step_by(2).filter_map(|code| command(index, code)));
            }
            Block::Text | Block::Commands => {
                let mut whole = line.trim().to_owned();
                while whole.ends_with('\\') {
                    whole.pop();
                    whole.push_str(lines.next().map_or("", |(_, more)| more.trim()));
                }
                found.extend(command(index, &whole));
            }
        }
    }
    found
}

/// The block that begins or ends at a fence.
fn turned(block: Block, word: &str, found: &mut [Command]) -> Block {
    match (block, word.trim()) {
        (Block::Text, "" | "sh" | "console") => Block::Commands,
        (Block::Text, "output") => Block::Output(Vec::new()),
        (Block::Text, _) => Block::Other,
        (Block::Output(lines), _) => {
            if let Some(last) = found.last_mut() {
                last.output = Some(lines);
            }
            Block::Text
        }
        _ => Block::Text,
    }
}

/// The command of a piece of code, if it is one of ours with words.
fn command(index: usize, code: &str) -> Option<Command> {
    let code = code.trim().trim_start_matches("$ ");
    // Text in a separate column explains the command.
    let code = code.split("  ").next().unwrap_or(code);
    let words = code.strip_prefix("nandscape ").or_else(|| code.strip_prefix("cargo run --release -- "))?;
    // `nandscape 0.1.0` is what the program prints of itself.
    let is_version = words.starts_with(|letter: char| letter.is_ascii_digit());
    (!is_version).then(|| Command { line: index + 1, words: split(words), output: None })
}

/// Splits a line as a shell does, up to the end of its first command.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    // `2>` redirects standard error.
    words.extend(word.filter(|word| word != "2" || quote.is_some()));
    words
}
