package projection

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/atomicdir"
)

// Publish makes the volume hold exactly these files. With a Mounter they are in memory, never on the node's disk.
func Publish(mounter volume.Mounter, request volume.Request, files atomicdir.Files) (volume.Result, error) {
	group := volume.FSGroup(request.Pod)
	if err := os.MkdirAll(request.Dir, 0o755); err != nil {
		return volume.Result{}, fmt.Errorf("making the volume's folder: %w", err)
	}
	if mounter != nil {
		if err := memory(mounter, request.Dir, group); err != nil {
			return volume.Result{}, err
		}
	}
	if _, err := atomicdir.Write(request.Dir, files, group); err != nil {
		return volume.Result{}, err
	}
	return volume.Result{Path: request.Dir, ReadOnly: true, Own: true}, nil
}

func memory(mounter volume.Mounter, dir string, group int64) error {
	if standing, err := mounter.IsMount(dir); err != nil || standing {
		return err
	}
	mode := uint32(0o755)
	if group >= 0 {
		mode = 0o2775
	}
	return mounter.Tmpfs(dir, 0, mode, group)
}

// ConfigMap returns the files of one ConfigMap; none for an optional one that does not exist.
func ConfigMap(ctx context.Context, sources volume.Sources, namespace, name string, keys Keys) (atomicdir.Files,
	error) {
	keys.What = "configmap references non-existent config key"
	object, err := sources.ConfigMap(ctx, namespace, name)
	if keys.Optional && apierrors.IsNotFound(err) {
		return atomicdir.Files{}, nil
	}
	if err != nil {
		return nil, err
	}
	return keys.Files(ConfigMapData(object))
}

// Secret returns the files of one Secret; none for an optional one that does not exist.
func Secret(ctx context.Context, sources volume.Sources, namespace, name string, keys Keys) (atomicdir.Files, error) {
	keys.What = "references non-existent secret key"
	object, err := sources.Secret(ctx, namespace, name)
	if keys.Optional && apierrors.IsNotFound(err) {
		return atomicdir.Files{}, nil
	}
	if err != nil {
		return nil, err
	}
	return keys.Files(object.Data)
}
