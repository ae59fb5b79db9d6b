// One end of a case of the public interoperability tests: HTTP/0.9 over QUIC, or HTTP/3 for the case http3.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	// The exit code of a case that is not offered.
	notOffered = 127
	// Bytes of content after which the client moves.
	moveAfter = 256 << 10
)

// Key updates: quic-go makes the first one after 100 packets by itself.
var serverCases = map[string]bool{
	"handshake": true, "transfer": true, "chacha20": true, "retry": true, "resumption": true, "zerortt": true,
	"http3": true, "ecn": true, "multiconnect": true, "keyupdate": true,
}

// Go's TLS offers no choice of the suites of TLS 1.3, so the client cannot offer ChaCha20-Poly1305 alone.
var clientCases = map[string]bool{
	"handshake": true, "transfer": true, "retry": true, "resumption": true, "zerortt": true,
	"http3": true, "ecn": true, "multiconnect": true, "keyupdate": true, "connectionmigration": true,
}

func interop(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("interop server or interop client")
	}
	flags := flag.NewFlagSet("interop", flag.ExitOnError)
	name := flags.String("case", "", "the case")
	listen := flags.String("listen", "", "address and port")
	certificate := flags.String("cert", "", "the certificate chain, PEM")
	key := flags.String("key", "", "its key, PEM")
	root := flags.String("root", "", "the folder")
	ready := flags.String("ready-file", "", "written once listening")
	connect := flags.String("connect", "", "address and port of the server")
	serverName := flags.String("name", "server", "the name in the certificate")
	authorities := flags.String("cacert", "", "trusted certificates, PEM")
	output := flags.String("output", "", "the folder for what was downloaded")
	moveTo := flags.String("migrate-to", "", "the local address to move to")
	_ = flags.Parse(arguments[1:])
	keys, err := keyLog()
	if err != nil {
		return err
	}
	if arguments[0] == "server" {
		if !serverCases[*name] {
			os.Exit(notOffered)
		}
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			return err
		}
		config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"hq-interop"}, KeyLogWriter: keys}
		return interopServe(*name, *listen, *root, *ready, config)
	}
	if !clientCases[*name] {
		os.Exit(notOffered)
	}
	pem, err := os.ReadFile(*authorities)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool, ServerName: *serverName, NextProtos: []string{"hq-interop"}, KeyLogWriter: keys}
	client := &interopClient{name: *name, server: *connect, output: *output, moveTo: *moveTo, tls: config}
	return client.run(flags.Args())
}

func keyLog() (io.Writer, error) {
	path := os.Getenv("SSLKEYLOGFILE")
	if path == "" {
		return nil, nil
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

func interopServe(name, listen, root, ready string, config *tls.Config) error {
	address, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	transport := &quic.Transport{Conn: socket}
	if name == "retry" {
		transport.VerifySourceAddress = func(net.Addr) bool { return true }
	}
	settings := &quic.Config{Allow0RTT: name == "zerortt", MaxIdleTimeout: 60 * time.Second, HandshakeIdleTimeout: 60 * time.Second}
	var serve func() error
	if name == "http3" {
		listener, err := transport.ListenEarly(http3.ConfigureTLSConfig(config), settings)
		if err != nil {
			return err
		}
		server := &http3.Server{Handler: http.FileServer(http.Dir(root))}
		serve = func() error { return server.ServeListener(listener) }
	} else {
		listener, err := transport.ListenEarly(config, settings)
		if err != nil {
			return err
		}
		serve = func() error {
			for {
				connection, err := listener.Accept(context.Background())
				if err != nil {
					return err
				}
				go converse(connection, root)
			}
		}
	}
	if err := os.WriteFile(ready+".unfinished", fmt.Appendf(nil, `{"port":%d}`, address.Port), 0o600); err != nil {
		return err
	}
	if err := os.Rename(ready+".unfinished", ready); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	failed := make(chan error, 1)
	go func() { failed <- serve() }()
	select {
	case <-ended:
		return nil
	case err := <-failed:
		return err
	}
}

func converse(connection *quic.Conn, root string) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			request, err := io.ReadAll(io.LimitReader(stream, 4096))
			if err != nil {
				return
			}
			path := strings.TrimPrefix(strings.TrimSpace(string(request)), "GET /")
			file, err := os.Open(filepath.Join(root, filepath.Clean("/"+path)))
			if err != nil {
				stream.CancelWrite(1)
				return
			}
			defer file.Close()
			// A client that has gone is told by the connection.
			_, _ = io.Copy(stream, file)
		}()
	}
}

type interopClient struct {
	name, server, output, moveTo string
	tls                          *tls.Config
	transport                    *quic.Transport
	received                     atomic.Int64
	move                         sync.Once
}

func (client *interopClient) run(paths []string) error {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	client.transport = &quic.Transport{Conn: socket}
	defer client.transport.Close()
	switch client.name {
	case "http3":
		return client.http3(paths)
	case "multiconnect":
		for _, path := range paths {
			if err := client.download([]string{path}, false); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		client.tls.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		if err := client.download(paths[:1], false); err != nil {
			return err
		}
		return client.download(paths[1:], client.name == "zerortt")
	}
	return client.download(paths, false)
}

func (client *interopClient) settings() *quic.Config {
	return &quic.Config{MaxIdleTimeout: 60 * time.Second, HandshakeIdleTimeout: 60 * time.Second}
}

func (client *interopClient) download(paths []string, early bool) error {
	address, err := net.ResolveUDPAddr("udp", client.server)
	if err != nil {
		return err
	}
	dial := client.transport.Dial
	if early {
		dial = client.transport.DialEarly
	}
	connection, err := dial(context.Background(), address, client.tls, client.settings())
	if err != nil {
		return err
	}
	outcomes := make(chan error, len(paths))
	for _, path := range paths {
		go func() { outcomes <- client.fetch(connection, path) }()
	}
	for range paths {
		if err := <-outcomes; err != nil {
			return err
		}
	}
	if client.tls.ClientSessionCache != nil && len(paths) == 1 {
		// The ticket may come behind the content.
		time.Sleep(100 * time.Millisecond)
	}
	return connection.CloseWithError(0, "done")
}

func (client *interopClient) fetch(connection *quic.Conn, path string) error {
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write([]byte("GET /" + path + "\r\n")); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(client.output, filepath.Base(path)))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(io.MultiWriter(file, counter{client, connection}), stream)
	return err
}

// Counts what is received, and moves in the middle of it.
type counter struct {
	client     *interopClient
	connection *quic.Conn
}

func (counter counter) Write(piece []byte) (int, error) {
	client := counter.client
	if client.received.Add(int64(len(piece))) >= moveAfter && client.name == "connectionmigration" {
		client.move.Do(func() { go counter.migrate() })
	}
	return len(piece), nil
}

func (counter counter) migrate() {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(counter.client.moveTo)})
	if err == nil {
		var path *quic.Path
		if path, err = counter.connection.AddPath(&quic.Transport{Conn: socket}); err == nil {
			if err = path.Probe(context.Background()); err == nil {
				err = path.Switch()
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "migration:", err)
	}
}

func (client *interopClient) http3(paths []string) error {
	transport := &http3.Transport{
		TLSClientConfig: http3.ConfigureTLSConfig(client.tls),
		QUICConfig:      client.settings(),
		Dial: func(ctx context.Context, _ string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
			address, err := net.ResolveUDPAddr("udp", client.server)
			if err != nil {
				return nil, err
			}
			return client.transport.DialEarly(ctx, address, tls, config)
		},
	}
	defer transport.Close()
	outcomes := make(chan error, len(paths))
	for _, path := range paths {
		go func() { outcomes <- client.get(transport, path) }()
	}
	for range paths {
		if err := <-outcomes; err != nil {
			return err
		}
	}
	return nil
}

func (client *interopClient) get(transport *http3.Transport, path string) error {
	answer, err := (&http.Client{Transport: transport}).Get("https://" + client.tls.ServerName + "/" + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	file, err := os.Create(filepath.Join(client.output, filepath.Base(path)))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, answer.Body)
	return err
}
