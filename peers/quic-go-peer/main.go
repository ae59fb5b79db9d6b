// An HTTP/3 server on the published quic-go.
//
// Settings, by quic-go's documentation: GSO is used where the kernel has it; quic-go raises the socket's buffers to 7 MB by
// itself; InitialPacketSize may be raised where the path is known, and then discovery of the path MTU be switched off. The
// number of streams is raised so that it never limits. Congestion control is CUBIC, its default. GOMAXPROCS follows the
// cores that the process may use, so on one core it has one thread that runs Go code.
//
// It serves files of a folder, read once at the start, and /bytes/N from memory.
package main

import (
	"crypto/tls"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// The bytes of a generated body come again after so many.
const period = 65521

// Periods in the block that is lent.
const repeats = 16

type content struct {
	files map[string][]byte
	block []byte
}

func load(root string) (*content, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		bytes, err := os.ReadFile(filepath.Join(root, entry.Name()))
		if err != nil {
			return nil, err
		}
		files["/"+entry.Name()] = bytes
	}
	return &content{files, pattern()}, nil
}

// The little-endian output of SplitMix64 started at zero, cut to one period, some times in a row.
func pattern() []byte {
	var state uint64
	var once []byte
	for len(once) < period {
		state += 0x9e3779b97f4a7c15
		word := state
		word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9
		word = (word ^ (word >> 27)) * 0x94d049bb133111eb
		once = binary.LittleEndian.AppendUint64(once, word^(word>>31))
	}
	var block []byte
	for range repeats {
		block = append(block, once[:period]...)
	}
	return block
}

// The size that a path such as /bytes/10MB asks for.
func sizeOf(path string) (uint64, bool) {
	text, isGenerated := strings.CutPrefix(path, "/bytes/")
	digits := strings.TrimRight(text, "bBkKmMgGiI")
	units := map[string]uint64{"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
	unit, isUnit := units[strings.ToLower(text[len(digits):])]
	number, err := strconv.ParseUint(digits, 10, 50)
	return number * unit, isGenerated && isUnit && err == nil
}

func (content *content) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if file, isFile := content.files[request.URL.Path]; isFile {
		answer.Header().Set("content-length", strconv.Itoa(len(file)))
		// A client that has gone is told by the connection.
		_, _ = answer.Write(file)
		return
	}
	size, isGenerated := sizeOf(request.URL.Path)
	if !isGenerated {
		http.NotFound(answer, request)
		return
	}
	answer.Header().Set("content-length", strconv.FormatUint(size, 10))
	for offset := uint64(0); offset < size; {
		piece := content.block[offset%period:]
		piece = piece[:min(uint64(len(piece)), size-offset)]
		if _, err := answer.Write(piece); err != nil {
			return
		}
		offset += uint64(len(piece))
	}
}

func serve() error {
	listen := flag.String("listen", "127.0.0.1:0", "address and port; port 0 takes a free one")
	certificate := flag.String("cert", "", "the certificate chain, PEM")
	key := flag.String("key", "", "its key, PEM")
	root := flag.String("root", "", "the folder whose files are served")
	payload := flag.Uint("payload-size", 1452, "UDP payload of full packets in bytes; 1452 at most")
	earlyData := flag.Bool("early-data", false, "take early data (0-RTT) of clients that resume")
	retry := flag.Bool("retry", false, "ask each client to prove its address with a Retry")
	public := flag.String("ech", "", "take an encrypted ClientHello whose public name is this; ECHConfigList is printed first")
	flag.Parse()
	content, err := load(*root)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", *listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if *public != "" {
		key, list, err := echKey(*public)
		if err != nil {
			return err
		}
		config.EncryptedClientHelloKeys = []tls.EncryptedClientHelloKey{key}
		fmt.Println("ech", list)
	}
	server := http3.Server{
		Handler:   content,
		TLSConfig: http3.ConfigureTLSConfig(config),
		QUICConfig: &quic.Config{
			InitialPacketSize:       uint16(*payload),
			DisablePathMTUDiscovery: true,
			MaxIncomingStreams:      1000,
			Allow0RTT:               *earlyData,
		},
	}
	fmt.Println("listening on", socket.LocalAddr(), "with quic-go", versionOf("github.com/quic-go/quic-go"))
	if !*retry {
		return server.Serve(socket)
	}
	transport := quic.Transport{Conn: socket, VerifySourceAddress: func(net.Addr) bool { return true }}
	listener, err := transport.ListenEarly(server.TLSConfig, server.QUICConfig)
	if err != nil {
		return err
	}
	return server.ServeListener(listener)
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "interop" {
		return interop(os.Args[2:])
	}
	return serve()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quic-go-peer:", err)
		os.Exit(1)
	}
}
