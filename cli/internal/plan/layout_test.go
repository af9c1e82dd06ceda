package plan

import (
	"strings"
	"testing"
)

func TestLayout(t *testing.T) {
	a, b := Layout{Dir: "/a"}, Layout{Dir: "/b"}
	if a.ID() == b.ID() || a.CgroupRoot() == b.CgroupRoot() || a.NetworkTable() == b.NetworkTable() ||
		a.Number() == b.Number() {
		t.Error("two meshes share a name of the kernel's")
	}
	if got := (Layout{Dir: "/a"}).CgroupSlice(); got != strings.ReplaceAll(a.CgroupRoot()[1:], "-", "_")+".slice" {
		t.Errorf("systemd would call %s another name than %s", a.CgroupRoot(), got)
	}
	if name := a.BridgeName(98); len(name) > 15 {
		t.Errorf("%s is too long for the kernel", name)
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	long := Layout{Dir: "/" + strings.Repeat("x", 80)}
	err := long.Validate()
	if err == nil || !strings.Contains(err.Error(), "too long for the sockets") {
		t.Fatalf("got %v", err)
	}
	if err := (Layout{Dir: long.Dir[:70]}).Validate(); err != nil {
		t.Errorf("the length that the message allows is refused: %v", err)
	}
}
