package storage

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// Reach says in one sentence why a cluster cannot be used, whatever side of the TLS files is wrong.
func TestReach(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for _, name := range []string{"ca", "other-ca", "server", "client", "stranger"} {
		files[name] = filepath.Join(dir, name)
	}
	ca, other := files["ca"], files["other-ca"]
	makeCertificate(t, ca, nil)
	makeCertificate(t, other, nil)
	makeCertificate(t, files["server"], &ca)
	makeCertificate(t, files["client"], &ca)
	makeCertificate(t, files["stranger"], &other)
	pair, err := tls.LoadX509KeyPair(files["server"]+".crt", files["server"]+".key")
	must(t, err)
	bundle, err := os.ReadFile(ca + ".crt")
	must(t, err)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(bundle)
	secure := answering(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12})
	plain := answering(t, nil)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, gone.Close())
	with := func(scheme, address, client, authority string) Cluster {
		c := Cluster{Servers: []string{scheme + "://" + address}}
		if client != "" {
			c.CertFile, c.KeyFile = files[client]+".crt", files[client]+".key"
		}
		if authority != "" {
			c.CAFile = files[authority] + ".crt"
		}
		return c
	}
	two := with("https", gone.Addr().String(), "client", "ca")
	two.Servers = append(two.Servers, "https://"+secure)
	for name, row := range map[string]struct {
		cluster Cluster
		want    string
	}{
		"right":                       {with("https", secure, "client", "ca"), ""},
		"the second server answers":   {two, ""},
		"without TLS":                 {with("http", plain, "", ""), ""},
		"a socket is left to Dial":    {Cluster{Servers: []string{"unix:///nosuch"}}, ""},
		"no client certificate":       {with("https", secure, "", "ca"), "certificate required"},
		"a client of another mesh":    {with("https", secure, "stranger", "ca"), "tls: "},
		"an authority of another":     {with("https", secure, "client", "other-ca"), "signed by unknown authority"},
		"no authority":                {with("https", secure, "", ""), "certificate signed by unknown authority"},
		"http to a server with TLS":   {with("http", secure, "", ""), "it ends the connection"},
		"https to one without":        {with("https", plain, "client", "ca"), "the TLS handshake fails"},
		"nothing listens":             {with("https", gone.Addr().String(), "client", "ca"), "connection refused"},
		"a file that does not exist":  {Cluster{Servers: []string{"https://x"}, CAFile: dir + "/no"}, "no such file"},
		"a key that is not the right": {Cluster{[]string{"https://x"}, ca + ".crt", other + ".key", ""}, "--etcd-cert"},
	} {
		err := row.cluster.Reach(t.Context())
		if (row.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), row.want) ||
			!strings.HasPrefix(err.Error(), "--etcd-") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// answering accepts connections, and answers each whose client it takes.
func answering(t *testing.T, config *tls.Config) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				stream := io.ReadWriter(conn)
				if config != nil {
					stream = tls.Server(conn, config)
				}
				heard := make([]byte, len(greeting))
				if _, err := io.ReadFull(stream, heard); err != nil || !strings.HasPrefix(string(heard), "PRI") {
					return
				}
				_, _ = stream.Write([]byte("answer"))
			}()
		}
	}()
	return listener.Addr().String()
}

// An apiserver uses no cluster that is marked; what the mark says is in the sentence.
func TestOpenOfAMarkedCluster(t *testing.T) {
	dir, err := os.MkdirTemp("", "marked")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e, err := StartEmbedded(t.Context(), dir, zap.NewNop())
	must(t, err)
	defer e.Close()
	own := e.Client()
	cluster := Cluster{Servers: []string{"unix://" + filepath.Join(dir, socketName)}}
	for value, want := range map[string]string{
		Mark{Kind: Arriving, Mesh: "m1"}.String(): "holds only a part of the store of the mesh m1",
		Mark{Kind: Left, Mesh: "m2"}.String():     "the store of the mesh m2 was moved away",
		Mark{Kind: Left}.String():                 "was moved away",
		"else":                                    `has the value "else"`,
		`{"mesh":""}`:                             `which this program does not know`,
	} {
		_, err := own.Put(t.Context(), MigrationKey, value)
		must(t, err)
		if _, err := cluster.Open(t.Context(), zap.NewNop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
		client, err := cluster.Dial(t.Context(), zap.NewNop())
		must(t, err)
		must(t, client.Close())
	}
	for _, usable := range []func() error{
		func() error {
			_, err := own.Put(t.Context(), MigrationKey, Mark{Kind: Here, Mesh: "m", Move: "1"}.String())
			return err
		},
		func() error { _, err := own.Delete(t.Context(), MigrationKey); return err },
	} {
		must(t, usable())
		client, err := cluster.Open(t.Context(), zap.NewNop())
		must(t, err)
		must(t, client.Close())
	}
}
