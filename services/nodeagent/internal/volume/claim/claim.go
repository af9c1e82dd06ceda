// Package claim gives containers the PersistentVolumes that their Pod's claims are bound to: folders that this node
// creates, paths of the host that a user has made a volume of, and volumes of CSI drivers. What a Pod writes there
// outlives it.
package claim

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/localvolume"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/hostpath"
	"keelson.dev/services/nodeagent/internal/volume/ownership"
)

// Objects supplies claims and PersistentVolumes. One that does not exist is a not-found error of the API.
type Objects interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, pod types.UID, name string) (*corev1.PersistentVolume, error)
}

// Kind is the volume.Kind of claims: those that Pods name and those that are created for one Pod.
type Kind struct {
	Objects Objects
	Store   *localvolume.Store
	// Drivers set up the volumes of CSI drivers.
	Drivers *csivolume.Volumes
	// Node returns the current Node.
	Node func() *corev1.Node
}

// Name implements volume.Kind.
func (Kind) Name() string { return localvolume.KindName }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
}

// SetUp implements volume.Kind. A Pod keeps the volume that it once got, even if the claim changes or is deleted.
func (k Kind) SetUp(ctx context.Context, request volume.Request) (volume.Result, error) {
	use, err := k.Store.Begun(request.Pod.UID, request.Volume.Name)
	if err == nil && use == nil {
		use, err = k.begin(ctx, request)
	}
	if err != nil {
		return volume.Result{}, err
	}
	if use.Driver != "" {
		return k.mount(ctx, request, use)
	}
	if use.Shared && use.Handle == "" {
		if info, err := os.Stat(use.Path); err != nil || !info.IsDir() {
			return volume.Result{},
				fmt.Errorf("spec.local.path %s of PersistentVolume %s must be a folder of this node",
					use.Path, use.Volume)
		}
	}
	if !use.Ready {
		if err := k.finish(request, use); err != nil {
			return volume.Result{}, err
		}
	}
	return volume.Result{Path: use.Path, ReadOnly: use.ReadOnly, Own: use.Handle != ""}, nil
}

// begin decides what the Pod gets and records its use.
func (k Kind) begin(ctx context.Context, request volume.Request) (*localvolume.Use, error) {
	node := k.Node()
	in := input{Pod: request.Pod, Volume: request.Volume, NodeName: node.Name, NodeLabels: node.Labels}
	var err error
	in.Claim, err = k.Objects.Claim(ctx, request.Pod.Namespace, podview.ClaimName(request.Pod, request.Volume))
	if err != nil {
		return nil, err
	}
	if err := checkClaim(in); err != nil {
		return nil, err
	}
	if in.PV, err = k.Objects.PersistentVolume(ctx, request.Pod.UID, in.Claim.Spec.VolumeName); err != nil {
		return nil, err
	}
	use, err := plan(in)
	if err != nil {
		return nil, err
	}
	if in.PV.Spec.HostPath != nil {
		if err := hostpath.Prepare(in.PV.Spec.HostPath); err != nil {
			return nil, err
		}
	}
	if use.Handle != "" {
		use.Path = k.Store.Path(use.Handle)
	}
	return &use, k.Store.Begin(request.Pod.UID, request.Volume.Name, use)
}

// mount has the volume's driver mount it.
func (k Kind) mount(ctx context.Context, request volume.Request, use *localvolume.Use) (volume.Result, error) {
	result := volume.Result{ReadOnly: use.ReadOnly, Device: use.Block}
	path, stands, err := k.Drivers.Published(request.Pod.UID, use.Volume)
	if result.Path = path; err != nil {
		return result, err
	}
	if stands {
		k.Drivers.Compare(request.Pod, request.Volume, use.Volume)
		return result, nil
	}
	pv, err := k.Objects.PersistentVolume(ctx, request.Pod.UID, use.Volume)
	if err != nil {
		return result, err
	}
	if pv.Spec.CSI == nil {
		return result, fmt.Errorf("persistentvolume %q is no longer one of CSI driver %s", pv.Name, use.Driver)
	}
	source := csivolume.OfVolume(request.Pod, request.Volume, pv)
	claim, err := k.Objects.Claim(ctx, request.Pod.Namespace, source.Claim)
	switch {
	case err == nil:
		source = source.WithClaim(claim, pv)
	case !apierrors.IsNotFound(err): // the Pod keeps the volume of a claim that is gone
		return result, err
	}
	result.Path, err = k.Drivers.SetUp(ctx, source)
	return result, err
}

// finish changes the volume's group to the Pod's, if the volume is one that Pods share by a group.
func (k Kind) finish(request volume.Request, use *localvolume.Use) error {
	if group := volume.FSGroup(request.Pod); group >= 0 && use.Shared && !use.ReadOnly {
		policy := ptr.Deref(request.Pod.Spec.SecurityContext.FSGroupChangePolicy, corev1.FSGroupChangeAlways)
		if err := ownership.Give(use.Path, int(group), policy == corev1.FSGroupChangeOnRootMismatch); err != nil {
			return fmt.Errorf("applying fsGroup: %w", err)
		}
	}
	use.Ready = true
	return k.Store.Note(request.Pod.UID, request.Volume.Name, *use)
}
