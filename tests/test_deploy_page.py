"""``docs/howto/deploy.md``: its commands make a program, its server and client work, its explainers explain."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cognn.cli.main import main

PAGE = (Path(__file__).parents[1] / "docs" / "howto" / "deploy.md").read_text(encoding="utf-8")
SERVER, CLIENT, EXPLAIN = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """The commands of the page, without comments."""
    return [line.split("#")[0].split()[1:] for line in re.findall(r"^    (cognn .*)$", PAGE, re.MULTILINE)]


def test_the_program_is_served_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxscript")
    monkeypatch.chdir(tmp_path)
    rng, ends = np.random.default_rng(0), np.random.default_rng(1).integers(30, size=(2, 90))
    age, colour, label = rng.normal(45, 9, 30).astype(np.float32), rng.integers(3, size=30), rng.integers(2, size=30)
    words = {"colour": np.array(["blue", "green", "red"])[colour], "label": np.array(["no", "yes"])[label]}
    pl.DataFrame({"id": range(30), "age": age, **words}).write_csv("nodes.csv")
    pl.DataFrame({"source": ends[0], "target": ends[1]}).write_csv("edges.csv")
    train, export = commands()
    assert main([*train, "--hidden-channels", "8", "--num-layers", "1", "--epochs", "2", "--quiet"]) == 0
    assert main(export) == 0
    assert main(["predict", "runs/own", "--samples", "0", "--out", "table.csv"]) == 0

    folder = tmp_path / "runs" / "own"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    assert SERVER.count("8000") == CLIENT.count("8000") == 1
    (folder / "server.py").write_text(SERVER.replace("8000", port))
    server = subprocess.Popen([sys.executable, "server.py"], cwd=folder, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                    break
            time.sleep(0.1)
        (folder / "client.py").write_text(CLIENT.replace("8000", port))
        asked = subprocess.run([sys.executable, folder / "client.py"], check=True, capture_output=True, text=True)
        assert "{'classes': ['no', 'yes'], 'prediction': [[" in asked.stdout
        graph = {"x": np.column_stack([age, np.eye(3)[colour]]).tolist(), "edge_index": ends.tolist()}
        told: dict = {}
        ask = CLIENT.replace("8000", port).replace("json.dumps(graph)", "json.dumps(sent)")
        exec(ask.replace("print(json.load(answer))", "told.update(json.load(answer))"), {"told": told, "sent": graph})
    finally:
        server.kill()
        server.wait()
    np.testing.assert_allclose(np.ravel(told["prediction"]), pl.read_csv("table.csv")["p_yes"].to_numpy(), atol=1e-5)
    assert json.loads((folder / "model.onnx.json").read_text())["features"][0] == {"name": "age"}


def test_the_explainers_of_pyg_explain(capsys) -> None:
    pytest.importorskip("captum")
    exec(compile(EXPLAIN, "deploy.md", "exec"), {})
    assert capsys.readouterr().out.count("tensor([") == 2
