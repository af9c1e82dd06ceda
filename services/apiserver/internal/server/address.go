package server

import (
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// hostAddress is the address of the interface with the default route.
func hostAddress() (net.IP, error) { return utilnet.ChooseHostInterface() }
