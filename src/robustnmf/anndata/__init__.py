"""Gene programs of AnnData objects, as scanpy's tools: results are written into the object."""

from robustnmf.anndata.cnmf import read_cnmf, write_cnmf
from robustnmf.anndata.files import is_anndata_file, write_h5ad
from robustnmf.anndata.programs import consensus
from robustnmf.anndata.single import nmf
from robustnmf.anndata.slots import result_slots

__all__ = [
    "consensus", "is_anndata_file", "nmf", "read_cnmf", "result_slots", "write_cnmf", "write_h5ad",
]  # fmt: skip
