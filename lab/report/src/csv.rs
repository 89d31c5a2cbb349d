//! Tables as CSV: a header, one row per line, empty cells for missing values.

use crate::tables::Table;

/// The file.
pub(crate) fn bytes(table: &Table) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let rows = table.columns.first().map_or(0, |(_, column)| column.len());
    let written = writer.write_record(table.columns.iter().map(|(name, _)| name)).and_then(|()| {
        (0..rows).try_for_each(|row| writer.write_record(table.columns.iter().map(|(_, column)| column.text(row))))
    });
    written.expect("memory takes everything");
    writer.into_inner().expect("memory takes everything")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Column;

    #[test]
    fn cells_are_separated_quoted_and_left_empty() {
        let columns = vec![
            ("name".to_owned(), Column::Text(vec!["a,b".to_owned(), "c".to_owned()])),
            ("count".to_owned(), Column::Whole(vec![Some(3), None])),
            ("share".to_owned(), Column::Real(vec![None, Some(0.1)])),
        ];
        let text = String::from_utf8(bytes(&Table { name: "t", columns })).unwrap();
        assert_eq!(text, "name,count,share\n\"a,b\",3,\nc,,0.1\n");
    }
}
