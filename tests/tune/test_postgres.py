"""A study in PostgreSQL: on a server of its own, on loopback, in a temporary folder, as an unprivileged user."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cognn.config.tune_options import TuneOptions
from cognn.errors import RunError
from tests.toy_runs import make_dataset
from tests.tune.test_join import tune
from tests.tune.test_search import options

optuna = pytest.importorskip("optuna")
pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'cognn[postgres]'")
FOLDERS = [*Path("/usr/lib/postgresql").glob("*/bin"), Path("/usr/local/pgsql/bin")]
SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), *map(str, FOLDERS)])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a running server with a password."""
    programs = {name: shutil.which(name, path=SEARCHED) for name in ("initdb", "pg_ctl")}
    if not all(programs.values()):
        pytest.skip("there is no PostgreSQL server here (apt-get install postgresql)")
    user = getpass.getuser()
    if os.getuid() == 0:  # the server refuses to run as root
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = next((name for name in ("postgres", "nobody") if name in known), "")
        if not user:
            pytest.skip("PostgreSQL refuses to run as root, and there is no other user")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="cognn-postgres-", dir="/tmp"))  # that of pytest is closed to other users
    (folder / "password").write_text("secret")
    for path in (folder, folder / "password"):
        shutil.chown(path, user)

    def run(*words: Any) -> None:
        as_user: dict[str, Any] = {"user": user} if os.getuid() == 0 else {}
        said = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=folder, **as_user)
        assert said.returncode == 0, said.stdout + said.stderr

    data, log = folder / "data", folder / "log"
    run(programs["initdb"], "-D", data, "-U", "cognn", "-A", "scram-sha-256", "--pwfile", folder / "password", "-N")
    settings = f"-h 127.0.0.1 -p {port} -k {folder} -F -c shared_buffers=8MB"
    try:
        run(programs["pg_ctl"], "start", "-w", "-D", data, "-l", log, "-o", settings)
        yield f"postgresql+psycopg://cognn:secret@127.0.0.1:{port}/postgres"
    finally:
        run(programs["pg_ctl"], "stop", "-w", "-m", "immediate", "-D", data)
        shutil.rmtree(folder)


def test_machines_share_a_study_in_postgresql(server: str, tmp_path: Path) -> None:
    dataset = make_dataset("node", "binary")
    tune(options(tmp_path / "one", storage=server, study="mine", trials=2), None, dataset)
    tune(TuneOptions(storage=server, study="mine", join=True, trials=3, out=tmp_path / "two"), None, dataset)
    storage = optuna.storages.RDBStorage(server)
    found = optuna.load_study(study_name="mine", storage=storage).trials
    storage.remove_session()
    storage.engine.dispose()
    assert len(found) >= 2
    assert {trial.state.name for trial in found} <= {"COMPLETE", "PRUNED"}
    owners = {(tmp_path / "one" / ".owner").read_text()}
    assert owners <= {trial.user_attrs["owner"] for trial in found}
    with pytest.raises(RunError, match="study mine: the dataset has changed since this study began"):
        tune(
            TuneOptions(storage=server, study="mine", join=True, out=tmp_path / "x"),
            None,
            make_dataset("node", "multiclass"),
        )
    with pytest.raises(RunError, match="study other: not in the storage"):
        tune(TuneOptions(storage=server, study="other", join=True), None, dataset)


def test_a_wrong_password_is_one_line_that_does_not_show_it(server: str, tmp_path: Path) -> None:
    wrong = server.replace("secret", "other-secret")
    with pytest.raises(RunError, match="the study's storage cannot be used") as told:
        tune(options(tmp_path / "one", storage=wrong), None, make_dataset("node", "binary"))
    assert "other-secret" not in str(told.value)
    assert "\n" not in str(told.value)
