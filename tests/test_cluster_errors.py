"""Bad clusters are refused in one clear line, and TLS is spoken where it is asked for."""

import datetime
import ipaddress
import socket
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dask_clusters import N_PIXELS, FileReader, Processes, at, count_pixels, dask_processes
from gibbsite.cluster import connect
from gibbsite.errors import GibbsiteError, InputError
from gibbsite.settings import Cluster


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


def test_an_address_without_scheduler_is_told_at_once() -> None:
    address = free_address()
    with pytest.raises(GibbsiteError, match=rf"{address}: no scheduler there \(Connection refused\); start one"):
        count_pixels(at(address))


@pytest.mark.parametrize("address", ["tcp://nowhere", "http://127.0.0.1:80", "tcp://host:port"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="expected tcp://host:port or tls://host:port"):
        count_pixels(at(address))


def test_a_scheduler_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the scheduler file"):
        count_pixels(at(str(tmp_path / "absent.json")))
    (tmp_path / "odd.json").write_text("[1]")
    with pytest.raises(InputError, match="expected JSON with an address"):
        count_pixels(at(str(tmp_path / "odd.json")))


def test_a_scheduler_without_workers_is_told_and_one_by_its_file_is_used(tmp_path: Path) -> None:
    with dask_processes(tmp_path, 0) as dask:
        with pytest.raises(GibbsiteError, match=r"0 of 2 worker\(s\) there after 1 s; see the workers' logs"):
            count_pixels(at(dask.address, start_seconds=1.0, min_workers=2))
        dask.start_worker()
        assert count_pixels(at(str(tmp_path / "scheduler.json"))) == N_PIXELS


@pytest.mark.cluster
def test_workers_of_another_version_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other" / "gibbsite-9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: gibbsite\nVersion: 9.9\n")
    dask = Processes(tmp_path, path=tmp_path / "other")
    try:
        dask.start_scheduler()
        dask.start_worker()
        with pytest.raises(
            GibbsiteError, match=r"worker tcp://\S+ has gibbsite 9.9 instead of 0.1.0; start workers from"
        ):
            count_pixels(at(dask.address))
    finally:
        dask.end()


@pytest.mark.cluster
def test_workers_that_cannot_see_the_files_are_told(tmp_path: Path) -> None:
    hidden = tmp_path / "results"
    hidden.mkdir()
    inside = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden)]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("may not hide a folder from a process here (mount namespaces need privileges)")
    with dask_processes(tmp_path, 0) as dask:
        dask.start_worker(inside=inside)
        with pytest.raises(GibbsiteError, match=r"cannot read its pixels .*a file system that all workers see"):
            count_pixels(at(dask.address), FileReader(hidden / "pixels.npy"))
        dask.start_worker()
        assert count_pixels(at(dask.address), FileReader(tmp_path / "pixels.npy")) == N_PIXELS


@pytest.mark.cluster
def test_workers_with_too_little_memory_are_told_before_they_read(tmp_path: Path) -> None:
    with dask_processes(tmp_path, 0) as dask:
        dask.start_worker("--memory-limit", "300MB")
        with pytest.raises(GibbsiteError, match=r"tiles need 0.4 GB per worker, and tcp://\S+ has 0.3 GB of 0.3 GB"):
            count_pixels(at(dask.address))


@pytest.mark.cluster
def test_all_workers_lost_is_told_after_the_time_to_wait(tmp_path: Path) -> None:
    from dask_clusters import run_chain

    sweeps: list[int] = []
    with dask_processes(tmp_path, 1) as dask:

        def watch(sweep: int) -> None:
            sweeps.append(sweep)
            if sweep == 1:
                dask.running[1].kill()

        with pytest.raises(GibbsiteError, match=r"0 of 1 worker\(s\) there after 30 s"):
            run_chain(at(dask.address, start_seconds=30.0), watch=watch)
    assert sweeps == [0, 1]


def test_a_host_without_slurm_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GibbsiteError, match=r"Slurm does not answer .*needs a host with sbatch"):
        count_pixels(Cluster(kind="slurm"))


# ---------------------------------------------------------------------------------------------------- TLS


def make_certificate(folder: Path, name: str, authority: Path | None = None) -> Path:
    """A certificate, with its key beside it: signed by an authority, or an authority itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = key
    if authority is not None:
        issuer = x509.load_pem_x509_certificate(authority.read_bytes()).subject
        signer = serialization.load_pem_private_key(authority.with_suffix(".key").read_bytes(), None)
    now = datetime.datetime.now(datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(addresses, critical=False).sign(signer, hashes.SHA256())
    )  # fmt: skip
    path = folder / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def tls(ca: Path, cert: Path) -> dict[str, str]:
    return {"ca": str(ca), "cert": str(cert), "key": str(cert.with_suffix(".key"))}


@pytest.mark.cluster
def test_tls_is_spoken_and_wrong_certificates_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "CONNECT_SECONDS", 3.0)
    ours, theirs = (make_certificate(tmp_path, name) for name in ("ours", "theirs"))
    host = make_certificate(tmp_path, "host", ours)
    stranger = make_certificate(tmp_path, "stranger", theirs)
    words = ["--tls-ca-file", ours, "--tls-cert", host, "--tls-key", host.with_suffix(".key"), "--protocol", "tls"]
    with dask_processes(tmp_path, 2, *words) as dask:
        assert dask.address.startswith("tls://")
        assert count_pixels(at(dask.address, tls=tls(ours, host), min_workers=2)) == N_PIXELS
        for wrong in (tls(theirs, host), tls(ours, stranger)):
            with pytest.raises(GibbsiteError, match=rf"{dask.address}: no TLS connection .*check that cluster.tls.ca"):
                count_pixels(at(dask.address, tls=wrong))
        plain = dask.address.replace("tls://", "tcp://")
        with pytest.raises(GibbsiteError, match=f"{plain}: something answers, but not as a Dask scheduler"):
            count_pixels(at(plain))
    with pytest.raises(InputError, match=r"cluster\.tls\.ca: no such file"):
        count_pixels(at(free_address().replace("tcp", "tls"), tls=tls(tmp_path / "absent.pem", host)))
