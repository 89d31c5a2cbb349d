//! `--fault [NAME=]RULE`: planned faults, for one of several drives or for all.

use nandscape_device_media::Rule;

use crate::failure::Failure;
use crate::sim::FaultWord;

/// The rules of each drive, in the order of `names`.
pub(super) fn of_each(words: &[String], names: &[String]) -> Result<Vec<Vec<FaultWord>>, Failure> {
    let mut rules = vec![Vec::new(); names.len()];
    for word in words {
        let (name, text) = split(word, names)?;
        let rule: Rule = text.parse().map_err(|error| Failure::input(anyhow::Error::new(error).context("--fault")))?;
        let meant = names.iter().zip(&mut rules).filter(|(other, _)| name.is_none_or(|name| name == *other));
        let word = FaultWord { drive: name.map(str::to_owned), rule, text: word.clone() };
        meant.for_each(|(_, rules)| rules.push(word.clone()));
    }
    Ok(rules)
}

/// The drive, if one is named, and the rule. The first word of a rule has no `=` in it.
pub(super) fn split<'a>(word: &'a str, names: &'a [String]) -> Result<(Option<&'a str>, &'a str), Failure> {
    // If one name is a prefix of another, the longer match counts.
    let named = names.iter().filter_map(|name| Some((name, word.strip_prefix(name.as_str())?.strip_prefix('=')?)));
    if let Some((name, rule)) = named.max_by_key(|(name, _)| name.len()) {
        return Ok((Some(name), rule));
    }
    match word.split_whitespace().next().and_then(|first| first.split_once('=')) {
        None => Ok((None, word)),
        Some((name, _)) => Err(Failure::Input(anyhow::anyhow!(
            "--fault \"{word}\": there is no drive {name:?}; NAME=RULE names one of {}, a RULE alone is for all",
            names.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_the_drive_it_names_or_for_all() {
        let names = ["a", "a b", "a b=c"].map(str::to_owned);
        let words = ["fail nth=3", "a=slow", "a b=dead die=1", "a b=c=corrupt"].map(str::to_owned);
        let rules = of_each(&words, &names).unwrap();
        let texts: Vec<Vec<String>> =
            rules.iter().map(|of| of.iter().map(|word| word.rule.to_string()).collect()).collect();
        assert_eq!(texts[0], ["fail nth=3", "slow by=1ms"]);
        assert_eq!(texts[1], ["fail nth=3", "dead timeout=0ns die=1"]);
        assert_eq!(texts[2], ["fail nth=3", "corrupt"]);
    }

    #[test]
    fn an_unknown_drive_and_a_bad_rule_are_told() {
        let error =
            |word: &str| of_each(&[word.to_owned()], &["a".to_owned(), "b".to_owned()]).unwrap_err().to_string();
        assert!(
            error("c=fail").contains("there is no drive \"c\"; NAME=RULE names one of a, b"),
            "{}",
            error("c=fail")
        );
        assert!(error("b=fails").starts_with("--fault: fault \"fails\": \"fails\" is no kind of fault; one of"));
        assert!(error("").contains("is empty"));
    }
}
