//! Tables as Parquet files: row groups, columns as text, whole numbers or reals, null for missing values.
//! Uncompressed: the tables are small.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::tables::{Column, Table};

/// The file.
pub(crate) fn bytes(table: &Table) -> Vec<u8> {
    let written = Groups::new(Vec::new(), table).and_then(|mut groups| {
        groups.write(table)?;
        groups.finish()
    });
    written.expect("memory takes everything, and the schema is that of the columns")
}

/// A file that is written in parts, a row group each.
pub(crate) struct Groups<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> Groups<W> {
    /// A file with the columns of a table.
    pub(crate) fn new(out: W, table: &Table) -> io::Result<Groups<W>> {
        let fields = table.columns.iter().map(|(name, column)| Ok(Arc::new(field(name, column)?)));
        let schema = Type::group_type_builder(table.name).with_fields(fields.collect::<Result<_>>()?).build()?;
        Ok(Groups(SerializedFileWriter::new(out, Arc::new(schema), Arc::new(WriterProperties::default()))?))
    }

    /// Writes all rows of a table; nothing if it has none.
    pub(crate) fn write(&mut self, table: &Table) -> io::Result<()> {
        if table.rows() == 0 {
            return Ok(());
        }
        let mut group = self.0.next_row_group()?;
        for (_, column) in &table.columns {
            match column {
                Column::Text(cells) => {
                    let cells: Vec<_> = cells.iter().map(|text| Some(ByteArray::from(text.as_str()))).collect();
                    put::<ByteArrayType, W>(&mut group, &cells)?;
                }
                Column::Whole(cells) => {
                    let cells: Vec<_> = cells.iter().map(|cell| cell.map(|number| number as i64)).collect();
                    put::<Int64Type, W>(&mut group, &cells)?;
                }
                Column::Real(cells) => put::<DoubleType, W>(&mut group, cells)?,
            }
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> io::Result<W> {
        Ok(self.0.into_inner()?)
    }
}

fn field(name: &str, column: &Column) -> Result<Type> {
    let (physical, meaning) = match column {
        Column::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        Column::Whole(_) => (Physical::INT64, ConvertedType::NONE),
        Column::Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    builder.with_converted_type(meaning).build()
}

/// Writes the next column: the existing cells, and for every row whether it has one.
fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &[Option<T::T>],
) -> Result<()> {
    let there: Vec<T::T> = cells.iter().flatten().cloned().collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let mut column = group.next_column()?.expect("as many columns as the schema has");
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn what_is_written_is_read_back_by_the_library() {
        let columns = vec![
            ("name".to_owned(), Column::Text(vec!["a".to_owned(), "b".to_owned()])),
            ("count".to_owned(), Column::Whole(vec![Some(3), None])),
            ("share".to_owned(), Column::Real(vec![None, Some(0.25)])),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        std::fs::write(&path, bytes(&Table { name: "t", columns })).unwrap();
        let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].get_string(0).unwrap().as_str(), rows[0].get_long(1).unwrap()), ("a", 3));
        assert_eq!((rows[1].get_string(0).unwrap().as_str(), rows[1].get_double(2).unwrap()), ("b", 0.25));
        assert!(rows[0].get_double(2).is_err() && rows[1].get_long(1).is_err());
    }
}
