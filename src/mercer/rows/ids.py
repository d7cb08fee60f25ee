"""The column of a table that identifies its rows: read apart, and never a feature."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.url import Place, Url
from mercer.rows.folders import parquet_files
from mercer.rows.stamp import arrow_file
from mercer.rows.tables import csv_file, named_errors, shown

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")


def names_of(path: Place) -> Sequence[str]:
    """The names of the columns in a file, if it has any."""
    column = IdColumn(path, "")
    return column.names() if column.is_table() else ()


@frozen
class IdColumn:
    """A column of ids in a Parquet or CSV file, or in a folder of Parquet files.

    Ids of a CSV file are text as it stands there: 007 stays 007.
    """

    path: Place
    name: str

    def check(self) -> None:
        """Refuse files without named columns, and a name that is not among them."""
        if not self.is_table():
            raise ValueError(
                f"{self.path} has no named columns, so there is no id column "
                f"{shown(self.name)}; ids can be read from Parquet and CSV files"
            )
        if self.name not in (names := self.names()):
            known = ", ".join(map(shown, names[:10])) + ", …" * (len(names) > 10)
            raise ValueError(f"{self.path} has no column {shown(self.name)}; it has {known}")

    def features(self) -> list[str]:
        """The names of the other columns."""
        return [name for name in self.names() if name != self.name]

    def values(self) -> Any:
        """The ids of all rows, as an Arrow array."""
        arrow = require("pyarrow", "io", "reading ids")
        with named_errors(self.path, "ids"):
            if self._suffixed(CSV):
                return self._csv(arrow.string()).column(self.name)
            tables = [self._read(file) for file in self._files()]
        return arrow.concat_tables(tables).column(self.name)

    def is_table(self) -> bool:
        """Whether the file has named columns, by its suffix."""
        is_table = self._is_folder() or self._suffixed(CSV + PARQUET)
        return is_table and self.path.suffix.lower() != ".zarr"

    def names(self) -> Sequence[str]:
        with named_errors(self.path, "ids"):
            if self._suffixed(CSV):
                reader = require("pyarrow.csv", "io", "reading CSV").open_csv(
                    csv_file(self.path), parse_options=self._parsing()
                )
                with reader:
                    return list(reader.schema.names)
            parquet = require("pyarrow.parquet", "io", "reading Parquet")
            return list(parquet.read_schema(arrow_file(self._files()[0])).names)

    def _is_folder(self) -> bool:
        path = self.path
        return path.status().is_folder if isinstance(path, Url) else path.is_dir()

    def _files(self) -> list[Place]:
        return parquet_files(self.path) if self._is_folder() else [self.path]

    def _read(self, file: Place) -> Any:
        parquet = require("pyarrow.parquet", "io", "reading Parquet")
        return parquet.ParquetFile(arrow_file(file)).read([self.name], use_threads=False)

    def _csv(self, kind: Any) -> Any:
        csv = require("pyarrow.csv", "io", "reading CSV")
        how = csv.ConvertOptions(include_columns=[self.name], column_types={self.name: kind})
        return csv.read_csv(csv_file(self.path), parse_options=self._parsing(), convert_options=how)

    def _parsing(self) -> Any:
        is_tab = self._suffixed((".tsv", ".tsv.gz"))
        csv = require("pyarrow.csv", "io", "reading CSV")
        return csv.ParseOptions(delimiter="\t" if is_tab else ",")

    def _suffixed(self, suffixes: tuple[str, ...]) -> bool:
        return os.fspath(self.path).lower().endswith(suffixes)
