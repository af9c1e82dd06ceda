// Package projected provides several sources in one folder: ConfigMaps, Secrets, downward API fields, the
// certificates of ClusterTrustBundles, and service account tokens, which are renewed before they expire.
package projected

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/atomicdir"
	"keelson.dev/services/nodeagent/internal/volume/projection"
)

// defaultLifetime is the lifetime of tokens whose volume specifies none.
const defaultLifetime = 3600

// ownMode is the mode of tokens and certificates for one user or group.
const ownMode = 0o600

// Kind is the volume.Kind of projected.
type Kind struct {
	Sources volume.Sources
	Mounter volume.Mounter
}

// Name implements volume.Kind.
func (Kind) Name() string { return "projected" }

// Handles implements volume.Kind.
func (Kind) Handles(v *corev1.Volume) bool { return v.Projected != nil }

// SetUp implements volume.Kind. It tries every source and reports all that fail.
func (k Kind) SetUp(ctx context.Context, request volume.Request) (volume.Result, error) {
	collected := collection{Kind: k, request: request, files: atomicdir.Files{}}
	var problems []error
	for i := range request.Volume.Projected.Sources {
		problems = append(problems, collected.add(ctx, &request.Volume.Projected.Sources[i]))
		if err := collected.files.CheckSize(); err != nil {
			return volume.Result{}, fmt.Errorf("sources[%d]: with it %w", i, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return volume.Result{}, err
	}
	result, err := projection.Publish(k.Mounter, request, collected.files)
	result.RefreshAt = collected.refreshAt
	return result, err
}

// collection gathers the files of all sources; a later source wins over an earlier one.
type collection struct {
	Kind
	request   volume.Request
	files     atomicdir.Files
	refreshAt time.Time
}

func (c *collection) add(ctx context.Context, source *corev1.VolumeProjection) error {
	files, err := c.filesOf(ctx, source)
	maps.Copy(c.files, files)
	return err
}

func (c *collection) filesOf(ctx context.Context, source *corev1.VolumeProjection) (atomicdir.Files, error) {
	namespace, mode := c.request.Pod.Namespace, ptr.Deref(c.request.Volume.Projected.DefaultMode,
		projection.DefaultMode)
	switch {
	case source.ConfigMap != nil:
		keys := projection.Keys{Items: source.ConfigMap.Items, DefaultMode: mode,
			Optional: ptr.Deref(source.ConfigMap.Optional, false)}
		return projection.ConfigMap(ctx, c.Sources, namespace, source.ConfigMap.Name, keys)
	case source.Secret != nil:
		keys := projection.Keys{Items: source.Secret.Items, DefaultMode: mode,
			Optional: ptr.Deref(source.Secret.Optional, false)}
		return projection.Secret(ctx, c.Sources, namespace, source.Secret.Name, keys)
	case source.DownwardAPI != nil:
		return projection.Downward(c.request.View, source.DownwardAPI.Items, mode, c.request.Allocatable)
	case source.ServiceAccountToken != nil:
		return c.token(ctx, source.ServiceAccountToken, mode)
	case source.ClusterTrustBundle != nil:
		text, err := projection.Certificates(ctx, c.Sources, c.request.Pod.UID, source.ClusterTrustBundle)
		if err != nil {
			return nil, err
		}
		return atomicdir.Files{source.ClusterTrustBundle.Path: c.own(text, mode)}, nil
	}
	return nil,
		errors.New("the source of this projected volume is none that this node can serve: use configMap, secret, " +
			"downwardAPI, serviceAccountToken or clusterTrustBundle")
}

// token returns a token as a file.
func (c *collection) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection,
	mode int32) (atomicdir.Files, error) {
	lifetime := seconds.Of(ptr.Deref(source.ExpirationSeconds, defaultLifetime))
	token, err := c.Sources.ServiceAccountToken(ctx, c.request.Pod, source.Audience, lifetime)
	if err != nil {
		return nil, err
	}
	if c.refreshAt.IsZero() || token.RefreshAt.Before(c.refreshAt) {
		c.refreshAt = token.RefreshAt
	}
	return atomicdir.Files{source.Path: c.own([]byte(token.Value), mode)}, nil
}

// own returns a file that only the Pod's sole user or its group may read, if the Pod has either.
func (c *collection) own(data []byte, mode int32) atomicdir.File {
	file := atomicdir.File{Data: data, Mode: fs.FileMode(mode)}
	if user := projection.SoleUser(c.request.Pod); user != nil {
		file.UID, file.Mode = user, ownMode
	}
	if volume.FSGroup(c.request.Pod) >= 0 {
		file.Mode = ownMode
	}
	return file
}
