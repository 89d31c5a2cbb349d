//! Levels: which member holds which chunk of a stripe. Pure functions, without drives and state.
//!
//! A stripe has a chunk on each member, at the same place: its row. A chunk holds data, a copy of data, or parity.
//!
//! | file | level | a stripe |
//! |---|---|---|
//! | `raid0` | RAID-0 | data on all members |
//! | `raid1` | RAID-1 | a copy of the same data on each member |
//! | `raid10` | RAID-10 | data, each on a pair of members |
//! | `raid5` | RAID-5 | data and one parity, left-symmetric |
//! | `raid6` | RAID-6 | data and two parities, left-symmetric |

mod raid0;
mod raid1;
mod raid10;
mod raid5;
mod raid6;

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

pub use raid0::Raid0;
pub use raid1::Raid1;
pub use raid5::Raid5;
pub use raid6::Raid6;
pub use raid10::Raid10;

/// The most members: sets of them are bits of 32.
pub const MAX_MEMBERS: usize = 32;

/// The content of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// The data chunk of this number in the stripe, or a copy of it.
    Data(usize),
    /// The sum of the data.
    P,
    /// The sum of the data, weighted by powers of two in GF(2^8).
    Q,
}

/// A layout.
pub trait Level: fmt::Debug {
    /// Members.
    fn members(&self) -> usize;

    /// Data chunks of a stripe.
    fn data(&self) -> usize;

    /// Parity chunks of a stripe.
    fn checks(&self) -> usize {
        0
    }

    /// Copies of each data chunk.
    fn copies(&self) -> usize {
        1
    }

    /// The content of a member's chunk.
    fn role(&self, stripe: u64, member: usize) -> Role;

    /// The member with a copy (from zero) of a data chunk.
    fn member(&self, stripe: u64, index: usize, copy: usize) -> usize;

    /// The member with P, or with Q.
    fn check_member(&self, _stripe: u64, _check: usize) -> Option<usize> {
        None
    }

    /// The number of members that may be lost, in any combination.
    fn tolerates(&self) -> usize {
        self.checks() + self.copies() - 1
    }
}

/// A level and its members, as a user names them: `raid5:4`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The level.
    pub kind: Kind,
    /// Members.
    pub members: usize,
}

/// The levels.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// RAID-0.
    Raid0,
    /// RAID-1.
    Raid1,
    /// RAID-5.
    Raid5,
    /// RAID-6.
    Raid6,
    /// RAID-10.
    Raid10,
}

impl Kind {
    /// All, with their names and the fewest members.
    pub const ALL: [(&str, Kind, usize); 5] = [
        ("raid0", Kind::Raid0, 1),
        ("raid1", Kind::Raid1, 2),
        ("raid5", Kind::Raid5, 3),
        ("raid6", Kind::Raid6, 4),
        ("raid10", Kind::Raid10, 4),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind, _)| *kind == self).map_or("", |(name, ..)| name)
    }
}

/// Why a level is impossible.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "array {word:?}: {problem}; valid are raid0:N, raid1:N from two, raid5:N from three, raid6:N from four and raid10:N from four in pairs, \
         up to {MAX_MEMBERS} members, such as raid5:4"
)]
pub struct ShapeError {
    word: String,
    problem: String,
}

impl Shape {
    /// The layout.
    pub fn level(self) -> Rc<dyn Level> {
        match self.kind {
            Kind::Raid0 => Rc::new(Raid0 { members: self.members }),
            Kind::Raid1 => Rc::new(Raid1 { members: self.members }),
            Kind::Raid5 => Rc::new(Raid5 { members: self.members }),
            Kind::Raid6 => Rc::new(Raid6 { members: self.members }),
            Kind::Raid10 => Rc::new(Raid10 { members: self.members }),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.members)
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(word: &str) -> Result<Shape, ShapeError> {
        let bad = |problem: String| ShapeError { word: word.to_owned(), problem };
        let (name, count) = word.split_once(':').ok_or_else(|| bad("the number of members is missing".to_owned()))?;
        let known = Kind::ALL.iter().find(|(known, ..)| *known == name);
        let (_, kind, fewest) = *known.ok_or_else(|| bad(format!("there is no level {name:?}")))?;
        let members: usize = count.parse().map_err(|_| bad(format!("{count:?} is no number of members")))?;
        if !(fewest..=MAX_MEMBERS).contains(&members) || (kind == Kind::Raid10 && members % 2 == 1) {
            return Err(bad(format!("{name} cannot have {members} members")));
        }
        Ok(Shape { kind, members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> impl Iterator<Item = Shape> {
        let all = |(_, kind, fewest): (&str, Kind, usize)| (fewest..12).map(move |members| Shape { kind, members });
        Kind::ALL.into_iter().flat_map(all).filter(|shape| shape.kind != Kind::Raid10 || shape.members % 2 == 0)
    }

    #[test]
    fn each_member_has_one_role_and_each_role_its_members() {
        for shape in shapes() {
            let level = shape.level();
            for stripe in 0..40 {
                let mut seen = vec![0; level.data()];
                let mut checks = [0, 0];
                for member in 0..level.members() {
                    match level.role(stripe, member) {
                        Role::Data(index) => {
                            let copies: Vec<_> =
                                (0..level.copies()).map(|copy| level.member(stripe, index, copy)).collect();
                            assert!(copies.contains(&member), "{shape}, stripe {stripe}, member {member}");
                            seen[index] += 1;
                        }
                        Role::P => checks[0] += usize::from(level.check_member(stripe, 0) == Some(member)),
                        Role::Q => checks[1] += usize::from(level.check_member(stripe, 1) == Some(member)),
                    }
                }
                assert!(seen.iter().all(|count| *count == level.copies()), "{shape}, stripe {stripe}: {seen:?}");
                assert_eq!(checks.iter().sum::<usize>(), level.checks(), "{shape}, stripe {stripe}");
                assert_eq!(level.data() * level.copies() + level.checks(), level.members());
            }
        }
    }

    #[test]
    fn parity_rotates_over_all_members_and_rows_of_data_use_all_members() {
        for shape in shapes().filter(|shape| matches!(shape.kind, Kind::Raid5 | Kind::Raid6)) {
            let (level, members) = (shape.level(), shape.members as u64);
            let mut parities = vec![0; shape.members];
            (0..members).for_each(|stripe| parities[level.check_member(stripe, 0).unwrap()] += 1);
            assert!(parities.iter().all(|count| *count == 1), "{shape}: {parities:?}");
            // Left-symmetric: any run of as many data chunks as there are members covers all members.
            let chunks: Vec<usize> = (0..4 * members)
                .map(|chunk| {
                    let data = level.data() as u64;
                    level.member(chunk / data, (chunk % data) as usize, 0)
                })
                .collect();
            if shape.kind == Kind::Raid5 {
                for window in chunks.windows(shape.members) {
                    let mut sorted = window.to_vec();
                    sorted.sort_unstable();
                    assert_eq!(sorted, (0..shape.members).collect::<Vec<_>>(), "{shape}");
                }
            }
        }
    }

    #[test]
    fn names_are_read_as_they_are_written_and_errors_say_what_is_valid() {
        for shape in shapes() {
            assert_eq!(shape.to_string().parse(), Ok(shape));
        }
        for (word, problem) in [
            ("raid5", "number of members is missing"),
            ("raid7:4", "no level \"raid7\""),
            ("raid5:2", "cannot have 2"),
            ("raid10:5", "cannot have 5"),
            ("raid6:33", "cannot have 33"),
            ("raid1:x", "no number"),
        ] {
            let error = word.parse::<Shape>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("raid5:4"), "{error}");
        }
    }
}
