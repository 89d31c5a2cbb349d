//! Tables as Parquet files: one row group, columns as text, whole numbers or reals, null for missing values.
//! Uncompressed: the tables are small.

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
    written(table).expect("memory takes everything, and the schema is that of the columns")
}

fn written(table: &Table) -> Result<Vec<u8>> {
    let fields = table.columns.iter().map(|(name, column)| Ok(Arc::new(field(name, column)?)));
    let schema = Type::group_type_builder(table.name).with_fields(fields.collect::<Result<_>>()?).build()?;
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(WriterProperties::default()))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in &table.columns {
        match column {
            Column::Text(cells) => {
                let cells: Vec<_> = cells.iter().map(|text| Some(ByteArray::from(text.as_str()))).collect();
                put::<ByteArrayType>(&mut group, &cells)?;
            }
            Column::Whole(cells) => {
                let cells: Vec<_> = cells.iter().map(|cell| cell.map(|number| number as i64)).collect();
                put::<Int64Type>(&mut group, &cells)?;
            }
            Column::Real(cells) => put::<DoubleType>(&mut group, cells)?,
        }
    }
    group.close()?;
    writer.into_inner()
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
fn put<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, cells: &[Option<T::T>]) -> Result<()> {
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
