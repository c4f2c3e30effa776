"""Matrix Market files and folders as Cell Ranger writes them: which axis is which."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from robustnmf.tables import read_table

GENES, CELLS = ["g1", "g2", "g2"], ["AAA-1", "CCC-1", "GGG-1", "TTT-1"]
COUNTS = np.array([[0, 2, 0, 1], [3, 0, 0, 4], [0, 0, 5, 0]])


def write_folder(folder, counts=COUNTS, *, compressed=False, prefix="", genes="features.tsv"):
    folder.mkdir(exist_ok=True)
    opened = gzip.open if compressed else open
    end = ".gz" if compressed else ""
    with opened(folder / f"{prefix}matrix.mtx{end}", "wb") as file:
        scipy.io.mmwrite(file, scipy.sparse.coo_array(counts))
    with opened(folder / f"{prefix}{genes}{end}", "wt") as file:
        file.writelines(f"ENSG{i}\t{name}\tGene Expression\n" for i, name in enumerate(GENES))
    with opened(folder / f"{prefix}barcodes.tsv{end}", "wt") as file:
        file.writelines(f"{name}\n" for name in CELLS)
    return folder


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("genes", ["features.tsv", "genes.tsv"])
def test_genes_by_cells_are_turned_and_it_is_said(tmp_path, compressed, genes):
    folder = write_folder(tmp_path / "10x", compressed=compressed, genes=genes)
    table = read_table(folder)
    np.testing.assert_array_equal(table.data.toarray(), COUNTS.T)
    assert list(table.ids) == CELLS
    assert list(table.features) == ["g1", "g2 (ENSG1)", "g2 (ENSG2)"]
    assert not table.repeated
    assert table.turned
    assert any("genes x cells and was transposed" in note for note in table.notes)


def write_hdf5(file, cells):
    """Counts, genes x cells by columns, as Cell Ranger stores them since version 3."""
    h5py = pytest.importorskip("h5py", reason="HDF5 files need the extra hdf5")
    parts = scipy.sparse.csc_array(COUNTS)
    with h5py.File(file, "w") as archive:
        matrix = archive.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            matrix[name] = getattr(parts, name)
        matrix["shape"] = np.array(COUNTS.shape, dtype=np.int32)
        matrix["barcodes"] = np.array(cells, dtype="S")
        matrix["features/id"] = np.array([f"ENSG{i}" for i in range(len(GENES))], dtype="S")
        matrix["features/name"] = np.array(GENES, dtype="S")
    return file


def test_an_hdf5_file_of_cell_ranger_is_read_as_its_folder_is(tmp_path):
    table = read_table(write_hdf5(tmp_path / "filtered_feature_bc_matrix.h5", CELLS))
    folder = read_table(write_folder(tmp_path / "10x"))
    np.testing.assert_array_equal(table.data.toarray(), COUNTS.T)
    assert list(table.ids) == CELLS
    assert list(table.features) == list(folder.features)
    assert table.of_cells


def test_an_hdf5_file_of_cell_ranger_that_names_other_cells_is_refused(tmp_path):
    file = write_hdf5(tmp_path / "m.h5", CELLS[1:])
    with pytest.raises(ValueError, match=r"m\.h5 holds 4 cells and 3 genes, but names 3 cells"):
        read_table(file)


def test_a_matrix_with_names_beside_it_is_read_as_the_folder_is(tmp_path):
    folder = write_folder(tmp_path / "geo", prefix="GSM1_")
    table = read_table(folder / "GSM1_matrix.mtx")
    assert list(table.ids) == CELLS
    as_it_is = read_table(folder / "GSM1_matrix.mtx", transpose=False)
    np.testing.assert_array_equal(as_it_is.data.toarray(), COUNTS)
    assert list(as_it_is.features) == CELLS


def test_cells_by_genes_stay(tmp_path):
    table = read_table(write_folder(tmp_path / "10x", COUNTS.T))
    np.testing.assert_array_equal(table.data.toarray(), COUNTS.T)
    assert list(table.ids) == CELLS
    assert not table.turned


def test_without_names_rows_are_samples_unless_it_is_said(tmp_path):
    scipy.io.mmwrite(tmp_path / "counts.mtx", scipy.sparse.coo_array(COUNTS))
    table = read_table(tmp_path / "counts.mtx")
    assert table.data.shape == (3, 4)
    assert "rows are samples (else: --transpose)" in table.notes[-1]
    turned = read_table(tmp_path / "counts.mtx", transpose=True)
    np.testing.assert_array_equal(turned.data.toarray(), COUNTS.T)


def test_names_that_fit_no_axis_are_refused(tmp_path):
    folder = write_folder(tmp_path / "10x", COUNTS[:2])
    with pytest.raises(ValueError, match="name 3 features and 4 barcodes"):
        read_table(folder)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no file that ends with matrix\.mtx"):
        read_table(tmp_path)
