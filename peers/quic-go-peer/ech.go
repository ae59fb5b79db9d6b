// A key for Encrypted Client Hello (RFC 9849), which Go's TLS has on the side of servers, too.
package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
)

// A new key of X25519 whose public name is the one given, and the ECHConfigList for clients in base64. RFC 9849 §4.
func echKey(public string) (tls.EncryptedClientHelloKey, string, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return tls.EncryptedClientHelloKey{}, "", err
	}
	contents := []byte{7, 0x00, 0x20} // the configuration's number; DHKEM(X25519, HKDF-SHA256)
	contents = append(contents, prefixed(key.PublicKey().Bytes())...)
	contents = append(contents, prefixed([]byte{0, 1, 0, 1})...) // HKDF-SHA256 with AES-128-GCM
	contents = append(contents, 64, byte(len(public)))           // the longest name
	contents = append(contents, public...)
	contents = append(contents, 0, 0) // no extensions
	config := append([]byte{0xfe, 0x0d}, prefixed(contents)...)
	list := base64.StdEncoding.EncodeToString(prefixed(config))
	return tls.EncryptedClientHelloKey{Config: config, PrivateKey: key.Bytes(), SendAsRetry: true}, list, nil
}

// The bytes behind their number in 16 bits.
func prefixed(bytes []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(bytes))), bytes...)
}
