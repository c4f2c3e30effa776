"""Gene programs of AnnData objects, as scanpy's tools: results are written into the object."""

from robustnmf.anndata.files import is_anndata_file, write_h5ad
from robustnmf.anndata.single import nmf
from robustnmf.anndata.slots import result_slots

__all__ = ["is_anndata_file", "nmf", "result_slots", "write_h5ad"]
