package encryption

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// Where nothing is encrypted, nothing stands between an object and the store but the check that was always there.
func TestNothingIsEncrypted(t *testing.T) {
	p, err := Open(Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Follow()
	got := p.TransformerForResource(schema.GroupResource{Resource: "secrets"})
	if got != identity.NewEncryptCheckTransformer() || len(p.HealthChecks) != 0 {
		t.Errorf("%T and %d health checks", got, len(p.HealthChecks))
	}
}
