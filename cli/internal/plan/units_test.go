package plan

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update-testdata", false, "write the golden files anew")

func machineInput() ProcessInput {
	in := input("vm-1")
	in.Layout, in.Programs = Layout{Dir: "/var/lib/keelson"}, "/opt/keelson/bin"
	in.Ranges = Ranges{Pod: in.Ranges.Pod, Service: in.Ranges.Service}
	in.PodNetwork, in.Domain, in.DNS = Routes, DefaultDomain, DNSAddress(in.Ranges.Service.IPv4)
	return in
}

func sumsOf(in ProcessInput) map[string]string {
	sums := map[string]string{}
	for _, process := range in.flat() {
		for _, file := range in.FilesAtStart(process) {
			sums[file] = "sum"
		}
	}
	return sums
}

// golden compares the units with the files of a folder of testdata and returns their names. go test ./internal/plan
// -update-testdata rewrites the files.
func golden(t *testing.T, in ProcessInput, folder string) (names []string) {
	t.Helper()
	for _, unit := range slices.Concat(DecideUnits(in, sumsOf(in))...) {
		names = append(names, unit.Name)
		file := filepath.Join("testdata", folder, unit.Name)
		if *update {
			if err := os.WriteFile(file, []byte(unit.Content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != unit.Content {
			t.Errorf("%s is (%v)\n%s", unit.Name, err, unit.Content)
		}
		if !OwnsUnit(in.Layout, unit.Content) || OwnsUnit(Layout{Dir: "/elsewhere"}, unit.Content) {
			t.Errorf("whose %s is cannot be told", unit.Name)
		}
	}
	return names
}

func TestUnits(t *testing.T) {
	in := machineInput()
	names := golden(t, in, "units")
	if !slices.Equal(names, UnitNames()) {
		t.Errorf("the units are %v, and known are %v", names, UnitNames())
	}
	files, err := os.ReadDir(filepath.Join("testdata", "units"))
	if err != nil || len(files) != len(names) {
		t.Errorf("%d golden files for %d units, %v", len(files), len(names), err)
	}
}

// The scripts of deploy/packages look for these lines: they keep the programs that a unit starts.
func TestPackagesFindUnits(t *testing.T) {
	for command, in := range map[string]ProcessInput{"keel init": machineInput(), "keel join": workerInput()} {
		in.Programs = "/usr/lib/keelson/bin"
		for _, unit := range slices.Concat(DecideUnits(in, sumsOf(in))...) {
			if !strings.HasPrefix(unit.Content, "# Written by "+command+" ") ||
				!strings.Contains(unit.Content, "\nExecStart=/usr/lib/keelson/bin/") ||
				!strings.HasPrefix(unit.Name, "keelson-") {
				t.Errorf("%s is\n%s", unit.Name, unit.Content)
			}
		}
	}
}

// The processes under systemd have the same arguments as those of keel up.
func TestUnitsRunTheProcessesOfTheMesh(t *testing.T) {
	in := machineInput()
	tiers := DecideProcesses(in)
	for i, tier := range DecideUnits(in, nil) {
		for j, unit := range tier {
			process := tiers[i][j]
			want := "ExecStart=" + strings.Join(append([]string{in.ProgramPath(process)}, process.Args...), " ")
			if !strings.Contains(strings.ReplaceAll(unit.Content, " \\\n  ", " "), want+"\n") {
				t.Errorf("%s does not run %s", unit.Name, want)
			}
			if unit.Process.Name != process.Name || UnitName(process.Name) != unit.Name {
				t.Errorf("%s is the unit of %s", unit.Name, process.Name)
			}
		}
	}
	if want := slices.Concat(tiers...); len(want) != len(ProcessNames("vm-1")) {
		t.Errorf("%d processes have %d names", len(want), len(ProcessNames("vm-1")))
	}
	for i, process := range slices.Concat(tiers...) {
		if name := ProcessNames("vm-1")[i]; name != process.Name {
			t.Errorf("process %d is %s and called %s", i, process.Name, name)
		}
	}
}

// The ranges of a mesh of keel init are known from its units only, which an operator may have edited.
func TestUnitRanges(t *testing.T) {
	in := machineInput()
	var got []netip.Prefix
	for _, unit := range slices.Concat(DecideUnits(in, nil)...) {
		got = append(got, UnitRanges(unit.Content)...)
	}
	slices.SortFunc(got, netip.Prefix.Compare)
	if want := []netip.Prefix{in.Ranges.Service.IPv4, in.Ranges.Pod.IPv4}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("the units take %v, want %v", got, want)
	}
	for content, want := range map[string]int{"": 0, "--cluster-cidr": 0, "--cluster-cidr=": 0, "--cluster-cidr=x": 0,
		"-> --cluster-cidr=10.0.0.0/8": 1, "--cluster-cidr=10.0.0.0/8,fd00::/48": 2,
		"--cluster-cidr=10.0.0.0/8,": 0, "x--cluster-cidr=10.0.0.0/8": 0} {
		if got := UnitRanges(content); len(got) != want {
			t.Errorf("%q takes %v, want %d", content, got, want)
		}
	}
}

// A unit's revision changes with its text and with the files that its process reads.
func TestRevisions(t *testing.T) {
	in := machineInput()
	sums := sumsOf(in)
	revisions := func(in ProcessInput) map[string]string {
		found := map[string]string{}
		for _, unit := range slices.Concat(DecideUnits(in, sums)...) {
			if !strings.Contains(unit.Content, "\nEnvironment=KEEL_REVISION="+unit.Revision+"\n") ||
				len(unit.Revision) != 16 {
				t.Errorf("%s has revision %q", unit.Name, unit.Revision)
			}
			found[unit.Name] = unit.Revision
		}
		return found
	}
	first := revisions(in)
	const daemons = "apiserver scheduler workload-controllers podgc nodeagent"
	changed := func(second map[string]string) (names []string) {
		for _, name := range UnitNames() {
			if first[name] != second[name] {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(name, "keelson-"), ".service"))
			}
		}
		return names
	}
	for name, row := range map[string]struct {
		file  string
		other func(*ProcessInput)
		want  string
	}{
		"nothing":                 {want: ""},
		"the CA":                  {file: "pki/ca.crt", want: daemons},
		"a user's":                {file: "kubeconfig/podgc.kubeconfig", want: "podgc"},
		"the node's user":         {file: "kubeconfig/vm-1.kubeconfig", want: "nodeagent"},
		"the node's":              {file: "pki/vm-1-serving.crt", want: "nodeagent"},
		"the runtime's":           {file: "nodes/vm-1/containerd/config.toml", want: "containerd"},
		"the signing key":         {file: "pki/service-account.key", want: "apiserver"},
		"the operator's":          {file: "kubeconfig/admin.kubeconfig", want: ""},
		"another log level":       {other: func(in *ProcessInput) { in.LogLevel = "debug" }, want: daemons},
		"another domain of names": {other: func(in *ProcessInput) { in.Domain = "x" }, want: "nodeagent"},
	} {
		t.Run(name, func(t *testing.T) {
			in := machineInput()
			sums = sumsOf(in)
			if row.file != "" {
				sums[filepath.Join(in.Layout.Dir, row.file)] = "another"
			}
			if row.other != nil {
				row.other(&in)
			}
			if got := strings.Join(changed(revisions(in)), " "); got != row.want {
				t.Errorf("%q changed, want %q", got, row.want)
			}
		})
	}
}

// Containers outlive a restart of their runtime's unit, and every process is restarted when it ends.
func TestUnitsKeepContainersAndComeBack(t *testing.T) {
	in := machineInput()
	for _, unit := range slices.Concat(DecideUnits(in, nil)...) {
		lines := strings.Split(unit.Content, "\n")
		for _, want := range []string{"Restart=always", "StartLimitIntervalSec=0", "LimitNOFILE=1048576",
			"WantedBy=multi-user.target", "RequiresMountsFor=/var/lib/keelson /opt/keelson/bin"} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s lacks %s", unit.Name, want)
			}
		}
		runtime := unit.Name == "keelson-containerd.service"
		for _, line := range []string{"KillMode=process", "Delegate=yes", "Type=notify"} {
			if slices.Contains(lines, line) != runtime {
				t.Errorf("%s: %s is %t", unit.Name, line, !runtime)
			}
		}
	}
}

func TestCheckUnitPath(t *testing.T) {
	for path, good := range map[string]bool{
		"/var/lib/keelson": true, "/opt/A-b_c+1@x/0.9": true, "relative": false, "": false, "/a b": false,
		"/a%b": false,
		"/a$b": false, `/a\b`: false, "/a\nb": false, `/a"b`: false, "/ä": false, "/a;b": false,
	} {
		err := CheckUnitPath("--data-dir", path)
		if (err == nil) != good {
			t.Errorf("%q: %v", path, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "--data-dir: ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q is refused by %q", path, err)
		}
	}
}

// A node's socket has a path of at most 101 bytes.
func TestValidateNode(t *testing.T) {
	layout := Layout{Dir: "/var/lib/keelson"}
	longest := 101 - len("/var/lib/keelson/nodes//containerd.sock")
	for length, good := range map[int]bool{1: true, longest: true, longest + 1: false} {
		err := layout.ValidateNode(strings.Repeat("n", length))
		if (err == nil) != good {
			t.Errorf("%d characters: %v", length, err)
		}
		if err != nil && !strings.Contains(err.Error(), "is 1 characters too long") {
			t.Errorf("got %v", err)
		}
	}
}

// No node may have the name of a daemon's certificate.
func TestIsCertificate(t *testing.T) {
	for name, want := range map[string]bool{"ca": true, "ca-next": true, "ca-bridge": true, "service-account": true,
		"admin": true, "apiserver": true,
		"status": true, "scheduler": true, "podgc": true, "workload-controllers": true,
		"apiserver-nodeagent-client": true, "node-1": false, "vm": false, "": false} {
		if got := IsCertificate(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
