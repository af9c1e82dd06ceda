package mesh

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/cluster-bootstrap/token/jws"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/invite"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
)

// nodeCredential is the credential with which the agents of fakeSystemd authenticate once they have joined.
const nodeCredential = "a-certificate"

// fakeAPI answers as the apiserver of a mesh that machines join.
type fakeAPI struct {
	*httptest.Server
	layout plan.Layout
	token  discovery.Token

	mu sync.Mutex // guards all below
	// signs is set if cluster-info is signed by the token, believes if the token is accepted.
	signs, believes bool
	settings        string
	// living are the nodes that are ready.
	living map[string]bool
	// sealed is what the control plane shares for the token; nil without.
	sealed []byte
	// skew is how far its clock is ahead.
	skew time.Duration
	// patch is what was written last.
	patch string
	// said is the URL at which it says that the mesh is; empty for its own.
	said string

	// shown is its certificate.
	shown atomic.Pointer[tls.Certificate]
}

var fakeAPICertificates = []plan.Certificate{{File: "apiserver", User: "apiserver", Hosts: []string{"localhost"},
	Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}}

// newFakeAPI has an authority of its own.
func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{layout: plan.Layout{Dir: t.TempDir()},
		token: discovery.Token{ID: "abcdef", Secret: "0123456789abcdef"},
		signs: true, believes: true, living: map[string]bool{}}
	if _, err := pki.Ensure(f.layout, fakeAPICertificates, time.Now()); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(f.layout.PKI("apiserver.crt"), f.layout.PKI("apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	pods, _ := plan.ParseRange("10.201.0.0/16")
	services, _ := plan.ParseRange("10.202.0.0/16")
	f.settings, err = plan.NodeSettings{Pod: pods, Service: services, PodNetwork: plan.VXLAN,
		ServiceProxy: plan.NFTables, DNS: plan.CoreDNS, Domain: "mesh.local", VXLAN: 4711}.Text()
	if err != nil {
		t.Fatal(err)
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.answer))
	f.shown.Store(&pair)
	f.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*f.shown.Load()}}, nil
	}}
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// change does something with what it answers.
func (f *fakeAPI) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// patched is what was written last.
func (f *fakeAPI) patched() (patch string) {
	f.change(func() { patch = f.patch })
	return patch
}

func (f *fakeAPI) address() string { return strings.TrimPrefix(f.URL, "https://") }

func (f *fakeAPI) authority(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(f.layout.PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// joining returns what a machine needs to join.
func (f *fakeAPI) joining(t *testing.T) *Joining {
	t.Helper()
	pins, err := (&Mesh{Layout: f.layout}).pins()
	if err != nil {
		t.Fatal(err)
	}
	return &Joining{Address: f.address(), Token: f.token, Pins: pins}
}

func (f *fakeAPI) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Date", time.Now().Add(f.skew).UTC().Format(http.TimeFormat))
	who, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	believed := who == nodeCredential || f.believes && who == f.token.String()
	switch {
	case name == "cluster-info":
		f.configMap(w, name, f.info())
	case !believed:
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case name == plan.NodeSettingsName:
		f.configMap(w, name, map[string]string{plan.NodeSettingsKey: f.settings})
	case name == discovery.BundleName(f.token.ID) && f.sealed != nil:
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "apiVersion": "v1",
			"data": map[string][]byte{discovery.BundleKey: f.sealed}})
	case r.Method == http.MethodPatch && who == nodeCredential:
		patch, _ := io.ReadAll(r.Body)
		f.patch = string(patch)
		answer(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && (who == nodeCredential || f.living[name]):
		answer(w, r)
	default:
		refuse(w, http.StatusNotFound, "NotFound")
	}
}

// info is what cluster-info has.
func (f *fakeAPI) info() map[string]string {
	authority, err := os.ReadFile(f.layout.PKI("ca.crt"))
	if err != nil {
		panic(err)
	}
	values, err := invite.Input{Server: cmp.Or(f.said, f.URL), CA: authority}.ClusterInfo()
	if err != nil {
		panic(err)
	}
	info := map[string]string{"kubeconfig": values}
	if f.signs {
		info["jws-kubeconfig-"+f.token.ID], _ = jws.ComputeDetachedSignature(values, f.token.ID, f.token.Secret)
	}
	return info
}

func (f *fakeAPI) configMap(w http.ResponseWriter, name string, data map[string]string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "ConfigMap", "apiVersion": "v1",
		"metadata": map[string]string{"name": name}, "data": data})
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d}`, reason,
		code)
}
