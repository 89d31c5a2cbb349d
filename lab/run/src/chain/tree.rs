//! Which nodes a layer lies over. One without `over` takes all that is at the top; one with `over=drive-0+cache` takes these.

use super::{Named, names};

/// Drives that trees can have.
const MOST_DRIVES: usize = 64;

/// What is at the top.
#[derive(Clone)]
pub(super) struct Top {
    /// The name of a layer or a drive.
    pub(super) name: String,
    /// Which drive it is; `drive-0` is another name of the first.
    drive: Option<usize>,
}

impl Top {
    /// Drives of these names.
    pub(super) fn of_drives(names: impl Iterator<Item = String>) -> Vec<Top> {
        names.enumerate().map(|(number, name)| Top { name, drive: Some(number) }).collect()
    }

    /// A layer.
    pub(super) fn of_layer(name: String) -> Top {
        Top { name, drive: None }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.drive.is_some_and(|number| drive_name(number) == name)
    }
}

fn drive_name(number: usize) -> String {
    format!("drive-{number}")
}

/// Whether a name is one of drives.
pub(super) fn is_drive_name(name: &str) -> bool {
    name.strip_prefix("drive-").is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Names that a message lists.
const LISTED: usize = 6;

fn list(tops: &[Top]) -> String {
    let more = if tops.len() > LISTED { " and so on" } else { "" };
    tops.iter().take(LISTED).map(|top| &*top.name).collect::<Vec<_>>().join(", ") + more
}

/// The nodes, by number, that each instance of a layer takes of those at the top.
///
/// # Errors
/// Why it cannot lie over them, and what would be valid.
pub(super) fn groups(one: &Named, tops: &[Top]) -> Result<Vec<Vec<usize>>, String> {
    let number_of = |name: &String| {
        let found = tops.iter().position(|top| top.is_called(name));
        found.ok_or_else(|| format!("over={name}: no such drive or layer is at the top; valid are {}", list(tops)))
    };
    let taken: Vec<usize> = match &one.over[..] {
        [] => (0..tops.len()).collect(),
        over => over.iter().map(number_of).collect::<Result<_, String>>()?,
    };
    let (takes, count) = (one.layer.takes(), taken.len());
    if let Some((_, twice)) = (0..count).zip(&taken).find(|(before, number)| taken[..*before].contains(number)) {
        return Err(format!("over={}: it is there twice", tops[*twice].name));
    }
    if takes == 0 || count == 0 || !count.is_multiple_of(takes) {
        return Err(format!("{count} drives or layers lie below it, and it takes {takes} at a time"));
    }
    Ok(taken.chunks(takes).map(<[usize]>::to_vec).collect())
}

/// The name of an instance of a layer.
pub(crate) fn instance(name: &str, number: usize, all: usize) -> String {
    if all > 1 { format!("{name}/{number}") } else { name.to_owned() }
}

/// Puts the instances of a layer in the place of the first node that they take.
pub(super) fn replace<T>(tops: Vec<T>, groups: &[Vec<usize>], above: Vec<T>) -> Vec<T> {
    let mut above = Some(above);
    let is_taken = |number: usize| groups.iter().any(|group| group.contains(&number));
    let mut next = Vec::new();
    for (number, top) in tops.into_iter().enumerate() {
        match is_taken(number) {
            true => next.extend(above.take().unwrap_or_default()),
            false => next.push(top),
        }
    }
    next
}

/// What is at the top over a number of drives.
fn tops(layers: &[Named], drives: usize) -> Result<Vec<Top>, String> {
    let mut tops = Top::of_drives((0..drives).map(drive_name));
    for (name, one) in names(layers).into_iter().zip(layers) {
        let groups = groups(one, &tops).map_err(|problem| format!("{name}: {problem}"))?;
        let above = (0..groups.len()).map(|number| Top::of_layer(instance(&name, number, groups.len()))).collect();
        tops = replace(tops, &groups, above);
    }
    Ok(tops)
}

/// What a layer is, and for each of its instances what it lies over.
type Placed = (String, Vec<Vec<String>>);

/// Which nodes the layers that have a `key` lie over: drives, and other layers that have one. All others are passed by.
pub(crate) fn structure(layers: &[Named], key: impl Fn(&Named) -> Option<String>) -> Result<Vec<Placed>, String> {
    let drives = drives_below(layers)?;
    let mut tops = Top::of_drives((0..drives).map(drive_name));
    // What each of them is, where the names of layers do not matter.
    let (mut places, mut all): (Vec<String>, Vec<_>) = ((0..drives).map(drive_name).collect(), Vec::new());
    for (name, one) in names(layers).into_iter().zip(layers) {
        let groups = groups(one, &tops)?;
        let below: Vec<Vec<String>> =
            groups.iter().map(|group| group.iter().map(|number| places[*number].clone()).collect()).collect();
        let place = |number: usize| match key(one) {
            Some(_) => format!("layer {} {number}", all.len()),
            None => below[number].join("+"),
        };
        let above = (0..groups.len()).map(place).collect();
        let names_above =
            (0..groups.len()).map(|number| Top::of_layer(instance(&name, number, groups.len()))).collect();
        places = replace(places, &groups, above);
        tops = replace(tops, &groups, names_above);
        all.extend(key(one).map(|key| (key, below)));
    }
    Ok(all)
}

/// The drive, by number, of each node of `over`: itself, or the only one below it. `below` has what a layer lies over.
pub(crate) fn drives_of<'a>(
    over: &[String],
    drives: &[&str],
    below: &dyn Fn(&str) -> Option<&'a [String]>,
) -> Vec<Option<usize>> {
    let drive_of = |name: &String| {
        let mut name = name.as_str();
        loop {
            if let Some(number) = drives.iter().position(|drive| *drive == name) {
                return Some(number);
            }
            match below(name)? {
                [only] => name = only,
                _ => return None,
            }
        }
    };
    over.iter().map(drive_of).collect()
}

/// Drives that layers need below them, so that one is at the top.
///
/// # Errors
/// Why no number of drives would do.
pub(super) fn drives_below(layers: &[Named]) -> Result<usize, String> {
    let is_a_tree = layers.iter().any(|one| !one.over.is_empty());
    if !is_a_tree {
        return Ok(layers.iter().map(|one| one.layer.takes()).product());
    }
    let (mut problem, mut left) = (String::new(), Vec::new());
    for drives in 1..=MOST_DRIVES {
        match tops(layers, drives) {
            Ok(tops) if tops.len() == 1 && drives == 1 => {
                return Err("over: there is one drive, and all layers lie over it; leave it out".to_owned());
            }
            Ok(tops) if tops.len() == 1 => return Ok(drives),
            Ok(tops) if left.is_empty() => left = tops,
            Ok(_) => {}
            Err(error) => problem = error,
        }
    }
    Err(match left.is_empty() {
        true => problem,
        false => format!("{} are at the top; a layer over all of them is missing", list(&left)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Chain;
    use super::*;

    fn needs(words: &str) -> Result<usize, String> {
        let layers = words.split_whitespace().map(|word| word.parse().unwrap()).collect();
        Chain { layers }.resolve().map(|layers| super::drives_below(&layers).unwrap())
    }

    #[test]
    fn a_tree_has_as_many_drives_as_it_needs() {
        assert_eq!(needs("cache,over=drive-0 raid1:2,over=cache+drive-1").unwrap(), 2);
        assert_eq!(needs("cache,over=drive-2 raid5:4").unwrap(), 4);
        assert_eq!(needs("low=raid1:2,over=drive-0+drive-1 fast=cache,over=drive-2 raid0:2,over=fast+low").unwrap(), 3);
        assert_eq!(needs("block,over=drive-0+drive-1 raid1:2,over=block/0+block/1").unwrap(), 2);
        assert_eq!(needs("block raid1:2 cache").unwrap(), 2);
    }

    #[test]
    fn a_tree_that_cannot_be_is_refused_with_what_would_be() {
        for (words, problem) in [
            (
                "cache,over=drive-x raid1:2",
                "cache: over=drive-x: no such drive or layer is at the top; valid are drive-0, drive-1",
            ),
            ("raid1:2,over=drive-0+drive-0", "over=drive-0: it is there twice"),
            ("raid1:2,over=drive-0+drive-1+drive-2", "3 drives or layers lie below it, and it takes 2 at a time"),
            ("cache,over=drive-1", "a layer over all of them is missing"),
            ("cache raid1:2,over=cache+drive-0", "no such drive or layer is at the top"),
            ("cache,over=drive-0 block,over=cache", "there is one drive, and all layers lie over it; leave it out"),
        ] {
            let error = needs(words).unwrap_err();
            assert!(error.contains(problem), "{words}: {error}");
        }
    }

    #[test]
    fn states_fit_the_same_drives_whatever_layers_are_called() {
        let of = |words: &str| {
            let layers = words.split_whitespace().map(|word| word.parse().unwrap()).collect();
            let layers = Chain { layers }.resolve().unwrap();
            structure(&layers, |one| one.layer.layout()).unwrap()
        };
        let tree = of("cache,over=drive-0 raid0:2,over=cache+drive-1");
        assert_eq!(tree, of("a=block,over=drive-0 b=raid0:2,over=a+drive-1"));
        assert_eq!(tree, of("raid0:2"));
        assert_eq!(tree, of("cache,over=drive-1 raid0:2,over=drive-0+cache"));
        assert_ne!(tree, of("cache,over=drive-0 raid0:2,over=drive-1+cache"));
        let held = |words: &str| {
            let layers = words.split_whitespace().map(|word| word.parse().unwrap()).collect();
            structure(&Chain { layers }.resolve().unwrap(), |one| Some(one.layer.kind().to_owned())).unwrap()
        };
        assert_ne!(held("cache,over=drive-0 raid0:2"), held("cache,over=drive-1 raid0:2"));
        assert_ne!(held("cache,over=drive-0 raid0:2"), held("cache raid0:2"));
    }

    #[test]
    fn members_are_the_drives_below_them() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (cache, mirror) = (names("drive-2"), names("drive-0 drive-1"));
        let below = |name: &str| match name {
            "cache" => Some(&cache[..]),
            "mirror" => Some(&mirror[..]),
            _ => None,
        };
        let of = drives_of(&names("cache mirror drive-1"), &["drive-0", "drive-1", "drive-2"], &below);
        assert_eq!(of, [Some(2), None, Some(1)]);
    }

    #[test]
    fn a_layer_takes_the_place_of_the_first_node_below_it() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(replace(names("a b c d"), &[vec![3, 1]], names("x")), names("a x c"));
        assert_eq!(replace(names("a b c d"), &[vec![0], vec![2]], names("x/0 x/1")), names("x/0 x/1 b d"));
    }
}
