"""The version, in its own module so that any module can import it."""

__version__ = "0.3.0"
