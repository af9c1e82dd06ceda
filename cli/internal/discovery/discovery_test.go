package discovery

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

// answering is a server that says of a mesh what it likes.
type answering struct {
	*httptest.Server
	mu sync.Mutex // guards all below
	// info is cluster-info, signed from the request of that number on, counted from 1.
	kubeconfig       string
	signedFrom, seen int
	// status is how cluster-info is answered where it is not 0.
	status int
	// told are the credentials that were sent.
	told []string
}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	a := &answering{signedFrom: 1}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.answer))
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

func (a *answering) answer(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if said := r.Header.Get("Authorization"); said != "" {
		a.told = append(a.told, said)
	}
	a.seen++
	if a.status != 0 {
		w.WriteHeader(a.status)
		return
	}
	info := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"},
		Data: map[string]string{"kubeconfig": a.kubeconfig}}
	if a.seen >= a.signedFrom {
		info.Data["jws-kubeconfig-"+token.ID], _ = jws.ComputeDetachedSignature(a.kubeconfig, token.ID, token.Secret)
	}
	_ = json.NewEncoder(w).Encode(info)
}

func (a *answering) address() string { return strings.TrimPrefix(a.URL, "https://") }

// says has it name a server and an authority.
func (a *answering) says(t *testing.T, server string, authority []byte) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	a.kubeconfig = string(text)
}

// Who hands on what the mesh says, and takes its place then, does not get the token.
func TestNobodyElseGetsTheToken(t *testing.T) {
	key, pin := newKey(t)
	a := newAnswering(t)
	a.says(t, a.URL, authority(t, key, 1))
	_, err := Find(t.Context(), a.address(), token, []string{pin})
	if err == nil || !strings.Contains(err.Error(), "is not of the mesh whose hash") || len(a.told) > 0 {
		t.Errorf("%v, and it was sent %v", err, a.told)
	}
	// It is sent where the authority vouches for the server.
	a.says(t, a.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
	if _, err = Find(t.Context(), a.address(), token, []string{PinOf(a.Certificate())}); err == nil ||
		len(a.told) != 1 || a.told[0] != "Bearer "+token.String() {
		t.Errorf("%v, and it was sent %v", err, a.told)
	}
}

// The mesh signs a little after a token was made.
func TestATokenIsWaitedFor(t *testing.T) {
	a := newAnswering(t)
	a.says(t, a.URL, nil)
	a.signedFrom = 2
	if _, err := signedInfo(t.Context(), a.address(), token); err != nil || a.seen != 2 {
		t.Errorf("%v after %d requests", err, a.seen)
	}
	a.signedFrom = 1 << 30
	ctx, cancel := context.WithTimeout(t.Context(), unsignedInterval/2)
	defer cancel()
	if _, err := signedInfo(ctx, a.address(), token); err == nil || !strings.Contains(err.Error(),
		"knows no token abcdef") {
		t.Errorf("a token that nobody knows: %v", err)
	}
}

// Each kind of wrong answer results in a sentence.
func TestWhatAnswersInstead(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>")
	}))
	defer other.Close()
	endless := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	status := func(code int) string {
		a := newAnswering(t)
		a.status = code
		return a.address()
	}
	for name, row := range map[string]struct{ address, want string }{
		"no TLS":       {strings.TrimPrefix(plain.URL, "http://"), "no apiserver answers at "},
		"a web site":   {strings.TrimPrefix(other.URL, "https://"), "is no apiserver: it has no cluster-info"},
		"no end":       {strings.TrimPrefix(endless.URL, "https://"), "is no apiserver: it has no cluster-info"},
		"forbidden":    {status(403), "shows no cluster-info to machines that would join (403 Forbidden)"},
		"not found":    {status(404), "shows no cluster-info to machines that would join (404 Not Found)"},
		"a redirect":   {status(302), "for cluster-info: 302 Found"},
		"out of order": {status(500), "for cluster-info: 500 Internal Server Error"},
	} {
		_, err := clusterInfo(t.Context(), row.address, anybody())
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	for text, want := range map[string]string{"": "names 0 clusters", "clusters: [{name: a}, {name: b}]": "names 2",
		"{": "reading the kubeconfig"} {
		if _, err := clusterOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
