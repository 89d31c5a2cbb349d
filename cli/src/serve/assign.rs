//! `--assign [NAME=]RULE`: class and tenant of clients' commands, for one of several drives or for all.

use nandscape_drive::Assignments;
use nandscape_lab_run::Rules;

use crate::failure::Failure;

/// The rules of each drive, in the order of `names`; none without any word.
pub(super) fn of_each(words: &[String], names: &[String]) -> Result<Vec<Rules>, Failure> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = vec![Assignments::default(); names.len()];
    for word in words {
        let refused = |problem: String| {
            let names = names.join(", ");
            Failure::Input(anyhow::anyhow!(
                "--assign {problem}; NAME=RULE is a rule of one of {names}, a RULE alone of all"
            ))
        };
        let (name, text) = split(word, names);
        let given: Assignments = text.parse().map_err(refused)?;
        for (rules, _) in all.iter_mut().zip(names).filter(|(_, other)| name.is_none_or(|name| name == *other)) {
            *rules = std::mem::take(rules).and(given.clone()).map_err(refused)?;
        }
    }
    Ok(all.into_iter().map(Rules).collect())
}

/// The drive, if one is named, and the rule. If one name is a prefix of another, the longer match counts.
fn split<'a>(word: &'a str, names: &'a [String]) -> (Option<&'a String>, &'a str) {
    let named = names.iter().filter_map(|name| Some((name, word.strip_prefix(name.as_str())?.strip_prefix('=')?)));
    named.max_by_key(|(name, _)| name.len()).map_or((None, word), |(name, rule)| (Some(name), rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_of_the_drive_it_names_or_of_all() {
        let names = ["a", "a b"].map(str::to_owned);
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            of_each(&words, &names).map(|all| all.into_iter().map(|rules| rules.0.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(
            of(&["class=3", "a=queue=1,class=1", "a b=host=x:y=z,tenant=2"]).unwrap(),
            ["queue=1,class=1 class=3", "host=x:y=z,tenant=2 class=3"]
        );
        assert!(of(&[]).unwrap().is_empty());
        let error = |words: &[&str]| of(words).unwrap_err().to_string();
        assert!(error(&["c=class=1"]).contains("\"c\" is no key of a rule"), "{}", error(&["c=class=1"]));
        assert!(error(&["c=class=1"]).ends_with("NAME=RULE is a rule of one of a, a b, a RULE alone of all"));
        assert!(error(&["class=1", "a=class=2"]).contains("sets the class; one rule"));
    }
}
