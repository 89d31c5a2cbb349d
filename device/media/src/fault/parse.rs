//! A rule as a line of text, and back: `KIND [OPERATION] [WORD=VALUE]...`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use nandscape_sim::units::Ratio;
use nandscape_sim::{Span, Time};

use super::rule::{Operation, Rule, Scope, Strike, When};
use super::torn::Torn;

/// The delay of a `slow` rule without `by`.
const SLOW_BY: Span = Span::from_ms(1);
/// The timeout of a `stuck` or `dead` rule without `timeout`.
const STUCK_FOR: Span = Span::from_ms(10);

const KINDS: &str = "corrupt, uncorrectable, slow, fail, stuck, dead, power_cut";
const WORDS: &str = "channel, die, plane, block, page, lba (a number, or two as in 3-7); nth, every, count (a number); \
                     from, until (a time); probability (a share); by with slow, timeout with stuck and dead, off (a \
                     time) and torn (unreadable, untouched, whole, prefix, area, data or any) with power_cut";

/// Why a line is not a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("fault \"{rule}\": {problem}")]
pub struct RuleError {
    /// The line.
    pub rule: String,
    /// The problem, and what would be valid.
    pub problem: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        parse(text).map_err(|problem| RuleError { rule: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Rule, String> {
    let mut words = text.split_whitespace().peekable();
    let kind = words.next().ok_or_else(|| format!("is empty; it begins with one of {KINDS}"))?;
    let mut rule = Rule { strike: strike(kind)?, operation: None, scope: Scope::default(), when: When::default() };
    if let Some((_, operation)) = words.peek().and_then(|word| Operation::ALL.iter().find(|(name, _)| name == word)) {
        words.next();
        if !rule.strike.can_strike(*operation) {
            let struck = Operation::ALL.iter().filter(|(_, operation)| rule.strike.can_strike(*operation));
            let struck: Vec<&str> = struck.map(|(name, _)| *name).collect();
            return Err(format!("{kind} strikes {}, not {}", struck.join(" or "), name_of(*operation)));
        }
        rule.operation = Some(*operation);
    }
    let mut seen = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| no_word(word, rule.strike))?;
        if seen.contains(&key) {
            return Err(format!("{key} is there twice"));
        }
        seen.push(key);
        set(&mut rule, key, value)?;
    }
    // Power is cut once, unless the rule sets otherwise.
    if matches!(rule.strike, Strike::PowerCut { .. }) && rule.when.count.is_none() {
        rule.when.count = Some(1);
    }
    check(&rule)?;
    Ok(rule)
}

/// The problem with a word without a value.
fn no_word(word: &str, strike: Strike) -> String {
    let operations: Vec<&str> =
        Operation::ALL.iter().filter(|(_, operation)| strike.can_strike(*operation)).map(|(name, _)| *name).collect();
    format!(
        "{word:?} is neither the operation ({}, after {}) nor a WORD=VALUE; words are {WORDS}",
        operations.join(" or "),
        strike.name()
    )
}

fn strike(kind: &str) -> Result<Strike, String> {
    Ok(match kind {
        "corrupt" => Strike::Corrupt,
        "uncorrectable" => Strike::Uncorrectable,
        "slow" => Strike::Slow { by: SLOW_BY },
        "fail" => Strike::Fail,
        "stuck" => Strike::Stuck { timeout: STUCK_FOR },
        "dead" => Strike::Dead { timeout: Span::ZERO },
        "power_cut" => Strike::PowerCut { off: Span::ZERO, torn: Torn::default() },
        other => return Err(format!("{other:?} is no kind of fault; one of {KINDS} is")),
    })
}

fn set(rule: &mut Rule, key: &str, value: &str) -> Result<(), String> {
    let Rule { strike, scope, when, .. } = rule;
    match (key, strike) {
        ("channel", _) => scope.channel = Some(numbers(key, value)?),
        ("die", _) => scope.die = Some(numbers(key, value)?),
        ("plane", _) => scope.plane = Some(numbers(key, value)?),
        ("block", _) => scope.block = Some(numbers(key, value)?),
        ("page", _) => scope.page = Some(numbers(key, value)?),
        ("lba", _) => scope.lba = Some(numbers(key, value)?),
        ("nth", _) => when.nth = Some(number(key, value)?),
        ("every", _) => when.every = Some(number(key, value)?),
        ("count", _) => when.count = Some(number(key, value)?),
        ("from", _) => when.from = Time::from_ns(time(key, value)?.ns()),
        ("until", _) => when.until = Time::from_ns(time(key, value)?.ns()),
        ("probability", _) => when.probability = Some(probability(value)?),
        ("by", Strike::Slow { by }) => *by = time(key, value)?,
        ("timeout", Strike::Stuck { timeout } | Strike::Dead { timeout }) => *timeout = time(key, value)?,
        ("off", Strike::PowerCut { off, .. }) => *off = time(key, value)?,
        ("torn", Strike::PowerCut { torn, .. }) => *torn = torn_as(value)?,
        ("by" | "timeout" | "off" | "torn", strike) => return Err(format!("{key} says nothing of {}", strike.name())),
        _ => return Err(format!("{key:?} is no word of a fault; words are {WORDS}")),
    }
    Ok(())
}

fn torn_as(value: &str) -> Result<Torn, String> {
    let found = Torn::ALL.iter().find(|(name, _)| *name == value).map(|(_, torn)| *torn);
    let names = Torn::ALL.map(|(name, _)| name);
    found.ok_or_else(|| format!("torn={value}: one of {} is valid", names.join(", ")))
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{key}={value}: a number from 1 on is valid"))
}

fn numbers<T: FromStr + PartialOrd + Copy>(key: &str, value: &str) -> Result<RangeInclusive<T>, String> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    match (first.parse::<T>(), last.parse::<T>()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("{key}={value}: a number, or two as in 3-7, is valid")),
    }
}

/// The longest delay, timeout or time without power that a rule may name.
const LONGEST: Span = Span::from_s(1_000);

fn time(key: &str, value: &str) -> Result<Span, String> {
    let time: Span = value.parse().map_err(|error| format!("{key}={value}: {error}"))?;
    match time <= LONGEST || matches!(key, "from" | "until") {
        true => Ok(time),
        false => Err(format!("{key}={value}: is out of range; at most {LONGEST} is valid")),
    }
}

fn probability(value: &str) -> Result<f64, String> {
    let share: Result<Ratio, _> = value.parse();
    match share {
        Ok(Ratio(share)) if share <= 1.0 => Ok(share),
        _ => Err(format!("probability={value}: a share from 0 to 1, such as 0.001 or \"0.1%\", is valid")),
    }
}

/// Checks that the words of a rule fit together.
fn check(rule: &Rule) -> Result<(), String> {
    let Rule { strike, operation, scope, when } = rule;
    let all_reads = *operation == Some(Operation::Read) || *strike == Strike::Uncorrectable;
    if scope.lba.is_some() && !all_reads {
        let kind = if strike.can_strike(Operation::Read) { strike.name() } else { "uncorrectable" };
        return Err(format!("lba is for reads; \"{kind} read lba=...\" is valid"));
    }
    if when.until <= when.from {
        return Err("until is not later than from".to_owned());
    }
    if when.nth.is_some() && when.every.is_some() {
        return Err("nth and every do not go together; give one of them".to_owned());
    }
    if matches!(strike, Strike::Dead { .. }) && when.count.is_some() {
        return Err("what is dead stays so; write until=... instead of count".to_owned());
    }
    if let Strike::Slow { by } = strike
        && by.is_zero()
    {
        return Err("by=0 is not slow".to_owned());
    }
    Ok(())
}

fn name_of(operation: Operation) -> &'static str {
    Operation::ALL.iter().find(|(_, other)| *other == operation).map_or("?", |(name, _)| name)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { strike, operation, scope, when } = self;
        f.write_str(strike.name())?;
        if let Some(operation) = operation {
            write!(f, " {}", name_of(*operation))?;
        }
        match strike {
            Strike::Slow { by } => write!(f, " by={by}")?,
            Strike::Stuck { timeout } | Strike::Dead { timeout } => write!(f, " timeout={timeout}")?,
            Strike::PowerCut { off, torn } => {
                write!(f, " off={off}")?;
                if *torn != Torn::default() {
                    write!(f, " torn={}", torn.name())?;
                }
            }
            Strike::Corrupt | Strike::Uncorrectable | Strike::Fail => {}
        }
        let Scope { channel, die, plane, block, page, lba } = scope;
        for (name, numbers) in [("channel", channel), ("die", die), ("plane", plane), ("block", block), ("page", page)]
        {
            write_numbers(f, name, numbers.as_ref())?;
        }
        write_numbers(f, "lba", lba.as_ref())?;
        for (name, number) in [("nth", when.nth), ("every", when.every), ("count", when.count)] {
            if let Some(number) = number {
                write!(f, " {name}={number}")?;
            }
        }
        if when.from > Time::from_ns(0) {
            write!(f, " from={}", Span::from_ns(when.from.ns()))?;
        }
        if when.until < Time::MAX {
            write!(f, " until={}", Span::from_ns(when.until.ns()))?;
        }
        match when.probability {
            Some(probability) => write!(f, " probability={probability}"),
            None => Ok(()),
        }
    }
}

fn write_numbers<T: fmt::Display + PartialEq>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    numbers: Option<&RangeInclusive<T>>,
) -> fmt::Result {
    match numbers {
        None => Ok(()),
        Some(numbers) if numbers.start() == numbers.end() => write!(f, " {name}={}", numbers.start()),
        Some(numbers) => write!(f, " {name}={}-{}", numbers.start(), numbers.end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written_back() {
        for text in [
            "corrupt program block=7 page=3",
            "uncorrectable channel=0 die=1 plane=0 block=12 page=7-9 nth=3",
            "uncorrectable lba=1000-1007",
            "slow read by=2ms probability=0.001",
            "fail erase every=100 count=2",
            "stuck timeout=20ms from=10ms until=11ms",
            "dead timeout=0ns channel=3 die=2 from=10000s",
            "power_cut off=1s nth=100000 count=1",
            "power_cut off=0ns torn=prefix every=7 count=3",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        let defaults = [("slow", "slow by=1ms"), ("stuck", "stuck timeout=10ms"), (" fail  program ", "fail program")];
        for (short, whole) in defaults {
            assert_eq!(short.parse::<Rule>().unwrap(), whole.parse().unwrap());
        }
    }

    #[test]
    fn what_is_no_rule_is_told_with_what_would_be() {
        let cases = [
            ("", "is empty; it begins with one of corrupt"),
            ("broken", "\"broken\" is no kind of fault; one of corrupt, uncorrectable"),
            ("fail read", "fail strikes program or erase, not read"),
            ("fail when=now", "\"when\" is no word of a fault"),
            ("fail nth=0", "nth=0: a number from 1 on"),
            ("fail block=9-3", "block=9-3: a number, or two"),
            ("fail block=-3", "block=-3: a number, or two"),
            ("fail by=1ms", "by says nothing of fail"),
            ("slow by=fast", "by=fast: \"fast\" is not a time such as"),
            ("slow by=0us", "by=0 is not slow"),
            ("slow torn=any", "torn says nothing of slow"),
            ("power_cut torn=half", "torn=half: one of unreadable, untouched, whole, prefix, area, data, any is valid"),
            ("fail probability=110%", "probability=110%: a share from 0 to 1"),
            ("slow lba=3", "lba is for reads; \"slow read lba=...\" is valid"),
            ("fail lba=3", "lba is for reads; \"uncorrectable read lba=...\" is valid"),
            ("fail pogram", "\"pogram\" is neither the operation (program or erase, after fail) nor a WORD=VALUE"),
            ("fail from=2ms until=1ms", "until is not later than from"),
            ("slow by=10000s", "by=10000s: is out of range"),
            ("fail nth=2 every=3", "nth and every do not go together"),
            ("dead count=3", "what is dead stays so; write until="),
            ("fail block=1 block=2", "block is there twice"),
        ];
        for (text, problem) in cases {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("fault \"{text}\": {problem}")), "{error}");
        }
    }
}
