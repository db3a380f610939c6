# SPDX-License-Identifier: MIT
"""TLS on the TCP listener: a certificate authority of the test's own, real clients, a new certificate under load."""

import asyncio
import concurrent.futures
import os
import re
import signal
import socket
import ssl
import threading

import httpx
import httpx2
import pytest
from cli_support import notegate
from conftest import Raw, eventually
from cryptography import x509
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from preload_support import fast  # noqa: F401 (a fixture)
from tls_support import authority  # noqa: F401 (a fixture)

TIMEOUT = 120
CALL = "POST /v1/tools/notebook HTTP/1.1"
TYPE = "Content-Type: application/json"
LIST = b'{"mode":"list"}'


@pytest.fixture
def gateway(start, authority):
    return start(sets=authority.sets(), verify=authority.context())


def connect(gateway, context):
    plain = socket.create_connection((gateway.host, gateway.port), timeout=TIMEOUT)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def served(gateway, context):
    """The serial number of the certificate that a new connection gets."""
    with connect(gateway, context) as tls:
        der = tls.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(der).serial_number


def test_rest(gateway):
    assert gateway.url.startswith("https://127.0.0.1:")
    made = gateway.call("notebook", {"mode": "write", "newStr": "text"})
    assert made.status_code == 200, made.text
    assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    assert gateway.client.get("/healthz").json() == {"status": "ok"}
    assert "strict-transport-security" not in gateway.client.get("/healthz").headers
    # A page of its own may ask, and no other.
    own = {"Origin": gateway.url}
    assert gateway.client.get("/v1/tools", headers=own).status_code == 200
    assert gateway.client.get("/v1/tools", headers={"Origin": "https://evil.example"}).status_code == 403


def test_large_bodies_and_answers(gateway):
    text = "0123456789abcdef" * 50_000
    for size in (16_000, 100_000, len(text)):
        answer = gateway.call("notebook", {"mode": "list", "unknown": text[:size]})
        assert answer.status_code == 400 and answer.json()["code"] == "INVALID_INPUT"
    assert len(gateway.client.get("/openapi.json").content) > 4096


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_mcp_client(gateway, authority, mode):
    async def run():
        async with httpx2.AsyncClient(verify=authority.context(), timeout=TIMEOUT, trust_env=False) as http:
            transport = streamable_http_client(gateway.url + "/mcp", http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=TIMEOUT) as client:
                tools = await client.list_tools()
                assert "notebook" in [tool.name for tool in tools.tools]
                result = await client.call_tool("notebook", {"mode": "list"})
                assert not result.is_error

    asyncio.run(run())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions_that_are_spoken(gateway, authority, version):
    with connect(gateway, authority.context(version)) as tls:
        assert tls.version() == version.name.replace("_", ".")
        assert "GCM" in tls.cipher()[0] or "CHACHA20" in tls.cipher()[0]


@pytest.mark.parametrize("change", [
    lambda c: setattr(c, "maximum_version", ssl.TLSVersion.TLSv1_1),
    lambda c: (setattr(c, "maximum_version", ssl.TLSVersion.TLSv1_2), c.set_ciphers("AES256-SHA:AES128-GCM-SHA256")),
    lambda c: (setattr(c, "maximum_version", ssl.TLSVersion.TLSv1_2), c.set_ciphers("ECDHE+AES:!AESGCM:!AESCCM")),
], ids=["TLS 1.1", "key exchange without forward secrecy", "CBC"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_weak_is_refused(gateway, authority, change):
    context = authority.context()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    change(context)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(gateway, context)
    assert gateway.client.get("/healthz").status_code == 200


def test_a_client_that_trusts_another_authority(gateway):
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(gateway, ssl.create_default_context())
    assert gateway.client.get("/healthz").status_code == 200


def test_plain_http_to_the_tls_port(gateway):
    with socket.create_connection((gateway.host, gateway.port), timeout=TIMEOUT) as plain:
        plain.sendall(b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        try:
            while data := plain.recv(65536):
                told += data
        except ConnectionResetError:
            pass
    assert b"notebook" not in told and not told.startswith(b"HTTP/1.1 200")
    assert gateway.client.get("/healthz").status_code == 200


def test_the_unix_socket_stays_plain(gateway):
    with gateway.connect_local() as raw:
        raw.request("GET /healthz HTTP/1.1")
        assert raw.answer().status == 200
    done = notegate("tools", "--data-dir", gateway.data_dir)
    assert done.returncode == 0 and "notebook" in done.stdout


@pytest.mark.parametrize("headers", [
    ["Content-Length: 5", "Content-Length: 15"],
    ["Content-Length: 15", "Transfer-Encoding: chunked"],
    ["X-A: a\x00b"],
    ["X-A: a\r\n b"],
    ["X-A: a\nX-B: c"],
], ids=str)
def test_smuggling_is_seen_through_the_encryption(gateway, authority, headers):
    with Raw(connect(gateway, authority.context()), gateway.port) as raw:
        raw.request(CALL, [TYPE] + headers)
        try:
            raw.send(LIST)
        except (ConnectionError, ssl.SSLError):
            pass
        answer = raw.answer()
        assert answer is None or (answer.status == 400 and answer.headers["connection"] == "close")
    assert gateway.client.get("/healthz").status_code == 200


def test_many_requests_on_one_connection_in_pieces(gateway, authority):
    with Raw(connect(gateway, authority.context()), gateway.port) as raw:
        head = f"{CALL}\r\nHost: 127.0.0.1:{gateway.port}\r\n{TYPE}\r\nContent-Length: {len(LIST)}\r\n\r\n"
        for byte in head.encode() + LIST:
            raw.send(bytes([byte]))
        assert raw.answer().status == 200
        raw.send((head.encode() + LIST) * 20)  # one behind the other, in one record
        assert [raw.answer().status for _ in range(20)] == [200] * 20


# ---- a new certificate ----


def test_a_new_certificate_is_taken_without_a_failed_request(gateway, authority):
    context = authority.context()
    stop = threading.Event()
    kept = Raw(connect(gateway, context), gateway.port)
    # A client with one complete request may idle longer than a client without.
    kept.request("GET /healthz HTTP/1.1")
    assert kept.answer().status == 200

    def load(keep):
        done = 0
        client = httpx.Client(base_url=gateway.url, verify=context, timeout=TIMEOUT, trust_env=False)
        while not stop.is_set():
            if not keep:
                client.close()
                client = httpx.Client(base_url=gateway.url, verify=context, timeout=TIMEOUT, trust_env=False)
            assert client.post("/v1/tools/notebook", json={"mode": "list"}).status_code == 200
            done += 1
        client.close()
        return done

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(load, number % 2 == 0) for number in range(4)]
        try:
            for _ in range(5):
                serial = authority.issue()
                gateway.process.send_signal(signal.SIGHUP)
                eventually(lambda: served(gateway, context) == serial, what="the new certificate")
        finally:
            stop.set()
        assert all(worker.result() > 0 for worker in workers)
    # A connection of before the first reload is still good.
    kept.request("GET /healthz HTTP/1.1")
    assert kept.answer().status == 200
    kept.socket.close()


def test_the_same_certificate_again_is_no_change(gateway):
    assert gateway.reload() == {"changes": [], "restart_needed": False}


@pytest.mark.parametrize("spoil, told", [
    (lambda a: a.write("certificate.pem", b"nonsense"), "holds no certificate in PEM"),
    (lambda a: a.write("key.pem", b"nonsense"), "holds no private key in PEM"),
    (lambda a: a.write("certificate.pem", a.path.read_bytes()), "does not belong to the first certificate"),
    (lambda a: a.issue(password=b"secret"), "is encrypted"),
    (lambda a: (a.folder / "key.pem").unlink(), "cannot be read: No such file"),
    (lambda a: a.write("key.pem", b"x" * 1_000_000), "is larger than"),
], ids=["certificate", "key", "another's", "encrypted", "missing", "large"])
def test_a_bad_certificate_is_told_and_the_old_one_stays(start, authority, spoil, told):
    gateway = start(sets=authority.sets(), verify=authority.context())
    before = served(gateway, authority.context())
    spoil(authority)
    report = gateway.reload()
    assert report["restart_needed"] and [change["key"] for change in report["changes"]] == ["tls.certificate"]
    assert told in report["changes"][0]["message"] and "the old certificate stays in effect" in report["changes"][0]["message"]
    eventually(lambda: gateway.logged("tls.certificate", "the old certificate stays in effect"), what="the line of it")
    assert served(gateway, authority.context()) == before
    serial = authority.issue()
    assert [change["holds"] for change in gateway.reload()["changes"]] == [True]
    assert served(gateway, authority.context()) == serial
    assert not gateway.logged("PRIVATE KEY")
    # And a gateway does not start with it.
    spoil(authority)
    done = notegate("serve", "--data-dir", authority.folder / "data", "--listen", "127.0.0.1:0",
                    *(word for pair in authority.sets() for word in ("--set", pair)))
    assert done.returncode == 1 and told in done.stderr


# ---- check ----


def check(authority, *sets):
    words = [word for pair in sets or authority.sets() for word in ("--set", pair)]
    done = notegate("check", "--data-dir", authority.folder / "data", "--listen", "127.0.0.1:0", *words)
    return done.returncode, done.stdout


def test_check(authority):
    code, told = check(authority)
    assert code == 0 and "tls: valid until 20" in told and "warning" not in told
    os.chmod(authority.folder / "key.pem", 0o644)
    code, told = check(authority)
    assert code == 0 and "warning: every user can read the key" in told
    authority.issue(first=-3, last=-2)
    code, told = check(authority)
    assert code == 0 and "warning: the certificate expired on" in told
    authority.issue(last=2)
    code, told = check(authority)
    assert code == 0 and re.search(r"warning: the certificate expires in 4[78] hours", told)
    authority.issue(first=2, last=3)
    code, told = check(authority)
    assert code == 0 and "warning: the certificate is valid only from" in told
    for only, missing in ((0, "tls.key"), (1, "tls.certificate")):
        code, told = check(authority, authority.sets()[only])
        assert code == 1 and f"{missing} is not: TLS needs both" in told


def test_turning_it_on_needs_a_restart(start, authority, tmp_path):
    file = tmp_path / "notegate.yaml"
    file.write_text("log.level: info\n")
    gateway = start(args=["--config", str(file)])
    file.write_text("tls:\n" + "".join(f"  {s.split('.', 1)[1].replace('=', ': ')}\n" for s in authority.sets()))
    report = gateway.reload()
    assert {change["key"] for change in report["changes"]} == {"tls.certificate", "tls.key"}
    assert report["restart_needed"] and gateway.client.get("/healthz").status_code == 200


# ---- clients that take a slot and give nothing ----


def test_silent_and_broken_handshakes_harm_nobody(gateway):
    silent = [socket.create_connection((gateway.host, gateway.port)) for _ in range(50)]
    broken = []
    for garbage in (b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\x40\x00", os.urandom(4096), b"\x00"):
        raw = socket.create_connection((gateway.host, gateway.port))
        raw.sendall(garbage)
        broken.append(raw)
    for _ in range(10):
        assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    for raw in silent + broken:
        raw.close()
    eventually(lambda: gateway.in_use("connections") <= 1, what="the end of their connections")


def test_who_never_asks_is_cut_off(fast, gateway, authority):
    """20 s from the connection to the whole head of its first request, encrypted or not begun to be."""
    context = authority.context()
    silent = socket.create_connection((gateway.host, gateway.port))
    half = socket.create_connection((gateway.host, gateway.port))
    half.sendall(b"\x16\x03\x01\x02\x00\x01")
    shaken = connect(gateway, context)
    slow = connect(gateway, context)
    slow.sendall(b"GET /healthz HTTP/1.1\r\n")
    rested = Raw(connect(gateway, context), gateway.port)
    rested.request("GET /healthz HTTP/1.1")
    assert rested.answer().status == 200
    for raw in (silent, half, shaken, slow):
        raw.settimeout(TIMEOUT)
        try:
            while raw.recv(4096):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
        raw.close()
    # One that has asked may rest.
    rested.request("GET /healthz HTTP/1.1")
    assert rested.answer().status == 200
    rested.socket.close()


def test_who_never_reads_harms_nobody(gateway, authority):
    """Many answers at a time that no client reads."""
    context = authority.context()
    held = []
    for _ in range(10):
        plain = socket.create_connection((gateway.host, gateway.port))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        tls = context.wrap_socket(plain, server_hostname="127.0.0.1")
        tls.settimeout(0.2)
        held.append(tls)
        request = f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n\r\n".encode()
        try:
            for _ in range(200):
                tls.sendall(request)
        except (TimeoutError, ssl.SSLError):
            pass  # it takes no more: its own buffers are full
    for _ in range(20):
        assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    for tls in held:
        tls.close()
    eventually(lambda: gateway.in_use("connections") <= 1, what="the end of their connections")
    eventually(lambda: gateway.in_use("buffered") == 0, what="all memory given back")
