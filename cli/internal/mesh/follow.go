package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
)

// follow asks the mesh, once, which authorities it trusts now and at which URL it is, if this machine has joined.
// If the mesh does not answer, the machine keeps what it knows.
func (w *worker) follow(ctx context.Context, joined bool) error {
	if w.asked {
		return nil
	}
	w.asked = true
	own, err := w.authorities()
	if err != nil {
		return err
	}
	w.trusts = own
	if own == nil || !joined {
		return nil
	}
	now, err := discovery.Refresh(ctx, w.State.Server, own)
	if err != nil {
		w.say("    the mesh does not say whom it trusts, and this machine keeps its authority: %v", err)
		return nil
	}
	w.trusts = now.CA
	if now.Server == w.State.Server {
		return nil
	}
	if _, err := discovery.Refresh(ctx, now.Server, now.CA); err != nil {
		w.say("    the mesh says that it is at %s, and this machine goes on with %s: %v", now.Server, w.State.Server,
			err)
		return nil
	}
	w.server = now.Server
	return nil
}

// authorities returns the authorities by which the machine recognises its mesh, in PEM; nil before it has any.
func (m *Mesh) authorities() ([]byte, error) {
	bundle, err := os.ReadFile(m.Layout.PKI("ca.crt"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the mesh's authority: %w", err)
	}
	return bundle, nil
}

// report waits until this machine follows the authority that signs and then reports it to the mesh: the agent has
// read the bundle at its start, and then requests a client certificate of that authority.
func (w *worker) report(ctx context.Context) error {
	client, err := w.Client()
	if err != nil {
		return err
	}
	pins, err := w.pins()
	if err != nil {
		return err
	}
	return w.step(ctx, "telling the mesh which authority the node follows", func(ctx context.Context) error {
		if err := until(ctx, func() error { return w.tell(ctx, client, pins[0]) }); err != nil {
			return fmt.Errorf("the node does not follow the mesh's authority in time: %w; %s says more", err,
				w.explainNode())
		}
		return nil
	})
}

// tell annotates the Node with the authority, if the agent's certificate is signed by it.
func (w *worker) tell(ctx context.Context, client kubernetes.Interface, authority string) error {
	name := w.State.Nodes[0].Name
	file := plan.WorkerClientCertificate(name)
	read := pki.Read(w.Layout, []plan.CertificateFile{file})[file.Path]
	switch {
	case read.Missing: // its kubeconfig names another credential
	case read.Fault != "":
		return fmt.Errorf("%s: %s", file.Path, read.Fault)
	case !read.Held.Vouched:
		return fmt.Errorf("%s is not yet of the authority that signs now", file.Path)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the node %s: %w", name, err)
	}
	if node.Annotations[plan.AuthorityAnnotation] == authority {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{plan.AuthorityAnnotation: authority}}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("annotating the node %s: %w", name, err)
	}
	return nil
}
