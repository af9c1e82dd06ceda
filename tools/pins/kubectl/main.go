// Command kubectl is the unmodified Kubernetes client, built from its library at the version that go.mod pins.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins named in kubeconfig files
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
		os.Exit(1)
	}
}
