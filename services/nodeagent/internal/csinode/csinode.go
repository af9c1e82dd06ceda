// Package csinode reports the node's CSI drivers to the API: in the CSINode of its name, and in labels and an
// annotation of the Node.
package csinode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/csiplugin"
)

const (
	// callTimeout bounds one call of the API server.
	callTimeout = 10 * time.Second
	// arrival is how long an agent that has started waits for earlier drivers to register again.
	arrival = 2 * time.Minute
)

// again is the back-off after failed writes to the API.
var again = backoff.Policy{First: 500 * time.Millisecond, Max: time.Minute}

// Config is what a Teller needs.
type Config struct {
	Client kubernetes.Interface
	Log    *zap.Logger
	Name   string
	// Drivers returns the registered drivers, sorted by name.
	Drivers func() []csiplugin.Identity
}

// Teller keeps the API's information about drivers up to date.
type Teller struct {
	Config
	look wakeup.Signal
}

// New returns a Teller that has written nothing yet.
func New(config Config) *Teller { return &Teller{Config: config, look: wakeup.New()} }

// Look makes Run check the drivers soon.
func (t *Teller) Look() {
	t.look.Send()
}

// Run writes changes to the API until ctx ends. The Node must be registered.
func (t *Teller) Run(ctx context.Context) {
	arrived := time.Now().Add(arrival)
	seen := map[string]bool{}
	failures := 0
	for {
		drivers := t.Drivers()
		for _, d := range drivers {
			seen[d.Name] = true
		}
		late := !time.Now().Before(arrived)
		done, err := t.tell(ctx, drivers, func(driver string) bool { return !seen[driver] && !late })
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failures++
			t.Log.Warn("telling the API of the CSI drivers failed, trying again",
				zap.Duration("in", again.Delay(failures)), zap.Error(err))
		} else {
			failures = 0
		}
		var wake <-chan time.Time
		switch {
		case err != nil:
			wake = time.After(again.Delay(failures))
		case !done:
			t.Look()
		case !late:
			wake = time.After(time.Until(arrived))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.look:
		case <-wake:
		}
	}
}

// tell writes what the API does not have yet, and reports whether that is complete.
func (t *Teller) tell(ctx context.Context, drivers []csiplugin.Identity,
	toCome func(string) bool) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := t.Client.CoreV1().Nodes().Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading the node: %w", err)
	}
	written, err := t.list(ctx, node, drivers, toCome)
	if err != nil {
		return false, err
	}
	change, conflict := describe(node, written.Spec.Drivers, drivers)
	if change == nil {
		return lists(written, drivers), conflict
	}
	patch, err := json.Marshal(merge(change))
	if err != nil {
		return false, fmt.Errorf("encoding what the drivers say of the node: %w", err)
	}
	_, err = t.Client.CoreV1().Nodes().Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		err = fmt.Errorf("writing what the drivers say of the node: %w", err)
	}
	return lists(written, drivers), errors.Join(conflict, err)
}

// list brings the CSINode up to date, as far as one write can.
func (t *Teller) list(ctx context.Context, node *corev1.Node, drivers []csiplugin.Identity,
	toCome func(string) bool) (*storagev1.CSINode, error) {
	nodes := t.Client.StorageV1().CSINodes()
	old, err := nodes.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		old, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CSINode: %w", err)
	}
	written := next(old, node, drivers, toCome)
	if equality.Semantic.DeepEqual(old, written) || old == nil && len(drivers) == 0 {
		return written, nil
	}
	err = failpoint.Around("nodeagent/csinode.write", func() (err error) {
		if old == nil {
			written, err = nodes.Create(ctx, written, metav1.CreateOptions{})
		} else {
			written, err = nodes.Update(ctx, written, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("writing the CSINode: %w", err)
	}
	return written, nil
}
