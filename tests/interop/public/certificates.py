"""An authority and chains of certificates for the name `server`: short ones, and one too long for the limit on amplification."""

import datetime
import ipaddress
import os

# Bytes that a path of certificates that verifiers still take lacks in length. They are random, because ends that compress
# certificates (RFC 8879) would undo anything else.
WEIGHT = 4_500

def make(folder, count):
    """cert.pem (the server's own first), key.pem and ca.pem, with `count` certificates sent by the server."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    # A private extension, under the enterprise number for documentation (RFC 5612).
    weight_oid = x509.ObjectIdentifier("1.3.6.1.4.1.32473.1")
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    folder.mkdir(parents=True)

    def new_key():
        # Long keys make long chains: the flight takes more than 7,500 bytes.
        return rsa.generate_private_key(65_537, 2_048) if count > 1 else ec.generate_private_key(ec.SECP256R1())

    def issue(subject, public, issuer, signer, authority):
        name = lambda text: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(public)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
        builder = builder.add_extension(x509.BasicConstraints(authority, None), critical=True)
        if authority:
            usage = dict.fromkeys(
                ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
                 "encipher_only", "decipher_only"), False)
            builder = builder.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
        else:
            names = [x509.DNSName("server")]
            names += [x509.IPAddress(ipaddress.ip_address(text)) for text in ("198.18.0.1", "fd00::1")]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
            if count > 1:
                weight = x509.UnrecognizedExtension(weight_oid, os.urandom(WEIGHT))
                builder = builder.add_extension(weight, critical=False)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        return builder.sign(signer, hashes.SHA256())

    signer, issuer = new_key(), "interop root"
    chain = [issue(issuer, signer.public_key(), issuer, signer, True)]
    for number in range(count - 1):
        key, name = new_key(), f"interop authority {number}"
        chain.append(issue(name, key.public_key(), issuer, signer, True))
        signer, issuer = key, name
    key = new_key()
    chain.append(issue("server", key.public_key(), issuer, signer, False))
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(chain[0].public_bytes(pem))
    (folder / "cert.pem").write_bytes(b"".join(one.public_bytes(pem) for one in reversed(chain[1:])))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
