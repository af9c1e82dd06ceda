package servertest_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/services/apiserver/internal/servertest"
)

// reviewer is a webhook that is asked about tokens and rights, and writes down what.
type reviewer struct {
	server *httptest.Server

	mu     sync.Mutex
	answer http.HandlerFunc
	tokens []authenticationv1.TokenReview
	rights []authorizationv1.SubjectAccessReview
}

// startReviewer starts a webhook that answers all the same way until that changes.
func startReviewer(t *testing.T, answer http.HandlerFunc) *reviewer {
	t.Helper()
	r := &reviewer{answer: answer}
	r.server = httptest.NewTLSServer(r)
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// ServeHTTP implements http.Handler.
func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var of metav1.TypeMeta
	var body json.RawMessage
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil || json.Unmarshal(body, &of) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	switch of.Kind {
	case "TokenReview":
		var review authenticationv1.TokenReview
		_ = json.Unmarshal(body, &review)
		r.tokens = append(r.tokens, review)
	case "SubjectAccessReview":
		var review authorizationv1.SubjectAccessReview
		_ = json.Unmarshal(body, &review)
		r.rights = append(r.rights, review)
	}
	answer := r.answer
	r.mu.Unlock()
	request.Body = io.NopCloser(bytes.NewReader(body))
	answer(w, request)
}

// says changes the answer.
func (r *reviewer) says(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// askedAboutToken is how often it was asked about a token, askedAbout about what a user may.
func (r *reviewer) askedAboutToken(token string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, review := range r.tokens {
		if review.Spec.Token == token {
			n++
		}
	}
	return n
}

func (r *reviewer) askedAbout(user string) []authorizationv1.SubjectAccessReview {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.rights), func(review authorizationv1.SubjectAccessReview) bool {
		return review.Spec.User != user
	})
}

// kubeconfig is how the apiserver reaches the webhook.
func (r *reviewer) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["w"] = &clientcmdapi.Cluster{Server: r.server.URL + "/reviews",
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: r.server.Certificate().Raw})}
	config.Contexts["w"] = &clientcmdapi.Context{Cluster: "w"}
	config.CurrentContext = "w"
	path := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// status answers with a review of the kind that has the status.
func status(apiVersion, kind, status string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"status":%s}`, apiVersion, kind, status)
	}
}

// configuration writes a file of configuration.
func configuration(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withToken is a client that has a token; an empty one is none.
func withToken(t *testing.T, s *servertest.Server, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "https://" + s.Address(), BearerToken: token,
		TLSClientConfig: restclient.TLSClientConfig{Insecure: true}, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// whoami is what a client is told that it is.
func whoami(t *testing.T, client kubernetes.Interface) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}
