import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import tech.kwik.agent15.TlsConstants.CipherSuite;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicClientConnection.StreamEarlyData;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.QuicConnection.QuicVersion;
import tech.kwik.core.QuicSessionTicket;
import tech.kwik.core.QuicStream;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.ApplicationProtocolConnection;
import tech.kwik.core.server.ApplicationProtocolConnectionFactory;
import tech.kwik.core.server.ServerConnectionConfig;
import tech.kwik.core.server.ServerConnector;

/**
 * One end of a case of the public interoperability tests, on the published kwik: HTTP/0.9 over QUIC.
 *
 * Not offered, because the published library has no call for it: key updates and migration on a client's order, marks for ECN. HTTP/3 is
 * another library.
 */
public final class Interop {
    private static final int NOT_OFFERED = 127;
    private static final String PROTOCOL = "hq-interop";
    private static final Set<String> SERVER =
            Set.of("handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "multiconnect", "keyupdate", "v2");
    private static final Set<String> CLIENT =
            Set.of("handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "multiconnect", "v2");
    /** Requests that wait for their answers at the same time. */
    private static final int AT_A_TIME = 32;

    private final Map<String, String> flags = new HashMap<>();
    private final List<String> paths = new ArrayList<>();

    private Interop(String[] words) {
        for (int at = 1; at < words.length; at++) {
            if (words[at].startsWith("--")) {
                flags.put(words[at].substring(2), words[++at]);
            } else {
                paths.add(words[at]);
            }
        }
    }

    public static void main(String[] words) throws Exception {
        Interop interop = new Interop(words);
        boolean isServer = words[0].equals("server");
        if (!(isServer ? SERVER : CLIENT).contains(interop.flags.get("case"))) {
            System.exit(NOT_OFFERED);
        }
        if (isServer) {
            interop.serve();
        } else {
            interop.download();
            System.exit(0);
        }
    }

    private boolean is(String name) {
        return flags.get("case").equals(name);
    }

    private InetSocketAddress address(String flag) throws IOException {
        String text = flags.get(flag);
        int colon = text.lastIndexOf(':');
        String host = text.substring(0, colon).replace("[", "").replace("]", "");
        return new InetSocketAddress(InetAddress.getByName(host), Integer.parseInt(text.substring(colon + 1)));
    }

    private static Certificate[] certificates(String path) throws Exception {
        try (InputStream in = new FileInputStream(path)) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
        }
    }

    private static PrivateKey key(String path) throws Exception {
        String pem = Files.readString(Path.of(path)).replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem));
        try {
            return KeyFactory.getInstance("EC").generatePrivate(spec);
        } catch (java.security.spec.InvalidKeySpecException other) {
            return KeyFactory.getInstance("RSA").generatePrivate(spec);
        }
    }

    private static KeyStore emptyStore() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private void serve() throws Exception {
        KeyStore identity = emptyStore();
        char[] password = "interop".toCharArray();
        identity.setKeyEntry("server", key(flags.get("key")), password, certificates(flags.get("cert")));
        ServerConnectionConfig config = ServerConnectionConfig.builder()
                .maxIdleTimeoutInSeconds(60)
                .maxOpenPeerInitiatedBidirectionalStreams(100)
                .maxConnectionBufferSize(1_000_000)
                .maxBidirectionalStreamBufferSize(100_000)
                .retryRequired(is("retry"))
                .build();
        ServerConnector connector = ServerConnector.builder()
                .withSocket(new DatagramSocket(address("listen")))
                .withKeyStore(identity, "server", password)
                .withSupportedVersions(List.of(QuicVersion.V1, QuicVersion.V2))
                .withConfiguration(config)
                .withLogger(new NullLogger())
                .build();
        connector.registerApplicationProtocol(PROTOCOL, new Factory(Path.of(flags.get("root"))));
        connector.start();
        Path ready = Path.of(flags.get("ready-file"));
        Path unfinished = Path.of(ready + ".unfinished");
        Files.writeString(unfinished, "{\"port\":" + address("listen").getPort() + "}");
        Files.move(unfinished, ready, StandardCopyOption.ATOMIC_MOVE);
        new CountDownLatch(1).await();
    }

    private record Factory(Path root) implements ApplicationProtocolConnectionFactory {
        @Override
        public ApplicationProtocolConnection createConnection(String protocol, QuicConnection connection) {
            return new Answers(root);
        }

        @Override
        public int maxConcurrentPeerInitiatedUnidirectionalStreams() {
            return 0;
        }

        @Override
        public int maxConcurrentPeerInitiatedBidirectionalStreams() {
            return 100;
        }
    }

    private record Answers(Path root) implements ApplicationProtocolConnection {
        @Override
        public void acceptPeerInitiatedStream(QuicStream stream) {
            Thread thread = new Thread(() -> {
                try (OutputStream out = stream.getOutputStream()) {
                    String request = new String(stream.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                    out.write(Files.readAllBytes(root.resolve(request.trim().substring("GET /".length()))));
                } catch (IOException gone) {
                    // A client that has gone is told by the connection.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void download() throws Exception {
        if (is("multiconnect")) {
            for (String path : paths) {
                fetch(List.of(path), null);
            }
        } else if (is("resumption") || is("zerortt")) {
            QuicSessionTicket ticket = fetch(paths.subList(0, 1), null);
            fetch(paths.subList(1, paths.size()), ticket);
        } else {
            fetch(paths, null);
        }
    }

    private QuicClientConnection connection(QuicSessionTicket ticket) throws Exception {
        InetSocketAddress server = address("connect");
        String host = server.getAddress().getHostAddress();
        QuicClientConnection.Builder builder = QuicClientConnection.newBuilder()
                .uri(new URI("https://" + (host.contains(":") ? "[" + host + "]" : host) + ":" + server.getPort()))
                .applicationProtocol(PROTOCOL)
                .connectTimeout(Duration.ofSeconds(60))
                .maxIdleTimeout(Duration.ofSeconds(60))
                // It would look for the address among the names, where certificates do not have it.
                .noServerCertificateCheck()
                .logger(new NullLogger());
        String secrets = System.getenv("SSLKEYLOGFILE");
        if (secrets != null) {
            builder.secrets(Path.of(secrets));
        }
        if (is("chacha20")) {
            builder.cipherSuite(CipherSuite.TLS_CHACHA20_POLY1305_SHA256);
        }
        if (is("v2")) {
            builder.initialVersion(QuicVersion.V1).preferredVersion(QuicVersion.V2);
        }
        if (ticket != null) {
            builder.sessionTicket(ticket);
        }
        return builder.build();
    }

    private static byte[] request(String path) {
        return ("GET /" + path + "\r\n").getBytes(StandardCharsets.US_ASCII);
    }

    private QuicSessionTicket fetch(List<String> wanted, QuicSessionTicket ticket) throws Exception {
        QuicClientConnection connection = connection(ticket);
        List<QuicStream> early = List.of();
        if (ticket != null && is("zerortt")) {
            List<StreamEarlyData> requests = new ArrayList<>();
            for (String path : wanted) {
                requests.add(new StreamEarlyData(request(path), true));
            }
            early = connection.connect(requests);
        } else {
            connection.connect();
        }
        ExecutorService threads = Executors.newFixedThreadPool(AT_A_TIME);
        List<Future<?>> fetches = new ArrayList<>();
        for (int number = 0; number < wanted.size(); number++) {
            String path = wanted.get(number);
            QuicStream stream = number < early.size() ? early.get(number) : null;
            fetches.add(threads.submit(() -> {
                receive(connection, stream, path);
                return null;
            }));
        }
        for (Future<?> fetch : fetches) {
            fetch.get();
        }
        threads.shutdown();
        // A ticket may come behind the content.
        Thread.sleep(is("resumption") || is("zerortt") ? 200 : 0);
        List<QuicSessionTicket> tickets = connection.getNewSessionTickets();
        connection.closeAndWait();
        return tickets.isEmpty() ? null : tickets.get(tickets.size() - 1);
    }

    private void receive(QuicClientConnection connection, QuicStream given, String path) throws IOException {
        QuicStream stream = given;
        if (stream == null) {
            stream = connection.createStream(true);
            try (OutputStream out = stream.getOutputStream()) {
                out.write(request(path));
            }
        }
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        stream.getInputStream().transferTo(content);
        Files.write(Path.of(flags.get("output"), path), content.toByteArray());
    }
}
