package command

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/clusterdns"
	"keelson.dev/cli/internal/deployment"
	"keelson.dev/cli/internal/mesh"
)

// installDNS installs cluster DNS if the mesh uses keel's CoreDNS.
func installDNS(ctx context.Context, m *mesh.Mesh) error {
	if !m.HasDNS() {
		return nil
	}
	return m.Part(ctx, "cluster DNS", m.InstallDNS)
}

// awaitDNS waits until cluster DNS answers, unless it needs software that others install. A mesh whose DNS takes
// longer is up nevertheless.
func awaitDNS(ctx context.Context, m *mesh.Mesh) {
	if !m.HasDNS() || !m.Network().Names {
		return
	}
	client, err := m.Client()
	if err != nil {
		fmt.Fprintf(m.Out, "    names do not resolve yet: %v\n", err)
		return
	}
	awaitNames(ctx, client, m.RunningPods, m.Out)
}

func awaitNames(ctx context.Context, client kubernetes.Interface, running deployment.Running, out io.Writer) {
	name := deployment.Name{Namespace: clusterdns.Namespace, Name: clusterdns.Name}
	err := deployment.WaitAvailable(ctx, client, name, running, out)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(out, "    names do not resolve yet, and the time of --timeout is over: %v\n", err)
	case err != nil:
		fmt.Fprintf(out, "    names do not resolve yet: %v\n", err)
	}
}
