// Package invite prepares a mesh for machines that join it: the rights that they have before they are nodes, and
// the bootstrap tokens with which they authenticate.
package invite

import (
	"context"
	_ "embed"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"keelson.dev/cli/internal/manifest"
	"keelson.dev/cli/internal/plan"
)

//go:embed invite.yaml
var template string

// Input holds what machines that join have to know.
type Input struct {
	// Server is the URL at which they reach the apiserver, CA the mesh's authority in PEM.
	Server   string
	CA       []byte
	Settings plan.NodeSettings
}

// Apply installs or updates the objects that let machines join the mesh, and returns those that it leaves alone
// because others have changed them.
func Apply(ctx context.Context, client dynamic.Interface, in Input) (left []string, err error) {
	values, err := in.values()
	if err != nil {
		return nil, err
	}
	all, err := manifest.Render("what lets machines join", template, values)
	if err != nil {
		return nil, err
	}
	for _, object := range all {
		err := manifest.Apply(ctx, client, object)
		if apierrors.IsConflict(err) {
			left = append(left, object.GetKind()+" "+object.GetName())
		} else if err != nil {
			return left, fmt.Errorf("letting machines join: applying %s %s: %w", object.GetKind(), object.GetName(),
				err)
		}
	}
	return left, nil
}

func (in Input) values() (map[string]any, error) {
	settings, err := in.Settings.Text()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := in.ClusterInfo()
	return map[string]any{"group": Group, "settingsName": plan.NodeSettingsName, "settingsKey": plan.NodeSettingsKey,
		"settings": settings, "kubeconfig": kubeconfig}, err
}

// ClusterInfo returns the kubeconfig without a user that every client may read.
func (in Input) ClusterInfo() (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: in.Server, CertificateAuthorityData: in.CA}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("writing cluster-info: %w", err)
	}
	return string(kubeconfig), nil
}

// Invites reports whether the mesh already lets machines join.
func Invites(ctx context.Context, client kubernetes.Interface) (bool, error) {
	_, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo,
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading cluster-info: %w", err)
	}
	return true, nil
}
