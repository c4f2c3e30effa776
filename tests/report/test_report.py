"""Pages escape what they are given; files appear whole or not at all."""

import pytest

from robustnmf.report.files import write_whole
from robustnmf.report.page import Paragraph, Picture, Table, page

pytest.importorskip("jinja2", reason="pages need the packages of the extra cli")

HOSTILE = "<script>alert('x')</script>\"&"


def test_everything_is_escaped():
    html = page(
        HOSTILE,
        [Paragraph(HOSTILE), Table([HOSTILE], [[HOSTILE]], HOSTILE), Picture(b"png", HOSTILE)],
    )
    assert html.count("<script") == 1  # the page's own
    assert html.count("&lt;script&gt;") == 7
    assert 'alt="&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&amp;"' in html


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
