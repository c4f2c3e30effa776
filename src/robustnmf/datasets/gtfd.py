"""Georgia Tech face database: 50 people, 15 pictures each."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset
from robustnmf.datasets._publisher_files import from_face_images

GTFD = Dataset(
    name="gtfd",
    title="GTFD",
    samples=750,
    features=1024,
    classes=50,
    sha256="41382048e6274057d36c5a1cf8b07a56fac869d07cddc2ec3fee890f146e2f32",
    content_sha256="ade56e2d2bb4b8efde36af561fae69ef6b316fd09afc4c150a0f5b052adb9760",
    converted=from_face_images(32, 32),
    files="the folder of the cropped images",
    licence="none stated; offered by its author for face recognition research",
    source="http://www.anefian.com/research/face_reco.htm",
    citation="A. V. Nefian, Georgia Tech face database; Chen, Man, Nefian, Pattern Recognition "
    "38(6), 2005",
    image_shape=(32, 32),
    remark="The official cropped images, grey, shrunk to 32x32; the paper does not say how it "
    "cropped its own.",
)
