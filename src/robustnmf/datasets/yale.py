"""Yale: 15 people, 11 pictures each."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset
from robustnmf.datasets._publisher_files import from_matlab

YALE = Dataset(
    name="yale",
    title="Yale",
    samples=165,
    features=1024,
    classes=15,
    sha256="81bdce75b1a481ff9d8af30f08b866b720f2861f027ef19ea83002e42d13185f",
    content_sha256="86984699d2a274313d24d556a1405e64a29135ccc18baa286ce57c6009f03050",
    converted=from_matlab("fea", "gnd"),
    files="Yale_32x32.mat",
    licence="free for research; publications acknowledge the Yale Face Database",
    source="http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html (Yale_32x32.mat)",
    citation="Belhumeur, Hespanha, Kriegman, IEEE TPAMI 19(7), 1997; 32x32 crops by Deng Cai",
    image_shape=(32, 32),
)
