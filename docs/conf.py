"""The site: ``make docs`` builds it from the pages in this folder, the docstrings and the records in ``results/``."""

import os
import shutil
import tomllib
from pathlib import Path

from cognn import __version__

ROOT = Path(__file__).resolve().parents[1]

project = "cognn"
author = "the cognn authors"
project_copyright = f"2026, {author}"
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]

# Pages.  Links between them are those that also work where the files are browsed.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Notebooks: Markdown with code cells, run when the site is built.
nb_execution_timeout = 600  # seconds for a cell; the machine may be busy
nb_execution_in_temp = True  # notebooks write files
nb_execution_raise_on_error = True
nb_merge_streams = True
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm, of a notebook without widgets

# The reference, from the docstrings.
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False

# Names of PyTorch and PyG become links if their inventories (objects.inv) have been saved here.
INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "torch_geometric": "https://pytorch-geometric.readthedocs.io/en/latest/",
}
intersphinx_mapping = {
    name: (address, str(saved))
    for name, address in INVENTORIES.items()
    if (saved := Path(__file__).parent / "inventories" / f"{name}.inv").exists()
}

html_theme = "furo"
html_title = f"cognn {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"footer_icons": []}
# "Edit this page" needs the address of the repository: that of pyproject.toml, or of a fork that builds its own site.
_urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
if repository := os.environ.get("COGNN_REPOSITORY", _urls.get("Repository")):
    html_theme_options |= {
        "source_repository": repository,
        "source_branch": os.environ.get("COGNN_BRANCH", "main"),
        "source_directory": "docs/",
    }


def copy_records(app):
    """The pages of ``results/`` belong to the site, but Sphinx reads one folder only."""
    source, copy = ROOT / "results", Path(app.srcdir) / "results"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.json", "*.png", ".*"))


def link_to_records(app, page, source):
    """Links to ``results/`` lead to the copy."""
    if not page.startswith("results/"):
        source[0] = source[0].replace("](../../results/", "](../results/")


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", copy_records)
    app.connect("source-read", link_to_records)
