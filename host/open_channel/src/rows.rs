//! Contiguous addresses, for commands with a first block and a number.

/// A row: its first address, how many, and the number of the first among all.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) first: u64,
    pub(crate) blocks: u32,
    pub(crate) at: usize,
}

/// The rows of addresses, none longer than `most`.
pub(crate) fn rows(addresses: &[u64], most: u32) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        match rows.last_mut() {
            Some(row) if row.first + u64::from(row.blocks) == *address && row.blocks < most => row.blocks += 1,
            _ => rows.push(Row { first: *address, blocks: 1, at }),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ends_where_the_next_address_does_not_follow_or_it_is_long_enough() {
        let row = |first, blocks, at| Row { first, blocks, at };
        assert_eq!(rows(&[5, 6, 7, 9, 8], 2), [row(5, 2, 0), row(7, 1, 2), row(9, 1, 3), row(8, 1, 4)]);
        assert!(rows(&[], 2).is_empty());
    }
}
