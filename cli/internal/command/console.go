package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/console"
	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/view"
)

// consoleFlags are the typed flags of keel console.
type consoleFlags struct {
	port                  int
	kubeconfig, namespace string
}

func newConsole(g *global) *cobra.Command {
	flags := &consoleFlags{}
	command := &cobra.Command{
		Use: "console", Short: "show the mesh in a browser: daemons, workloads, Pods, nodes, Events and logs",
		Long: "console serves a page that shows the mesh as it changes, and prints its address. It runs until it is\n" +
			"interrupted. The page only reads, with the rights of a kubeconfig. The address has a token in it: who\n" +
			"knows it sees what the page shows. The console listens on the loopback address alone.",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if flags.port < 0 || flags.port > 65535 {
				return usageError{fmt.Errorf("--port: %d must be between 0 and 65535", flags.port)}
			}
			//nolint:forbidigo // It ends with a signal alone; what it asks has limits of its own.
			return flags.serve(c.Context(), c, g.either())
		},
	}
	command.Flags().IntVar(&flags.port, "port", 0, "port of the loopback address to listen on; 0 means a free one")
	command.Flags().StringVar(&flags.kubeconfig, "kubeconfig", "",
		"file with the credentials to ask the API and the daemons with; default: the operator's of the mesh")
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", "",
		"the only namespace to show, for credentials that may not list those of all")
	return command
}

// serve runs the console until ctx ends.
func (f *consoleFlags) serve(ctx context.Context, c *cobra.Command, dataDir string) error {
	// What keel up adds or restarts meanwhile is read each time.
	open := func() (*mesh.Mesh, error) {
		m, err := mesh.Open(dataDir, c.ErrOrStderr())
		if err == nil {
			m.Kubeconfig = f.kubeconfig
		}
		return m, err
	}
	m, err := open()
	if err != nil {
		return err
	}
	client, err := m.Client()
	if err != nil {
		return err
	}
	token := console.NewToken()
	listener, err := console.Listen(ctx, f.port)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "http://%s/#token=%s\n", listener.Addr(), token)
	pages := console.New(ctx, console.Config{Client: client, Namespace: f.namespace,
		Daemons: func(ctx context.Context) ([]view.Daemon, []view.Leader, string) {
			m, err := open()
			if err != nil {
				return nil, nil, err.Error()
			}
			return view.Daemons(ctx, m)
		},
		Explain: func(ctx context.Context, kind, namespace, name string) (view.Writer, error) {
			m, err := open()
			if err != nil {
				return nil, err
			}
			return view.Explain(ctx, m, kind, namespace, name)
		}}, token)
	return pages.Serve(ctx, listener)
}
