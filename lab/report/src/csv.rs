//! Tables as CSV: a header, one row per line, empty cells for missing values.

use std::io::{self, Write};

use crate::tables::Table;

/// The file.
pub(crate) fn bytes(table: &Table) -> Vec<u8> {
    let mut file = Vec::new();
    let written = Rows::new(&mut file, table).and_then(|mut rows| {
        rows.write(table)?;
        rows.finish()
    });
    written.expect("memory takes everything");
    file
}

/// A file that is written in parts.
pub(crate) struct Rows<W: Write>(csv::Writer<W>);

impl<W: Write> Rows<W> {
    /// Writes the header of a table.
    pub(crate) fn new(out: W, table: &Table) -> io::Result<Rows<W>> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(table.columns.iter().map(|(name, _)| name))?;
        Ok(Rows(writer))
    }

    /// Writes all rows of a table.
    pub(crate) fn write(&mut self, table: &Table) -> io::Result<()> {
        for row in 0..table.rows() {
            self.0.write_record(table.columns.iter().map(|(_, column)| column.text(row)))?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
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
