"""Slow literal transcriptions of published equations, in their own orientation.

X is features x samples (M x N), W the base (M x L), H the representation (L x N), as in
the paper. Nothing here is shared with the library; nothing here is clever.
"""
