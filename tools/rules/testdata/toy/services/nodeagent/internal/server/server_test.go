package server

import (
	"testing"

	"k8s.io/klog/v2"
)

func TestServer(_ *testing.T) { klog.ClearLogger() }
