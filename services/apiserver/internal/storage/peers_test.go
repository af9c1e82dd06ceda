package storage

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// limit is beyond what any step takes on a busy machine.
const limit = 90 * time.Second

// peerBed has members of one store on loopback addresses.
type peerBed struct {
	*testing.T
	ca      string
	members []*bedMember
}

// bedMember is one of them.
type bedMember struct {
	dir   string
	peers Peers
	store *Embedded
	kv    *kubernetes.Client
}

// newPeerBed makes the store's authority.
func newPeerBed(t *testing.T) *peerBed {
	b := &peerBed{T: t, ca: filepath.Join(t.TempDir(), "ca")}
	makeCertificate(t, b.ca, nil)
	t.Cleanup(func() {
		for _, m := range b.members {
			m.stop()
		}
	})
	return b
}

// makeCertificate makes one with its key, by the authority in the files of that name or by itself.
func makeCertificate(t *testing.T, file string, authority *string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: authority == nil, KeyUsage: x509.KeyUsageDigitalSignature |
			x509.KeyUsageCertSign}
	parent, signer := template, key
	if authority != nil {
		text, err := os.ReadFile(*authority + ".crt")
		must(t, err)
		block, _ := pem.Decode(text)
		parent, err = x509.ParseCertificate(block.Bytes)
		must(t, err)
		text, err = os.ReadFile(*authority + ".key")
		must(t, err)
		block, _ = pem.Decode(text)
		signer, err = x509.ParseECPrivateKey(block.Bytes)
		must(t, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	plain, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(file+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(file+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: plain}), 0o600))
}

// add makes a member that has not started, which joins those that there are.
func (b *peerBed) add() *bedMember {
	b.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(b.T, err)
	address := free.Addr().String()
	must(b.T, free.Close())
	dir := b.TempDir()
	file := filepath.Join(dir, "peer")
	makeCertificate(b.T, file, &b.ca)
	m := &bedMember{dir: filepath.Join(dir, "data"), peers: Peers{Address: address, CertFile: file + ".crt",
		KeyFile: file + ".key", CAFile: b.ca + ".crt"}}
	for _, other := range b.members {
		m.peers.Join = append(m.peers.Join, "https://"+other.peers.Address)
	}
	b.members = append(b.members, m)
	return m
}

// start has a member run, and returns once it counts.
func (m *bedMember) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	doing := ""
	m.peers.Doing = func(what string) { doing = what }
	var err error
	if m.store, err = StartMember(ctx, m.dir, m.peers, zap.NewNop()); err != nil {
		t.Fatalf("starting %s: %v (%s)", m.peers.Address, err, doing)
	}
	m.kv = m.store.Client()
}

func (m *bedMember) stop() {
	if m.store != nil {
		m.store.Close()
		m.store = nil
	}
}

// put writes by a member until that is acknowledged.
func (m *bedMember) put(t *testing.T, key string) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true,
		func(ctx context.Context) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_, last = m.kv.KV.Put(ctx, key, "v")
			return last == nil, nil
		}); err != nil {
		t.Fatalf("writing %s by %s: %v", key, m.peers.Address, last)
	}
}

// has sees a key by a member, as of now.
func (m *bedMember) has(t *testing.T, key string) {
	t.Helper()
	got, err := m.kv.KV.Get(t.Context(), key)
	if err != nil || got.Count != 1 {
		t.Errorf("%s by %s: %v, %v", key, m.peers.Address, got, err)
	}
}

// A store that was one machine's alone grows to three, goes on without any one of them and not with one alone, and
// takes one back that has lost everything.
func TestThreeMembers(t *testing.T) {
	t.Parallel()
	b := newPeerBed(t)
	first := b.add()
	alone, err := StartEmbedded(t.Context(), first.dir, zap.NewNop())
	must(t, err)
	_, err = alone.Client().KV.Put(t.Context(), "/before", "v")
	must(t, err)
	alone.Close()
	first.start(t)
	second, third := b.add(), b.add()
	second.start(t)
	third.start(t)
	for i, m := range b.members {
		m.put(t, fmt.Sprint("/by/", i))
	}
	for i, m := range b.members {
		m.has(t, "/before")
		m.has(t, fmt.Sprint("/by/", (i+1)%3))
	}
	for i, m := range b.members {
		other, next := b.members[(i+1)%3], b.members[(i+2)%3]
		m.stop()
		other.put(t, fmt.Sprint("/without/", i))
		next.has(t, fmt.Sprint("/without/", i))
		m.start(t)
		m.has(t, fmt.Sprint("/without/", i))
	}
	second.stop()
	third.stop()
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := first.kv.KV.Put(short, "/alone", "v"); err == nil {
		t.Error("one of three has acknowledged a write")
	}
	second.start(t)
	first.put(t, "/again")
	must(t, os.RemoveAll(third.dir))
	third.start(t)
	third.has(t, "/again")
	third.has(t, "/before")
	if got := identityOf(t, first); got == "" || got != identityOf(t, third) {
		t.Errorf("the stores are of the meshes %q and %q", got, identityOf(t, third))
	}
}

func identityOf(t *testing.T, m *bedMember) string {
	t.Helper()
	identity, err := storedir.ReadIdentity(storedir.Of(m.dir))
	must(t, err)
	return identity
}

// A start that was cut off on its way into the store is finished by the next one, and leaves no member behind: neither
// one whose answer was lost, nor one that has not begun to count.
func TestJoiningIsCutOff(t *testing.T) {
	for _, place := range []string{"apiserver/store.enter.after", "apiserver/store.count.before"} {
		b := newPeerBed(t)
		first, second := b.add(), b.add()
		first.start(t)
		must(t, failpoint.Arm(place, "error(cut off)"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if store, err := StartMember(ctx, second.dir, second.peers, zap.NewNop()); err == nil {
			store.Close()
			t.Errorf("%s: it was not cut off", place)
		}
		cancel()
		failpoint.Disarm(place)
		second.start(t)
		second.put(t, "/here")
		first.has(t, "/here")
		listed, err := first.kv.MemberList(t.Context())
		if err != nil || len(listed.Members) != 2 || listed.Members[0].IsLearner || listed.Members[1].IsLearner {
			t.Errorf("%s: the members are %v, %v", place, listed, err)
		}
	}
}

// A member that is taken out ends and says why, now and on each start, until its store is put aside; then it may come
// back.
func TestTakenOut(t *testing.T) {
	t.Parallel()
	b := newPeerBed(t)
	first, second := b.add(), b.add()
	first.start(t)
	second.start(t)
	id := uint64(second.store.etcd.server.MemberID())
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, limit, true,
		func(ctx context.Context) (bool, error) {
			_, err := first.kv.MemberRemove(ctx, id)
			return err == nil, nil
		}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-second.store.Failed():
		if !errors.Is(err, errRemoved) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(limit):
		t.Fatal("it goes on")
	}
	second.stop()
	first.put(t, "/alone")
	if _, err := StartMember(t.Context(), second.dir, second.peers, zap.NewNop()); err == nil ||
		!strings.Contains(err.Error(), "was taken out of the store") {
		t.Errorf("starting it again: %v", err)
	}
	if _, err := storedir.Retire(storedir.Of(second.dir), time.Now()); err != nil {
		t.Fatal(err)
	}
	second.start(t)
	second.has(t, "/alone")
}

// Whoever has no certificate of the store's authority is not let in.
func TestNoStranger(t *testing.T) {
	t.Parallel()
	b := newPeerBed(t)
	first, stranger := b.add(), b.add()
	first.start(t)
	makeCertificate(t, strings.TrimSuffix(stranger.peers.CertFile, ".crt"), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if store, err := StartMember(ctx, stranger.dir, stranger.peers, zap.NewNop()); err == nil {
		store.Close()
		t.Error("it was let in")
	}
	listed, err := first.kv.MemberList(t.Context())
	if err != nil || len(listed.Members) != 1 {
		t.Errorf("the members are %v, %v", listed, err)
	}
}

func TestValidatePeers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(file, nil, 0o600))
	good := Peers{Address: "192.0.2.1:2380", CertFile: file, KeyFile: file, CAFile: file,
		Join: []string{"https://192.0.2.2:2380"}}
	join := func(url string) func(*Peers) { return func(p *Peers) { p.Join = []string{url} } }
	address := func(text string) func(*Peers) { return func(p *Peers) { p.Address = text } }
	const noAddress = "is not an IP address of this machine"
	for name, row := range map[string]struct {
		change   func(*Peers)
		external bool
		says     string
	}{
		"all":                 {func(*Peers) {}, false, ""},
		"none":                {func(p *Peers) { *p = Peers{} }, true, ""},
		"files alone":         {address(""), false, "--etcd-peer-address: must be set"},
		"an external cluster": {func(*Peers) {}, true, "--etcd-servers is another"},
		"every address":       {address("0.0.0.0:2380"), false, noAddress},
		"no port":             {address("192.0.2.1"), false, noAddress},
		"port 0":              {address("192.0.2.1:0"), false, noAddress},
		"no key":              {func(p *Peers) { p.KeyFile = "" }, false, "--etcd-peer-key-file: must be set"},
		"no such authority":   {func(p *Peers) { p.CAFile = file + "x" }, false, "--etcd-peer-ca-file: stat"},
		"not over TLS":        {join("http://192.0.2.2:2380"), false, "must be a URL as https"},
		"a path":              {join("https://192.0.2.2:2380/x"), false, "must be a URL"},
		"a name":              {join("https://second:2380"), false, "must be a URL as https"},
	} {
		p := good
		row.change(&p)
		err := errors.Join(p.Validate(row.external)...)
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
