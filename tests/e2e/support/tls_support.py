# SPDX-License-Identifier: MIT
"""A certificate authority of the test's own."""

import datetime
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """Signs certificates for 127.0.0.1 and localhost."""

    def __init__(self, folder):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign("test authority", self.key.public_key(), True, -1, 30)
        self.path = folder / "authority.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(self, subject, public_key, is_authority, first, last):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name("test authority"))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + first * DAY)
            .not_valid_after(now + last * DAY)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if is_authority:
            builder = builder.add_extension(
                x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True
            )
        else:
            names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, subject="gateway", first=-1, last=10, password=None):
        """A new pair in the two files; the serial number."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(subject, key.public_key(), False, first, last)
        secret = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
        self.write("key.pem", key.private_bytes(*form))
        self.write("certificate.pem", certificate.public_bytes(serialization.Encoding.PEM))
        return certificate.serial_number

    def write(self, file, data):
        path = self.folder / file
        path.touch(mode=0o600)
        path.write_bytes(data)

    def sets(self):
        return [f"tls.certificate={self.folder / 'certificate.pem'}", f"tls.key={self.folder / 'key.pem'}"]

    def context(self, version=None):
        made = ssl.create_default_context(cafile=str(self.path))
        if version:
            made.minimum_version = made.maximum_version = version
        return made


@pytest.fixture
def authority(tmp_path):
    folder = tmp_path / "tls"
    folder.mkdir()
    made = Authority(folder)
    made.issue()
    return made
