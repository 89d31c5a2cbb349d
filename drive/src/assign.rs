//! Rules that give commands a class and a tenant, for clients that state none: by connection, queue and namespace.
//!
//! A rule is words with commas between them, `host=NQN,queue=2,class=3`; rules have blanks between them. Class and tenant of a
//! command are decided one by one: the command's own counts first, then that of the most specific rule. A rule with a queue comes
//! before one with a namespace, then one with a host or function, then one with a transport.
//!
//! Left out: rules by what a command does; deadlines, which clients state.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use nandscape_wire_nvme::vendor::Attributes;

use crate::controller::QueueId;
use crate::subsystem::{HostIdentity, TransportModel};

/// The keys of a rule.
const KEYS: &str = "host, function, via, queue, namespace, class and tenant";
/// Transports by their names in rules. Clients of NBD are in the drive's process.
const TRANSPORTS: [(&str, TransportModel); 3] =
    [("nbd", TransportModel::InProcess), ("nvme-tcp", TransportModel::Message), ("vfio-user", TransportModel::Memory)];

/// Rules, the most specific first. The default has none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Assignments(Vec<Rule>);

/// A rule: its conditions, and the class and tenant that it gives; 0 gives none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Rule {
    host: Option<String>,
    function: Option<u16>,
    via: Option<TransportModel>,
    queue: Option<u16>,
    namespace: Option<u32>,
    class: u8,
    tenant: u16,
}

impl Assignments {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules that concern a client.
    #[must_use]
    pub fn of_client(&self, host: &HostIdentity, model: TransportModel) -> Assignments {
        let concerns = |rule: &&Rule| {
            rule.host.as_ref().is_none_or(|nqn| *nqn == host.hostnqn)
                && rule.function.is_none_or(|function| host.function == Some(function))
                && rule.via.is_none_or(|via| via == model)
        };
        Assignments(self.0.iter().filter(concerns).cloned().collect())
    }

    /// The attributes of a command of such a client, which states `own`.
    #[must_use]
    pub fn complete(&self, queue: QueueId, nsid: u32, own: Attributes) -> Attributes {
        let (mut class, mut tenant) = (own.class(), own.tenant());
        let fits =
            |rule: &&Rule| rule.queue.is_none_or(|id| id == queue.0) && rule.namespace.is_none_or(|id| id == nsid);
        for rule in self.0.iter().filter(fits) {
            class = if class == 0 { rule.class } else { class };
            tenant = if tenant == 0 { rule.tenant } else { tenant };
        }
        Attributes(own.0 | Attributes::of(class, tenant).0)
    }

    /// Both together.
    ///
    /// # Errors
    /// Two rules of the same conditions that give the same.
    pub fn and(self, other: Assignments) -> Result<Assignments, String> {
        Assignments::of_rules(self.0.into_iter().chain(other.0).collect())
    }

    fn of_rules(mut rules: Vec<Rule>) -> Result<Assignments, String> {
        // Whether a rule with these conditions sets the class, and the tenant.
        let mut seen = BTreeMap::<_, [bool; 2]>::new();
        for rule in &rules {
            let sets = [rule.class != 0, rule.tenant != 0];
            for ((what, now), before) in
                ["class", "tenant"].into_iter().zip(sets).zip(seen.entry(rule.conditions()).or_default())
            {
                if now && *before {
                    return Err(format!(
                        "\"{rule}\": an earlier rule has the same conditions and sets the {what}; one rule for each set of \
                         conditions is valid"
                    ));
                }
                *before |= now;
            }
        }
        drop(seen);
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.specificity()));
        Ok(Assignments(rules))
    }
}

impl Rule {
    /// Of two rules that fit a command, the one with the higher value counts. No two with the same value fit, unless their conditions
    /// are the same.
    fn specificity(&self) -> u8 {
        let is_of_client = self.host.is_some() || self.function.is_some();
        let conditions = [self.via.is_some(), is_of_client, self.namespace.is_some(), self.queue.is_some()];
        conditions.into_iter().zip(0..).map(|(is_given, bit)| u8::from(is_given) << bit).sum()
    }

    /// Its conditions, in an order.
    fn conditions(&self) -> impl Ord + use<'_> {
        let via = self.via.map(|via| TRANSPORTS.iter().position(|(_, model)| *model == via));
        (self.host.as_deref(), self.function, via, self.queue, self.namespace)
    }

    /// Sets what a word gives.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |least: u32, most: u32| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("{key} = {value} is out of range; from {least} to {most} is valid"))
        };
        match key {
            "host" if value.is_empty() => return Err("host is empty; an NQN is valid".to_owned()),
            "host" => self.host = Some(value.to_owned()),
            "function" => self.function = Some(number(0, u16::MAX.into())? as u16),
            "via" => {
                let found = TRANSPORTS.iter().find(|(name, _)| *name == value);
                let (_, via) = found.ok_or_else(|| format!("via = {value}: nbd, nvme-tcp and vfio-user are valid"))?;
                self.via = Some(*via);
            }
            "queue" => self.queue = Some(number(1, u16::MAX.into())? as u16),
            "namespace" => self.namespace = Some(number(1, u32::MAX - 1)?),
            "class" => self.class = number(1, 15)? as u8,
            "tenant" => self.tenant = number(1, 4_095)? as u16,
            key => return Err(format!("{key:?} is no key of a rule; {KEYS} are")),
        }
        Ok(())
    }

    fn parse(text: &str) -> Result<Rule, String> {
        let (mut rule, mut seen) = (Rule::default(), Vec::new());
        for word in text.split(',') {
            let (key, value) =
                word.split_once('=').ok_or_else(|| format!("{word:?} is no KEY=VALUE; the keys are {KEYS}"))?;
            if seen.contains(&key) {
                return Err(format!("{key} is given twice; once is valid"));
            }
            seen.push(key);
            rule.set(key, value)?;
        }
        match rule {
            Rule { class: 0, tenant: 0, .. } => {
                Err("it sets neither class nor tenant; class=1 to 15 and tenant=1 to 4095 are valid".to_owned())
            }
            Rule { host: Some(_), function: Some(_), .. } => {
                Err("no client has both an NQN and a PCI function; one of host and function is valid".to_owned())
            }
            rule => Ok(rule),
        }
    }
}

impl FromStr for Assignments {
    type Err = String;

    fn from_str(text: &str) -> Result<Assignments, String> {
        let rule = |text: &str| Rule::parse(text).map_err(|problem| format!("\"{text}\": {problem}"));
        Assignments::of_rules(text.split_whitespace().map(rule).collect::<Result<_, String>>()?)
    }
}

impl fmt::Display for Assignments {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.0.iter().map(Rule::to_string).collect();
        f.write_str(&rules.join(" "))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |key: &str, value: Option<String>| value.map(|value| format!("{key}={value}"));
        let via = self.via.and_then(|via| TRANSPORTS.iter().find(|(_, model)| *model == via));
        let words = [
            word("host", self.host.clone()),
            word("function", self.function.map(|number| number.to_string())),
            word("via", via.map(|(name, _)| (*name).to_owned())),
            word("queue", self.queue.map(|number| number.to_string())),
            word("namespace", self.namespace.map(|number| number.to_string())),
            word("class", (self.class != 0).then(|| self.class.to_string())),
            word("tenant", (self.tenant != 0).then(|| self.tenant.to_string())),
        ];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Assignments {
        text.parse().expect("valid rules")
    }

    /// Class and tenant of a command of a queue and a namespace.
    fn of(rules: &Assignments, queue: u16, nsid: u32, own: Attributes) -> (u8, u16) {
        let attributes = rules.complete(QueueId(queue), nsid, own);
        (attributes.class(), attributes.tenant())
    }

    #[test]
    fn the_most_specific_rule_counts_and_a_command_s_own_before_it() {
        let all =
            rules("class=9,tenant=1 via=nvme-tcp,class=8 host=nqn.a:x,class=7 namespace=2,class=6 queue=3,class=5");
        let host = HostIdentity { hostnqn: "nqn.a:x".to_owned(), ..HostIdentity::default() };
        let mine = all.of_client(&host, TransportModel::Message);
        let none = Attributes::default();
        assert_eq!(of(&mine, 3, 2, none), (5, 1));
        assert_eq!(of(&mine, 1, 2, none), (6, 1));
        assert_eq!(of(&mine, 1, 1, none), (7, 1));
        let other = all.of_client(&HostIdentity::default(), TransportModel::Message);
        assert_eq!(of(&other, 1, 1, none), (8, 1));
        let local = all.of_client(&HostIdentity::default(), TransportModel::InProcess);
        assert_eq!(of(&local, 1, 1, none), (9, 1));
        // Class and tenant are decided one by one, and other bits stay.
        assert_eq!(of(&local, 1, 1, Attributes::of(3, 0)), (3, 1));
        assert_eq!(of(&local, 3, 1, Attributes::of(0, 77)), (5, 77));
        assert_eq!(local.complete(QueueId(1), 1, Attributes(1 << 16)), Attributes(1 << 16 | 1 << 4 | 9));
        // More conditions do not outweigh a queue.
        let both = rules("host=nqn.a:x,namespace=2,class=1 queue=4,class=2 queue=4,namespace=2,class=3");
        let both = both.of_client(&host, TransportModel::Message);
        assert_eq!([(1, 2), (4, 1), (4, 2)].map(|(queue, nsid)| of(&both, queue, nsid, none).0), [1, 2, 3]);
    }

    #[test]
    fn a_function_is_a_client() {
        let function = |number| HostIdentity { function: Some(number), ..HostIdentity::default() };
        let all = rules("function=1,tenant=11 function=0,tenant=10");
        let tenant = |host: &HostIdentity| of(&all.of_client(host, TransportModel::Memory), 1, 1, Attributes(0)).1;
        assert_eq!([tenant(&function(0)), tenant(&function(1)), tenant(&HostIdentity::default())], [10, 11, 0]);
    }

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in [
            "",
            "queue=2,class=15",
            "host=nqn.2014-08.org.nvmexpress:uuid:1-2,via=nvme-tcp,queue=1,tenant=4095 class=1,tenant=2",
        ] {
            assert_eq!(rules(text).to_string(), text);
        }
        assert_eq!(rules("class=1 queue=2,class=3").to_string(), "queue=2,class=3 class=1");
        assert_eq!(rules("class=1").and(rules("queue=2,class=3")).unwrap(), rules("class=1 queue=2,class=3"));
        assert!(rules("class=1").and(rules("tenant=3")).is_ok(), "each gives something else");
    }

    /// A recording may have any number of rules in its header.
    #[test]
    fn many_rules_are_read_in_a_short_time() {
        let text: Vec<String> = (0..100_000).map(|number| format!("host=nqn.a:{number},class=3")).collect();
        let all = rules(&text.join(" "));
        let host = HostIdentity { hostnqn: "nqn.a:99999".to_owned(), ..HostIdentity::default() };
        assert_eq!(all.of_client(&host, TransportModel::Message), rules("host=nqn.a:99999,class=3"));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_would_be() {
        for (text, problem) in [
            ("queue=0,class=1", "\"queue=0,class=1\": queue = 0 is out of range; from 1 to 65535 is valid"),
            ("class=16", "from 1 to 15 is valid"),
            ("tenant=4096", "from 1 to 4095 is valid"),
            ("namespace=4294967295,class=1", "from 1 to 4294967294 is valid"),
            ("queue=2", "it sets neither class nor tenant; class=1 to 15"),
            ("", ""),
            ("urgent", "\"urgent\" is no KEY=VALUE; the keys are host, function, via"),
            ("nqn=x,class=1", "\"nqn\" is no key of a rule; host, function"),
            ("via=tcp,class=1", "nbd, nvme-tcp and vfio-user are valid"),
            ("class=1,class=2", "class is given twice"),
            ("host=,class=1", "host is empty"),
            ("host=a,function=1,class=1", "one of host and function is valid"),
            (
                "queue=1,class=2 queue=1,tenant=3,class=4",
                "has the same conditions and sets the class; one rule for each",
            ),
            ("queue=1,tenant=2 queue=1,class=3 queue=1,class=4", "has the same conditions and sets the class"),
            ("via=nbd,tenant=2 via=nbd,tenant=3", "has the same conditions and sets the tenant"),
        ] {
            match text.parse::<Assignments>() {
                Ok(rules) => assert!(rules.is_empty() && text.is_empty(), "{text}"),
                Err(error) => assert!(error.contains(problem) && !problem.is_empty(), "{text}: {error}"),
            }
        }
    }
}
